package webhooktest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

// RunDeliveriesModel compares a store with a model of lanes as plain slices, under random calls. newStore is
// called once; each sequence has its own team.
func RunDeliveriesModel(t *testing.T, newStore func(t *testing.T) Harness) {
	s := newStore(t)
	rapid.Check(t, func(rt *rapid.T) {
		scope := rapid.SampledFrom([]webhook.OrderScope{webhook.OrderKey, webhook.OrderUser}).Draw(rt, "scope")
		b := newBench(t, s, func(e *webhook.Endpoint) { e.OrderScope = scope })
		m := &modelRun{t: rt, bench: b, s: s, want: newLanes(b.get()), sent: map[string]int64{}}
		rt.Repeat(map[string]func(*rapid.T){
			"write":   m.write,
			"claim":   m.claim,
			"record":  m.record,
			"stale":   m.recordStale,
			"release": m.release,
			"advance": m.advance,
		})
		m.finish()
		require.NoError(rt, s.Endpoints.Delete(t.Context(), b.team, b.to))
	})
}

// modelRun is one random sequence of calls of a store and its model.
type modelRun struct {
	t     *rapid.T
	bench *bench
	s     Harness
	want  *lanes
	held  []webhook.Delivery // claimed deliveries whose outcome is not recorded
	old   []webhook.Delivery // deliveries that were recorded, released or lost
	sent  map[string]int64   // newest version of each key that was claimed
}

const modelLease = 30 * time.Minute // differs from all other durations by more than a test takes

func (m *modelRun) write(t *rapid.T) {
	eventType := rapid.SampledFrom([]string{typeLatest, typeLatest, typeOrdered, typeIndependent}).Draw(t, "type")
	key := eventType + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
	e := m.bench.event(eventType, key)
	require.NoError(t, m.s.Outbox.Append(m.bench.t.Context(), []healthlab.Event{e}))
	m.bench.route()
	m.want.arrive(e)
}

func (m *modelRun) claim(t *rapid.T) {
	got := m.bench.claimModel()
	want := m.want.claim()
	byEvent := func(a, b modelClaim) int { return slices.Compare(a.event[:], b.event[:]) }
	var have []modelClaim
	for _, d := range got {
		have = append(have, modelClaim{d.Event, d.Seq, d.Attempts, d.Starts, d.Superseded, d.Blocking})
	}
	slices.SortFunc(have, byEvent)
	slices.SortFunc(want, byEvent)
	require.Equal(t, want, have)
	for _, d := range got {
		if modes[d.Type] != healthlab.Independent && !d.Superseded {
			// This must be true even if the model is wrong.
			require.GreaterOrEqual(t, d.Seq, m.sent[d.Key], "an older version after a newer one")
			m.sent[d.Key] = d.Seq
		}
		m.loseClaim(d.Event)
		m.held = append(m.held, d)
	}
}

// loseClaim moves an earlier claim of the event from m.held to m.old, because its delivery was claimed again.
func (m *modelRun) loseClaim(event uuid.UUID) {
	for i, h := range m.held {
		if h.Event == event {
			m.old = append(m.old, h)
			m.held = slices.Delete(m.held, i, i+1)
			return
		}
	}
}

func (b *bench) claimModel() []webhook.Delivery {
	c, err := b.s.Deliveries.Claim(b.t.Context(), webhook.Claim{
		Quotas: []webhook.Quota{{Endpoint: b.to, Max: most}}, Lease: modelLease,
	})
	require.NoError(b.t, err)
	return c.Deliveries
}

// popHeld moves a random delivery from m.held to m.old and returns it; false if there is none.
func (m *modelRun) popHeld(t *rapid.T) (webhook.Delivery, bool) {
	if len(m.held) == 0 {
		return webhook.Delivery{}, false
	}
	i := rapid.IntRange(0, len(m.held)-1).Draw(t, "which")
	d := m.held[i]
	m.held = slices.Delete(m.held, i, i+1)
	m.old = append(m.old, d)
	return d, true
}

func (m *modelRun) record(t *rapid.T) {
	d, ok := m.popHeld(t)
	if !ok {
		return
	}
	o := rapid.SampledFrom([]webhook.Outcome{
		succeeded(d), failed(d, 0), failed(d, time.Hour), failed(d, 2*time.Hour), exhausted(d), cancelled(d, webhook.ReasonExpired),
	}).Draw(t, "outcome")
	if o.State == webhook.Retrying {
		o.Quiet = rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "quiet")
	}
	m.outcome(t, o)
}

func (m *modelRun) outcome(t *rapid.T, o webhook.Outcome) {
	recorded, err := m.s.Deliveries.RecordOutcomes(m.bench.t.Context(), []webhook.Outcome{o})
	require.NoError(t, err)
	require.Equal(t, m.want.record(o), len(recorded.Lost) == 0, "whether the lease held")
}

func (m *modelRun) recordStale(t *rapid.T) {
	if len(m.old) > 0 {
		d := rapid.SampledFrom(m.old).Draw(t, "old")
		recorded, err := m.s.Deliveries.RecordOutcomes(m.bench.t.Context(), []webhook.Outcome{succeeded(d)})
		require.NoError(t, err)
		require.Len(t, recorded.Lost, 1)
	}
}

