package httpapi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/simulation"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

// report lets the lab report results of an order.
func (c *fixture) report(o orders.Order, on orders.Trigger, id string, results ...labresult.Result) orders.OrderResults {
	c.t.Helper()
	path := "/v3/order/" + o.ID.String()
	c.get(path, 200).JSON(c.t, &o)
	require.NoError(c.t, c.config.Exchange.Receive(c.t.Context(), exchange.Message{ID: id, Team: o.TeamID, Order: o.ID, SampleID: *o.SampleID, On: on,
		At: fixtureNow, Patient: orders.ReportedAs(o.PatientDetails), Results: &labresult.Report{Results: results}}))
	var out orders.OrderResults
	c.get(path+"/result", 200).JSON(c.t, &out)
	return out
}

// A lab's results are published in our form: bounds, flags, the marker that a result belongs
// to, and the ordered markers without a result.
func TestResults_haveBoundsFlagsMarkersAndMissingMarkers(t *testing.T) {
	c := newFixture(t, nil)
	o := c.placed() // 1001, 1002, 1011, 1012
	c.Send(t, "POST", "/v3/order/"+o.ID.String()+"/test?final_status=received.walk_in_test.requisition_created", nil).Want(t, 200)
	partial := c.report(o, orders.PartialResult, "1",
		labresult.Result{Name: "Glucose", Result: "1.5", Type: labresult.Numeric, ReferenceRange: ptr("< OR = 1.5"), ProviderID: ptr("N001-1")})
	require.Empty(t, partial.MissingResults)
	one := partial.Results[0]
	require.Equal(t, "1.5", one.Value.String())
	require.Equal(t, "1.5", one.MaxRangeValue.String())
	require.Nil(t, one.MinRangeValue)
	require.False(t, *one.IsAboveMaxRange)
	require.Nil(t, one.IsBelowMinRange)
	require.Equal(t, "glucose", one.Slug)
	require.Equal(t, "2345-7", *one.LOINC)
	require.Equal(t, labresult.Normal, one.Interpretation)
	require.Equal(t, 1001, one.SourceMarkers[0].MarkerID)

	final := c.report(o, orders.FinalResult, "2",
		labresult.Result{Name: "Sugar", Result: "1.5", Type: labresult.Numeric, ReferenceRange: ptr("<1.5"), LOINC: ptr("2345-7"), Interpretation: labresult.Abnormal},
		labresult.Result{Name: "Creatinine", Result: ">2000", Type: labresult.Range, ReferenceRange: ptr("3-1100"), ProviderID: ptr("N011-1")},
		labresult.Result{Name: "ALT", Result: "see note", Type: labresult.Comment, ReferenceRange: ptr("3-1100"), ProviderID: ptr("N012")},
		labresult.Result{Name: "Nobody asked", Result: "DETECTED", Type: labresult.CodedValue, ReferenceRange: ptr("none seen"), ProviderID: ptr("X1")})
	require.True(t, *final.Results[0].IsAboveMaxRange, "the bound is not part of the range")
	require.Equal(t, "-1", final.Results[1].Value.String())
	require.True(t, *final.Results[1].IsAboveMaxRange)
	require.False(t, *final.Results[1].IsBelowMinRange)
	require.Equal(t, ">2000", *final.Results[1].Notes)
	require.Nil(t, final.Results[2].IsAboveMaxRange)
	require.Equal(t, 1012, final.Results[2].SourceMarkers[0].MarkerID)
	require.Nil(t, final.Results[3].SourceMarkers)
	require.Len(t, final.MissingResults, 1)
	gone := final.MissingResults[0]
	require.Equal(t, labresult.Missing{Name: "Hemoglobin A1c", Slug: "hemoglobin-a1c", InferredFailureType: labresult.UnknownFailure, LOINC: ptr("4548-4"),
		LOINCSlug: ptr("hemoglobin-a1c"), ProviderID: ptr("N002-1"), SourceMarkers: []labresult.SourceMarker{{MarkerID: 1002, Name: "Hemoglobin A1c", Slug: "hemoglobin-a1c", ProviderID: ptr("N002")}}}, gone)
	c.get("/v3/order/"+o.ID.String(), 200).JSON(t, &o)
	require.True(t, *o.HasMissingResults)
	require.Equal(t, labresult.Abnormal, *o.Interpretation)
}

