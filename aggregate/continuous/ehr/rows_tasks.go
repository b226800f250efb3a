package ehr

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// mark is the time span of one subject's data that may differ from the data at the server. See marks for the subjects.
type mark struct {
	Span Span  `json:"s"`
	Gen  int64 `json:"g"` // a number that is new at each change of the mark
}

// taskRow is the push task of one user and pipeline.
type taskRow struct {
	Team     healthlab.TeamID `json:"t"`
	User     healthlab.UserID `json:"u"`
	Pipeline PipelineID       `json:"p"`
	Marks    map[string]mark  `json:"m,omitempty"`
	Gen      int64            `json:"g,omitempty"`
	// Due is the time of the next push; zero if there is no data to push.
	Due time.Time `json:"d,omitzero"`
	// Lease is the end of the lease of the worker that pushes; zero if none does. Run counts the leases, and
	// Tries the leases since the last one that succeeded.
	Lease time.Time `json:"l,omitzero"`
	Run   int64     `json:"n,omitempty"`
	Tries int       `json:"y,omitempty"`
	// Conflicts counts consecutive edit conflicts at the server.
	Conflicts int `json:"c,omitempty"`
}

func taskKey(team healthlab.TeamID, user healthlab.UserID, id PipelineID) store.Key {
	return store.Key{Team: team, User: user, ID: store.UUID(user.UUID) + store.UUID(id.UUID)}
}

// taskTable has a row for each pipeline and user. Its first index has the users with data to push, its second
// index the other users. The rows are encrypted, because the names of resources may reveal a disease.
var taskTable = store.Table[taskRow]{
	Name: "ehr_task",
	Row: func(t *taskRow) store.Row {
		out := store.Row{Key: taskKey(t.Team, t.User, t.Pipeline), Due: t.Due}
		if !t.Lease.IsZero() {
			out.Due = t.Lease // the waiting data is pushed after the running push has ended
		}
		place := store.UUID(t.Pipeline.UUID) + store.UUID(t.User.UUID)
		if len(t.Marks) > 0 {
			out.Index[0] = place
		} else {
			out.Index[1] = place
		}
		return out
	},
}

func (t *taskRow) mark(at time.Time, m marks) {
	if t.Marks == nil {
		t.Marks = map[string]mark{}
	}
	t.Gen++
	for subject, span := range m {
		if old, ok := t.Marks[subject]; ok {
			span = Span{From: min(span.From, old.Span.From), To: max(span.To, old.Span.To)}
		}
		t.Marks[subject] = mark{span, t.Gen}
	}
	if t.Due.IsZero() || at.Before(t.Due) {
		t.Due = at
	}
}

// Task is a user with data to push.
type Task struct {
	Pipeline Pipeline
	User     healthlab.UserID
	// Marks is the data that may differ from the data at the server, by subject.
	Marks map[string]Span
	// Try counts the claims since the last success, from 1. Conflicts counts the consecutive claims before this
	// one that ended in [Rows.Conflict].
	Try, Conflicts int

	run  int64
	gens map[string]int64
}

// disabledPause is the time by which Claim postpones the tasks of a disabled pipeline.
const disabledPause = time.Minute

