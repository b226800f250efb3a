package critical_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/store"
)

// outbox keeps events in the store until they are sent.
type outbox struct{}

type waitingEvent struct {
	healthlab.Event
	User healthlab.UserID
}

type lastOfKey struct {
	Team healthlab.TeamID
	Key  string
	Seq  int64
}

var (
	waitingEvents = store.Table[waitingEvent]{Name: "waiting_event", Row: func(e *waitingEvent) store.Row {
		return store.Row{Key: store.Key{Team: e.Team, User: e.User, ID: e.Key + store.Int(e.Seq)}}
	}}
	lastOfKeys = store.Table[lastOfKey]{Name: "last_of_key", Row: func(k *lastOfKey) store.Row {
		return store.Row{Key: store.Key{Team: k.Team, ID: k.Key}}
	}}
)

func (outbox) Append(_ context.Context, tx store.Tx, list []healthlab.Event) error {
	for _, e := range list {
		if _, err := store.LockUser(tx, e.Team, e.User); err != nil {
			return err
		}
		last, err := lastOfKeys.Get(tx, store.Key{Team: e.Team, ID: e.Key}, store.Held)
		if err != nil {
			return err
		}
		if last == nil {
			last = &store.Entry[lastOfKey]{Value: lastOfKey{Team: e.Team, Key: e.Key}}
		}
		last.Value.Seq++
		e.Seq = last.Value.Seq
		if err := lastOfKeys.Put(tx, last); err != nil {
			return err
		}
		if err := waitingEvents.Insert(tx, &waitingEvent{e, e.User}); err != nil {
			return err
		}
	}
	return nil
}

func (outbox) Forget(context.Context, store.Tx, healthlab.TeamID, healthlab.UserID) error { return nil }

// errKilled ends a process.
var errKilled = errors.New("the process was killed")

// killed is a store whose process dies: before a commit, so that nothing is written, or after it, so
// that the caller gets no answer.
type killed struct {
	store.Store
	random *rand.Rand
	chance float64
}

func (k *killed) Update(ctx context.Context, run func(context.Context, store.Tx) error) error {
	if k.random.Float64() >= k.chance {
		return k.Store.Update(ctx, run)
	}
	before := k.random.IntN(2) == 0
	err := k.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := run(ctx, tx); err != nil || !before {
			return err
		}
		return errKilled
	})
	if err != nil {
		return err
	}
	return errKilled
}

// life is one order with critical results.
type life struct {
	t       *testing.T
	random  *rand.Rand
	rows    *memstore.Engine
	mortal  *killed
	service *critical.Service
	team    healthlab.TeamID
	user    healthlab.UserID
	order   uuid.UUID
	ladder  []critical.Step
	now     time.Time
	results []labresult.Result
	sent    []healthlab.Event
	seen    map[uuid.UUID]bool // events that the receiver has
	kills   int
}

func markers() []string { return []string{"Glucose", "Potassium"} }

func newLife(t *testing.T, seed uint64) *life {
	l := &life{t: t, random: rand.New(rand.NewPCG(seed, 1)), seen: map[uuid.UUID]bool{}}
	l.now = time.Date(2026, 3, 5, 8, 0, 0, 0, time.UTC)
	var err error
	l.rows, err = memstore.New(slices.Concat(critical.Tables(), []store.Definition{waitingEvents.Definition(), lastOfKeys.Definition()}),
		&memstore.Options{Now: func() time.Time { return l.now }})
	require.NoError(t, err)
	l.mortal = &killed{l.rows, l.random, 0.15}
	l.team, l.user, l.order = healthlab.TeamID{UUID: uuid.UUID{1}}, healthlab.UserID{UUID: uuid.UUID{2}}, uuid.UUID{3}
	for range 1 + l.random.IntN(3) {
		after := time.Duration(1+l.random.IntN(20)) * time.Minute
		if n := len(l.ladder); n > 0 {
			after += l.ladder[n-1].After
		}
		l.ladder = append(l.ladder, critical.Step{After: after, To: fmt.Sprint("role ", len(l.ladder)+1)})
	}
	for _, name := range markers() {
		l.results = append(l.results, labresult.Result{Name: name, Slug: name, Result: "1", Interpretation: labresult.Normal})
	}
	l.restart()
	return l
}

