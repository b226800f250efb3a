package httpapi_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
)

// anImport is the body of an order that was placed elsewhere.
func (c *clinic) anImport(test, sample string) object {
	address := anAddress()
	address["receiver_name"] = "Ana"
	return object{"user_id": c.user.String(), "billing_type": "client_bill", "collection_method": "walk_in_test",
		"order_set": object{"lab_test_ids": []string{test}}, "patient_details": aPatient(), "patient_address": address, "sample_id": sample}
}

// aKit is the body of an order for a kit without a patient.
func (c *clinic) aKit() object {
	return object{"user_id": c.user.String(), "lab_test_id": kitTest, "shipping_details": object{
		"receiver_name": "Desk", "first_line": "1 Elm", "city": "Duluth", "state": "MN", "zip": "55802", "country": "US", "phone_number": "+15550100"}}
}

// What may be left out may be null as well, lists included.
func TestWhatIsOptionalMayBeNull(t *testing.T) {
	c := newClinic(t, nil)
	insurance := object{"front_image": nil, "back_image": nil, "patient_signature_image": nil, "subjective": nil, "assessment_plan": nil,
		"payor_code": nil, "insurance_id": nil, "responsible_relationship": nil, "responsible_details": nil, "diagnosis_codes": nil}
	order := object{"lab_test_id": nil, "collection_method": nil, "physician": nil, "health_insurance": insurance, "icd_codes": nil, "activate_by": nil,
		"passthrough": nil, "clinical_notes": nil, "lab_account_id": nil, "creator_member_id": nil, "aoe_answers": nil,
		"order_set": object{"lab_test_ids": []string{kitTest}, "add_on": nil, "lab_account_id": nil}}
	c.order("POST", "/v3/order", c.request(kitTest, nil))
	for path, more := range map[string]object{"/v3/order": nil, "/v3/order/create": {"parent_id": nil, "update_reason": nil}} {
		body := c.request(kitTest, nil)
		for _, edits := range []object{order, more} {
			for k, v := range edits {
				body[k] = v
			}
		}
		c.order("POST", path, body)
		body["order_set"], body["collection_method"] = object{"lab_test_ids": nil, "add_on": object{"marker_ids": []int{1011}, "provider_ids": nil}}, "walk_in_test"
		c.order("POST", path, body)
		body["order_set"] = object{"lab_test_ids": nil, "add_on": object{"marker_ids": nil, "provider_ids": []string{"N011"}}}
		o := c.order("POST", path, body)
		c.post("/v3/order/"+o.ID.String()+"/test", object{"result_types": nil, "has_missing_results": nil}, 200)
	}
	c.post("/v3/order/resend_events", object{"order_ids": nil, "start_at": "2026-03-01T00:00:00Z", "end_at": nil}, 200)
	c.post("/v3/lab_tests", object{"marker_ids": nil, "provider_ids": []string{"N011"}, "name": "N", "method": "walk_in_test", "description": "",
		"fasting": nil, "lab_account_id": nil, "lab_slug": nil}, 200)
	c.post("/v3/compendium/search", object{"mode": "canonical", "query": "iron", "loinc_set_hash": nil, "labs": nil}, 200)
	c.post("/v3/compendium/convert", object{"lab_test_id": walkInTest, "provider_ids": nil, "target_lab": "southlab"}, 200)
	c.Send(t, "POST", "/v3/lab_tests/list_order_set_markers", object{"lab_test_ids": []string{kitTest}, "add_on": nil, "lab_account_id": nil}).Want(t, 200)
	run := object{"case": "no_match", "order_source": "managed", "orders": nil, "lab_test_id": nil, "wrong_lab_test_id": nil}
	c.With("x-idempotency-key", "k1").Send(t, "POST", "/v3/unmatched_result_test", run).Want(t, 202)
}

