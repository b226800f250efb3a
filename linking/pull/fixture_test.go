package pull_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

var (
	noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	team = healthlab.TeamID{UUID: uuid.MustParse("8f14e45f-ceea-467f-9b1c-3d4a0a1b2c3d")}
)

const band, watch = "acme_band", "acme_watch"

// reading is one sample that the provider holds.
type reading struct {
	at      time.Time
	value   float64
	visible time.Time // from when on the provider shows it
	unit    string
}

// cloud is a provider: what it holds, and how it answers.
type cloud struct {
	now      func() time.Time
	page     int
	hourly   bool // every user has a reading every hour
	perMin   int  // requests that it takes in any minute; 0 for any number
	latency  func() time.Duration
	answer   func(r linking.PullRequest) error // in place of data
	rates    func() []linking.RateLimit
	owner    *string
	unparsed []linking.UnparsedItem // comes with every page
	mu       sync.Mutex
	held     map[healthlab.UserID][]reading
	requests []time.Time
	refused  int
	first    map[healthlab.UserID]time.Time
}

func (c *cloud) Pull(ctx context.Context, r linking.PullRequest) (linking.PullPage, error) {
	if c.latency != nil {
		t := time.NewTimer(c.latency())
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return linking.PullPage{}, ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if c.perMin > 0 {
		since := slices.IndexFunc(c.requests, func(t time.Time) bool { return now.Sub(t) < time.Minute })
		if since >= 0 && len(c.requests)-since >= c.perMin {
			c.refused++
			return linking.PullPage{}, &linking.RateLimitError{}
		}
	}
	c.requests = append(c.requests, now)
	if c.answer != nil {
		if err := c.answer(r); err != nil {
			return linking.PullPage{}, err
		}
	}
	if c.first[r.User].IsZero() {
		c.first[r.User] = now
	}
	all := c.held[r.User]
	if c.hourly {
		all = nil
		for t := r.From.Truncate(time.Hour); t.Before(r.To); t = t.Add(time.Hour) {
			all = append(all, reading{at: t, value: float64(40 + t.Hour())})
		}
	}
	var fits []healthdata.Sample
	for _, x := range all {
		if x.at.Before(r.From) || !x.at.Before(r.To) || x.visible.After(now) {
			continue
		}
		unit := x.unit
		if unit == "" {
			unit = healthdata.ResourceBySlug(r.Resource).Unit
		}
		offset := 0
		fits = append(fits, healthdata.Sample{
			Timestamp: healthlab.At(x.at), TimezoneOffset: &offset, Unit: unit, Value: &healthdata.Value{Number: x.value},
		})
	}
	at, _ := strconv.Atoi(r.Cursor)
	end := min(at+c.page, len(fits))
	page := linking.PullPage{Items: []linking.PullItem{{
		Owner: c.owner, Source: healthdata.Source{Type: healthdata.SourceWatch}, Samples: fits[min(at, end):end], Unparsed: c.unparsed,
	}}}
	if end < len(fits) {
		page.Next = strconv.Itoa(end)
	}
	if c.rates != nil {
		page.RateLimits = c.rates()
	}
	return page, nil
}

// fixture is a service over a provider, and its people.
type fixture struct {
	t         *testing.T
	store     *memory.Store
	spy       *spy
	health    *healthdata.Service
	refresher *linking.CredentialRefresher
	cloud     *cloud
	mu        sync.Mutex
	at        time.Time
}

func (w *fixture) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *fixture) wait(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

func bandOf(edit func(*healthdata.Provider)) healthdata.Provider {
	p := healthdata.Provider{
		Slug: band, Name: "Band", AuthType: "oauth", Category: "device", Class: "cloud", Demo: true,
		Resources: []healthdata.ProviderResource{{Resource: "heartrate"}},
		Backfill:  healthdata.Backfill{DefaultDays: 90, Configurable: true, Mode: "pull"},
	}
	if edit != nil {
		edit(&p)
	}
	return p
}

// newFixture makes a fixture whose clock is clock; nil is one that stands still.
func newFixture(t *testing.T, clock func() time.Time, edit func(*healthdata.Provider)) *fixture {
	t.Helper()
	w := &fixture{t: t, at: noon}
	if clock == nil {
		clock = w.now
	}
	w.store = memory.New(&memory.Options{Now: clock})
	w.spy = &spy{Store: w.store.Pulls()}
	other := bandOf(nil)
	other.Slug, other.Name = watch, "Watch"
	providers, err := healthdata.NewProviders([]healthdata.Provider{bandOf(edit), other})
	require.NoError(t, err)
	w.health, err = healthdata.New(w.store.Users(), w.store.Data(), providers, &healthdata.Options{Now: clock, Environment: healthlab.Production})
	require.NoError(t, err)
	seal, err := healthlab.NewAESSealer("k", map[string][]byte{"k": make([]byte, 32)})
	require.NoError(t, err)
	w.refresher, err = linking.NewCredentialRefresher(w.store.Credentials(), w.health, nil, seal, &linking.CredentialRefresherOptions{Now: clock})
	require.NoError(t, err)
	w.cloud = &cloud{now: clock, page: 1000, held: map[healthlab.UserID][]reading{}, first: map[healthlab.UserID]time.Time{}}
	return w
}

// service is one process.
func (w *fixture) service(edit func(*pull.Options)) *pull.Service {
	w.t.Helper()
	opts := pull.Options{Now: w.cloud.now}
	if edit != nil {
		edit(&opts)
	}
	s, err := pull.New(w.spy, w.health, w.refresher, map[string]linking.ProviderConnector{band: {Puller: w.cloud}}, &opts)
	require.NoError(w.t, err)
	return s
}

// person is a user who has linked the band.
func (w *fixture) person(name string) healthlab.UserID {
	w.t.Helper()
	u, err := w.health.CreateUser(w.t.Context(), team, healthdata.NewUser{ClientUserID: name})
	require.NoError(w.t, err)
	w.link(u.ID)
	return u.ID
}

func (w *fixture) link(user healthlab.UserID) {
	w.t.Helper()
	w.linkBy(user, "")
}

func (w *fixture) linkBy(user healthlab.UserID, client string) {
	w.t.Helper()
	w.linkTo(user, band, client)
}

func (w *fixture) linkTo(user healthlab.UserID, provider, client string) {
	w.t.Helper()
	account := "account of " + user.String()
	x := linking.Session{
		ID: linking.SessionID{UUID: uuid.New()}, Team: team, User: user, State: linking.StateStarted,
		CreatedAt: w.cloud.now(), ExpiresAt: w.cloud.now().Add(time.Hour),
	}
	require.NoError(w.t, w.store.Linking().InsertSession(w.t.Context(), x))
	seal, err := healthlab.NewAESSealer("k", map[string][]byte{"k": make([]byte, 32)})
	require.NoError(w.t, err)
	box, err := seal.Seal(w.t.Context(), []byte("secret"), fmt.Appendf(nil, "grant %s %s %s", team, user, provider))
	require.NoError(w.t, err)
	establish, err := w.health.Connections().ConnectingLinked(healthdata.NewConnection{Provider: provider, ExternalUserID: &account, Client: client})
	require.NoError(w.t, err)
	_, err = w.store.Linking().Complete(w.t.Context(), linking.Completion{
		Team: team, Session: x.ID,
		Credential: linking.Credential{ID: uuid.New(), Team: team, User: user, Provider: provider, Secret: box, CreatedAt: w.cloud.now()},
		Change: func(x *linking.Session, u *healthdata.User) ([]healthlab.Event, error) {
			x.State = linking.StateConnected
			return establish(u)
		},
	})
	require.NoError(w.t, err)
}

// idle does what is due until nothing is.
func (w *fixture) idle(s *pull.Service) {
	w.t.Helper()
	for range 10_000 {
		n, err := s.Step(w.t.Context())
		require.NoError(w.t, err)
		if n == 0 {
			return
		}
	}
	w.t.Fatal("it never ends")
}

func (w *fixture) tasks(user healthlab.UserID) map[pull.TaskKind]pull.Task {
	w.t.Helper()
	list, err := w.spy.Tasks(w.t.Context(), team, user)
	require.NoError(w.t, err)
	out := map[pull.TaskKind]pull.Task{}
	for _, t := range list {
		out[t.Kind] = t
	}
	return out
}

// stored reads all heart rates of a user.
func (w *fixture) stored(user healthlab.UserID) map[time.Time]float64 {
	w.t.Helper()
	out := map[time.Time]float64{}
	list, err := w.health.AllSamples(w.t.Context(), team, user, healthdata.SampleQuery{
		Resource: "heartrate", From: noon.AddDate(-2, 0, 0), To: noon.AddDate(1, 0, 0),
	})
	require.NoError(w.t, err)
	for _, x := range list {
		require.NotContains(w.t, out, x.Timestamp.Time, "stored once")
		out[x.Timestamp.Time] = x.Value.Number
	}
	return out
}

// spy notes the events that are written, and lets a process die over a write.
type spy struct {
	pull.Store
	mu     sync.Mutex
	events []healthlab.Event
	die    func(what string) error
}

func (s *spy) dies(what string) error {
	if s.die == nil {
		return nil
	}
	return s.die(what)
}

func (s *spy) note(err error, events []healthlab.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.events = append(s.events, events...)
	}
}

