package continuous

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/store"
)

// taskRow has the tasks of a query and user: at most one that waits and one that runs.
type taskRow struct {
	Team  healthlab.TeamID `json:"t"`
	User  healthlab.UserID `json:"u"`
	Query QueryID          `json:"q"`

	// Due is the time at which the waiting task is due; zero if no task waits. Skipped is the time of the last
	// change during the wait.
	Due     time.Time `json:"d,omitzero"`
	Skipped time.Time `json:"s,omitzero"`
	// Kept is true if there is a time range for the next task, and Waiting is that range. Kept may be true while no
	// task waits: the next task then covers the range too.
	Waiting aggregate.Span `json:"w,omitzero"`
	Kept    bool           `json:"k,omitempty"`

	// Lease is the end of the lease of the running task; zero if no task runs.
	Lease   time.Time      `json:"l,omitzero"`
	Run     int64          `json:"n,omitempty"`
	Tries   int            `json:"y,omitempty"`
	Running aggregate.Span `json:"r,omitzero"`
	RunDue  time.Time      `json:"rd,omitzero"`
	// Began is the start of the running task's first try, Started the start of its last try.
	Began   time.Time `json:"b,omitzero"`
	Started time.Time `json:"st,omitzero"`

	// Ended is the number of history entries. The running task will be the entry with this number.
	Ended int64 `json:"e,omitempty"`
}

func taskKey(team healthlab.TeamID, user healthlab.UserID, query QueryID) store.Key {
	return store.Key{Team: team, User: user, ID: store.UUID(user.UUID) + store.UUID(query.UUID)}
}

// taskTable stores tasks. It is not encrypted: its only personal data is the times of changes, and writes of
// data and claims for all teams read and write it.
var taskTable = store.Table[taskRow]{
	Name: "continuous_task", Clear: true,
	Row: func(t *taskRow) store.Row {
		due := t.Due
		if !t.Lease.IsZero() {
			due = t.Lease // the waiting task starts after the running one has ended
		}
		return store.Row{Key: taskKey(t.Team, t.User, t.Query), Due: due}
	},
}

// historyRow is an entry of the history of a query and user.
type historyRow struct {
	team   healthlab.TeamID
	number int64
	HistoryEntry
}

func historyKey(team healthlab.TeamID, user healthlab.UserID, query QueryID, number int64) store.Key {
	k := taskKey(team, user, query)
	k.ID += store.Int(number)
	return k
}

// historyTable stores statuses, times and codes of errors. It is not encrypted: its only personal data is times.
var historyTable = store.Table[historyRow]{
	Name: "continuous_history", Clear: true,
	Row:    func(h *historyRow) store.Row { return store.Row{Key: historyKey(h.team, h.User, h.Query, h.number)} },
	Encode: func(h *historyRow) ([]byte, error) { return store.JSON(&h.HistoryEntry) },
	Decode: func(r store.Row, h *historyRow) error {
		h.team, h.number = r.Team, store.ParseInt(r.ID[32:])
		return json.Unmarshal(r.Doc, &h.HistoryEntry)
	},
}

func union(a, b aggregate.Span) aggregate.Span {
	return aggregate.Span{From: min(a.From, b.From), To: max(a.To, b.To)}
}

// schedule makes a task over a time span, or widens the time range of the waiting task. The caller has locked the
// user's row.
func schedule(tx store.Tx, team healthlab.TeamID, user healthlab.UserID, w *watch, span aggregate.Span) error {
	e, err := taskTable.Get(tx, taskKey(team, user, w.Query.ID), store.Held)
	if err != nil {
		return err
	}
	if e == nil {
		e = &store.Entry[taskRow]{Value: taskRow{Team: team, User: user, Query: w.Query.ID}}
	}
	e.Value.schedule(tx.Now(), w.gap(), span)
	return taskTable.Put(tx, e)
}

func (t *taskRow) schedule(at time.Time, gap time.Duration, span aggregate.Span) {
	t.widen(span)
	if !t.Due.IsZero() {
		t.Skipped = at
		return
	}
	t.Due = at
	if next := t.Started.Add(gap); t.Run > 0 && next.After(at) {
		t.Due = next
	}
}

func (t *taskRow) widen(span aggregate.Span) {
	if t.Kept {
		span = union(span, t.Waiting)
	}
	t.Waiting, t.Kept = span, true
}

// begin makes the waiting task the running one. If a running task's lease has ended, it starts that task's next try.
// skipped is a history entry about changes during the wait; nil if there were none.
func (t *taskRow) begin(now time.Time, lease time.Duration) (skipped *HistoryEntry) {
	t.Run++
	t.Started = now
	if !t.Lease.IsZero() {
		t.Tries++
	} else {
		t.Tries, t.Running, t.RunDue, t.Began = 1, t.Waiting, t.Due, now
		t.Kept, t.Waiting, t.Due = false, aggregate.Span{}, time.Time{}
		if !t.Skipped.IsZero() {
			at := healthlab.At(t.Skipped)
			skipped = &HistoryEntry{Query: t.Query, User: t.User, Status: TaskSkipped, ScheduledAt: at, EndedAt: &at}
			t.Skipped = time.Time{}
		}
	}
	t.Lease = now.Add(lease)
	return skipped
}

func (t *taskRow) running() HistoryEntry {
	at := healthlab.At(t.Began)
	return HistoryEntry{Query: t.Query, User: t.User, Status: TaskStarted, ScheduledAt: healthlab.At(t.RunDue), StartedAt: &at}
}