// An import names its receiver, and answers no questions: whoever placed the order did.
func TestImportOfAnOrderWithQuestions(t *testing.T) {
	c := newClinic(t, nil)
	body := c.anImport(walkInTest, "REQ-1")
	body["order_set"] = object{"add_on": object{"marker_ids": []int{1009}}} // asks something that must be answered
	o := c.order("POST", "/v3/order/import", body)
	require.Equal(t, orders.RequisitionBypassed, o.LowLevel())
	address := anAddress()
	body["patient_address"], body["sample_id"] = address, "REQ-2"
	require.Equal(t, []string{"body.patient_address.receiver_name"}, c.post("/v3/order/import", body, 422).Locs(t))
	address["receiver_name"] = ""
	require.Equal(t, []string{"body.patient_address.receiver_name"}, c.post("/v3/order/import", body, 422).Locs(t))
}

func TestRequiredQuestionWithAnEmptyAnswer(t *testing.T) {
	c := remade(t, func(x *shop) {
		i := slices.IndexFunc(x.book.Markers, func(m orders.MarkerComplete) bool { return m.ID == 1011 })
		x.book.Markers[i].AOE = &orders.AOE{Questions: []orders.Question{{ID: 7, Required: true, Code: "WHY", Value: "Why?", Type: orders.TextQuestion, Answers: []orders.Answer{}}}}
	})
	answer := func(text string) object {
		return c.request(kitTest, object{"order_set": object{"add_on": object{"marker_ids": []int{1011}}}, "collection_method": "walk_in_test",
			"aoe_answers": []object{{"marker_id": 1011, "question_id": 7, "answer": text}}})
	}
	c.refused("POST", "/v3/order", answer(""), 400, orders.AOEMissing)
	c.refused("POST", "/v3/order", answer("  "), 400, orders.AOEMissing)
	c.order("POST", "/v3/order", answer("because"))
}

// A physician who registers a kit signs nothing.
func TestRegistrationTakesNoSignature(t *testing.T) {
	c := newClinic(t, nil)
	body := object{"sample_id": "S", "patient_details": aPatient(), "patient_address": anAddress(), "physician": object{
		"first_name": "Cy", "last_name": "Vale", "npi": "1", "signature_image": object{"content": "aGk=", "content_type": "image/png"}}}
	require.Equal(t, []string{"body.physician.signature_image"}, c.post("/v3/order/testkit/register", body, 422).Locs(t))
}

func TestDrawNeedsTheSwitch(t *testing.T) {
	c := remade(t, func(x *shop) { x.settings.OnSiteCollection = false })
	c.refused("PATCH", "/v3/order/"+c.placed().ID.String()+"/draw_completed", nil, 403, orders.FeatureNotEnabled)
}

// From the day on which the sample was taken, the order says when to expect results.
func TestResultsAreExpectedAfterTheDraw(t *testing.T) {
	c := newClinic(t, nil)
	o := c.order("POST", "/v3/order", c.request(onSiteTest, nil))
	require.Nil(t, o.ExpectedResultByDate)
	path := "/v3/order/" + o.ID.String()
	c.Send(t, "POST", path+"/test?final_status=received.on_site_collection.requisition_created", nil).Want(t, 200)
	o = c.order("PATCH", path+"/draw_completed", nil)
	require.Equal(t, "2026-03-07", o.ExpectedResultByDate.String())
	require.Equal(t, "2026-03-09", o.WorstCaseResultByDate.String())
	home := c.order("POST", "/v3/order", c.request(atHomeTest, nil))
	c.Send(t, "POST", "/v3/order/"+home.ID.String()+"/test?final_status=collecting_sample.at_home_phlebotomy.draw_completed", nil).Want(t, 200)
	c.get("/v3/order/"+home.ID.String(), 200).JSON(t, &home)
	require.NotNil(t, home.ExpectedResultByDate)
}

// postbox keeps the messages to patients, in the order in which they came.
type postbox struct{ sent []orders.PatientMessage }

func (p *postbox) Send(_ context.Context, m orders.PatientMessage) error {
	p.sent = append(p.sent, m)
	return nil
}

