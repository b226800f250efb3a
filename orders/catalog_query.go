package orders

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// MarkerQuery asks for a page of markers. Filters combine with and; a filter at its
// zero value matches everything.
type MarkerQuery struct {
	// Labs are ids of labs, any of which will do. LabSlug is one lab; Labs says nothing
	// beside it.
	Labs    []int
	LabSlug string
	// Name is what somebody typed, ignoring case. First come markers that have its
	// words (the lab's code, a LOINC code or a usual abbreviation is one, too), then
	// those that have it as a part of their name. Where there are neither, those come
	// that are close to it, the closest first: words with typing errors, beginnings
	// of words.
	Name string
	// ALaCarte asks for markers that can (or cannot) be ordered on their own.
	ALaCarte *bool
	// Reflex includes markers that only another one's result brings.
	Reflex bool
	// IDs are the only ones that are wanted; nil means any.
	IDs []int
	// Page counts from 1, the default. Size is 1 to 100, 50 by default.
	Page, Size int
}

// MarkerPage is one page of markers: by id, or by how well they match a name.
type MarkerPage struct {
	Markers []MarkerComplete
	// Total counts all matches.
	Total int
}

// Generation tells lab tests that somebody made from those that the service built for
// one order.
type Generation string

// The generations.
const (
	GeneratedAuto   Generation = "auto"
	GeneratedManual Generation = "manual"
	GeneratedAll    Generation = "all"
)

// LabTestSort is what a list of lab tests is sorted by.
type LabTestSort string

// The sort keys. The order in which tests were made is the default.
const (
	SortTestsByPrice   LabTestSort = "price"
	SortTestsByCreated LabTestSort = "created_at"
	SortTestsByUpdated LabTestSort = "updated_at"
)

// LabTestQuery asks for a page of the lab tests that a team may see. Filters combine
// with and; a filter at its zero value matches everything.
type LabTestQuery struct {
	Team healthlab.TeamID
	// Generation is manual if empty.
	Generation Generation
	LabSlug    string
	Method     CollectionMethod
	Status     LabTestStatus
	// MarkerIDs and ProviderIDs (the lab's codes) are all in the test.
	MarkerIDs   []int
	ProviderIDs []string
	// Name is a part of the name, ignoring case.
	Name      string
	Sort      LabTestSort
	Direction Direction
	// Limit is the most to return; 0 means all.
	Limit int
	// Cursor is where the page before ended; empty for the first. It is good for the
	// same query only.
	Cursor string
}

// LabTestPage is one page of lab tests.
type LabTestPage struct {
	Tests []LabTest
	// Next is the cursor of the next page; empty on the last.
	Next string
}

// Labs returns all laboratories, by id.
func (s *Service) Labs(ctx context.Context) ([]Lab, error) {
	labs, err := s.catalogue.Labs(ctx)
	if err != nil {
		return nil, fmt.Errorf("list labs: %w", err)
	}
	return labs, nil
}

// LabAccounts returns the accounts that are linked to the team: the one with an id, and
// those of a status, where they are given. Accounts of the platform are not listed.
func (s *Service) LabAccounts(ctx context.Context, team healthlab.TeamID, id *LabAccountID, status LabAccountStatus) ([]LabAccount, error) {
	accounts, err := s.catalogue.Accounts(ctx, team)
	if err != nil {
		return nil, fmt.Errorf("list lab accounts: %w", err)
	}
	return slices.DeleteFunc(accounts.Linked, func(a LabAccount) bool {
		return id != nil && a.ID != *id || status != "" && a.Status != status
	}), nil
}

// labOf returns the slug of the lab of one of the team's accounts; empty for nil.
func (s *Service) labOf(ctx context.Context, team healthlab.TeamID, account *LabAccountID) (string, error) {
	if account == nil {
		return "", nil
	}
	linked, err := s.LabAccounts(ctx, team, account, "")
	if err != nil {
		return "", err
	}
	if len(linked) == 0 {
		return "", missing(LabAccountNotFound, "the team has no such lab account")
	}
	return linked[0].Lab, nil
}

