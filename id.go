package healthlab

import (
	"fmt"

	"github.com/google/uuid"
)

// TeamID identifies a team: a customer with its users and orders. A team can access its own data only; data of
// another team is [NotFound].
//
// The zero value is no team, and no store accepts it.
type TeamID struct{ uuid.UUID }

// UserID identifies a person whose data a team stores. The service creates it as a UUID of version 4, which does not
// reveal the time, and never gives it to another user.
//
// The zero value is no user. In an [Event] it means that the event is about no user.
type UserID struct{ uuid.UUID }

// IsZero reports whether the id is the zero value.
func (t TeamID) IsZero() bool { return t.UUID == uuid.Nil }

// IsZero reports whether the id is the zero value.
func (u UserID) IsZero() bool { return u.UUID == uuid.Nil }

// Environment is sandbox or production. Every team has both, with separate users, keys and settings; a running service
// serves one of the two.
type Environment string

const (
	// Sandbox has invented people: demo connections and simulated labs are allowed, and the number of a team's
	// users is limited.
	Sandbox Environment = "sandbox"
	// Production has real people. Operations for a sandbox only are refused.
	Production Environment = "production"
)

// Check returns Invalid unless e is Sandbox or Production. There is no default, because a wrong one would allow
// invented people in production, or refuse real ones.
func (e Environment) Check() error {
	if e != Sandbox && e != Production {
		return fmt.Errorf("%w: Options.Environment must be sandbox or production", Invalid)
	}
	return nil
}
