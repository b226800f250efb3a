package ehr

import (
	"context"
	"encoding/base64"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

const (
	// runGap is the time without an answer after which a new run starts, longestRun the longest duration of a
	// run.
	runGap     = 10 * time.Minute
	longestRun = time.Hour
	// runsKept is the time for which runs are stored after their start.
	runsKept = 30 * 24 * time.Hour
)

// runRow is a stored run.
type runRow struct {
	Team         healthlab.TeamID `json:"t"`
	Pipeline     PipelineID       `json:"p"`
	From         time.Time        `json:"f"`
	To           time.Time        `json:"e"`
	Transactions int              `json:"n,omitempty"`
	Sent         int              `json:"s,omitempty"`
	DeadLetters  int              `json:"d,omitempty"`
	Failed       int              `json:"x,omitempty"`
	Error        string           `json:"r,omitempty"`
}

func runKey(team healthlab.TeamID, id PipelineID, from time.Time) store.Key {
	return store.Key{Team: team, ID: store.UUID(id.UUID) + store.Reverse(store.Time(from))}
}

// runTable stores the runs of each pipeline, the latest first. They have no personal data.
var runTable = store.Table[runRow]{
	Name: "ehr_run", Clear: true,
	Row: func(r *runRow) store.Row {
		return store.Row{Key: runKey(r.Team, r.Pipeline, r.From), Due: r.From.Add(runsKept)}
	},
}

func (r *runRow) value() Run {
	return Run{
		ID: uuid.NewSHA1(r.Pipeline.UUID, []byte(store.Time(r.From))), Pipeline: r.Pipeline, StartedAt: healthlab.At(r.From), EndedAt: healthlab.At(r.To),
		Transactions: r.Transactions, Sent: r.Sent, DeadLetters: r.DeadLetters, Failed: r.Failed, LastError: r.Error,
	}
}

// changeRun applies change to the current run of a pipeline. It first starts a new run if there is none, or if the
// current run has ended by runGap or longestRun. The caller has locked the state row.
func changeRun(tx store.Tx, s *stateRow, change func(*runRow)) error {
	now := tx.Now().UTC()
	if s.RunTo.IsZero() || now.Sub(s.RunTo) > runGap || now.Sub(s.RunFrom) > longestRun {
		s.RunFrom = now
	}
	s.RunTo = now
	e, err := runTable.Get(tx, runKey(s.Team, s.Pipeline, s.RunFrom), store.Held)
	if err != nil {
		return err
	}
	if e == nil {
		e = &store.Entry[runRow]{Value: runRow{Team: s.Team, Pipeline: s.Pipeline, From: s.RunFrom}}
	}
	e.Value.To = now
	change(&e.Value)
	return runTable.Put(tx, e)
}

// expireRuns removes some of the runs that are older than runsKept.
func (r *Rows) expireRuns(tx store.Tx) (more bool, err error) {
	list, err := runTable.Find(tx, store.Query{By: store.ByDue, Until: tx.Now(), Limit: sweepAtOnce, Lock: store.Skip})
	if err != nil {
		return false, err
	}
	for _, e := range list {
		runTable.Delete(tx, e)
	}
	return len(list) > 0, nil
}

// RunQuery selects one page of the runs of a pipeline.
type RunQuery struct {
	Team     healthlab.TeamID
	Pipeline PipelineID
	Cursor   string // empty for the first page
	Size     int    // default 50
}

// RunPage is one page of runs.
type RunPage struct {
	Runs []Run
	Next string // the cursor of the next page; empty if there is none
}

// lengthOfPlace is the length in bytes of a decoded cursor: the part of a run's key after the pipeline's id.
const lengthOfPlace = 8

func (r *Rows) runs(ctx context.Context, q RunQuery) (RunPage, error) {
	page := RunPage{Runs: []Run{}}
	if _, err := r.get(ctx, q.Team, q.Pipeline); err != nil {
		return page, err
	}
	size := q.Size
	if size <= 0 {
		size = defaultPage
	}
	prefix := store.UUID(q.Pipeline.UUID)
	ask := store.Query{Key: store.Key{Team: q.Team}, By: store.ByID, From: prefix, To: store.End(prefix), Limit: size + 1}
	if q.Cursor != "" {
		after, err := base64.RawURLEncoding.DecodeString(q.Cursor)
		if err != nil || len(after) != lengthOfPlace {
			return page, badCursor()
		}
		ask.From += string(after) + "\x00"
	}
	list, err := runTable.Look(ctx, r.s, ask)
	if err != nil {
		return page, err
	}
	for i, e := range list {
		if i == size {
			last := &list[i-1].Value
			page.Next = base64.RawURLEncoding.EncodeToString([]byte(runKey(last.Team, last.Pipeline, last.From).ID[len(prefix):]))
			break
		}
		page.Runs = append(page.Runs, e.Value.value())
	}
	return page, nil
}

func badCursor() error {
	return &healthlab.InvalidError{Problems: []healthlab.Problem{{Path: []any{"cursor"}, Code: "bad_cursor", Msg: "must be the next_cursor of an earlier page of the same list"}}}
}
