package pulltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// RunCrashes runs pulls in processes that crash before and after writes. At the end all data of the provider
// must be stored once, including late, corrected and unordered data, and each history must have one event about
// its end.
func RunCrashes(t *testing.T, newStore func(t testing.TB) StoreHarness) {
	w := newCrashWorld(t, newStore(t))
	crashes := prove.Count(10, 100)
	for w.crashes < crashes {
		w.runUntilCrash()
		w.wait(time.Duration(1+w.dice.IntN(20)) * time.Minute) // leases end
		w.addData()
	}
	w.mortal.left = 0
	s := w.process()
	for range 60 {
		for n := 1; n > 0; {
			var err error
			n, err = s.Step(t.Context())
			require.NoError(t, err)
		}
		w.wait(time.Hour)
	}
	for _, user := range w.people {
		require.Equal(t, w.cloud.allReadings(user), w.stored(user))
		require.Equal(t, 1, w.mortal.told[user])
	}
	t.Logf("%d crashes, %d requests", w.crashes, w.cloud.requests)
}

// crashWorld is the fixture of RunCrashes: a provider, its users, and crashing processes.
type crashWorld struct {
	t         *testing.T
	health    *healthdata.Service
	refresher *linking.CredentialRefresher
	team      healthlab.TeamID
	people    []healthlab.UserID
	cloud     *crashCloud
	mortal    *mortalPulls
	dice      *rand.Rand
	now       time.Time
	setClock  func(now time.Time)
	crashes   int
}

const crashProvider = "acme_band"

func newCrashWorld(t *testing.T, h StoreHarness) *crashWorld {
	w := &crashWorld{
		t: t, team: healthlab.TeamID{UUID: uuid.New()}, dice: rand.New(rand.NewPCG(6, 2026)), now: noon, setClock: h.SetClock,
		mortal: &mortalPulls{Store: h.Pulls, told: map[healthlab.UserID]int{}},
	}
	h.SetClock(noon)
	clock := func() time.Time { return w.now }
	w.cloud = &crashCloud{now: clock, held: map[healthlab.UserID][]crashReading{}}
	providers, err := healthdata.NewProviders([]healthdata.Provider{{
		Slug: crashProvider, Name: "Band", AuthType: "oauth", Category: "device", Class: "cloud", Demo: true,
		Resources: []healthdata.ProviderResource{{Resource: "heartrate"}}, Backfill: healthdata.Backfill{Mode: "pull"},
	}})
	require.NoError(t, err)
	w.health, err = healthdata.New(h.Users, h.Data, providers, &healthdata.Options{Environment: healthlab.Sandbox, Now: clock})
	require.NoError(t, err)
	seal, err := healthlab.NewAESSealer("k", map[string][]byte{"k": make([]byte, 32)})
	require.NoError(t, err)
	w.refresher, err = linking.NewCredentialRefresher(h.Credentials, w.health, nil, seal, &linking.CredentialRefresherOptions{Now: clock})
	require.NoError(t, err)
	for i := range 3 {
		u, err := w.health.CreateUser(t.Context(), w.team, healthdata.NewUser{ClientUserID: fmt.Sprint("person ", i)})
		require.NoError(t, err)
		_, err = w.health.Connections().ConnectLinked(t.Context(), w.team, u.ID, healthdata.NewConnection{Provider: crashProvider, Demo: true})
		require.NoError(t, err)
		w.people = append(w.people, u.ID)
		for k := range 80 { // the history is thirty days long
			w.cloud.addReading(u.ID, noon.Add(-time.Duration(k)*9*time.Hour), noon, float64(50+w.dice.IntN(50)))
		}
	}
	return w
}

func (w *crashWorld) wait(d time.Duration) {
	w.now = w.now.Add(d)
	w.setClock(w.now)
}

func (w *crashWorld) process() *pull.Service {
	s, err := pull.New(w.mortal, w.health, w.refresher, nil, &pull.Options{Now: func() time.Time { return w.now }, Demo: w.cloud, Workers: 1 + w.dice.IntN(3)})
	require.NoError(w.t, err)
	return s
}

// runUntilCrash runs a process until it crashes, or for 40 minutes of simulated time.
func (w *crashWorld) runUntilCrash() {
	w.mortal.left, w.mortal.after = 1+w.dice.IntN(12), w.dice.IntN(2) == 0
	s := w.process()
	for range 40 {
		_, err := s.Step(w.t.Context())
		if errors.Is(err, errDied) {
			w.crashes++
			return
		}
		require.NoError(w.t, err)
		w.wait(time.Minute)
	}
}

// addData adds a reading at the provider, which is late or out of order, and sometimes corrects an earlier one.
func (w *crashWorld) addData() {
	user := w.people[w.dice.IntN(len(w.people))]
	at := w.now.Add(-time.Duration(w.dice.IntN(600)) * time.Minute)
	w.cloud.addReading(user, at, at.Add(time.Duration(w.dice.IntN(36))*time.Hour), float64(50+w.dice.IntN(50)))
	if w.dice.IntN(2) == 0 {
		held := w.cloud.held[user]
		held[len(held)-1-w.dice.IntN(2)].value += 3
	}
}