// restart starts a process over the store that there is.
func (l *life) restart() {
	var err error
	l.service, err = critical.New(critical.NewStore(l.mortal, &critical.StoreOptions{Events: outbox{}}), &critical.Options{
		Now: func() time.Time { return l.now }, Ladder: func(context.Context, healthlab.TeamID) ([]critical.Step, error) { return l.ladder, nil },
	})
	require.NoError(l.t, err)
}

// outlive reports whether a step was done; if the process was killed, it starts anew.
func (l *life) outlive(err error) bool {
	if errors.Is(err, errKilled) {
		l.kills++
		l.restart()
		return false
	}
	require.NoError(l.t, err)
	return true
}

// report stores what a laboratory reports, and again until a process lives on.
func (l *life) report() {
	for i := range l.results {
		if l.random.IntN(2) == 0 {
			continue
		}
		r := &l.results[i]
		r.Result = fmt.Sprint(1 + l.random.IntN(3))
		r.Interpretation = []labresult.Interpretation{labresult.Critical, labresult.Critical, labresult.Normal, labresult.Abnormal, labresult.UnknownInterpretation}[l.random.IntN(5)]
	}
	rep := critical.Report{
		Team: l.team, User: l.user, Order: l.order, Status: labresult.Final, Results: slices.Clone(l.results), At: healthlab.At(l.now),
	}
	if l.random.IntN(8) == 0 {
		rep.Results = rep.Results[:1] // a report without a result decides nothing about it
	}
	for !l.outlive(l.mortal.Update(l.t.Context(), func(ctx context.Context, tx store.Tx) error {
		if _, err := store.LockUser(tx, l.team, l.user); err != nil {
			return err
		}
		return critical.Follow(ctx, tx, outbox{}, rep)
	})) {
		continue
	}
	for i := range rep.Results { // as the rules say
		r := &rep.Results[i]
		latest := l.latest(r.Name)
		switch r.Interpretation {
		case labresult.Critical:
			require.NotNil(l.t, latest)
			require.True(l.t, latest.Status.Waits() || latest.Status == critical.Acknowledged)
			require.Equal(l.t, r.Result, latest.Result.Value)
		case labresult.Normal, labresult.Abnormal:
			require.False(l.t, latest != nil && latest.Status.Waits())
		case labresult.UnknownInterpretation:
		}
	}
}

func (l *life) loops() []critical.Loop {
	page, err := l.service.List(l.t.Context(), critical.Query{Team: l.team, Order: l.order, Limit: 100})
	require.NoError(l.t, err)
	require.Empty(l.t, page.Next)
	return page.Loops
}

func (l *life) latest(name string) *critical.Loop {
	loops := l.loops()
	for i := len(loops) - 1; i >= 0; i-- {
		if loops[i].Result.Name == name {
			return &loops[i]
		}
	}
	return nil
}

func (l *life) acknowledge() {
	loops := l.loops()
	if len(loops) == 0 {
		return
	}
	loop := loops[l.random.IntN(len(loops))]
	req := critical.Request{AcknowledgedBy: "Ada Roe", ReadBack: critical.ReadBack{Value: loop.Result.Value}}
	wrong := l.random.IntN(3) == 0
	if wrong {
		req.ReadBack.Value = "0"
	}
	got, err := l.service.Acknowledge(l.t.Context(), l.team, loop.ID, req)
	var rule *healthlab.RuleError
	switch {
	case errors.As(err, &rule) && rule.Type == critical.ReadBackMismatch:
		require.True(l.t, wrong)
	case errors.As(err, &rule):
		require.Equal(l.t, critical.AlreadyClosed, rule.Type)
		require.Equal(l.t, critical.Withdrawn, loop.Status)
	case l.outlive(err):
		require.False(l.t, wrong)
		require.Equal(l.t, critical.Acknowledged, got.Status)
	}
}

func (l *life) escalate() {
	_, err := l.service.EscalateDue(l.t.Context())
	l.outlive(err)
}

// send sends what waits, the first of the order first. A process that is killed after the receiver has
// an event sends it again, and the receiver knows its id.
func (l *life) send() {
	for {
		list, err := waitingEvents.Look(l.t.Context(), l.rows, store.Query{Key: store.Key{Team: l.team}, By: store.ByID, Limit: 1})
		require.NoError(l.t, err)
		if len(list) == 0 {
			return
		}
		e := list[0].Value
		if !l.seen[e.ID] {
			l.seen[e.ID] = true
			l.sent = append(l.sent, e.Event)
		}
		if !l.outlive(l.mortal.Update(l.t.Context(), func(_ context.Context, tx store.Tx) error {
			held, err := waitingEvents.Get(tx, waitingEvents.Row(&e).Key, store.Held)
			if err != nil || held == nil {
				return err
			}
			waitingEvents.Delete(tx, held)
			return nil
		})) {
			return
		}
	}
}