// Claim returns at most n due tasks, the longest due first, and hides them from other callers until the lease
// ends. Tasks of a paused or disabled pipeline are postponed.
func (r *Rows) Claim(ctx context.Context, n int, lease time.Duration) (out []Task, err error) {
	for again := true; again && len(out) == 0; {
		err = r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
			out, again = nil, false
			list, err := taskTable.Find(tx, store.Query{By: store.ByDue, Until: tx.Now(), Limit: max(n, sweepAtOnce), Lock: store.Skip})
			if err != nil {
				return err
			}
			for _, e := range list {
				t, put, err := claim(tx, e, lease, len(out) < n)
				if err != nil {
					return err
				}
				if t != nil {
					out = append(out, *t)
				}
				if put {
					again = true
					if err := taskTable.Put(tx, e); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// claim claims one task if room is true, and postpones a task whose pipeline is paused or disabled. put reports whether
// the row has changed and must be stored. out is nil if the task was not claimed.
func claim(tx store.Tx, e *store.Entry[taskRow], lease time.Duration, room bool) (out *Task, put bool, err error) {
	t, now := &e.Value, tx.Now()
	key := pipelineKey(t.Team, t.Pipeline)
	p, err := pipelineTable.Get(tx, key, store.Plain)
	if err != nil {
		return nil, false, err
	}
	st, err := stateTable.Get(tx, key, store.Plain)
	if err != nil {
		return nil, false, err
	}
	var until time.Time
	switch {
	case p == nil || st == nil || p.Value.Pipeline.Status == deleted || len(t.Marks) == 0:
		t.Lease, t.Due = time.Time{}, time.Time{}
		return nil, true, nil
	case p.Value.Pipeline.Status == Disabled:
		until = now.Add(disabledPause)
	case st.Value.Paused.After(now):
		until = st.Value.Paused
	}
	if !until.IsZero() {
		t.Lease, t.Due = time.Time{}, until
		return nil, true, nil
	}
	if !room {
		return nil, false, nil
	}
	t.Lease, t.Run, t.Tries = now.Add(lease), t.Run+1, t.Tries+1
	out = &Task{Pipeline: p.Value.value(), User: t.User, Marks: map[string]Span{}, Try: t.Tries, Conflicts: t.Conflicts, run: t.Run, gens: map[string]int64{}}
	for subject, m := range t.Marks {
		out.Marks[subject], out.gens[subject] = m.Span, m.Gen
	}
	return out, true, nil
}

// leasedTask locks the user and returns the row of a task whose lease the caller holds. more are further queries to
// read in the same call. The error is healthlab.Precondition if another worker has the task, or if the user is deleted.
func leasedTask(tx store.Tx, t *Task, more ...store.Query) (*store.Entry[taskRow], error) {
	key := taskKey(t.Pipeline.Team, t.User, t.Pipeline.ID)
	got, err := tx.Read(append([]store.Query{lockUser(t.Pipeline.Team, t.User), taskTable.One(key, store.Held)}, more...)...)
	if err != nil {
		return nil, err
	}
	if u := store.StateOf(got[0]); u.Known && !u.Live {
		return nil, fmt.Errorf("%w: the user was deleted", healthlab.Precondition)
	}
	e, err := taskTable.DecodedOne(got[1])
	if err != nil {
		return nil, err
	}
	if e == nil || e.Value.Lease.IsZero() || e.Value.Run != t.run {
		return nil, fmt.Errorf("%w: another worker sends the user's data", healthlab.Precondition)
	}
	return e, nil
}

// Begin records that the resources in sending are being sent, and extends the lease. Until Record is called, [Sent.Has]
// is false for every version of them, so that they are sent again after a crash. The error is Precondition if another
// worker has the task, or if the user is deleted.
func (r *Rows) Begin(ctx context.Context, t *Task, lease time.Duration, sending []Result) error {
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		var read []store.Query
		by := byPlace(sending)
		for p := range by {
			read = append(read, sentTable.One(sentKey(t, p.subject, p.month), store.Held))
		}
		e, err := leasedTask(tx, t, read...)
		if err != nil {
			return err
		}
		e.Value.Lease = tx.Now().Add(lease)
		if err := taskTable.Put(tx, e); err != nil {
			return err
		}
		for p, list := range by {
			sent, err := sentOf(tx, t, p)
			if err != nil {
				return err
			}
			for i := range list {
				key := SentKey(list[i].Type, list[i].ID)
				sent.Value.Versions[key] = refused(sent.Value.Versions[key])
			}
			if err := sentTable.Put(tx, sent); err != nil {
				return err
			}
		}
		return nil
	})
}

// sentPlace identifies a row of sentTable of one user and pipeline.
type sentPlace struct{ subject, month string }

func byPlace(results []Result) map[sentPlace][]Result {
	by := map[sentPlace][]Result{}
	for _, v := range results {
		p := sentPlace{v.Subject, v.Month}
		by[p] = append(by[p], v)
	}
	return by
}

// sentOf locks and returns the row of sentTable for a subject and month. It returns a new row if there is none.
func sentOf(tx store.Tx, t *Task, p sentPlace) (*store.Entry[sentRow], error) {
	e, err := sentTable.Get(tx, sentKey(t, p.subject, p.month), store.Held)
	if err != nil {
		return nil, err
	}
	if e == nil {
		e = &store.Entry[sentRow]{Value: sentRow{Team: t.Pipeline.Team, User: t.User, Pipeline: t.Pipeline.ID, Subject: p.subject, Month: p.month}}
	}
	if e.Value.Versions == nil {
		e.Value.Versions = map[string]string{}
	}
	return e, nil
}

// sentRow has the resource versions of a subject and month that the server accepted or refused. Versions has them by
// SentKey. The prefix refusedNew or refusedOld before a version means that the server refused it. The prefix alone
// means that the resource is being sent, or must be sent again.
type sentRow struct {
	Team     healthlab.TeamID  `json:"t"`
	User     healthlab.UserID  `json:"u"`
	Pipeline PipelineID        `json:"p"`
	Subject  string            `json:"s"`
	Month    string            `json:"m"`
	Versions map[string]string `json:"v"`
}

// The marks before versions: the server refused the version; the version is being sent and the server may have
// it or not; the version is being sent and the server has this or an older one.
const (
	refusedNew = "!"
	refusedOld = "?"
	anyRefused = refusedNew + refusedOld
)

func refused(before string) string {
	if before == "" || strings.HasPrefix(before, refusedNew) {
		return refusedNew
	}
	return refusedOld
}

func sentKey(t *Task, subject, month string) store.Key {
	k := taskKey(t.Pipeline.Team, t.User, t.Pipeline.ID)
	k.ID += store.Text(subject) + month
	return k
}

var sentTable = store.Table[sentRow]{
	Name: "ehr_sent",
	Row: func(s *sentRow) store.Row {
		t := Task{Pipeline: Pipeline{Team: s.Team, ID: s.Pipeline}, User: s.User}
		k := sentKey(&t, s.Subject, s.Month)
		return store.Row{Key: k, Index: [2]string{store.UUID(s.Pipeline.UUID) + k.ID[:16]}}
	},
}

// Sent are the resource versions that a server accepted or refused.
type Sent struct{ versions map[string]string }

// SentKey returns the key of a resource in Sent.
func SentKey(resource, id string) string { return resource + "/" + id }

// Has reports whether the server has accepted or refused this version of a resource. key is a [SentKey].
func (s Sent) Has(key, version string) bool {
	v, ok := s.versions[key]
	return ok && strings.TrimLeft(v, anyRefused) == version
}

// Taken reports whether the server has accepted any version of a resource, even if it refused a later version. key is a
// [SentKey].
func (s Sent) Taken(key string) bool {
	v, ok := s.versions[key]
	return ok && !strings.HasPrefix(v, refusedNew)
}

// Keys returns the keys of the resources that the server accepted or refused, sorted.
func (s Sent) Keys() []string { return slices.Sorted(maps.Keys(s.versions)) }

// Sent returns the resource versions of a subject that the server accepted or refused, in the months from first to
// last. A month is written as 2026-03; resources without a day have the month "".
func (r *Rows) Sent(ctx context.Context, t *Task, subject, first, last string) (Sent, error) {
	out := Sent{map[string]string{}}
	q := store.Query{Key: sentTable.Key(store.Key{Team: t.Pipeline.Team, User: t.User}), By: store.ByID}
	q.From, q.To = sentKey(t, subject, first).ID, store.End(sentKey(t, subject, last).ID)
	list, err := sentTable.Look(ctx, r.s, q)
	if err != nil {
		return out, err
	}
	for _, e := range list {
		maps.Copy(out.versions, e.Value.Versions)
	}
	return out, nil
}

// Result is the server's answer about one resource.
type Result struct {
	Subject string
	Month   string // month of the resource's day, such as 2026-03; empty without a day
	Type    string
	ID      string
	// Version is the version of the resource; empty if the resource was withdrawn.
	Version string
	// Refused is the cause of a refusal; nil if the server accepted the resource.
	Refused *Refusal
	// Span is the time span of the data to push again after a refusal.
	Span Span
}

// Refusal is the cause of a server's refusal of a resource.
type Refusal struct {
	Status      int
	Codes       []string
	Expressions []string
}

// Record stores the server's answers, and extends the lease. Precondition if another worker has the task, or
// the user is deleted.
func (r *Rows) Record(ctx context.Context, t *Task, lease time.Duration, results []Result) error {
	by := byPlace(results)
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		read := []store.Query{stateTable.One(pipelineKey(t.Pipeline.Team, t.Pipeline.ID), store.Held)}
		for p := range by {
			read = append(read, sentTable.One(sentKey(t, p.subject, p.month), store.Held))
		}
		for i := range results {
			read = append(read, letterTable.One(letterKey(t, &results[i]), store.Held))
		}
		e, err := leasedTask(tx, t, read...)
		if err != nil {
			return err
		}
		e.Value.Lease, e.Value.Tries, e.Value.Conflicts = tx.Now().Add(lease), 0, 0
		if err := taskTable.Put(tx, e); err != nil {
			return err
		}
		taken := 0
		for p, list := range by {
			n, err := r.recordPlace(tx, t, p, list)
			if err != nil {
				return err
			}
			taken += n
		}
		dead := 0
		for i := range results {
			if results[i].Refused != nil {
				dead++
			}
		}
		return r.change(tx, t, func(s *stateRow) error {
			s.Step, s.Paused, s.Error = 0, time.Time{}, ""
			if taken > 0 {
				s.Pushed, s.LastAt = s.Pushed+int64(taken), tx.Now()
			}
			return changeRun(tx, s, func(run *runRow) {
				run.Transactions++
				run.Sent, run.DeadLetters, run.Error = run.Sent+taken, run.DeadLetters+dead, ""
			})
		})
	})
}

