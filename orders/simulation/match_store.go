package simulation

import (
	"context"
	"log/slog"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// MatchTestRecord is a stored test run.
type MatchTestRecord struct {
	MatchTestRun
	Team healthlab.TeamID
	// Key is the idempotency key of the request, and Fingerprint the digest of the request's content.
	Key, Fingerprint string
	Request          MatchTestRequest
	// Due is the time at which background work executes the run; zero once it has ended.
	Due time.Time
}

// LogValue logs the ids only.
func (r MatchTestRecord) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", r.RunID.String()), slog.String("team", r.Team.String()))
}

// MatchTestStore stores test runs. All methods are safe for concurrent use and atomic. Times are kept in UTC to
// the microsecond; the caller may edit returned values. Once ctx has ended, a call returns its error and writes
// nothing.
type MatchTestStore interface {
	// StartMatchTestRun adds a run. If the team has a run with its key, it returns that run, and false.
	StartMatchTestRun(ctx context.Context, t MatchTestRecord) (MatchTestRecord, bool, error)
	// MatchTestRun returns a run; NotFound if the team has no run with this id.
	MatchTestRun(ctx context.Context, team healthlab.TeamID, id MatchTestRunID) (MatchTestRecord, error)
	// UpdateMatchTestRun lets change edit a run. An error of change is returned unchanged and
	// nothing is written. NotFound as in MatchTestRun.
	UpdateMatchTestRun(ctx context.Context, team healthlab.TeamID, id MatchTestRunID, change func(*MatchTestRecord) error) (MatchTestRecord, error)
	// ClaimMatchTestRuns claims up to n runs of any team whose Due is set and not later than the store's clock,
	// the longest due first, and sets their Due to the end of the lease on that clock. Two concurrent claims
	// never return the same run.
	ClaimMatchTestRuns(ctx context.Context, n int, lease time.Duration) ([]MatchTestRecord, error)
}

// Values of [healthlab.RuleError].Type for test runs.
const (
	MatchTestNotFound = "TEST_RUN_NOT_FOUND"
	// The next four are values of Code in the [MatchTestError] of a failed run.
	orderStatus        = "ORDER_STATUS"
	noLabTest          = "NO_LAB_TEST"
	unexpectedDecision = "UNEXPECTED_DECISION"
	runBroken          = "RUN_BROKEN"
)
