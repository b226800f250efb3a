package httpapi_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// An idempotency key is kept for a day; after that the same key makes a new request.
func TestIdempotencyKey_expiresAfterADay(t *testing.T) {
	now := fixtureNow
	c := remade(t, func(x *shop) { x.options.Now = func() time.Time { return now } })
	place := func(edits object, status int) string {
		return string(c.With("x-idempotency-key", "k").Send(t, "POST", "/v3/order", c.request(kitTest, edits)).Want(t, status).Body)
	}
	first := place(nil, 200)
	now = now.Add(24*time.Hour - time.Second)
	require.Equal(t, first, place(nil, 200))
	place(object{"passthrough": "another"}, 409)
	now = now.Add(2 * time.Second)
	require.NotEqual(t, first, place(nil, 200))
	var page struct{ Total int }
	c.get("/v3/orders", 200).JSON(t, &page)
	require.Equal(t, 2, page.Total)
}

// What was deprecated still works.
func TestOrder_deprecatedFieldsStillWork(t *testing.T) {
	c := newFixture(t, nil)
	o := c.order("POST", "/v3/order", c.request(kitTest, object{"order_set": nil, "lab_test_id": kitTest, "health_insurance": object{
		"payor_code": "ASPEN", "insurance_id": "M-1", "responsible_relationship": "Self", "diagnosis_codes": []string{"E11.9"},
		"front_image": object{"content": "aGk=", "content_type": "image/png"}}}))
	require.Equal(t, kitTest, o.LabTest.ID.String())
	require.ElementsMatch(t, []string{"body.health_insurance.front_image.content_type", "body.health_insurance.diagnosis_codes.0"},
		c.post("/v3/order", c.request(kitTest, object{"health_insurance": object{"diagnosis_codes": []string{"x"},
			"front_image": object{"content": "aGk=", "content_type": "image/gif"}}}), 422).Locs(t))
}

// For each kind of AOE question: answers that are accepted, and answers that are refused.
func TestAOEAnswers_areCheckedByTheKindOfQuestion(t *testing.T) {
	c := remade(t, func(x *shop) {
		i := slices.IndexFunc(x.book.Markers, func(m catalogue.MarkerComplete) bool { return m.ID == 1011 })
		choices := []catalogue.Answer{{ID: 5000000101, Code: "A", Value: "One"}, {ID: 5000000102, Code: "B", Value: "Two"}}
		x.book.Markers[i].AOE = &catalogue.AOE{Questions: []catalogue.Question{
			{ID: 1, Required: true, Code: "C", Value: "?", Type: catalogue.ChoiceQuestion, Answers: choices},
			{ID: 2, Required: true, Code: "M", Value: "?", Type: catalogue.MultiChoiceQuestion, Answers: choices},
			{ID: 3, Required: true, Code: "N", Value: "?", Type: catalogue.NumericQuestion, Answers: []catalogue.Answer{}},
			{ID: 4, Code: "T", Value: "?", Type: catalogue.TextQuestion, Answers: []catalogue.Answer{}, Constraint: ptr("five digits")},
			{ID: 5, Required: true, Code: "FSTING", Value: "?", Type: catalogue.ChoiceQuestion, Answers: []catalogue.Answer{{ID: 6, Code: "Y", Value: "Yes"}, {ID: 7, Code: "N", Value: "No"}}},
		}}
	})
	good := map[int][]string{1: {"A"}, 2: {"A", "B"}, 3: {"7.5"}, 4: {"anything"}}
	send := func(question int, answers ...string) *orders.Order {
		list := []object{}
		for q, texts := range good {
			if q == question {
				texts = answers
			}
			for _, text := range texts {
				list = append(list, object{"marker_id": 1011, "question_id": q, "answer": text})
			}
		}
		if _, known := good[question]; !known && question != 0 {
			list = append(list, object{"marker_id": 1011, "question_id": question, "answer": answers[0]})
		}
		reply := c.Send(t, "POST", "/v3/order", c.request(kitTest, object{"order_set": object{"add_on": object{"marker_ids": []int{1011}}},
			"collection_method": "walk_in_test", "aoe_answers": list}))
		if reply.Status == 200 {
			var out orderAnswer
			reply.JSON(t, &out)
			return &out.Order
		}
		want := catalogue.AOEInvalid
		if len(answers) == 0 {
			want = catalogue.AOEMissing
		}
		require.Equal(t, want, reply.Want(t, 400).ErrorType(t))
		return nil
	}
	for _, row := range []struct {
		question int
		answers  []string
		fine     bool
	}{
		{0, nil, true}, {1, []string{"B"}, true}, {1, []string{"A", "B"}, false}, {1, []string{"a"}, false}, {1, []string{"One"}, false}, {1, nil, false},
		{2, []string{"B"}, true}, {2, []string{"A", "C"}, false}, {2, nil, false}, {3, []string{"-3"}, true}, {3, []string{"much"}, false},
		{3, []string{"1", "2"}, false}, {3, nil, false}, {4, []string{""}, true}, {4, nil, true}, {5, []string{"Y"}, true}, {5, []string{"maybe"}, false},
		{9, []string{"x"}, false},
	} {
		require.Equal(t, row.fine, send(row.question, row.answers...) != nil, "%v", row)
	}
}