// run lives until nothing is to come, and checks the outcome.
func (l *life) run() {
	l.report()
	for range 4 + l.random.IntN(10) {
		switch l.random.IntN(8) {
		case 0, 1:
			l.report()
		case 2, 3:
			l.acknowledge()
		case 4:
			l.send()
		default:
			l.escalate()
		}
		l.now = l.now.Add(time.Duration(l.random.IntN(600)) * time.Second)
	}
	l.mortal.chance = 0 // no further kill
	for range 3 {
		l.now = l.now.Add(24 * time.Hour)
		l.escalate()
	}
	l.send()
	l.check()
}

// check holds that each loop has ended or is escalated to its end, and that the receiver has each event
// once, in the order of the history.
func (l *life) check() {
	loops := l.loops()
	waits := 0
	type known struct{ kinds []critical.EntryKind }
	told := map[critical.LoopID]*known{}
	for _, e := range l.sent {
		require.Equal(l.t, l.order.String(), e.Key)
		var data struct {
			ID critical.LoopID `json:"critical_result_id"`
		}
		require.NoError(l.t, json.Unmarshal(e.Data, &data))
		if told[data.ID] == nil {
			told[data.ID] = &known{}
		}
		told[data.ID].kinds = append(told[data.ID].kinds, critical.EntryKind(e.Type))
	}
	for i := 1; i < len(l.sent); i++ {
		require.Equal(l.t, l.sent[i-1].Seq+1, l.sent[i].Seq)
		require.False(l.t, l.sent[i].At.Before(l.sent[i-1].At))
	}
	for _, loop := range loops {
		require.NotEqual(l.t, critical.Open, loop.Status)
		var want []critical.EntryKind
		steps, revision := 0, 0
		for _, h := range loop.History {
			switch h.Event {
			case critical.Announced, critical.Corrected:
				revision++
				require.Equal(l.t, revision, h.Revision)
				want = append(want, critical.EventCritical)
			case critical.StepPassed:
				steps++
				require.Equal(l.t, steps, h.Step)
				require.False(l.t, h.At.Before(loop.OpenedAt.Add(l.ladder[steps-1].After)), "no step passes early")
				want = append(want, critical.EventUnacknowledged)
			case critical.WasAcknowledged:
				want = append(want, critical.EventAcknowledged)
			case critical.WasWithdrawn:
			}
		}
		require.Equal(l.t, critical.Announced, loop.History[0].Event)
		require.Equal(l.t, revision, loop.Revision)
		require.Equal(l.t, want, told[loop.ID].kinds)
		last := loop.History[len(loop.History)-1].Event
		switch loop.Status {
		case critical.Escalated:
			waits++
			require.Equal(l.t, len(l.ladder), steps)
		case critical.Acknowledged:
			require.Equal(l.t, critical.WasAcknowledged, last)
		default:
			require.Equal(l.t, critical.WasWithdrawn, last)
		}
		require.Nil(l.t, loop.NextStepAt)
	}
	page, err := l.service.List(l.t.Context(), critical.Query{Team: l.team, Limit: 100})
	require.NoError(l.t, err)
	require.Equal(l.t, waits, page.Total, "what waits is listed")
	n, err := l.service.EscalateDue(l.t.Context())
	require.NoError(l.t, err)
	require.Zero(l.t, n, "nothing is due")
}

// Random reports, corrections, acknowledgements and deadlines, with processes that die before and after
// commits: each loop ends or is escalated to its end, and no event comes twice or out of order.
func TestEscalation_killedProcessesLoseAndRepeatNoStep(t *testing.T) {
	const shards = 4
	runs := prove.Count(3_000, 1_000_000)
	for shard := range shards {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			kills, loops := 0, 0
			for i := range runs / shards {
				seed := uint64(shard*runs/shards + i)
				l := newLife(t, seed)
				l.run()
				if kills, loops = kills+l.kills, loops+len(l.loops()); t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
			require.Greater(t, kills, runs/shards/2)
			t.Logf("%d runs, %d loops, %d kills", runs/shards, loops, kills)
		})
	}
}
