package bulk

import (
	"context"
	"log/slog"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

// Store reads connections together with what they fetch with, beside the users of
// healthdata.Users and the credentials of linking.Store: one adapter, one place.
//
// All methods are safe for concurrent use. A context that has ended before a call is the
// error. What a call takes and returns is a copy. Text that is not UTF-8 or has a NUL is
// healthlab.Invalid. Times are in UTC to the microsecond.
type Store interface {
	// Held returns the connections that a query asks for, by user id.
	Held(ctx context.Context, q HeldQuery) ([]Held, error)
}

// HeldQuery asks for a team's connections to one provider.
type HeldQuery struct {
	Team     healthlab.TeamID
	Provider string
	// Users are the only ones who count; nil means all.
	Users []healthlab.UserID
	// After is whom to begin after, and N how many to return at most.
	After healthlab.UserID
	N     int
}

// Held is the connection of a live user that is not Deregistered and has a credential.
type Held struct {
	// Credential says whose it is.
	linking.Credential
	// ExternalUserID and Scopes are the connection's.
	ExternalUserID *string
	Scopes         []string
}

// LogValue shows whose it is.
func (h Held) LogValue() slog.Value { return h.Credential.LogValue() }