func letterKey(t *Task, v *Result) store.Key {
	return store.Key{Team: t.Pipeline.Team, User: t.User, ID: store.UUID(LetterID(t.Pipeline.ID, t.User, v.Type, v.ID))}
}

func (r *Rows) recordPlace(tx store.Tx, t *Task, p sentPlace, list []Result) (taken int, err error) {
	e, err := sentOf(tx, t, p)
	if err != nil {
		return 0, err
	}
	for i := range list {
		v := &list[i]
		key := SentKey(v.Type, v.ID)
		letter, err := letterTable.Get(tx, letterKey(t, v), store.Held)
		if err != nil {
			return 0, err
		}
		switch {
		case v.Refused != nil:
			e.Value.Versions[key] = refused(e.Value.Versions[key]) + v.Version
			if letter == nil {
				letter = &store.Entry[DeadLetter]{}
			}
			letter.Value = DeadLetter{
				ID: LetterID(t.Pipeline.ID, t.User, v.Type, v.ID), Pipeline: t.Pipeline.ID, Team: t.Pipeline.Team, User: t.User,
				ResourceType: v.Type, ResourceID: v.ID, Status: v.Refused.Status, Codes: v.Refused.Codes, Expressions: v.Refused.Expressions,
				At: healthlab.At(tx.Now()), Subject: p.subject, Span: v.Span, version: v.Version,
			}
			if err := letterTable.Put(tx, letter); err != nil {
				return 0, err
			}
			continue
		case v.Version == "":
			delete(e.Value.Versions, key)
			taken++
		case e.Value.Versions[key] != v.Version:
			e.Value.Versions[key] = v.Version
			taken++
		}
		if letter != nil {
			letterTable.Delete(tx, letter)
		}
	}
	return taken, sentTable.Put(tx, e)
}

