package memory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/personkey"
)

// reportTable keeps the parsing jobs of all teams, and their files.
type reportTable struct {
	jobs  map[labreport.JobID]*keptJob
	blobs map[string][]byte
	keys  *personkey.Keys
}

// keptJob is a job as it was written, encrypted, with what lists and claims need.
type keptJob struct {
	data   []byte
	id     labreport.JobID
	files  []labreport.StoredFile
	n      int64 // the revision
	team   healthlab.TeamID
	user   healthlab.UserID // zero once erased
	status labreport.Status
	due    time.Time
	made   time.Time
	// corrected says that the job's review has corrections.
	corrected bool
}

func newReportTable(keys *personkey.Keys) *reportTable {
	return &reportTable{keys: keys, jobs: map[labreport.JobID]*keptJob{}, blobs: map[string][]byte{}}
}

type jobStore struct {
	*database
	users   *userTable
	outbox  *outbox
	reports *reportTable
}

func (v jobStore) Insert(ctx context.Context, j labreport.Job, quota int, events []healthlab.Event) error {
	if j.Team.IsZero() || j.ID == (labreport.JobID{}) || j.User.IsZero() {
		return fmt.Errorf("%w: a parsing job needs a team, a user and an id", healthlab.Invalid)
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	t := v.reports
	if t.jobs[j.ID] != nil {
		return fmt.Errorf("%w: the parsing job's id is taken", healthlab.Conflict)
	}
	if quota > 0 {
		n := 0
		for _, k := range t.jobs {
			if k.team == j.Team && k.status != labreport.Failed {
				n++
			}
		}
		if n >= quota {
			return fmt.Errorf("%w: the team has the maximum number of parsing jobs", healthlab.Exhausted)
		}
	}
	j.Revision = 0
	_, err := v.write(ctx, j, events)
	return err
}

// write keeps a job with its events: both or nothing.
func (v jobStore) write(ctx context.Context, j labreport.Job, events []healthlab.Event) (labreport.Job, error) {
	j.Revision++
	j.DueAt, j.StartedAt, j.CreatedAt, j.UpdatedAt = instant(j.DueAt), instant(j.StartedAt), instant(j.CreatedAt), instant(j.UpdatedAt)
	data, err := sealDocument(ctx, v.keys, personkey.Ref{Team: j.Team, User: j.User}, personkey.RowParsingJob(j.ID), j)
	if err != nil {
		return labreport.Job{}, fmt.Errorf("keep parsing job: %w", err)
	}
	if err := v.outbox.emit(ctx, events); err != nil {
		return labreport.Job{}, err
	}
	k := &keptJob{data: data, id: j.ID, files: slices.Clone(j.Files), n: j.Revision, team: j.Team, user: j.User, status: j.Status, due: j.DueAt, made: j.CreatedAt, corrected: j.Corrected()}
	v.reports.jobs[j.ID] = k
	return v.reports.load(ctx, k)
}

var errNoJob = fmt.Errorf("%w: parsing job", healthlab.NotFound)

func (t *reportTable) load(ctx context.Context, k *keptJob) (labreport.Job, error) {
	var j labreport.Job
	if err := openDocument(ctx, t.keys, personkey.Ref{Team: k.team, User: k.user}, personkey.RowParsingJob(k.id), k.data, &j); err != nil {
		return labreport.Job{}, fmt.Errorf("read parsing job: %w", err)
	}
	return j, nil
}

func (v jobStore) get(ctx context.Context, team healthlab.TeamID, id labreport.JobID) (labreport.Job, error) {
	k := v.reports.jobs[id]
	if k == nil || k.team != team {
		return labreport.Job{}, errNoJob
	}
	return v.reports.load(ctx, k)
}

func (v jobStore) Get(ctx context.Context, team healthlab.TeamID, id labreport.JobID) (labreport.Job, error) {
	if err := v.lock(ctx); err != nil {
		return labreport.Job{}, err
	}
	defer v.mu.Unlock()
	j, err := v.get(ctx, team, id)
	if err == nil && (j.User.IsZero() || v.users.isDeleted(team, j.User)) {
		return labreport.Job{}, errNoJob
	}
	return j, err
}

func (v jobStore) Update(ctx context.Context, team healthlab.TeamID, id labreport.JobID, change func(*labreport.Job) ([]healthlab.Event, error)) (labreport.Job, error) {
	if err := v.lock(ctx); err != nil {
		return labreport.Job{}, err
	}
	defer v.mu.Unlock()
	j, err := v.get(ctx, team, id)
	if err != nil {
		return labreport.Job{}, err
	}
	revision, user, made := j.Revision, j.User, j.CreatedAt
	events, err := change(&j)
	if err != nil {
		return labreport.Job{}, err
	}
	j.ID, j.Team, j.User, j.Revision, j.CreatedAt = id, team, user, revision, made
	j, err = v.write(ctx, j, events)
	if err == nil && user.IsZero() && len(j.Files) == 0 {
		delete(v.reports.jobs, id)
	}
	return j, err
}

// erase removes the jobs of a user; what names files stays until they are deleted.
func (t *reportTable) erase(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
	for id, k := range t.jobs {
		if k.team != team || k.user != user {
			continue
		}
		if len(k.files) == 0 {
			delete(t.jobs, id)
			continue
		}
		// The key of the person may be deleted: the job is not read.
		j := labreport.Job{ID: id, Team: team, Revision: k.n + 1, Status: labreport.Failed, Files: k.files, CreatedAt: k.made, DueAt: k.made}
		data, err := sealDocument(ctx, t.keys, personkey.Ref{Team: team}, personkey.RowParsingJob(id), j)
		if err != nil {
			return fmt.Errorf("erase parsing job: %w", err)
		}
		t.jobs[id] = &keptJob{data: data, id: id, files: k.files, n: j.Revision, team: team, status: j.Status, due: j.DueAt, made: j.CreatedAt}
	}
	return nil
}

func (v jobStore) List(ctx context.Context, q labreport.Query) ([]labreport.Job, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	order := func(a, b labreport.ListPosition) int { // newest first
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), bytes.Compare(b.ID.UUID[:], a.ID.UUID[:]))
	}
	var list []labreport.ListPosition
	for id, k := range v.reports.jobs {
		at := labreport.ListPosition{CreatedAt: k.made, ID: id}
		if k.team == q.Team && !k.user.IsZero() && !v.users.isDeleted(k.team, k.user) && (q.User.IsZero() || k.user == q.User) &&
			(len(q.Status) == 0 || slices.Contains(q.Status, k.status)) && (k.corrected || !q.Corrected) &&
			(q.After == (labreport.ListPosition{}) || order(at, q.After) > 0) {
			list = append(list, at)
		}
	}
	slices.SortFunc(list, order)
	out := []labreport.Job{}
	for _, at := range list {
		if len(out) == max(1, q.Size) {
			break
		}
		j, err := v.reports.load(ctx, v.reports.jobs[at.ID])
		if errors.Is(err, personkey.ErrErased) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, j)
	}
	return out, nil
}

