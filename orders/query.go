package orders

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/internal/terms"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// Query selects a page of a team's orders. Filters combine with and, the values of one filter with or; a zero
// filter matches everything. A query with only Team selects the first page of 50, newest first.
type Query struct {
	Team healthlab.TeamID
	// Search matches, ignoring case: an order or user id (whole); the patient's or the recipient's name; the
	// year (YYYY), month (YYYY-MM) or day (YYYY-MM-DD) of birth.
	Search string
	// CreatedFrom and UpdatedFrom are inclusive, CreatedBefore and UpdatedBefore
	// exclusive.
	CreatedFrom, CreatedBefore time.Time
	UpdatedFrom, UpdatedBefore time.Time
	// EventFrom and EventBefore limit the time of the latest event, inclusive and exclusive. No list of the
	// HTTP API has them.
	EventFrom, EventBefore time.Time
	// Status compares the latest status only.
	Status  []LowLevel
	Methods []catalogue.CollectionMethod
	// Critical selects orders whose interpretation is critical (true), or any other one or none (false).
	Critical       *bool
	Interpretation labresult.Interpretation
	// Activations compares the activation date with Today.
	Activations []ActivationType
	Today       healthlab.Date
	User        healthlab.UserID
	// PatientName and Recipient match a name that has all of their words, in any order,
	// ignoring case. A word of at least three letters also matches the beginning of a word of
	// the name.
	PatientName, Recipient string
	IDs                    []OrderID
	Transaction            TransactionID
	Sort                   SortKey
	// Direction is ascending or descending; empty means descending by creation and
	// ascending otherwise.
	Direction catalogue.Direction
	// Page counts from 1, the default. Size is 1 to 100, 50 by default.
	Page, Size int
}

// SortKey is the sort key of a list of orders.
type SortKey string

// Sort keys of orders.
const (
	// SortCreatedAt is the default.
	SortCreatedAt SortKey = "created_at"
	// SortPatientName sorts by last name, then first name; orders without either
	// come last in both directions. A list of more than [MaxSortedByName] is refused.
	SortPatientName SortKey = "patient_name"
	// SortLastStatus sorts by the text of the full latest status.
	SortLastStatus SortKey = "last_status"
)

// Normal checks the query and sets its defaults, so that a Store gets one form of it. Invalid lists every
// problem.
func (q Query) Normal() (Query, error) {
	var p healthlab.Problems
	catalogue.CheckPage(&p, &q.Page, &q.Size)
	for i, l := range q.Status {
		rules.OneOf(&p, l, allLowLevels(), "status", i)
	}
	for i, m := range q.Methods {
		rules.OneOf(&p, m, catalogue.CollectionMethods(), "order_type", i)
	}
	for i, a := range q.Activations {
		rules.OneOf(&p, a, []ActivationType{ActivationCurrent, ActivationScheduled}, "order_activation_types", i)
	}
	if q.Interpretation != "" {
		rules.OneOf(&p, q.Interpretation, labresult.Interpretations(), "interpretation")
	}
	if q.Sort == "" {
		q.Sort = SortCreatedAt
	}
	rules.OneOf(&p, q.Sort, []SortKey{SortCreatedAt, SortPatientName, SortLastStatus}, "order_key")
	if q.Direction == "" {
		q.Direction = catalogue.Ascending
		if q.Sort == SortCreatedAt {
			q.Direction = catalogue.Descending
		}
	}
	rules.OneOf(&p, q.Direction, []catalogue.Direction{catalogue.Ascending, catalogue.Descending}, "order_direction")
	for _, f := range []struct{ text, name string }{
		{q.Search, "search_input"}, {q.PatientName, "patient_name"}, {q.Recipient, "shipping_recipient_name"},
	} {
		if strings.ContainsRune(f.text, 0) {
			p.Add("nul", "must not contain NUL", f.name)
		}
	}
	q.Search = strings.TrimSpace(q.Search)
	return q, p.Err()
}

// allLowLevels returns the low-level statuses of all methods.
func allLowLevels() []LowLevel {
	var out []LowLevel
	for _, m := range catalogue.CollectionMethods() {
		for _, l := range LowLevels(m) {
			if !slices.Contains(out, l) {
				out = append(out, l)
			}
		}
	}
	return out
}

