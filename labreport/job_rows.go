package labreport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// jobTable has the jobs. The first index orders jobs by creation; the second is set for jobs that count against the
// quota.
var jobTable = store.Table[Job]{Name: "parsing_job", Row: func(j *Job) store.Row {
	r := store.Row{
		Key: store.Key{Team: j.Team, User: j.User, ID: store.UUID(j.ID.UUID)}, Due: j.DueAt,
		Index: [2]string{store.Time(j.CreatedAt) + store.UUID(j.ID.UUID)},
	}
	if j.Status != Failed {
		r.Index[1] = store.UUID(j.ID.UUID)
	}
	return r
}}

// jobFiles has the files of a job in a row of its own, which is readable after the user's encryption key was deleted.
// DueAt is set when the user is erased, so that the files are deleted.
type jobFiles struct {
	ID        JobID
	Team      healthlab.TeamID
	CreatedAt time.Time
	Files     []StoredFile
	DueAt     time.Time
}

var filesTable = store.Table[jobFiles]{Name: "parsing_job_files", Row: func(f *jobFiles) store.Row {
	return store.Row{Key: store.Key{Team: f.Team, ID: store.UUID(f.ID.UUID)}, Due: f.DueAt}
}}

// quotaTable has a row for each team with a quota. Inserting a job locks this row while it counts the team's jobs.
var quotaTable = store.Table[quotaRow]{Name: "parsing_job_quota", Clear: true, Row: func(q *quotaRow) store.Row {
	return store.Row{Key: store.Key{Team: q.Team, ID: "quota"}}
}}

type quotaRow struct{ Team healthlab.TeamID }

// Tables declares the tables of [NewStore].
func Tables() []store.Definition {
	return []store.Definition{jobTable.Definition(), filesTable.Definition(), quotaTable.Definition()}
}

// StoreOptions configures the Store of [NewStore]. The zero value, and nil, mean the defaults.
type StoreOptions struct {
	// Events appends the events of jobs. Nil writes none.
	Events store.Events
	// UsersElsewhere reports whether the store does not contain the users, so that jobs of unknown users are
	// accepted. Default false: an unknown user is healthlab.NotFound.
	UsersElsewhere bool
}

// NewStore returns a Store that keeps jobs in s, whose tables must include [Tables]. Erasing a user must call
// [EraseJobs].
func NewStore(s store.Store, opts *StoreOptions) Store {
	r := rowStore{s: s}
	if opts != nil {
		r.opts = *opts
	}
	return r
}

type rowStore struct {
	s    store.Store
	opts StoreOptions
}

var errNoJob = fmt.Errorf("%w: the team has no such parsing job", healthlab.NotFound)

func jobKey(team healthlab.TeamID, id JobID) store.Key {
	return store.Key{Team: team, ID: store.UUID(id.UUID)}
}

func (r rowStore) Insert(ctx context.Context, j Job, quota int, events []healthlab.Event) error {
	if j.Team.IsZero() || j.ID == (JobID{}) || j.User.IsZero() {
		return fmt.Errorf("%w: parsing job: Team, User and ID must be set", healthlab.Invalid)
	}
	err := r.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		u, err := store.LockUser(tx, j.Team, j.User)
		switch {
		case err != nil:
			return err
		case !u.Known && !r.opts.UsersElsewhere, u.Known && !u.Live:
			return fmt.Errorf("%w: the team has no such user", healthlab.NotFound)
		}
		if err := r.checkQuota(tx, j.Team, quota); err != nil {
			return err
		}
		e := &store.Entry[Job]{Value: j}
		if err := r.put(tx, e); err != nil {
			return err
		}
		return store.AppendEvents(ctx, r.opts.Events, tx, events)
	})
	var taken *store.TakenError
	if errors.As(err, &taken) && taken.Table == jobTable.Name {
		return fmt.Errorf("%w: a parsing job with this id exists", healthlab.Conflict)
	}
	return err
}