// A kit has no status for partial results, but they can be read. A correction replaces the
// corrected result.
func TestResults_ofAKitArriveInPartsAndAreCorrected(t *testing.T) {
	c := newFixture(t, nil)
	o := c.order("POST", "/v3/order", c.request(kitTest, nil))
	path := "/v3/order/" + o.ID.String()
	c.Send(t, "POST", path+"/test?final_status=sample_with_lab.testkit.delivered_to_lab", nil).Want(t, 200)
	c.get(path, 200).JSON(t, &o)
	events := len(o.Events)
	one := func(value string, i labresult.Interpretation) labresult.Result {
		return labresult.Result{Name: "HbA1c", Result: value, Type: labresult.Numeric, ProviderID: ptr("N002-1"), Interpretation: i}
	}
	first := c.report(o, orders.PartialResult, "1", one("5", labresult.Normal))
	require.Equal(t, labresult.Partial, first.Metadata.Status)
	require.Equal(t, "Ana Ray", first.Metadata.Patient)
	require.Equal(t, "37", first.Metadata.Age)
	require.Equal(t, "1988-03-07", first.Metadata.DOB)
	require.Equal(t, *o.SampleID, first.Metadata.SpecimenNumber)
	require.Equal(t, "Northlab", *first.Metadata.Laboratory)
	require.NotEmpty(t, first.Metadata.DateReported)
	c.get(path, 200).JSON(t, &o)
	require.Len(t, o.Events, events)
	require.Equal(t, labresult.Normal, *o.Interpretation)
	require.False(t, *o.HasMissingResults)
	require.Equal(t, labresult.Final, c.report(o, orders.FinalResult, "2", one("5", labresult.Normal)).Metadata.Status)
	c.get(path, 200).JSON(t, &o)
	require.Equal(t, orders.Completed, o.LowLevel())
	iron := labresult.Result{Name: "Iron", Slug: "iron", Result: "80", Type: labresult.Numeric, ProviderID: ptr("N077-1")}
	before := "5"
	for i, value := range []string{"9", "10"} {
		got := c.report(o, orders.CorrectedResult, "3"+value, one(value, labresult.Critical), iron)
		require.Equal(t, value, got.Results[0].Result)
		require.Equal(t, before, *got.Results[0].PreviousResult)
		require.NotNil(t, got.Results[0].CorrectedAt)
		require.Nil(t, got.Results[1].PreviousResult, "the first correction added it")
		require.NotNil(t, got.Results[1].CorrectedAt)
		require.Equal(t, labresult.Corrected, got.Metadata.Status)
		var head labresult.Metadata
		c.get(path+"/result/metadata", 200).JSON(t, &head)
		require.Equal(t, labresult.Corrected, head.Status)
		before = value
		c.get(path, 200).JSON(t, &o)
		var named []string
		for _, m := range o.LastEvent.CorrectedMarkers {
			named = append(named, m.Name)
		}
		require.Equal(t, [][]string{{"HbA1c", "Iron"}, {"HbA1c"}}[i], named, "the event names what the correction changed")
		require.Equal(t, orders.Corrected, o.LowLevel())
		require.Len(t, o.Events, events+2+i)
		require.Equal(t, labresult.Critical, *o.Interpretation)
	}
	var page struct{ Total int }
	c.get("/v3/orders?is_critical=true&status=corrected", 200).JSON(t, &page)
	require.Equal(t, 1, page.Total)
}

