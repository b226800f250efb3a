package accesslog

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Query selects lines of a team.
type Query struct {
	Team healthlab.TeamID
	// Person selects the lines of one person; zero selects all.
	Person healthlab.UserID
	// After is the number of the line to begin behind, and N how many to return at most.
	After int64
	N     int
}

// HeadQuery selects heads: that of one team, or those of all teams after one.
type HeadQuery struct {
	// Team selects one team; zero selects all.
	Team healthlab.TeamID
	// After is the team to begin behind, and N how many to return at most.
	After healthlab.TeamID
	N     int
}

// Store keeps the chains. Methods are safe for concurrent use and atomic. A context that has
// ended before a call writes nothing and is the error. Times are kept in UTC to the
// microsecond. Text that is not UTF-8 or has a NUL is healthlab.Invalid, as is an entry
// without a team.
type Store interface {
	// Append adds entries to the chains of their teams, in their order, with [Chain], and keeps
	// with each new head what sign returns for it. Concurrent calls behave as if they ran one after
	// another. Either all entries are added or none. sign may be called more than once.
	Append(ctx context.Context, entries []Entry, sign func(Head) []byte) error

	// Heads returns the heads of teams that have lines or a head, by team. A team with lines and
	// without a head has a head of line 0.
	Heads(ctx context.Context, q HeadQuery) ([]SignedHead, error)

	// Lines returns lines by number.
	Lines(ctx context.Context, q Query) ([]Line, error)

	// Unanchored returns the heads of at most n chains that have lines behind their last anchor.
	Unanchored(ctx context.Context, n int) ([]Head, error)

	// AddAnchor keeps an anchor. Adding an anchor of the same line is a no-op.
	AddAnchor(ctx context.Context, a Anchor) error

	// Anchors returns the anchors of a team by line.
	Anchors(ctx context.Context, team healthlab.TeamID) ([]Anchor, error)

	// Prune removes the lines up to the last anchor of their team that was signed before an
	// instant, and the anchors before that one. The anchor itself stays: the rest of the chain
	// is verified from it.
	Prune(ctx context.Context, before time.Time) error
}