// Whoever registers a kit is not told of what happened to it before.
func TestRegistrationBringsNoOldMessages(t *testing.T) {
	out := &postbox{}
	c := remade(t, func(x *shop) { x.options.Messenger = out })
	o := c.order("POST", "/v3/order/testkit", c.aKit())
	path := "/v3/order/" + o.ID.String()
	c.Send(t, "POST", path+"/test", nil).Want(t, 200)
	c.get(path, 200).JSON(t, &o)
	require.Equal(t, orders.WithCustomer, o.LowLevel())
	_, err := c.config.Orders.DoLater(t.Context())
	require.NoError(t, err)
	c.order("POST", "/v3/order/testkit/register", object{"sample_id": *o.SampleID, "patient_details": aPatient(), "patient_address": anAddress()})
	c.Send(t, "POST", path+"/test", nil).Want(t, 200)
	_, err = c.config.Orders.DoLater(t.Context())
	require.NoError(t, err)
	var got []string
	for _, m := range out.sent {
		got = append(got, string(m.Moment))
	}
	require.Equal(t, []string{"delivered_to_lab", "completed"}, got)
}

// report lets the lab report results of an order.
func (c *clinic) report(o orders.Order, on orders.Trigger, id string, results ...orders.LabResult) orders.OrderResults {
	c.t.Helper()
	path := "/v3/order/" + o.ID.String()
	c.get(path, 200).JSON(c.t, &o)
	require.NoError(c.t, c.config.Orders.Receive(c.t.Context(), orders.Message{ID: id, Team: o.TeamID, Order: o.ID, SampleID: *o.SampleID, On: on,
		At: clinicNow, Results: &orders.OrderResults{Results: results}}))
	var out orders.OrderResults
	c.get(path+"/result", 200).JSON(c.t, &out)
	return out
}

// What a lab says in its own way is published in ours: bounds, flags, the marker that a
// result came from, and what should be there and is not.
func TestResultsAreMadeWhole(t *testing.T) {
	c := newClinic(t, nil)
	o := c.placed() // 1001, 1002, 1011, 1012
	c.Send(t, "POST", "/v3/order/"+o.ID.String()+"/test?final_status=received.walk_in_test.requisition_created", nil).Want(t, 200)
	partial := c.report(o, orders.PartialResult, "1",
		orders.LabResult{Name: "Glucose", Result: "1.5", Type: orders.NumericResult, ReferenceRange: ptr("< OR = 1.5"), ProviderID: ptr("N001-1")})
	require.Empty(t, partial.MissingResults)
	one := partial.Results[0]
	require.Equal(t, "1.5", one.Value.String())
	require.Equal(t, "1.5", one.MaxRangeValue.String())
	require.Nil(t, one.MinRangeValue)
	require.False(t, *one.IsAboveMaxRange)
	require.Nil(t, one.IsBelowMinRange)
	require.Equal(t, "glucose", one.Slug)
	require.Equal(t, "2345-7", *one.LOINC)
	require.Equal(t, orders.Normal, one.Interpretation)
	require.Equal(t, 1001, one.SourceMarkers[0].MarkerID)

	final := c.report(o, orders.FinalResult, "2",
		orders.LabResult{Name: "Sugar", Result: "1.5", Type: orders.NumericResult, ReferenceRange: ptr("<1.5"), LOINC: ptr("2345-7"), Interpretation: orders.Abnormal},
		orders.LabResult{Name: "Creatinine", Result: ">2000", Type: orders.RangeResult, ReferenceRange: ptr("3-1100"), ProviderID: ptr("N011-1")},
		orders.LabResult{Name: "ALT", Result: "see note", Type: orders.CommentResult, ReferenceRange: ptr("3-1100"), ProviderID: ptr("N012")},
		orders.LabResult{Name: "Nobody asked", Result: "DETECTED", Type: orders.CodedValueResult, ReferenceRange: ptr("none seen"), ProviderID: ptr("X1")})
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
	require.Equal(t, orders.MissingResult{Name: "Hemoglobin A1c", Slug: "hemoglobin-a1c", InferredFailureType: orders.UnknownFailure, LOINC: ptr("4548-4"),
		LOINCSlug: ptr("hemoglobin-a1c"), ProviderID: ptr("N002-1"), SourceMarkers: []orders.SourceMarker{{MarkerID: 1002, Name: "Hemoglobin A1c", Slug: "hemoglobin-a1c", ProviderID: ptr("N002")}}}, gone)
	c.get("/v3/order/"+o.ID.String(), 200).JSON(t, &o)
	require.True(t, *o.HasMissingResults)
	require.Equal(t, orders.Abnormal, *o.Interpretation)
}