// end adds an entry to the history and removes the entry that exceeds HistoryKept. The caller has locked the user's
// row.
func (t *taskRow) end(tx store.Tx, entry *HistoryEntry) error {
	err := historyTable.Insert(tx, &historyRow{team: t.Team, number: t.Ended, HistoryEntry: *entry})
	if old := t.Ended - HistoryKept; old >= 0 {
		tx.Delete(historyTable.Key(historyKey(t.Team, t.User, t.Query, old)))
	}
	t.Ended++
	return err
}

func lockUser(team healthlab.TeamID, user healthlab.UserID) store.Query {
	q := store.User(team, user)
	q.Bare = true
	return q
}

// Claim implements [Work].
func (r *RowStore) Claim(ctx context.Context, n int, lease time.Duration) (out []Task, err error) {
	if n <= 0 {
		return nil, ctx.Err()
	}
	err = r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		out = nil
		now := tx.Now()
		list, err := taskTable.Find(tx, store.Query{By: store.ByDue, Until: now, Limit: n, Lock: store.Skip})
		if err != nil {
			return err
		}
		var users []store.Query
		for _, e := range list {
			if !e.Value.Skipped.IsZero() {
				users = append(users, lockUser(e.Value.Team, e.Value.User))
			}
		}
		if len(users) > 0 {
			if _, err := tx.Read(users...); err != nil {
				return err
			}
		}
		for _, e := range list {
			t := &e.Value
			if skipped := t.begin(now, lease); skipped != nil {
				if err := t.end(tx, skipped); err != nil {
					return err
				}
			}
			if err := taskTable.Put(tx, e); err != nil {
				return err
			}
			out = append(out, Task{
				Team: t.Team, User: t.User, Query: t.Query, Range: t.Running, ScheduledAt: t.RunDue, StartedAt: t.Started, Try: t.Tries, Run: t.Run,
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Finish implements [Work].
func (r *RowStore) Finish(ctx context.Context, task Task, o Outcome) error {
	return r.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		key := taskKey(task.Team, task.User, task.Query)
		got, err := tx.Read(lockUser(task.Team, task.User), taskTable.One(key, store.Held), resultTable.One(key, store.Held))
		if err != nil {
			return err
		}
		e, err := taskTable.DecodedOne(got[1])
		if err != nil {
			return err
		}
		if e == nil || e.Value.Lease.IsZero() || e.Value.Run != task.Run {
			return fmt.Errorf("%w: another worker runs the task", healthlab.Precondition)
		}
		t := &e.Value
		entry, at := t.running(), healthlab.At(tx.Now())
		entry.Status, entry.EndedAt = o.Status, &at
		if o.Details != "" {
			entry.Details = &o.Details
		}
		if err := t.end(tx, &entry); err != nil {
			return err
		}
		if o.Status == TaskError {
			t.widen(t.Running)
		}
		t.Lease = time.Time{}
		if err := taskTable.Put(tx, e); err != nil {
			return err
		}
		if o.Table != nil {
			result := &store.Entry[resultRow]{Value: resultRow{task.Team, task.User, task.Query, o.Table}}
			if len(got[2]) > 0 {
				result.Revision = got[2][0].Revision
			}
			if err := resultTable.Put(tx, result); err != nil {
				return err
			}
		}
		if o.FHIR && o.Table != nil && r.opts.Pushed != nil {
			if err := r.opts.Pushed(ctx, tx, task.Team, task.User, task.Query.UUID); err != nil {
				return err
			}
		}
		return store.AppendEvents(ctx, r.opts.Events, tx, o.Events)
	})
}

// History implements [Store]. A cursor is the number of an entry; entries with lower numbers follow.
func (r *RowStore) History(ctx context.Context, q HistoryQuery) (HistoryPage, error) {
	size := q.Size
	if size <= 0 {
		size = defaultPage
	}
	page := HistoryPage{Entries: []HistoryEntry{}}
	entries := store.Query{Key: historyTable.Key(store.Key{Team: q.Team, User: q.User}), By: store.ByID, Desc: true, Limit: size + 1}
	entries.From = taskKey(q.Team, q.User, q.Query).ID
	entries.To = store.End(entries.From)
	before := int64(-1)
	if q.Cursor != "" {
		n, err := strconv.ParseInt(q.Cursor, 10, 64)
		if err != nil || n < 0 {
			return page, badCursor()
		}
		before = n
		entries.To = historyKey(q.Team, q.User, q.Query, n).ID
	}
	got, err := r.s.Read(ctx, taskTable.One(taskKey(q.Team, q.User, q.Query), store.Plain), entries)
	if err != nil {
		return page, err
	}
	tasks, err := taskTable.Decoded(got[0])
	if err != nil || len(tasks) == 0 {
		return page, err
	}
	ended, err := historyTable.Decoded(got[1])
	if err != nil {
		return page, err
	}
	t := &tasks[0].Value
	var list []historyRow
	if !t.Lease.IsZero() && (before < 0 || t.Ended < before) {
		list = append(list, historyRow{number: t.Ended, HistoryEntry: t.running()})
	}
	for _, e := range ended {
		list = append(list, e.Value)
	}
	if before < 0 && !t.Due.IsZero() {
		page.Entries = append(page.Entries, HistoryEntry{
			Query: q.Query, User: q.User, Status: TaskScheduled, ScheduledAt: healthlab.At(t.Due),
		})
	}
	for i := range list {
		if len(page.Entries) == size {
			page.Next = strconv.FormatInt(list[i].number+1, 10)
			break
		}
		page.Entries = append(page.Entries, list[i].HistoryEntry)
	}
	return page, nil
}
