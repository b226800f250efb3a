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
	// PutUserInfo stores a user's demographics and replaces earlier ones. NotFound if the store has users, but
	// not this one.
	PutUserInfo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, info UserInfo) error
	// UserInfo returns a user's demographics; NotFound if there are none.
	UserInfo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (UserInfo, error)

	// AddCoverage adds an insurance record and ends the user's open record with the same is_primary. It ignores
	// ValidUntil of c. If ValidFrom of c is not later than that of the ended record, it is set to one
	// microsecond after it, so that the later call wins. NotFound if the store has users, but not this one;
	// Conflict if any team has a record with this id.
	AddCoverage(ctx context.Context, c Coverage) error
	// Coverage returns an insurance record by its id; NotFound if the team has none.
	Coverage(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (Coverage, error)
	// CoverageAt returns a user's insurance record with the given is_primary that was valid at an instant. A
	// record is valid from its start until the start of the next. A zero instant means the record that has not
	// ended. NotFound if there is none.
	CoverageAt(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, primary bool, at time.Time) (Coverage, error)

	// AddPayor adds a payor of a team. Conflict if the team has a payor with its code.
	AddPayor(ctx context.Context, p StoredPayor) error
	// Payors returns a team's own payors, sorted by time of creation, then by code.
	Payors(ctx context.Context, team healthlab.TeamID) ([]StoredPayor, error)
}

// Values of [healthlab.RuleError].Type for persons, insurance records and payors.
const (
	UserNotFound         = "USER_NOT_FOUND"
	DemographicsMissing  = "DEMOGRAPHICS_MISSING"
	UserInfoNotFound     = "USER_INFO_NOT_FOUND"
	InsuranceNotFound    = "INSURANCE_NOT_FOUND"
	PayorNotFound        = "PAYOR_NOT_FOUND"
	PayorSearchMissing   = "PAYOR_SEARCH_MISSING"
	ClearingHouseUnknown = "CLEARING_HOUSE_UNKNOWN"
)
