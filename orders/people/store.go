package people

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Store stores demographics, insurance records and payors of teams.
//
// All methods are safe for concurrent use and atomic. Text that contains NUL, or is not UTF-8, is refused with
// [healthlab.Invalid]. Times are kept in UTC to the microsecond. The caller may edit returned values. A team
// can access its own data only. Once ctx has ended, a call returns its error and writes nothing. If the same
// store has the users, erasing a user removes the user's demographics and insurance records, and reads do not
// find those of a deleted user.
type Store interface {
	// PutUserInfo keeps a user's demographics in place of earlier ones.
	PutUserInfo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, info UserInfo) error
	// UserInfo returns a user's demographics; NotFound if there are none.
	UserInfo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (UserInfo, error)

	// AddCoverage adds a record, and ends the one with the same is_primary that was
	// valid until now. ValidUntil of c does not matter; ValidFrom is moved to a
	// microsecond after that of the record which ends, if it is not later, so that of
	// two the later call has the later record. NotFound if the store keeps users and has no such
	// one; Conflict if the id is taken, by whichever team.
	AddCoverage(ctx context.Context, c Coverage) error
	// Coverage returns a record by its id; NotFound if the team has none.
	Coverage(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (Coverage, error)
	// CoverageAt returns the record with this is_primary that was valid at an instant. A record is valid from
	// its start until the start of the next. A zero instant means the record that has not ended. NotFound if
	// there is none.
	CoverageAt(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, primary bool, at time.Time) (Coverage, error)

	// AddPayor adds a payor of a team. Conflict if the team has a payor with its code.
	AddPayor(ctx context.Context, p StoredPayor) error
	// Payors returns a team's own payors, sorted by time of creation, then by code.
	Payors(ctx context.Context, team healthlab.TeamID) ([]StoredPayor, error)
}

// Error types about persons and payors.
const (
	UserNotFound         = "USER_NOT_FOUND"
	DemographicsMissing  = "DEMOGRAPHICS_MISSING"
	UserInfoNotFound     = "USER_INFO_NOT_FOUND"
	InsuranceNotFound    = "INSURANCE_NOT_FOUND"
	PayorNotFound        = "PAYOR_NOT_FOUND"
	PayorSearchMissing   = "PAYOR_SEARCH_MISSING"
	ClearingHouseUnknown = "CLEARING_HOUSE_UNKNOWN"
)
