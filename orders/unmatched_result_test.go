package orders_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/simulation"
)

func newReviewFixture(t testing.TB, edit ...func(*options)) *fixture {
	d := newFixture(t, edit...)
	d.settings.UnmatchedResults, d.settings.UnmatchedTestRuns = true, true
	return d
}

// report is a final result that an order's lab sends of its patient, as edited.
func (d *fixture) report(o orders.Order, edit ...func(*exchange.Message)) exchange.Message {
	m := exchange.Message{
		ID: uuid.NewString(), Team: d.team, Order: o.ID, On: orders.FinalResult, At: d.now(), Lab: o.LabTest.Lab.Slug,
		Results: &labresult.Report{Results: []labresult.Result{{Name: "Iron", Result: "1", Type: labresult.Numeric,
			Interpretation: labresult.Normal, ProviderID: o.LabTest.Markers[0].ProviderID}}},
	}
	if o.SampleID != nil {
		m.SampleID = *o.SampleID
	}
	if p := o.PatientDetails; p != nil {
		m.Patient = &orders.ReportedPatient{FirstName: *p.FirstName, LastName: *p.LastName, DOB: p.DOB, Gender: p.Gender}
	}
	for _, e := range edit {
		e(&m)
	}
	return m
}

func bySample(m *exchange.Message) { m.Order = orders.OrderID{} }

// requisitioned is an order that the lab has.
func (d *fixture) requisitioned(test string, edit ...func(*orders.PlaceRequest)) orders.Order {
	d.t.Helper()
	o := d.placed(test, edit...)
	d.work()
	o = d.get(o)
	require.Equal(d.t, orders.RequisitionCreated, o.LowLevel())
	return o
}

// waiting returns the results that wait for the team.
func (d *fixture) waiting() []exchange.UnmatchedResult {
	d.t.Helper()
	page, err := d.Reviews().List(d.t.Context(), exchange.ResultQuery{Team: d.team})
	require.NoError(d.t, err)
	require.Equal(d.t, len(page.Results), page.Total)
	return page.Results
}

// held hands in a message, which must wait for the team then.
func (d *fixture) held(m exchange.Message) exchange.UnmatchedResult {
	d.t.Helper()
	require.NoError(d.t, d.Receive(d.t.Context(), m))
	all := d.waiting()
	require.Len(d.t, all, 1)
	return all[0]
}

func as(user string, edit func(*people.PatientDetailsInput)) func(*orders.PlaceRequest) {
	return func(r *orders.PlaceRequest) {
		r.UserID = healthlab.UserID{UUID: id(user)}
		if edit != nil {
			edit(&r.PatientDetails)
		}
	}
}

