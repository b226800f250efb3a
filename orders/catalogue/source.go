package catalogue

import (
	"context"

	"github.com/healthlab-dev/healthlab"
)

// Source says what can be ordered, and through which accounts. Implementations
// must be safe for concurrent use; what they return is the caller's to edit. Every
// marker says whether it can be ordered.
type Source interface {
	// LabTests returns those of the lab tests that the team may see, with their
	// markers, in any order. One that it may not see is left out.
	LabTests(ctx context.Context, team healthlab.TeamID, ids []LabTestID) ([]LabTest, error)
	// Markers returns the markers with one of the ids, and those with one of the
	// lab's own codes, in any order. What does not exist is left out. One code may
	// belong to markers of several labs.
	Markers(ctx context.Context, ids []int, providerIDs []string) ([]Marker, error)
	// ExpectedResults returns what each of the markers should bring, by marker id. A
	// marker of which nothing is known is left out.
	ExpectedResults(ctx context.Context, markers []int) (map[int][]ExpectedResult, error)
	// Labs returns all laboratories, by id.
	Labs(ctx context.Context) ([]Lab, error)
	// FindMarkers returns a page of markers. Invalid as [MarkerQuery.Normal] says; a
	// page past the end has no markers and the true total.
	FindMarkers(ctx context.Context, q MarkerQuery) (MarkerPage, error)
	// FindLabTests returns a page of the lab tests that the team may see, ties by id.
	// Invalid as [LabTestQuery.Normal] says, or if the cursor is none of this query.
	FindLabTests(ctx context.Context, q LabTestQuery) (LabTestPage, error)
	// Accounts returns the accounts that the team can use.
	Accounts(ctx context.Context, team healthlab.TeamID) (Accounts, error)
}

// Accounts are the lab accounts that a team can use.
type Accounts struct {
	// Linked are the accounts whose allow list has the team, of every lab and in
	// every status.
	Linked []LabAccount
	// Platform is the account of the platform for a lab (by slug), where the team
	// may use one. It is not delegated.
	Platform map[string]LabAccount
}
