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
	// IntegrationID is the organisation's own name for the team; empty if there is none.
	IntegrationID string
	// CreatedAt and UpdatedAt are in UTC.
	CreatedAt, UpdatedAt time.Time
}

// Key is an API key of a team in its stored form.
type Key struct {
	ID   uuid.UUID
	Team healthlab.TeamID
	// Label is a name of the key for people.
	Label string
	// Hint is the visible part of the key: its prefix and its last characters.
	Hint string
	// Sum is the SHA-256 of the whole key.
	Sum [sha256.Size]byte
	// Scopes are the permissions of the key; empty means all.
	Scopes Scopes
	// CreatedAt, ExpiresAt and LastUsedAt are in UTC. A zero ExpiresAt means never. LastUsedAt
	// is exact to [UseInterval]; zero means never.
	CreatedAt, ExpiresAt, LastUsedAt time.Time
}

// LogValue contains the id, the team and the hint.
func (k Key) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", k.ID.String()), slog.String("team", k.Team.String()))
}

// Query selects teams of an organisation.
type Query struct {
	Org uuid.UUID
	// IntegrationID selects the team with this id; empty means any.
	IntegrationID string
	// After is the id after which the page begins, and N the greatest number of teams.
	After healthlab.TeamID
	N     int
}

// Store stores teams and keys. Methods are safe for concurrent use and atomic: a call writes everything or nothing. If
// the context has ended before a call, the call writes nothing and returns the error of the context. Text that is not
// UTF-8 or has a NUL is healthlab.Invalid. Times are stored in UTC to the microsecond. Methods return
// healthlab.NotFound for a deleted team, and for a team of another organisation than the given one.
type Store interface {
	// InsertTeam adds a team. It returns Conflict if a live or deleted team has its id, an
	// [*IntegrationTakenError] if a team of the organisation has its IntegrationID, and Invalid without id,
	// organisation or name.
	InsertTeam(ctx context.Context, t Team) error

	// Team returns a team of any organisation.
	Team(ctx context.Context, id healthlab.TeamID) (Team, error)

	// Teams returns the teams that q selects, ascending by id.
	Teams(ctx context.Context, q Query) ([]Team, error)

	// UpdateTeam lets change edit a team and writes it back. ID, Org and CreatedAt cannot be changed. An error of
	// change is returned unchanged, and nothing is written. change may run more than once, so it must be pure.
	// UpdateTeam returns an [*IntegrationTakenError] if another team of the organisation has the new IntegrationID.
	// Concurrent updates behave as if they ran one after another.
	UpdateTeam(ctx context.Context, org uuid.UUID, id healthlab.TeamID, change func(*Team) error) (Team, error)

	// DeleteTeam deletes a team without live users, with its keys, its settings (teamsettings.Store) and its OAuth
	// clients (linking.TeamClients). It returns a [*NotEmptyError] if the team has users.
	DeleteTeam(ctx context.Context, org uuid.UUID, id healthlab.TeamID) error

	// InsertKey adds a key to a team. It returns a [*TooManyKeysError] if the team has most keys or more, Conflict if
	// the id or the hash is taken, and Invalid without id, team or hash.
	InsertKey(ctx context.Context, k Key, most int) error

	// Keys returns the keys of a team, the oldest first, then by id; none if there is no
	// such team.
	Keys(ctx context.Context, team healthlab.TeamID) ([]Key, error)

	// Key returns a key of any team, by its id.
	Key(ctx context.Context, id uuid.UUID) (Key, error)

	// FindKeys returns the keys of any team with these hashes, by hash. Unknown hashes are left out.
	FindKeys(ctx context.Context, sums [][sha256.Size]byte) (map[[sha256.Size]byte]Key, error)

	// RotateKey inserts next and sets ExpiresAt of the key with the id to until, unless that key expires earlier. Both
	// keys are of one team. The errors are those of InsertKey, and NotFound if the team has no key with the id.
	RotateKey(ctx context.Context, id uuid.UUID, until time.Time, next Key, most int) error

	// TouchKey sets LastUsedAt of a key, unless it is already later. It does nothing if the team has no such
	// key.
	TouchKey(ctx context.Context, team healthlab.TeamID, id uuid.UUID, at time.Time) error

	// DeleteKey deletes a key of a team. It returns NotFound if there is no such key.
	DeleteKey(ctx context.Context, team healthlab.TeamID, id uuid.UUID) error
}

// IntegrationTakenError reports that a team of the organisation has the same IntegrationID. It unwraps to
// healthlab.Conflict.
type IntegrationTakenError struct{ Team healthlab.TeamID }

// Error returns a text without the id of the team.
func (*IntegrationTakenError) Error() string {
	return "another team of the organisation has this integration id"
}

// Unwrap returns healthlab.Conflict.
func (*IntegrationTakenError) Unwrap() error { return healthlab.Conflict }

// NotEmptyError reports that a team has users. It unwraps to healthlab.Precondition.
type NotEmptyError struct{ Users int }

// Error returns a text with the number of users.
func (e *NotEmptyError) Error() string { return fmt.Sprintf("the team has %d users", e.Users) }

// Unwrap returns healthlab.Precondition.
func (*NotEmptyError) Unwrap() error { return healthlab.Precondition }

// TooManyKeysError reports that a team has the greatest number of keys. It unwraps to healthlab.Precondition.
type TooManyKeysError struct{ Most int }

// Error returns a text with the greatest number.
func (e *TooManyKeysError) Error() string { return fmt.Sprintf("a team has at most %d keys", e.Most) }

// Unwrap returns healthlab.Precondition.
func (*TooManyKeysError) Unwrap() error { return healthlab.Precondition }
