package labreport

import (
	"context"
	"io"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Store stores jobs and their events.
//
// All methods are safe for concurrent use and atomic: either everything a call writes is there, or nothing is.
// Text with NUL is refused with [healthlab.Invalid]. Times are kept in UTC to the microsecond. Results are
// copies. After ctx has ended, a call returns the context's error and writes nothing.
//
// When a user is erased, so are the user's jobs: Get and List do not show them, and no quota counts them. Of a
// job with files, ID, Team, CreatedAt and Files remain, with the status Failed and due since CreatedAt, so that
// the claimant deletes the files. The job is deleted when an Update removes its last file.
type Store interface {
	// Insert adds a job with Revision 1 and its events. Conflict if the team has a job with this id, Invalid
	// without an id, a team or a user. If quota is above 0 and the team has that many jobs that have not failed,
	// it returns Exhausted and writes nothing. The count and the insert are atomic.
	Insert(ctx context.Context, j Job, quota int, events []healthlab.Event) error

	// Get returns one job. NotFound if the team has no such job, whether or not another team has. Where the same
	// store keeps users, Get and List do not find the jobs of a user who is deleted, until the deletion is
	// undone; the other methods do.
	Get(ctx context.Context, team healthlab.TeamID, id JobID) (Job, error)

	// Update loads the job, lets change edit it, and writes it back with the returned events and the next
	// revision. ID, Team, User, CreatedAt and Revision cannot be changed. An error from change is returned
	// unchanged and nothing is written. change may run more than once, so it must be pure. Concurrent updates
	// behave as if they ran one after another.
	Update(ctx context.Context, team healthlab.TeamID, id JobID, change func(*Job) ([]healthlab.Event, error)) (Job, error)

	// List returns jobs, newest first, ties by descending id. In a restored backup, List and Claim leave out jobs of
	// users whose encryption key was deleted.
	List(ctx context.Context, q Query) ([]Job, error)

	// Claim claims at most n jobs of any team whose DueAt is not later than the store's own clock, the longest
	// due first, moves their DueAt to the end of the lease on that clock, and returns them with their next
	// revision. Two calls never return the same job before its lease has ended.
	Claim(ctx context.Context, n int, lease time.Duration) ([]Job, error)
}

// Query selects the jobs to list.
type Query struct {
	Team healthlab.TeamID
	// User, if not zero, keeps the jobs of one user.
	User healthlab.UserID
	// Status keeps jobs with one of these statuses; empty means any.
	Status []Status
	// Corrected keeps jobs whose review has corrections.
	Corrected bool
	// After, if not zero, is the position after which the list begins. A job at that position need not exist.
	After ListPosition
	// Size is the greatest number of jobs, at least 1.
	Size int
}

// ListPosition is the position of a job in a list.
type ListPosition struct {
	CreatedAt time.Time
	ID        JobID
}

// BlobStore keeps files. An implementation encrypts them at rest, because they are health data. If the host has an
// encryption key for each user, a file is encrypted with the key of its user, so that deleting that key also erases
// copies of the file: Get is then [healthlab.NotFound], and Delete still works.
//
// Put and Get name the user whom the file is about. A file is found by its name alone, the parameter key; an
// implementation that encrypts for each user does not open it for another one.
//
// A name is letters, digits, hyphens, underscores and single slashes between them, at most 512 bytes; another one is
// [healthlab.Invalid]. Names that differ in case are different, and one may begin with another. Put replaces the whole
// content, or after an error nothing: readers see the old content or the new, never a part, even after a crash. An
// error of the content reader is wrapped. Put and Delete may be called again after any error. Get of a missing file is
// [healthlab.NotFound]; Delete of it is no error. Once ctx has ended, a call returns the context's error and changes
// nothing. Implementations are safe for concurrent use.
type BlobStore interface {
	Put(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string, content io.Reader) error
	// Get returns the content; the caller closes it.
	Get(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string) (io.ReadCloser, error)
	Delete(ctx context.Context, key string) error
}

// Users checks whether users exist. HasUser reports whether the team has this live user. Implementations must be
// safe for concurrent use.
type Users interface {
	HasUser(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (bool, error)
}
