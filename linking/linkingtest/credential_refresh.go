package linkingtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/linking"
)

// RunCredentialRefresh tests that two [linking.CredentialRefresher] on one store keep every connection of which the
// provider accepts a stored secret, with concurrent callers, outages, and crashes between the exchange and the write.
func RunCredentialRefresh(t *testing.T, newStore func(t testing.TB) StoreHarness) {
	t.Run("OneExchange", func(t *testing.T) { refreshOnce(t, newStore(t)) })
	t.Run("CallersClocks", func(t *testing.T) { refreshOnStoreClock(t, newStore(t)) })
	t.Run("Rounds", func(t *testing.T) { refreshRounds(t, newStore(t)) })
}

// rotator is a provider that accepts the last secret and, with grace, the previous one.
type rotator struct {
	mu        sync.Mutex
	people    map[string]*rotation
	exchanges int                       // number of exchanges, including failed ones
	fault     func(answered bool) error // called at the start of an exchange, and after the provider made a new secret
}

type rotation struct {
	last  int // number of the newest valid secret
	grace bool
}

func newRotator() *rotator { return &rotator{people: map[string]*rotation{}} }

func rotated(person string, n int) []byte { return fmt.Appendf(nil, "%s:%d", person, n) }

// link starts a new grant of a person and returns its first secret. With grace, the provider accepts the previous
// secret too.
func (r *rotator) link(person string, grace bool) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.people[person]
	if p == nil {
		p = &rotation{}
		r.people[person] = p
	}
	p.last, p.grace = p.last+100, grace // earlier secrets are no longer accepted
	return rotated(person, p.last)
}

func (r *rotator) accepts(secret []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.acceptedRotation(secret) != nil
}

func (r *rotator) acceptedRotation(secret []byte) *rotation {
	person, n, _ := strings.Cut(string(secret), ":")
	p := r.people[person]
	if p != nil && (n == fmt.Sprint(p.last) || p.grace && n == fmt.Sprint(p.last-1)) {
		return p
	}
	return nil
}

func (r *rotator) Refresh(_ context.Context, secret []byte) (linking.Renewal, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exchanges++
	if r.fault != nil {
		if err := r.fault(false); err != nil {
			return linking.Renewal{}, err
		}
	}
	p := r.acceptedRotation(secret)
	if p == nil {
		return linking.Renewal{}, &linking.GrantError{}
	}
	person, _, _ := strings.Cut(string(secret), ":")
	p.last++
	if r.fault != nil {
		if err := r.fault(true); err != nil {
			return linking.Renewal{}, err
		}
	}
	return linking.Renewal{Secret: rotated(person, p.last)}, nil
}

// mortal is a store that simulates a crash: after doomed is set, the next write is lost.
type mortal struct {
	linking.CredentialStore
	mu     sync.Mutex
	doomed bool
	events []healthlab.Event
	died   func()
	after  func(error) // called after every change, with its error; may be nil
}

var errDied = errors.New("the process died")

