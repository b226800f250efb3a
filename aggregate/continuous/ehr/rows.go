package ehr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/store"
)

// Span is a time span in microseconds since 1970, both ends included.
type Span = aggregate.Span

// Tables declares the tables of [NewRows].
func Tables() []store.Definition {
	return []store.Definition{
		pipelineTable.Definition(), stateTable.Definition(), sweepTable.Definition(),
		taskTable.Definition(), sentTable.Definition(), letterTable.Definition(), runTable.Definition(),
	}
}

// Rows stores pipelines, the data to push, the pushed resources and the refused ones. It is safe for concurrent
// use. [Rows.Changed] and [Rows.Read] run in the transactions of other stores.
type Rows struct{ s store.Store }

// NewRows returns Rows that are stored in s, whose tables must include [Tables].
func NewRows(s store.Store) *Rows { return &Rows{s} }

// pipelineRow is a stored pipeline.
type pipelineRow struct {
	Pipeline Pipeline         `json:"p"`
	Secret   healthlab.Sealed `json:"s,omitzero"`
}

func (r *pipelineRow) value() Pipeline {
	p := r.Pipeline
	p.secret = r.Secret
	return p
}

func pipelineKey(team healthlab.TeamID, id PipelineID) store.Key {
	return store.Key{Team: team, ID: store.UUID(id.UUID)}
}

// pipelineTable stores the pipelines. Writes of health data read it. It is not encrypted per user, because it
// has no personal data; its secrets are encrypted one by one.
var pipelineTable = store.Table[pipelineRow]{
	Name: "ehr_pipeline", Clear: true,
	Row: func(p *pipelineRow) store.Row { return store.Row{Key: pipelineKey(p.Pipeline.Team, p.Pipeline.ID)} },
}

// stateRow is the progress of a pipeline. It is a row of its own, because writes of health data lock the row of
// the pipeline.
type stateRow struct {
	Team     healthlab.TeamID `json:"t"`
	Pipeline PipelineID       `json:"p"`
	Pushed   int64            `json:"n,omitempty"`
	LastAt   time.Time        `json:"l,omitzero"`
	Paused   time.Time        `json:"u,omitzero"`
	Step     int              `json:"k,omitempty"`
	Error    string           `json:"e,omitempty"`
	// RunFrom and RunTo are the start of the last run and the time of its last answer.
	RunFrom time.Time `json:"f,omitzero"`
	RunTo   time.Time `json:"r,omitzero"`
}

var stateTable = store.Table[stateRow]{
	Name: "ehr_state", Clear: true,
	Row: func(s *stateRow) store.Row { return store.Row{Key: pipelineKey(s.Team, s.Pipeline)} },
}

// sweepRow is a pipeline for which all users are being marked for pushing, or whose rows are being removed, in the
// background.
type sweepRow struct {
	Team     healthlab.TeamID `json:"t"`
	Pipeline PipelineID       `json:"p"`
	After    healthlab.UserID `json:"a,omitzero"`
	Due      time.Time        `json:"d"`
}

var sweepTable = store.Table[sweepRow]{
	Name: "ehr_sweep", Clear: true,
	Row: func(s *sweepRow) store.Row { return store.Row{Key: pipelineKey(s.Team, s.Pipeline), Due: s.Due} },
}

func noPipeline() error {
	return fmt.Errorf("%w: the team has no such pipeline", healthlab.NotFound)
}

func all(team healthlab.TeamID, lock store.Lock) store.Query {
	return store.Query{Key: pipelineTable.Key(store.Key{Team: team}), By: store.ByID, Lock: lock}
}

func (r *Rows) insert(ctx context.Context, p *Pipeline, most int) error {
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		list, err := pipelineTable.Find(tx, all(p.Team, store.Shared))
		if err != nil {
			return err
		}
		if len(list) >= most {
			return &healthlab.RuleError{Type: RulePipelineLimit, Msg: fmt.Sprintf("a team has at most %d EHR pipelines; delete one first", most)}
		}
		if err := pipelineTable.Insert(tx, &pipelineRow{*p, p.secret}); err != nil {
			return err
		}
		if err := stateTable.Insert(tx, &stateRow{Team: p.Team, Pipeline: p.ID}); err != nil {
			return err
		}
		return sweepTable.Insert(tx, &sweepRow{Team: p.Team, Pipeline: p.ID, Due: tx.Now()})
	})
	if t := (*store.TakenError)(nil); errors.As(err, &t) {
		return fmt.Errorf("%w: a pipeline with this id exists", healthlab.Conflict)
	}
	return err
}