func (w *crashWorld) stored(user healthlab.UserID) []string {
	list, err := w.health.AllSamples(w.t.Context(), w.team, user, healthdata.SampleQuery{
		Resource: "heartrate", From: noon.AddDate(0, 0, -60), To: noon.AddDate(1, 0, 0),
	})
	require.NoError(w.t, err)
	out := []string{}
	for _, s := range list {
		out = append(out, crashLine(s.Timestamp.Time, s.Value.Number))
	}
	return out
}

func crashLine(at time.Time, value float64) string {
	return fmt.Sprint(at.UTC().Format(time.RFC3339Nano), " ", value)
}

// crashReading is a reading of the provider with the instant from which it is visible.
type crashReading struct {
	at, visible time.Time
	value       float64
}

// crashCloud is a provider that returns readings in small pages.
type crashCloud struct {
	now      func() time.Time
	held     map[healthlab.UserID][]crashReading
	requests int
}

// addReading adds a reading, unless the provider has one of that time.
func (c *crashCloud) addReading(user healthlab.UserID, at, visible time.Time, value float64) {
	for _, r := range c.held[user] {
		if r.at.Equal(at) {
			return
		}
	}
	c.held[user] = append(c.held[user], crashReading{at, visible, value})
}

// allReadings returns all readings that the provider has of a user, in order of time.
func (c *crashCloud) allReadings(user healthlab.UserID) []string {
	out := []string{}
	for _, r := range c.held[user] {
		out = append(out, crashLine(r.at, r.value))
	}
	slices.Sort(out)
	return out
}

func (c *crashCloud) Pull(_ context.Context, r linking.PullRequest) (linking.PullPage, error) {
	c.requests++
	var fits []healthdata.Sample
	for _, x := range c.held[r.User] { // out of order
		if !x.at.Before(r.From) && x.at.Before(r.To) && !x.visible.After(c.now()) {
			offset := 0
			fits = append(fits, healthdata.Sample{
				Timestamp: healthlab.At(x.at), TimezoneOffset: &offset, Unit: "bpm", Value: healthdata.Number(x.value),
			})
		}
	}
	const size = 7
	from, _ := strconv.Atoi(r.Cursor)
	to := min(from+size, len(fits))
	page := linking.PullPage{Items: []linking.PullItem{{
		Source: healthdata.Source{Type: healthdata.SourceWatch}, Samples: fits[min(from, to):to],
	}}}
	if to < len(fits) {
		page.Next = strconv.Itoa(to)
	}
	return page, nil
}

// mortalPulls is a store that simulates a crash: after a number of writes, all further writes fail.
type mortalPulls struct {
	pull.Store
	mu    sync.Mutex
	left  int // number of writes up to the one that fails; 0 means that none fails
	after bool
	told  map[healthlab.UserID]int
}

// write calls do, or simulates the crash: it returns errDied, before the write or, if after is set, after it.
func (m *mortalPulls) write(do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dies := false
	if m.left > 0 {
		if m.left--; m.left == 0 {
			m.left, dies = 1, true // all further writes fail
		}
	}
	if dies && !m.after {
		return errDied
	}
	if dies {
		m.after = false
	}
	if err := do(); err != nil || !dies {
		return err
	}
	return errDied
}

// countHistoryEvents counts the events about the end of a history.
func (m *mortalPulls) countHistoryEvents(events []healthlab.Event) {
	for _, e := range events {
		if e.Type == "historical.data.heartrate.created" {
			m.told[e.User]++
		}
	}
}

func (m *mortalPulls) Plan(ctx context.Context, ref pull.Ref, change func(healthdata.Connection, healthdata.User, []pull.Task) (pull.ConnectionPlan, error)) error {
	return m.write(func() error { return m.Store.Plan(ctx, ref, change) })
}

func (m *mortalPulls) ClaimConnections(ctx context.Context, n int, now, until time.Time) (out []pull.Ref, err error) {
	err = m.write(func() (err error) { out, err = m.Store.ClaimConnections(ctx, n, now, until); return err })
	return out, err
}

func (m *mortalPulls) Claim(ctx context.Context, q pull.ClaimQuery) (out []pull.Task, err error) {
	err = m.write(func() (err error) { out, err = m.Store.Claim(ctx, q); return err })
	return out, err
}

func (m *mortalPulls) Update(ctx context.Context, key pull.Key, change func(*pull.Task) ([]healthlab.Event, error)) (out pull.Task, err error) {
	err = m.write(func() error {
		var told []healthlab.Event
		t, err := m.Store.Update(ctx, key, func(t *pull.Task) ([]healthlab.Event, error) {
			events, err := change(t)
			told = events
			return events, err
		})
		if err == nil {
			m.countHistoryEvents(told)
		}
		out = t
		return err
	})
	return out, err
}

var errDied = errors.New("the process died")