func (m *modelRun) release(t *rapid.T) {
	d, ok := m.popHeld(t)
	if !ok {
		return
	}
	delay := rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "delay")
	require.NoError(t, m.s.Deliveries.Release(m.bench.t.Context(), []webhook.Released{{Lease: d.Lease, Delay: delay}}))
	m.want.release(d, delay)
}

func (m *modelRun) advance(t *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{20 * time.Minute, time.Hour}).Draw(t, "by")
	m.s.Advance(d)
	m.want.now += d
}

// finish accepts all remaining deliveries, and fails if one of them never becomes due.
func (m *modelRun) finish() {
	for round := 0; m.want.size() > 0; round++ {
		require.Less(m.t, round, 1000, "something is stuck")
		for len(m.held) > 0 {
			d := m.held[0]
			m.held = m.held[1:]
			m.outcome(m.t, succeeded(d))
		}
		m.claim(m.t)
		if len(m.held) == 0 {
			m.s.Advance(time.Hour)
			m.want.now += time.Hour
		}
	}
	require.Empty(m.t, m.bench.claimModel())
}

// lanes is the model: the lanes of one endpoint as slices of deliveries, to which events are added by [webhook.Place].
type lanes struct {
	to   webhook.Endpoint
	now  time.Duration
	rows map[webhook.Lane][]*modelRow
	seq  map[string]int64
}

type modelRow struct {
	event            uuid.UUID
	key              string
	seq              int64
	attempts, starts int
	due, quiet       time.Duration
	leased           bool
	until            time.Duration
}

// modelClaim has the fields of a claimed delivery that are compared.
type modelClaim struct {
	event            uuid.UUID
	seq              int64
	attempts, starts int
	superseded       bool
	blocking         bool
}

func newLanes(to webhook.Endpoint) *lanes {
	return &lanes{to: to, rows: map[webhook.Lane][]*modelRow{}, seq: map[string]int64{}}
}

func (l *lanes) size() int { return len(l.rows) }

func (l *lanes) arrive(e healthlab.Event) {
	l.seq[e.Key]++
	mode := modes[e.Type]
	name := webhook.LaneOf(e, mode, l.to.OrderScope)
	rows := l.rows[name]
	fresh := &modelRow{event: e.ID, key: webhook.SupersedeKey(e, mode), seq: l.seq[e.Key], due: l.now}
	look := func(r *modelRow) *webhook.LaneEntry {
		return &webhook.LaneEntry{Key: r.key, Seq: r.seq, Sending: r.leased && r.until > l.now}
	}
	var view webhook.LaneView
	same := -1
	if len(rows) > 0 {
		view.Head, view.Behind = look(rows[0]), len(rows) > 1
		same = slices.IndexFunc(rows[1:], func(r *modelRow) bool { return fresh.key != "" && r.key == fresh.key }) + 1
		if same > 0 {
			view.Same = look(rows[same])
		}
	}
	switch webhook.Place(view, fresh.key, fresh.seq) {
	case webhook.BecomeHead, webhook.WaitBehind:
		l.rows[name] = append(rows, fresh)
	case webhook.ReplaceHead:
		fresh.quiet = rows[0].quiet
		rows[0] = fresh
	case webhook.ReplaceWaiting:
		rows[same] = fresh
	case webhook.Drop:
	}
}

func (l *lanes) newer(rows []*modelRow) bool {
	return rows[0].key != "" && slices.ContainsFunc(rows[1:], func(r *modelRow) bool {
		return r.key == rows[0].key && r.seq > rows[0].seq
	})
}

func (l *lanes) claim() []modelClaim {
	var out []modelClaim
	for _, rows := range l.rows {
		r := rows[0]
		if r.leased && r.until > l.now || !r.leased && max(r.due, r.quiet) > l.now {
			continue
		}
		r.leased, r.until = true, l.now+modelLease
		r.starts++
		out = append(out, modelClaim{r.event, r.seq, r.attempts, r.starts, l.newer(rows), len(rows) > 1})
	}
	return out
}

// find returns the lane whose first delivery is that of the event and is leased; false if there is none.
func (l *lanes) find(event uuid.UUID) (webhook.Lane, bool) {
	for name, rows := range l.rows {
		if rows[0].event == event && rows[0].leased {
			return name, true
		}
	}
	return webhook.Lane{}, false
}

func (l *lanes) record(o webhook.Outcome) bool {
	name, ok := l.find(o.Delivery.Event)
	if !ok {
		return false
	}
	rows := l.rows[name]
	r := rows[0]
	r.leased, r.starts = false, 0
	if o.Sent {
		r.attempts++
	}
	if o.Quiet > 0 {
		r.quiet = l.now + o.Quiet
	}
	if o.State == webhook.Retrying && !l.newer(rows) {
		r.due = l.now + o.Delay
		return true
	}
	if len(rows) == 1 {
		delete(l.rows, name)
		return true
	}
	rows[1].due, rows[1].quiet = l.now, r.quiet
	l.rows[name] = rows[1:]
	return true
}

func (l *lanes) release(d webhook.Delivery, delay time.Duration) {
	if name, ok := l.find(d.Event); ok {
		r := l.rows[name][0]
		r.leased = false
		r.starts--
		r.due = l.now + delay
	}
}
