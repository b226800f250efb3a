package receiver

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Seen remembers which messages were handled, and how new the things are that they
// were about. Its own clock decides when a lease or a memory ends. One Seen serves one
// receiver: two that do different things with the same messages need two.
//
// Ids and keys are compared byte for byte; one with a NUL is refused as Invalid. All
// methods are atomic and safe for concurrent use, by several processes if those share
// it. If ctx has ended before a call, the error is the context's and nothing changes.
// Any other error means that the outcome is unknown; every method may be called again.
type Seen interface {
	// Claim asks for a message before it is handled. The verdict is
	//
	//   - Repeated if the id was marked by Done less than Keep ago;
	//   - Busy if another call holds the id, and their lease has not ended;
	//   - Outdated if a version of the key is remembered and c.Version is before it
	//     (see Version.Before);
	//   - Busy if another call holds the key, and their lease has not ended;
	//   - else Fresh: c.Token now holds the id and the key for c.Lease.
	//
	// The first that fits. All but Fresh change nothing. Without a key only the id
	// counts.
	Claim(ctx context.Context, c Claim) (Verdict, error)

	// Done says that the message was applied: it remembers the id for c.Keep, and
	// c.Version as that of the key for c.KeepVersion, unless c.Version is before the
	// one remembered. It ends what c.Token holds. It counts even if the lease has
	// ended or another call has claimed since, for what was applied was applied.
	Done(ctx context.Context, c Claim) error

	// Release ends the claim of c.Token on a message that was not applied; it can be
	// claimed again at once. Other claims and remembered messages do not change.
	Release(ctx context.Context, c Claim) error
}

// Claim is one try to handle one message.
type Claim struct {
	// Token is new for each try: it tells two holders of one message apart.
	Token uuid.UUID
	// ID is the webhook-id. Never empty.
	ID string
	// Key names the thing that the message is about; empty if it has no versions.
	Key string
	// Version is that of the thing, in the message.
	Version Version
	// Lease is how long the claim holds unless Done or Release ends it.
	Lease time.Duration
	// Keep and KeepVersion are how long Done remembers the id, and the version.
	Keep, KeepVersion time.Duration
}

// Verdict is the answer to a claim.
type Verdict uint8

// The verdicts. The zero value is none.
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

// Version says how new a thing is. The zero value is that of a thing without versions.
type Version struct {
	// Seq is the sequence in the body; 0 if it has none.
	Seq int64
	// Step is a number that grows with the thing, such as the id of an order's last
	// event; 0 if it has none.
	Step int64
	// At is when the thing last changed, by the sender's clock, to the microsecond.
	At time.Time
}

// Before reports whether v is older than w: by the sequence where both have one, else
// by Step, else by At.
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

// IsZero reports whether v is no version.
func (v Version) IsZero() bool { return v.Seq == 0 && v.Step == 0 && v.At.IsZero() }
