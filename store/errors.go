package store

import (
	"fmt"

	"github.com/healthlab-dev/healthlab"
)

// TakenError reports that a commit failed because another row has the same key or the same unique index value. It
// unwraps to healthlab.Conflict. If another transaction may have written that row meanwhile, an engine runs the
// failed transaction again before it returns a TakenError.
type TakenError struct {
	// Table is the table of the row.
	Table string
	// Index is the position in Row.Index, or -1 for the key.
	Index int
}

// Error names the table, and the index unless the key is taken.
func (e *TakenError) Error() string {
	if e.Index < 0 {
		return "table " + e.Table + ": the key is taken"
	}
	return fmt.Sprintf("table %s: the value of index %d is taken", e.Table, e.Index)
}

// Unwrap returns healthlab.Conflict.
func (e *TakenError) Unwrap() error { return healthlab.Conflict }

// ErrStale reports that the stored row has another revision than the row that the transaction wants to replace. An
// engine then runs the transaction again, and returns ErrStale only if it gives up. It is a healthlab.Unavailable.
var ErrStale = fmt.Errorf("%w: a row was changed by another transaction", healthlab.Unavailable)

func rule(table, msg string) error {
	return fmt.Errorf("store: table %s: %s", table, msg)
}