// Markers returns a page of the markers that can be ordered; with an account, of those
// of its lab. NotFound if the team has no such account; Invalid if the page is none.
func (s *Service) Markers(ctx context.Context, team healthlab.TeamID, account *LabAccountID, q MarkerQuery) (MarkerPage, error) {
	lab, err := s.labOf(ctx, team, account)
	if err != nil {
		return MarkerPage{}, err
	}
	if lab != "" {
		labs, err := s.Labs(ctx)
		if err != nil {
			return MarkerPage{}, err
		}
		asked := slices.ContainsFunc(labs, func(l Lab) bool {
			return l.Slug == lab && (q.LabSlug == lab || q.LabSlug == "" && (len(q.Labs) == 0 || slices.Contains(q.Labs, l.ID)))
		})
		if !asked {
			q.IDs = []int{} // no marker is of two labs
		}
		q.LabSlug = lab
	}
	page, err := s.catalogue.FindMarkers(ctx, q)
	if err != nil {
		return MarkerPage{}, fmt.Errorf("list markers: %w", err)
	}
	return page, nil
}

// Marker returns the marker that has a code at a lab. NotFound if there is none, or if
// the account is at another lab.
func (s *Service) Marker(ctx context.Context, team healthlab.TeamID, account *LabAccountID, lab int, code string) (Marker, error) {
	slug, err := s.labOf(ctx, team, account)
	if err != nil {
		return Marker{}, err
	}
	markers, err := s.catalogue.Markers(ctx, nil, []string{code})
	if err != nil {
		return Marker{}, fmt.Errorf("get marker: %w", err)
	}
	labs, err := s.Labs(ctx)
	if err != nil {
		return Marker{}, err
	}
	here := slices.ContainsFunc(labs, func(l Lab) bool { return l.ID == lab && (slug == "" || l.Slug == slug) })
	for _, m := range markers {
		if here && m.LabID != nil && *m.LabID == lab {
			return m, nil
		}
	}
	return Marker{}, missing(MarkerNotFound, "the lab has no marker with this code")
}

// LabTests returns a page of the lab tests that the team may see; with an account, of
// those of its lab. NotFound if the team has no such account; Invalid if the cursor is
// none of this query.
func (s *Service) LabTests(ctx context.Context, account *LabAccountID, q LabTestQuery) (LabTestPage, error) {
	lab, err := s.labOf(ctx, q.Team, account)
	if err != nil {
		return LabTestPage{}, err
	}
	if lab != "" {
		if q.LabSlug != "" && q.LabSlug != lab {
			return LabTestPage{Tests: []LabTest{}}, nil
		}
		q.LabSlug = lab
	}
	page, err := s.catalogue.FindLabTests(ctx, q)
	if err != nil {
		return LabTestPage{}, fmt.Errorf("list lab tests: %w", err)
	}
	return page, nil
}

// LabTest returns a lab test that the team may see. NotFound if there is none, or if
// the account is at another lab.
func (s *Service) LabTest(ctx context.Context, team healthlab.TeamID, account *LabAccountID, id LabTestID) (LabTest, error) {
	lab, err := s.labOf(ctx, team, account)
	if err != nil {
		return LabTest{}, err
	}
	tests, err := s.catalogue.LabTests(ctx, team, []LabTestID{id})
	if err != nil {
		return LabTest{}, fmt.Errorf("get lab test: %w", err)
	}
	if len(tests) == 0 || lab != "" && (tests[0].Lab == nil || tests[0].Lab.Slug != lab) {
		return LabTest{}, missing(LabTestNotFound, "the team has no such lab test")
	}
	return tests[0], nil
}

