package pull

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Store stores tasks, budgets and quarantined items. An adapter also implements healthdata.Users, because methods read
// and write connections too.
//
// All methods are safe for concurrent use and atomic: either everything a call writes is there, or nothing is. A call
// whose context has already ended writes nothing and returns the context's error. Arguments and results are copies.
// Text that is not UTF-8 or has a NUL is healthlab.Invalid. Times are kept in UTC to the microsecond. An id that the
// team does not have is healthlab.NotFound.
//
// A change may run more than once, so it is pure: no I/O, no clock, no calls to a store. Its error is returned
// unchanged, and nothing is written. Concurrent changes of one task, connection or budget behave as if they ran one
// after another.
//
// Erasing a user deletes the user's tasks, budgets and quarantined items.
type Store interface {
	// ClaimConnections returns up to n connections of live users of any team, whatever their status, whose Due is set
	// and not after now, and sets their Due to until. The connection that has been due longest comes first. The
	// Revision of the user does not change. Two concurrent claims never return the same connection. now and until are
	// of the caller's clock. If the clocks of two processes differ, both may process one connection; Plan is atomic, so
	// the result is the same.
	ClaimConnections(ctx context.Context, n int, now, until time.Time) ([]Ref, error)

	// Plan replaces the tasks of a connection by those that change returns, and writes the events and the connection's
	// next Due. It does not change the user and the user's Revision. Tasks that change leaves out are deleted. It
	// returns NotFound if there is no such live user, or the user has no such connection, whether Deregistered or not;
	// Invalid if a task is of another connection, or two tasks have the same key.
	Plan(ctx context.Context, ref Ref, change func(c healthdata.Connection, u healthdata.User, old []Task) (ConnectionPlan, error)) error

	// Claim claims up to q.N tasks of any team whose Due is set and not after q.Now, and whose Lease has ended. Tasks
	// with the lowest Turn come first; of equal ones the task that has been due longest, then by user, provider,
	// resource and kind. It sets Lease to q.Lease after the store's present time, adds one to Fence, and returns the
	// changed tasks.
	Claim(ctx context.Context, q ClaimQuery) ([]Task, error)

	// Update lets change edit a task and writes it back with the events. Key cannot be changed.
	Update(ctx context.Context, key Key, change func(*Task) ([]healthlab.Event, error)) (Task, error)

	// Count lets change edit a task as Update does, without events. If there is no task with this key, change edits a
	// new one, whose Linked is the LinkedAt of the connection. Counts of different tasks of a user do not wait for each
	// other, because Count locks the user at most as Shared. It returns NotFound if there is no task and no such
	// connection, whether Deregistered or not, or no such live user.
	Count(ctx context.Context, key Key, change func(*Task)) error

	// Tasks returns the tasks of a live user, by provider, resource and kind; none if the
	// team has no such user.
	Tasks(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]Task, error)

	// Notify stores a notice: the report that a provider has new data of an account. If a notice of the provider with
	// this id is already stored, it changes nothing. Otherwise it lets change edit tasks, and writes them back: the
	// tasks of kind News with a Due, for the notice's resources, of Connected connections of live users of any team
	// whose external user id is exactly that of the notice. If the notice has a team, only connections of that team
	// that are bound to the notice's client count. Key cannot be changed. It returns the number of these tasks. Notices
	// from before forget may be deleted.
	Notify(ctx context.Context, n Notice, forget time.Time, change func(*Task)) (int, error)

	// UserStatuses returns the users of a query that have connections, with their tasks and refused items, by user id.
	UserStatuses(ctx context.Context, q UserStatusQuery) ([]UserStatus, error)

	// UpdateBudgets lets change edit the budgets of keys, in the order of keys, and writes them back. A budget that was
	// never written is zero. It returns Invalid if two keys are equal, and NotFound if a key has a user who is unknown
	// or deleted.
	UpdateBudgets(ctx context.Context, keys []BudgetKey, change func([]Budget) error) error

	// Quarantine stores refused items of a user's connection. If one with the same id is stored, only its At and Count
	// are updated. Only the [MaxRefusedPerUser] most recent ones of a user are kept, of equally old ones those with the
	// lowest ids.
	Quarantine(ctx context.Context, ref Ref, refused []RefusedItem) error

	// Quarantined returns up to n refused items of a live user, the latest first, then by id; none if the team has no
	// such user.
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
	// Providers are the slugs of the connections' providers, ascending, filtered by the query. Tasks are sorted by
	// provider, resource and kind. Refused has at most [MaxRefusedPerStatus] refused items, the most recent first, then
	// by id.
	Providers []string
	Tasks     []Task
	Refused   []RefusedItem
}

// MaxRefusedPerUser is the highest number of stored refused items of a user. A limit is needed because a provider may
// send invalid data again and again.
const MaxRefusedPerUser = 1000

// MaxRefusedPerStatus is the highest number of refused items in a [UserStatus].
const MaxRefusedPerStatus = 50

// RefusedItem is a refused item of a provider. It contains no measured value.
type RefusedItem struct {
	// ID is derived from the item and the reasons, so that the same item that is refused again has the same id.
	ID uuid.UUID `json:"id"`
	// Provider and Resource are the slugs of the item.
	Provider string `json:"provider"`
	Resource string `json:"resource"`
	// At is when the item was last refused, and Count how often.
	At    healthlab.Time `json:"last_seen_at"`
	Count int64          `json:"count"`
	// Reasons are the fields that made the item invalid, with the rules that they break.
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
	// Team and Client are set if the provider sent the message to a team's own OAuth client.
	Team   healthlab.TeamID
	Client string
	// ExternalUserID is the provider's own id of the account, compared byte for byte.
	ExternalUserID string
	// Resources are the slugs with new data; empty means all.
	Resources []string
	At        time.Time
}
