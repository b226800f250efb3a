package idempotency

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
)

// Scope identifies an idempotency key: the same key of another team or endpoint is another key.
type Scope struct {
	Team     healthlab.TeamID
	Endpoint string
	// Key is the caller's key, compared byte for byte. It has 1 to 255 characters.
	Key string
}

// State is the stored state of a key.
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
	// Fingerprint identifies the body of the first request with the key, or of the first one after a release.
	Fingerprint string
}

// Keys stores the answers to requests with an idempotency key.
//
// All methods are safe for concurrent use and atomic. Once ctx has ended, they return
// its error and write nothing. Leases, and the time for which answers are kept, run on the
// store's own clock.
type Keys interface {
	// StartKey claims a key for the time of a lease, if no other caller has claimed it and it has no answer. A
	// key that is unknown, or whose answer has expired, gets the fingerprint and the order id of this call. A
	// key whose request was started and never finished keeps both. A key that was released keeps the order id
	// and gets the new fingerprint. Of concurrent calls, one claims the key.
	StartKey(ctx context.Context, scope Scope, fingerprint string, order orders.OrderID, lease time.Duration) (State, error)
	// FinishKey stores the answer for the duration keep, by the store's clock, if the claim that ends at until
	// is still the latest; otherwise it returns Precondition and stores nothing. A nil answer releases the key
	// without an answer, and keep is ignored. If the same store has the answer's user, deleting the user hides
	// the answer, and erasing the user removes the key; user is zero if the answer is about no user, or about
	// the user of the key's order.
	FinishKey(ctx context.Context, scope Scope, until time.Time, answer []byte, user healthlab.UserID, keep time.Duration) error
	// PruneKeys deletes at most n keys whose answers have expired, or that were started and whose claim ended a
	// day ago, and returns their number.
	PruneKeys(ctx context.Context, n int) (int, error)
}