// A state is the same in small letters.
func TestMarkerIsNotInsurableInSmallLetters(t *testing.T) {
	c := remade(t, func(x *shop) {
		x.registry.NotInsurable = []orders.NotInsurable{{Lab: "northlab", ProviderID: "N011", States: []string{"MN"}}}
	})
	c.Send(t, "PATCH", c.about("info"), anInfo(nil)).Want(t, 200)
	c.post(c.about("insurance"), anInsurance(nil), 200)
	address := anAddress()
	address["state"] = "mn"
	c.refused("POST", "/v3/order", c.request(walkInTest, object{"billing_type": "commercial_insurance", "icd_codes": []string{"E11.9"}, "patient_address": address}), 400, orders.MarkerNotInsurable)
}

// Only the central labs are compared, and looked for in an area.
func TestCentralLabs(t *testing.T) {
	c := remade(t, func(x *shop) { x.options.CentralLabs = []string{"northlab"} })
	var area struct {
		CentralLabs map[string]any `json:"central_labs"`
	}
	c.get("/v3/order/area/info?zip_code=85201", 200).JSON(t, &area)
	require.Contains(t, area.CentralLabs, "northlab")
	require.NotContains(t, area.CentralLabs, "southlab")
	require.Equal(t, []string{"query.labs.0"}, c.get("/v3/order/area/info?zip_code=85201&labs=southlab", 422).Locs(t))
	require.Equal(t, []string{"query.lab"}, c.get("/v3/order/area/info?zip_code=85201&lab=nolab", 422).Locs(t))
	require.Equal(t, []string{"body.labs.0"}, c.post("/v3/compendium/search", object{"mode": "crosswalk", "query": "iron", "labs": []string{"southlab"}}, 422).Locs(t))
	require.Equal(t, []string{"body.target_lab"}, c.post("/v3/compendium/convert", object{"lab_test_id": walkInTest, "target_lab": "southlab"}, 422).Locs(t))
}

// A code of several labs is that of the account's lab, or of the lab that has all codes.
func TestCodesOfSeveralLabs(t *testing.T) {
	c := remade(t, func(x *shop) {
		linked(x, ownAccount, orders.LabAccountActive, func(a *orders.LabAccount) { a.Lab = "southlab" })
		i := slices.IndexFunc(x.book.Markers, func(m orders.MarkerComplete) bool { return m.ID == 2001 })
		x.book.Markers[i].ProviderID = ptr("N011")
	})
	add := func(codes ...string) object { return object{"add_on": object{"provider_ids": codes}} }
	place := func(edits object) object {
		edits["collection_method"] = "walk_in_test"
		return c.request(kitTest, edits)
	}
	for _, path := range []string{"/v3/order", "/v3/order/create"} {
		c.refused("POST", path, place(object{"order_set": add("N011")}), 400, orders.MultipleLabs)
		o := c.order("POST", path, place(object{"order_set": add("N011"), "lab_account_id": ownAccount}))
		require.Equal(t, "southlab", o.LabTest.Lab.Slug)
		set := add("N011")
		set["lab_account_id"] = ownAccount
		o = c.order("POST", path, place(object{"order_set": set}))
		require.Equal(t, "southlab", o.LabTest.Lab.Slug)
		o = c.order("POST", path, place(object{"order_set": add("N011", "N012")}))
		require.Equal(t, "northlab", o.LabTest.Lab.Slug)
	}
}

// An order for somebody else is not part of the journey of the one that it replaces:
// nobody reads one person's results with another's.
func TestReplacementForAnotherPatient(t *testing.T) {
	c := newClinic(t, nil)
	parent := c.placed()
	u, err := c.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "patient-78"})
	require.NoError(t, err)
	child := c.order("POST", "/v3/order/create", c.request(kitTest, object{"parent_id": parent.ID.String(), "user_id": u.ID.String()}))
	require.NotEqual(t, parent.OrderTransaction.ID, child.OrderTransaction.ID)
	require.Equal(t, orders.OriginRecreation, child.Origin)
	c.get("/v3/order/"+parent.ID.String(), 200).JSON(t, &parent)
	require.Equal(t, orders.Cancelled, parent.LowLevel())
	require.Len(t, parent.OrderTransaction.Orders, 1)
}