// The user who registers a kit is its patient from then on.
func TestKitRegistration_makesTheUserThePatient(t *testing.T) {
	c := newFixture(t, nil)
	o := c.order("POST", "/v3/order/testkit", c.aKit())
	path := "/v3/order/" + o.ID.String()
	c.post(path+"/test", nil, 200)
	c.get(path, 200).JSON(t, &o)
	u, err := c.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "patient-78"})
	require.NoError(t, err)
	body := object{"user_id": c.foreign.String(), "sample_id": *o.SampleID, "patient_details": aPatient(), "patient_address": anAddress(),
		"physician": object{"first_name": "Cy", "last_name": "Vale", "npi": "1234567893", "licensed_states": []string{"MN"}}}
	c.refused("POST", "/v3/order/testkit/register", body, 404, people.UserNotFound)
	body["user_id"] = u.ID.String()
	got := c.order("POST", "/v3/order/testkit/register", body)
	require.Equal(t, u.ID, got.UserID)
	require.Equal(t, o.OrderTransaction.ID, got.OrderTransaction.ID)
	require.Equal(t, "Vale", got.Physician.LastName)
	require.Equal(t, o.ShippingDetails, got.ShippingDetails)
	var page struct{ Total int }
	c.get("/v3/orders?user_id="+c.user.String(), 200).JSON(t, &page)
	require.Zero(t, page.Total)
}

// The rules about patient, payer and physician hold when a kit is registered.
func TestKitRegistration_appliesPatientPayerAndPhysicianRules(t *testing.T) {
	register := func(c *fixture, edits object) object {
		o := c.order("POST", "/v3/order/testkit", c.aKit())
		c.post("/v3/order/"+o.ID.String()+"/test", nil, 200)
		c.get("/v3/order/"+o.ID.String(), 200).JSON(c.t, &o)
		body := object{"sample_id": *o.SampleID, "patient_details": aPatient(), "patient_address": anAddress()}
		for k, v := range edits {
			body[k] = v
		}
		return body
	}
	away := anAddress()
	away["state"], away["zip"] = "AZ", "85201"
	for name, row := range map[string]struct {
		shop  func(*shop)
		edits object
		rule  string
	}{
		"a state that is not served": {func(x *shop) {
			linked(x, ownAccount, catalogue.LabAccountActive, func(a *catalogue.LabAccount) {
				a.AllowedBilling = map[catalogue.BillingType][]string{catalogue.ClientBill: {"MN"}}
			})
		}, object{"patient_address": away}, catalogue.BillingStateNotAllowed},
		"nobody to order": {func(x *shop) {
			linked(x, ownAccount, catalogue.LabAccountActive, func(a *catalogue.LabAccount) { a.DelegatedFlow = catalogue.FullyDelegated })
		}, nil, orders.PhysicianRequired},
		"a consent": {func(x *shop) { x.settings.RequiredConsents = []people.ConsentType{people.HIPAAAuthorization} },
			object{"consents": []object{{"consentType": "terms-of-use"}}}, orders.ConsentRequired},
		"a minor":                 {func(*shop) {}, object{"patient_details": aMinor(nil)}, orders.MinorNotAllowed},
		"a minor without a proxy": {func(x *shop) { x.settings.Minors = true }, object{"patient_details": aMinor(nil)}, orders.MedicalProxyRequired},
	} {
		t.Run(name, func(t *testing.T) {
			c := remade(t, row.shop)
			c.t = t
			c.refused("POST", "/v3/order/testkit/register", register(c, row.edits), 400, row.rule)
		})
	}
	c := remade(t, func(x *shop) { x.settings.RequiredConsents = []people.ConsentType{people.HIPAAAuthorization} })
	c.order("POST", "/v3/order/testkit/register", register(c, object{"consents": []object{{"consentType": "hipaa-authorization", "version": "2", "timeOfConsent": "2026-03-01T00:00:00Z"}}}))
}

