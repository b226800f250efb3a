package healthlab

import "errors"

// ErrorKind is the category of an error, which decides what a caller does next. An ErrorKind is an error itself, so a
// caller writes errors.Is(err, healthlab.NotFound), and an adapter fmt.Errorf("%w: %w", healthlab.Conflict, cause).
//
// A kind is meant for the direct caller. If a laboratory's API returns NotFound to the service, the service returns
// another kind to its own caller.
type ErrorKind uint8

const (
	// Unknown is an unclassified error: a bug or an outage. It is the zero value, and the result of [KindOf]
	// for an error without a kind.
	Unknown ErrorKind = iota
	// Invalid means that the input is wrong; repeating the call will not help.
	Invalid
	// NotFound means that the caller's team does not have the object, whether or not another team has it.
	NotFound
	// Conflict means that an object with this id or key exists.
	Conflict
	// Precondition means that the present state does not allow the request: a business rule forbids it.
	Precondition
	// Unauthenticated means that the caller is unknown.
	Unauthenticated
	// Forbidden means that the caller is known and lacks the permission.
	Forbidden
	// Exhausted means that a quota or a rate limit is used up.
	Exhausted
	// Unavailable means that the caller should try again later.
	Unavailable
	// Unimplemented means that this adapter does not support the request.
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

// KindOf returns the kind of err or of an error in its chain; Unknown if there is none. Of several kinds it
// returns the first, depth first, as errors.As does.
func KindOf(err error) ErrorKind {
	var k ErrorKind
	if errors.As(err, &k) {
		return k
	}
	return Unknown
}
