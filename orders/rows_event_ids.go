package orders

import (
	"sync"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// eventCounter stores the first event id of a team that no process has taken.
type eventCounter struct {
	Team healthlab.TeamID
	Next int64
}

var orderCounters = store.Table[eventCounter]{Name: "order_event_counter", Clear: true, Row: func(c *eventCounter) store.Row {
	return store.Row{Key: counterKey(c.Team)}
}}

func counterKey(team healthlab.TeamID) store.Key { return store.Key{Team: team, ID: "event"} }

const (
	// eventRoom is the highest number of event ids that a change of an order uses.
	eventRoom = 100
	// eventBlock is the number of event ids that a process takes from the team's row at once. Only the
	// transaction that takes them locks the row, so that the changes of a team's orders do not wait for each
	// other.
	eventBlock = 10_000
)

// eventIDBlocks returns event ids from blocks that this process has taken. Safe for concurrent use.
type eventIDBlocks struct {
	mu    sync.Mutex
	teams map[healthlab.TeamID]*idBlock
}

// idBlock is the range of unused event ids from next (inclusive) to end (exclusive).
type idBlock struct{ next, end int64 }

// drawnIDs is the range of event ids from first (inclusive) to end (exclusive) that one transaction may use.
type drawnIDs struct {
	first, end int64
	block      *idBlock
}

// draw returns n unused event ids of a team, all greater than after. If the next n ids of the process's block are not
// all such ids, draw takes a new block in tx. Other transactions can use the rest of that block once tx has committed.
func (d *eventIDBlocks) draw(tx store.Tx, team healthlab.TeamID, n, after int64) (drawnIDs, error) {
	d.mu.Lock()
	b := d.teams[team]
	if b != nil && b.next > after && b.end-b.next >= n {
		defer d.mu.Unlock()
		b.next += n
		return drawnIDs{b.next - n, b.next, b}, nil
	}
	d.mu.Unlock()
	c, err := orderCounters.Get(tx, counterKey(team), store.Held)
	if err != nil {
		return drawnIDs{}, err
	}
	if c == nil {
		c = &store.Entry[eventCounter]{Value: eventCounter{Team: team, Next: 1}}
	}
	first := max(c.Value.Next, after+1)
	c.Value.Next = first + max(n, eventBlock)
	if err := orderCounters.Put(tx, c); err != nil {
		return drawnIDs{}, err
	}
	b = &idBlock{first + n, c.Value.Next}
	tx.AfterCommit(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.teams == nil {
			d.teams = map[healthlab.TeamID]*idBlock{}
		}
		d.teams[team] = b
	})
	return drawnIDs{first, first + n, b}, nil
}

// returnUnused returns the drawn ids from next on to their block, unless other ids were drawn from the block in the
// meantime.
func (d *eventIDBlocks) returnUnused(of drawnIDs, next int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if of.block.next == of.end {
		of.block.next = min(max(next, of.first), of.end)
	}
}
