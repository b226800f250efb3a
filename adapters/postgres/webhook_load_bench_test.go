package postgres_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/webhook"
)

// load is what benchmarks of deliveries under load work with: a store that waits for the
// disk, and a receiver over loopback. Its path says how long it takes to answer.
type load struct {
	b        *testing.B
	pool     *pgxpool.Pool
	s        *postgres.Store
	server   *httptest.Server
	notifier *webhook.HTTP
	service  *webhook.Service

	mu      sync.Mutex
	arrived map[string][]time.Time // by path
	when    map[string]time.Time   // by message
}

// target is an endpoint, which is all its team has.
type target struct {
	team healthlab.TeamID
	id   webhook.EndpointID
}

func newLoad(b *testing.B) *load {
	l := &load{b: b, pool: durable(b), arrived: map[string][]time.Time{}, when: map[string]time.Time{}}
	l.s = postgres.New(l.pool, nil)
	l.server = httptest.NewServer(http.HandlerFunc(l.receive))
	b.Cleanup(func() {
		l.server.CloseClientConnections()
		l.server.Close()
	})
	l.notifier = webhook.NewHTTP(&webhook.HTTPOptions{Guard: loopback()})
	b.Cleanup(l.notifier.Close)
	var err error
	l.service, err = webhook.NewService(faultTypes(), l.s.Deliveries(), l.s.Endpoints(), l.s.WebhookLog(), l.notifier, faultSealer(),
		&webhook.ServiceOptions{Guard: loopback()})
	require.NoError(b, err)
	return l
}

func (l *load) receive(_ http.ResponseWriter, r *http.Request) {
	at := time.Now()
	_, _ = io.Copy(io.Discard, r.Body)
	l.mu.Lock()
	l.arrived[r.URL.Path] = append(l.arrived[r.URL.Path], at)
	l.when[r.Header.Get("Webhook-Id")] = at
	l.mu.Unlock()
	if slow, err := time.ParseDuration(r.URL.Path[1:]); err == nil {
		select {
		case <-time.After(slow):
		case <-r.Context().Done():
		}
	}
}

// targets makes so many endpoints that take so long to answer.
func (l *load) targets(n int, slow time.Duration) []target {
	var out []target
	for range n {
		team := healthlab.TeamID{UUID: uuid.New()}
		e, err := l.service.Create(l.b.Context(), team, webhook.NewEndpoint{URL: l.server.URL + "/" + slow.String()})
		require.NoError(l.b, err)
		out = append(out, target{team, e.ID})
	}
	return out
}

func (l *load) event(to target) healthlab.Event {
	id := uuid.Must(uuid.NewV7())
	return healthlab.Event{ID: id, Type: faultOrdered, Team: to.team, Key: id.String(), At: noon.Time, Data: deliverData}
}

// fill puts n deliveries of one message into lanes of an endpoint, a lane for each, due
// after the time given; or all into one lane, behind its head.
func (l *load) fill(to target, n int, due time.Duration, behind bool) {
	if n == 0 {
		return
	}
	require.NoError(l.b, l.s.Outbox().Append(l.b.Context(), []healthlab.Event{l.event(to)}))
	_, err := l.s.Deliveries().Route(l.b.Context(), faultTypes().Modes(), 500)
	require.NoError(l.b, err)
	_, err = l.pool.Exec(l.b.Context(), `
insert into healthlab.webhook_delivery (team_id, endpoint_id, lane, seq, event_id, event_created, cause, head, attempts, starts, queued_at, due_at)
select d.team_id, d.endpoint_id, case when $4 then d.lane else gen_random_uuid() end, d.seq, d.event_id, d.event_created, d.cause,
	not $4, 0, 0, d.queued_at, healthlab.clock() + $3::interval
from (select * from healthlab.webhook_delivery where endpoint_id = $1 order by id limit 1) d, generate_series(1, $2)`, to.id.UUID, n, due, behind)
	require.NoError(l.b, err)
}

// run runs a dispatcher until the returned function stops it.
func (l *load) run(queue webhook.Deliveries, opts webhook.Options) (d *webhook.Dispatcher, stop func()) {
	opts.Drain = time.Millisecond
	d, err := webhook.NewDispatcher(faultTypes(), queue, l.s.Endpoints(), l.notifier, faultSealer(), &opts)
	require.NoError(l.b, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- d.Run(ctx) }()
	return d, func() {
		cancel()
		require.NoError(l.b, <-ended)
	}
}

// await waits until a path has received so many, and returns when each came.
func (l *load) await(slow time.Duration, n int) []time.Time {
	for range time.Tick(5 * time.Millisecond) {
		l.mu.Lock()
		got := slices.Clone(l.arrived["/"+slow.String()])
		l.mu.Unlock()
		if len(got) >= n {
			return got
		}
		require.NoError(l.b, l.b.Context().Err())
	}
	return nil
}

