package receiver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

// badNetwork brings messages to a receiver: some not at all, some minutes later, when the
// sender has given them up, some twice, and of some the answer gets lost.
type badNetwork struct {
	to http.Handler

	mu   sync.Mutex
	dice *rand.Rand
	late sync.WaitGroup
}

func (b *badNetwork) roll(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dice.IntN(n)
}

func (b *badNetwork) bring(ctx context.Context, n webhook.Notification) int {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(n.Body))
	webhook.SetSignature(r.Header, n.ID, n.At, n.Body, n.Secrets...)
	w := httptest.NewRecorder()
	b.to.ServeHTTP(w, r)
	return w.Code
}

func (b *badNetwork) Notify(ctx context.Context, n webhook.Notification) webhook.Result {
	if b.roll(20) == 0 {
		return webhook.Result{Class: webhook.ClassConnect}
	}
	chance := b.roll(10)
	if chance < 3 {
		wait := time.Duration(b.roll(240_000)*(chance%2)) * time.Millisecond
		b.late.Go(func() {
			time.Sleep(wait)
			b.bring(context.WithoutCancel(ctx), n)
		})
	}
	if chance == 1 {
		return webhook.Result{Class: webhook.ClassTimeout}
	}
	status := b.bring(ctx, n)
	if b.roll(20) == 0 {
		return webhook.Result{Class: webhook.ClassTimeout}
	}
	return webhook.Result{Class: webhook.ClassOf(status), Status: status}
}

// ledger is a host: what it has stored, and what it should not have.
type ledger struct {
	mu              sync.Mutex
	version         map[string]int64
	batches         map[int]int
	stale, repeated int
	outcomes        map[receiver.Outcome]int
}

func (l *ledger) put(key string, version int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if version < l.version[key] {
		l.stale++
	}
	l.version[key] = version
}

