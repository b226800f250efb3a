package catalogue

import (
	"context"

	"github.com/healthlab-dev/healthlab"
)

// Source reads the lab tests, markers, labs and lab accounts that can be ordered. Implementations must be safe
// for concurrent use; the caller may edit returned values. Every marker must have IsOrderable set.
type Source interface {
	// LabTests returns the lab tests with the given ids that the team may see, with their markers, in any
	// order. Others are left out.
	LabTests(ctx context.Context, team healthlab.TeamID, ids []LabTestID) ([]LabTest, error)
	// Markers returns the markers with one of the ids or one of the lab's codes, in any order. Unknown ones are
	// left out. Markers of several labs may have the same code.
	Markers(ctx context.Context, ids []int, providerIDs []string) ([]Marker, error)
	// ExpectedResults returns the expected results of each marker, by marker id. Markers without known results
	// are left out.
	ExpectedResults(ctx context.Context, markers []int) (map[int][]ExpectedResult, error)
	// Labs returns all laboratories, by id.
	Labs(ctx context.Context) ([]Lab, error)
	// FindMarkers returns a page of markers. Invalid for an invalid query; a page after the last one has
	// no markers and the true total.
	FindMarkers(ctx context.Context, q MarkerQuery) (MarkerPage, error)
	// FindLabTests returns a page of the lab tests that the team may see. Tests with equal sort keys are sorted
	// by id. Invalid for an invalid query, or if the cursor is not of this query.
	FindLabTests(ctx context.Context, q LabTestQuery) (LabTestPage, error)
	// Accounts returns the accounts that the team can use.
	Accounts(ctx context.Context, team healthlab.TeamID) (Accounts, error)
}

// Accounts are the lab accounts that a team can use.
type Accounts struct {
	// Linked are the accounts whose allow-list has the team, of every lab and in every status.
	Linked []LabAccount
	// Platform has the platform's account at each lab, by lab slug, for labs at which the team may use one. It
	// is not delegated: the service's physicians order.
	Platform map[string]LabAccount
}
