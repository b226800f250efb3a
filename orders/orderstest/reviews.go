package orderstest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/simulation"
	"github.com/healthlab-dev/healthlab/webhook"
)

// ReviewsHarness is a fresh, empty store of results under review, orders and users.
type ReviewsHarness struct {
	Reviews       exchange.ReviewStore
	MatchTestRuns simulation.MatchTestStore
	Orders        orders.Store
	Users         healthdata.Users
	Messages      webhook.Log
	// SetClock sets the store's clock to an instant, at which it stops.
	SetClock func(now time.Time)
}

// RunReviews runs the contract tests of [exchange.ReviewStore] and [simulation.MatchTestStore]. newStore
// returns a fresh, empty store and registers its own cleanup on t.
func RunReviews(t *testing.T, newStore func(t testing.TB) ReviewsHarness) {
	for name, run := range conformance.Sorted(reviewCases) {
		t.Run(name, func(t *testing.T) { run(t, newStore(t)) })
	}
}

func anaOf(team string) healthlab.UserID {
	if team == "a" {
		return conformance.User("ana")
	}
	return conformance.User("ana of " + team)
}

func rawID(name string) exchange.RawResultID {
	return exchange.RawResultID{UUID: conformance.Named("raw " + name)}
}

// rawResult returns a result under review, without the fields that a decision, the store or a read of the result sets.
func rawResult(team, name string, at time.Time) exchange.RawResult {
	dob := healthlab.At(birthday.At(time.UTC))
	return exchange.RawResult{
		Team: conformance.Team(team), Subject: anaOf(team), Escalated: true,
		UnmatchedResult: exchange.UnmatchedResult{
			ID: rawID(name), Status: exchange.MatchPendingCustomer, DecisionCode: exchange.MatchNone,
			SubReasonCodes: []exchange.MatchSubReason{exchange.LabAccountMismatch}, Reason: "nothing matches",
			Patient: &exchange.ReviewPatient{FirstName: new("Ana"), LastName: new("Roe"), DOB: &dob, Gender: new("female")},
			Lab:     exchange.MatchLab{ID: 6, Name: "Northlab", Slug: "northlab"}, Markers: []exchange.MatchMarker{{ProviderID: new("N1"), Name: new("Iron")}},
			Interpretation: new(labresult.Normal), ResultStatus: new(labresult.Final), CreatedAt: healthlab.At(at), UpdatedAt: healthlab.At(at),
		},
		Message: exchange.Message{ID: name, Team: conformance.Team(team), Order: orderID("o"), SampleID: "S", On: orders.FinalResult, At: at,
			Patient: &orders.ReportedPatient{FirstName: "Ana", LastName: "Roe", DOB: birthday, Gender: people.Female},
			Lab:     "northlab", AccountNumber: "7", Results: &labresult.Report{Results: []labresult.Result{}}},
	}
}

// addReview stores a result under review with its event, adds the result's Owner as a user, and returns the stored
// result.
func (h ReviewsHarness) addReview(t *testing.T, r exchange.RawResult) exchange.RawResult {
	t.Helper()
	if user := r.Owner(); !user.IsZero() {
		ensureUser(t, h.Users, r.Team, user)
	}
	require.NoError(t, h.Reviews.InsertResult(t.Context(), r, []healthlab.Event{reviewEvent(r, "created")}))
	kept, err := h.Reviews.Result(t.Context(), r.Team, r.ID)
	require.NoError(t, err)
	return kept
}

func reviewEvent(r exchange.RawResult, what string) healthlab.Event {
	return healthlab.Event{ID: conformance.Named(r.Team.String() + r.ID.String() + what), Type: "labtest.match_review." + what, Team: r.Team, Key: r.ID.String(), At: noon, Data: []byte(`{"n":1}`)}
}

// reviewEvents returns the number of written events about the team's result with the name 1.
func (h ReviewsHarness) reviewEvents(t *testing.T, team string) int {
	t.Helper()
	n := 0
	for _, what := range []string{"created", "updated"} {
		_, err := h.Messages.Message(t.Context(), conformance.Team(team), reviewEvent(rawResult(team, "1", noon), what).ID)
		if err == nil {
			n++
		} else {
			require.ErrorIs(t, err, healthlab.NotFound)
		}
	}
	return n
}

