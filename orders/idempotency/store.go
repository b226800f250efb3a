package idempotency

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
)

// Scope is where an idempotency key counts: a key identifies one request of one team to one
// endpoint.
type Scope struct {
	Team     healthlab.TeamID
	Endpoint string
	// Key is the caller's, compared byte for byte. It has 1 to 255 characters.
	Key string
}

// State is what a store knows of a key.
type State struct {
	// Answer is the stored answer; nil if there is none yet.
	Answer []byte
	// Started is true if the caller of StartKey holds the key and must run the request.
	Started bool
	// Until is the end of the caller's lease on the store's clock; zero unless Started.
	Until time.Time
	// Order is the id for the order that the request places. It is the same in each run, so that
	// an order that was placed without an answer is not placed twice.
	Order orders.OrderID
	// Fingerprint is that of the first request.
	Fingerprint string
}

// Keys stores the answers to requests with an idempotency key.
//
// All methods are safe for concurrent use and atomic. Once ctx has ended, they return
// its error and write nothing. Leases, and the time for which answers are kept, run on the
// store's own clock.
type Keys interface {
	// StartKey takes a key for the caller for the time of a lease, if no other caller has it
	// and it has no answer. A key whose answer is kept no longer, or that is
	// not known, begins anew with the fingerprint and the order's id of this call. One
	// whose work was started and never finished keeps both; one that was given back
	// keeps the id, and takes the fingerprint. Of calls that run at the same time, one
	// gets the key.
	StartKey(ctx context.Context, scope Scope, fingerprint string, order orders.OrderID, lease time.Duration) (State, error)
	// FinishKey stores the answer for the duration keep, by the store's clock, if the claim
	// that ends at until is still the latest; Precondition if it is not, and nothing is
	// stored. A nil answer gives the key back without one, and keep is ignored. Where the
	// same store keeps the user whom the answer is about, deleting the user takes the answer
	// away, and erasing it the key; user is zero if the answer is about no user, or about the
	// user of the key's order.
	FinishKey(ctx context.Context, scope Scope, until time.Time, answer []byte, user healthlab.UserID, keep time.Duration) error
	// PruneKeys forgets at most n keys whose answers are kept no longer,
	// or that were started and whose claim ended a day ago, and returns how
	// many those were.
	PruneKeys(ctx context.Context, n int) (int, error)
}
