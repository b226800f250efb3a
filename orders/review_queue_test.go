package orders_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// Text that no store keeps is noted, and a lab's feed goes on.
func TestReceive_skipsTextThatCannotBeStored(t *testing.T) {
	for name, spoil := range map[string]func(*exchange.Message){
		"held":          func(m *exchange.Message) { nobodys(m); m.Results.Results[0].Notes = ptr("\x00") },
		"held, a name":  func(m *exchange.Message) { m.SampleID, m.Patient.LastName = "", "Roe\x00" },
		"specimen":      func(m *exchange.Message) { m.SampleID = "S\x00" },
		"not UTF-8":     func(m *exchange.Message) { m.SampleID = "S\xff" },
		"news":          func(m *exchange.Message) { m.SampleID, m.On, m.Results = "S\x00", orders.SampleRejected, nil },
		"to its order":  func(m *exchange.Message) { m.Results.Results[0].Notes = ptr("\x00") },
		"a redraw":      func(m *exchange.Message) { lost(m); m.Results.MissingResults[0].Note = ptr("\x00") },
		"a redraw held": func(m *exchange.Message) { lost(m); nobodys(m); m.Results.MissingResults[0].Note = ptr("\x00") },
	} {
		t.Run(name, func(t *testing.T) {
			d := newReviewFixture(t, func(o *options) { o.RedrawLabs = []string{"northlab"} })
			d.settings.Redraws = true
			o := d.requisitioned("walk-in")
			require.NoError(t, d.Receive(t.Context(), d.report(o, bySample, spoil)))
			require.Equal(t, orders.RequisitionCreated, d.get(o).LowLevel())
			require.Empty(t, d.waiting())
			require.NoError(t, d.Receive(t.Context(), d.report(o)))
			require.Equal(t, orders.Completed, d.get(o).LowLevel())
		})
	}
}

func lost(m *exchange.Message) {
	m.Results.MissingResults = []labresult.Missing{{Name: "Glucose", InferredFailureType: labresult.InternalLabFailure,
		SourceMarkers: []labresult.SourceMarker{{MarkerID: 11}}}}
}

func partial(m *exchange.Message) { m.On = orders.PartialResult }

func (d *fixture) accepts(r exchange.UnmatchedResult, req exchange.AcceptRequest) orders.Order {
	d.t.Helper()
	o, err := d.Reviews().Accept(d.t.Context(), d.team, r.ID, req)
	require.NoError(d.t, err)
	return d.get(o)
}

// cancelled is an order that the lab had, and that was cancelled then.
func (d *fixture) cancelled(test string) orders.Order {
	d.t.Helper()
	o := d.requisitioned(test)
	_, err := d.Cancel(d.t.Context(), d.team, o.ID)
	require.NoError(d.t, err)
	return d.get(o)
}

