package pull

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Store keeps tasks, budgets and quarantined items. The adapter that implements it also
// implements healthdata.Users, because methods read and write connections too.
//
// All methods are safe for concurrent use and atomic: either everything a call writes is
// there, or nothing is. A context that has ended before a call writes nothing and is the
// error. What a call takes and returns is a copy. Text that is not UTF-8 or has a NUL is
// healthlab.Invalid. Times are kept in UTC to the microsecond. An id that the team
// does not have is healthlab.NotFound.
//
// A change may run more than once, so it is pure: no I/O, no clock, no calls to a store.
// Its error is returned unchanged, and nothing is written. Concurrent changes of one thing
// behave as if they ran one after another.
//
// When a user is erased, so are its tasks, budgets and quarantine.
type Store interface {
	// ClaimConnections returns up to n connections, whatever their status, of live users
	// of any team whose Due is set and not after now, the longest due first, and sets
	// their Due to until. That is no new revision of the user. Two claims that run
	// at the same time never return the same one. Both instants are of the caller's clock:
	// two processes whose clocks differ may look after one connection, and Plan, which is
	// atomic, comes to the same.
	ClaimConnections(ctx context.Context, n int, now, until time.Time) ([]Ref, error)

	// Plan lets change make a new set of tasks for a connection out of the old one, and
	// writes it with the events and the connection's next Due. The user is not changed,
	// and there is no new revision. Tasks that are left out are gone; those that are kept
	// are written as they are returned. NotFound if there is no such live user, or the
	// user has no such connection, Deregistered or not; Invalid if a task is of another
	// connection, or there twice.
	Plan(ctx context.Context, ref Ref, change func(c healthdata.Connection, u healthdata.User, old []Task) (ConnectionPlan, error)) error

	// Claim takes up to n tasks of any team whose Due is set and not after Now, and whose
	// Lease has ended: of those the ones with the lowest Turn, of equal ones the
	// longest due, then by user, provider, resource and kind. It sets their Lease to the end
	// of the lease, adds one to their Fence, and returns them so.
	Claim(ctx context.Context, q ClaimQuery) ([]Task, error)

	// Update lets change edit a task and writes it back with the events. Key is the
	// store's: what change does to it is undone.
	Update(ctx context.Context, key Key, change func(*Task) ([]healthlab.Event, error)) (Task, error)

	// Count lets change edit a task as Update does, without events, or a new task with this key and
	// the LinkedAt of the connection. The user is not held, so counts of different tasks of a user
	// do not wait for each other. NotFound if there is no task and no such connection, Deregistered or
	// not, or no such live user.
	Count(ctx context.Context, key Key, change func(*Task)) error

	// Tasks returns the tasks of a live user, by provider, resource and kind; none if the
	// team has no such user.
	Tasks(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]Task, error)

	// Notify notes that a provider has something new. Unless a notice of the provider with
	// this id is known, which is so for a while after it came, it lets change edit every
	// task of the kind News that is not off the queue (its Due is set), of the notice's
	// resources, of Connected connections of live users of any team with exactly this
	// external user id, and writes them back. With a team, it is only about connections of
	// that team that are bound to the notice's client. Key is the store's. It returns how many
	// tasks these were. Notices from before forget may be forgotten.
	Notify(ctx context.Context, n Notice, forget time.Time, change func(*Task)) (int, error)

	// UserStatuses returns who of a team has connected something, with what was and is to be
	// fetched of that.
	UserStatuses(ctx context.Context, q UserStatusQuery) ([]UserStatus, error)

	// UpdateBudgets lets change edit budgets, in the order of the keys, and writes them
	// back. One that was never written has its zero value. Two equal keys are Invalid; a
	// user who is not there is NotFound.
	UpdateBudgets(ctx context.Context, keys []BudgetKey, change func([]Budget) error) error

	// Quarantine adds refusals of a user's connection. Of one that is there already, by
	// its id, only At and the count are renewed. Of a user the [MaxRefusedPerUser] that were
	// last seen are kept, by id of those seen together.
	Quarantine(ctx context.Context, ref Ref, refused []RefusedItem) error

	// Quarantined returns the refusals of a live user, the latest first, then by id, at
	// most n; none if the team has no such user.
	Quarantined(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, n int) ([]RefusedItem, error)
}

// ConnectionPlan is what becomes of a connection.
type ConnectionPlan struct {
	Tasks  []Task
	Events []healthlab.Event
	// Due is when to look at it next; zero for never.
	Due time.Time
}

// ClaimQuery says which tasks to take.
type ClaimQuery struct {
	N int
	// Without are applications whose tasks stay, as [Task.App] names them.
	Without []string
	// Now is the caller's clock: what is due goes by it, as budgets do.
	Now time.Time
	// Lease runs on the store's own clock.
	Lease time.Duration
}

// UserStatusQuery asks for the people of a team.
type UserStatusQuery struct {
	Team healthlab.TeamID
	// User is one of them, if it is set, and Provider the one that they have connected.
	User     healthlab.UserID
	Provider string
	// After is whom to begin after, and N how many to return at most.
	After healthlab.UserID
	N     int
}

// UserStatus is a live user who has connections that are not Deregistered. They come by user
// id.
type UserStatus struct {
	User healthlab.UserID
	// Providers are those of the connections, ascending; the query's alone, if it has one.
	// The others are of those: Tasks by provider, resource and kind, and Refused what was
	// last seen first, then by id, at most [MaxRefusedPerStatus].
	Providers []string
	Tasks     []Task
	Refused   []RefusedItem
}

// MaxRefusedPerUser is how many refusals of a user are kept: a provider may send nonsense for
// ever.
const MaxRefusedPerUser = 1000

// MaxRefusedPerStatus is how many refusals come with a person.
const MaxRefusedPerStatus = 50

// RefusedItem is something that a provider sent and that was not kept. It says nothing of what
// was measured.
type RefusedItem struct {
	// ID is made of what was refused and why, so that the same thing is the same refusal,
	// however often it comes.
	ID uuid.UUID `json:"id"`
	// Provider and Resource are slugs.
	Provider string `json:"provider"`
	Resource string `json:"resource"`
	// At is when it was last seen, and Count how often.
	At    healthlab.Time `json:"last_seen_at"`
	Count int64          `json:"count"`
	// Reasons name fields and rules.
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

// Notice says that a provider has something new.
type Notice struct {
	// ID is made of the provider's own name for it.
	ID       [32]byte
	Provider string
	// Team and Client are set if it came to the team's own client.
	Team   healthlab.TeamID
	Client string
	// ExternalUserID is the account, byte for byte.
	ExternalUserID string
	// Resources are slugs; empty means all.
	Resources []string
	At        time.Time
}
