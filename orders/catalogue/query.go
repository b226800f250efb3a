package catalogue

import (
	"fmt"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// MarkerQuery selects a page of markers. Filters combine with and; a zero filter matches everything.
type MarkerQuery struct {
	// Labs are ids of labs, any of which matches. LabSlug is one lab; with it, Labs is ignored.
	Labs    []int
	LabSlug string
	// Name is a search text; case is ignored. First come markers that have all words of the text (a lab's code, a LOINC
	// code or a usual abbreviation counts as a word), then those whose name contains the text. If there are none,
	// similar markers come, the closest first: those with spelling differences, or with words that begin with the words
	// of the text.
	Name string
	// ALaCarte selects markers that can be ordered outside of a lab test if true, and those that cannot if
	// false.
	ALaCarte *bool
	// Reflex includes reflex markers, which are only reported with another marker's result.
	Reflex bool
	// IDs limit the markers; nil means any.
	IDs []int
	// Page counts from 1, the default. Size is 1 to 100, 50 by default.
	Page, Size int
}

// MarkerPage is one page of markers, sorted by id, or by similarity if the query has a name.
type MarkerPage struct {
	Markers []MarkerComplete
	// Total is the number of all matches.
	Total int
}

// Generation distinguishes lab tests that a team made from those that the service built for one order.
type Generation string

// Generations of lab tests: built by the service, made by the team, and both.
const (
	GeneratedAuto   Generation = "auto"
	GeneratedManual Generation = "manual"
	GeneratedAll    Generation = "all"
)

// LabTestSort is the sort key of a list of lab tests.
type LabTestSort string

// Sort keys of lab tests. Default: the time of creation.
const (
	SortTestsByPrice   LabTestSort = "price"
	SortTestsByCreated LabTestSort = "created_at"
	SortTestsByUpdated LabTestSort = "updated_at"
)

// LabTestQuery selects a page of the lab tests that the team may see. Filters combine with and; a zero filter
// matches everything.
type LabTestQuery struct {
	Team healthlab.TeamID
	// Generation selects tests that the team made (manual, the default), that the service built (auto), or both
	// (all).
	Generation Generation
	LabSlug    string
	Method     CollectionMethod
	Status     LabTestStatus
	// MarkerIDs and ProviderIDs (the lab's codes) must all be in the test.
	MarkerIDs   []int
	ProviderIDs []string
	// Name is a part of the name, ignoring case.
	Name      string
	Sort      LabTestSort
	Direction Direction
	// Limit is the highest number of tests to return; 0 means all.
	Limit int
	// Cursor is the Next of the previous page of the same query; empty for the first.
	Cursor string
}

// LabTestPage is one page of lab tests.
type LabTestPage struct {
	Tests []LabTest
	// Next is the cursor of the next page; empty on the last.
	Next string
}

func (q MarkerQuery) normalized() (MarkerQuery, error) {
	var p healthlab.Problems
	CheckPage(&p, &q.Page, &q.Size)
	q.Name = strings.TrimSpace(q.Name)
	return q, p.Err()
}

// normalized checks the query and returns it with its defaults set, so that every Source applies the same defaults.
// Invalid lists every problem.
func (q LabTestQuery) normalized() (LabTestQuery, error) {
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

// CheckPage sets the defaults of a page number and a page size that are zero, then adds a problem for each invalid one.
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

// Directions of sorting.
const (
	Ascending  Direction = "asc"
	Descending Direction = "desc"
)

// Numbers of items on a page: the default and the highest.
const (
	DefaultPageSize = 50
	MaxPageSize     = 100
)