// LabTestMarkers returns a page of the markers of a lab test, reflex markers included.
// Faults as [Service.LabTest].
func (s *Service) LabTestMarkers(ctx context.Context, team healthlab.TeamID, account *LabAccountID, id LabTestID, page, size int) (MarkerPage, error) {
	t, err := s.LabTest(ctx, team, account, id)
	if err != nil {
		return MarkerPage{}, err
	}
	return s.Markers(ctx, team, nil, MarkerQuery{IDs: t.MarkerIDs(), Reflex: true, Page: page, Size: size})
}

// OrderSetMarkers returns a page of the markers that an order of the set would have,
// each once. It is refused by the same rules as the order, but for those about how the
// sample is collected.
func (s *Service) OrderSetMarkers(ctx context.Context, team healthlab.TeamID, set OrderSet, page, size int) (MarkerPage, error) {
	anyMethod := WalkInTest
	w, err := selectFrom(&PlaceRequest{OrderSet: &set, CollectionMethod: &anyMethod})
	if err != nil {
		return MarkerPage{}, err
	}
	found, err := s.look(ctx, team, w)
	if err != nil {
		return MarkerPage{}, err
	}
	tests, err := orderable(w, found.tests)
	if err != nil {
		return MarkerPage{}, err
	}
	if found.accounts, err = s.catalogue.Accounts(ctx, team); err != nil {
		return MarkerPage{}, fmt.Errorf("find lab accounts: %w", err)
	}
	added, lab, err := pick(w, tests, found)
	if err != nil {
		return MarkerPage{}, err
	}
	if err := aLaCarte(added); err != nil {
		return MarkerPage{}, err
	}
	if w.account != nil {
		if _, err := accountFor(lab, w.account, found.accounts, true); err != nil {
			return MarkerPage{}, err
		}
	}
	ids := union(tests, added, lab, anyMethod, LabTestID{}.UUID).MarkerIDs()
	return s.Markers(ctx, team, nil, MarkerQuery{IDs: ids, Reflex: true, Page: page, Size: size})
}

// Normal checks the query and fills in its defaults, so that a Catalogue sees one form
// of it. Invalid lists every problem.
func (q MarkerQuery) Normal() (MarkerQuery, error) {
	var p healthlab.Problems
	pageOf(&p, &q.Page, &q.Size)
	q.Name = strings.TrimSpace(q.Name)
	return q, p.Err()
}

// Normal checks the query and fills in its defaults, so that a Catalogue sees one form
// of it. Invalid lists every problem.
func (q LabTestQuery) Normal() (LabTestQuery, error) {
	var p healthlab.Problems
	if q.Generation == "" {
		q.Generation = GeneratedManual
	}
	oneOf(&p, q.Generation, []Generation{GeneratedAuto, GeneratedManual, GeneratedAll}, "generation_method")
	if q.Method != "" {
		oneOf(&p, q.Method, CollectionMethods(), "collection_method")
	}
	if q.Status != "" {
		oneOf(&p, q.Status, []LabTestStatus{LabTestActive, LabTestPendingApproval, LabTestInactive}, "status")
	}
	if q.Sort == "" {
		q.Sort = SortTestsByCreated
	}
	oneOf(&p, q.Sort, []LabTestSort{SortTestsByPrice, SortTestsByCreated, SortTestsByUpdated}, "order_key")
	if q.Direction == "" {
		q.Direction = Ascending
	}
	oneOf(&p, q.Direction, []Direction{Ascending, Descending}, "order_direction")
	if q.Limit < 0 {
		p.Add("greater_than_equal", "is not negative", "lab_test_limit")
	}
	q.Name = strings.TrimSpace(q.Name)
	return q, p.Err()
}

// pageOf checks a page and its size.
func pageOf(p *healthlab.Problems, page, size *int) {
	if *page == 0 {
		*page = 1
	}
	if *size == 0 {
		*size = DefaultPageSize
	}
	if *page < 1 {
		p.Add("greater_than_equal", "counts from 1", "page")
	}
	if *size < 1 || *size > MaxPageSize {
		p.Add("out_of_range", fmt.Sprintf("is 1 to %d", MaxPageSize), "size")
	}
}