func (r *Rows) change(tx store.Tx, t *Task, change func(*stateRow) error) error {
	e, err := stateTable.Get(tx, pipelineKey(t.Pipeline.Team, t.Pipeline.ID), store.Held)
	if err != nil || e == nil {
		return err
	}
	if err := change(&e.Value); err != nil {
		return err
	}
	return stateTable.Put(tx, e)
}

// Finish ends a task whose data has been pushed: it removes the marks that Claim returned, unless they have changed
// since. later are marks that become due at the time at, for values that change as time passes; nil for none. The
// errors are those of Record.
func (r *Rows) Finish(ctx context.Context, t *Task, later map[string]Span, at time.Time) error {
	return r.end(ctx, t, func(tx store.Tx, v *taskRow) error {
		for subject, gen := range t.gens {
			if v.Marks[subject].Gen == gen {
				delete(v.Marks, subject)
			}
		}
		v.Due, v.Tries, v.Conflicts = time.Time{}, 0, 0
		if len(v.Marks) > 0 {
			v.Due = tx.Now()
		}
		if len(later) > 0 {
			v.mark(at, later)
		}
		return nil
	})
}

// Delay postpones a task by a duration. The data to push stays the same.
func (r *Rows) Delay(ctx context.Context, t *Task, by time.Duration) error {
	return r.end(ctx, t, func(tx store.Tx, v *taskRow) error {
		v.Due, v.Conflicts = tx.Now().Add(by), 0
		return nil
	})
}

// Conflict postpones a task by a duration, because another client is changing the same resources at the server.
func (r *Rows) Conflict(ctx context.Context, t *Task, by time.Duration) error {
	return r.end(ctx, t, func(tx store.Tx, v *taskRow) error {
		v.Due, v.Conflicts = tx.Now().Add(by), t.Conflicts+1
		return nil
	})
}

// Hold postpones a task and pauses its pipeline, because the server did not answer. pause returns the duration of the
// pause after step consecutive failures. reason is the cause of the failure, without values of a person.
func (r *Rows) Hold(ctx context.Context, t *Task, reason string, pause func(step int) time.Duration) error {
	return r.end(ctx, t, func(tx store.Tx, v *taskRow) error {
		until := tx.Now()
		err := r.change(tx, t, func(s *stateRow) error {
			s.Step++
			if end := tx.Now().Add(pause(s.Step)); end.After(s.Paused) {
				s.Paused = end
			}
			s.Error, until = reason, s.Paused
			return changeRun(tx, s, func(run *runRow) { run.Failed, run.Error = run.Failed+1, reason })
		})
		v.Due, v.Conflicts = until, 0
		return err
	}, stateTable.One(pipelineKey(t.Pipeline.Team, t.Pipeline.ID), store.Held))
}