// pace commits so many events a second for some seconds, to each target in turn, calls
// wake after each commit, and reports how long after its commit a message arrived. The
// first second does not count: a dispatcher that has had nothing to do looks once in it.
func (l *load) pace(to []target, rate int, long time.Duration, wake func()) {
	const hands = 8
	committed := map[string]time.Time{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for h := range hands {
		all.Go(func() {
			tick := time.NewTicker(hands * time.Second / time.Duration(rate))
			defer tick.Stop()
			for i := range int(long.Seconds()) * rate / hands {
				<-tick.C
				e := l.event(to[(i*hands+h)%len(to)])
				err := l.s.Outbox().Append(l.b.Context(), []healthlab.Event{e})
				at := time.Now()
				wake()
				mu.Lock()
				if err != nil {
					l.b.Error(err)
				}
				if i >= rate/hands {
					committed[webhook.MessageID(e.ID)] = at
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	var lags []time.Duration
	for id, at := range committed {
		for {
			l.mu.Lock()
			came, ok := l.when[id]
			l.mu.Unlock()
			if ok {
				lags = append(lags, max(came.Sub(at), 0))
				break
			}
			require.NoError(l.b, l.b.Context().Err())
			time.Sleep(time.Millisecond)
		}
	}
	l.report(lags)
}

// report says how long half of them took at most, and all but a hundredth.
func (l *load) report(took []time.Duration) {
	slices.Sort(took)
	for name, at := range map[string]int{"p50-ms": len(took) / 2, "p99-ms": len(took) * 99 / 100} {
		l.b.ReportMetric(float64(took[at].Microseconds())/1000, name)
	}
}

// BenchmarkLatency measures how long after its commit a message reaches a receiver, at
// 500 a second: with a dispatcher that is woken after each commit; with one that only
// looks; and with one that hears of it from the one process that routes.
func BenchmarkLatency(b *testing.B) {
	const rate, long = 500, 4 * time.Second
	b.Run("wake", func(b *testing.B) {
		l := newLoad(b)
		to := l.targets(25, 0)
		d, stop := l.run(l.s.Deliveries(), webhook.Options{})
		defer stop()
		for b.Loop() {
			l.pace(to, rate, long, d.Wake)
		}
	})
	b.Run("polling", func(b *testing.B) {
		l := newLoad(b)
		to := l.targets(25, 0)
		_, stop := l.run(l.s.Deliveries(), webhook.Options{})
		defer stop()
		for b.Loop() {
			l.pace(to, rate, long, func() {})
		}
	})
	for _, hears := range []bool{true, false} {
		name := "another process that hears"
		if !hears {
			name = "another process that looks"
		}
		b.Run(name, func(b *testing.B) {
			l := newLoad(b)
			to := l.targets(25, 0)
			var here, there webhook.Options
			if hears {
				here.Signal, there.Signal = l.s.Signal(), l.s.Signal()
			}
			_, stopThere := l.run(l.s.Deliveries(), there)
			defer stopThere()
			d, stop := l.run(routing{l.s.Deliveries()}, here)
			defer stop()
			for b.Loop() {
				l.pace(to, rate/10, long, d.Wake)
			}
		})
	}
}

// BenchmarkLatencyBeside measures the same for 20 fast receivers, alone and beside one
// that takes 14 s to answer and gets as much as each of them.
func BenchmarkLatencyBeside(b *testing.B) {
	const rate, long = 300, 6 * time.Second
	for _, c := range []struct {
		name string
		slow int
	}{{"none", 0}, {"one that is slow", 1}} {
		b.Run(c.name, func(b *testing.B) {
			l := newLoad(b)
			to := l.targets(20, 0)
			beside := l.targets(c.slow, 14*time.Second)
			d, stop := l.run(l.s.Deliveries(), webhook.Options{})
			defer stop()
			for b.Loop() {
				for _, s := range beside {
					l.fill(s, int(long.Seconds())*rate/len(to), 0, false)
				}
				l.pace(to, rate, long, d.Wake)
			}
		})
	}
}

// BenchmarkLatencyBesideFlood measures the same for one receiver that gets 10 a second,
// beside one for which very many messages are due: so many that it takes minutes to go
// through them.
func BenchmarkLatencyBesideFlood(b *testing.B) {
	for _, c := range []struct {
		name string
		due  int
	}{{"a thousand due", 1000}, {"very many due", prove.Count(30_000, 300_000)}} {
		b.Run(c.name, func(b *testing.B) {
			l := newLoad(b)
			l.fill(l.targets(1, time.Second)[0], c.due, 0, false)
			to := l.targets(1, 0)
			d, stop := l.run(l.s.Deliveries(), webhook.Options{})
			defer stop()
			for b.Loop() {
				l.pace(to, 10, 8*time.Second, d.Wake)
			}
		})
	}
}

// BenchmarkOneEndpoint measures how fast a backlog of one endpoint goes that takes 50 ms
// to answer, once all its slots are open, as a share of what the slots can carry: one
// request each for as long as a request takes.
func BenchmarkOneEndpoint(b *testing.B) {
	const slots, slow, backlog, opened = 64, 50 * time.Millisecond, 10_000, 4000
	for b.Loop() {
		b.StopTimer()
		l := newLoad(b)
		l.fill(l.targets(1, slow)[0], backlog, 0, false)
		b.StartTimer()
		var trips atomic.Int64
		_, stop := l.run(l.s.Deliveries(), webhook.Options{EndpointSlots: slots, Hooks: webhook.Hooks{
			Attempt: func(_ webhook.Class, _ int, took, _ time.Duration, _ bool) { trips.Add(int64(took)) },
		}})
		came := l.await(slow, backlog)
		b.StopTimer()
		stop()
		rate := float64(backlog-opened) / came[backlog-1].Sub(came[opened-1]).Seconds()
		b.ReportMetric(rate, "deliveries/s")
		trip := time.Duration(trips.Load() / backlog)
		b.ReportMetric(float64(trip.Microseconds())/1000, "round-trip-ms")
		b.ReportMetric(rate*trip.Seconds()/slots, "of-slots")
		b.StartTimer()
	}
}

// BenchmarkBesideSnapshot measures how fast a backlog goes, alone and while a transaction holds
// a snapshot open, which keeps every dead row where it is; and what part of the one rate
// the other is.
func BenchmarkBesideSnapshot(b *testing.B) {
	alone := 0.0
	for _, held := range []bool{false, true} {
		name := "alone"
		if held {
			name = "a snapshot"
		}
		b.Run(name, func(b *testing.B) {
			const endpoints, each = 25, 100_000 / 25
			l := newLoad(b)
			for b.Loop() {
				b.StopTimer()
				for _, to := range l.targets(endpoints, 0) {
					l.fill(to, each, 0, false)
				}
				l.mu.Lock()
				clear(l.arrived)
				l.mu.Unlock()
				release := func() {}
				if held {
					release = l.snapshot()
				}
				b.StartTimer()
				_, stop := l.run(l.s.Deliveries(), webhook.Options{})
				l.await(0, endpoints*each)
				b.StopTimer()
				stop()
				release()
				b.StartTimer()
			}
			rate := float64(endpoints*each*b.N) / b.Elapsed().Seconds()
			b.ReportMetric(rate, "deliveries/s")
			if !held {
				alone = rate
			} else if alone > 0 {
				b.ReportMetric(rate/alone, "of-alone")
			}
		})
	}
}

// snapshot holds one open until the returned function is called.
func (l *load) snapshot() (release func()) {
	tx, err := l.pool.Begin(l.b.Context())
	require.NoError(l.b, err)
	_, err = tx.Exec(l.b.Context(), `set transaction isolation level repeatable read`)
	require.NoError(l.b, err)
	_, err = tx.Exec(l.b.Context(), `select count(*) from healthlab.webhook_attempt`)
	require.NoError(l.b, err)
	return func() { require.NoError(l.b, tx.Rollback(context.Background())) }
}

// BenchmarkClaim measures a claim of 50 deliveries over 20 endpoints, alone and beside
// very many that cannot be claimed: two thirds wait behind another one, and a third for
// their next attempt.
func BenchmarkClaim(b *testing.B) {
	for _, c := range []struct {
		name string
		rest int
	}{{"nothing else", 0}, {"very many others", prove.Count(150_000, 1_500_000)}} {
		b.Run(c.name, func(b *testing.B) {
			const endpoints, claimed = 20, 50
			l := newLoad(b)
			work := webhook.Claim{Lease: time.Minute}
			for i, to := range l.targets(endpoints, 0) {
				l.fill(to, 100, 0, false)
				l.fill(to, c.rest/3/endpoints, time.Hour, false)
				l.fill(to, c.rest*2/3/endpoints, 0, true)
				quota := claimed / endpoints
				if i < claimed%endpoints {
					quota++
				}
				work.Quotas = append(work.Quotas, webhook.Quota{Endpoint: to.id, Max: quota})
			}
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				got, err := l.s.Deliveries().Claim(b.Context(), work)
				took = append(took, time.Since(began))
				b.StopTimer()
				if err == nil && len(got.Deliveries) != claimed {
					err = errors.New("not as many as were asked for")
				}
				require.NoError(b, err)
				var back []webhook.Released
				for _, d := range got.Deliveries {
					back = append(back, webhook.Released{Lease: d.Lease})
				}
				require.NoError(b, l.s.Deliveries().Release(b.Context(), back))
				b.StartTimer()
			}
			l.report(took)
		})
	}
}
