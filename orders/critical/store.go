package critical

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Store keeps loops. [Follow] opens them.
//
// All methods are safe for concurrent use and atomic. Times are kept in UTC to the microsecond. What a
// method hands out is the caller's to edit. Loops of deleted users are not found, not listed and not
// claimed; an erasure removes them. Once ctx has ended, a call returns the context's error and writes
// nothing.
type Store interface {
	// Get returns a loop. NotFound if the team has none of this id.
	Get(ctx context.Context, team healthlab.TeamID, id LoopID) (Record, error)

	// List returns a page of loops, the longest open first; ties by id. Loops of persons whose key was
	// deleted are left out.
	List(ctx context.Context, q Query) (Page, error)

	// Update lets change edit a loop, and writes it with the events of the entries that change appended
	// to the history. change may run more than once, so it is pure. An error of change is returned
	// unchanged, and nothing is written. NotFound as in Get.
	Update(ctx context.Context, team healthlab.TeamID, id LoopID, change func(*Record) error) (Record, error)

	// Claim takes up to n loops of any team whose Due is set and not after now, the longest due first,
	// and makes them due at the end of the lease, on the later of now and the store's clock. Two claims
	// that run at the same time never return the same loop.
	Claim(ctx context.Context, n int, now time.Time, lease time.Duration) ([]Record, error)
}

// Query asks for loops of a team. A zero field sets no bound.
type Query struct {
	Team  healthlab.TeamID
	User  healthlab.UserID
	Order uuid.UUID
	// Status is one of [Statuses]. Without it: all loops of Order if that is set, else those that wait
	// for a person.
	Status Status
	// Cursor is Next of the page before; all else stays the same.
	Cursor string
	// Limit is at least 1.
	Limit int
}

// Page is one page of a list.
type Page struct {
	Loops []Loop
	// Next is the cursor of the next page; empty for the last one.
	Next string
	// Total counts all matches.
	Total int
}

// match reports whether a query asks for a loop.
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