func (v jobStore) Claim(ctx context.Context, n int, lease time.Duration) ([]labreport.Job, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	at := v.clock()
	var due []labreport.JobID
	for id, k := range v.reports.jobs {
		if !k.due.IsZero() && !k.due.After(at) {
			due = append(due, id)
		}
	}
	slices.SortFunc(due, func(a, b labreport.JobID) int {
		return cmp.Or(v.reports.jobs[a].due.Compare(v.reports.jobs[b].due), bytes.Compare(a.UUID[:], b.UUID[:]))
	})
	var out []labreport.Job
	for _, id := range due[:min(len(due), max(0, n))] {
		j, err := v.reports.load(ctx, v.reports.jobs[id])
		if errors.Is(err, personkey.ErrErased) {
			v.reports.jobs[id].due = at.Add(lease)
			continue
		}
		if err != nil {
			return nil, err
		}
		j.DueAt = at.Add(lease)
		if j, err = v.write(ctx, j, nil); err != nil {
			return nil, err
		}
		out = append(out, j)
	}
	return out, nil
}

type blobStore struct {
	*database
	reports *reportTable
}

// reBlobKey are the keys of files.
var reBlobKey = regexp.MustCompile(`^[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*$`)

func checkBlobKey(key string) error {
	if len(key) > 512 || !reBlobKey.MatchString(key) {
		return fmt.Errorf("%w: a file's key is letters, digits, hyphens and single slashes between them", healthlab.Invalid)
	}
	return nil
}

func (v blobStore) Put(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string, content io.Reader) error {
	if err := checkBlobKey(key); err != nil {
		return err
	}
	data, err := io.ReadAll(content)
	if err != nil {
		return fmt.Errorf("keep file: %w", err)
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	if data, err = v.keys.Seal(ctx, personkey.Ref{Team: team, User: user}, personkey.RowFile(key), data); err != nil {
		return fmt.Errorf("keep file: %w", err)
	}
	v.reports.blobs[key] = data
	return nil
}

func (v blobStore) Get(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string) (io.ReadCloser, error) {
	if err := checkBlobKey(key); err != nil {
		return nil, err
	}
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	data, ok := v.reports.blobs[key]
	if !ok {
		return nil, fmt.Errorf("%w: file", healthlab.NotFound)
	}
	data, err := v.keys.OpenBytes(ctx, personkey.Ref{Team: team, User: user}, personkey.RowFile(key), data)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (v blobStore) Delete(ctx context.Context, key string) error {
	if err := checkBlobKey(key); err != nil {
		return err
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	delete(v.reports.blobs, key)
	return nil
}