// Every status of every method can be simulated, but for those that need something from
// outside: what was so before, an import, a patient at their kit.
func TestSimulation_reachesEveryStatusOfEveryMethod(t *testing.T) {
	c := remade(t, func(x *shop) {
		x.settings.Redraws, x.exchange.RedrawLabs = true, []string{"northlab"}
	})
	tests := map[catalogue.CollectionMethod]string{catalogue.Testkit: kitTest, catalogue.WalkInTest: walkInTest, catalogue.AtHomePhlebotomy: atHomeTest, catalogue.OnSiteCollection: onSiteTest}
	outside := []orders.LowLevel{orders.Ordered, orders.RequisitionBypassed, orders.AwaitingRegistration, orders.Registered}
	for _, s := range orders.Statuses() {
		t.Run(string(s), func(t *testing.T) {
			o := c.order("POST", "/v3/order", c.request(tests[s.Method()], nil))
			path := "/v3/order/" + o.ID.String()
			reply := c.Send(t, "POST", path+"/test?final_status="+string(s), nil)
			if slices.Contains(outside, s.LowLevel()) {
				require.Equal(t, orders.StatusNotReachable, reply.Want(t, 400).ErrorType(t))
				return
			}
			require.Equal(t, "null", strings.TrimSpace(string(reply.Want(t, 200).Body)))
			c.get(path, 200).JSON(t, &o)
			require.Equal(t, s, o.LastEvent.Status)
			if details := orders.StatusDetails(s.LowLevel()); s.Stage() == orders.StageFailed || s.LowLevel() == orders.LabProcessingBlocked || s.LowLevel() == orders.DoNotProcess {
				require.NotNil(t, o.LastEvent.StatusDetail, "every failure has a reason")
				require.Contains(t, details, *o.LastEvent.StatusDetail)
			}
			if s.Stage() == orders.StageFailed || s.Stage() == orders.StageCancelled {
				require.Equal(t, orders.TransactionCancelled, o.OrderTransaction.Status)
			}
			if kit := o.Details.Testkit; kit != nil && o.LowLevel() != orders.RequisitionCreated && s.Stage() != orders.StageCancelled {
				require.Equal(t, "OUT-"+*o.SampleID, *kit.Shipment.OutboundTrackingNumber)
				require.Equal(t, "sandbox_courier", *kit.Shipment.OutboundCourier)
				require.NotNil(t, kit.Shipment.OutboundTrackingURL)
				require.Equal(t, "IN-"+*o.SampleID, *kit.Shipment.InboundTrackingNumber, "the label for the way back is in the kit")
				require.Equal(t, "https://tracking.example.com/IN-"+*o.SampleID, *kit.Shipment.InboundTrackingURL)
				require.Equal(t, "sandbox_courier", *kit.Shipment.InboundCourier)
			}
			require.Equal(t, s.Stage(), o.Status)
			results := c.Send(t, "GET", path+"/result", nil)
			switch s.LowLevel() {
			case orders.Completed, orders.Corrected, orders.RedrawAvailable, orders.PartialResults:
				var got orders.OrderResults
				results.Want(t, 200).JSON(t, &got)
				require.Equal(t, s.LowLevel() == orders.PartialResults, got.Metadata.Status == labresult.Partial)
				require.Equal(t, "2026-03-04", *got.Metadata.DateCollected)
				require.Equal(t, "2026-03-04", *got.Metadata.DateReceived)
				require.Equal(t, s.LowLevel() == orders.PartialResults, got.MissingResults == nil, "null before there is a final report")
			default:
				results.Want(t, 404)
			}
		})
	}
}