// season is some weeks of a service and its customer: events are written while the
// customer's program fails now and then; at the end everything missed is asked for.
// It returns what the customer has, and what it should have.
func season(t *testing.T, seen receiver.Seen, events int) (got *ledger, want map[string]int64, batches int) {
	const things = 6
	got = &ledger{version: map[string]int64{}, batches: map[int]int{}, outcomes: map[receiver.Outcome]int{}}
	net := &badNetwork{dice: rand.New(rand.NewPCG(1, 2))}

	key := secret(t, 1)
	kit, err := receiver.New([]webhook.Secret{key}, seen, &receiver.Options{
		Observe: func(_ context.Context, _ receiver.Event, o receiver.Outcome, _ error) {
			got.mu.Lock()
			defer got.mu.Unlock()
			got.outcomes[o]++
		},
	})
	require.NoError(t, err)
	net.to = kit
	trouble := func() error {
		time.Sleep(time.Duration(net.roll(40)) * time.Millisecond)
		if net.roll(15) == 0 {
			return errors.New("the database is away")
		}
		return nil
	}
	receiver.On(kit, func(_ context.Context, _ receiver.Event, s *healthdata.Sleep) error {
		if err := trouble(); err != nil {
			return err
		}
		got.put("sleep/"+s.ID.String(), *s.Total)
		return nil
	})
	receiver.On(kit, func(_ context.Context, _ receiver.Event, o *orders.Order) error {
		if err := trouble(); err != nil {
			return err
		}
		got.put("order/"+o.ID.String(), o.LastEvent.ID)
		return nil
	})
	receiver.On(kit, func(_ context.Context, _ receiver.Event, b *healthdata.Batch) error {
		if err := trouble(); err != nil {
			return err
		}
		got.mu.Lock()
		defer got.mu.Unlock()
		if got.batches[b.SourceID]++; got.batches[b.SourceID] > 1 {
			got.repeated++
		}
		return nil
	})

	store := memory.New(&memory.Options{Retention: 365 * 24 * time.Hour})
	types, err := webhook.NewCatalogue(receiver.EventTypes())
	require.NoError(t, err)
	sealer, err := healthlab.NewAESSealer("k", map[string][]byte{"k": make([]byte, 32)})
	require.NoError(t, err)
	service, err := webhook.NewService(types, store.Webhooks(), net, sealer, nil)
	require.NoError(t, err)
	endpoint, err := service.Create(t.Context(), team, webhook.NewEndpoint{URL: "https://receiver.example.com/in", Secret: key.Text()})
	require.NoError(t, err)
	start := time.Now()

	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 2 {
		d, err := webhook.NewDispatcher(types, store.Webhooks(), net, sealer, &webhook.Options{Idle: 5 * time.Second})
		require.NoError(t, err)
		running.Go(func() { _ = d.Run(ctx) })
	}
	want = map[string]int64{}
	for n := range events {
		thing := uuid.NewSHA1(uuid.Nil, []byte(strconv.Itoa(net.roll(things))))
		at := healthlab.At(time.Now())
		e := healthlab.Event{ID: uuid.Must(uuid.NewV7()), Team: team, User: ann, At: at.Time}
		var data any
		switch n % 3 {
		case 0:
			e.Type, e.Key = sleepCreated, "sleep/"+thing.String()
			s := &healthdata.Sleep{Total: new(want[e.Key] + 1), Date: at, BedtimeStart: at, BedtimeStop: at, CalendarDate: healthlab.DateOf(at.Time)}
			s.ID, s.UserID, s.UpdatedAt, s.CreatedAt = thing, ann, at, at
			want[e.Key], data = *s.Total, s
		case 1:
			e.Type, e.Key = orderUpdated, "order/"+thing.String()
			o := &orders.Order{ID: orders.OrderID{UUID: thing}, TeamID: team, UserID: ann, UpdatedAt: at, LastEvent: orders.OrderEvent{ID: want[e.Key] + 1}}
			want[e.Key], data = o.LastEvent.ID, o
		default:
			e.Type, e.Key = stepsCreated, "steps/"+thing.String()
			data = healthdata.Batch{UserID: ann, SourceID: batches, Data: []healthdata.Sample{}}
			batches++
		}
		e.Data, err = json.Marshal(data)
		require.NoError(t, err)
		require.NoError(t, store.Outbox().Append(t.Context(), []healthlab.Event{e}))
		time.Sleep(time.Duration(net.roll(2000)) * time.Millisecond)
	}
	time.Sleep(40 * time.Hour) // the whole schedule
	for range 3 {              // what failed for good is asked for again
		_, err = service.Recover(t.Context(), team, endpoint.ID, start, time.Time{})
		require.NoError(t, err)
		time.Sleep(40 * time.Hour)
	}
	stop()
	running.Wait()
	net.late.Wait()
	return got, want, batches
}

// With failures of the network and of the host's program, no message is lost, none is applied
// twice, and no old version is applied after a newer one.
func TestReceiver_appliesEachMessageOnceUnderFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, want, batches := season(t, memory.NewSeen(nil), prove.Count(1_000, 100_000))
		require.Equal(t, want, got.version)
		require.Len(t, got.batches, batches)
		require.Zero(t, got.stale)
		require.Zero(t, got.repeated)
		for _, o := range []receiver.Outcome{receiver.Applied, receiver.Duplicate, receiver.Stale, ""} {
			require.Positive(t, got.outcomes[o], "it never came to %q", o)
		}
	})
}

// forgetful never finds a message known, or never a version old.
type forgetful struct {
	receiver.Seen
	verdict receiver.Verdict
}

func (f forgetful) Claim(ctx context.Context, c receiver.Claim) (receiver.Verdict, error) {
	v, err := f.Seen.Claim(ctx, c)
	if v == f.verdict {
		v = receiver.Fresh
	}
	return v, err
}

// TestReceiver_appliesEachMessageOnceUnderFailures notices if the receiver package does not do its work.
func TestReceiver_failureTestDetectsMissingIDAndVersionChecks(t *testing.T) {
	for _, tt := range []struct {
		name            string
		verdict         receiver.Verdict
		events          int
		stale, repeated bool
	}{
		{"versions are not looked at", receiver.Outdated, 1_000, true, false},
		{"ids are not looked at", receiver.Repeated, 500, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, _, _ := season(t, forgetful{memory.NewSeen(nil), tt.verdict}, tt.events)
				require.Equal(t, tt.stale, got.stale > 0)
				require.Equal(t, tt.repeated, got.repeated > 0)
			})
		})
	}
}