// Half of what names a payor at a clearing house is no search.
func TestPayorSearchNeedsBothHalves(t *testing.T) {
	c := newClinic(t, nil)
	for _, query := range []string{"provider=house_a", "provider_payor_id=1", "insurance_name=a&provider=house_a", "insurance_name=a&provider_payor_id=1"} {
		require.Equal(t, orders.PayorSearchMissing, c.get("/v3/insurance/search/payor?"+query, 400).ErrorType(t), query)
	}
}

// Old names of statuses are understood.
func TestOldNamesOfStatuses(t *testing.T) {
	c := newClinic(t, nil)
	o := c.order("POST", "/v3/order", c.request(onSiteTest, nil))
	path := "/v3/order/" + o.ID.String()
	c.Send(t, "POST", path+"/test?final_status=collecting_sample.on_site_collection.draw_completed", nil).Want(t, 200)
	c.get(path, 200).JSON(t, &o)
	require.Equal(t, orders.Status("sample_with_lab.on_site_collection.draw_completed"), o.LastEvent.Status)
}

// Every status of every method can be simulated, but for those that need something from
// outside: what was so before, an import, a patient at their kit.
func TestEveryStatusIsSimulated(t *testing.T) {
	c := remade(t, func(x *shop) {
		x.settings.Redraws, x.options.RedrawLabs = true, []string{"northlab"}
	})
	tests := map[orders.CollectionMethod]string{orders.Testkit: kitTest, orders.WalkInTest: walkInTest, orders.AtHomePhlebotomy: atHomeTest, orders.OnSiteCollection: onSiteTest}
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
			require.Equal(t, s.Stage(), o.Status)
			results := c.Send(t, "GET", path+"/result", nil)
			switch s.LowLevel() {
			case orders.Completed, orders.Corrected, orders.RedrawAvailable, orders.PartialResults:
				var got orders.OrderResults
				results.Want(t, 200).JSON(t, &got)
				require.Equal(t, s.LowLevel() == orders.PartialResults, got.Metadata.Status == orders.ResultPartial)
			default:
				results.Want(t, 404)
			}
		})
	}
}

// A redraw is an order of its own, and the journey is over when it is.
func TestRedrawOverHTTP(t *testing.T) {
	walk := func(t *testing.T, c *clinic, delay string) {
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
		require.Equal(t, orders.ResultPartial, results.Metadata.Status)
		lost := results.MissingResults[0].Slug
		again := "/v3/order/" + second.ID.String()
		var redraw orders.Order
		c.get(again, 200).JSON(t, &redraw)
		require.Len(t, redraw.LabTest.Markers, 1, "only what was lost")
		// Missing again: there is no third try.
		c.refused("POST", again+"/test?final_status=collecting_sample.walk_in_test.redraw_available", nil, 400, orders.StatusNotReachable)
		c.Send(t, "POST", again+"/test", nil).Want(t, 200)
		c.get(journey+"/result", 200).JSON(t, &results)
		require.Equal(t, orders.ResultFinal, results.Metadata.Status)
		require.Empty(t, results.MissingResults)
		require.True(t, slices.ContainsFunc(results.Results, func(r orders.LabResult) bool { return r.Slug == lost }))
		var detail orders.TransactionDetail
		c.get(journey, 200).JSON(t, &detail)
		require.Equal(t, orders.TransactionCompleted, detail.Status)
	}
	c := remade(t, func(x *shop) { x.settings.Redraws, x.options.RedrawLabs = true, []string{"northlab"} })
	walk(t, c, "")
	for _, off := range []func(*shop){func(x *shop) { x.options.RedrawLabs = []string{"northlab"} }, func(x *shop) { x.settings.Redraws = true }} {
		c := remade(t, off)
		path := "/v3/order/" + c.placed().ID.String()
		c.refused("POST", path+"/test?final_status=collecting_sample.walk_in_test.redraw_available", nil, 400, orders.StatusNotReachable)
		var o orders.Order
		c.get(path, 200).JSON(t, &o)
		require.Equal(t, orders.Ordered, o.LowLevel(), "nothing happened")
	}
}