func (r *Rows) get(ctx context.Context, team healthlab.TeamID, id PipelineID) (Pipeline, error) {
	e, err := pipelineTable.LookOne(ctx, r.s, pipelineKey(team, id))
	if err != nil {
		return Pipeline{}, err
	}
	if e == nil || e.Value.Pipeline.Status == deleted {
		return Pipeline{}, noPipeline()
	}
	return e.Value.value(), nil
}

func (r *Rows) list(ctx context.Context, team healthlab.TeamID) ([]Pipeline, error) {
	q := all(team, store.Plain)
	q.Desc = true
	list, err := pipelineTable.Look(ctx, r.s, q)
	if err != nil {
		return nil, err
	}
	out := []Pipeline{}
	for _, e := range list {
		if e.Value.Pipeline.Status != deleted {
			out = append(out, e.Value.value())
		}
	}
	return out, nil
}

// update changes a pipeline, and starts a background sweep of its users if change returns true.
func (r *Rows) update(ctx context.Context, team healthlab.TeamID, id PipelineID, change func(*Pipeline) (sweep bool, err error)) (out Pipeline, err error) {
	err = r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		key := pipelineKey(team, id)
		if _, err := tx.Read(pipelineTable.One(key, store.Held), sweepTable.One(key, store.Held)); err != nil {
			return err
		}
		e, err := pipelineTable.Get(tx, key, store.Held)
		if err != nil {
			return err
		}
		if e == nil || e.Value.Pipeline.Status == deleted {
			return noPipeline()
		}
		v := e.Value.value()
		sweep, err := change(&v)
		if err != nil {
			return err
		}
		out, e.Value = v, pipelineRow{v, v.secret}
		if err := pipelineTable.Put(tx, e); err != nil || !sweep {
			return err
		}
		return beginSweep(tx, team, id)
	})
	return out, err
}

// DeleteTeam removes the pipelines of a team in the transaction tx. A background sweep removes their rows
// later.
func DeleteTeam(_ context.Context, tx store.Tx, team healthlab.TeamID) error {
	list, err := pipelineTable.Find(tx, all(team, store.Held))
	if err != nil {
		return err
	}
	for _, e := range list {
		e.Value.Pipeline.Status, e.Value.Secret = deleted, healthlab.Sealed{}
		if err := pipelineTable.Put(tx, e); err != nil {
			return err
		}
		if err := beginSweep(tx, team, e.Value.Pipeline.ID); err != nil {
			return err
		}
	}
	return nil
}

func beginSweep(tx store.Tx, team healthlab.TeamID, id PipelineID) error {
	e, err := sweepTable.Get(tx, pipelineKey(team, id), store.Held)
	if err != nil {
		return err
	}
	if e == nil {
		e = &store.Entry[sweepRow]{}
	}
	e.Value = sweepRow{Team: team, Pipeline: id, Due: tx.Now()}
	return sweepTable.Put(tx, e)
}

// Restart marks all data of a team for comparison with the FHIR servers of its pipelines, in the transaction tx. It is
// called after a change of source preferences, which may change every value.
func (r *Rows) Restart(_ context.Context, tx store.Tx, team healthlab.TeamID) error {
	list, err := pipelineTable.Find(tx, all(team, store.Plain))
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := beginSweep(tx, team, e.Value.Pipeline.ID); err != nil {
			return err
		}
	}
	return nil
}

func (r *Rows) state(ctx context.Context, team healthlab.TeamID, id PipelineID) (State, error) {
	if _, err := r.get(ctx, team, id); err != nil {
		return State{}, err
	}
	waiting := byPipeline(taskTable.Name, team, id, MostCounted)
	letters := byPipeline(letterTable.Name, team, id, MostCounted)
	got, err := r.s.Read(ctx, stateTable.One(pipelineKey(team, id), store.Plain), waiting, letters)
	if err != nil {
		return State{}, err
	}
	e, err := stateTable.DecodedOne(got[0])
	if err != nil || e == nil {
		return State{}, err
	}
	v := &e.Value
	return State{
		Waiting: len(got[1]), DeadLetters: len(got[2]), Pushed: v.Pushed, LastPushedAt: v.LastAt, PausedUntil: v.Paused, LastError: v.Error,
	}, nil
}

func byPipeline(table string, team healthlab.TeamID, id PipelineID, most int) store.Query {
	prefix := store.UUID(id.UUID)
	return store.Query{Key: store.Key{Table: table, Team: team}, By: store.ByFirst, From: prefix, To: store.End(prefix), Limit: most, Bare: true}
}

