package bulk

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Store keeps bulk operations, and reads connections together with what they fetch with,
// beside the users of healthdata.Users and the credentials of linking.Store: one adapter,
// one place.
//
// All methods are safe for concurrent use and atomic: either everything a call writes is
// there, or nothing is. A context that has ended before a call writes nothing and is the
// error. What a call takes and returns is a copy. Text that is not UTF-8 or has a NUL is
// healthlab.Invalid. Times are kept in UTC to the microsecond. An id that the team does not
// have is healthlab.NotFound.
//
// When a user is erased, it is taken out of all operations.
type Store interface {
	// Connections returns the connections that a query asks for, by user id.
	Connections(ctx context.Context, q ConnectionQuery) ([]Connection, error)

	// Submit adds an operation with its items, none of which has an Outcome; their places
	// are 0, 1, …, whatever they say. Conflict if its id is taken, by any team. Invalid
	// without id or team. Whether the users are there is not looked at.
	Submit(ctx context.Context, op Op, items []Item) error

	// Op returns an operation.
	Op(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (Op, error)

	// Items returns up to n items of an operation from a place on, by place; none if the
	// team has no such operation. Those of users who were erased are left out.
	Items(ctx context.Context, team healthlab.TeamID, id uuid.UUID, from, n int) ([]Item, error)

	// Claim takes up to n operations of any team that are InProgress and due by now, the
	// caller's clock, and whose Lease has ended by the store's clock. Of each team and provider
	// it takes only the operation that began first, of equal ones that with the lowest id. The
	// order is the longest due first, then by id.
	// It sets their Lease to the end of the lease on the store's own clock, adds one to their
	// Fence, and returns them so.
	Claim(ctx context.Context, n int, now time.Time, lease time.Duration) ([]Op, error)

	// UpdateOp lets change edit an operation and writes it back. ID, Team, Type, Provider,
	// Total and StartedAt are the store's: what change does to them is undone. Running is
	// kept by place, and only users of the operation can be in it. Once an operation is not
	// InProgress, its items have no Grant. A change may run more than once, so it is pure: no
	// I/O, no clock, no calls to a store. Its error is returned unchanged, and nothing is
	// written.
	UpdateOp(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change func(*Op) error) (Op, error)

	// Import lets c.Change edit the user of an item, as healthdata.Users.Update does, and
	// writes it in one step with the events, the credential and the item, whose Outcome
	// becomes Made and whose Grant goes. An item without a Grant is left alone. It
	// returns the item's Outcome. NotFound if the team has no such item, or no such user,
	// live or deleted. After Change succeeded, an account that another live user has is a
	// [*linking.AccountTakenError], and nothing is written; racing calls do not both get it.
	Import(ctx context.Context, c Import) (Outcome, error)

	// Reject gives an item an Outcome, and its Grant goes. An item without a Grant is left
	// alone. It returns the item's Outcome. NotFound if the team has no such item.
	Reject(ctx context.Context, team healthlab.TeamID, id uuid.UUID, n int, why Outcome) (Outcome, error)

	// Ops returns up to n operations of a team from before a place on, the zero place being
	// after all: those that began last first, then by id, the highest first.
	Ops(ctx context.Context, team healthlab.TeamID, before ListPosition, n int) ([]Op, error)

	// Prune forgets up to n operations of any team that are not InProgress and whose EndedAt
	// is before an instant, those that ended first, with their items, and returns how many
	// they were. Two calls at the same time never forget the same one.
	Prune(ctx context.Context, n int, before time.Time) (int, error)
}

// Import is the connection that an item of an operation asks for.
type Import struct {
	Team healthlab.TeamID
	// Op and N name the item.
	Op uuid.UUID
	N  int
	// Credential replaces that of the user and provider. Its User is the item's.
	Credential linking.Credential
	// Sole is as in linking.Completion.
	Sole *string
	// Change edits the user and returns the events. It is pure, as in UpdateOp.
	Change func(*healthdata.User) ([]healthlab.Event, error)
}

// ConnectionQuery asks for a team's connections to one provider.
type ConnectionQuery struct {
	Team     healthlab.TeamID
	Provider string
	// Users are the only ones who count; nil means all.
	Users []healthlab.UserID
	// After is whom to begin after, and N how many to return at most.
	After healthlab.UserID
	N     int
}

// Connection is the connection of a live user that is not Deregistered and has a credential.
type Connection struct {
	// Credential says whose it is.
	linking.Credential
	// ExternalUserID and Scopes are the connection's.
	ExternalUserID *string
	Scopes         []string
}

// LogValue shows whose it is.
func (h Connection) LogValue() slog.Value { return h.Credential.LogValue() }
