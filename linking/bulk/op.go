package bulk

import (
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Type is the kind of an operation.
type Type string

const (
	// HistoricalTrigger fetches histories again.
	HistoricalTrigger Type = "link_bulk_historical_trigger"
	// ConnectionImport makes connections from tokens.
	ConnectionImport Type = "link_bulk_import"
)

// Status is the state of an operation.
type Status string

const (
	// InProgress: some users of the operation have no outcome yet.
	InProgress Status = "in_progress"
	// Success: the operation succeeded for all users.
	Success Status = "success"
	// Failure: all users have an outcome, and the operation failed for some of them, for example because they are not
	// users of the team or have not connected the provider. In an import, [Outcome] has the reason for each user.
	Failure Status = "failure"
	// Aborted: the operation ended early, because the provider is no longer configured, or bulk operations are no
	// longer enabled for the team. An import also ends early if the team can no longer move connections of the
	// provider.
	Aborted Status = "aborted"
)

// Op is an operation on many connections of one provider. Instants are in UTC; the zero time means never.
type Op struct {
	ID       uuid.UUID
	Team     healthlab.TeamID
	Type     Type
	Provider string
	Status   Status
	// Total is the number of users, Next the index of the first user that is not processed, and Failed the
	// number of users for whom the operation failed.
	Total, Next, Failed int
	// Running are processed users whose history is still being fetched. It is used only at a provider that limits the
	// number of concurrent fetches.
	Running            []healthlab.UserID
	StartedAt, EndedAt time.Time
	// Due is when the next users are processed; zero after the end.
	Due time.Time
	// Lease is when the lease of the claiming process ends, on the store's clock; zero if there is none. Fence
	// is the number of claims.
	Lease time.Time
	Fence int64
}

// LogValue contains the ids of the operation.
func (o Op) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", o.ID.String()), slog.String("team", o.Team.String()), slog.String("type", string(o.Type)), slog.String("provider", o.Provider))
}

// Processed returns the number of processed users.
func (o *Op) Processed() int { return o.Next - len(o.Running) }

// Pending returns the number of users that are not processed.
func (o *Op) Pending() int { return o.Total - o.Processed() }

func (o Op) ended(as Status, at time.Time) Op {
	o.Status, o.EndedAt, o.Due, o.Running = as, at, time.Time{}, nil
	return o
}

// Item is a user of an operation, by index from 0.
type Item struct {
	N    int
	User healthlab.UserID
	// Grant is the sealed data of the connection to make. It has no Box in other operations, after the item has
	// an Outcome, and after the operation has ended.
	Grant healthlab.Sealed
	// Outcome is the result of an item of an import; empty before the item is processed, and in other operations.
	Outcome Outcome
}

// LogValue contains the item's index and its user.
func (it Item) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("n", it.N), slog.String("user", it.User.String()))
}

// Outcome is the result of one connection of an import.
type Outcome string

const (
	// Connected: the connection was made.
	Connected Outcome = "made"
	// NoUser: the team has no such user.
	NoUser Outcome = "no_user"
	// AccountTaken: another user has connected the account, and the team refuses duplicates.
	AccountTaken Outcome = "duplicate_connection"
	// ScopesMissing: a scope that the team or the provider requires was not granted.
	ScopesMissing Outcome = "required_scopes_not_granted"
	// Refused: the user cannot have the connection, for example a user with generated data.
	Refused Outcome = "refused"
)

// ListPosition is the position of an operation in [Store].Ops of its team.
type ListPosition struct {
	StartedAt time.Time
	ID        uuid.UUID
}