// watch is the part of a pipeline that decides which changes are marked for pushing.
type watch struct {
	Pipeline struct {
		ID        PipelineID `json:"id"`
		Status    Status     `json:"status"`
		Resources []string   `json:"resources"`
		Orders    bool       `json:"orders"`
		Queries   bool       `json:"queries"`
	} `json:"p"`
}

var watches = store.Table[watch]{Name: pipelineTable.Name, Clear: true}

// Queries implements [healthdata.Changes]. It returns the queries whose rows Changed reads in addition to the row of
// the user.
func (r *Rows) Queries(team healthlab.TeamID) []store.Query {
	return []store.Query{all(team, store.Shared)}
}

// marks maps a subject, such as DataSubject plus the slug of a resource, to the time span of the data to push.
type marks map[string]Span

// The subjects of marks: the health data of one resource, one order, all orders, the rows of one continuous
// query, the rows of all queries.
const (
	DataSubject  = "data/"
	OrderSubject = "order/"
	QuerySubject = "query/"
	AllOrders    = "orders"
	AllQueries   = "queries"
)

// Changed implements [healthdata.Changes]: it marks the changed data of the user for pushing, for each pipeline that
// pushes the resources.
func (r *Rows) Changed(_ context.Context, tx store.Tx, team healthlab.TeamID, user healthlab.UserID, spans map[string]Span) error {
	return r.mark(tx, team, user, func(w *watch) marks {
		out := marks{}
		for _, slug := range w.Pipeline.Resources {
			if span, ok := spans[slug]; ok {
				out[DataSubject+slug] = span
			}
		}
		return out
	})
}

// orderEvents is the prefix of the event types about orders. The key of such an event is the order's id.
const orderEvents = "labtest.order."

