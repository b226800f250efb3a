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

// RawResultID identifies a result that matches no order with certainty.
type RawResultID struct{ uuid.UUID }

// MatchStatus is the state of a result's review.
type MatchStatus string

// The statuses of a review.
const (
	// MatchPendingCustomer: the result waits for the team. MatchPendingOps: it waits for operations.
	MatchPendingCustomer MatchStatus = "pending_customer_review"
	MatchPendingOps      MatchStatus = "pending_ops_review"
	MatchResolved        MatchStatus = "resolved"
)

// MatchDecision is the reason for which a result was not assigned to an order automatically.
type MatchDecision string

// Match decisions.
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

// matchDecisions are the decisions that a list can filter by. match_sample_id is missing, because results with
// it are assigned automatically and not listed.
var matchDecisions = []MatchDecision{"match_sample_id", MatchCompleted, MatchCancelled, MatchWrongCollection, MatchWrongLab,
	MatchSeveralPeople, MatchSampleMismatch, MatchPatient, MatchNone}

// MatchSubReason is a further reason for a review.
type MatchSubReason string

// LabAccountMismatch: the result came for another account than the order's.
const LabAccountMismatch MatchSubReason = "lab_account_mismatch"

// ReviewAction is an action on a result under review.
type ReviewAction string

// Review actions.
const (
	ReviewAccept ReviewAction = "accept"
	ReviewReject ReviewAction = "reject"
	ReviewUnsure ReviewAction = "unsure"
)

// CandidateType distinguishes the order that the specimen id identifies from other candidates.
type CandidateType string

// Types of candidates.
const (
	ProvenanceOrder CandidateType = "provenance_order"
	OrderOption     CandidateType = "order_option"
)

// ConfidenceLevel is the likelihood that a candidate is the right order. It is only a hint.
type ConfidenceLevel string

// Confidence levels.
const (
	ConfidenceHigh   ConfidenceLevel = "high"
	ConfidenceMedium ConfidenceLevel = "medium"
	ConfidenceLow    ConfidenceLevel = "low"
)

// CandidateReason is a fact that speaks for or against a candidate.
type CandidateReason string

// UnmatchedResult is a result under review in the HTTP API. Printing or logging it shows no values.
type UnmatchedResult struct {
	healthlab.Private

	ID     RawResultID `json:"id"`
	Status MatchStatus `json:"status"`
	// DecisionCode is the reason for which the result was not assigned to an order automatically.
	DecisionCode   MatchDecision    `json:"decision_code"`
	SubReasonCodes []MatchSubReason `json:"sub_reason_codes"`
	// Reason is the text of DecisionCode.
	Reason string `json:"reason"`
	// Patient is the patient as the lab reported it; null if the lab reported none.
	Patient        *ReviewPatient            `json:"patient"`
	Lab            MatchLab                  `json:"lab"`
	Markers        []MatchMarker             `json:"markers"`
	Interpretation *labresult.Interpretation `json:"interpretation"`
	ResultStatus   *labresult.Status         `json:"result_status"`
	// Note is the reviewer's note.
	Note             *string           `json:"note"`
	ResolutionAction *ReviewAction     `json:"resolution_action"`
	ResolvedUserID   *healthlab.UserID `json:"resolved_user_id"`
	ResolvedOrderID  *orders.OrderID   `json:"resolved_order_id"`
	// AllowedActions are the actions that are allowed at present; none after a decision.
	AllowedActions []ReviewAction `json:"allowed_actions"`
	// CandidateGroups are the orders that the result may belong to, in their present state.
	CandidateGroups []CandidateGroup `json:"candidate_groups"`
	CreatedAt       healthlab.Time   `json:"created_at"`
	UpdatedAt       healthlab.Time   `json:"updated_at"`
	ReviewedAt      *healthlab.Time  `json:"reviewed_at"`
}

// ReviewPatient is the patient as the lab reported it.
type ReviewPatient struct {
	healthlab.Private

	FirstName *string         `json:"first_name"`
	LastName  *string         `json:"last_name"`
	DOB       *healthlab.Time `json:"dob"`
	Gender    *string         `json:"gender"`
	// SecondName has second and further given names, Suffix a suffix such as Jr, and DOBText a birth date that
	// cannot be read as one day. Left out if the lab did not report them.
	SecondName string `json:"second_name,omitempty"`
	Suffix     string `json:"suffix,omitempty"`
	DOBText    string `json:"dob_text,omitempty"`
}

// MatchLab is the lab that sent a result.
type MatchLab struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
	Slug string `json:"slug"`
}

// MatchMarker is a measured marker of a result. Printing or logging it shows no values.
type MatchMarker struct {
	healthlab.Private

	ProviderID *string `json:"provider_id"`
	Name       *string `json:"name"`
	// Result is the result as text, and Unit its unit; left out if the lab did not report them.
	Result string `json:"result,omitempty"`
	Unit   string `json:"unit,omitempty"`
}

// CandidateGroup has the candidates of one patient.
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

// RawResult is a stored result under review. CandidateGroups and AllowedActions are not stored; they are
// computed when it is read.
type RawResult struct {
	healthlab.Private

	UnmatchedResult
	Team healthlab.TeamID
	// Message is the message that the lab sent.
	Message Message
	// Escalated is true if the team passed the result to operations.
	Escalated bool
	// Subject is the only user whose orders were candidates when the result was received; zero if there were none
	// or several.
	Subject healthlab.UserID
	// Revision grows by one with every write, from 1. The store sets it.
	Revision int64
}