func (r *Rows) end(ctx context.Context, t *Task, change func(store.Tx, *taskRow) error, more ...store.Query) error {
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := leasedTask(tx, t, more...)
		if err != nil {
			return err
		}
		e.Value.Lease = time.Time{}
		if err := change(tx, &e.Value); err != nil {
			return err
		}
		return taskTable.Put(tx, e)
	})
}

const defaultPage = 50

func (r *Rows) letters(ctx context.Context, q LetterQuery) (LetterPage, error) {
	page := LetterPage{Letters: []DeadLetter{}}
	if _, err := r.get(ctx, q.Team, q.Pipeline); err != nil {
		return page, err
	}
	size := q.Size
	if size <= 0 {
		size = defaultPage
	}
	ask := byPipeline(letterTable.Name, q.Team, q.Pipeline, size+1)
	ask.Bare = false
	if q.Cursor != "" {
		after, err := base64.RawURLEncoding.DecodeString(q.Cursor)
		if err != nil || len(after) != 24 {
			return page, badCursor()
		}
		ask.From += string(after) + "\x00"
	}
	list, err := letterTable.Look(ctx, r.s, ask)
	if err != nil {
		return page, err
	}
	for i, e := range list {
		if i == size {
			last := letterTable.Row(&list[i-1].Value)
			page.Next = base64.RawURLEncoding.EncodeToString([]byte(last.Index[0][16:]))
			break
		}
		page.Letters = append(page.Letters, e.Value)
	}
	return page, nil
}

func (r *Rows) replay(ctx context.Context, team healthlab.TeamID, id PipelineID, ids []uuid.UUID) (count int, err error) {
	if _, err := r.get(ctx, team, id); err != nil {
		return 0, err
	}
	if len(ids) > 0 {
		for _, letter := range ids {
			if err := r.replayOne(ctx, team, id, letter); err != nil {
				return count, err
			}
			count++
		}
		return count, nil
	}
	for cursor := ""; ; {
		page, err := r.letters(ctx, LetterQuery{Team: team, Pipeline: id, Cursor: cursor, Size: sweepAtOnce})
		if err != nil {
			return count, err
		}
		for i := range page.Letters {
			if err := r.replayOne(ctx, team, id, page.Letters[i].ID); err != nil {
				if healthlab.KindOf(err) == healthlab.NotFound {
					continue // accepted by the server or deleted since
				}
				return count, err
			}
			count++
		}
		if cursor = page.Next; cursor == "" {
			return count, nil
		}
	}
}

// replayOne removes the refused version of a dead letter's resource and marks the resource for another push. The dead
// letter stays until the server accepts the resource.
func (r *Rows) replayOne(ctx context.Context, team healthlab.TeamID, id PipelineID, letter uuid.UUID) error {
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		l, err := letterTable.Get(tx, store.Key{Team: team, ID: store.UUID(letter)}, store.Shared)
		if err != nil {
			return err
		}
		if l == nil || l.Value.Pipeline != id {
			return fmt.Errorf("%w: the pipeline has no such dead letter", healthlab.NotFound)
		}
		v := &l.Value
		t := Task{Pipeline: Pipeline{ID: id, Team: team}, User: v.User}
		got, err := tx.Read(lockUser(team, v.User))
		if err != nil {
			return err
		}
		if u := store.StateOf(got[0]); u.Known && !u.Live {
			return fmt.Errorf("%w: the pipeline has no such dead letter", healthlab.NotFound)
		}
		list, err := sentTable.Find(tx, store.Query{
			Key: store.Key{Team: team, User: v.User}, By: store.ByID, From: sentKey(&t, v.Subject, "").ID, To: store.End(sentKey(&t, v.Subject, "").ID), Lock: store.Held,
		})
		if err != nil {
			return err
		}
		key := SentKey(v.ResourceType, v.ResourceID)
		for _, e := range list {
			if version, ok := e.Value.Versions[key]; ok && strings.Trim(version[:1], anyRefused) == "" {
				e.Value.Versions[key] = version[:1] // only the mark, which equals no version, so that the resource is sent again
				if err := sentTable.Put(tx, e); err != nil {
					return err
				}
			}
		}
		return markFor(tx, team, v.User, id, marks{v.Subject: v.Span})
	})
}
