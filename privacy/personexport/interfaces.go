package personexport

import (
	"context"
	"io"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Store stores export jobs.
//
// All methods are safe for concurrent use and atomic. Times are kept in UTC to the microsecond. The caller may edit
// returned values. Once ctx has ended, a call returns the context's error and writes nothing. A job must have an id, a
// team and a user, and its texts must pass [healthlab.CheckText].
//
// Erasing a user deletes the jobs without files. A job with files stays until its files are deleted: it keeps ID, Team,
// CreatedAt and Files, becomes Failed and gets the next Revision. Claim returns it to the worker that deletes the
// files. A job that was in progress is returned only after its lease, so that no file is written after the deletion.
type Store interface {
	// Insert adds a job with Revision 1. NotFound if the team has no such user or the user is deleted, if the store
	// also stores users. Conflict if the team has a job with this id; another team may have one. Invalid if
	// an id or a text of the job cannot be stored. Exhausted if the user already has the highest number of jobs, most,
	// that are not Failed. Counting and inserting are one atomic step.
	Insert(ctx context.Context, j Job, most int) error

	// Get returns one job, even of a deleted user. NotFound if the team has no such job, or the job's user was
	// erased.
	Get(ctx context.Context, team healthlab.TeamID, id JobID) (Job, error)

	// Update loads a job, even of an erased user, lets change edit it, and writes it back with the next Revision.
	// Changes of ID, Team, User, CreatedAt and Revision are ignored. An error of change is returned unchanged and
	// nothing is written. Invalid if a text cannot be stored. change may run more than once, so it must be pure.
	// Concurrent updates behave as if they ran one after another.
	Update(ctx context.Context, team healthlab.TeamID, id JobID, change func(*Job) error) (Job, error)

	// OfUser returns the jobs of a user, even of a deleted one, oldest first.
	OfUser(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]Job, error)

	// Claim takes jobs for a worker: at most n jobs of any teams whose DueAt has passed by the store's clock, the
	// earliest DueAt first. It sets their DueAt to the end of the lease and raises their Revision. No other call
	// returns one of these jobs before the lease has ended.
	Claim(ctx context.Context, n int, lease time.Duration) ([]Job, error)

	// Delete removes a job. Deleting a missing job is no error.
	Delete(ctx context.Context, team healthlab.TeamID, id JobID) error
}

// BlobStore stores files of users, encrypted with the user's key if the host has keys of persons. After an error of
// Put nothing is stored. Get of a missing file returns NotFound; Delete of one is a no-op. Keys consist of letters,
// digits, hyphens and single slashes. labreport.BlobStore and orders.BlobStore have the same methods.
type BlobStore interface {
	Put(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string, content io.Reader) error
	// Get returns the content of a file; the caller must close it.
	Get(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string) (io.ReadCloser, error)
	Delete(ctx context.Context, key string) error
}

// Users finds users of a team. HasUser returns true if the team has this user and the user is not deleted.
type Users interface {
	HasUser(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (bool, error)
}

// Source makes the files of one folder of an export. Implementations are safe for concurrent use.
type Source interface {
	// Files returns the names of the folder's files, in the order in which they are to be written. Names consist of
	// ids and names of resources, and contain no personal value.
	Files(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]string, error)
	// Write writes the content of one file that Files has listed to w. NotFound means that the file has no content
	// any more: the export then continues without it.
	Write(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, name string, w io.Writer) error
}