// checkQuota returns Exhausted if a team has quota jobs that have not failed.
func (r rowStore) checkQuota(tx store.Tx, team healthlab.TeamID, quota int) error {
	if quota <= 0 {
		return nil
	}
	open := store.Query{
		Key: jobTable.Key(store.Key{Team: team}), By: store.BySecond, Limit: quota, Lock: store.Plain, Bare: true,
	}
	lock := quotaTable.One(store.Key{Team: team, ID: "quota"}, store.Held)
	got, err := tx.Read(lock, open)
	if err != nil {
		return err
	}
	if len(got[1]) >= quota {
		return fmt.Errorf("%w: the team has reached its quota of %d parsing jobs that have not failed", healthlab.Exhausted, quota)
	}
	locked, err := quotaTable.DecodedOne(got[0])
	if err != nil || locked != nil {
		return err
	}
	return quotaTable.Insert(tx, &quotaRow{team})
}

// put writes a job with the next revision, and its files.
func (r rowStore) put(tx store.Tx, e *store.Entry[Job]) error {
	j := &e.Value
	for _, t := range []*time.Time{&j.DueAt, &j.StartedAt, &j.CreatedAt, &j.UpdatedAt} {
		*t = healthlab.At(*t).Time
	}
	j.Revision = e.Revision + 1
	if err := jobTable.Put(tx, e); err != nil {
		return err
	}
	return putFiles(tx, jobFiles{ID: j.ID, Team: j.Team, CreatedAt: j.CreatedAt, Files: j.Files})
}

// putFiles writes the files of a job, if they changed, and deletes the row if there are none.
func putFiles(tx store.Tx, f jobFiles) error {
	e, err := filesTable.Get(tx, jobKey(f.Team, f.ID), store.Held)
	switch {
	case err != nil:
		return err
	case len(f.Files) == 0 && e == nil:
		return nil
	case len(f.Files) == 0:
		filesTable.Delete(tx, e)
		return nil
	case e == nil:
		return filesTable.Insert(tx, &f)
	case slices.Equal(e.Value.Files, f.Files) && e.Value.DueAt.Equal(f.DueAt):
		return nil
	}
	e.Value = f
	return filesTable.Put(tx, e)
}

func (r rowStore) Get(ctx context.Context, team healthlab.TeamID, id JobID) (Job, error) {
	e, err := jobTable.LookOne(ctx, r.s, jobKey(team, id))
	if err != nil {
		return Job{}, err
	}
	if e == nil {
		return Job{}, errNoJob
	}
	shown, err := r.withoutDeleted(ctx, []*store.Entry[Job]{e})
	if err == nil && len(shown) == 0 {
		err = errNoJob
	}
	return e.Value, err
}

// withoutDeleted leaves out the jobs of deleted users.
func (r rowStore) withoutDeleted(ctx context.Context, jobs []*store.Entry[Job]) ([]*store.Entry[Job], error) {
	users := make([]store.Query, len(jobs))
	for i, e := range jobs {
		users[i] = store.User(e.Value.Team, e.Value.User)
		users[i].Bare = true
	}
	rows, err := r.s.Read(ctx, users...)
	if err != nil {
		return nil, err
	}
	var out []*store.Entry[Job]
	for i, e := range jobs {
		if u := store.StateOf(rows[i]); u.Live || !u.Known {
			out = append(out, e)
		}
	}
	return out, nil
}

func (r rowStore) Update(ctx context.Context, team healthlab.TeamID, id JobID, change func(*Job) ([]healthlab.Event, error)) (Job, error) {
	var out Job
	err := r.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		got, err := tx.Read(jobTable.One(jobKey(team, id), store.Held), filesTable.One(jobKey(team, id), store.Held))
		if err != nil {
			return err
		}
		e, err := jobTable.DecodedOne(got[0])
		if err != nil {
			return err
		}
		files, err := filesTable.DecodedOne(got[1])
		switch {
		case err != nil:
			return err
		case e != nil:
		case files != nil && !files.Value.DueAt.IsZero():
			e = &store.Entry[Job]{Value: erasedJob(files), Revision: files.Revision}
		default:
			return errNoJob
		}
		was := e.Value
		events, err := change(&e.Value)
		if err != nil {
			return err
		}
		j := &e.Value
		j.ID, j.Team, j.User, j.Revision, j.CreatedAt = was.ID, was.Team, was.User, was.Revision, was.CreatedAt
		if was.User.IsZero() {
			j.Revision++
			err = putFiles(tx, jobFiles{ID: id, Team: team, CreatedAt: j.CreatedAt, Files: j.Files, DueAt: healthlab.At(j.DueAt).Time})
		} else {
			err = r.put(tx, e)
		}
		if err != nil {
			return err
		}
		if out, err = jobTable.Copy(j); err != nil {
			return err
		}
		return store.AppendEvents(ctx, r.opts.Events, tx, events)
	})
	return out, err
}

