package orders_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

func levels(text string) []orders.LowLevel {
	var out []orders.LowLevel
	for _, f := range strings.Fields(text) {
		out = append(out, orders.LowLevel(f))
	}
	return out
}

func TestKit_forAPatientRunsToItsResult(t *testing.T) {
	d := newFixture(t)
	o := d.placed("kit")
	require.Equal(t, levels("ordered"), history(o))
	require.Nil(t, o.SampleID)
	require.NotNil(t, o.Details.Testkit.Shipment)
	require.Nil(t, o.ShippingDetails)
	d.advance(0)
	o = d.get(o)
	require.Equal(t, levels("ordered requisition_created"), history(o))
	require.NotNil(t, o.SampleID)
	d.advance(day)
	require.Equal(t, "OUT-"+*o.SampleID, *d.get(o).Details.Testkit.Shipment.OutboundTrackingNumber)
	_, err := d.Results(t.Context(), d.team, o.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
	d.advance(10 * day)
	o = d.get(o)
	const all = "ordered requisition_created transit_customer out_for_delivery with_customer transit_lab delivered_to_lab completed"
	require.Equal(t, levels(all), history(o))
	require.Equal(t, strings.Fields(all), d.notified(o))
	require.Equal(t, orders.TransactionCompleted, o.OrderTransaction.Status)
	require.Equal(t, labresult.Normal, *o.Interpretation)
	require.False(t, *o.HasMissingResults)
	require.Equal(t, 2, o.WorstCaseResultByDate.Compare(*o.ExpectedResultByDate)+1)
	results, err := d.Results(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Len(t, results.Results, 2)
	require.Equal(t, o.OrderTransaction, *results.OrderTransaction)
}

func TestKit_registeredLaterRunsToItsResult(t *testing.T) {
	d := newFixture(t)
	o, err := d.PlaceTestkit(t.Context(), d.team, d.kit())
	require.NoError(t, err)
	require.Equal(t, levels("ordered awaiting_registration"), history(o))
	require.Nil(t, o.PatientDetails)
	require.Equal(t, "Front Desk", o.ShippingDetails.ReceiverName)
	d.advance(10 * day)
	o = d.get(o)
	require.Equal(t, levels("ordered awaiting_registration transit_customer out_for_delivery with_customer"), history(o))
	register := orders.RegisterRequest{SampleID: *o.SampleID, UserID: &healthlab.UserID{UUID: id("patient")},
		PatientDetails: patient(), PatientAddress: address()}
	o, err = d.Register(t.Context(), d.team, register)
	require.NoError(t, err)
	require.Equal(t, orders.Registered, o.LowLevel())
	require.Equal(t, id("patient"), o.UserID.UUID)
	require.Equal(t, "Ana", *o.PatientDetails.FirstName)
	_, err = d.Register(t.Context(), d.team, register)
	requireRule(t, err, orders.KitNotRegistrable, healthlab.Precondition)
	d.advance(10 * day)
	o = d.get(o)
	const all = "ordered awaiting_registration transit_customer out_for_delivery with_customer registered requisition_created transit_lab delivered_to_lab completed"
	require.Equal(t, levels(all), history(o))
	require.Equal(t, strings.Fields(all), d.notified(o))
	for i, m := range d.messages(o) {
		want := d.user
		if i >= 5 {
			want = *register.UserID // from the registration on
		}
		require.Equal(t, want, m.User)
	}

	register.SampleID = "nobody's"
	_, err = d.Register(t.Context(), d.team, register)
	requireRule(t, err, orders.KitNotFound, healthlab.NotFound)
	_, err = d.Register(t.Context(), healthlab.TeamID{UUID: id("other team")}, register)
	requireRule(t, err, orders.KitNotFound, healthlab.NotFound)
}

func TestKit_canBeRegisteredInTransit(t *testing.T) {
	d := newFixture(t)
	o, err := d.PlaceTestkit(t.Context(), d.team, d.kit())
	require.NoError(t, err)
	d.advance(day)
	o = d.get(o)
	require.Equal(t, orders.TransitCustomer, o.LowLevel())
	_, err = d.Register(t.Context(), d.team, orders.RegisterRequest{SampleID: *o.SampleID, PatientDetails: patient(), PatientAddress: address()})
	require.NoError(t, err)
	d.advance(10 * day)
	require.Equal(t, levels("ordered awaiting_registration transit_customer registered requisition_created out_for_delivery with_customer transit_lab delivered_to_lab completed"),
		history(d.get(o)))
}

func requireRule(t testing.TB, err error, rule string, kind healthlab.ErrorKind) {
	t.Helper()
	var broken *healthlab.RuleError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, rule, broken.Type)
	require.ErrorIs(t, err, kind)
}

// TestOrders_followEachOutcomeOfTheLab walks an order through everything that can happen at the lab.
func TestOrders_followEachOutcomeOfTheLab(t *testing.T) {
	const kit = "ordered requisition_created transit_customer out_for_delivery "
	const back = kit + "with_customer transit_lab "
	for _, tc := range []struct {
		test, outcome, want string
		detail              orders.StatusDetail
	}{
		{"kit", "undeliverable", kit + "failure_to_deliver_to_customer", orders.FulfillmentError},
		{"kit", "lost_outbound", kit + "lost", orders.FulfillmentError},
		{"kit", "delayed", "ordered requisition_created transit_customer problem_in_transit_customer out_for_delivery with_customer transit_lab problem_in_transit_lab delivered_to_lab completed", ""},
		{"kit", "return_failed", back + "failure_to_deliver_to_lab", orders.FulfillmentError},
		{"kit", "lost_inbound", back + "lost", orders.FulfillmentError},
		{"kit", "missing_scans", "ordered requisition_created transit_customer with_customer delivered_to_lab completed", ""},
		{"kit", "blocked", back + "delivered_to_lab lab_processing_blocked delivered_to_lab completed", ""},
		{"kit", "expired", back + "delivered_to_lab lab_processing_blocked sample_error", orders.SampleStabilityExceeded},
		{"kit", "rejected", back + "delivered_to_lab sample_error", orders.SampleHemolyzed},
		{"kit", "partial", back + "delivered_to_lab completed", ""},
		{"kit", "corrected", back + "delivered_to_lab completed corrected", ""},
		{"kit", "stopped", "ordered requisition_created do_not_process", orders.FulfillmentError},
		{"kit", "never_again", "ordered requisition_created", ""},
		{"kit", "refused", "ordered do_not_process", orders.FulfillmentError},
		{"kit", "slow,repeats", back + "delivered_to_lab completed", ""},
		{"walk-in", "refused", "ordered cancelled", orders.OrderRefused},
		{"walk-in", "partial", "ordered requisition_created partial_results completed", ""},
		{"walk-in", "rejected", "ordered requisition_created sample_error", orders.SampleHemolyzed},
		{"walk-in", "silent", "ordered requisition_created completed", ""},
		{"walk-in", "down,silent", "ordered requisition_created completed", ""},
		{"walk-in", "slow", "ordered requisition_created completed", ""},
		{"walk-in", "repeats", "ordered requisition_created completed", ""},
		{"at home", "missing_scans", "ordered requisition_created appointment_pending appointment_scheduled draw_completed completed", ""},
		{"on site", "missing_scans", "ordered requisition_created draw_completed completed", ""},
		{"at home", "repeats", "ordered requisition_created appointment_pending appointment_scheduled draw_completed completed", ""},
		{"on site", "partial", "ordered requisition_created draw_completed partial_results completed", ""},
	} {
		t.Run(tc.test+" "+tc.outcome, func(t *testing.T) {
			d := newFixture(t)
			d.settings.OnSiteCollection = true
			o := d.placed(tc.test, withOutcome(tc.outcome))
			for range 30 {
				d.advance(day / 2)
			}
			o = d.get(o)
			require.Equal(t, levels(tc.want), history(o))
			var detail orders.StatusDetail
			if o.LastEvent.StatusDetail != nil {
				detail = *o.LastEvent.StatusDetail
			}
			require.Equal(t, tc.detail, detail)
			require.Equal(t, strings.Fields(strings.ReplaceAll(tc.want, "partial_results ", "")), d.notified(o), "partial results are silent by default")
		})
	}
}

func TestPartialResults_areReadableAndSentAsEventsBySetting(t *testing.T) {
	d := newFixture(t)
	d.settings.PartialWebhooks = true
	o := d.placed("walk-in", withOutcome("partial"))
	kit := d.placed("kit", withOutcome("partial"))
	d.advance(day)
	o = d.get(o)
	require.Equal(t, orders.PartialResults, o.LowLevel())
	results, err := d.Results(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Equal(t, labresult.Partial, results.Metadata.Status)
	d.advance(day)
	require.Equal(t, strings.Fields("ordered requisition_created partial_results completed"), d.notified(o))
	// A kit has no status for it; it can be read all the same.
	d.advance(4 * day)
	require.Equal(t, orders.DeliveredToLab, d.get(kit).LowLevel())
	results, err = d.Results(t.Context(), d.team, kit.ID)
	require.NoError(t, err)
	require.Equal(t, labresult.Partial, results.Metadata.Status)
}

func TestCriticalResult_sendsOneEventDespiteRepeatedMessages(t *testing.T) {
	d := newFixture(t)
	o := d.placed("walk-in", withOutcome("critical,repeats"))
	d.advance(3 * day)
	require.Equal(t, []string{"ordered", "requisition_created", "completed", critical.EventCritical}, d.notified(o))
	require.Equal(t, labresult.Critical, *d.get(o).Interpretation)
}

func TestMissingResults_areListedWithTheReason(t *testing.T) {
	d := newFixture(t)
	o := d.placed("walk-in", withOutcome("missing"))
	d.advance(3 * day)
	require.True(t, *d.get(o).HasMissingResults)
	results, err := d.Results(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Len(t, results.Results, 2)
	require.Equal(t, labresult.InternalLabFailure, results.MissingResults[0].InferredFailureType)
}

func TestSubmission_isRetriedWhileTheLabIsDown(t *testing.T) {
	d := newFixture(t)
	o := d.placed("walk-in", withOutcome("down,silent"))
	d.advance(0)
	require.Equal(t, orders.Ordered, d.get(o).LowLevel(), "the lab is away")
	d.advance(29 * time.Second)
	require.Equal(t, orders.Ordered, d.get(o).LowLevel(), "not tried again yet")
	d.advance(time.Second)
	require.Equal(t, orders.Ordered, d.get(o).LowLevel(), "the lab has it, and the answer was lost")
	d.advance(time.Minute)
	require.Equal(t, orders.RequisitionCreated, d.get(o).LowLevel())
}

func TestReceive_statusMessageImpliesThatTheLabAccepted(t *testing.T) {
	d := newFixture(t, func(o *options) { o.Retry = func(int) time.Duration { return 365 * day } })
	o := d.placed("kit", withOutcome("silent"))
	d.advance(0)
	require.Equal(t, orders.Ordered, d.get(o).LowLevel())
	d.advance(day)
	o = d.get(o)
	require.Equal(t, levels("ordered requisition_created transit_customer"), history(o), "who sends a kit has accepted the order")
	require.NotNil(t, o.SampleID)
	d.advance(365 * day)
	require.Equal(t, orders.Completed, d.get(o).LowLevel())
}

func TestCancel_worksUntilTheLabHasTheSample(t *testing.T) {
	d := newFixture(t)
	for _, tc := range []struct {
		name, outcome string
		wait          time.Duration
		ok            bool
	}{
		{"before the lab knows", "", -1, true},
		{"at the lab", "", 0, true},
		{"while the lab is away", "down", 0, true},
		{"after a lost answer", "silent", 0, true},
		{"too late for the lab", "too_late_to_cancel", 0, true},
		{"on its way", "", day, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := d.placed("kit", withOutcome(tc.outcome))
			if tc.wait >= 0 {
				d.advance(tc.wait)
			}
			before := d.get(o)
			got, err := d.Cancel(t.Context(), d.team, o.ID)
			if !tc.ok {
				requireRule(t, err, orders.CancelNotAllowed, healthlab.Precondition)
				require.Equal(t, before, d.get(o))
				return
			}
			require.NoError(t, err)
			require.Equal(t, orders.StageCancelled, got.Status)
			require.Equal(t, orders.TransactionCancelled, got.OrderTransaction.Status)
			_, err = d.Cancel(t.Context(), d.team, o.ID)
			requireRule(t, err, orders.CancelNotAllowed, healthlab.Precondition)
			for range 20 {
				d.advance(day)
			}
			require.Equal(t, orders.Cancelled, d.get(o).LowLevel(), "nothing happens to it any more")
			record, err := d.store.Orders().Get(t.Context(), d.team, o.ID)
			require.NoError(t, err)
			require.True(t, record.Lab.Due.IsZero(), "and there is nothing left to tell the lab")
			require.Equal(t, record.Lab.Started, record.Lab.Cancel)
		})
	}
	_, err := d.Cancel(t.Context(), healthlab.TeamID{UUID: id("other team")}, d.placed("kit").ID)
	requireRule(t, err, orders.OrderNotFound, healthlab.NotFound)
}

func TestScheduledOrder_isSubmittedOnItsDay(t *testing.T) {
	d := newFixture(t)
	in := func(days int) *healthlab.Date { return ptr(healthlab.DateOf(d.now()).AddDays(days)) }
	schedule := func(day *healthlab.Date) func(*orders.PlaceRequest) {
		return func(r *orders.PlaceRequest) { r.ActivateBy = day }
	}
	_, err := d.Place(t.Context(), d.team, d.asks("walk-in", schedule(in(-1))))
	requireRule(t, err, orders.ActivateByInPast, healthlab.Precondition)
	today, waits, moved, cleared := d.placed("walk-in", schedule(in(0))), d.placed("walk-in", schedule(in(3))),
		d.placed("walk-in", schedule(in(3))), d.placed("walk-in", schedule(in(3)))
	d.advance(0)
	require.Equal(t, orders.RequisitionCreated, d.get(today).LowLevel())
	_, err = d.SetActivation(t.Context(), d.team, today.ID, in(5))
	requireRule(t, err, orders.OrderNotModifiable, healthlab.Precondition)
	_, err = d.SetActivation(t.Context(), d.team, d.placed("kit").ID, nil)
	requireRule(t, err, orders.OrderNotScheduled, healthlab.Precondition)
	_, err = d.SetActivation(t.Context(), d.team, moved.ID, in(-1))
	requireRule(t, err, orders.ActivateByInPast, healthlab.Precondition)
	_, err = d.SetActivation(t.Context(), d.team, moved.ID, in(5))
	require.NoError(t, err)
	got, err := d.SetActivation(t.Context(), d.team, cleared.ID, nil)
	require.NoError(t, err)
	require.Nil(t, got.ActivateBy)
	require.Equal(t, []string{"ordered"}, d.notified(cleared), "no event by itself")
	d.advance(0)
	require.Equal(t, orders.RequisitionCreated, d.get(cleared).LowLevel())
	d.advance(2*day + 12*time.Hour - time.Microsecond)
	require.Equal(t, orders.Ordered, d.get(waits).LowLevel(), "a moment before its day")
	d.advance(time.Microsecond)
	require.Equal(t, orders.RequisitionCreated, d.get(waits).LowLevel())
	require.Equal(t, orders.Ordered, d.get(moved).LowLevel())
	d.advance(2 * day)
	require.Equal(t, orders.RequisitionCreated, d.get(moved).LowLevel())
}

// interrupted is a lab that fails, after something has happened meanwhile.
type interrupted struct {
	exchange.LabBackend
	meanwhile func()
}

func (i *interrupted) Submit(ctx context.Context, s exchange.Submission) (exchange.Accepted, error) {
	if i.meanwhile == nil {
		return i.LabBackend.Submit(ctx, s)
	}
	i.meanwhile()
	i.meanwhile = nil
	return exchange.Accepted{}, healthlab.Unavailable
}

// A new activation day holds, also if it is set while the order is being placed at the lab
// for the old one.
func TestScheduledOrder_activationDayChangedDuringSubmissionApplies(t *testing.T) {
	d := newFixture(t)
	lab := &interrupted{LabBackend: d.lab}
	service, err := d.newServices(book(t), lab, &options{orderOptions: orders.Options{Environment: healthlab.Production, Background: orders.Background{Now: d.now}}})
	require.NoError(t, err)
	d.services = service
	on := healthlab.DateOf(d.now())
	o := d.placed("walk-in", func(r *orders.PlaceRequest) { r.ActivateBy = &on })
	lab.meanwhile = func() {
		_, err := d.SetActivation(t.Context(), d.team, o.ID, ptr(on.AddDays(7)))
		require.NoError(t, err)
	}
	d.advance(0)
	require.Nil(t, lab.meanwhile)
	d.advance(6 * day)
	require.Equal(t, orders.Ordered, d.get(o).LowLevel())
	d.advance(day)
	require.Equal(t, orders.RequisitionCreated, d.get(o).LowLevel())
}

// oneSampleID is a laboratory that gives every order the same sample id.
type oneSampleID struct{ exchange.LabBackend }

func (oneSampleID) Submit(context.Context, exchange.Submission) (exchange.Accepted, error) {
	return exchange.Accepted{SampleID: "S1"}, nil
}

func TestSubmission_sampleIDOfAnotherOrderIsReplaced(t *testing.T) {
	d := newFixture(t)
	var logged syncBuffer
	service, err := d.newServices(book(t), oneSampleID{d.lab},
		&options{orderOptions: orders.Options{Environment: healthlab.Production, Background: orders.Background{Now: d.now, Log: slog.New(slog.NewTextHandler(&logged, nil))}}})
	require.NoError(t, err)
	d.services = service
	placed := []orders.Order{d.placed("walk-in"), d.placed("walk-in"), d.placed("walk-in")}
	_, err = service.SubmitDue(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(logged.String(), "laboratory gave two orders one sample id"))
	first := 0
	for _, o := range placed {
		o = d.get(o)
		require.Equal(t, orders.RequisitionCreated, o.LowLevel())
		if *o.SampleID == "S1" {
			first++
		} else {
			require.Equal(t, o.ID.String(), *o.SampleID)
		}
	}
	require.Equal(t, 1, first)
	lines := strings.Count(logged.String(), "\n")
	d.advance(30 * day)
	require.Equal(t, lines, strings.Count(logged.String(), "\n"), "no call is repeated")
}

func TestSubmission_kitWithTheSampleIDOfAnotherOrderHasNone(t *testing.T) {
	d := newFixture(t)
	service, err := d.newServices(book(t), oneSampleID{d.lab}, &options{orderOptions: orders.Options{Environment: healthlab.Production, Background: orders.Background{Now: d.now}}})
	require.NoError(t, err)
	d.services = service
	d.placed("walk-in")
	d.advance(0)
	kit, err := d.PlaceTestkit(t.Context(), d.team, d.kit())
	require.NoError(t, err)
	_, err = service.SubmitDue(t.Context())
	require.NoError(t, err)
	r, err := d.store.Orders().Get(t.Context(), d.team, kit.ID)
	require.NoError(t, err)
	require.Nil(t, r.SampleID, "the kit has another number than its order")
	require.True(t, r.Lab.Kit)
}

func TestDrawCompleted_isReportedForOnSiteCollectionOnly(t *testing.T) {
	d := newFixture(t)
	d.settings.OnSiteCollection = true
	o, walkIn := d.placed("on site", withOutcome("never_again")), d.placed("walk-in", withOutcome("never_again"))
	_, err := d.DrawCompleted(t.Context(), d.team, o.ID)
	requireRule(t, err, orders.TransitionNotAllowed, healthlab.Precondition)
	d.advance(0)
	_, err = d.DrawCompleted(t.Context(), d.team, walkIn.ID)
	requireRule(t, err, catalogue.MethodNotSupported, healthlab.Precondition)
	o, err = d.DrawCompleted(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Equal(t, orders.Status("sample_with_lab.on_site_collection.draw_completed"), o.LastEvent.Status)
}

func TestList_returnsOrdersAndTheirTransaction(t *testing.T) {
	d := newFixture(t)
	var want []orders.OrderID
	for range 3 {
		want = append([]orders.OrderID{d.placed("walk-in").ID}, want...)
		d.advance(time.Minute)
	}
	page, err := d.List(t.Context(), orders.Query{Team: d.team})
	require.NoError(t, err)
	var got []orders.OrderID
	for _, o := range page.Orders {
		got = append(got, o.ID)
	}
	require.Equal(t, want, got)
	_, err = d.List(t.Context(), orders.Query{Team: d.team, Size: 101, Page: -1, Status: []orders.LowLevel{"x"}, Sort: "x"})
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 4)

	journey := page.Orders[0].OrderTransaction
	detail, err := d.Transaction(t.Context(), d.team, journey.ID)
	require.NoError(t, err)
	require.Equal(t, journey.Orders[0], detail.Orders[0].TransactionMember)
	require.Equal(t, detail.Orders[0].LowLevelStatus, detail.Orders[0].LastStatus)
	for _, other := range []orders.TransactionID{{}, {UUID: id("nothing")}} {
		_, err = d.Transaction(t.Context(), d.team, other)
		requireRule(t, err, orders.TransactionNotFound, healthlab.NotFound)
	}
	_, err = d.Transaction(t.Context(), healthlab.TeamID{UUID: id("other team")}, journey.ID)
	requireRule(t, err, orders.TransactionNotFound, healthlab.NotFound)
}

func TestSimulate_walksToTheFinalStatus(t *testing.T) {
	for _, tc := range []struct {
		test, final, want string
	}{
		{"kit", "", "ordered requisition_created transit_customer out_for_delivery with_customer transit_lab delivered_to_lab completed"},
		{"kit", "sample_with_lab.testkit.delivered_to_lab", "ordered requisition_created transit_customer out_for_delivery with_customer transit_lab delivered_to_lab"},
		{"kit", "failed.testkit.lost", "ordered requisition_created transit_customer lost"},
		{"kit", "failed.testkit.failure_to_deliver_to_lab", "ordered requisition_created transit_customer out_for_delivery with_customer transit_lab failure_to_deliver_to_lab"},
		{"kit", "completed.testkit.corrected", "ordered requisition_created transit_customer out_for_delivery with_customer transit_lab delivered_to_lab completed corrected"},
		{"kit", "cancelled.testkit.do_not_process", "ordered do_not_process"},
		{"walk-in", "", "ordered requisition_created completed"},
		{"walk-in", "sample_with_lab.walk_in_test.partial_results", "ordered requisition_created partial_results"},
		{"walk-in", "collecting_sample.walk_in_test.appointment_cancelled", "ordered requisition_created appointment_pending appointment_cancelled"},
		{"walk-in", "failed.walk_in_test.sample_error", "ordered requisition_created sample_error"},
		{"at home", "", "ordered requisition_created appointment_pending appointment_scheduled draw_completed completed"},
		{"on site", "", "ordered requisition_created draw_completed completed"},
		{"on site", "collecting_sample.on_site_collection.draw_completed", "ordered requisition_created draw_completed"},
	} {
		t.Run(tc.test+" "+tc.final, func(t *testing.T) {
			d := newFixture(t)
			d.settings = orders.Settings{OnSiteCollection: true, PartialWebhooks: true}
			o := d.placed(tc.test)
			got, err := d.Simulate(t.Context(), d.team, o.ID, orders.Status(tc.final), orders.SimulationFlags{})
			require.NoError(t, err)
			require.Equal(t, levels(tc.want), history(got))
			require.Equal(t, strings.Fields(tc.want), d.notified(got))
			require.Equal(t, got, d.get(got))
		})
	}
}

// In a simulation with critical and missing results, the only result is critical, not
// missing.
func TestSimulate_singleResultIsCriticalInsteadOfMissing(t *testing.T) {
	d := newFixture(t)
	o := d.placed("coded")
	lost := true
	o, err := d.Simulate(t.Context(), d.team, o.ID, "", orders.SimulationFlags{Interpretation: labresult.Critical, HasMissingResults: &lost})
	require.NoError(t, err)
	require.Equal(t, labresult.Critical, *o.Interpretation)
	require.True(t, *o.HasMissingResults)
	require.Len(t, d.critical(o), 1)
	results, err := d.Results(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Len(t, results.Results, 1)
	require.Equal(t, "sodium", results.Results[0].Slug)
	require.Len(t, results.MissingResults, 1)
}

// The simulation of a kit that is not registered stops before the kit leaves the patient.
func TestSimulate_unregisteredKitStopsWithTheCustomer(t *testing.T) {
	for _, low := range []orders.LowLevel{orders.TransitLab, orders.ProblemInTransitLab, orders.DeliveredToLab, orders.LabProcessingBlocked,
		orders.FailureToDeliverToLab, orders.SampleError, orders.Completed} {
		d := newFixture(t)
		o, err := d.PlaceTestkit(t.Context(), d.team, d.kit())
		require.NoError(t, err)
		final := orders.StatusOf(catalogue.Testkit, low)
		o, err = d.Simulate(t.Context(), d.team, o.ID, final, orders.SimulationFlags{})
		require.NoError(t, err)
		require.Equal(t, orders.WithCustomer, o.LowLevel(), low)
		_, err = d.Simulate(t.Context(), d.team, o.ID, final, orders.SimulationFlags{})
		requireRule(t, err, orders.StatusNotReachable, healthlab.Precondition)
		_, err = d.Register(t.Context(), d.team, orders.RegisterRequest{SampleID: *o.SampleID, PatientDetails: patient(), PatientAddress: address()})
		require.NoError(t, err)
		o, err = d.Simulate(t.Context(), d.team, o.ID, final, orders.SimulationFlags{})
		require.NoError(t, err)
		require.Equal(t, low, o.LowLevel())
	}
}

func TestSimulate_refusesInvalidTargetsAndAppliesFlags(t *testing.T) {
	d := newFixture(t)
	o := d.placed("walk-in")
	_, err := d.Simulate(t.Context(), d.team, o.ID, "received.testkit.ordered", orders.SimulationFlags{})
	requireRule(t, err, orders.StatusOfOtherMethod, healthlab.Precondition)
	_, err = d.Simulate(t.Context(), d.team, o.ID, "received.walk_in_test.ordered", orders.SimulationFlags{})
	requireRule(t, err, orders.StatusNotReachable, healthlab.Precondition)
	_, err = d.Simulate(t.Context(), d.team, o.ID, "nowhere", orders.SimulationFlags{Interpretation: "x", ResultTypes: []labresult.Type{"x"}})
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 3)
	_, err = d.Simulate(t.Context(), healthlab.TeamID{UUID: id("other team")}, o.ID, "", orders.SimulationFlags{})
	require.ErrorIs(t, err, healthlab.NotFound)

	got, err := d.Simulate(t.Context(), d.team, o.ID, "", orders.SimulationFlags{Interpretation: labresult.Critical,
		ResultTypes: []labresult.Type{labresult.Range, labresult.CodedValue}, HasMissingResults: ptr(true)})
	require.NoError(t, err)
	require.Equal(t, labresult.Critical, *got.Interpretation)
	require.True(t, *got.HasMissingResults)
	require.Equal(t, []string{"ordered", "requisition_created", "completed", critical.EventCritical}, d.notified(got))
	results, err := d.Results(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Equal(t, labresult.Range, results.Results[0].Type)
	require.True(t, *results.Results[0].IsAboveMaxRange)

	kit, err := d.PlaceTestkit(t.Context(), d.team, d.kit())
	require.NoError(t, err)
	kit, err = d.Simulate(t.Context(), d.team, kit.ID, "", orders.SimulationFlags{})
	require.NoError(t, err)
	require.Equal(t, orders.WithCustomer, kit.LowLevel(), "nobody has registered it")
	_, err = d.Register(t.Context(), d.team, orders.RegisterRequest{SampleID: *kit.SampleID, PatientDetails: patient(), PatientAddress: address()})
	require.NoError(t, err)
	kit, err = d.Simulate(t.Context(), d.team, kit.ID, "", orders.SimulationFlags{})
	require.NoError(t, err)
	require.Equal(t, orders.Completed, kit.LowLevel())

	production := newFixture(t, func(o *options) { o.Environment = healthlab.Production })
	_, err = production.Simulate(t.Context(), production.team, production.placed("walk-in").ID, "", orders.SimulationFlags{})
	requireRule(t, err, orders.SandboxOnly, healthlab.NotFound)
}

// Results that match no order for certain are kept: an exchange without a place for them is refused.
func TestExchange_needsAStoreOfReviews(t *testing.T) {
	d := newFixture(t)
	_, err := exchange.New(d.Service, d.store.Orders(), nil, d.lab, nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	require.ErrorContains(t, err, "ReviewStore")
}
