package healthlab

import (
	"fmt"

	"github.com/google/uuid"
)

// TeamID names a team: the customer whose users and orders these are. A team sees
// its own things only; what belongs to another team is [NotFound] to it.
//
// The zero value is no team, and no store accepts it.
type TeamID struct{ uuid.UUID }

// UserID names a person whose data a team keeps. It is issued by the service (UUID
// version 4, which does not tell when the person joined) and never used again.
//
// The zero value is no user. In an [Event] it means that the event is about no user.
type UserID struct{ uuid.UUID }

// IsZero reports whether the id is the zero value.
func (t TeamID) IsZero() bool { return t.UUID == uuid.Nil }

// IsZero reports whether the id is the zero value.
func (u UserID) IsZero() bool { return u.UUID == uuid.Nil }

// Environment says which of its two worlds a service serves. Every team has both,
// with separate users, keys and settings; one running service is one of them.
type Environment string

const (
	// Sandbox has invented people: demo connections and simulated labs work, and
	// the number of a team's users is limited.
	Sandbox Environment = "sandbox"
	// Production has real people. What only a sandbox may do is refused.
	Production Environment = "production"
)

// Check returns Invalid unless e is Sandbox or Production. Services take no default: a
// wrong one would let invented people into production, or refuse real ones.
func (e Environment) Check() error {
	if e != Sandbox && e != Production {
		return fmt.Errorf("%w: Options.Environment must be sandbox or production", Invalid)
	}
	return nil
}