// ResultQuery selects a page of results under review. Filters combine with and; a zero filter matches
// everything.
type ResultQuery struct {
	Team healthlab.TeamID
	// Status is the state of the reviews. Empty means results that wait for the team, and results that the team passed
	// to operations.
	Status MatchStatus
	// Escalated excludes results that wait for operations and were never passed on by the team.
	Escalated bool
	Decision  MatchDecision
	LabSlug   string
	// CreatedFrom is inclusive, CreatedBefore exclusive.
	CreatedFrom, CreatedBefore time.Time
	// Search is a part of the reported name, as in [orders.Query], or the year (YYYY), month
	// (YYYY-MM) or day (YYYY-MM-DD) of birth.
	Search string
	// Limit is 1 to 100, by default 50. Cursor is the Next of the previous page.
	Limit  int
	Cursor string
}

// ResultPage is one page of results under review, the newest first, then by id.
type ResultPage struct {
	Results []RawResult
	// Next is the cursor of the next page; empty on the last.
	Next string
	// Total is the number of all matches.
	Total int
}

// Assignment names the orders that a decision changes.
type Assignment struct {
	// Order is an existing order; zero for none.
	Order orders.OrderID
	// New is a new order: in the transaction of Order, or in a new transaction if Order is zero. Nil for none.
	New *orders.Record
}

// AssignChange edits a result under review and the orders that the decision changes. was is nil if the
// assignment names no order, made is nil if it has no new one. It must be pure, as [orders.Change].
type AssignChange func(item *RawResult, was, made *orders.Record) ([]healthlab.Event, error)

// ReviewStore stores results under review, in the same store as the orders. The rules of [orders.Store] about
// all methods apply here too. Erasing a user removes the results that were assigned to the user's orders, and
// waiting results of which the user is the [RawResult.Owner].
type ReviewStore interface {
	// InsertResult adds a result with its events. Conflict if a result with the id exists; NotFound if the
	// store has the team's users, and the result's [RawResult.Owner] was erased.
	InsertResult(ctx context.Context, r RawResult, events []healthlab.Event) error
	// Result returns a result; NotFound if the team has no result with this id. If the same store has the
	// users, results whose [RawResult.Owner] is deleted are not found and not listed.
	Result(ctx context.Context, team healthlab.TeamID, id RawResultID) (RawResult, error)
	// Results returns a page. Invalid for an invalid cursor. In a restored backup, results of persons whose key
	// was deleted are missing in pages, but counted in the total.
	Results(ctx context.Context, q ResultQuery) (ResultPage, error)
	// UpdateResult lets change edit a result, and writes it with the events, as [orders.Store.Update] does.
	UpdateResult(ctx context.Context, team healthlab.TeamID, id RawResultID, change func(*RawResult) ([]healthlab.Event, error)) (RawResult, error)
	// AssignResult lets change edit a result and orders together, and writes them with the events in one
	// transaction. Errors as [orders.Store.Update] and [orders.Store.InsertAfter]; for a new order alone as
	// [orders.Store.Insert].
	AssignResult(ctx context.Context, team healthlab.TeamID, id RawResultID, s Assignment, change AssignChange) (RawResult, error)
}

// Error types about results under review.
const (
	ReviewNotEnabled   = "UNMATCHED_RESULTS_NOT_ENABLED"
	RawResultNotFound  = "UNMATCHED_RESULT_NOT_FOUND"
	ReviewNotPossible  = "REVIEW_NOT_POSSIBLE"
	ReviewInconsistent = "REVIEW_SELECTION_INCONSISTENT"
	ReviewNeedsChoice  = "REVIEW_SELECTION_REQUIRED"
)

// Open reports whether the result waits for the team's decision.
func (r *RawResult) Open() bool { return r.Status == MatchPendingCustomer }

func (r *RawResult) visibleToTeam() bool { return r.Open() || r.Escalated }

// Owner returns the user with whom the result is erased: the user of the order that the result was assigned to, else
// Subject. Zero if there is none.
func (r *RawResult) Owner() healthlab.UserID {
	if r.ResolvedUserID != nil {
		return *r.ResolvedUserID
	}
	return r.Subject
}

// normalized checks the query and sets its defaults. Invalid lists every problem.
func (q ResultQuery) normalized() (ResultQuery, error) {
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

// Match reports whether a result matches the query.
func (q *ResultQuery) Match(r *RawResult) bool {
	return q.matchClear(r) && terms.HaveOne(r.searchTerms(), q.searchTerms())
}

// matchClear is Match without Search, because a store may encrypt the fields that Search compares.
func (q *ResultQuery) matchClear(r *RawResult) bool {
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

func (r *RawResult) searchTerms() []string {
	return slices.Concat(terms.Of(terms.Patient, r.reportedName()), terms.Born(r.reportedDOB()))
}

func (q *ResultQuery) searchTerms() [][]string {
	// A result that matches has all terms of at least one list.
	if q.Search == "" {
		return nil
	}
	return [][]string{terms.Wanted(terms.Patient, q.Search), {terms.BirthDate + q.Search}}
}

func (r *RawResult) reportedName() string {
	if r.Patient == nil {
		return ""
	}
	return healthlab.FoldText(rules.Join(r.Patient.FirstName, r.Patient.LastName))
}

func (r *RawResult) reportedDOB() string {
	if r.Patient == nil || r.Patient.DOB == nil {
		return ""
	}
	return rules.UTCDay(r.Patient.DOB.Time).String()
}

// newEvent returns an event about the review, with a [MatchReviewNotice] as its payload.
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
