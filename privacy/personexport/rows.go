package personexport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// jobTable stores export jobs. Their documents are not encrypted, because they have names of files and no personal
// value.
var jobTable = store.Table[Job]{Name: "person_export", Clear: true, Row: func(j *Job) store.Row {
	return store.Row{Key: store.Key{Team: j.Team, User: j.User, ID: store.UUID(j.ID.UUID)}, Due: j.DueAt}
}}

// Tables returns the tables that the store passed to [NewStore] must have.
func Tables() []store.Definition { return []store.Definition{jobTable.Definition()} }

// NewStore returns a Store of jobs in s, whose tables must include [Tables] and those of the users. The transaction
// that erases a user must call [EraseJobs].
func NewStore(s store.Store) Store { return rowStore{s} }

type rowStore struct{ s store.Store }

var errNoJob = fmt.Errorf("%w: the team has no such export", healthlab.NotFound)

func jobKey(team healthlab.TeamID, id JobID) store.Key {
	return store.Key{Team: team, ID: store.UUID(id.UUID)}
}

func (r rowStore) Insert(ctx context.Context, j Job, most int) error {
	if err := checkJob(&j); err != nil {
		return err
	}
	j, err := j.normalized()
	if err != nil {
		return err
	}
	j.Revision = 1
	err = r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		got, err := tx.Read(store.User(j.Team, j.User).Hold(), ofUser(j.User, store.Plain))
		if err != nil {
			return err
		}
		if !store.StateOf(got[0]).Live {
			return fmt.Errorf("%w: the team has no such user", healthlab.NotFound)
		}
		jobs, err := jobTable.Decoded(got[1])
		if err != nil {
			return err
		}
		jobs = slices.DeleteFunc(jobs, func(e *store.Entry[Job]) bool { return e.Value.Status == Failed })
		if len(jobs) >= most {
			return fmt.Errorf("%w: the user already has %d exports that have not failed, the highest allowed number", healthlab.Exhausted, len(jobs))
		}
		return jobTable.Insert(tx, &j)
	})
	if taken := (*store.TakenError)(nil); errors.As(err, &taken) {
		return fmt.Errorf("%w: an export with this id exists", healthlab.Conflict)
	}
	return err
}

func ofUser(user healthlab.UserID, lock store.Lock) store.Query {
	return store.Query{Key: jobTable.Key(store.Key{User: user}), By: store.ByUser, Lock: lock}
}

func (r rowStore) Get(ctx context.Context, team healthlab.TeamID, id JobID) (Job, error) {
	e, err := jobTable.LookOne(ctx, r.s, jobKey(team, id))
	if err == nil && (e == nil || e.Value.User.IsZero()) {
		err = errNoJob
	}
	if err != nil {
		return Job{}, err
	}
	return e.Value, nil
}

func (r rowStore) Update(ctx context.Context, team healthlab.TeamID, id JobID, change func(*Job) error) (Job, error) {
	var out Job
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := jobTable.Get(tx, jobKey(team, id), store.Held)
		if err != nil {
			return err
		}
		if e == nil {
			return errNoJob
		}
		was, next := e.Value, e.Value.Clone()
		next.StoreTime = tx.Now()
		if err := change(&next); err != nil {
			return err
		}
		next.ID, next.Team, next.User, next.CreatedAt = id, team, was.User, was.CreatedAt
		out, err = putJob(tx, e, next)
		return err
	})
	return out, err
}

// putJob replaces the stored job e by next, with the next Revision, and returns next as it is stored.
func putJob(tx store.Tx, e *store.Entry[Job], next Job) (Job, error) {
	next.Revision = e.Revision + 1
	next, err := next.normalized()
	if err != nil {
		return Job{}, err
	}
	e.Value = next
	return next.Clone(), jobTable.Put(tx, e)
}

func (r rowStore) OfUser(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]Job, error) {
	jobs, err := jobTable.Look(ctx, r.s, ofUser(user, store.Plain))
	out := []Job{}
	for _, e := range jobs {
		if e.Value.Team == team {
			out = append(out, e.Value)
		}
	}
	slices.SortStableFunc(out, func(a, b Job) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return out, err
}

func (r rowStore) Claim(ctx context.Context, n int, lease time.Duration) ([]Job, error) {
	var out []Job
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		out = nil
		if n <= 0 {
			return nil
		}
		due, err := jobTable.Find(tx, store.Query{By: store.ByDue, Until: tx.Now(), Limit: n, Lock: store.Skip})
		if err != nil {
			return err
		}
		for _, e := range due {
			next := e.Value
			next.DueAt = tx.Now().Add(lease)
			j, err := putJob(tx, e, next)
			if err != nil {
				return err
			}
			out = append(out, j)
		}
		return nil
	})
	return out, err
}

func (r rowStore) Delete(ctx context.Context, team healthlab.TeamID, id JobID) error {
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		tx.Delete(jobTable.Key(jobKey(team, id)))
		return nil
	})
}

// EraseJobs removes the export jobs of a user in the transaction tx that erases the user. It deletes jobs without
// files. Jobs with files lose their user and become Failed; [Store.Claim] then returns them to the worker that
// deletes the files.
func EraseJobs(_ context.Context, tx store.Tx, team healthlab.TeamID, user healthlab.UserID) error {
	jobs, err := jobTable.Find(tx, ofUser(user, store.Held))
	if err != nil {
		return err
	}
	for _, e := range jobs {
		j := e.Value
		if j.Team != team {
			continue
		}
		if len(j.Files) == 0 {
			jobTable.Delete(tx, e)
			continue
		}
		due := j.CreatedAt
		if j.Status == InProgress {
			due = j.DueAt
		}
		_, err := putJob(tx, e, Job{
			ID: j.ID, Team: j.Team, Status: Failed, Files: j.Files, CreatedAt: j.CreatedAt, UpdatedAt: j.CreatedAt, DueAt: due,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