// What is certain goes to its order; everything else waits, and says why.
func TestMatching_certainResultsAreAttachedAndOthersQueuedForReview(t *testing.T) {
	person := func(edit func(*orders.ReportedPatient)) func(*exchange.Message) {
		return func(m *exchange.Message) { edit(m.Patient) }
	}
	for _, tc := range []struct {
		name   string
		before func(*fixture, orders.Order)
		edit   []func(*exchange.Message)
		want   exchange.MatchDecision // empty: it goes to the order
	}{
		{"echoed", nil, nil, ""},
		{"echoed without a patient", nil, []func(*exchange.Message){func(m *exchange.Message) { m.Patient = nil }}, exchange.MatchSampleMismatch},
		{"echoed alone", nil, []func(*exchange.Message){func(m *exchange.Message) { m.Patient, m.SampleID = nil, "" }}, exchange.MatchSampleMismatch},
		{"echoed with its patient", nil, []func(*exchange.Message){func(m *exchange.Message) { m.SampleID = "" }}, ""},
		{"twins, and one is echoed without a specimen", func(d *fixture, _ orders.Order) { d.requisitioned("walk-in", as("patient", nil)) },
			[]func(*exchange.Message){func(m *exchange.Message) { m.SampleID = "" }}, ""},
		{"specimen and patient", nil, []func(*exchange.Message){bySample}, ""},
		{"name in another case", nil, []func(*exchange.Message){bySample, person(func(p *orders.ReportedPatient) { p.LastName = "ROE" })}, ""},
		{"patient in the report's head", nil, []func(*exchange.Message){bySample, func(m *exchange.Message) {
			m.Patient, m.Results.Metadata = nil, labresult.Metadata{Patient: "ROE, ANA", DOB: "19840509"}
		}}, ""},
		{"birth date that can be read as two", nil, []func(*exchange.Message){bySample, func(m *exchange.Message) {
			m.Patient, m.Results.Metadata = nil, labresult.Metadata{Patient: "Ana Roe", DOB: "05/09/1984"}
		}}, exchange.MatchSampleMismatch},
		{"specimen alone", nil, []func(*exchange.Message){bySample, func(m *exchange.Message) { m.Patient = nil }}, exchange.MatchSampleMismatch},
		{"attached by a person", nil, []func(*exchange.Message){person(func(p *orders.ReportedPatient) { p.FirstName = "Eve" }), func(m *exchange.Message) { m.Attached = true }}, ""},
		{"name without a birth date", nil, []func(*exchange.Message){bySample, person(func(p *orders.ReportedPatient) { p.DOB = healthlab.Date{} })}, ""},
		{"birth date without a name", nil, []func(*exchange.Message){bySample, person(func(p *orders.ReportedPatient) { p.FirstName, p.LastName = "", "" })}, ""},
		{"half a name", nil, []func(*exchange.Message){bySample, person(func(p *orders.ReportedPatient) { *p = orders.ReportedPatient{LastName: p.LastName} })}, exchange.MatchSampleMismatch},
		{"year of birth", nil, []func(*exchange.Message){bySample, person(func(p *orders.ReportedPatient) { p.DOB, p.DOBText = healthlab.Date{}, "1984" })}, ""},
		{"another year of birth", nil, []func(*exchange.Message){bySample, person(func(p *orders.ReportedPatient) { p.DOB, p.DOBText = healthlab.Date{}, "1985" })}, exchange.MatchSampleMismatch},
		{"birth date that cannot be read", nil, []func(*exchange.Message){bySample, person(func(p *orders.ReportedPatient) { p.DOB, p.DOBText = healthlab.Date{}, "x" })}, exchange.MatchSampleMismatch},
		{"second name and suffix", nil, []func(*exchange.Message){bySample, person(func(p *orders.ReportedPatient) { p.SecondName, p.Suffix = "B", "Jr" })}, ""},
		{"foreign number", nil, []func(*exchange.Message){func(m *exchange.Message) { m.ForeignNumbers = []string{"77"} }}, exchange.MatchSampleMismatch},
		{"unknown order", nil, []func(*exchange.Message){func(m *exchange.Message) { m.Order = orders.OrderID{UUID: id("none")} }}, exchange.MatchSampleMismatch},
		{"number of the laboratory alone", nil, []func(*exchange.Message){bySample, func(m *exchange.Message) { m.LabNumbers, m.SampleID = []string{m.SampleID}, "" }}, ""},
		{"unknown number of the laboratory", nil, []func(*exchange.Message){func(m *exchange.Message) { m.LabNumbers = []string{"77"} }}, ""},
		{"swapped birth date", nil, []func(*exchange.Message){person(func(p *orders.ReportedPatient) { p.DOB.Month, p.DOB.Day = 9, 5 })}, exchange.MatchSampleMismatch},
		{"other first name", nil, []func(*exchange.Message){bySample, person(func(p *orders.ReportedPatient) { p.FirstName = "Anna" })}, exchange.MatchSampleMismatch},
		{"other gender", nil, []func(*exchange.Message){bySample, person(func(p *orders.ReportedPatient) { p.Gender = people.Male })}, exchange.MatchSampleMismatch},
		{"another specimen", nil, []func(*exchange.Message){func(m *exchange.Message) { m.SampleID = "other" }}, exchange.MatchSampleMismatch},
		{"leading zeros", nil, []func(*exchange.Message){bySample, func(m *exchange.Message) { m.SampleID = "00" + m.SampleID }}, exchange.MatchPatient},
		{"twins", func(d *fixture, _ orders.Order) { d.requisitioned("walk-in", as("patient", nil)) }, []func(*exchange.Message){bySample}, ""},
		{"twins, and order and specimen are named", func(d *fixture, _ orders.Order) { d.requisitioned("walk-in", as("patient", nil)) }, nil, ""},
		{"patientMatches", func(d *fixture, _ orders.Order) { d.requisitioned("walk-in", as("patient", nil)) },
			[]func(*exchange.Message){bySample, func(m *exchange.Message) { m.SampleID = "" }}, exchange.MatchSeveralPeople},
		{"patient alone", nil, []func(*exchange.Message){bySample, func(m *exchange.Message) { m.SampleID = "" }}, exchange.MatchPatient},
		{"nobody", nil, []func(*exchange.Message){bySample, func(m *exchange.Message) { m.SampleID = "x" }, person(func(p *orders.ReportedPatient) { p.LastName = "Moe" })}, exchange.MatchNone},
		{"another lab", nil, []func(*exchange.Message){func(m *exchange.Message) { m.Lab = "eastlab" }}, exchange.MatchWrongLab},
		{"another lab, by patient", nil, []func(*exchange.Message){bySample, func(m *exchange.Message) { m.Lab, m.SampleID = "eastlab", "" }}, exchange.MatchWrongLab},
		{"another account", nil, []func(*exchange.Message){func(m *exchange.Message) { m.AccountNumber = "P-2" }}, exchange.MatchWrongLab},
		{"the account", nil, []func(*exchange.Message){func(m *exchange.Message) { m.AccountNumber = "P-1" }}, ""},
		{"completed", func(d *fixture, o orders.Order) { require.NoError(d.t, d.Receive(d.t.Context(), d.report(o))) }, nil, exchange.MatchCompleted},
		{"cancelled", func(d *fixture, o orders.Order) {
			_, err := d.Cancel(d.t.Context(), d.team, o.ID)
			require.NoError(d.t, err)
		}, nil, exchange.MatchCancelled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newReviewFixture(t)
			o := d.requisitioned("walk-in")
			if tc.before != nil {
				tc.before(d, o)
			}
			m := d.report(o, tc.edit...)
			require.NoError(t, d.Receive(t.Context(), m))
			all := d.waiting()
			if tc.want == "" {
				require.Empty(t, all)
				require.Equal(t, orders.Completed, d.get(o).LowLevel())
				return
			}
			require.Len(t, all, 1)
			require.Equal(t, tc.want, all[0].DecisionCode)
			require.Equal(t, []exchange.ReviewAction{exchange.ReviewAccept, exchange.ReviewReject, exchange.ReviewUnsure}, all[0].AllowedActions)
			require.NotEmpty(t, all[0].Reason)
			require.NoError(t, d.Receive(t.Context(), m))
			require.Equal(t, all, d.waiting(), "a message that comes again changes nothing")
		})
	}
	t.Run("wrong collection", func(t *testing.T) {
		d := newReviewFixture(t)
		o := d.requisitioned("at home")
		require.Equal(t, exchange.MatchWrongCollection, d.held(d.report(o)).DecisionCode)
	})
}

