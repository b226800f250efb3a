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
	// After is the line number after which the result starts, and N the highest number of lines to return.
	After int64
	N     int
}

// HeadQuery selects heads (last lines of chains): that of one team, or those of all teams after one.
type HeadQuery struct {
	// Team selects one team; zero selects all.
	Team healthlab.TeamID
	// After is the team after which the result starts, and N the highest number of heads to return.
	After healthlab.TeamID
	N     int
}

// SealQuery selects lines to seal: those of one team, or of all teams.
type SealQuery struct {
	// Team selects one team; zero selects all.
	Team healthlab.TeamID
	// N is the highest number of lines to seal.
	N int
}

// Store stores the hash chains of teams. Methods are safe for concurrent use and atomic. If the context has
// ended before a call, the call writes nothing and returns its error. Times are kept in UTC to the microsecond.
// Text that is not UTF-8 or has a NUL, and an entry without a team, is healthlab.Invalid.
//
// A line is added without a number, so that concurrent additions do not wait for each other. Sealing gives a
// line its number and its place in the chain.
type Store interface {
	// Append adds entries as unsealed lines: all of them or none. If ctx has a transaction of the store, they
	// are added in that transaction. stored is called after the commit, unless it is nil, and must not block.
	Append(ctx context.Context, entries []Entry, stored func()) error

	// Seal adds the oldest unsealed lines to the chains of their teams with [Chain], in the order of their time
	// by the store's clock and of their Append, and stores each new head with the result of sign. Concurrent
	// calls behave as if they ran one after another. It returns the number of sealed lines; if that is less
	// than q.N, no unsealed line is left that was committed before the call. sign may be called more than once.
	Seal(ctx context.Context, q SealQuery, sign func(Head) []byte) (int, error)

	// Unsealed returns the numbers of unsealed lines by team: of one team, or of all teams if team is zero. A
	// team without such lines is left out.
	Unsealed(ctx context.Context, team healthlab.TeamID) (map[healthlab.TeamID]int64, error)

	// Heads returns the heads of teams that have sealed lines or a head, by team. A team with sealed
	// lines and without a head has a head of line 0.
	Heads(ctx context.Context, q HeadQuery) ([]SignedHead, error)

	// Lines returns sealed lines by number.
	Lines(ctx context.Context, q Query) ([]Line, error)

	// Unanchored returns the heads of at most n chains with lines after their last anchor.
	Unanchored(ctx context.Context, n int) ([]Head, error)

	// AddAnchor stores an anchor. Adding an anchor of the same line is a no-op.
	AddAnchor(ctx context.Context, a Anchor) error

	// Anchors returns the anchors of a team by line.
	Anchors(ctx context.Context, team healthlab.TeamID) ([]Anchor, error)

	// Prune removes the lines up to the team's last anchor that was signed before an instant, and the anchors
	// before that one. The anchor itself stays, because the verification of the remaining chain starts from it.
	Prune(ctx context.Context, before time.Time) error
}
