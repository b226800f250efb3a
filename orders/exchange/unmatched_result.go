package exchange

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/internal/terms"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// RawResultID names a result that matched no order for certain.
type RawResultID struct{ uuid.UUID }

// MatchStatus is where the review of a result stands.
type MatchStatus string

// The statuses of a review.
const (
	// MatchPendingCustomer waits for the team, MatchPendingOps for operations.
	MatchPendingCustomer MatchStatus = "pending_customer_review"
	MatchPendingOps      MatchStatus = "pending_ops_review"
	MatchResolved        MatchStatus = "resolved"
)

// MatchDecision is why a result did not go to an order by itself.
type MatchDecision string

// The decisions.
const (
	MatchCompleted       MatchDecision = "match_completed"
	MatchCancelled       MatchDecision = "match_cancelled"
	MatchWrongCollection MatchDecision = "wrong_collection"
	MatchWrongLab        MatchDecision = "wrong_lab"
	MatchSeveralPeople   MatchDecision = "multiple_demo_match"
	MatchSampleMismatch  MatchDecision = "match_sample_id_mismatch_demo"
	MatchPatient         MatchDecision = "match_demo"
	MatchNone            MatchDecision = "no_match"
)

// matchDecisions are those that a list can ask for. match_sample_id is that of results
// which went to an order by themselves, and which no list has.
var matchDecisions = []MatchDecision{"match_sample_id", MatchCompleted, MatchCancelled, MatchWrongCollection, MatchWrongLab,
	MatchSeveralPeople, MatchSampleMismatch, MatchPatient, MatchNone}

// MatchSubReason is a further reason.
type MatchSubReason string

// LabAccountMismatch: the result came for another account than the order's.
const LabAccountMismatch MatchSubReason = "lab_account_mismatch"

// ReviewAction is what can be done with a result under review.
type ReviewAction string

// The actions.
const (
	ReviewAccept ReviewAction = "accept"
	ReviewReject ReviewAction = "reject"
	ReviewUnsure ReviewAction = "unsure"
)

// CandidateType tells the order that the specimen points to from others.
type CandidateType string

// The types of candidates.
const (
	ProvenanceOrder CandidateType = "provenance_order"
	OrderOption     CandidateType = "order_option"
)

// ConfidenceLevel is how likely a candidate looks. It is an aid, no more.
type ConfidenceLevel string

// The levels.
const (
	ConfidenceHigh   ConfidenceLevel = "high"
	ConfidenceMedium ConfidenceLevel = "medium"
	ConfidenceLow    ConfidenceLevel = "low"
)

// CandidateReason speaks for or against a candidate.
type CandidateReason string

// UnmatchedResult is a result under review as it is published. Printing or logging it
// shows nothing.
type UnmatchedResult struct {
	healthlab.Private

	ID     RawResultID `json:"id"`
	Status MatchStatus `json:"status"`
	// DecisionCode is why it did not go to an order by itself.
	DecisionCode   MatchDecision    `json:"decision_code"`
	SubReasonCodes []MatchSubReason `json:"sub_reason_codes"`
	// Reason says the same in words.
	Reason string `json:"reason"`
	// Patient is whom the lab reports; null if it names none.
	Patient        *ReviewPatient            `json:"patient"`
	Lab            MatchLab                  `json:"lab"`
	Markers        []MatchMarker             `json:"markers"`
	Interpretation *labresult.Interpretation `json:"interpretation"`
	ResultStatus   *labresult.Status         `json:"result_status"`
	// Note is the reviewer's.
	Note             *string           `json:"note"`
	ResolutionAction *ReviewAction     `json:"resolution_action"`
	ResolvedUserID   *healthlab.UserID `json:"resolved_user_id"`
	ResolvedOrderID  *orders.OrderID   `json:"resolved_order_id"`
	// AllowedActions are those that are accepted now; none after a decision.
	AllowedActions []ReviewAction `json:"allowed_actions"`
	// CandidateGroups are the orders that it may belong to, as they are now.
	CandidateGroups []CandidateGroup `json:"candidate_groups"`
	CreatedAt       healthlab.Time   `json:"created_at"`
	UpdatedAt       healthlab.Time   `json:"updated_at"`
	ReviewedAt      *healthlab.Time  `json:"reviewed_at"`
}

// ReviewPatient is whom a lab reports, as it wrote it.
type ReviewPatient struct {
	healthlab.Private

	FirstName *string         `json:"first_name"`
	LastName  *string         `json:"last_name"`
	DOB       *healthlab.Time `json:"dob"`
	Gender    *string         `json:"gender"`
	// SecondName are second and further given names, Suffix is such as Jr, and DOBText is a
	// birth date that is not one day. Left out if the lab did not write them.
	SecondName string `json:"second_name,omitempty"`
	Suffix     string `json:"suffix,omitempty"`
	DOBText    string `json:"dob_text,omitempty"`
}

// MatchLab is the lab that a result came from.
type MatchLab struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
	Slug string `json:"slug"`
}