// Accepting a result adds its specimen to the order, so that later results of that specimen
// match the order without a review.
func TestAccept_laterResultsOfTheSpecimenMatchTheOrder(t *testing.T) {
	t.Run("an order for a user", func(t *testing.T) {
		d := newReviewFixture(t)
		d.requisitioned("walk-in") // the patient is known
		other := d.requisitioned("walk-in")
		of := func(m *exchange.Message) { bySample(m); m.SampleID, m.Patient.FirstName = "S9", "Anna" }
		got := d.accepts(d.held(d.report(other, of, partial)), exchange.AcceptRequest{UserID: &d.user})
		require.Equal(t, "S9", *got.SampleID)
		results, err := d.Results(t.Context(), d.team, got.ID)
		require.NoError(t, err)
		require.Equal(t, "S9", results.Metadata.SpecimenNumber)
		require.NoError(t, d.Receive(t.Context(), d.report(other, bySample, func(m *exchange.Message) { m.SampleID = "S9" })))
		require.Empty(t, d.waiting())
		require.Equal(t, orders.Completed, d.get(got).LowLevel())
	})
	for name, named := range map[string]func(*exchange.Message){"by specimen": bySample, "by specimen and order": func(*exchange.Message) {}} {
		t.Run("in place of a cancelled order, "+name, func(t *testing.T) {
			d := newReviewFixture(t)
			o := d.cancelled("walk-in")
			first, final := d.report(o, named, partial), d.report(o, named)
			got := d.accepts(d.held(first), exchange.AcceptRequest{})
			require.NotEqual(t, o.ID, got.ID)
			require.Equal(t, o.SampleID, got.SampleID)
			require.Nil(t, d.get(o).SampleID, "it is another order's now")
			require.NoError(t, d.Receive(t.Context(), final))
			require.Empty(t, d.waiting())
			require.Equal(t, orders.Completed, d.get(got).LowLevel())
			require.Len(t, d.get(o).OrderTransaction.Orders, 2)
		})
		t.Run("both held before either is accepted, "+name, func(t *testing.T) {
			d := newReviewFixture(t)
			o := d.cancelled("walk-in")
			require.NoError(t, d.Receive(t.Context(), d.report(o, named, partial)))
			require.NoError(t, d.Receive(t.Context(), d.report(o, named)))
			held := d.waiting()
			require.Len(t, held, 2)
			first := d.accepts(held[0], exchange.AcceptRequest{})
			require.Equal(t, first.ID, d.accepts(held[1], exchange.AcceptRequest{OrderID: &o.ID}).ID)
			require.Len(t, d.get(o).OrderTransaction.Orders, 2)
		})
	}
	t.Run("another order's", func(t *testing.T) {
		d := newReviewFixture(t)
		o := d.requisitioned("walk-in")
		mine := d.placed("walk-in", as("patient", func(p *people.PatientDetailsInput) { p.FirstName = "Anna" }))
		r := d.held(d.report(o, bySample, func(m *exchange.Message) { m.Patient.FirstName = "Anna" }))
		require.Equal(t, exchange.MatchSampleMismatch, r.DecisionCode)
		got := d.accepts(r, exchange.AcceptRequest{OrderID: &mine.ID})
		require.Equal(t, orders.Completed, got.LowLevel(), "a person decides all the same")
		require.Nil(t, got.SampleID)
		require.Equal(t, o.SampleID, d.get(o).SampleID)
		results, err := d.Results(t.Context(), d.team, got.ID)
		require.NoError(t, err)
		require.Equal(t, *o.SampleID, results.Metadata.SpecimenNumber)
	})
	t.Run("a redraw is offered", func(t *testing.T) {
		d := newReviewFixture(t, func(o *options) { o.RedrawLabs = []string{"northlab"} })
		d.settings.Redraws, d.settings.OrderImport = true, true
		o := d.requisitioned("walk-in")
		_, err := d.store.Orders().Update(t.Context(), d.team, o.ID, func(r *orders.Record) ([]healthlab.Event, error) {
			r.SampleID = nil
			return nil, nil
		})
		require.NoError(t, err)
		require.NoError(t, d.Receive(t.Context(), d.report(o, lost)))
		require.Equal(t, orders.RedrawAvailable, d.get(o).LowLevel())
		require.Equal(t, o.SampleID, d.get(o).SampleID)
	})
}

// A held result stays a person's decision when the lab sends it again, whatever the order can
// take and whatever was decided meanwhile.
func TestReview_resultSentAgainKeepsItsDecision(t *testing.T) {
	for name, decide := range map[string]func(*fixture, exchange.UnmatchedResult){
		"undecided": func(*fixture, exchange.UnmatchedResult) {},
		"rejected": func(d *fixture, r exchange.UnmatchedResult) {
			_, err := d.Reviews().Resolve(t.Context(), d.team, r.ID, exchange.ResolveRequest{Action: exchange.ReviewReject})
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newVisits(t)
			d.settings.UnmatchedResults = true
			o := d.requisitioned("at home", withOutcome("never_again"))
			m := d.report(o)
			r := d.held(m)
			require.Equal(t, exchange.MatchWrongCollection, r.DecisionCode)
			decide(d, r)
			d.booked(o, home)
			require.Equal(t, orders.AppointmentScheduled, d.get(o).LowLevel())
			require.NoError(t, d.Receive(t.Context(), m))
			require.Equal(t, orders.AppointmentScheduled, d.get(o).LowLevel())
			m.ID = "another report"
			require.NoError(t, d.Receive(t.Context(), m))
			require.Equal(t, orders.Completed, d.get(o).LowLevel(), "which the order can take")
		})
	}
}

// Messages of two labs may have the same id.
func TestReview_messageIDsOfTwoLabsMayBeEqual(t *testing.T) {
	d := newReviewFixture(t)
	o := d.requisitioned("walk-in", withOutcome("never_again"))
	for n, lab := range []string{"southlab", "eastlab", "eastlab"} {
		require.NoError(t, d.Receive(t.Context(), d.report(o, func(m *exchange.Message) { m.ID, m.Lab = "1", lab })))
		require.Len(t, d.waiting(), min(n+1, 2))
	}
	require.NoError(t, d.Receive(t.Context(), d.report(o, func(m *exchange.Message) { m.ID = "1" })))
	require.Equal(t, orders.Completed, d.get(o).LowLevel())
}

