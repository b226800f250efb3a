package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/personexport"
)

type exportStore struct {
	*database
	users   *userTable
	exports exportTable
}

// exportTable keeps the exports of all teams.
type exportTable map[exportKey]personexport.Job

type exportKey struct {
	team healthlab.TeamID
	id   personexport.JobID
}

var errNoExport = fmt.Errorf("%w: export", healthlab.NotFound)

func (v exportStore) Insert(ctx context.Context, j personexport.Job, most int) error {
	if err := personexport.CheckJob(&j); err != nil {
		return err
	}
	j, err := j.Normal()
	if err != nil {
		return err
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	if row := v.users.find(j.Team, j.User); row == nil || !row.user.Live() {
		return noUser()
	}
	if _, taken := v.exports[exportKey{j.Team, j.ID}]; taken {
		return fmt.Errorf("%w: the export's id is taken", healthlab.Conflict)
	}
	failed := func(j personexport.Job) bool { return j.Status == personexport.Failed }
	if len(slices.DeleteFunc(v.exports.of(j.Team, j.User), failed)) >= most {
		return fmt.Errorf("%w: the user has the most exports that are allowed", healthlab.Exhausted)
	}
	j.Revision = 1
	v.exports.put(j)
	return nil
}

// put keeps a copy of a job and returns another one.
func (t exportTable) put(j personexport.Job) personexport.Job {
	t[exportKey{j.Team, j.ID}] = j.Clone()
	return j.Clone()
}

// of returns the jobs of a user, oldest first.
func (t exportTable) of(team healthlab.TeamID, user healthlab.UserID) []personexport.Job {
	out := []personexport.Job{}
	for _, j := range t {
		if j.Team == team && j.User == user {
			out = append(out, j.Clone())
		}
	}
	slices.SortFunc(out, func(a, b personexport.Job) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), bytes.Compare(a.ID.UUID[:], b.ID.UUID[:]))
	})
	return out
}

// erase removes the jobs of a user; what names files stays until they are deleted.
func (t exportTable) erase(team healthlab.TeamID, user healthlab.UserID) {
	for _, j := range t.of(team, user) {
		if len(j.Files) == 0 {
			delete(t, exportKey{team, j.ID})
			continue
		}
		due := j.CreatedAt
		if j.Status == personexport.InProgress {
			due = j.DueAt
		}
		t[exportKey{team, j.ID}] = personexport.Job{
			ID: j.ID, Team: team, Revision: j.Revision + 1, Status: personexport.Failed, Files: j.Files,
			CreatedAt: j.CreatedAt, UpdatedAt: j.CreatedAt, DueAt: due,
		}
	}
}

func (v exportStore) Get(ctx context.Context, team healthlab.TeamID, id personexport.JobID) (personexport.Job, error) {
	if err := v.lock(ctx); err != nil {
		return personexport.Job{}, err
	}
	defer v.mu.Unlock()
	j, ok := v.exports[exportKey{team, id}]
	if !ok || j.User.IsZero() {
		return personexport.Job{}, errNoExport
	}
	return j.Clone(), nil
}

func (v exportStore) Update(ctx context.Context, team healthlab.TeamID, id personexport.JobID, change func(*personexport.Job) error) (personexport.Job, error) {
	if err := v.lock(ctx); err != nil {
		return personexport.Job{}, err
	}
	defer v.mu.Unlock()
	was, ok := v.exports[exportKey{team, id}]
	if !ok {
		return personexport.Job{}, errNoExport
	}
	next := was.Clone()
	next.StoreTime = v.clock()
	if err := change(&next); err != nil {
		return personexport.Job{}, err
	}
	next.ID, next.Team, next.User, next.CreatedAt, next.Revision = id, team, was.User, was.CreatedAt, was.Revision+1
	next, err := next.Normal()
	if err != nil {
		return personexport.Job{}, err
	}
	return v.exports.put(next), nil
}

func (v exportStore) OfUser(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]personexport.Job, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	return v.exports.of(team, user), nil
}

func (v exportStore) Claim(ctx context.Context, n int, lease time.Duration) ([]personexport.Job, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	at := v.clock()
	var due []personexport.Job
	for _, j := range v.exports {
		if !j.DueAt.After(at) {
			due = append(due, j)
		}
	}
	slices.SortFunc(due, func(a, b personexport.Job) int {
		return cmp.Or(a.DueAt.Compare(b.DueAt), bytes.Compare(a.ID.UUID[:], b.ID.UUID[:]))
	})
	var out []personexport.Job
	for _, j := range due[:min(len(due), max(0, n))] {
		j.DueAt = at.Add(lease)
		j.Revision++
		out = append(out, v.exports.put(j))
	}
	return out, nil
}

func (v exportStore) Delete(ctx context.Context, team healthlab.TeamID, id personexport.JobID) error {
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	delete(v.exports, exportKey{team, id})
	return nil
}
