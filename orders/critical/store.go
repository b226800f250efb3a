package critical

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Store stores loops. [Follow] opens them.
//
// All methods are safe for concurrent use and atomic. Times are kept in UTC to the microsecond. The caller may
// edit returned values. Loops of deleted users are not found, not listed and not claimed; the erasure of a user
// removes them. Once ctx has ended, a call returns the context's error and writes nothing.
type Store interface {
	// Get returns a loop. NotFound if the team has no loop with this id.
	Get(ctx context.Context, team healthlab.TeamID, id LoopID) (Record, error)

	// List returns a page of loops, the longest open first, then by id. Loops that cannot be decrypted, because
	// the encryption key of their user was deleted, are left out.
	List(ctx context.Context, q Query) (Page, error)

	// Update lets change edit a loop, and writes it with the events of the history entries that change
	// appended. change may run more than once, so it must be pure. An error of change is returned unchanged,
	// and nothing is written. NotFound as in Get.
	Update(ctx context.Context, team healthlab.TeamID, id LoopID, change func(*Record) error) (Record, error)

	// Claim claims at most n loops of any team whose Due is set and not after now, the longest due first, and
	// sets their Due to the end of the lease, counted from the later of now and the store's clock. Two
	// concurrent claims never return the same loop.
	Claim(ctx context.Context, n int, now time.Time, lease time.Duration) ([]Record, error)
}

// Query selects loops of a team. A zero field is no filter.
type Query struct {
	Team  healthlab.TeamID
	User  healthlab.UserID
	Order uuid.UUID
	// Status is one of [Statuses]. Without it: all loops of Order if that is set, else those that wait for an
	// acknowledgement.
	Status Status
	// Cursor is the Next of the previous page of the same query.
	Cursor string
	// Limit is at least 1.
	Limit int
}

// Page is one page of a list.
type Page struct {
	Loops []Loop
	// Next is the cursor of the next page; empty for the last one.
	Next string
	// Total is the number of all matches.
	Total int
}

// match reports whether a loop passes every filter of the query except the team.
func (q *Query) match(r *Record) bool {
	switch {
	case !q.User.IsZero() && r.UserID != q.User, q.Order != uuid.Nil && r.OrderID != q.Order:
		return false
	case q.Status != "":
		return r.Status == q.Status
	}
	return q.Order != uuid.Nil || r.Status.Waits()
}

func errNoLoop() error {
	return fmt.Errorf("%w: the team has no such critical result", healthlab.NotFound)
}
