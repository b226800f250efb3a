package webhooktest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/webhook"
)

// RunOrderUnderFailures writes events while two dispatchers, which are stopped and started at random, deliver to
// a failing receiver. At the end the receiver must have the newest version of each key. It must not have
// received an older version after a newer one, missed an independent event, or received two messages of a key
// concurrently.
//
// newStore is as for RunDeliveries, but the store's clock must move by itself.
func RunOrderUnderFailures(t *testing.T, newStore func(t *testing.T) Harness) {
	for _, c := range []struct {
		name            string
		scope           webhook.OrderScope
		keys            int
		commits         int
		lost, forgotten float64 // shares of requests; see fireReceiver
	}{
		{"LanePerKey", webhook.OrderKey, 200, prove.Counts(800, 2000, 20_000), 0.20, 0.05},
		{"LanePerUser", webhook.OrderUser, 200, prove.Counts(300, 500, 5000), 0.20, 0.05},
		{"NothingLost", webhook.OrderKey, 2000, prove.Counts(2000, 10_000, 100_000), 0.05, 0.02},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFire(t, newStore(t), c.scope, c.keys)
			f.to.lost, f.to.forgotten = c.lost, c.forgotten
			f.run(c.commits)
		})
	}
}

// fire is one run of RunOrderUnderFailures: a store, writers, dispatchers and a receiver.
type fire struct {
	t     *testing.T
	s     Harness
	team  healthlab.TeamID
	users []healthlab.UserID
	types *webhook.Catalogue
	seal  healthlab.Sealer
	keys  []*fireKey
	to    *fireReceiver
}

// fireKey is one event key. versions counts the events that the test has written for it; the lock orders the writes.
type fireKey struct {
	mu       sync.Mutex
	name     string
	ordered  bool
	versions int
}

func newFire(t *testing.T, s Harness, scope webhook.OrderScope, keys int) *fire {
	f := &fire{t: t, s: s, team: healthlab.TeamID{UUID: id()}, to: newFireReceiver()}
	for range 10 {
		f.users = append(f.users, healthlab.UserID{UUID: id()})
	}
	for i := range keys {
		f.keys = append(f.keys, &fireKey{name: fmt.Sprint("key ", i), ordered: i%2 == 0})
	}
	var err error
	f.types, err = webhook.NewCatalogue([]healthlab.EventType{
		{Name: typeLatest, Mode: healthlab.Latest}, {Name: typeOrdered, Mode: healthlab.Ordered},
	}, webhook.EventTypes())
	require.NoError(t, err)
	f.seal, err = healthlab.NewAESSealer("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	service, err := webhook.NewService(f.types, serviceStore{dispatcherStore{s.Deliveries, s.Endpoints}, s.Log}, f.to, f.seal, nil)
	require.NoError(t, err)
	_, err = service.Create(t.Context(), f.team, webhook.NewEndpoint{URL: "https://receiver.example.com", OrderScope: scope})
	require.NoError(t, err)
	return f
}

// run makes commits writes, waits until the receiver has the newest version of each key, stops everything and checks
// the receiver. The limit of a quarter of an hour only ends a hanging test.
func (f *fire) run(commits int) {
	ctx, cancel := context.WithTimeout(f.t.Context(), 15*time.Minute)
	defer cancel()
	var dispatchers sync.WaitGroup
	running, stop := context.WithCancel(ctx)
	for range 2 {
		dispatchers.Go(func() { f.dispatch(running) })
	}
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() { f.write(ctx, commits/8) })
	}
	writers.Wait()
	newest := map[string]int{}
	for _, k := range f.keys {
		newest[k.name] = k.versions
	}
	f.to.until(ctx, newest)
	stop()
	dispatchers.Wait()

	require.Empty(f.t, f.to.wrong)
	for _, k := range f.keys {
		require.Equal(f.t, k.versions, f.to.last[k.name], "the newest version of %s", k.name)
		if k.ordered {
			require.Len(f.t, f.to.seen[k.name], k.versions, "every version of %s", k.name)
		}
	}
}

// write makes commits writes of a new version of a random key. Some of them fail, so that no event is written.
func (f *fire) write(ctx context.Context, commits int) {
	for range commits {
		n := rand.IntN(len(f.keys))
		k := f.keys[n]
		k.mu.Lock()
		e := healthlab.Event{
			ID: id(), Type: typeLatest, Team: f.team, User: f.users[n%len(f.users)], Key: k.name, At: longAgo,
			Data: fmt.Appendf(nil, `{"key":%q,"version":%d,"ordered":%t}`, k.name, k.versions+1, k.ordered),
		}
		if k.ordered {
			e.Type = typeOrdered
		}
		events := []healthlab.Event{e}
		if rand.Float64() < 0.04 {
			events = append(events, healthlab.Event{}) // not a valid event, so that none is written
		}
		if f.s.Outbox.Append(ctx, events) == nil {
			k.versions++
		}
		k.mu.Unlock()
	}
}