// If the lab does not accept an order, its appointment is cancelled after eight hours. The
// appointment of a scheduled order is cancelled two hours before the visit.
func TestAppointment_isCancelledIfTheLabDoesNotAcceptTheOrder(t *testing.T) {
	now := fixtureNow
	c := remade(t, func(x *shop) { x.options.Now = func() time.Time { return now } })
	soon := c.keys("phlebotomy")[0] // in a day
	o := c.order("POST", "/v3/order", c.request(atHomeTest, nil))
	u, err := c.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "patient-78"})
	require.NoError(t, err)
	scheduled := c.order("POST", "/v3/order", c.request(atHomeTest, object{"activate_by": "2026-03-20", "user_id": u.ID.String()}))
	visit := func(o orders.Order) string { return "/v3/order/" + o.ID.String() + "/phlebotomy/appointment" }
	c.post(visit(o)+"/book", object{"booking_key": soon}, 200)
	c.post(visit(scheduled)+"/book", object{"booking_key": c.keys("phlebotomy")[0]}, 200)
	status := func(o orders.Order) appointment.Status {
		_, err := c.config.Visits.ProcessDue(t.Context())
		require.NoError(t, err)
		var a orders.Appointment
		c.get(visit(o), 200).JSON(t, &a)
		return a.Status
	}
	now = fixtureNow.Add(8 * time.Hour)
	require.Equal(t, appointment.VisitReserved, status(o), "not more than eight hours")
	now = now.Add(time.Second)
	require.Equal(t, appointment.VisitCancelled, status(o))
	require.Equal(t, []orders.LowLevel{orders.Ordered}, c.lows(o), "its order stays where it is")
	require.Equal(t, appointment.VisitReserved, status(scheduled), "it was to wait")
	now = fixtureNow.Add(46 * time.Hour) // the visit is two hours away
	require.Equal(t, appointment.VisitReserved, status(scheduled))
	now = now.Add(time.Second)
	require.Equal(t, appointment.VisitCancelled, status(scheduled))
}

// Candidates have the reasons for the match, and say which one the specimen points to.
func TestUnmatchedResult_candidatesHaveTheReasonsOfTheMatch(t *testing.T) {
	c := newFixture(t, nil)
	one, two := c.accepted(walkInTest, nil), c.accepted(walkInTest, nil)
	c.get("/v3/order/"+one.ID.String(), 200).JSON(t, &one)
	require.NoError(t, c.config.Exchange.Receive(t.Context(), exchange.Message{ID: "1", Team: one.TeamID, Order: one.ID, SampleID: "another", On: orders.FinalResult,
		At: fixtureNow, Lab: "northlab", Patient: &orders.ReportedPatient{FirstName: "Ana", LastName: "Ray", DOB: one.PatientDetails.DOB},
		Results: &labresult.Report{Results: []labresult.Result{{Name: "Glucose", Result: "5", ProviderID: ptr("N001")}}}}))
	item := c.unmatchedPage("").Data[0]
	require.Equal(t, exchange.MatchSampleMismatch, item.DecisionCode)
	require.Len(t, item.CandidateGroups, 1)
	first, second := item.CandidateGroups[0].Candidates[0], item.CandidateGroups[0].Candidates[1]
	require.Equal(t, one.ID, *first.OrderID)
	require.Equal(t, exchange.ProvenanceOrder, first.CandidateType)
	require.Equal(t, []exchange.CandidateReason{"demographic_match", "same_lab", "marker_overlap_partial"}, first.Reasons)
	require.Equal(t, two.ID, *second.OrderID)
	require.Equal(t, exchange.OrderOption, second.CandidateType)
	require.Equal(t, []exchange.CandidateReason{"demographic_match", "same_user", "same_lab", "marker_overlap_partial"}, second.Reasons)
}