// MatchMarker is something that a result measures. Printing or logging it shows nothing.
type MatchMarker struct {
	healthlab.Private

	ProviderID *string `json:"provider_id"`
	Name       *string `json:"name"`
	// Result is the result as text, and Unit its unit; left out if the lab did not report them.
	Result string `json:"result,omitempty"`
	Unit   string `json:"unit,omitempty"`
}

// CandidateGroup are candidates of one patient.
type CandidateGroup struct {
	UserID     *healthlab.UserID `json:"user_id"`
	Candidates []Candidate       `json:"candidates"`
}

// Candidate is an order that a result may belong to.
type Candidate struct {
	CandidateType      CandidateType         `json:"candidate_type"`
	OrderID            *orders.OrderID       `json:"order_id"`
	OrderTransactionID *orders.TransactionID `json:"order_transaction_id"`
	LastStatus         *orders.LowLevel      `json:"last_status"`
	ConfidenceLevel    ConfidenceLevel       `json:"confidence_level"`
	// ConfidenceScore is 0 to 1.
	ConfidenceScore *float64          `json:"confidence_score"`
	Reasons         []CandidateReason `json:"reasons"`
	MarkerOverlap   map[string]any    `json:"marker_overlap"`
	StatusContext   map[string]any    `json:"status_context"`
}

// RawResult is a result under review as it is kept. CandidateGroups and AllowedActions
// are not: they are drawn when it is read.
type RawResult struct {
	healthlab.Private

	UnmatchedResult
	Team healthlab.TeamID
	// Message is what the lab sent.
	Message Message
	// Escalated: the team handed it to operations.
	Escalated bool
	// Subject is the only user whom it could be about when it came; zero if there were
	// none, or several.
	Subject healthlab.UserID
	// Revision grows by one with every write; the first is 1. The store sets it.
	Revision int64
}

// ResultQuery asks for a page of results under review. Filters combine with and; a
// filter at its zero value matches everything.
type ResultQuery struct {
	Team healthlab.TeamID
	// Status is one of the statuses; empty means what waits for the team, and what it
	// handed to operations.
	Status MatchStatus
	// Escalated leaves out what waits for operations and was not handed to them by the
	// team.
	Escalated bool
	Decision  MatchDecision
	LabSlug   string
	// CreatedFrom is inclusive, CreatedBefore exclusive.
	CreatedFrom, CreatedBefore time.Time
	// Search is the reported name, as in [orders.Query], or the year, month or day of birth
	// (YYYY-MM-DD).
	Search string
	// Limit is 1 to 100, 50 if zero. Cursor is where the page before ended.
	Limit  int
	Cursor string
}

// ResultPage is one page of results under review, newest first, ties by id.
type ResultPage struct {
	Results []RawResult
	// Next is the cursor of the next page; empty on the last.
	Next string
	// Total counts all matches.
	Total int
}

// Assignment is which orders a decision changes.
type Assignment struct {
	// Order is there already; zero for none.
	Order orders.OrderID
	// New is an order to be made: in the transaction of Order, or where that is zero in
	// its own. Nil for none.
	New *orders.Record
}

// AssignChange edits a result under review and the orders that the decision changes. was is
// nil where the assignment names no order, made where it has no new one. It is pure, as
// [orders.Change] is.
type AssignChange func(item *RawResult, was, made *orders.Record) ([]healthlab.Event, error)

// ReviewStore keeps results under review, in the store that keeps the orders. What
// [orders.Store] promises holds here, too. Erasing a user removes the results that went to the
// user's orders, and those that wait and belong to no other user ([RawResult.Owner]).
type ReviewStore interface {
	// InsertResult adds a result with its events. Conflict if its id is there; NotFound if
	// the store keeps the team's users, and whose it is ([RawResult.Owner]) was erased.
	InsertResult(ctx context.Context, r RawResult, events []healthlab.Event) error
	// Result returns one; NotFound if the team has none of this id. While the user whose it
	// is ([RawResult.Owner]) is deleted, where the same store keeps users, Result and
	// Results do not find it.
	Result(ctx context.Context, team healthlab.TeamID, id RawResultID) (RawResult, error)
	// Results returns a page. Invalid if the cursor is none of such a query. In a restored
	// backup, results of persons whose key was deleted are left out of pages; the total has them.
	Results(ctx context.Context, q ResultQuery) (ResultPage, error)
	// UpdateResult lets change edit a result, and writes it with the events: as
	// [orders.Store.Update].
	UpdateResult(ctx context.Context, team healthlab.TeamID, id RawResultID, change func(*RawResult) ([]healthlab.Event, error)) (RawResult, error)
	// AssignResult lets change edit a result and orders together, and writes them with
	// the events: all or nothing. Errors as [orders.Store.Update] and [orders.Store.InsertAfter], and
	// for a new order alone as [orders.Store.Insert].
	AssignResult(ctx context.Context, team healthlab.TeamID, id RawResultID, s Assignment, change AssignChange) (RawResult, error)
}