// order stores an order in a transaction of the same name, and adds its user.
func (h ReviewsHarness) order(t *testing.T, team, name string) orders.Record {
	t.Helper()
	r := newRecord(team, name)
	r.UserID = anaOf(team)
	ensureUser(t, h.Users, r.TeamID, r.UserID)
	r, err := h.Orders.Insert(t.Context(), r, begin)
	require.NoError(t, err)
	return r
}

// accepted is a change that assigns a result to the order made, or to the order was if made is nil.
func accepted(item *exchange.RawResult, was, made *orders.Record) ([]healthlab.Event, error) {
	to := was
	if made != nil {
		to = made
		if _, err := orders.Begin(&made.Order, noon, uuid.New()); err != nil {
			return nil, err
		}
	}
	item.Status, item.ResolvedUserID, item.ResolvedOrderID = exchange.MatchResolved, &to.UserID, &to.ID
	to.Results = &labresult.Report{Results: []labresult.Result{}}
	return []healthlab.Event{reviewEvent(*item, "updated")}, nil
}

func trial(team, name string) simulation.MatchTestRecord {
	at := healthlab.At(noon)
	return simulation.MatchTestRecord{
		Team: conformance.Team(team), Key: "key " + name, Fingerprint: "print", Due: noon,
		Request: simulation.MatchTestRequest{Case: exchange.MatchNone, OrderSource: simulation.ManagedOrders, Orders: map[string]orders.OrderID{"target": orderID("o")}},
		MatchTestRun: simulation.MatchTestRun{RunID: simulation.MatchTestRunID{UUID: conformance.Named("trial " + team + name)}, Status: simulation.MatchTestQueued, Stage: "queued", Case: exchange.MatchNone,
			OrderSource: simulation.ManagedOrders, ResultStatus: labresult.Final,
			Orders:      map[string]simulation.MatchTestOrder{"target": {OrderID: orderID("o"), UserID: conformance.User("ana"), OrderTransactionID: journey("o")}},
			RawResultID: new(rawID("r")), Error: &simulation.MatchTestError{Code: "C", Message: "M"},
			CreatedAt: at, UpdatedAt: at, StartedAt: &at, CompletedAt: &at},
	}
}

