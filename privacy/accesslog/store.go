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
	// After selects lines with a higher number, and N is the highest number of lines to return.
	After int64
	N     int
}

// HeadQuery selects heads (last lines of hash chains): that of one team, or those of all teams in the order of team
// ids.
type HeadQuery struct {
	// Team selects one team; zero selects all.
	Team healthlab.TeamID
	// After selects heads of teams whose id is higher, and N is the highest number of heads to return.
	After healthlab.TeamID
	N     int
}

// SealQuery selects unsealed lines (not yet in a hash chain): those of one team, or of all teams.
type SealQuery struct {
	// Team selects one team; zero selects all.
	Team healthlab.TeamID
	// N is the highest number of lines to seal.
	N int
}

// Store stores the hash chains of teams. Methods are safe for concurrent use and atomic. If the context has ended
// before a call, the call writes nothing and returns the context's error. Times are kept in UTC to the microsecond.
// Text that is not UTF-8 or has a NUL, and an entry without a team, is healthlab.Invalid.
//
// A line is added without a number, so that concurrent additions do not wait for each other. Seal gives a line its
// number and its hashes.
type Store interface {
	// Append adds entries as unsealed lines: all of them or none. If ctx has a transaction of the store, Append
	// uses this transaction. It calls stored, unless nil, after the commit; stored must not block.
	Append(ctx context.Context, entries []Entry, stored func()) error

	// Seal appends the oldest unsealed lines to the chains of their teams, as [Chain] does. The order is that of
	// the store's clock at the time of Append, then that of the entries. Each new head is stored with the signature
	// that sign returns; sign may be called more than once for a head. Concurrent calls behave as if they ran one
	// after another. Seal returns the number of sealed lines; if it is less than q.N, all selected lines that were
	// committed before the call are sealed.
	Seal(ctx context.Context, q SealQuery, sign func(Head) []byte) (int, error)

	// Unsealed returns, by team, how many lines are not sealed: of one team, or of all teams if team is zero. Teams
	// without such lines are left out.
	Unsealed(ctx context.Context, team healthlab.TeamID) (map[healthlab.TeamID]int64, error)

	// Heads returns the stored heads (last lines) of teams, ordered by team id. A query for one team that has
	// sealed lines but no stored head returns a head with Seq 0.
	Heads(ctx context.Context, q HeadQuery) ([]SignedHead, error)

	// Lines returns sealed lines, ordered by number.
	Lines(ctx context.Context, q Query) ([]Line, error)

	// Unanchored returns at most n heads of chains that have lines after their last anchor.
	Unanchored(ctx context.Context, n int) ([]Head, error)

	// AddAnchor stores an anchor. It is a no-op if an anchor of the same line is stored. NotFound if the team has
	// no head.
	AddAnchor(ctx context.Context, a Anchor) error

	// Anchors returns the anchors of a team, ordered by line number.
	Anchors(ctx context.Context, team healthlab.TeamID) ([]Anchor, error)

	// Prune deletes old lines of each team: those up to its last anchor that was signed before an instant, and the
	// anchors before this one. The anchor itself stays, because verification of the remaining lines starts from it.
	Prune(ctx context.Context, before time.Time) error
}
