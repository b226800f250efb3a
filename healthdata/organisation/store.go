package organisation

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Team is a team of an organisation.
type Team struct {
	ID   healthlab.TeamID
	Org  uuid.UUID
	Name string
	// IntegrationID is the organisation's own name for it; empty if it has none.
	IntegrationID string
	// CreatedAt and UpdatedAt are in UTC.
	CreatedAt, UpdatedAt time.Time
}

// Key is an API key of a team, as it is kept.
type Key struct {
	ID   uuid.UUID
	Team healthlab.TeamID
	// Label tells people which one it is.
	Label string
	// Hint is what may be shown of it: its prefix and its last characters.
	Hint string
	// Sum is the SHA-256 of the whole key.
	Sum [sha256.Size]byte
	// Scopes are what the key may do; empty means everything.
	Scopes Scopes
	// CreatedAt, ExpiresAt and LastUsedAt are in UTC. A zero ExpiresAt means never. LastUsedAt
	// is exact to [UseInterval]; zero means never.
	CreatedAt, ExpiresAt, LastUsedAt time.Time
}

// LogValue shows which one it is.
func (k Key) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", k.ID.String()), slog.String("team", k.Team.String()))
}

// Query asks for teams of an organisation.
type Query struct {
	Org uuid.UUID
	// IntegrationID is that of the only one; empty for any.
	IntegrationID string
	// After is the id to begin after, and N how many to return at most.
	After healthlab.TeamID
	N     int
}

// Store keeps teams and keys. Methods are safe for concurrent use and atomic: either
// everything a call writes is there, or nothing is. A context that has ended before a call
// writes nothing and is the error. Text that is not UTF-8 or has a NUL is healthlab.Invalid.
// Times are kept in UTC to the microsecond. A team that was deleted is healthlab.NotFound,
// as is one of another organisation.
type Store interface {
	// InsertTeam adds a team. Conflict if its id is taken, by a deleted team, too; an
	// [*IntegrationTakenError] if a team of the organisation has its IntegrationID.
	// Invalid without id, organisation or name.
	InsertTeam(ctx context.Context, t Team) error

	// Team returns a team of any organisation.
	Team(ctx context.Context, id healthlab.TeamID) (Team, error)

	// Teams returns teams by id.
	Teams(ctx context.Context, q Query) ([]Team, error)

	// UpdateTeam lets change edit a team and writes it back. ID, Org and CreatedAt are the
	// store's. An error of change is returned unchanged, and nothing is written; change may
	// run more than once, so it is pure. An [*IntegrationTakenError] as of InsertTeam.
	// Concurrent updates behave as if they ran one after another.
	UpdateTeam(ctx context.Context, org uuid.UUID, id healthlab.TeamID, change func(*Team) error) (Team, error)

	// DeleteTeam deletes a team without live users, with its keys, what it has chosen
	// (teamsettings.Store) and its clients (linking.TeamClients). A [*NotEmptyError] if it
	// has users.
	DeleteTeam(ctx context.Context, org uuid.UUID, id healthlab.TeamID, at time.Time) error

	// InsertKey adds a key, of which a team has at most so many. Conflict if its id or sum
	// is taken, [*TooManyKeysError], Invalid without id, team or sum.
	InsertKey(ctx context.Context, k Key, most int) error

	// Keys returns the keys of a team, the oldest first, then by id; none if there is no
	// such team.
	Keys(ctx context.Context, team healthlab.TeamID) ([]Key, error)

	// Key returns a key of any team, by its id.
	Key(ctx context.Context, id uuid.UUID) (Key, error)

	// FindKey returns a key of any team, by its sum.
	FindKey(ctx context.Context, sum [sha256.Size]byte) (Key, error)

	// RotateKey inserts next and sets the ExpiresAt of the key id of the same team to until,
	// unless that key expires earlier. Errors as of InsertKey; NotFound if the team has no key id.
	RotateKey(ctx context.Context, id uuid.UUID, until time.Time, next Key, most int) error

	// TouchKey sets LastUsedAt of a key, unless it is later already. It does nothing if the
	// team has no such key.
	TouchKey(ctx context.Context, team healthlab.TeamID, id uuid.UUID, at time.Time) error

	// DeleteKey deletes a key of a team. NotFound if there is none.
	DeleteKey(ctx context.Context, team healthlab.TeamID, id uuid.UUID) error
}

// IntegrationTakenError says that a team of the organisation has this IntegrationID. It
// unwraps to healthlab.Conflict.
type IntegrationTakenError struct{ Team healthlab.TeamID }

// Error says the rule.
func (*IntegrationTakenError) Error() string {
	return "another team of the organisation has this integration id"
}

// Unwrap returns healthlab.Conflict.
func (*IntegrationTakenError) Unwrap() error { return healthlab.Conflict }

// NotEmptyError says that a team has users. It unwraps to healthlab.Precondition.
type NotEmptyError struct{ Users int }

// Error says how many.
func (e *NotEmptyError) Error() string { return fmt.Sprintf("the team has %d users", e.Users) }

// Unwrap returns healthlab.Precondition.
func (*NotEmptyError) Unwrap() error { return healthlab.Precondition }

// TooManyKeysError says that a team has as many keys as it can have. It unwraps to
// healthlab.Precondition.
type TooManyKeysError struct{ Most int }

// Error says how many.
func (e *TooManyKeysError) Error() string { return fmt.Sprintf("a team has at most %d keys", e.Most) }

// Unwrap returns healthlab.Precondition.
func (*TooManyKeysError) Unwrap() error { return healthlab.Precondition }
