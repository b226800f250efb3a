package receiver

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Seen remembers handled messages and the version of each object. Its own clock decides when a lease or an entry
// ends. One Seen is for one receiver: two receivers of the same messages need two.
//
// Ids and keys are compared byte for byte; one with a NUL is refused as Invalid. All
// methods are atomic and safe for concurrent use, by several processes if those share
// it. If ctx has ended before a call, the error is the context's and nothing changes.
// Any other error means that the outcome is unknown; every method may be called again.
type Seen interface {
	// Claim tries to lease a message, and the object that it is about, to c.Token before the message is handled. The
	// verdict is
	//
	//   - Repeated if the id was marked by Done less than Keep ago;
	//   - Busy if another claim holds the id, and its lease has not ended;
	//   - Outdated if a version of the key is remembered and c.Version is before it
	//     (see Version.Before);
	//   - Busy if another claim holds the key, and its lease has not ended;
	//   - else Fresh: c.Token now holds the id and the key for c.Lease.
	//
	// The first condition that is true decides. Every verdict but Fresh changes nothing. Without a key only the id
	// counts.
	Claim(ctx context.Context, c Claim) (Verdict, error)

	// Done records that the message was applied. It remembers the id for c.Keep, and c.Version as the key's
	// version for c.KeepVersion unless a newer version is remembered. It ends the claim of c.Token. It also
	// works if the lease has ended or another call has claimed since, because the message was applied.
	Done(ctx context.Context, c Claim) error

	// Release ends the claim of c.Token on a message that was not applied; it can be
	// claimed again at once. Other claims and remembered messages do not change.
	Release(ctx context.Context, c Claim) error
}

// Claim is one try to handle one message.
type Claim struct {
	// Token is new for each try and distinguishes two claims of one message.
	Token uuid.UUID
	// ID is the webhook-id. Never empty.
	ID string
	// Key identifies the object of the message; empty if the object has no versions.
	Key string
	// Version is the version of the object in the message.
	Version Version
	// Lease is how long the claim holds unless Done or Release ends it.
	Lease time.Duration
	// Keep and KeepVersion are how long Done remembers the id, and the version.
	Keep, KeepVersion time.Duration
}

// Verdict is the result of a claim.
type Verdict uint8

// Verdicts of claims. The zero value is none of them.
const (
	Fresh Verdict = iota + 1
	Repeated
	Outdated
	Busy
)

// String returns the verdict in lower case.
func (v Verdict) String() string {
	switch v {
	case Fresh:
		return "fresh"
	case Repeated:
		return "repeated"
	case Outdated:
		return "outdated"
	case Busy:
		return "busy"
	default:
		return "none"
	}
}

// Version orders the versions of an object. The zero value is an object without versions.
type Version struct {
	// Seq is the sequence in the body; 0 if the body has none.
	Seq int64
	// Step is a number that increases with the versions of an object, such as the id of an order's last event; 0
	// if there is none.
	Step int64
	// At is when the object last changed, by the sender's clock, to the microsecond.
	At time.Time
}

// Before reports whether v is older than w: by Seq if both have one, otherwise by Step, otherwise by At.
func (v Version) Before(w Version) bool {
	switch {
	case v.Seq > 0 && w.Seq > 0:
		return v.Seq < w.Seq
	case v.Step != w.Step:
		return v.Step < w.Step
	default:
		return v.At.Before(w.At)
	}
}

// IsZero reports whether v is the zero value.
func (v Version) IsZero() bool { return v.Seq == 0 && v.Step == 0 && v.At.IsZero() }
