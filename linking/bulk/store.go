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

// Store stores bulk operations, and reads connections with their credentials. One adapter implements it together
// with healthdata.Users and linking.Store.
//
// All methods are safe for concurrent use and atomic: either everything a call writes is there, or nothing is. A
// context that has ended before a call writes nothing and is the error. Arguments and results are copies. Text
// that is not UTF-8 or has a NUL is healthlab.Invalid. Times are kept in UTC to the microsecond. An id that the
// team does not have is healthlab.NotFound.
//
// An erased user is removed from all operations.
type Store interface {
	// Connections returns the connections of a query, by user id.
	Connections(ctx context.Context, q ConnectionQuery) ([]Connection, error)

	// Submit adds an operation with its items. Items have no Outcome, and their indexes are set to 0, 1, …. It
	// returns Conflict if any team has its id, and Invalid without id or team. It does not check whether the
	// users exist.
	Submit(ctx context.Context, op Op, items []Item) error

	// Op returns an operation.
	Op(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (Op, error)

	// Items returns up to n items of an operation from an index on; none if the team has no such operation.
	// Items of erased users are left out.
	Items(ctx context.Context, team healthlab.TeamID, id uuid.UUID, from, n int) ([]Item, error)

	// Claim claims up to n operations of any team that are InProgress and due by now, the caller's clock, and
	// whose Lease has ended by the store's clock. Of each team and provider it takes only the operation that
	// began first, of equal ones that with the lowest id. The order is the longest due first, then by id. It
	// sets their Lease to the end of the lease on the store's own clock, adds one to their Fence, and returns
	// the changed operations.
	Claim(ctx context.Context, n int, now time.Time, lease time.Duration) ([]Op, error)

	// UpdateOp lets change edit an operation and writes it back. ID, Team, Type, Provider, Total and StartedAt
	// cannot be changed. Running is sorted by index, and users that are not in the operation are left out. Once
	// an operation is not InProgress, its items have no Grant. A change may run more than once, so it is pure:
	// no I/O, no clock, no calls to a store. Its error is returned unchanged, and nothing is written.
	UpdateOp(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change func(*Op) error) (Op, error)

	// Import lets c.Change edit the user of an item, as healthdata.Users.Update does, and writes it in one step
	// with the events, the credential and the item, whose Outcome becomes Connected and whose Grant is removed.
	// An item without a Grant is not changed. It returns the item's Outcome. NotFound if the team has no such
	// item, or no such user, live or deleted. After Change succeeded, an account that another live user has is a
	// [*linking.AccountTakenError], and nothing is written; racing calls do not both get it.
	Import(ctx context.Context, c Import) (Outcome, error)

	// Reject sets the Outcome of an item and removes its Grant. An item without a Grant is not changed. It
	// returns the item's Outcome, or NotFound if the team has no such item.
	Reject(ctx context.Context, team healthlab.TeamID, id uuid.UUID, n int, why Outcome) (Outcome, error)

	// Ops returns up to n operations of a team before a position, the latest first, then by id, the highest
	// first. The zero position is after all.
	Ops(ctx context.Context, team healthlab.TeamID, before ListPosition, n int) ([]Op, error)

	// Prune deletes up to n operations of any team that are not InProgress and whose EndedAt is before an
	// instant, the earliest first, with their items, and returns their number. Two concurrent calls never delete
	// the same operation.
	Prune(ctx context.Context, n int, before time.Time) (int, error)
}

// Import is the connection to make for an item of an operation.
type Import struct {
	Team healthlab.TeamID
	// Op and N identify the item.
	Op uuid.UUID
	N  int
	// Credential replaces the credential of the user and provider. Its User is that of the item.
	Credential linking.Credential
	// Sole is the account that no other live user may have connected, as in linking.Completion.
	Sole *string
	// Change edits the user and returns the events. It is pure, as in UpdateOp.
	Change func(*healthdata.User) ([]healthlab.Event, error)
}

// ConnectionQuery selects a team's connections to one provider.
type ConnectionQuery struct {
	Team     healthlab.TeamID
	Provider string
	// Users are the selected users; nil means all.
	Users []healthlab.UserID
	// After is the user id after which the page begins, and N the greatest number of connections.
	After healthlab.UserID
	N     int
}

// Connection is the connection of a live user that is not Deregistered and has a credential.
type Connection struct {
	// Credential has the team, the user and the provider.
	linking.Credential
	// ExternalUserID and Scopes are those of the connection.
	ExternalUserID *string
	Scopes         []string
}

// LogValue logs the ids of the connection and not its secret.
func (h Connection) LogValue() slog.Value { return h.Credential.LogValue() }
