package continuous

import (
	"context"
	"log/slog"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
)

// Store keeps continuous queries and the tables that came of them.
//
// All methods are safe for concurrent use and atomic. A context that has ended before a
// call writes nothing and is the error. What a call takes and returns is a copy. Text
// that contains NUL is refused with [healthlab.Invalid]. Times are kept in UTC to the
// microsecond. An id that the team does not have is [healthlab.NotFound], whether or
// not another team has it.
//
// A store that keeps health data too schedules work in the commit that changes data:
// where a write of [healthdata.Data] changed something of a resource, every active
// query of the team that depends on the resource gets a task for that user (see
// [Work]). [healthdata.Users.Erase] removes tables, tasks and history of the
// user.
type Store interface {
	// Insert adds q with Revision 1 whatever it says, and begins to schedule a task
	// for every live user of the team; see Backfill. What is written before a user's
	// turn may be left to that task, which covers it. The zero team or id is
	// healthlab.Invalid. An id that is taken, or the slug of another active query of
	// the team, is healthlab.Conflict.
	Insert(ctx context.Context, q Query) error

	// Get returns one query by its id.
	Get(ctx context.Context, team healthlab.TeamID, id QueryID) (Query, error)

	// Find returns the active query of a slug.
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

	// Result returns the table that the last task of a user wrote, byte for byte.
	// NotFound if there is none.
	Result(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id QueryID) ([]byte, error)

	// History returns one page of what became of the tasks of a query and user, the
	// newest first. A task that waits is the first entry, as scheduled. At least the
	// last [HistoryKept] that were started are kept. A cursor that is not one of
	// this list is an [healthlab.InvalidError] at cursor.
	History(ctx context.Context, q HistoryQuery) (HistoryPage, error)
}

// Work is the tasks that keep tables up to date. A query and user have at
// most one task that waits and one that runs.
//
// A task covers a range of time in which data may have changed: the timestamps of
// samples, and the Index of records, of a changed record also the Index that it had.
// It is due when the query's Gap has passed since the last start, or at once. A change
// while a task waits widens its range and is listed in the history as skipped; of several
// such changes of one task only the last one is listed. A change while a task runs makes
// another task.
//
// Due times and leases run on the store's own clock. Methods are safe for concurrent
// use and atomic, as those of [Store].
type Work interface {
	// Backfill goes on with scheduling the users that were there before a query: it
	// gives tasks over [Always] to at most n of them, and returns to how many. 0
	// means that nothing is left to schedule.
	Backfill(ctx context.Context, n int) (int, error)

	// Claim takes at most n due tasks of any team, the longest due first, and keeps
	// them from other callers for the lease. A task whose lease has ended without
	// Finish comes back, with the same range and the next Try.
	Claim(ctx context.Context, n int, lease time.Duration) ([]Task, error)

	// Finish ends a task that was claimed, in one commit with its table and events.
	// healthlab.Precondition if it was claimed again since, or its user was erased;
	// then nothing is written. After TaskError the range of the task is kept for the
	// next one.
	Finish(ctx context.Context, t Task, o Outcome) error
}

// HistoryKept is how many entries of the history of a query and user are kept.
const HistoryKept = 200

// Task is one evaluation of a query for a user.
type Task struct {
	Team  healthlab.TeamID
	User  healthlab.UserID
	Query QueryID
	// Range is where data may have changed since the last task.
	Range aggregate.Span
	// ScheduledAt is when the task was due, StartedAt when it was claimed.
	ScheduledAt, StartedAt time.Time
	// Try counts the claims of this task, from 1.
	Try int
	// Run is the store's own mark of this claim.
	Run int64
}

// LogValue shows the ids.
func (t Task) LogValue() slog.Value {
	return slog.GroupValue(slog.String("team", t.Team.String()), slog.String("user", t.User.String()), slog.String("query", t.Query.String()), slog.Int("try", t.Try))
}

// TaskStatus says what became of a task.
type TaskStatus string

// The statuses of tasks.
const (
	TaskScheduled TaskStatus = "scheduled"
	TaskStarted   TaskStatus = "started"
	TaskCompleted TaskStatus = "completed"
	TaskError     TaskStatus = "error"
	// TaskSkipped: the query was archived, or another task was waiting already.
	TaskSkipped TaskStatus = "skipped"
)

// Outcome is what a task comes to.
type Outcome struct {
	// Status is TaskCompleted, TaskError or TaskSkipped.
	Status TaskStatus
	// Table is the user's new table; nil leaves the old one.
	Table []byte
	// Events explain the change.
	Events []healthlab.Event
	// FHIR says that the rows are pushed as FHIR Observations.
	FHIR bool
	// Details names the error of a TaskError.
	Details string
}

// HistoryEntry is what became of one task.
type HistoryEntry struct {
	Query QueryID          `json:"query_id"`
	User  healthlab.UserID `json:"user_id"`
	// Status is scheduled, started, completed, error or skipped.
	Status TaskStatus `json:"status"`
	// ScheduledAt is when the task was, or is, due. For one that was skipped it is
	// when it was asked for.
	ScheduledAt healthlab.Time  `json:"scheduled_at"`
	StartedAt   *healthlab.Time `json:"started_at"`
	EndedAt     *healthlab.Time `json:"ended_at"`
	// Details names the error of a task that ended with an error.
	Details *string `json:"error_details"`
}

// HistoryQuery asks for one page of a history.
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

// ListQuery asks for one page of a team's queries.
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