// A redraw is an order of its own, and the transaction ends with it.
func TestRedraw_isAnOrderOfTheSameTransaction(t *testing.T) {
	walk := func(t *testing.T, c *fixture, delay string) {
		o := c.placed()
		path, journey := "/v3/order/"+o.ID.String(), "/v3/order_transaction/"+o.OrderTransaction.ID.String()
		c.Send(t, "POST", path+"/test?final_status=collecting_sample.walk_in_test.redraw_available"+delay, nil).Want(t, 200)
		c.get(path, 200).JSON(t, &o)
		require.Equal(t, orders.RedrawAvailable, o.LowLevel())
		require.Equal(t, orders.TransactionActive, o.OrderTransaction.Status)
		require.Len(t, o.OrderTransaction.Orders, 2)
		second := o.OrderTransaction.Orders[1]
		require.Equal(t, orders.OriginRedraw, second.Origin)
		require.Equal(t, o.ID, *second.ParentID)
		c.refused("POST", path+"/cancel", nil, 400, orders.CancelNotAllowed)
		var results orders.OrderResults
		c.get(journey+"/result", 200).JSON(t, &results)
		require.Equal(t, labresult.Partial, results.Metadata.Status)
		lost := results.MissingResults[0].Slug
		again := "/v3/order/" + second.ID.String()
		var redraw orders.Order
		c.get(again, 200).JSON(t, &redraw)
		require.Len(t, redraw.LabTest.Markers, 1, "only what was lost")
		require.Equal(t, redraw.LabTest.Markers[0].CommonTATDays, redraw.LabTest.CommonTATDays)
		// Missing again: there is no third try.
		c.refused("POST", again+"/test?final_status=collecting_sample.walk_in_test.redraw_available", nil, 400, orders.StatusNotReachable)
		c.Send(t, "POST", again+"/test", nil).Want(t, 200)
		c.get(journey+"/result", 200).JSON(t, &results)
		require.Equal(t, labresult.Final, results.Metadata.Status)
		require.Empty(t, results.MissingResults)
		require.True(t, slices.ContainsFunc(results.Results, func(r labresult.Result) bool { return r.Slug == lost }))
		var detail orders.TransactionDetail
		c.get(journey, 200).JSON(t, &detail)
		require.Equal(t, orders.TransactionCompleted, detail.Status)
	}
	c := remade(t, func(x *shop) { x.settings.Redraws, x.exchange.RedrawLabs = true, []string{"northlab"} })
	walk(t, c, "")
	for _, off := range []func(*shop){func(x *shop) { x.exchange.RedrawLabs = []string{"northlab"} }, func(x *shop) { x.settings.Redraws = true }} {
		c := remade(t, off)
		path := "/v3/order/" + c.placed().ID.String()
		c.refused("POST", path+"/test?final_status=collecting_sample.walk_in_test.redraw_available", nil, 400, orders.StatusNotReachable)
		var o orders.Order
		c.get(path, 200).JSON(t, &o)
		require.Equal(t, orders.Ordered, o.LowLevel(), "nothing happened")
	}
}

// The simulation of a registrable kit stops when the kit is with the patient, and continues
// once the kit is registered.
func TestSimulation_ofAnUnregisteredKitStopsUntilRegistration(t *testing.T) {
	c := newFixture(t, nil)
	o := c.order("POST", "/v3/order/testkit", c.aKit())
	path := "/v3/order/" + o.ID.String()
	c.Send(t, "POST", path+"/test", nil).Want(t, 200)
	c.get(path, 200).JSON(t, &o)
	c.get(path+"/result", 404)
	lows := func() (out []orders.LowLevel) {
		c.get(path, 200).JSON(t, &o)
		for _, e := range o.Events {
			out = append(out, e.Status.LowLevel())
		}
		return out
	}
	sent := []orders.LowLevel{orders.Ordered, orders.AwaitingRegistration, orders.TransitCustomer, orders.OutForDelivery, orders.WithCustomer}
	require.Equal(t, sent, lows())
	c.order("POST", "/v3/order/testkit/register", object{"sample_id": *o.SampleID, "patient_details": aPatient(), "patient_address": anAddress()})
	c.Send(t, "POST", path+"/test", nil).Want(t, 200)
	require.Equal(t, append(sent, orders.Registered, orders.RequisitionCreated, orders.TransitLab, orders.DeliveredToLab, orders.Completed), lows())
}