func TestAccept_resolvesAnUnmatchedResult(t *testing.T) {
	accept := func(d *fixture, r exchange.UnmatchedResult, req exchange.AcceptRequest) orders.Order {
		o, err := d.Reviews().Accept(d.t.Context(), d.team, r.ID, req)
		require.NoError(d.t, err)
		got, err := d.Reviews().Get(d.t.Context(), d.team, r.ID)
		require.NoError(d.t, err)
		require.Equal(d.t, exchange.MatchResolved, got.Status)
		require.Equal(d.t, o.ID, *got.ResolvedOrderID)
		require.Equal(d.t, o.UserID, *got.ResolvedUserID)
		require.Empty(d.t, got.AllowedActions)
		results, err := d.Results(d.t.Context(), d.team, o.ID)
		require.NoError(d.t, err)
		require.Len(d.t, results.Results, 1)
		_, err = d.Reviews().Accept(d.t.Context(), d.team, r.ID, req)
		requireRule(d.t, err, exchange.RawResultNotFound, healthlab.NotFound)
		return o
	}
	t.Run("into the chosen order", func(t *testing.T) {
		d := newReviewFixture(t)
		o := d.requisitioned("walk-in")
		r := d.held(d.report(o, bySample, func(m *exchange.Message) { m.SampleID = "" }))
		require.Len(t, r.CandidateGroups, 1)
		require.Equal(t, o.ID, *r.CandidateGroups[0].Candidates[0].OrderID)
		got := accept(d, r, exchange.AcceptRequest{OrderID: &o.ID, Note: ptr("sure")})
		require.Equal(t, o.ID, got.ID)
		require.Equal(t, orders.Completed, got.LowLevel())
	})
	t.Run("into a completed order", func(t *testing.T) {
		d := newReviewFixture(t)
		o := d.requisitioned("walk-in")
		require.NoError(t, d.Receive(t.Context(), d.report(o)))
		got := accept(d, d.held(d.report(o)), exchange.AcceptRequest{})
		require.Equal(t, o.ID, got.ID)
		require.Equal(t, orders.Corrected, got.LowLevel())
	})
	t.Run("in place of a cancelled order", func(t *testing.T) {
		d := newReviewFixture(t)
		o := d.requisitioned("walk-in")
		_, err := d.Cancel(t.Context(), d.team, o.ID)
		require.NoError(t, err)
		got := accept(d, d.held(d.report(d.get(o))), exchange.AcceptRequest{})
		require.NotEqual(t, o.ID, got.ID)
		require.Equal(t, orders.OriginRecreation, got.Origin)
		require.Equal(t, o.OrderTransaction.ID, got.OrderTransaction.ID)
		require.Equal(t, o.ID, *got.Parent())
		require.Equal(t, orders.Completed, got.LowLevel())
		require.Equal(t, []string{"ordered", "completed"}, strings.Fields(toText(history(got))))
		d.advance(2 * day)
		require.Equal(t, orders.Completed, d.get(got).LowLevel(), "no lab is told of it")
	})
	t.Run("at the lab that has it", func(t *testing.T) {
		d := newReviewFixture(t)
		o := d.requisitioned("walk-in")
		r := d.held(d.report(o, func(m *exchange.Message) { m.Lab, m.Results.Results[0].ProviderID = "southlab", ptr("code-lipids") }))
		_, err := d.Reviews().Accept(t.Context(), d.team, r.ID, exchange.AcceptRequest{})
		requireRule(t, err, exchange.ReviewNotPossible, healthlab.Invalid) // the team has no account there
	})
	t.Run("for a user without an order", func(t *testing.T) {
		d := newReviewFixture(t)
		o := d.requisitioned("walk-in")
		other := healthlab.UserID{UUID: id("patient")}
		r := d.held(d.report(o, bySample, func(m *exchange.Message) { m.SampleID, m.Patient.LastName = "", "Moe" }))
		_, err := d.Reviews().Accept(t.Context(), d.team, r.ID, exchange.AcceptRequest{})
		requireRule(t, err, exchange.ReviewNeedsChoice, healthlab.Invalid)
		_, err = d.Reviews().Accept(t.Context(), d.team, r.ID, exchange.AcceptRequest{UserID: &other})
		requireRule(t, err, exchange.ReviewNotPossible, healthlab.Invalid)
		home := people.AddressInput{FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201"}
		_, err = d.People().SetUserInfo(t.Context(), d.team, other, people.UserInfoRequest{FirstName: "Ana", LastName: "Moe", Email: "ana@example.com",
			PhoneNumber: "5550100", Gender: "Female", DOB: patient().DOB, Address: people.UserAddressInput{AddressInput: home}})
		require.NoError(t, err)
		got := accept(d, r, exchange.AcceptRequest{UserID: &other})
		require.Equal(t, other, got.UserID)
		require.Equal(t, "Moe", *got.PatientDetails.LastName)
		require.Equal(t, orders.OriginInitial, got.Origin)
		require.NotEqual(t, o.OrderTransaction.ID, got.OrderTransaction.ID)
	})
	t.Run("refused", func(t *testing.T) {
		d := newReviewFixture(t)
		o := d.requisitioned("walk-in")
		r := d.held(d.report(o, bySample, func(m *exchange.Message) { m.SampleID = "" }))
		other, nobody, none := healthlab.UserID{UUID: id("patient")}, healthlab.UserID{UUID: id("nobody")}, orders.OrderID{UUID: id("none")}
		for _, tc := range []struct {
			req  exchange.AcceptRequest
			rule string
			kind healthlab.ErrorKind
		}{
			{exchange.AcceptRequest{UserID: &other, OrderID: &o.ID}, exchange.ReviewInconsistent, healthlab.Invalid},
			{exchange.AcceptRequest{UserID: &nobody}, people.UserNotFound, healthlab.NotFound},
			{exchange.AcceptRequest{OrderID: &none}, orders.OrderNotFound, healthlab.NotFound},
			{exchange.AcceptRequest{}, exchange.ReviewNeedsChoice, healthlab.Invalid},
		} {
			_, err := d.Reviews().Accept(t.Context(), d.team, r.ID, tc.req)
			requireRule(t, err, tc.rule, tc.kind)
		}
		_, err := d.Reviews().Accept(t.Context(), healthlab.TeamID{UUID: id("other team")}, r.ID, exchange.AcceptRequest{OrderID: &o.ID})
		requireRule(t, err, exchange.RawResultNotFound, healthlab.NotFound)
		require.Equal(t, orders.RequisitionCreated, d.get(o).LowLevel())
		d.settings.UnmatchedResults = false
		_, err = d.Reviews().List(t.Context(), exchange.ResultQuery{Team: d.team})
		requireRule(t, err, exchange.ReviewNotEnabled, healthlab.Precondition)
	})
	t.Run("by many at once", func(t *testing.T) {
		d := newReviewFixture(t)
		var mine []orders.Order
		for range 4 {
			mine = append(mine, d.requisitioned("walk-in"))
		}
		r := d.held(d.report(mine[0], bySample, func(m *exchange.Message) { m.SampleID = "" }))
		var all sync.WaitGroup
		for _, o := range mine {
			all.Go(func() { _, _ = d.Reviews().Accept(t.Context(), d.team, r.ID, exchange.AcceptRequest{OrderID: &o.ID}) })
		}
		all.Wait()
		with := 0
		for _, o := range mine {
			if d.get(o).LowLevel() == orders.Completed {
				with++
			}
		}
		require.Equal(t, 1, with)
	})
}

func TestResolve_hasTheOutcomeOfEachAction(t *testing.T) {
	d := newReviewFixture(t)
	o := d.requisitioned("walk-in")
	r := d.held(d.report(o, bySample, nobodys))
	_, err := d.Reviews().Resolve(t.Context(), d.team, r.ID, exchange.ResolveRequest{Action: exchange.ReviewAccept})
	require.ErrorIs(t, err, healthlab.Invalid)
	got, err := d.Reviews().Resolve(t.Context(), d.team, r.ID, exchange.ResolveRequest{Action: exchange.ReviewUnsure, Note: ptr("who?")})
	require.NoError(t, err)
	require.Equal(t, exchange.MatchPendingOps, got.Status)
	require.Empty(t, got.AllowedActions)
	require.Len(t, d.waiting(), 1, "the team still sees what it handed over")
	_, err = d.Reviews().Resolve(t.Context(), d.team, r.ID, exchange.ResolveRequest{Action: exchange.ReviewReject})
	requireRule(t, err, exchange.RawResultNotFound, healthlab.NotFound)
	got, err = d.Reviews().Return(t.Context(), d.team, r.ID, ptr("look again"))
	require.NoError(t, err)
	require.Len(t, got.AllowedActions, 3)
	got, err = d.Reviews().Resolve(t.Context(), d.team, r.ID, exchange.ResolveRequest{Action: exchange.ReviewReject})
	require.NoError(t, err)
	require.Equal(t, exchange.MatchResolved, got.Status)
	require.Equal(t, exchange.ReviewReject, *got.ResolutionAction)
	require.Empty(t, d.waiting())

	// Without the queue, operations alone see what came.
	d.settings.UnmatchedResults = false
	require.NoError(t, d.Receive(t.Context(), d.report(o, bySample, nobodys)))
	d.settings.UnmatchedResults = true
	require.Empty(t, d.waiting())
	listed, err := d.Reviews().List(t.Context(), exchange.ResultQuery{Team: d.team, Status: exchange.MatchPendingOps})
	require.NoError(t, err)
	require.Empty(t, listed.Results, "the list shows what can be read")
	require.Zero(t, listed.Total)
	page, err := d.Operations().Waiting(t.Context(), exchange.ResultQuery{Team: d.team, Escalated: true})
	require.NoError(t, err)
	require.Len(t, page.Results, 1)
	_, err = d.Reviews().Get(t.Context(), d.team, page.Results[0].ID)
	requireRule(t, err, exchange.RawResultNotFound, healthlab.NotFound)
}

// truth is a person of the random population: who they are, and which orders are theirs.
type truth struct {
	user   healthlab.UserID
	input  people.PatientDetailsInput
	orders []orders.Order
}

// adversary makes result messages that are wrong in every way that labs are: the same
// name, swapped birth dates, leading zeros, specimen ids of others.
type adversary struct {
	*fixture
	r      *rand.Rand
	people []*truth
	owner  map[orders.OrderID]healthlab.UserID
}

func newAdversary(t testing.TB, seed uint64) *adversary {
	a := &adversary{fixture: newReviewFixture(t), r: rand.New(rand.NewPCG(seed, 7)), owner: map[orders.OrderID]healthlab.UserID{}}
	firsts, lasts := []string{"Ana", "Anna"}, []string{"Roe", "Lee"}
	for i := range 12 {
		p := &truth{user: healthlab.UserID{UUID: id(fmt.Sprint("person ", i))}, input: patient()}
		a.mu.Lock()
		a.users[p.user] = true
		a.mu.Unlock()
		p.input.FirstName, p.input.LastName = pick(a.r, firsts), pick(a.r, lasts)
		p.input.DOB = pick(a.r, []healthlab.Date{{Year: 1984, Month: 5, Day: 9}, {Year: 1984, Month: 9, Day: 5}, {Year: 1984, Month: 5, Day: 19}})
		p.input.Gender = pick(a.r, []people.Gender{people.Female, people.Male, people.UnknownGender})
		a.people = append(a.people, p)
		for range 1 + a.r.IntN(2) {
			o := a.placed(pick(a.r, []string{"walk-in", "kit", "at home"}), func(req *orders.PlaceRequest) { req.UserID, req.PatientDetails = p.user, p.input })
			p.orders, a.owner[o.ID] = append(p.orders, o), p.user
		}
	}
	a.work()
	for _, p := range a.people {
		for i := range p.orders {
			p.orders[i] = a.get(p.orders[i])
		}
	}
	return a
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// message returns a report of a random person's sample, and the user id of that person.
func (a *adversary) message(n int) (exchange.Message, healthlab.UserID) {
	p := pick(a.r, a.people)
	o := pick(a.r, p.orders)
	m := a.report(o, func(m *exchange.Message) {
		m.ID, m.Order = fmt.Sprint("m", n), orders.OrderID{}
		m.On = pick(a.r, []orders.Trigger{orders.FinalResult, orders.FinalResult, orders.PartialResult, orders.CorrectedResult})
	})
	m.Results.Results[0].Notes = ptr(p.user.String()) // whose sample it truly is
	victim := pick(a.r, pick(a.r, a.people).orders)
	for range a.r.IntN(4) {
		switch a.r.IntN(10) {
		case 0: // the specimen id of another person, used again
			if victim.SampleID != nil {
				m.SampleID = *victim.SampleID
			}
		case 1:
			m.SampleID = strings.Repeat("0", 1+a.r.IntN(3)) + m.SampleID
		case 2:
			m.SampleID = strings.TrimLeft(m.SampleID, "S0")
		case 3:
			m.Patient.DOB.Month, m.Patient.DOB.Day = time.Month(m.Patient.DOB.Day%12+1), int(m.Patient.DOB.Month)
		case 4:
			m.Patient.LastName = pick(a.r, []string{"Roe", "Roe-Lee", "Lee"})
		case 5:
			m.Patient.FirstName = strings.ToUpper(m.Patient.FirstName)
		case 6:
			m.Patient.Gender = ""
		case 7:
			m.Patient = nil
			return m, p.user
		case 8:
			m.SampleID = ""
		case 9: // the id of another person's order, with the right specimen and name
			m.Order = victim.ID
		}
	}
	// What a lab gets wrong is not all of it, in one way: a message whose every word is
	// another person's is that person's.
	return m, p.user
}

// consistent reports whether every field of a message is another person's. Such a message
// cannot be told from a right one.
func (a *adversary) consistent(m exchange.Message, truly healthlab.UserID) bool {
	is := func(p *truth) bool {
		return strings.EqualFold(m.Patient.FirstName, p.input.FirstName) && strings.EqualFold(m.Patient.LastName, p.input.LastName) && m.Patient.DOB == p.input.DOB
	}
	for _, p := range a.people {
		if p.user == truly || m.Patient == nil || !is(p) || m.Order.IsZero() && m.SampleID == "" {
			continue
		}
		for _, o := range p.orders {
			if (m.Order.IsZero() || m.Order == o.ID) && (m.SampleID == "" || o.SampleID != nil && *o.SampleID == m.SampleID) {
				return true
			}
		}
	}
	return false
}

// Of many result messages that are wrong in some way, not one goes to another person.
func TestMatching_noWrongMessageReachesAnotherPerson(t *testing.T) {
	const each = 50 // a small population each time, so that many orders are still open
	attached, heldBack := 0, 0
	for round := range prove.Sequential(1000, 5_000, 100_000) / each {
		a := newAdversary(t, uint64(round))
		for n := range each {
			m, truly := a.message(n)
			if a.consistent(m, truly) {
				continue
			}
			require.NoError(t, a.Receive(t.Context(), m))
		}
		for id, owner := range a.owner {
			o, err := a.store.Orders().Get(t.Context(), a.team, id)
			require.NoError(t, err)
			if o.Results == nil {
				continue
			}
			attached++
			for _, r := range o.Results.Results {
				require.Equal(t, owner.String(), *r.Notes, "round %d: an order has another person's result", round)
			}
		}
		page, err := a.store.Reviews().Results(t.Context(), exchange.ResultQuery{Team: a.team})
		require.NoError(t, err)
		heldBack += page.Total
	}
	require.NotZero(t, attached, "some are certain")
	require.NotZero(t, heldBack)
	t.Logf("%d orders have results, %d results wait", attached, heldBack)
}

// A test run ends as its case says, whichever it is, and the result waits.
func TestMatchTestRuns_endWithTheDecisionOfTheirCase(t *testing.T) {
	d := newReviewFixture(t)
	of := func(d *fixture) *simulation.MatchTests {
		s, err := simulation.NewMatchTests(d.exchangeService, d.store.MatchTestRuns(), &simulation.MatchTestOptions{
			User: func(_ context.Context, _ healthlab.TeamID, name string) (healthlab.UserID, error) {
				return healthlab.UserID{UUID: id(name)}, nil
			},
			Now: d.now,
		})
		require.NoError(t, err)
		return s
	}
	tests := of(d)
	known := func(o simulation.MatchTestCase, run simulation.MatchTestRun) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, role := range o.OrderRoles {
			d.users[healthlab.UserID{UUID: id("unmatched-test-" + run.RunID.String() + "-" + role)}] = true
		}
	}
	rules, err := tests.Cases(t.Context(), d.team)
	require.NoError(t, err)
	require.Len(t, rules, 8)
	for _, rule := range rules {
		for _, status := range []labresult.Status{labresult.Final, labresult.Partial} {
			req := simulation.MatchTestRequest{Case: rule.Case, OrderSource: simulation.ManagedOrders, ResultStatus: status, Interpretation: labresult.Abnormal}
			if rule.Case == exchange.MatchWrongCollection {
				req.OrderSource, req.Orders = simulation.ProvidedOrders, map[string]orders.OrderID{"target": d.requisitioned("at home").ID}
			}
			run, err := tests.Start(t.Context(), d.team, string(rule.Case)+string(status), req)
			require.NoError(t, err)
			require.Equal(t, simulation.MatchTestQueued, run.Status)
			known(rule, run)
			n, err := tests.Once(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, n)
			got, err := tests.Get(t.Context(), d.team, run.RunID)
			require.NoError(t, err)
			require.Nil(t, got.Error, "%s: %+v", rule.Case, got.Error)
			require.Equal(t, simulation.MatchTestSucceeded, got.Status, rule.Case)
			require.Len(t, got.Orders, len(rule.OrderRoles))
			item, err := d.Reviews().Get(t.Context(), d.team, *got.RawResultID)
			require.NoError(t, err)
			require.Equal(t, rule.Case, item.DecisionCode)
			require.Equal(t, status, *item.ResultStatus)
			again, err := tests.Start(t.Context(), d.team, string(rule.Case)+string(status), req)
			require.NoError(t, err)
			require.Equal(t, got, again)
		}
	}
	n, err := tests.Once(t.Context())
	require.NoError(t, err)
	require.Zero(t, n)

	_, err = tests.Start(t.Context(), d.team, "no_matchfinal", simulation.MatchTestRequest{Case: exchange.MatchPatient, OrderSource: simulation.ManagedOrders})
	requireRule(t, err, orders.IdempotencyKeyReused, healthlab.Conflict)
	for name, req := range map[string]simulation.MatchTestRequest{
		"case":             {Case: "x", OrderSource: simulation.ManagedOrders},
		"source":           {Case: exchange.MatchNone},
		"roles":            {Case: exchange.MatchPatient, OrderSource: simulation.ProvidedOrders},
		"roles of managed": {Case: exchange.MatchPatient, OrderSource: simulation.ManagedOrders, Orders: map[string]orders.OrderID{"target": {UUID: id("x")}}},
		"managed":          {Case: exchange.MatchWrongCollection, OrderSource: simulation.ManagedOrders},
		"wrong lab":        {Case: exchange.MatchNone, OrderSource: simulation.ManagedOrders, WrongLabTestID: ptr(test("south"))},
	} {
		_, err := tests.Start(t.Context(), d.team, name, req)
		require.ErrorIs(t, err, healthlab.Invalid, name)
	}
	_, err = tests.Start(t.Context(), d.team, "", simulation.MatchTestRequest{Case: exchange.MatchNone, OrderSource: simulation.ManagedOrders})
	require.ErrorIs(t, err, healthlab.Invalid)

	// A run of an order that stands elsewhere fails, and says why.
	run, err := tests.Start(t.Context(), d.team, "fails", simulation.MatchTestRequest{Case: exchange.MatchCompleted, OrderSource: simulation.ProvidedOrders,
		Orders: map[string]orders.OrderID{"target": d.requisitioned("walk-in").ID}})
	require.NoError(t, err)
	_, err = tests.Once(t.Context())
	require.NoError(t, err)
	run, err = tests.Get(t.Context(), d.team, run.RunID)
	require.NoError(t, err)
	require.Equal(t, simulation.MatchTestFailed, run.Status)
	require.Equal(t, "ORDER_STATUS", run.Error.Code)

	d.settings.UnmatchedTestRuns = false
	_, err = tests.Cases(t.Context(), d.team)
	requireRule(t, err, catalogue.FeatureNotEnabled, healthlab.Forbidden)
	p := newReviewFixture(t, func(o *options) { o.Environment = healthlab.Production })
	_, err = of(p).Cases(t.Context(), p.team)
	requireRule(t, err, orders.SandboxOnly, healthlab.NotFound)
}