// A registrable kit stops with its patient, and goes on once it is registered.
func TestSimulationOfAKitWithoutAPatient(t *testing.T) {
	c := newClinic(t, nil)
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

// The rules of placing are checked in the order of the documentation: each row breaks all
// rules after it, too.
func TestOrderOfTheChecks(t *testing.T) {
	c := remade(t, func(x *shop) {
		for i := range x.book.Markers {
			if m := &x.book.Markers[i]; m.ID == 1013 {
				m.ALaCarteEnabled = false
			}
		}
		linked(x, ownAccount, orders.LabAccountActive, func(a *orders.LabAccount) {
			a.DelegatedFlow, a.AllowedBilling = orders.OrderDelegated, map[orders.BillingType][]string{orders.ClientBill: {"MN"}}
		})
		linked(x, otherAccount, orders.LabAccountSuspended)
	})
	body := c.request(kitTest, object{"user_id": absent, "order_set": object{"lab_test_ids": []string{}}, "patient_details": aMinor(nil),
		"billing_type": "patient_bill", "activate_by": "2026-03-03", "lab_account_id": otherAccount})
	add := func(markers ...int) object { return object{"marker_ids": markers} }
	set := func(test string, addOn object) object { return object{"lab_test_ids": []string{test}, "add_on": addOn} }
	address := anAddress()
	for _, step := range []struct {
		repair object
		status int
		rule   string
	}{
		{nil, 404, orders.UserNotFound},
		{object{"user_id": c.user.String()}, 400, orders.NoTestsSelected},
		{object{"order_set": set(absent, object{"marker_ids": []int{}})}, 400, orders.AddOnRequiresMethod},
		{object{"collection_method": "testkit"}, 400, orders.AddOnIDsMissing},
		{object{"order_set": set(absent, add(2001, 1013))}, 404, orders.LabTestNotFound},
		{object{"order_set": set(onSiteTest, add(2001, 1013))}, 400, orders.MultipleLabs},
		{object{"order_set": object{"add_on": add(2001, 2002)}}, 400, orders.MethodNotSupported},
		{object{"order_set": set(onSiteTest, add(1009, 1013))}, 400, orders.MarkerNotALaCarte},
		{object{"order_set": set(onSiteTest, add(1009))}, 400, orders.LabAccountNotActive},
		{object{"lab_account_id": ownAccount}, 400, orders.BillingTypeNotAllowed},
		{object{"billing_type": "client_bill", "patient_address": object{"first_line": "1", "city": "M", "state": "AZ", "zip": "85201", "country": "US"}}, 400, orders.BillingStateNotAllowed},
		{object{"patient_address": address}, 400, orders.PhysicianRequired},
		{object{"physician": object{"first_name": "Cy", "last_name": "Vale", "npi": "1"}}, 400, orders.MinorNotAllowed},
		{object{"patient_details": aPatient()}, 400, orders.AOEMissing},
		{object{"aoe_answers": []object{{"marker_id": 1009, "question_id": 5000000001, "answer": "perhaps"}}}, 400, orders.AOEInvalid},
	} {
		for k, v := range step.repair {
			body[k] = v
		}
		for _, path := range []string{"/v3/order", "/v3/order/create"} {
			require.Equal(t, step.rule, c.Send(t, "POST", path, body).Want(t, step.status).ErrorType(t), step.rule)
		}
	}
	var asked struct{ Markers []orders.MarkerComplete }
	c.post("/v3/lab_tests/list_order_set_markers", set(onSiteTest, add(1009)), 200).JSON(t, &asked)
	i := slices.IndexFunc(asked.Markers, func(m orders.MarkerComplete) bool { return m.ID == 1009 })
	q := asked.Markers[i].AOE.Questions[0]
	body["aoe_answers"] = []object{{"marker_id": 1009, "question_id": q.ID, "answer": q.Answers[0].Code}}
	c.refused("POST", "/v3/order", body, 400, orders.ActivateByInPast)
	body["activate_by"] = "2026-03-04"
	c.order("POST", "/v3/order", body)
}
