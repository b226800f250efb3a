package catalogue

import (
	"fmt"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// MarkerQuery asks for a page of markers. Filters combine with and; a filter at its
// zero value matches everything.
type MarkerQuery struct {
	// Labs are ids of labs, any of which will do. LabSlug is one lab; Labs says nothing
	// beside it.
	Labs    []int
	LabSlug string
	// Name is a search text, ignoring case. First come markers that have its
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

// Generation tells lab tests that a team made from those that the service built for
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

// Normal checks the query and fills in its defaults, so that a Catalogue sees one form
// of it. Invalid lists every problem.
func (q MarkerQuery) Normal() (MarkerQuery, error) {
	var p healthlab.Problems
	CheckPage(&p, &q.Page, &q.Size)
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
	rules.OneOf(&p, q.Generation, []Generation{GeneratedAuto, GeneratedManual, GeneratedAll}, "generation_method")
	if q.Method != "" {
		rules.OneOf(&p, q.Method, CollectionMethods(), "collection_method")
	}
	if q.Status != "" {
		rules.OneOf(&p, q.Status, []LabTestStatus{LabTestActive, LabTestPendingApproval, LabTestInactive}, "status")
	}
	if q.Sort == "" {
		q.Sort = SortTestsByCreated
	}
	rules.OneOf(&p, q.Sort, []LabTestSort{SortTestsByPrice, SortTestsByCreated, SortTestsByUpdated}, "order_key")
	if q.Direction == "" {
		q.Direction = Ascending
	}
	rules.OneOf(&p, q.Direction, []Direction{Ascending, Descending}, "order_direction")
	if q.Limit < 0 {
		p.Add("greater_than_equal", "must be 0 or more", "lab_test_limit")
	}
	q.Name = strings.TrimSpace(q.Name)
	return q, p.Err()
}

// CheckPage checks a page and its size.
func CheckPage(p *healthlab.Problems, page, size *int) {
	if *page == 0 {
		*page = 1
	}
	if *size == 0 {
		*size = DefaultPageSize
	}
	if *page < 1 {
		p.Add("greater_than_equal", "must be 1 or more", "page")
	}
	if *size < 1 || *size > MaxPageSize {
		p.Add("out_of_range", fmt.Sprintf("must be from 1 to %d", MaxPageSize), "size")
	}
}

// Direction is ascending or descending.
type Direction string

// The directions.
const (
	Ascending  Direction = "asc"
	Descending Direction = "desc"
)

// Limits of a page of orders.
const (
	DefaultPageSize = 50
	MaxPageSize     = 100
)
