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

// SealQuery selects lines to seal: those of one team, or of all.
type SealQuery struct {
	// Team selects one team; zero selects all.
	Team healthlab.TeamID
	// N is how many lines to seal at most.
	N int
}

// Store keeps the chains. Methods are safe for concurrent use and atomic. A context that has
// ended before a call writes nothing and is the error. Times are kept in UTC to the
// microsecond. Text that is not UTF-8 or has a NUL is healthlab.Invalid, as is an entry
// without a team.
//
// A line is added without a number, so that those who add lines do not wait for each other. Sealing
// gives it its place in the chain.
type Store interface {
	// Append adds entries as lines that are not sealed: all of them or none. If ctx carries a
	// transaction of the store, they are added in it. stored is called after the commit, unless it
	// is nil, and must not block.
	Append(ctx context.Context, entries []Entry, stored func()) error

	// Seal adds the oldest lines that are not sealed to the chains of their teams with [Chain], in the
	// order of their time by the store's clock, those of one Append in their order, and keeps with
	// each new head what sign returns for it. Concurrent calls behave as if they ran one after
	// another. It returns how many lines it found; if they are fewer than q.N, no line is left that
	// was committed before the call. sign may be called more than once.
	Seal(ctx context.Context, q SealQuery, sign func(Head) []byte) (int, error)

	// Unsealed counts the lines that are not sealed, by team: of one team, or of all if team is
	// zero. A team without such lines is left out.
	Unsealed(ctx context.Context, team healthlab.TeamID) (map[healthlab.TeamID]int64, error)

	// Heads returns the heads of teams that have sealed lines or a head, by team. A team with sealed
	// lines and without a head has a head of line 0.
	Heads(ctx context.Context, q HeadQuery) ([]SignedHead, error)

	// Lines returns sealed lines by number.
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