// dispatch runs one dispatcher after another, each for less than a second. Unfinished requests of a stopped dispatcher
// are retried after their lease, as after a crash.
func (f *fire) dispatch(ctx context.Context) {
	for ctx.Err() == nil {
		d, err := webhook.NewDispatcher(f.types, dispatcherStore{f.s.Deliveries, f.s.Endpoints}, f.to, f.seal, &webhook.Options{
			Schedule:    webhook.Delays(slices.Repeat([]time.Duration{time.Millisecond}, 1000)...),
			Lease:       400 * time.Millisecond,
			Timeout:     100 * time.Millisecond,
			StartMargin: 100 * time.Millisecond,
			CrashLimit:  1000,
			OutcomeWait: time.Millisecond,
			Busy:        time.Millisecond,
			Idle:        2 * time.Millisecond,
			Drain:       time.Millisecond,
		})
		if err != nil {
			f.to.note("%v", err)
			return
		}
		life, end := context.WithTimeout(ctx, time.Duration(100+rand.IntN(400))*time.Millisecond)
		if err := d.Run(life); err != nil {
			f.to.note("run: %v", err)
		}
		end()
	}
}

// fireReceiver is a receiver that stores the latest version of each key, and records messages in a wrong order.
type fireReceiver struct {
	lost      float64 // share of requests that fail and are not received
	forgotten float64 // share of requests that are received and answered with a failure

	mu    sync.Mutex
	last  map[string]int
	seen  map[string]map[int]bool
	under map[string]int
	wrong []string
	news  chan struct{}
}

func newFireReceiver() *fireReceiver {
	return &fireReceiver{
		last: map[string]int{}, seen: map[string]map[int]bool{}, under: map[string]int{}, news: make(chan struct{}, 1),
	}
}

func (r *fireReceiver) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.wrong) < 10 {
		r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
	}
}

// Notify receives one message. A request that its context cancels is either already received or never received.
func (r *fireReceiver) Notify(ctx context.Context, n webhook.Notification) webhook.Result {
	var body struct {
		Data struct {
			Key     string
			Version int
			Ordered bool
		}
	}
	if err := json.Unmarshal(n.Body, &body); err != nil {
		r.note("body: %v", err)
	}
	key := body.Data.Key
	if key == "" {
		return webhook.Result{Class: webhook.ClassOK, Status: 200} // about the endpoint and not about a key
	}
	r.begin(key)
	defer r.end(key)
	switch chance := rand.Float64(); {
	case chance < 0.002:
		<-ctx.Done() // no answer and not received
		return webhook.Result{Class: webhook.ClassTimeout}
	case chance < 0.005:
		r.receive(key, body.Data.Version, body.Data.Ordered)
		<-ctx.Done() // no answer, although received
		return webhook.Result{Class: webhook.ClassTimeout}
	case chance < 0.005+r.lost:
		return webhook.Result{Class: webhook.ClassRefused, Status: 500}
	case chance < 0.005+r.lost+r.forgotten:
		r.receive(key, body.Data.Version, body.Data.Ordered)
		return webhook.Result{Class: webhook.ClassRefused, Status: 500}
	default:
		r.receive(key, body.Data.Version, body.Data.Ordered)
		return webhook.Result{Class: webhook.ClassOK, Status: 200}
	}
}

func (r *fireReceiver) begin(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.under[key]++; r.under[key] > 1 && len(r.wrong) < 10 {
		r.wrong = append(r.wrong, "two messages of "+key+" at once")
	}
}

func (r *fireReceiver) end(key string) {
	r.mu.Lock()
	r.under[key]--
	r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
}

func (r *fireReceiver) receive(key string, version int, ordered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.last[key]
	if (version < last || ordered && version > last+1) && len(r.wrong) < 10 {
		r.wrong = append(r.wrong, fmt.Sprintf("%s: version %d after %d", key, version, last))
	}
	r.last[key] = version
	if r.seen[key] == nil {
		r.seen[key] = map[int]bool{}
	}
	r.seen[key][version] = true
}

// until waits until the receiver has the newest version of each key, has recorded an error, or ctx ends.
func (r *fireReceiver) until(ctx context.Context, newest map[string]int) {
	for ctx.Err() == nil {
		r.mu.Lock()
		missing := 0
		for key, version := range newest {
			if r.last[key] != version {
				missing++
			}
		}
		wrong := len(r.wrong)
		r.mu.Unlock()
		if missing == 0 || wrong > 0 {
			return
		}
		select {
		case <-r.news:
		case <-ctx.Done():
		}
	}
}