// Every case of the test runs ends with an item of the queue that says so, and that can be
// decided in every way which it allows.
func TestUnmatchedResult_everyTestCaseCanBeDecidedInEachAllowedWay(t *testing.T) {
	c := newFixture(t, nil)
	var cases struct{ Data []simulation.MatchTestCase }
	c.get("/v3/unmatched_result_test/case", 200).JSON(t, &cases)
	for i, rule := range cases.Data {
		for j, status := range []string{"final", "partial"} {
			body := object{"case": rule.Case, "order_source": "managed", "result_status": status, "interpretation": "abnormal"}
			if rule.Case == exchange.MatchWrongCollection {
				body["order_source"] = "provided"
				body["orders"] = object{"target": c.accepted(atHomeTest, nil).ID.String()}
			}
			var run simulation.MatchTestRun
			c.With("x-idempotency-key", string(rule.Case)+status).Send(t, "POST", "/v3/unmatched_result_test", body).Want(t, 202).JSON(t, &run)
			path := "/v3/unmatched_result_test/" + run.RunID.String()
			c.get(path, 200).JSON(t, &run)
			require.Equal(t, simulation.MatchTestQueued, run.Status)
			_, err := c.config.MatchTests.Once(t.Context())
			require.NoError(t, err)
			c.get(path, 200).JSON(t, &run)
			require.Nil(t, run.Error, "%s", rule.Case)
			require.Equal(t, simulation.MatchTestSucceeded, run.Status)
			require.Equal(t, "succeeded", run.Stage)
			require.Len(t, run.Orders, len(rule.OrderRoles))
			require.NotNil(t, run.StartedAt)
			require.NotNil(t, run.CompletedAt)
			item := "/v3/unmatched_result/" + run.RawResultID.String()
			var got exchange.UnmatchedResult
			c.get(item, 200).JSON(t, &got)
			require.Equal(t, rule.Case, got.DecisionCode)
			require.Equal(t, labresult.Status(status), *got.ResultStatus)
			require.Equal(t, labresult.Abnormal, *got.Interpretation)
			require.Equal(t, []exchange.ReviewAction{exchange.ReviewAccept, exchange.ReviewReject, exchange.ReviewUnsure}, got.AllowedActions)
			if i%2 == j {
				c.post(item+"/resolve", object{"action": "reject", "note": "no"}, 200).JSON(t, &got)
				require.Equal(t, exchange.MatchResolved, got.Status)
				require.Equal(t, "no", *got.Note)
				require.Empty(t, got.AllowedActions)
				require.Positive(t, c.unmatchedPage("?status=resolved&decision_code="+string(rule.Case)).Total)
				continue
			}
			choice := object{"user_id": c.user.String()}
			for _, o := range run.Orders {
				choice = object{"order_id": o.OrderID.String(), "user_id": o.UserID.String()}
			}
			c.Send(t, "PATCH", c.about("info"), anInfo(nil)).Want(t, 200)
			var o orders.Order
			c.post(item+"/accept", choice, 200).JSON(t, &o)
			want := orders.Completed
			switch {
			case rule.Case == exchange.MatchCompleted:
				want = orders.Corrected
			case status == "partial":
				want = orders.PartialResults
			}
			require.Equal(t, want, o.LowLevel(), "%s %s", rule.Case, status)
			if rule.Case == exchange.MatchCancelled || rule.Case == exchange.MatchWrongLab {
				require.Equal(t, orders.OriginRecreation, o.Origin)
				require.Equal(t, choice["order_id"], o.Parent().String())
			}
			c.get("/v3/order/"+o.ID.String()+"/result", 200)
			c.refused("POST", item+"/accept", choice, 404, exchange.RawResultNotFound)
		}
	}
}

// at walks a new order to a status.
func (c *fixture) at(test string, s orders.Status) orders.Order {
	c.t.Helper()
	o := c.order("POST", "/v3/order", c.request(test, nil))
	if s.LowLevel() != orders.Ordered {
		c.post("/v3/order/"+o.ID.String()+"/test?final_status="+string(s), nil, 200)
	}
	return o
}

