package bulk

import (
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Type says what an operation does.
type Type string

const (
	// HistoricalTrigger has histories fetched again.
	HistoricalTrigger Type = "link_bulk_historical_trigger"
	// ConnectionImport makes connections of tokens.
	ConnectionImport Type = "link_bulk_import"
)

// Status is where an operation stands.
type Status string

const (
	// InProgress: some users of the operation have no outcome yet.
	InProgress Status = "in_progress"
	// Success: the operation succeeded for all users.
	Success Status = "success"
	// Failure: all users have an outcome, and the operation failed for some: they are no
	// users of the team, or have not connected the provider. [Outcome] has the reason in an import.
	Failure Status = "failure"
	// Aborted: it was given up, because the provider is no longer configured, or bulk
	// operations are no longer enabled; an import also where the team's connections no longer
	// move.
	Aborted Status = "aborted"
)

// Op is work on many connections of one provider. Instants are in UTC; the zero time means
// never.
type Op struct {
	ID       uuid.UUID
	Team     healthlab.TeamID
	Type     Type
	Provider string
	Status   Status
	// Total is how many users it is about, and Next the place of the first who was not
	// dealt with. Failed is for how many nothing could be done.
	Total, Next, Failed int
	// Running are users who were dealt with and whose history is not over, where only so
	// many may be.
	Running            []healthlab.UserID
	StartedAt, EndedAt time.Time
	// Due is when it is to go on.
	Due time.Time
	// Lease is until when, on the store's clock, a process has it; zero if none has. Fence
	// counts the claims.
	Lease time.Time
	Fence int64
}

// LogValue shows which operation it is.
func (o Op) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", o.ID.String()), slog.String("team", o.Team.String()), slog.String("type", string(o.Type)), slog.String("provider", o.Provider))
}

// Processed is how many users were dealt with, and Pending how many were not.
func (o *Op) Processed() int { return o.Next - len(o.Running) }

// Pending is how many users were not dealt with.
func (o *Op) Pending() int { return o.Total - o.Processed() }

func (o Op) ended(as Status, at time.Time) Op {
	o.Status, o.EndedAt, o.Due, o.Running = as, at, time.Time{}, nil
	return o
}

// Item is a user of an operation, by place from 0 on.
type Item struct {
	N    int
	User healthlab.UserID
	// Grant is what a connection is to be made of, sealed. It has no Box in other
	// operations, once the item has an Outcome, and once the operation is over.
	Grant healthlab.Sealed
	// Outcome is what became of an item of an import; empty before, and in other
	// operations.
	Outcome Outcome
}

// LogValue shows the place and whose it is.
func (it Item) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("n", it.N), slog.String("user", it.User.String()))
}

// Outcome is what became of one connection of an import.
type Outcome string

const (
	// Connected: the connection is made.
	Connected Outcome = "made"
	// NoUser: the team has no such user.
	NoUser Outcome = "no_user"
	// AccountTaken: another user has connected the account, and the team refuses that.
	AccountTaken Outcome = "duplicate_connection"
	// ScopesMissing: the scopes are not among those granted that the team or the provider
	// requires.
	ScopesMissing Outcome = "required_scopes_not_granted"
	// Refused: the user cannot have the connection, as one whose data is made up.
	Refused Outcome = "refused"
)

// ListPosition is where an operation stands in the list of its team.
type ListPosition struct {
	StartedAt time.Time
	ID        uuid.UUID
}
