package people

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Store keeps demographics, insurance records and teams' own payors.
//
// All methods are safe for concurrent use and atomic. Text that contains NUL, or is not
// UTF-8, is refused with [healthlab.Invalid]. Times are kept in UTC to the microsecond.
// What a method hands out is the caller's to edit. A team reaches nothing but its own.
// Once ctx has ended, a call returns its error and writes nothing. Where the same store
// keeps users, erasing one removes their demographics and insurance records, and while a
// user is deleted, reads do not find them.
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
	// CoverageAt returns the record with this is_primary that was valid at an instant:
	// from it on, until the next. A zero instant means the one that has not ended.
	// NotFound if there is none.
	CoverageAt(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, primary bool, at time.Time) (Coverage, error)

	// AddPayor adds a payor of a team. Conflict if the team has its code.
	AddPayor(ctx context.Context, p StoredPayor) error
	// Payors returns a team's own payors, by when they were made, ties by code.
	Payors(ctx context.Context, team healthlab.TeamID) ([]StoredPayor, error)
}

// Names of the rules about persons and who pays for them.
const (
	UserNotFound         = "USER_NOT_FOUND"
	DemographicsMissing  = "DEMOGRAPHICS_MISSING"
	UserInfoNotFound     = "USER_INFO_NOT_FOUND"
	InsuranceNotFound    = "INSURANCE_NOT_FOUND"
	PayorNotFound        = "PAYOR_NOT_FOUND"
	PayorSearchMissing   = "PAYOR_SEARCH_MISSING"
	ClearingHouseUnknown = "CLEARING_HOUSE_UNKNOWN"
)
