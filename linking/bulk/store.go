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

// Store stores bulk operations, and reads connections with their credentials. One adapter implements it together with
// healthdata.Users and linking.Store.
//
// All methods are safe for concurrent use and atomic: either everything a call writes is there, or nothing is. A call
// whose context has already ended writes nothing and returns the context's error. Arguments and results are copies.
// Text that is not UTF-8 or has a NUL is healthlab.Invalid. Times are kept in UTC to the microsecond. An id that the
// team does not have is healthlab.NotFound.
//
// An erased user is removed from all operations.
type Store interface {
	// Connections returns the connections of a query, by user id.
	Connections(ctx context.Context, q ConnectionQuery) ([]Connection, error)

	// Submit adds an operation with its items. Items have no Outcome, and Submit sets their indexes to 0, 1, …. It
	// returns Conflict if an operation of any team has the id, and Invalid without id or team. It does not check
	// whether the users exist.
	Submit(ctx context.Context, op Op, items []Item) error

	// Op returns an operation.
	Op(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (Op, error)

	// Items returns up to n items of an operation, beginning with index from; none if the team has no such operation.
	// Items of erased users are left out.
	Items(ctx context.Context, team healthlab.TeamID, id uuid.UUID, from, n int) ([]Item, error)

	// Claim claims up to n operations of any team that are InProgress, are due at now (the caller's clock), and whose
	// Lease has ended by the store's clock. Of the operations of one team at one provider, it claims only the one that
	// began first, or the lowest id if several began at once. The operation that has been due longest comes first, then
	// the lowest id. Claim sets Lease to lease after the store's present time, adds one to Fence, and returns the
	// changed operations.
	Claim(ctx context.Context, n int, now time.Time, lease time.Duration) ([]Op, error)

	// UpdateOp lets change edit an operation and writes it back. ID, Team, Type, Provider, Total and StartedAt
	// cannot be changed. Running is sorted by index, and users that are not in the operation are left out. Once
	// an operation is not InProgress, its items have no Grant. A change may run more than once, so it is pure:
	// no I/O, no clock, no calls to a store. Its error is returned unchanged, and nothing is written.
	UpdateOp(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change func(*Op) error) (Op, error)

	// Import lets c.Change edit the user of an item, as healthdata.Users.Update does, and writes the user, the events,
	// the credential and the item in one step. The item's Outcome becomes Connected, and its Grant is removed. An item
	// without a Grant is not changed. Import returns the item's Outcome. It returns NotFound if the team has no such
	// item or no such user, live or deleted. If another live user has the account, it returns a
	// [*linking.AccountTakenError] after Change succeeded, and writes nothing. Of two concurrent calls for one account,
	// at most one succeeds.
	Import(ctx context.Context, c Import) (Outcome, error)

	// Reject sets the Outcome of item n to why and removes its Grant. An item without a Grant is not changed. It
	// returns the item's Outcome, or NotFound if the team has no such item.
	Reject(ctx context.Context, team healthlab.TeamID, id uuid.UUID, n int, why Outcome) (Outcome, error)

	// Ops returns up to n operations of a team that come after the position before in the list: the latest first, of
	// equal times the highest id first. The zero position means the start of the list.
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