// Match reports whether an order of the query's team matches. It defines the filters; a Store may find the same
// orders in another way.
func (q *Query) Match(o *Order) bool {
	if !q.matchClear(o) {
		return false
	}
	found := searchTerms(o)
	return terms.HaveAll(found, q.terms()) && (q.matchID(o) || terms.HaveOne(found, q.searchTerms()))
}

func (q *Query) matchID(o *Order) bool {
	id, err := uuid.Parse(q.Search)
	return err == nil && len(q.Search) == 36 && (id == o.ID.UUID || id == o.UserID.UUID)
}

// matchClear is Match without PatientName, Recipient and Search, because a Store may encrypt the fields that
// they compare.
func (q *Query) matchClear(o *Order) bool {
	switch {
	case o.TeamID != q.Team,
		!q.CreatedFrom.IsZero() && o.CreatedAt.Before(q.CreatedFrom),
		!q.CreatedBefore.IsZero() && !o.CreatedAt.Before(q.CreatedBefore),
		!q.UpdatedFrom.IsZero() && o.UpdatedAt.Before(q.UpdatedFrom),
		!q.UpdatedBefore.IsZero() && !o.UpdatedAt.Before(q.UpdatedBefore),
		!q.EventFrom.IsZero() && o.LastEvent.CreatedAt.Before(q.EventFrom),
		!q.EventBefore.IsZero() && !o.LastEvent.CreatedAt.Before(q.EventBefore),
		!rules.MatchesAny(q.Status, o.LowLevel()),
		!rules.MatchesAny(q.Methods, o.Method()),
		!rules.MatchesAny(q.IDs, o.ID),
		!rules.MatchesAny(q.Activations, o.activation(q.Today)),
		!q.User.IsZero() && o.UserID != q.User,
		!q.Transaction.IsZero() && o.OrderTransaction.ID != q.Transaction:
		return false
	}
	var read labresult.Interpretation
	if o.Interpretation != nil {
		read = *o.Interpretation
	}
	return (q.Interpretation == "" || read == q.Interpretation) && (q.Critical == nil || (read == labresult.Critical) == *q.Critical)
}

// Less compares two orders in the sort order of the query.
func (q *Query) Less(a, b *Order) bool {
	var c int
	switch q.Sort {
	case SortPatientName:
		x, y := a.PatientDetails.SortName(), b.PatientDetails.SortName()
		if (x == "") != (y == "") {
			return y == "" // those without a name last, in both directions
		}
		c = cmp.Compare(x, y)
	case SortLastStatus:
		c = cmp.Compare(a.LastEvent.Status, b.LastEvent.Status)
	default:
		c = a.CreatedAt.Compare(b.CreatedAt.Time)
	}
	if c == 0 {
		return bytes.Compare(a.ID.UUID[:], b.ID.UUID[:]) < 0
	}
	return c < 0 == (q.Direction == catalogue.Ascending)
}

// checkSorted returns an error if a list of n orders is too long to be sorted by the patient's name.
func (q *Query) checkSorted(n int) error {
	if q.Sort != SortPatientName || n <= MaxSortedByName {
		return nil
	}
	var p healthlab.Problems
	p.Add("too_many", fmt.Sprintf("must not be patient_name for more than %d orders; add a filter", MaxSortedByName), "order_key")
	return p.Err()
}

// MaxSortedByName is the highest number of matches that a list can sort by the patient's name, because a Store
// that encrypts names must decrypt those of all matches.
const MaxSortedByName = 5000

// searchTerms returns the search terms of an order, without duplicates.
func searchTerms(o *Order) []string {
	var born string
	if o.PatientDetails != nil {
		born = o.PatientDetails.DOB.String()
	}
	return slices.Concat(terms.Of(terms.Patient, o.PatientDetails.Name()), terms.Of(terms.Recipient, o.recipient()), terms.Born(born))
}

// terms returns the search terms of PatientName and Recipient: a matching order has all of them. Empty if the
// query has neither.
func (q *Query) terms() []string {
	var out []string
	if q.PatientName != "" {
		out = terms.Wanted(terms.Patient, q.PatientName)
	}
	if q.Recipient != "" {
		out = append(out, terms.Wanted(terms.Recipient, q.Recipient)...)
	}
	return out
}

func (q *Query) searchTerms() [][]string {
	// An order that matches has all terms of at least one list.
	if q.Search == "" {
		return nil
	}
	return [][]string{terms.Wanted(terms.Patient, q.Search), terms.Wanted(terms.Recipient, q.Search), {terms.BirthDate + q.Search}}
}