// A message that the order has received cannot be accepted for it a second time.
func TestAccept_refusesAMessageTheOrderHas(t *testing.T) {
	d := newReviewFixture(t)
	o := d.requisitioned("walk-in")
	m := d.report(o, bySample, func(m *exchange.Message) { m.SampleID = "" })
	r := d.held(m)
	_, err := d.store.Orders().Update(t.Context(), d.team, o.ID, func(r *orders.Record) ([]healthlab.Event, error) {
		r.Messages = []string{m.ID}
		return nil, nil
	})
	require.NoError(t, err)
	_, err = d.Reviews().Accept(t.Context(), d.team, r.ID, exchange.AcceptRequest{OrderID: &o.ID})
	requireRule(t, err, exchange.ReviewNotPossible, healthlab.Invalid)
	require.Len(t, d.waiting(), 1)
}

// A report that names an order and another one's specimen is not lost.
func TestReview_queuesAReportWithTheSpecimenOfAnotherOrder(t *testing.T) {
	for name, edit := range map[string]func(*exchange.Message){"final": func(*exchange.Message) {}, "with a redraw": lost} {
		t.Run(name, func(t *testing.T) {
			d := newReviewFixture(t, func(o *options) { o.RedrawLabs = []string{"northlab"} })
			d.settings.Redraws = true
			has := d.requisitioned("walk-in", withOutcome("never_again"))
			o := d.placed("walk-in", withOutcome("never_again")) // the lab has not called it anything yet
			r := d.held(d.report(o, edit, func(m *exchange.Message) { m.SampleID = *has.SampleID }))
			require.Equal(t, exchange.MatchSampleMismatch, r.DecisionCode)
			for _, o := range []orders.Order{d.get(has), d.get(o)} {
				require.Nil(t, o.Interpretation)
				require.Len(t, o.OrderTransaction.Orders, 1)
			}
			got := d.accepts(r, exchange.AcceptRequest{OrderID: &o.ID})
			require.Equal(t, orders.Completed, got.LowLevel())
			require.Nil(t, got.SampleID)
		})
	}
}

// A team is told when a critical result was fetched, not when it was accepted.
func TestAccept_criticalEventHasTheTimeOfTheFetch(t *testing.T) {
	d := newReviewFixture(t)
	o := d.requisitioned("walk-in", withOutcome("never_again"))
	r := d.held(d.report(o, bySample, func(m *exchange.Message) {
		m.SampleID, m.Results.Results[0].Interpretation = "", labresult.Critical
	}))
	fetched := d.now()
	d.advance(3 * day)
	d.accepts(r, exchange.AcceptRequest{OrderID: &o.ID})
	told := d.critical(o)
	require.Len(t, told, 1)
	require.Equal(t, fetched, told[0].CreatedAt.Time)
	require.Equal(t, fetched, told[0].UpdatedAt.Time)
}