// Names of the rules about results under review.
const (
	ReviewNotEnabled   = "UNMATCHED_RESULTS_NOT_ENABLED"
	RawResultNotFound  = "UNMATCHED_RESULT_NOT_FOUND"
	ReviewNotPossible  = "REVIEW_NOT_POSSIBLE"
	ReviewInconsistent = "REVIEW_SELECTION_INCONSISTENT"
	ReviewNeedsChoice  = "REVIEW_SELECTION_REQUIRED"
)

// Open reports whether the team can decide.
func (r *RawResult) Open() bool { return r.Status == MatchPendingCustomer }

func (r *RawResult) visibleToTeam() bool { return r.Open() || r.Escalated }

// Owner returns the user with whom it is erased: the one it was given to, else the
// only one whom it could be about. Zero if there is none.
func (r *RawResult) Owner() healthlab.UserID {
	if r.ResolvedUserID != nil {
		return *r.ResolvedUserID
	}
	return r.Subject
}

// Normal checks the query and fills in its defaults. Invalid lists every problem.
func (q ResultQuery) Normal() (ResultQuery, error) {
	var p healthlab.Problems
	if q.Limit == 0 {
		q.Limit = catalogue.DefaultPageSize
	}
	if q.Limit < 1 || q.Limit > catalogue.MaxPageSize {
		p.Add("out_of_range", fmt.Sprintf("must be from 1 to %d", catalogue.MaxPageSize), "limit")
	}
	if q.Status != "" {
		rules.OneOf(&p, q.Status, []MatchStatus{MatchPendingCustomer, MatchPendingOps, MatchResolved}, "status")
	}
	if q.Decision != "" {
		rules.OneOf(&p, q.Decision, matchDecisions, "decision_code")
	}
	q.Search = strings.TrimSpace(q.Search)
	if strings.ContainsRune(q.Search, 0) {
		p.Add("nul", "must not contain NUL", "search_input")
	}
	return q, p.Err()
}

// Match reports whether the query asks for a result.
func (q *ResultQuery) Match(r *RawResult) bool {
	return q.MatchClear(r) && terms.HaveOne(r.SearchTerms(), q.SearchTerms())
}

// MatchClear is Match without Search, which compares what a store may keep encrypted.
func (q *ResultQuery) MatchClear(r *RawResult) bool {
	at := r.CreatedAt
	switch {
	case r.Team != q.Team,
		q.Status != "" && r.Status != q.Status,
		q.Status == "" && !r.Open() && r.Status != MatchPendingOps,
		(q.Status == "" || q.Escalated) && r.Status == MatchPendingOps && !r.Escalated,
		q.Decision != "" && r.DecisionCode != q.Decision,
		q.LabSlug != "" && r.Lab.Slug != q.LabSlug,
		!q.CreatedFrom.IsZero() && at.Before(q.CreatedFrom),
		!q.CreatedBefore.IsZero() && !at.Before(q.CreatedBefore):
		return false
	}
	return true
}

// SearchTerms returns the terms by which a result is found, each once.
func (r *RawResult) SearchTerms() []string {
	return slices.Concat(terms.Of(terms.Patient, r.ReportedName()), terms.Born(r.ReportedDOB()))
}

// SearchTerms returns lists of terms, as [orders.Query.SearchTerms] does: a result that matches Search has all terms
// of one of the lists.
func (q *ResultQuery) SearchTerms() [][]string {
	if q.Search == "" {
		return nil
	}
	return [][]string{terms.Wanted(terms.Patient, q.Search), {terms.BirthDate + q.Search}}
}

// ReportedName is the reported first and last name after [healthlab.FoldText]; empty if there is
// none.
func (r *RawResult) ReportedName() string {
	if r.Patient == nil {
		return ""
	}
	return healthlab.FoldText(rules.Join(r.Patient.FirstName, r.Patient.LastName))
}

// ReportedDOB is the reported birth date as YYYY-MM-DD; empty if there is none.
func (r *RawResult) ReportedDOB() string {
	if r.Patient == nil || r.Patient.DOB == nil {
		return ""
	}
	return rules.UTCDay(r.Patient.DOB.Time).String()
}

// newEvent returns an event about the review.
func (r *RawResult) newEvent(name string, id uuid.UUID, at healthlab.Time) ([]healthlab.Event, error) {
	n := MatchReviewNotice{
		ID: r.ID.UUID, Status: string(r.Status), DecisionCode: string(r.DecisionCode), SubReasonCodes: []string{},
		ResolvedUserID: r.ResolvedUserID, ResolvedOrderID: r.ResolvedOrderID,
	}
	for _, c := range r.SubReasonCodes {
		n.SubReasonCodes = append(n.SubReasonCodes, string(c))
	}
	if r.ResolutionAction != nil {
		action := string(*r.ResolutionAction)
		n.ResolutionAction = &action
	}
	var user healthlab.UserID
	if r.ResolvedUserID != nil {
		user = *r.ResolvedUserID
	}
	data, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	return []healthlab.Event{{ID: id, Type: name, Team: r.Team, User: user, Key: r.ID.String(), At: at.Time, Data: data}}, nil
}
