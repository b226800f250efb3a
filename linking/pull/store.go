package pull

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Store stores tasks, budgets and quarantined items. An adapter also implements healthdata.Users, because
// methods read and write connections too.
//
// All methods are safe for concurrent use and atomic: either everything a call writes is there, or nothing is. A
// context that has ended before a call writes nothing and is the error. Arguments and results are copies. Text
// that is not UTF-8 or has a NUL is healthlab.Invalid. Times are kept in UTC to the microsecond. An id that the
// team does not have is healthlab.NotFound.
//
// A change may run more than once, so it is pure: no I/O, no clock, no calls to a store.
// Its error is returned unchanged, and nothing is written. Concurrent changes of one thing
// behave as if they ran one after another.
//
// When a user is erased, so are its tasks, budgets and quarantine.
type Store interface {
	// ClaimConnections returns up to n connections, whatever their status, of live users of any team whose Due
	// is set and not after now, the longest due first, and sets their Due to until. The Revision of the user
	// does not change. Two concurrent claims never return the same connection. Both instants are of the caller's
	// clock. Two processes with different clocks may process one connection; Plan is atomic, so the result is
	// the same.
	ClaimConnections(ctx context.Context, n int, now, until time.Time) ([]Ref, error)

	// Plan replaces the tasks of a connection by the result of change, and writes the events and the
	// connection's next Due. The user and its Revision are not changed. Tasks that change leaves out are
	// deleted. NotFound if there is no such live user, or the user has no such connection, Deregistered or not;
	// Invalid if a task is of another connection, or there twice.
	Plan(ctx context.Context, ref Ref, change func(c healthdata.Connection, u healthdata.User, old []Task) (ConnectionPlan, error)) error

	// Claim claims up to N tasks of any team whose Due is set and not after Now, and whose Lease has ended: of
	// those the ones with the lowest Turn, of equal ones the longest due, then by user, provider, resource and
	// kind. It sets their Lease to the end of the lease, adds one to their Fence, and returns the changed tasks.
	Claim(ctx context.Context, q ClaimQuery) ([]Task, error)

	// Update lets change edit a task and writes it back with the events. Key cannot be changed.
	Update(ctx context.Context, key Key, change func(*Task) ([]healthlab.Event, error)) (Task, error)

	// Count lets change edit a task as Update does, without events, or a new task with this key and the LinkedAt
	// of the connection. The user is not locked, so that counts of different tasks of a user do not wait for
	// each other. NotFound if there is no task and no such connection, Deregistered or not, or no such live
	// user.
	Count(ctx context.Context, key Key, change func(*Task)) error

	// Tasks returns the tasks of a live user, by provider, resource and kind; none if the
	// team has no such user.
	Tasks(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]Task, error)

	// Notify records that a provider has new data. If no notice of the provider with this id is stored yet, it
	// lets change edit tasks and writes them back: tasks of the kind News with a Due, of the notice's
	// resources, and of Connected connections of live users of any team with exactly this external user id.
	// With a team, only connections of that team that are bound to the notice's client count. Key cannot be
	// changed. It returns the number of these tasks. Notices from before forget may be deleted.
	Notify(ctx context.Context, n Notice, forget time.Time, change func(*Task)) (int, error)

	// UserStatuses returns the users of a team with connections, with their tasks and refusals.
	UserStatuses(ctx context.Context, q UserStatusQuery) ([]UserStatus, error)

	// UpdateBudgets lets change edit budgets, in the order of the keys, and writes them back. A budget that was
	// never written is zero. Two equal keys are Invalid; an unknown user is NotFound.
	UpdateBudgets(ctx context.Context, keys []BudgetKey, change func([]Budget) error) error

	// Quarantine adds refusals of a user's connection. If a refusal with the id exists, only At and Count are
	// updated. The [MaxRefusedPerUser] most recent refusals of a user are kept; equal ones by id.
	Quarantine(ctx context.Context, ref Ref, refused []RefusedItem) error

	// Quarantined returns the refusals of a live user, the latest first, then by id, at
	// most n; none if the team has no such user.
	Quarantined(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, n int) ([]RefusedItem, error)
}

// ConnectionPlan is the new plan of a connection.
type ConnectionPlan struct {
	Tasks  []Task
	Events []healthlab.Event
	// Due is when the connection is next due; zero means never.
	Due time.Time
}

// ClaimQuery selects the tasks that a worker claims.
type ClaimQuery struct {
	N int
	// Without are applications whose tasks are skipped, by [Task.App].
	Without []string
	// Now is the caller's clock, which decides what is due.
	Now time.Time
	// Lease is measured by the store's clock.
	Lease time.Duration
}

// UserStatusQuery selects users of a team.
type UserStatusQuery struct {
	Team healthlab.TeamID
	// User and Provider filter the result; zero means all.
	User     healthlab.UserID
	Provider string
	// After is the user id after which the page begins, and N the greatest number of users.
	After healthlab.UserID
	N     int
}

// UserStatus is a live user with connections that are not Deregistered. Results are sorted by user id.
type UserStatus struct {
	User healthlab.UserID
	// Providers are the providers of the connections, ascending, filtered by the query. Tasks are sorted by
	// provider, resource and kind. Refused has the most recent refusals first, then by id, at most
	// [MaxRefusedPerStatus].
	Providers []string
	Tasks     []Task
	Refused   []RefusedItem
}

// MaxRefusedPerUser is the number of stored refusals of a user, because a provider may send invalid data
// forever.
const MaxRefusedPerUser = 1000

// MaxRefusedPerStatus is the number of refusals in the status of a user.
const MaxRefusedPerStatus = 50

// RefusedItem is a refused item of a provider. It contains no measured value.
type RefusedItem struct {
	// ID is derived from the item and the reason, so that the same refusal has the same id.
	ID uuid.UUID `json:"id"`
	// Provider and Resource are the slugs of the item.
	Provider string `json:"provider"`
	Resource string `json:"resource"`
	// At is when the item was last refused, and Count how often.
	At    healthlab.Time `json:"last_seen_at"`
	Count int64          `json:"count"`
	// Reasons are the broken rules, by field.
	Reasons []Reason `json:"reasons"`
}

// Reason is a field and the rule that it breaks.
type Reason struct {
	// Field is a path: "value", "source.type".
	Field string `json:"field"`
	// Code is a stable name: future, unit, duplicate, other_user, …
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Notice reports that a provider has new data.
type Notice struct {
	// ID is derived from the provider's own id of the notification.
	ID       [32]byte
	Provider string
	// Team and Client are set if the message was sent to the team's own client.
	Team   healthlab.TeamID
	Client string
	// ExternalUserID is the account, byte for byte.
	ExternalUserID string
	// Resources are the slugs with new data; empty means all.
	Resources []string
	At        time.Time
}