// A partial result that is accepted for a completed order corrects its report.
func TestAccept_latePartialResultCorrectsTheReport(t *testing.T) {
	d := newReviewFixture(t)
	o := d.requisitioned("walk-in")
	require.NoError(t, d.Receive(t.Context(), d.report(o)))
	got := d.accepts(d.held(d.report(o, partial)), exchange.AcceptRequest{})
	require.Equal(t, orders.Corrected, got.LowLevel())
	results, err := d.Results(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Equal(t, labresult.Corrected, results.Metadata.Status)
}

// seen is an order as each of its messages shows it, oldest first.
func (d *fixture) seen(o orders.Order) []orders.Order {
	d.t.Helper()
	var out []orders.Order
	for _, m := range d.messages(o) {
		var envelope struct {
			Data orders.Order `json:"data"`
		}
		require.NoError(d.t, json.Unmarshal(m.Body, &envelope))
		out = append(out, envelope.Data)
	}
	return out
}

// Events of an order and of its replacement show both orders in their state after the change.
func TestAccept_eventsShowTheStateOfBothOrders(t *testing.T) {
	account := catalogue.LabAccount{ID: account("east"), Lab: "eastlab", Status: catalogue.LabAccountActive, DelegatedFlow: catalogue.NotDelegated,
		ProviderAccountID: "P-3", AllowedBilling: map[catalogue.BillingType][]string{catalogue.ClientBill: {"AZ"}}}
	d := newReviewFixture(t)
	d.more = []catalogue.LabAccount{account}
	d.restart()
	o := d.requisitioned("walk-in")
	got := d.accepts(d.held(d.report(o, func(m *exchange.Message) { m.Lab, m.Results.Results[0].ProviderID = "eastlab", ptr("code-iron") })), exchange.AcceptRequest{})
	require.Equal(t, "eastlab", got.LabTest.Lab.Slug)
	require.Equal(t, orders.Cancelled, d.get(o).LowLevel())
	require.Equal(t, got.SampleID, o.SampleID)
	statuses := func(o orders.Order) []string {
		out := []string{string(o.OrderTransaction.Status)}
		for _, m := range o.OrderTransaction.Orders {
			out = append(out, string(*m.LowLevelStatus))
		}
		return out
	}
	old, fresh := d.seen(o), d.seen(got)
	require.Equal(t, []string{"active", "cancelled", "ordered"}, statuses(old[len(old)-1]))
	require.Len(t, fresh, 2)
	require.Equal(t, []string{"active", "cancelled", "ordered"}, statuses(fresh[0]))
	require.Equal(t, []string{"completed", "cancelled", "completed"}, statuses(fresh[1]))
	require.Equal(t, o.ID, *fresh[0].Parent())
}

// An order that was made for a partial result is never sent to a lab.
func TestAccept_orderMadeForAPartialResultIsNotSubmittedToALab(t *testing.T) {
	d := newReviewFixture(t)
	o := d.requisitioned("kit")
	_, err := d.Cancel(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	got := d.accepts(d.held(d.report(d.get(o), partial)), exchange.AcceptRequest{})
	require.Equal(t, orders.Ordered, got.LowLevel(), "kits have no status for it")
	results, err := d.Results(t.Context(), d.team, got.ID)
	require.NoError(t, err)
	require.Equal(t, labresult.Partial, results.Metadata.Status)
	kept, err := d.store.Orders().Get(t.Context(), d.team, got.ID)
	require.NoError(t, err)
	require.Zero(t, kept.Lab.Due)
	require.True(t, kept.Lab.Requisition, "it has it, as far as anybody needs to know")
	d.advance(30 * day)
	require.Equal(t, orders.Ordered, d.get(got).LowLevel())
}

// A held result has the interpretation that the order will get from it.
func TestReview_resultHasTheInterpretationOfItsOrder(t *testing.T) {
	d := newReviewFixture(t)
	o := d.requisitioned("walk-in")
	r := d.held(d.report(o, bySample, func(m *exchange.Message) {
		m.SampleID, m.Lab = "", ""
		m.Results.Results[0].Result, m.Results.Results[0].Type, m.Results.Results[0].Interpretation = "9", "", ""
		m.Results.Results[0].ReferenceRange = ptr("3-5")
	}))
	require.Equal(t, labresult.Abnormal, *r.Interpretation)
	require.Equal(t, exchange.MatchLab{}, r.Lab, "nothing says whose it is")
	got := d.accepts(r, exchange.AcceptRequest{OrderID: &o.ID})
	require.Equal(t, r.Interpretation, got.Interpretation)
}

// If a message names no lab, the lab of the order that it names is used.
func TestReview_missingLabIsTakenFromTheNamedOrder(t *testing.T) {
	d := newReviewFixture(t)
	o := d.requisitioned("walk-in")
	r := d.held(d.report(o, func(m *exchange.Message) {
		m.Lab, m.Patient.FirstName, m.Results.Results[0].ProviderID = "", "Anna", ptr("code-glucose")
	}))
	require.Equal(t, exchange.MatchLab{ID: 1, Name: "Northlab", Slug: "northlab"}, r.Lab)
	page, err := d.Reviews().List(t.Context(), exchange.ResultQuery{Team: d.team, LabSlug: "northlab"})
	require.NoError(t, err)
	require.Len(t, page.Results, 1)
	got := d.accepts(r, exchange.AcceptRequest{UserID: &d.user})
	require.NotEqual(t, o.ID, got.ID)
	require.Equal(t, orders.Completed, got.LowLevel())
	require.Equal(t, "northlab", got.LabTest.Lab.Slug)
}
