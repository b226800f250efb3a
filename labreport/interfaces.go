package labreport

import (
	"context"
	"io"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Store stores jobs and their events.
//
// All methods are safe for concurrent use and atomic: a call writes everything or nothing. Text with NUL is refused
// with [healthlab.Invalid]. Times are in UTC with microseconds. Results are copies. After ctx has ended, a call
// returns the context's error and writes nothing.
//
// Erasing a user erases the user's jobs: Get and List do not find them, and no quota counts them. A job with files is
// reduced to ID, Team, CreatedAt and Files, with the status Failed and DueAt equal to CreatedAt, so that Claim
// returns it and its files are deleted. The Update that removes the last file deletes the job.
type Store interface {
	// Insert adds a job with Revision 1 and its events. Conflict if the team has a job with this id, Invalid
	// without an id, a team or a user. If quota is above 0 and the team has that many jobs that have not failed,
	// it returns Exhausted and writes nothing. The count and the insert are atomic.
	Insert(ctx context.Context, j Job, quota int, events []healthlab.Event) error

	// Get returns one job. NotFound if the team has no such job, even if another team has one with this id. If the
	// store also contains the users, Get and List do not find the jobs of a deleted user until the deletion is
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

	// Claim returns at most n jobs of any team whose DueAt is not after the store's clock, earliest DueAt first. It
	// sets their DueAt to the end of the lease on that clock, and increases their Revision. Two calls never return
	// the same job before its lease has ended.
	Claim(ctx context.Context, n int, lease time.Duration) ([]Job, error)
}

// Query selects the jobs to list.
type Query struct {
	Team healthlab.TeamID
	// User, if not zero, restricts the list to the jobs of this user.
	User healthlab.UserID
	// Status restricts the list to jobs with one of these statuses; empty means any.
	Status []Status
	// Corrected restricts the list to jobs whose review has corrections.
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

// BlobStore stores files. An implementation encrypts them at rest, because they are health data. If the host has an
// encryption key for each user, a file is encrypted with the key of its user, so that deleting this key also makes
// copies of the file unreadable: Get is then [healthlab.NotFound], and Delete still works.
//
// Put and Get name the user whom the file is about. The parameter key alone identifies the file; an implementation
// that encrypts for each user does not decrypt the file for another user.
//
// A key consists of letters, digits, hyphens, underscores and single slashes between them, at most 512 bytes; other
// keys are [healthlab.Invalid]. Keys that differ in case are different, and one key may be a prefix of another. Put
// replaces the whole content; after an error nothing has changed. Readers see the old content or the new, never a
// part, even after a crash. Put wraps an error of the content reader. Put and Delete may be called again after any
// error. Get of a missing file is [healthlab.NotFound]; Delete of a missing file is no error. Once ctx has ended, a
// call returns the context's error and changes nothing. Implementations are safe for concurrent use.
type BlobStore interface {
	Put(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string, content io.Reader) error
	// Get returns the content; the caller closes it.
	Get(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string) (io.ReadCloser, error)
	Delete(ctx context.Context, key string) error
}

// Users checks whether users exist. HasUser reports whether the team has this user and the user is not deleted.
// Implementations must be safe for concurrent use.
type Users interface {
	HasUser(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (bool, error)
}