func (m *mortal) UpdateCredential(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string,
	change func(*linking.Credential, *healthdata.User) ([]healthlab.Event, error),
) (linking.Credential, error) {
	var told []healthlab.Event
	c, err := m.CredentialStore.UpdateCredential(ctx, team, user, provider, func(c *linking.Credential, u *healthdata.User) ([]healthlab.Event, error) {
		before := c.Version
		events, err := change(c, u)
		m.mu.Lock()
		defer m.mu.Unlock()
		if err == nil && m.doomed && c.Version != before {
			return nil, errDied
		}
		told = events
		return events, err
	})
	if m.after != nil {
		m.after(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if errors.Is(err, errDied) {
		m.doomed = false
		m.died()
	} else if err == nil {
		m.events = append(m.events, told...)
	}
	return c, err
}

// refresherPair is two processes that refresh credentials, with their provider, stores and clocks.
type refresherPair struct {
	t          *testing.T
	h          StoreHarness
	rotator    *rotator
	health     *healthdata.Service
	seal       healthlab.Sealer
	stores     [2]*mortal
	refreshers [2]*linking.CredentialRefresher
	sessions   int

	mu    sync.Mutex
	now   time.Time        // the store's clock
	ahead [2]time.Duration // by how much the clock of each process is ahead of the store's clock
}

func (k *refresherPair) clock() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now
}

func (k *refresherPair) wait(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now = k.now.Add(d)
	k.h.SetClock(k.now)
}

const refreshLease = 2 * time.Minute

func newRefresherPair(t *testing.T, h StoreHarness) *refresherPair {
	k := &refresherPair{t: t, h: h, rotator: newRotator(), now: noon}
	providers, err := healthdata.NewProviders([]healthdata.Provider{
		{Slug: "acme_scale", Name: "Scale", AuthType: "oauth", Class: "cloud", Category: "device"},
	})
	require.NoError(t, err)
	k.health, err = healthdata.New(h.Users, h.Data, providers, &healthdata.Options{Environment: healthlab.Sandbox, Now: k.clock})
	require.NoError(t, err)
	k.seal, err = healthlab.NewAESSealer("k", map[string][]byte{"k": make([]byte, 32)})
	require.NoError(t, err)
	k.wait(0)
	for i, store := range []linking.CredentialStore{h.Credentials, h.Second} {
		k.stores[i] = &mortal{CredentialStore: store, died: func() { k.wait(refreshLease + time.Second) }}
		k.restart(i)
	}
	return k
}

func (k *refresherPair) restart(i int) {
	var err error
	k.refreshers[i], err = linking.NewCredentialRefresher(k.stores[i], k.health, map[string]linking.ProviderConnector{"acme_scale": {Refresher: k.rotator}},
		k.seal, &linking.CredentialRefresherOptions{Now: func() time.Time { return k.clock().Add(k.ahead[i]) }, Lease: refreshLease})
	require.NoError(k.t, err)
}

// link connects a person with a secret that has expired by the clocks of the store and of both processes. grace is that
// of rotator.link.
func (k *refresherPair) link(user string, grace bool) {
	k.sessions++
	s := linkSession("a", user, fmt.Sprint("refresher ", k.sessions))
	s.CreatedAt, s.ExpiresAt = k.clock(), k.clock().Add(time.Hour)
	require.NoError(k.t, k.h.Linking.InsertSession(k.t.Context(), s))
	place := fmt.Appendf(nil, "grant %s %s %s", s.Team, s.User, "acme_scale")
	box, err := k.seal.Seal(k.t.Context(), k.rotator.link(user, grace), place)
	require.NoError(k.t, err)
	establish, err := k.health.Connections().ConnectingLinked(healthdata.NewConnection{Provider: "acme_scale"})
	require.NoError(k.t, err)
	_, err = k.h.Linking.Complete(k.t.Context(), linking.Completion{
		Team: s.Team, Session: s.ID,
		Credential: linking.Credential{
			ID: uuid.New(), Team: s.Team, User: s.User, Provider: "acme_scale", Secret: box, CreatedAt: k.clock(), ExpiresAt: k.clock().Add(-2 * time.Hour),
		},
		Change: func(x *linking.Session, u *healthdata.User) ([]healthlab.Event, error) {
			x.State = linking.StateConnected
			return establish(u)
		},
	})
	require.NoError(k.t, err)
}

// expire makes a secret expire.
func (k *refresherPair) expire(user string) {
	_, err := k.h.Credentials.UpdateCredential(k.t.Context(), conformance.Team("a"), conformance.User(user), "acme_scale",
		func(c *linking.Credential, _ *healthdata.User) ([]healthlab.Event, error) {
			c.ExpiresAt = k.clock()
			return nil, nil
		})
	require.NoError(k.t, err)
}

func (k *refresherPair) secret(i int, user string) (linking.GrantSecret, error) {
	return k.refreshers[i].Secret(k.t.Context(), conformance.Team("a"), conformance.User(user), "acme_scale")
}

// connection returns the user's connection, and whether the provider accepts its grant.
func (k *refresherPair) connection(user string) (healthdata.Connection, bool) {
	u, err := k.h.Users.Get(k.t.Context(), conformance.Team("a"), conformance.User(user))
	require.NoError(k.t, err)
	c := k.h.Credential(k.t, "a", user)
	honoured := false
	for _, box := range []healthlab.Sealed{c.Secret, c.Previous} {
		if box.Box == nil {
			continue
		}
		secret, err := k.seal.Open(k.t.Context(), box, fmt.Appendf(nil, "grant %s %s %s", c.Team, c.User, c.Provider))
		require.NoError(k.t, err)
		honoured = honoured || k.rotator.accepts(secret)
	}
	return *u.Connection("acme_scale"), honoured
}

// failures returns the number of failure events of a user.
func (k *refresherPair) failures(user string) (n int) {
	for _, m := range k.stores {
		for _, e := range m.events {
			if e.Type == healthdata.EventConnectionError && e.User == conformance.User(user) {
				n++
			}
		}
	}
	return n
}

func refreshOnce(t *testing.T, h StoreHarness) {
	k := newRefresherPair(t, h)
	h.AddUser(t, "a", "ann")
	k.link("ann", false)
	// The provider waits until both processes have requested a new secret.
	var both sync.WaitGroup
	for _, m := range k.stores {
		both.Add(1)
		asked := sync.OnceFunc(both.Done)
		m.after = func(error) { asked() }
	}
	k.rotator.fault = func(answered bool) error {
		if !answered {
			both.Wait()
		}
		return nil
	}
	const callers = 1000
	got := make([]linking.GrantSecret, callers)
	for i, err := range conformance.Together(callers, func(i int) (err error) {
		got[i], err = k.secret(i%2, "ann")
		return err
	}) {
		require.NoError(t, err)
		require.Equal(t, got[0], got[i])
	}
	require.Equal(t, 1, k.rotator.exchanges)
	require.Equal(t, rotated("ann", 101), got[0].Secret)
	c, _ := k.connection("ann")
	require.Equal(t, healthdata.Connected, c.Status)
}

// refreshOnStoreClock tests that another process waits until a lease ends by the store's clock, whether the clock of
// the process that took the lease is fast or slow.
func refreshOnStoreClock(t *testing.T, h StoreHarness) {
	k := newRefresherPair(t, h)
	k.ahead = [2]time.Duration{time.Hour, -time.Hour}
	for first, user := range []string{"ann", "bob"} {
		h.AddUser(t, "a", user)
		k.link(user, true)
		dies, waits := k.stores[first], k.stores[1-first]
		dies.died, dies.doomed = func() {}, true
		_, err := k.secret(first, user)
		require.ErrorIs(t, err, errDied)
		k.wait(refreshLease - time.Microsecond)
		refused := 0
		waits.after = func(err error) {
			if err == nil {
				return
			}
			if refused++; refused == 1 {
				k.wait(time.Microsecond)
			} else {
				k.wait(24 * time.Hour) // a bound, so that the test ends
			}
		}
		_, err = k.secret(1-first, user)
		require.NoError(t, err)
		waits.after = nil
		require.Equal(t, 1, refused, "while the lease holds, and no longer")
		require.Equal(t, 2*(first+1), k.rotator.exchanges)
	}
}

// refreshRounds tests that connections survive repeated expiry while the provider has outages.
func refreshRounds(t *testing.T, h StoreHarness) {
	k := newRefresherPair(t, h)
	r := rand.New(rand.NewPCG(6, 2026))
	people := []string{"ann", "bob", "cleo", "dan", "eve"}
	failed := map[string]int{}
	for i, p := range people {
		h.AddUser(t, "a", p)
		k.link(p, i%2 == 0)
	}
	saw := map[string]int{} // every kind of round must happen
	for round := range prove.Counts(300, 500, 10_000) {
		p := people[r.IntN(len(people))]
		before, _ := k.connection(p)
		k.expire(p)
		switch r.IntN(6) {
		case 0: // no fault
		case 1:
			k.rotator.fault = func(answered bool) error { return errorUnless(answered, errors.New("502")) }
		case 2:
			lost := 0
			k.rotator.fault = func(answered bool) error {
				if !answered || lost > 0 {
					return nil
				}
				lost++
				return context.DeadlineExceeded
			}
		case 3, 4:
			k.stores[round%2].doomed = true
		case 5:
			k.rotator.mu.Lock()
			k.rotator.people[p].last += 7 // the person revoked the grant
			k.rotator.mu.Unlock()
		}
		_ = conformance.Together(1+r.IntN(4), func(i int) error {
			_, err := k.secret((round+i)%2, p)
			return err
		})
		for i := range k.stores {
			if k.stores[i].doomed = false; r.IntN(3) == 0 {
				k.restart(i)
			}
		}
		k.rotator.fault = nil
		if c, _ := k.connection(p); c.Status == healthdata.Connected {
			k.wait(time.Hour) // leases and pauses end
			k.expire(p)
			_, honoured := k.connection(p)
			_, err := k.secret(r.IntN(2), p)
			if honoured {
				require.NoError(t, err, "round %d: the grant is honoured", round)
				saw["kept"]++
			} else {
				var over *linking.GrantError
				require.ErrorAs(t, err, &over, "round %d", round)
			}
		}
		after, honoured := k.connection(p)
		if after.Status == healthdata.Connected {
			require.True(t, honoured, "round %d", round)
		} else {
			require.Equal(t, healthdata.ConnectionError, after.Status)
			require.False(t, honoured, "round %d: lost while the provider honours what is stored", round)
			require.Equal(t, healthdata.FailureTokenRefresh, after.Failure.Type)
			failed[p]++
			saw["failed"]++
			for i := range 2 {
				_, err := k.secret(i, p)
				require.Error(t, err)
			}
			k.link(p, r.IntN(2) == 0)
			k.expire(p)
			_, err := k.secret(0, p)
			require.NoError(t, err)
			again, _ := k.connection(p)
			require.Equal(t, healthdata.Connected, again.Status)
			require.Equal(t, before.CreatedOn, again.CreatedOn, "the same connection")
			require.Nil(t, again.Failure)
		}
		require.Equal(t, failed[p], k.failures(p), "round %d: announced once", round)
	}
	require.Greater(t, saw["kept"], 100)
	require.Greater(t, saw["failed"], 50)
}

func errorUnless(done bool, err error) error {
	if done {
		return nil
	}
	return err
}
