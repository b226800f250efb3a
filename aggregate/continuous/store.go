package continuous

import (
	"context"
	"log/slog"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
)

// Store stores continuous queries and their result tables.
//
// All methods are safe for concurrent use and atomic. If the context has ended before a call, the call writes
// nothing and returns the context's error. Arguments and results are copies. Text that contains NUL is refused
// with [healthlab.Invalid]. Times are stored in UTC to the microsecond. An id that the team does not have is
// [healthlab.NotFound], whether or not another team has it.
//
// A store that also stores health data schedules tasks in the transaction that changes the data: after a write
// of [healthdata.Data] that changed a resource, every active query of the team that depends on the resource
// gets a task for that user (see [Work]). [healthdata.Users.Erase] removes tables, tasks and history of the
// user.
type Store interface {
	// Insert adds q with Revision 1, whatever q.Revision is, and starts to schedule a task for every live user
	// of the team; see Backfill. Changes of data before a user's task is scheduled need no task of their own,
	// because that task covers them. A zero team or id is healthlab.Invalid. An id that exists, or the slug of
	// another active query of the team, is healthlab.Conflict.
	Insert(ctx context.Context, q Query) error

	// Get returns one query by its id.
	Get(ctx context.Context, team healthlab.TeamID, id QueryID) (Query, error)

	// Find returns the active query with a slug.
	Find(ctx context.Context, team healthlab.TeamID, slug string) (Query, error)

	// Update loads the query, lets change edit it, and writes it back with the next
	// revision. An error of change is returned unchanged and nothing is written.
	// change may run more than once, so it is pure. Concurrent updates behave as if
	// they ran one after another. ID, Team, Slug, CreatedAt and Revision stay as they
	// are. A query that becomes active again while another one has its slug is
	// healthlab.Conflict.
	Update(ctx context.Context, team healthlab.TeamID, id QueryID, change func(*Query) error) (Query, error)

	// List returns one page of a team's queries of any status, the newest first,
	// ties by id descending. A cursor that is not one of this list is an
	// [healthlab.InvalidError] at cursor.
	List(ctx context.Context, q ListQuery) (Page, error)

	// Result returns the table that the last task of a user wrote, byte for byte. NotFound if there is none.
	Result(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id QueryID) ([]byte, error)

	// History returns one page of the task outcomes of a query and user, the newest first. A waiting task is
	// the first entry, with the status scheduled. At least the last [HistoryKept] started tasks are stored. A
	// cursor that is not one of this list is an [healthlab.InvalidError] at cursor.
	History(ctx context.Context, q HistoryQuery) (HistoryPage, error)
}

// Work stores the tasks that keep tables up to date. A query and user have at most one task that waits and one
// that runs.
//
// A task covers the time range in which data may have changed: the timestamps of changed samples, and the old
// and new Index of changed records. It is due when the query's Gap has passed since the last start, or at once.
// A change while a task waits widens its range, and the history lists the last such change as skipped. A change
// while a task runs makes another task.
//
// Due times and leases use the store's own clock. Methods are safe for concurrent use and atomic, as those of
// [Store].
type Work interface {
	// Backfill schedules tasks for users that existed before a query: tasks over [Always] for at most n users.
	// It returns their number; 0 if all users have a task.
	Backfill(ctx context.Context, n int) (int, error)

	// Claim claims at most n due tasks of any team, the longest due first, and hides them from other callers
	// until the lease ends. A task whose lease has ended without Finish is due again, with the same range and
	// the next Try.
	Claim(ctx context.Context, n int, lease time.Duration) ([]Task, error)

	// Finish ends a claimed task, in one transaction with its table and events. healthlab.Precondition if another
	// worker has claimed the task since, or its user was erased; then nothing is written. After TaskError the next task
	// covers the range of this one too.
	Finish(ctx context.Context, t Task, o Outcome) error
}

// HistoryKept is the number of history entries that are stored for a query and user.
const HistoryKept = 200

// Task is one evaluation of a query for a user.
type Task struct {
	Team  healthlab.TeamID
	User  healthlab.UserID
	Query QueryID
	// Range is the time range in which data may have changed since the last task.
	Range aggregate.Span
	// ScheduledAt is the time at which the task was due, StartedAt the time of the claim.
	ScheduledAt, StartedAt time.Time
	// Try counts the claims of this task, from 1.
	Try int
	// Run identifies this claim. The store sets it.
	Run int64
}

// LogValue logs the ids only.
func (t Task) LogValue() slog.Value {
	return slog.GroupValue(slog.String("team", t.Team.String()), slog.String("user", t.User.String()), slog.String("query", t.Query.String()), slog.Int("try", t.Try))
}

// TaskStatus is the state of a task.
type TaskStatus string

// Statuses of tasks.
const (
	TaskScheduled TaskStatus = "scheduled"
	TaskStarted   TaskStatus = "started"
	TaskCompleted TaskStatus = "completed"
	TaskError     TaskStatus = "error"
	// TaskSkipped: the query was archived, or another task was waiting already.
	TaskSkipped TaskStatus = "skipped"
)

// Outcome is the result of a task.
type Outcome struct {
	// Status is TaskCompleted, TaskError or TaskSkipped.
	Status TaskStatus
	// Table is the user's new table; nil leaves the old one.
	Table []byte
	// Events are the events about the change.
	Events []healthlab.Event
	// FHIR is true if the rows are pushed as FHIR Observations.
	FHIR bool
	// Details is the error code of a TaskError.
	Details string
}

// HistoryEntry is the outcome of one task.
type HistoryEntry struct {
	Query QueryID          `json:"query_id"`
	User  healthlab.UserID `json:"user_id"`
	// Status is scheduled, started, completed, error or skipped.
	Status TaskStatus `json:"status"`
	// ScheduledAt is the time at which the task was or is due; for a skipped task the time of the change.
	ScheduledAt healthlab.Time  `json:"scheduled_at"`
	StartedAt   *healthlab.Time `json:"started_at"`
	EndedAt     *healthlab.Time `json:"ended_at"`
	// Details is the error code of a task that ended with an error.
	Details *string `json:"error_details"`
}

// HistoryQuery selects one page of a history.
type HistoryQuery struct {
	Team   healthlab.TeamID
	User   healthlab.UserID
	Query  QueryID
	Cursor string // empty for the first page
	Size   int    // default 50
}

// HistoryPage is one page of a history.
type HistoryPage struct {
	Entries []HistoryEntry
	Next    string // the cursor of the next page; empty if there is none
}

// ListQuery selects one page of a team's queries.
type ListQuery struct {
	Team   healthlab.TeamID
	Cursor string // empty for the first page
	Size   int    // default 50
}

// Page is one page of a team's queries.
type Page struct {
	Queries []Query
	Next    string // the cursor of the next page; empty if there is none
}
