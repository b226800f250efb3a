package healthlab

import "errors"

// ErrorKind is the category of an error, which decides what a
// caller does next. An ErrorKind is an error itself, so a caller writes
// errors.Is(err, healthlab.NotFound), and an adapter
// fmt.Errorf("%w: %w", healthlab.Conflict, cause).
//
// A kind is true for one caller: a laboratory's NotFound is not our caller's.
type ErrorKind uint8

const (
	// Unknown is not classified: a bug or an outage. It is the zero value, and
	// what [KindOf] says of an error without a kind.
	Unknown ErrorKind = iota
	// Invalid means the input is wrong; asking again will not help.
	Invalid
	// NotFound means the caller's team has no such thing, whether or not another
	// team has.
	NotFound
	// Conflict means something with this identity or key exists already.
	Conflict
	// Precondition means the right request at the wrong moment: a rule of the
	// business forbids it as things stand.
	Precondition
	// Unauthenticated means we do not know who is calling.
	Unauthenticated
	// Forbidden means we do, and they may not.
	Forbidden
	// Exhausted means a quota or a rate is used up.
	Exhausted
	// Unavailable means try again later.
	Unavailable
	// Unimplemented means that this adapter does not do that.
	Unimplemented
)

var kindNames = [...]string{
	Unknown:         "unknown fault",
	Invalid:         "invalid",
	NotFound:        "not found",
	Conflict:        "conflict",
	Precondition:    "precondition failed",
	Unauthenticated: "unauthenticated",
	Forbidden:       "forbidden",
	Exhausted:       "exhausted",
	Unavailable:     "unavailable",
	Unimplemented:   "unimplemented",
}

// Error returns the kind in words.
func (k ErrorKind) Error() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[Unknown]
}

// KindOf returns the kind that err, or something it wraps, carries; Unknown if none
// does. Of several it finds the first, depth first, as errors.As does.
func KindOf(err error) ErrorKind {
	var k ErrorKind
	if errors.As(err, &k) {
		return k
	}
	return Unknown
}