func (s *spy) Plan(ctx context.Context, ref pull.Ref, change func(healthdata.Connection, healthdata.User, []pull.Task) (pull.ConnectionPlan, error)) error {
	if err := s.dies("plan"); err != nil {
		return err
	}
	var events []healthlab.Event
	err := s.Store.Plan(ctx, ref, func(c healthdata.Connection, u healthdata.User, old []pull.Task) (pull.ConnectionPlan, error) {
		p, err := change(c, u, old)
		events = p.Events
		return p, err
	})
	s.note(err, events)
	return err
}

func (s *spy) Update(ctx context.Context, key pull.Key, change func(*pull.Task) ([]healthlab.Event, error)) (pull.Task, error) {
	if err := s.dies("update"); err != nil {
		return pull.Task{}, err
	}
	var events []healthlab.Event
	t, err := s.Store.Update(ctx, key, func(t *pull.Task) (_ []healthlab.Event, err error) {
		events, err = change(t)
		return events, err
	})
	s.note(err, events)
	return t, err
}

// said returns the payloads of the events of a type about a user.
func (w *fixture) said(user healthlab.UserID, name string) (out []json.RawMessage) {
	for _, e := range w.spy.events {
		if e.Type == name && e.User == user {
			out = append(out, e.Data)
		}
	}
	return out
}

// ended counts the histories that were told to be there, by their user.
func (s *spy) ended() map[healthlab.UserID]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[healthlab.UserID]int{}
	for _, e := range s.events {
		if strings.HasPrefix(e.Type, "historical.") {
			out[e.User]++
		}
	}
	return out
}