func erasedJob(f *store.Entry[jobFiles]) Job {
	v := f.Value
	return Job{ID: v.ID, Team: v.Team, Revision: f.Revision, Status: Failed, Files: v.Files, CreatedAt: v.CreatedAt, DueAt: v.DueAt}
}

func (r rowStore) List(ctx context.Context, q Query) ([]Job, error) {
	size := max(1, q.Size)
	page := store.Query{Key: store.Key{Team: q.Team}, By: store.ByFirst, Desc: true, Limit: max(size, 100)}
	if q.After != (ListPosition{}) {
		page.To = store.Time(q.After.CreatedAt) + store.UUID(q.After.ID.UUID)
	}
	out := []Job{}
	for {
		jobs, err := jobTable.Look(ctx, r.s, page)
		if err != nil || len(jobs) == 0 {
			return out, err
		}
		page.To = jobTable.Row(&jobs[len(jobs)-1].Value).Index[0]
		more := len(jobs) == page.Limit
		jobs = slices.DeleteFunc(jobs, func(e *store.Entry[Job]) bool { return !q.matches(&e.Value) })
		if jobs, err = r.withoutDeleted(ctx, jobs); err != nil {
			return nil, err
		}
		for _, e := range jobs[:min(len(jobs), size-len(out))] {
			out = append(out, e.Value)
		}
		if len(out) == size || !more {
			return out, nil
		}
	}
}

func (q *Query) matches(j *Job) bool {
	return (q.User.IsZero() || j.User == q.User) && (len(q.Status) == 0 || slices.Contains(q.Status, j.Status)) &&
		(!q.Corrected || j.corrected())
}

func (r rowStore) Claim(ctx context.Context, n int, lease time.Duration) ([]Job, error) {
	var out []Job
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		out = nil
		if n <= 0 {
			return nil
		}
		due := store.Query{By: store.ByDue, Until: tx.Now(), Limit: n, Lock: store.Skip}
		jobs, err := jobTable.Find(tx, due)
		if err != nil {
			return err
		}
		erased, err := filesTable.Find(tx, due)
		if err != nil {
			return err
		}
		until := tx.Now().Add(lease)
		for len(out) < n && len(jobs)+len(erased) > 0 {
			if len(erased) == 0 || len(jobs) > 0 && jobs[0].Value.DueAt.Before(erased[0].Value.DueAt) {
				e := jobs[0]
				jobs = jobs[1:]
				e.Value.DueAt, e.Value.Revision = until, e.Revision+1
				if err := jobTable.Put(tx, e); err != nil {
					return err
				}
				out = append(out, e.Value)
				continue
			}
			e := erased[0]
			erased = erased[1:]
			e.Value.DueAt = until
			if err := filesTable.Put(tx, e); err != nil {
				return err
			}
			out = append(out, erasedJob(e))
		}
		return nil
	})
	return out, err
}

// EraseJobs prepares the erasure of a user, in the transaction of the erasure: the files of the user's jobs become
// due, so that [Store.Claim] returns them for deletion. It does not read the encrypted content of the jobs.
func EraseJobs(_ context.Context, tx store.Tx, team healthlab.TeamID, user healthlab.UserID) error {
	got, err := tx.Read(store.Query{Key: store.Key{Table: jobTable.Name, User: user}, By: store.ByUser, Lock: store.Held, Bare: true})
	if err != nil {
		return err
	}
	for _, row := range got[0] {
		if row.Team != team {
			continue
		}
		f, err := filesTable.Get(tx, store.Key{Team: row.Team, ID: row.ID}, store.Held)
		if err != nil {
			return err
		}
		if f != nil {
			f.Value.DueAt = f.Value.CreatedAt
			if err := filesTable.Put(tx, f); err != nil {
				return err
			}
		}
		tx.Delete(row.Key)
	}
	return nil
}