// Read implements webhook.Reader: it marks the orders of events for pushing, for each pipeline that pushes orders.
func (r *Rows) Read(_ context.Context, tx store.Tx, events []healthlab.Event) error {
	for i := range events {
		e := &events[i]
		if e.User.IsZero() || !strings.HasPrefix(e.Type, orderEvents) {
			continue
		}
		err := r.mark(tx, e.Team, e.User, func(w *watch) marks {
			if !w.Pipeline.Orders {
				return nil
			}
			return marks{OrderSubject + e.Key: aggregate.Always}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// QueryChanged marks a user's rows of a continuous query for pushing, in the transaction that stores the rows.
func (r *Rows) QueryChanged(_ context.Context, tx store.Tx, team healthlab.TeamID, user healthlab.UserID, query uuid.UUID) error {
	return r.mark(tx, team, user, func(w *watch) marks {
		if !w.Pipeline.Queries {
			return nil
		}
		return marks{QuerySubject + query.String(): aggregate.Always}
	})
}

// mark records for the team's pipelines which data of a user must be pushed. of returns the data for one pipeline;
// nothing is recorded if it returns none. The caller has locked the user's row.
func (r *Rows) mark(tx store.Tx, team healthlab.TeamID, user healthlab.UserID, of func(*watch) marks) error {
	list, err := watches.Find(tx, all(team, store.Shared))
	if err != nil {
		return err
	}
	for _, e := range list {
		w := &e.Value
		if w.Pipeline.Status == deleted {
			continue
		}
		if m := of(w); len(m) > 0 {
			if err := markFor(tx, team, user, w.Pipeline.ID, m); err != nil {
				return err
			}
		}
	}
	return nil
}

func markFor(tx store.Tx, team healthlab.TeamID, user healthlab.UserID, id PipelineID, m marks) error {
	if _, err := tx.Read(taskTable.One(taskKey(team, user, id), store.Held), lockUser(team, user)); err != nil {
		return err
	}
	e, err := taskTable.Get(tx, taskKey(team, user, id), store.Held)
	if err != nil {
		return err
	}
	if e == nil {
		e = &store.Entry[taskRow]{Value: taskRow{Team: team, User: user, Pipeline: id}}
	}
	e.Value.mark(tx.Now(), m)
	return taskTable.Put(tx, e)
}

func lockUser(team healthlab.TeamID, user healthlab.UserID) store.Query {
	q := store.User(team, user)
	q.Bare = true
	return q
}

// everything returns marks of all data that the pipeline pushes.
func (w *watch) everything() marks {
	out := marks{}
	for _, slug := range w.Pipeline.Resources {
		out[DataSubject+slug] = aggregate.Always
	}
	if w.Pipeline.Orders {
		out[AllOrders] = aggregate.Always
	}
	if w.Pipeline.Queries {
		out[AllQueries] = aggregate.Always
	}
	return out
}

// sweepAtOnce is the number of users or rows that one transaction of a sweep processes.
const sweepAtOnce = 100

// Sweep does one step of the background work of pipelines: it marks users of new and changed pipelines, and
// removes rows of deleted pipelines and old runs. It returns false if there was no work.
func (r *Rows) Sweep(ctx context.Context) (more bool, err error) {
	err = r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		more = false
		list, err := sweepTable.Find(tx, store.Query{By: store.ByDue, Until: tx.Now(), Limit: 1, Lock: store.Skip})
		if err != nil {
			return err
		}
		if len(list) == 0 {
			more, err = r.expireRuns(tx)
			return err
		}
		more = true
		v := &list[0].Value
		w, err := watches.Get(tx, pipelineKey(v.Team, v.Pipeline), store.Shared)
		if err != nil {
			return err
		}
		if w == nil || w.Value.Pipeline.Status == deleted {
			return r.remove(tx, list[0])
		}
		return r.markAll(tx, list[0], &w.Value)
	})
	return more, err
}

func (r *Rows) markAll(tx store.Tx, e *store.Entry[sweepRow], w *watch) error {
	v := &e.Value
	q := store.Query{Key: store.Key{Table: store.UserTable, Team: v.Team}, By: store.ByID, Bare: true}.After(store.UUID(v.After.UUID), sweepAtOnce).Unlocked()
	if v.After.IsZero() {
		q.From = ""
	}
	got, err := tx.Read(q)
	if err != nil {
		return err
	}
	// Locking the users' rows waits for writes that began before the pipeline existed and marked nothing for it.
	hold := make([]store.Query, len(got[0]))
	for i, row := range got[0] {
		hold[i] = store.User(v.Team, store.UserIDOf(row)).Hold()
		hold[i].Bare = true
	}
	states, err := tx.Read(hold...)
	if err != nil {
		return err
	}
	for i, row := range got[0] {
		v.After = store.UserIDOf(row)
		if !store.StateOf(states[i]).Live {
			continue
		}
		if err := markFor(tx, v.Team, v.After, v.Pipeline, w.everything()); err != nil {
			return err
		}
	}
	if len(got[0]) < sweepAtOnce {
		sweepTable.Delete(tx, e)
		return nil
	}
	return sweepTable.Put(tx, e)
}

// remove removes rows of a deleted pipeline, and the pipeline itself last.
func (r *Rows) remove(tx store.Tx, e *store.Entry[sweepRow]) error {
	v := &e.Value
	of := func(table string) store.Query { return byPipeline(table, v.Team, v.Pipeline, sweepAtOnce).Hold() }
	done := of(taskTable.Name)
	done.By = store.BySecond
	runs := of(runTable.Name)
	runs.By = store.ByID
	for _, q := range []store.Query{of(taskTable.Name), done, of(sentTable.Name), of(letterTable.Name), runs} {
		got, err := tx.Read(q)
		if err != nil {
			return err
		}
		for _, row := range got[0] {
			tx.Delete(row.Key)
		}
		if len(got[0]) > 0 {
			return sweepTable.Put(tx, e)
		}
	}
	key := pipelineKey(v.Team, v.Pipeline)
	got, err := tx.Read(pipelineTable.One(key, store.Held), stateTable.One(key, store.Held))
	if err != nil {
		return err
	}
	for _, rows := range got {
		for _, row := range rows {
			tx.Delete(row.Key)
		}
	}
	sweepTable.Delete(tx, e)
	return nil
}

// letterTable stores the dead letters.
var letterTable = store.Table[DeadLetter]{
	Name: "ehr_dead_letter",
	Row: func(l *DeadLetter) store.Row {
		return store.Row{
			Key:   store.Key{Team: l.Team, User: l.User, ID: store.UUID(l.ID)},
			Index: [2]string{store.UUID(l.Pipeline.UUID) + store.Reverse(store.Time(l.At.Time)+store.UUID(l.ID))},
		}
	},
	Encode: func(l *DeadLetter) ([]byte, error) { return store.JSON(&letterDoc{*l, l.Subject, l.Span, l.version}) },
	Decode: func(row store.Row, l *DeadLetter) error {
		var d letterDoc
		if err := json.Unmarshal(row.Doc, &d); err != nil {
			return err
		}
		*l = d.DeadLetter
		l.Subject, l.Span, l.version = d.Of, d.Span, d.Version
		return nil
	},
}

type letterDoc struct {
	DeadLetter
	Of      string `json:"subject"`
	Span    Span   `json:"span"`
	Version string `json:"version"`
}