// For each status of an order: can it be cancelled, booked, drawn or rescheduled?
func TestOrder_statusDecidesIfCancelBookDrawOrRescheduleIsAllowed(t *testing.T) {
	c := remade(t, func(x *shop) {
		x.settings.Redraws, x.exchange.RedrawLabs, x.settings.PreRequisitionBooking = true, []string{"northlab"}, false
	})
	tests := map[catalogue.CollectionMethod]string{catalogue.Testkit: kitTest, catalogue.WalkInTest: walkInTest, catalogue.AtHomePhlebotomy: atHomeTest, catalogue.OnSiteCollection: onSiteTest}
	cancelled := map[catalogue.CollectionMethod][]orders.LowLevel{
		catalogue.Testkit:    {orders.Ordered, orders.RequisitionCreated},
		catalogue.WalkInTest: {orders.Ordered, orders.RequisitionCreated, orders.AppointmentPending, orders.AppointmentScheduled, orders.AppointmentCancelled},
		catalogue.AtHomePhlebotomy: {orders.Ordered, orders.RequisitionCreated, orders.AppointmentPending, orders.AppointmentScheduled,
			orders.AppointmentCancelled, orders.DrawCompleted},
		catalogue.OnSiteCollection: {orders.Ordered, orders.RequisitionCreated, orders.DrawCompleted},
	}
	kinds := map[catalogue.CollectionMethod]string{catalogue.WalkInTest: "psc", catalogue.AtHomePhlebotomy: "phlebotomy"}
	keys := map[string][]string{"psc": c.keys("psc"), "phlebotomy": c.keys("phlebotomy")}
	for _, s := range orders.Statuses() {
		low, method := s.LowLevel(), s.Method()
		if slices.Contains([]orders.LowLevel{orders.RequisitionBypassed, orders.AwaitingRegistration, orders.Registered}, low) {
			continue // needs an import, or a kit without a patient
		}
		o := c.at(tests[method], s)
		path := "/v3/order/" + o.ID.String()
		if kind := kinds[method]; kind != "" {
			key := keys[kind][0]
			if low == orders.RequisitionCreated || low == orders.AppointmentCancelled {
				key, keys[kind] = keys[kind][0], keys[kind][1:]
				c.post(path+"/"+kind+"/appointment/book", object{"booking_key": key}, 200)
				c.Send(t, "PATCH", path+"/"+kind+"/appointment/cancel", object{"cancellation_reason_id": c.reason(kind)}).Want(t, 200)
				o = c.at(tests[method], s)
				path = "/v3/order/" + o.ID.String()
			} else {
				c.refused("POST", path+"/"+kind+"/appointment/book", object{"booking_key": key}, 400, visits.OrderNotBookable)
			}
		}
		switch {
		case method != catalogue.OnSiteCollection:
			c.refused("PATCH", path+"/draw_completed", nil, 400, catalogue.MethodNotSupported)
		case low == orders.RequisitionCreated:
			c.order("PATCH", path+"/draw_completed", nil)
		default:
			c.refused("PATCH", path+"/draw_completed", nil, 400, orders.TransitionNotAllowed)
		}
		rule := orders.OrderNotModifiable
		if low == orders.Ordered {
			rule = orders.OrderNotScheduled
		}
		c.refused("PATCH", path, object{"activate_by": nil}, 400, rule)
		if slices.Contains(cancelled[method], low) {
			require.Equal(t, orders.Cancelled, c.order("POST", path+"/cancel", nil).LowLevel(), "%s", s)
		}
		c.refused("POST", path+"/cancel", nil, 400, orders.CancelNotAllowed)
	}
	// An import is cancelled, too.
	o := c.order("POST", "/v3/order/import", c.anImport(walkInTest, "REQ-1"))
	require.Equal(t, orders.Cancelled, c.order("POST", "/v3/order/"+o.ID.String()+"/cancel", nil).LowLevel())
}

func (c *fixture) hears(o orders.Order, on orders.Trigger) {
	c.t.Helper()
	require.NoError(c.t, c.config.Exchange.Receive(c.t.Context(), exchange.Message{ID: string(on), Team: o.TeamID, Order: o.ID, On: on, At: fixtureNow}))
}

