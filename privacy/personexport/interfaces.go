package personexport

import (
	"context"
	"io"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Store stores exports.
//
// All methods are safe for concurrent use and atomic. Times are kept in UTC to the microsecond. The caller may
// edit returned values. Once ctx has ended, a call returns the context's error and writes nothing. A Store
// calls [CheckJob] before it inserts a job, and writes jobs in their [Job.Normal] form.
//
// Erasing a user deletes the jobs without files. A job with files keeps ID, Team, CreatedAt and Files, becomes
// Failed and gets the next Revision. Claim returns it so that its files are deleted: at once, or after its
// lease if it was in progress, so that no file is written after the deletion.
type Store interface {
	// Insert adds a job with Revision 1. If the same store has the users, NotFound if the team has no such
	// user, or the user is deleted. Conflict if the team has a job with this id; another team may have one.
	// Invalid if [CheckJob] or [Job.Normal] returns it. Exhausted if the user already has most jobs that have
	// not failed: the count and the insert are one step.
	Insert(ctx context.Context, j Job, most int) error

	// Get returns one job, also of a deleted user. NotFound if the team has no such job, or its user was
	// erased.
	Get(ctx context.Context, team healthlab.TeamID, id JobID) (Job, error)

	// Update loads the job, also of an erased user, lets change edit it, and writes it back with the next
	// revision. Changes of ID, Team, User, CreatedAt and Revision are ignored. An error of change is returned
	// unchanged and nothing is written. Invalid if [Job.Normal] returns it. change may run more than once, so
	// it must be pure. Concurrent updates behave as if they ran one after another.
	Update(ctx context.Context, team healthlab.TeamID, id JobID, change func(*Job) error) (Job, error)

	// OfUser returns the jobs of a user, deleted or not, oldest first.
	OfUser(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]Job, error)

	// Claim returns at most n jobs of any team whose DueAt is not later than the store's own clock, the longest
	// due first, with their next revision, and sets their DueAt to the end of the lease on that clock. Two
	// calls never return the same job before its lease has ended.
	Claim(ctx context.Context, n int, lease time.Duration) ([]Job, error)

	// Delete removes a job. Deleting a missing job is no error.
	Delete(ctx context.Context, team healthlab.TeamID, id JobID) error
}

// BlobStore stores files, encrypted with the key of their user if the host has such keys. Put stores the whole
// content or, after an error, nothing. Get of a missing file is NotFound, and Delete of one is no error. Keys
// consist of letters, digits, hyphens and single slashes. labreport.BlobStore and orders.BlobStore are the same
// interface.
type BlobStore interface {
	Put(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string, content io.Reader) error
	// Get returns the content; the caller closes it.
	Get(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string) (io.ReadCloser, error)
	Delete(ctx context.Context, key string) error
}

// Users looks up users of a team. HasUser returns nil if the team has this user, and the user is not deleted.
type Users interface {
	HasUser(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (bool, error)
}

// Source contributes the files of one folder of an export. Implementations are safe for
// concurrent use.
type Source interface {
	// Files returns the names of the files in the folder, in the order in which they are written. Names have
	// ids and names of resources, and no value of the person.
	Files(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]string, error)
	// Write writes a file from the list of Files. NotFound means that there is no such file: the export
	// continues without it.
	Write(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, name string, w io.Writer) error
}