var reviewCases = map[string]func(*testing.T, ReviewsHarness){
	"Insert/RoundTrip": func(t *testing.T, h ReviewsHarness) {
		in := rawResult("a", "1", noon)
		in.AllowedActions, in.CandidateGroups = []exchange.ReviewAction{exchange.ReviewAccept}, []exchange.CandidateGroup{{}}
		got := h.addReview(t, in)
		want := rawResult("a", "1", noon)
		want.Revision = 1
		require.Equal(t, want, got)
		require.Equal(t, 1, h.reviewEvents(t, "a"))
		*got.Patient.FirstName = "changed"
		again, err := h.Reviews.Result(t.Context(), want.Team, want.ID)
		require.NoError(t, err)
		require.Equal(t, want, again)
	},
	"Insert/Duplicate": func(t *testing.T, h ReviewsHarness) {
		h.addReview(t, rawResult("a", "1", noon))
		other := rawResult("a", "1", noon)
		other.Reason = "another"
		require.ErrorIs(t, h.Reviews.InsertResult(t.Context(), other, []healthlab.Event{reviewEvent(other, "created")}), healthlab.Conflict)
		kept, err := h.Reviews.Result(t.Context(), other.Team, other.ID)
		require.NoError(t, err)
		require.Equal(t, "nothing matches", kept.Reason)
		require.Equal(t, 1, h.reviewEvents(t, "a"), "and nothing is told")
		h.addReview(t, rawResult("b", "1", noon)) // another team may have a result with the same id
	},
	"Insert/OfNobody": func(t *testing.T, h ReviewsHarness) {
		healthdatatest.AddUser(t, h.Users, conformance.Team("a"), conformance.User("bo"))
		r := rawResult("a", "1", noon) // of ana, who is no user of the team
		require.ErrorIs(t, h.Reviews.InsertResult(t.Context(), r, []healthlab.Event{reviewEvent(r, "created")}), healthlab.NotFound)
		_, err := h.Reviews.Result(t.Context(), r.Team, r.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
		require.Zero(t, h.reviewEvents(t, "a"))
		r.Subject = healthlab.UserID{}
		h.addReview(t, r) // a result of an unknown person
		r = rawResult("a", "2", noon)
		r.Subject = conformance.User("bo")
		h.addReview(t, r)
	},
	"Insert/Text": func(t *testing.T, h ReviewsHarness) {
		r := rawResult("a", "1", noon)
		ensureUser(t, h.Users, r.Team, r.Subject)
		r.Patient.FirstName = new("A\x00")
		require.ErrorIs(t, h.Reviews.InsertResult(t.Context(), r, nil), healthlab.Invalid)
	},
	"Get/OtherTeam": func(t *testing.T, h ReviewsHarness) {
		h.addReview(t, rawResult("a", "1", noon))
		_, err := h.Reviews.Result(t.Context(), conformance.Team("b"), rawID("1"))
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = h.Reviews.UpdateResult(t.Context(), conformance.Team("b"), rawID("1"), func(*exchange.RawResult) ([]healthlab.Event, error) { return nil, nil })
		require.ErrorIs(t, err, healthlab.NotFound)
		page, err := h.Reviews.Results(t.Context(), exchange.ResultQuery{Team: conformance.Team("b")})
		require.NoError(t, err)
		require.Zero(t, page.Total)
	},
	"Update/WritesAndCounts": func(t *testing.T, h ReviewsHarness) {
		h.addReview(t, rawResult("a", "1", noon))
		got, err := h.Reviews.UpdateResult(t.Context(), conformance.Team("a"), rawID("1"), func(r *exchange.RawResult) ([]healthlab.Event, error) {
			r.Status, r.Note = exchange.MatchResolved, new("no")
			return []healthlab.Event{reviewEvent(*r, "updated")}, nil
		})
		require.NoError(t, err)
		require.Equal(t, int64(2), got.Revision)
		kept, err := h.Reviews.Result(t.Context(), conformance.Team("a"), rawID("1"))
		require.NoError(t, err)
		require.Equal(t, got, kept)
		require.Equal(t, "no", *kept.Note)
		require.Equal(t, 2, h.reviewEvents(t, "a"))
	},
	"Update/ErrorWritesNothing": func(t *testing.T, h ReviewsHarness) {
		before := h.addReview(t, rawResult("a", "1", noon))
		no := errors.New("no")
		_, err := h.Reviews.UpdateResult(t.Context(), conformance.Team("a"), rawID("1"), func(r *exchange.RawResult) ([]healthlab.Event, error) {
			r.Status = exchange.MatchResolved
			return []healthlab.Event{reviewEvent(*r, "updated")}, no
		})
		require.ErrorIs(t, err, no)
		kept, err := h.Reviews.Result(t.Context(), conformance.Team("a"), rawID("1"))
		require.NoError(t, err)
		require.Equal(t, before, kept)
		require.Equal(t, 1, h.reviewEvents(t, "a"))
	},
	"Update/NoLostUpdates": func(t *testing.T, h ReviewsHarness) {
		h.addReview(t, rawResult("a", "1", noon))
		var all sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			all.Go(func() {
				_, errs[i] = h.Reviews.UpdateResult(t.Context(), conformance.Team("a"), rawID("1"), func(r *exchange.RawResult) ([]healthlab.Event, error) {
					r.Lab.ID++
					return nil, nil
				})
			})
		}
		all.Wait()
		require.NoError(t, errors.Join(errs...))
		kept, err := h.Reviews.Result(t.Context(), conformance.Team("a"), rawID("1"))
		require.NoError(t, err)
		require.Equal(t, 22, kept.Lab.ID)
	},
	"List/Filters": func(t *testing.T, h ReviewsHarness) {
		plain := rawResult("a", "plain", noon)
		plain.Escalated = false
		other := rawResult("a", "other", noon.Add(time.Hour))
		other.DecisionCode, other.Lab.Slug, other.Patient.FirstName = exchange.MatchPatient, "southlab", new("Bo")
		ours := rawResult("a", "ours", noon.Add(2*time.Hour))
		ours.Status = exchange.MatchPendingOps
		theirs := rawResult("a", "theirs", noon.Add(3*time.Hour))
		theirs.Status, theirs.Escalated = exchange.MatchPendingOps, false
		done := rawResult("a", "done", noon.Add(4*time.Hour))
		done.Status, done.Patient = exchange.MatchResolved, nil
		for _, r := range []exchange.RawResult{plain, other, ours, theirs, done, rawResult("b", "foreign", noon)} {
			h.addReview(t, r)
		}
		for name, tc := range conformance.Sorted(map[string]struct {
			q    exchange.ResultQuery
			want []exchange.RawResult
		}{
			"default":             {exchange.ResultQuery{}, []exchange.RawResult{ours, other, plain}},
			"ops":                 {exchange.ResultQuery{Status: exchange.MatchPendingOps}, []exchange.RawResult{theirs, ours}},
			"ops of the team":     {exchange.ResultQuery{Status: exchange.MatchPendingOps, Escalated: true}, []exchange.RawResult{ours}},
			"not yet ops":         {exchange.ResultQuery{Status: exchange.MatchPendingCustomer, Escalated: true}, []exchange.RawResult{other, plain}},
			"all of the team":     {exchange.ResultQuery{Escalated: true}, []exchange.RawResult{ours, other, plain}},
			"resolved":            {exchange.ResultQuery{Status: exchange.MatchResolved}, []exchange.RawResult{done}},
			"decision":            {exchange.ResultQuery{Decision: exchange.MatchPatient}, []exchange.RawResult{other}},
			"lab":                 {exchange.ResultQuery{LabSlug: "southlab"}, []exchange.RawResult{other}},
			"from":                {exchange.ResultQuery{CreatedFrom: noon.Add(time.Hour)}, []exchange.RawResult{ours, other}},
			"before":              {exchange.ResultQuery{CreatedBefore: noon.Add(time.Hour)}, []exchange.RawResult{plain}},
			"name":                {exchange.ResultQuery{Search: " aNA roe "}, []exchange.RawResult{ours, plain}},
			"birth":               {exchange.ResultQuery{Search: "1984-05"}, []exchange.RawResult{ours, other, plain}},
			"birth in the middle": {exchange.ResultQuery{Search: "05-09"}, nil},
		}) {
			t.Run(name, func(t *testing.T) {
				tc.q.Team = conformance.Team("a")
				page, err := h.Reviews.Results(t.Context(), tc.q)
				require.NoError(t, err)
				var got, want []exchange.RawResultID
				for _, r := range page.Results {
					got = append(got, r.ID)
				}
				for _, r := range tc.want {
					want = append(want, r.ID)
				}
				require.Equal(t, want, got)
				require.Equal(t, len(want), page.Total)
			})
		}
	},
	"List/Pages": func(t *testing.T, h ReviewsHarness) {
		for i := range 5 {
			h.addReview(t, rawResult("a", string(rune('a'+i)), noon.Add(time.Duration(i/2)*time.Microsecond))) // equal times
		}
		whole, err := h.Reviews.Results(t.Context(), exchange.ResultQuery{Team: conformance.Team("a")})
		require.NoError(t, err)
		require.Len(t, whole.Results, 5)
		require.Empty(t, whole.Next)
		var got []exchange.RawResult
		q := exchange.ResultQuery{Team: conformance.Team("a"), Limit: 2}
		for range 3 {
			page, err := h.Reviews.Results(t.Context(), q)
			require.NoError(t, err)
			require.Equal(t, 5, page.Total)
			got = append(got, page.Results...)
			q.Cursor = page.Next
		}
		require.Equal(t, whole.Results, got)
		require.Empty(t, q.Cursor)
		for _, bad := range []string{"x", "%%%", "AAAA"} {
			_, err := h.Reviews.Results(t.Context(), exchange.ResultQuery{Team: conformance.Team("a"), Cursor: bad})
			require.ErrorIs(t, err, healthlab.Invalid)
		}
	},
	"List/PagesWhileDecided": func(t *testing.T, h ReviewsHarness) {
		for i := range 3 {
			h.addReview(t, rawResult("a", string(rune('a'+i)), noon.Add(time.Duration(i)*time.Minute)))
		}
		q := exchange.ResultQuery{Team: conformance.Team("a"), Limit: 1}
		for _, want := range []string{"c", "b", "a"} {
			page, err := h.Reviews.Results(t.Context(), q)
			require.NoError(t, err)
			require.Len(t, page.Results, 1)
			require.Equal(t, rawID(want), page.Results[0].ID)
			_, err = h.Reviews.UpdateResult(t.Context(), q.Team, rawID(want), func(r *exchange.RawResult) ([]healthlab.Event, error) {
				r.Status = exchange.MatchResolved
				return nil, nil
			})
			require.NoError(t, err)
			q.Cursor = page.Next
		}
		require.Empty(t, q.Cursor)
	},
	"Assign/GivesBackWhatIsHeld": func(t *testing.T, h ReviewsHarness) {
		h.addReview(t, rawResult("a", "1", noon))
		was, err := h.Orders.Insert(t.Context(), atHome("a", "1", "ana", "north", appointment.VisitConfirmed), begin)
		require.NoError(t, err)
		_, err = h.Orders.Insert(t.Context(), atHome("a", "2", "ana", "north", appointment.VisitReserved), begin)
		require.ErrorIs(t, err, healthlab.Conflict)
		_, err = h.Reviews.AssignResult(t.Context(), was.TeamID, rawID("1"), exchange.Assignment{Order: was.ID},
			func(item *exchange.RawResult, was, made *orders.Record) ([]healthlab.Event, error) {
				was.Visits[0].Status = appointment.VisitCancelled
				return accepted(item, was, made)
			})
		require.NoError(t, err)
		_, err = h.Orders.Insert(t.Context(), atHome("a", "2", "ana", "north", appointment.VisitReserved), begin)
		require.NoError(t, err, "the provider may visit the patient for another order")
	},
	"Assign/StoreTime": func(t *testing.T, h ReviewsHarness) {
		h.addReview(t, rawResult("a", "1", noon))
		o := h.order(t, "a", "o")
		made := newRecord("a", "new")
		h.SetClock(noon.Add(time.Hour))
		var seen [2]time.Time
		_, err := h.Reviews.AssignResult(t.Context(), o.TeamID, rawID("1"), exchange.Assignment{Order: o.ID, New: &made},
			func(item *exchange.RawResult, was, made *orders.Record) ([]healthlab.Event, error) {
				seen = [2]time.Time{was.StoreTime, made.StoreTime}
				return accepted(item, was, made)
			})
		require.NoError(t, err)
		require.Equal(t, [2]time.Time{noon.Add(time.Hour), noon.Add(time.Hour)}, seen)
		for _, id := range []orders.OrderID{o.ID, made.ID} {
			kept, err := h.Orders.Get(t.Context(), o.TeamID, id)
			require.NoError(t, err)
			require.Zero(t, kept.StoreTime)
		}
	},
	"Assign/ExistingOrder": func(t *testing.T, h ReviewsHarness) {
		h.addReview(t, rawResult("a", "1", noon))
		o := h.order(t, "a", "o")
		got, err := h.Reviews.AssignResult(t.Context(), conformance.Team("a"), rawID("1"), exchange.Assignment{Order: o.ID}, accepted)
		require.NoError(t, err)
		require.Equal(t, o.ID, *got.ResolvedOrderID)
		kept, err := h.Orders.Get(t.Context(), o.TeamID, o.ID)
		require.NoError(t, err)
		require.NotNil(t, kept.Results)
		require.Equal(t, o.Revision+1, kept.Revision)
		require.Equal(t, 2, h.reviewEvents(t, "a"))
	},
	"Assign/NewOrder": func(t *testing.T, h ReviewsHarness) {
		h.addReview(t, rawResult("a", "1", noon))
		made := newRecord("a", "made")
		_, err := h.Reviews.AssignResult(t.Context(), conformance.Team("a"), rawID("1"), exchange.Assignment{New: &made}, accepted)
		require.NoError(t, err)
		kept, err := h.Orders.Get(t.Context(), made.TeamID, made.ID)
		require.NoError(t, err)
		require.NotNil(t, kept.Results)
		require.Equal(t, made.OrderTransaction.ID, kept.OrderTransaction.ID)
		require.Len(t, kept.OrderTransaction.Orders, 1)
	},
	"Assign/NewOrderOfNobody": func(t *testing.T, h ReviewsHarness) {
		before := h.addReview(t, rawResult("a", "1", noon))
		healthdatatest.AddUser(t, h.Users, conformance.Team("a"), conformance.User("bo"))
		made := newRecord("a", "made")
		made.UserID = conformance.User("cy") // no user of the team
		_, err := h.Reviews.AssignResult(t.Context(), conformance.Team("a"), rawID("1"), exchange.Assignment{New: &made}, accepted)
		require.ErrorIs(t, err, healthlab.NotFound)
		kept, err := h.Reviews.Result(t.Context(), conformance.Team("a"), rawID("1"))
		require.NoError(t, err)
		require.Equal(t, before, kept)
		_, err = h.Orders.Get(t.Context(), made.TeamID, made.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
	},
	"Assign/NewOrderInATransaction": func(t *testing.T, h ReviewsHarness) {
		h.addReview(t, rawResult("a", "1", noon))
		o := h.order(t, "a", "o")
		made := newRecord("a", "made")
		made.Origin = orders.OriginRecreation
		_, err := h.Reviews.AssignResult(t.Context(), conformance.Team("a"), rawID("1"), exchange.Assignment{Order: o.ID, New: &made},
			func(item *exchange.RawResult, was, made *orders.Record) ([]healthlab.Event, error) {
				require.Equal(t, o.ID, *made.Parent())
				require.Greater(t, made.NextEventID, was.NextEventID)
				if _, err := orders.Apply(&was.Order, orders.Step{On: orders.CancelRequested, At: noon}); err != nil {
					return nil, err
				}
				return accepted(item, was, made)
			})
		require.NoError(t, err)
		kept, err := h.Orders.Get(t.Context(), made.TeamID, made.ID)
		require.NoError(t, err)
		require.Equal(t, o.OrderTransaction.ID, kept.OrderTransaction.ID)
		require.Equal(t, []orders.OrderID{o.ID, made.ID}, memberIDs(kept.OrderTransaction))
		require.Equal(t, o.ID, *kept.Parent())
		old, err := h.Orders.Get(t.Context(), o.TeamID, o.ID)
		require.NoError(t, err)
		require.Equal(t, orders.Cancelled, old.LowLevel())
	},
	"Assign/SpecimenMoves": func(t *testing.T, h ReviewsHarness) {
		h.addReview(t, rawResult("a", "1", noon))
		was, made := newRecord("a", "o"), newRecord("a", "made")
		was.SampleID, made.SampleID, made.Origin = new("A1"), new("A1"), orders.OriginRecreation
		_, err := h.Orders.Insert(t.Context(), was, begin)
		require.NoError(t, err)
		to := exchange.Assignment{Order: was.ID, New: &made}
		_, err = h.Reviews.AssignResult(t.Context(), conformance.Team("a"), rawID("1"), to, accepted)
		require.ErrorIs(t, err, healthlab.Conflict, "the old order has it still")
		_, err = h.Reviews.AssignResult(t.Context(), conformance.Team("a"), rawID("1"), to,
			func(item *exchange.RawResult, was, made *orders.Record) ([]healthlab.Event, error) {
				was.SampleID = nil
				return accepted(item, was, made)
			})
		require.NoError(t, err)
		found, err := h.Orders.FindSample(t.Context(), made.TeamID, "A1")
		require.NoError(t, err)
		require.Equal(t, made.ID, found.ID)
		old, err := h.Orders.Get(t.Context(), was.TeamID, was.ID)
		require.NoError(t, err)
		require.Nil(t, old.SampleID)
	},
	"Assign/AllOrNothing": func(t *testing.T, h ReviewsHarness) {
		before := h.addReview(t, rawResult("a", "1", noon))
		o := h.order(t, "a", "o")
		no := errors.New("no")
		told := h.reviewEvents(t, "a")
		for name, change := range conformance.Sorted(map[string]exchange.AssignChange{
			"refused": func(item *exchange.RawResult, was, made *orders.Record) ([]healthlab.Event, error) {
				_, _ = accepted(item, was, made)
				return nil, no
			},
			"spoilt order": func(item *exchange.RawResult, was, made *orders.Record) ([]healthlab.Event, error) {
				_, err := accepted(item, was, made)
				was.Notes = new("\x00")
				return nil, err
			},
			"spoilt result": func(item *exchange.RawResult, was, made *orders.Record) ([]healthlab.Event, error) {
				_, err := accepted(item, was, made)
				item.Note = new("\x00")
				return nil, err
			},
		}) {
			t.Run(name, func(t *testing.T) {
				made := newRecord("a", "made")
				_, err := h.Reviews.AssignResult(t.Context(), conformance.Team("a"), rawID("1"), exchange.Assignment{Order: o.ID, New: &made}, change)
				require.Error(t, err)
				kept, err := h.Reviews.Result(t.Context(), conformance.Team("a"), rawID("1"))
				require.NoError(t, err)
				require.Equal(t, before, kept)
				old, err := h.Orders.Get(t.Context(), o.TeamID, o.ID)
				require.NoError(t, err)
				require.Equal(t, o.Revision, old.Revision)
				_, err = h.Orders.Get(t.Context(), made.TeamID, made.ID)
				require.ErrorIs(t, err, healthlab.NotFound)
				require.Equal(t, told, h.reviewEvents(t, "a"))
			})
		}
	},
	"Assign/NotThere": func(t *testing.T, h ReviewsHarness) {
		h.addReview(t, rawResult("a", "1", noon))
		foreign := h.order(t, "b", "o")
		_, err := h.Reviews.AssignResult(t.Context(), conformance.Team("a"), rawID("1"), exchange.Assignment{Order: foreign.ID}, accepted)
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = h.Reviews.AssignResult(t.Context(), conformance.Team("a"), rawID("1"), exchange.Assignment{Order: orderID("none")}, accepted)
		require.ErrorIs(t, err, healthlab.NotFound)
		o := h.order(t, "a", "mine")
		_, err = h.Reviews.AssignResult(t.Context(), conformance.Team("a"), rawID("none"), exchange.Assignment{Order: o.ID}, accepted)
		require.ErrorIs(t, err, healthlab.NotFound)
		taken := newRecord("a", "mine")
		_, err = h.Reviews.AssignResult(t.Context(), conformance.Team("a"), rawID("1"), exchange.Assignment{New: &taken}, accepted)
		require.ErrorIs(t, err, healthlab.Conflict)
	},
	"Assign/OnlyOneWins": func(t *testing.T, h ReviewsHarness) {
		h.addReview(t, rawResult("a", "1", noon))
		var all sync.WaitGroup
		errs := make([]error, 8)
		late := errors.New("late")
		for i := range errs {
			o := h.order(t, "a", string(rune('a'+i)))
			all.Go(func() {
				_, errs[i] = h.Reviews.AssignResult(t.Context(), conformance.Team("a"), rawID("1"), exchange.Assignment{Order: o.ID},
					func(item *exchange.RawResult, was, made *orders.Record) ([]healthlab.Event, error) {
						if !item.Open() {
							return nil, late
						}
						return accepted(item, was, made)
					})
			})
		}
		all.Wait()
		with := 0
		for i, err := range errs {
			if err != nil {
				require.ErrorIs(t, err, late)
			}
			o, err := h.Orders.Get(t.Context(), conformance.Team("a"), orderID(string(rune('a'+i))))
			require.NoError(t, err)
			if o.Results != nil {
				with++
			}
		}
		require.Equal(t, 1, with, "a result goes to one order")
	},
	"Erase": func(t *testing.T, h ReviewsHarness) {
		given := rawResult("a", "given", noon)
		given.Status, given.ResolvedUserID = exchange.MatchResolved, new(conformance.User("bo"))
		anybody := rawResult("a", "anybody", noon)
		anybody.Subject = healthlab.UserID{}
		for _, r := range []exchange.RawResult{rawResult("a", "hers", noon), given, anybody, rawResult("b", "elsewhere", noon)} {
			h.addReview(t, r)
		}
		healthdatatest.EraseUser(t, h.Users, conformance.Team("a"), conformance.User("ana"))
		_, err := h.Reviews.Result(t.Context(), conformance.Team("a"), rawID("hers"))
		require.ErrorIs(t, err, healthlab.NotFound)
		for _, of := range []struct{ team, name string }{{"a", "given"}, {"a", "anybody"}, {"b", "elsewhere"}} {
			_, err := h.Reviews.Result(t.Context(), conformance.Team(of.team), rawID(of.name))
			require.NoError(t, err, of.name)
		}
	},
	"Delete": func(t *testing.T, h ReviewsHarness) {
		h.addReview(t, rawResult("a", "hers", noon))
		team, ana := conformance.Team("a"), conformance.User("ana")
		total := func() int {
			page, err := h.Reviews.Results(t.Context(), exchange.ResultQuery{Team: team})
			require.NoError(t, err)
			require.Len(t, page.Results, page.Total)
			return page.Total
		}
		require.Equal(t, 1, total())
		healthdatatest.DeleteUser(t, h.Users, team, ana)
		require.Zero(t, total())
		_, err := h.Reviews.Result(t.Context(), team, rawID("hers"))
		require.ErrorIs(t, err, healthlab.NotFound)
		require.ErrorIs(t, h.Reviews.InsertResult(t.Context(), rawResult("a", "hers", noon), nil), healthlab.Conflict, "it is kept")
		healthdatatest.RestoreUser(t, h.Users, team, ana)
		require.Equal(t, 1, total())
	},
	"Trials/OnePerKey": func(t *testing.T, h ReviewsHarness) {
		want := trial("a", "1")
		got, fresh, err := h.MatchTestRuns.StartMatchTestRun(t.Context(), want)
		require.NoError(t, err)
		require.True(t, fresh)
		require.Equal(t, want, got)
		other := trial("a", "1")
		other.RunID.UUID, other.Fingerprint = conformance.Named("other"), "other"
		got, fresh, err = h.MatchTestRuns.StartMatchTestRun(t.Context(), other)
		require.NoError(t, err)
		require.False(t, fresh)
		require.Equal(t, want, got)
		_, fresh, err = h.MatchTestRuns.StartMatchTestRun(t.Context(), trial("b", "1"))
		require.NoError(t, err)
		require.True(t, fresh)
		got, err = h.MatchTestRuns.MatchTestRun(t.Context(), want.Team, want.RunID)
		require.NoError(t, err)
		require.Equal(t, want, got)
		_, err = h.MatchTestRuns.MatchTestRun(t.Context(), conformance.Team("b"), want.RunID)
		require.ErrorIs(t, err, healthlab.NotFound)
	},
	"Trials/ClaimAndUpdate": func(t *testing.T, h ReviewsHarness) {
		later, first := trial("a", "later"), trial("b", "first")
		later.Due = noon.Add(time.Second)
		for _, one := range []simulation.MatchTestRecord{later, first} {
			_, _, err := h.MatchTestRuns.StartMatchTestRun(t.Context(), one)
			require.NoError(t, err)
		}
		end := noon.Add(time.Minute)
		claim := func(n int, at time.Time) []string {
			h.SetClock(at)
			got, err := h.MatchTestRuns.ClaimMatchTestRuns(t.Context(), n, time.Minute)
			require.NoError(t, err)
			var keys []string
			for _, one := range got {
				require.Equal(t, at.Add(time.Minute), one.Due)
				keys = append(keys, one.Key)
			}
			return keys
		}
		require.Empty(t, claim(10, noon.Add(-time.Microsecond)))
		require.Equal(t, []string{"key first"}, claim(1, noon.Add(time.Second)))
		require.Equal(t, []string{"key later"}, claim(10, noon.Add(time.Second)))
		require.Empty(t, claim(10, noon.Add(time.Second+time.Minute-time.Microsecond)))
		got, err := h.MatchTestRuns.UpdateMatchTestRun(t.Context(), later.Team, later.RunID, func(k *simulation.MatchTestRecord) error {
			k.Status, k.Due, k.Key = simulation.MatchTestSucceeded, time.Time{}, "another"
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, simulation.MatchTestSucceeded, got.Status)
		require.Equal(t, "key later", got.Key)
		no := errors.New("no")
		_, err = h.MatchTestRuns.UpdateMatchTestRun(t.Context(), first.Team, first.RunID, func(k *simulation.MatchTestRecord) error {
			k.Status = simulation.MatchTestFailed
			return no
		})
		require.ErrorIs(t, err, no)
		_, err = h.MatchTestRuns.UpdateMatchTestRun(t.Context(), conformance.Team("c"), first.RunID, func(*simulation.MatchTestRecord) error { return nil })
		require.ErrorIs(t, err, healthlab.NotFound)
		require.Equal(t, []string{"key first"}, claim(10, end.Add(time.Hour)), "the one that ended is not due")
		kept, err := h.MatchTestRuns.MatchTestRun(t.Context(), first.Team, first.RunID)
		require.NoError(t, err)
		require.Equal(t, simulation.MatchTestQueued, kept.Status)
	},
	"ContextEnded": func(t *testing.T, h ReviewsHarness) {
		h.addReview(t, rawResult("a", "1", noon))
		ended, end := context.WithCancel(t.Context())
		end()
		_, err := h.Reviews.Result(ended, conformance.Team("a"), rawID("1"))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, h.Reviews.InsertResult(ended, rawResult("a", "2", noon), nil), context.Canceled)
		_, err = h.Reviews.UpdateResult(ended, conformance.Team("a"), rawID("1"), func(r *exchange.RawResult) ([]healthlab.Event, error) {
			r.Note = new("x")
			return nil, nil
		})
		require.ErrorIs(t, err, context.Canceled)
		_, _, err = h.MatchTestRuns.StartMatchTestRun(ended, trial("a", "1"))
		require.ErrorIs(t, err, context.Canceled)
		kept, err := h.Reviews.Result(t.Context(), conformance.Team("a"), rawID("1"))
		require.NoError(t, err)
		require.Nil(t, kept.Note)
		page, err := h.Reviews.Results(t.Context(), exchange.ResultQuery{Team: conformance.Team("a")})
		require.NoError(t, err)
		require.Equal(t, 1, page.Total)
	},
}