// A kit can be registered until it has reached the patient, and only once; a kit without a
// patient gets no results.
func TestKit_isRegisteredOnceAndBeforeItGoesToTheLab(t *testing.T) {
	c := newFixture(t, nil)
	for low, want := range map[orders.LowLevel]bool{
		orders.TransitCustomer: true, orders.OutForDelivery: true, orders.ProblemInTransitCustomer: true, orders.WithCustomer: true,
		orders.TransitLab: false, orders.DeliveredToLab: false, orders.FailureToDeliverToCustomer: false, orders.Lost: false, orders.Cancelled: false,
	} {
		o := c.order("POST", "/v3/order/testkit", c.aKit())
		path := "/v3/order/" + o.ID.String()
		if low == orders.Cancelled {
			c.order("POST", path+"/cancel", nil)
			continue // it has no id yet under which it could be registered
		}
		c.post(path+"/test?final_status="+string(orders.StatusOf(catalogue.Testkit, low)), nil, 200)
		if on := map[orders.LowLevel]orders.Trigger{orders.TransitLab: orders.SampleSent, orders.DeliveredToLab: orders.SampleReceived}[low]; on != "" {
			c.hears(o, on) // a simulation stops with the patient
		}
		c.get(path, 200).JSON(t, &o)
		require.Equal(t, low, o.LowLevel())
		body := object{"sample_id": *o.SampleID, "patient_details": aPatient(), "patient_address": anAddress()}
		if !want {
			c.refused("POST", "/v3/order/testkit/register", body, 400, orders.KitNotRegistrable)
			continue
		}
		body["user_id"] = absent
		c.refused("POST", "/v3/order/testkit/register", body, 404, people.UserNotFound)
		delete(body, "user_id")
		require.Equal(t, orders.Registered, c.order("POST", "/v3/order/testkit/register", body).LowLevel(), "%s", low)
		require.Equal(t, orders.Cancelled, c.order("POST", path+"/cancel", nil).LowLevel(), "a registered kit is cancelled")
		c.refused("POST", "/v3/order/testkit/register", body, 400, orders.KitNotRegistrable)
	}
	o := c.order("POST", "/v3/order/testkit", c.aKit())
	path := "/v3/order/" + o.ID.String()
	c.post(path+"/test?final_status=sample_with_lab.testkit.delivered_to_lab", nil, 200)
	c.get(path, 200).JSON(t, &o)
	require.Equal(t, orders.WithCustomer, o.LowLevel())
	c.hears(o, orders.SampleReceived)
	require.NoError(t, c.config.Exchange.Receive(t.Context(), exchange.Message{ID: "1", Team: o.TeamID, Order: o.ID, SampleID: *o.SampleID, On: orders.FinalResult,
		At: fixtureNow, Results: &labresult.Report{Results: []labresult.Result{{Name: "Iron", Result: "1"}}}}))
	c.refused("GET", path+"/result", nil, 404, orders.ResultNotFound)
	c.refused("GET", path+"/result/metadata", nil, 404, orders.ResultNotFound)
	c.refused("GET", "/v3/order_transaction/"+o.OrderTransaction.ID.String()+"/result", nil, 404, orders.ResultNotFound)
}

// A simulated lab reports results with the interpretation and of the result types that the
// request names.
func TestSimulation_reportsTheRequestedInterpretationAndTypes(t *testing.T) {
	c := newFixture(t, nil)
	for _, reading := range []labresult.Interpretation{labresult.Normal, labresult.Abnormal, labresult.Critical, labresult.UnknownInterpretation} {
		for _, kinds := range [][]labresult.Type{nil, {labresult.Numeric}, {labresult.Range}, {labresult.Comment}, {labresult.CodedValue}} {
			o := c.placed()
			path := "/v3/order/" + o.ID.String()
			c.post(path+"/test", object{"interpretation": reading, "result_types": kinds, "has_missing_results": reading == labresult.Abnormal}, 200)
			c.get(path, 200).JSON(t, &o)
			require.Equal(t, reading, *o.Interpretation)
			require.Equal(t, reading == labresult.Abnormal, *o.HasMissingResults)
			var got orders.OrderResults
			c.get(path+"/result", 200).JSON(t, &got)
			require.Equal(t, reading, *got.Metadata.Interpretation)
			seen := map[labresult.Type]bool{}
			for _, r := range got.Results {
				seen[r.Type] = true
				require.NotEmpty(t, r.SourceMarkers)
				require.Equal(t, r.Type == labresult.Numeric, r.Value.String() != "-1")
			}
			if kinds == nil {
				kinds = []labresult.Type{labresult.Numeric} // as its markers are
			}
			require.Len(t, seen, len(kinds))
			for _, kind := range kinds {
				require.True(t, seen[kind], kind)
			}
			page := c.get("/v3/orders?interpretation="+string(reading)+"&order_ids="+o.ID.String(), 200)
			require.Contains(t, string(page.Body), `"total":1`)
		}
	}
}
