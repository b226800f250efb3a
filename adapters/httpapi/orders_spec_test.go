package httpapi_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/people"
)

func (c *fixture) anImport(test, sample string) object {
	address := anAddress()
	address["receiver_name"] = "Ana"
	return object{"user_id": c.user.String(), "billing_type": "client_bill", "collection_method": "walk_in_test",
		"order_set": object{"lab_test_ids": []string{test}}, "patient_details": aPatient(), "patient_address": address, "sample_id": sample}
}

func (c *fixture) aKit() object {
	return object{"user_id": c.user.String(), "lab_test_id": kitTest, "shipping_details": object{
		"receiver_name": "Desk", "first_line": "1 Elm", "city": "Duluth", "state": "MN", "zip": "55802", "country": "US", "phone_number": "+15550100"}}
}

// What may be left out may be null as well, lists included.
func TestOptionalFields_mayBeNull(t *testing.T) {
	c := newFixture(t, nil)
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

// An import names its receiver and needs no answers to AOE questions: they were answered
// when the order was placed.
func TestOrderImport_needsAReceiverAndNoAOEAnswers(t *testing.T) {
	c := newFixture(t, nil)
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

func TestAOEAnswers_emptyAnswerToARequiredQuestionIsRefused(t *testing.T) {
	c := remade(t, func(x *shop) {
		i := slices.IndexFunc(x.book.Markers, func(m catalogue.MarkerComplete) bool { return m.ID == 1011 })
		x.book.Markers[i].AOE = &catalogue.AOE{Questions: []catalogue.Question{{ID: 7, Required: true, Code: "WHY", Value: "Why?", Type: catalogue.TextQuestion, Answers: []catalogue.Answer{}}}}
	})
	answer := func(text string) object {
		return c.request(kitTest, object{"order_set": object{"add_on": object{"marker_ids": []int{1011}}}, "collection_method": "walk_in_test",
			"aoe_answers": []object{{"marker_id": 1011, "question_id": 7, "answer": text}}})
	}
	c.refused("POST", "/v3/order", answer(""), 400, catalogue.AOEMissing)
	c.refused("POST", "/v3/order", answer("  "), 400, catalogue.AOEMissing)
	c.order("POST", "/v3/order", answer("because"))
}

// A registration of a kit with a physician's signature is refused.
func TestKitRegistration_refusesAPhysiciansSignature(t *testing.T) {
	c := newFixture(t, nil)
	body := object{"sample_id": "S", "patient_details": aPatient(), "patient_address": anAddress(), "physician": object{
		"first_name": "Cy", "last_name": "Vale", "npi": "1234567893", "signature_image": object{"content": "aGk=", "content_type": "image/png"}}}
	require.Equal(t, []string{"body.physician.signature_image"}, c.post("/v3/order/testkit/register", body, 422).Locs(t))
}

func TestDrawCompleted_needsOnSiteCollectionEnabled(t *testing.T) {
	c := remade(t, func(x *shop) { x.settings.OnSiteCollection = false })
	c.refused("PATCH", "/v3/order/"+c.placed().ID.String()+"/draw_completed", nil, 403, catalogue.FeatureNotEnabled)
}

// From the day on which the sample was drawn, the order has the dates on which results are
// expected.
func TestOrder_hasExpectedResultDatesOnceTheSampleIsDrawn(t *testing.T) {
	c := newFixture(t, nil)
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

// The patient who registers a kit gets no messages about events before the registration.
func TestKitRegistration_sendsNoMessagesAboutEarlierEvents(t *testing.T) {
	out := &postbox{}
	c := remade(t, func(x *shop) { x.options.Messenger = out })
	o := c.order("POST", "/v3/order/testkit", c.aKit())
	path := "/v3/order/" + o.ID.String()
	c.Send(t, "POST", path+"/test", nil).Want(t, 200)
	c.get(path, 200).JSON(t, &o)
	require.Equal(t, orders.WithCustomer, o.LowLevel())
	_, err := c.config.Orders.PatientMessages().SendDue(t.Context())
	require.NoError(t, err)
	c.order("POST", "/v3/order/testkit/register", object{"sample_id": *o.SampleID, "patient_details": aPatient(), "patient_address": anAddress()})
	c.Send(t, "POST", path+"/test", nil).Want(t, 200)
	_, err = c.config.Orders.PatientMessages().SendDue(t.Context())
	require.NoError(t, err)
	var got []string
	for _, m := range out.sent {
		got = append(got, string(m.Moment))
	}
	require.Equal(t, []string{"delivered_to_lab", "completed"}, got)
}

// States in the configuration may be written in lower case.
func TestNotInsurableStates_mayBeConfiguredInLowerCase(t *testing.T) {
	c := remade(t, func(x *shop) {
		x.registry.NotInsurable = []people.NotInsurable{{Lab: "northlab", ProviderID: "N011", States: []string{"mn"}}}
	})
	c.Send(t, "PATCH", c.about("info"), anInfo(nil)).Want(t, 200)
	c.post(c.about("insurance"), anInsurance(nil), 200)
	c.refused("POST", "/v3/order", c.request(walkInTest, object{"billing_type": "commercial_insurance", "icd_codes": []string{"E11.9"}}), 400, orders.MarkerNotInsurable)
}

// A state of the US is one of its codes, in every address but that of an import; a state
// elsewhere is a text.
func TestAddress_stateMustBeAUSCodeInTheUS(t *testing.T) {
	c := newFixture(t, nil)
	in := func(address object, state string) object {
		out := object{}
		for k, v := range address {
			out[k] = v
		}
		out["state"] = state
		return out
	}
	proxy := func(state string) object {
		p := aPatient()
		p["medical_proxy"] = object{"first_name": "Bo", "last_name": "Ray", "phone_number": "+15550101", "address": in(object{
			"first_line": "1 Elm Street", "city": "Duluth", "zip": "55802", "country": "US"}, state)}
		return p
	}
	kit := c.aKit()
	o := c.accepted(atHomeTest, nil)
	for name, row := range map[string]struct {
		method, path string
		body         func(state string) object
		loc          string
	}{
		"patient": {"POST", "/v3/order", func(state string) object {
			return c.request(kitTest, object{"patient_address": in(anAddress(), state)})
		}, "body.patient_address.state"},
		"patient of a replacement": {"POST", "/v3/order/create", func(state string) object {
			return c.request(kitTest, object{"patient_address": in(anAddress(), state)})
		}, "body.patient_address.state"},
		"proxy": {"POST", "/v3/order", func(state string) object {
			return c.request(kitTest, object{"patient_details": proxy(state)})
		}, "body.patient_details.medical_proxy.address.state"},
		"kit": {"POST", "/v3/order/testkit", func(state string) object {
			kit["shipping_details"] = in(kit["shipping_details"].(object), state)
			return kit
		}, "body.shipping_details.state"},
		"registration": {"POST", "/v3/order/testkit/register", func(state string) object {
			return object{"sample_id": "nobody's", "patient_details": aPatient(), "patient_address": in(anAddress(), state)}
		}, "body.patient_address.state"},
		"slots": {"POST", "/v3/order/phlebotomy/appointment/availability", func(state string) object {
			return homeAddress(object{"state": state})
		}, "body.state"},
		"visit": {"POST", "/v3/order/" + o.ID.String() + "/phlebotomy/appointment/request", func(state string) object {
			return object{"provider": "phleb", "address": homeAddress(object{"state": state})}
		}, "body.address.state"},
		"user": {"PATCH", c.about("info"), func(state string) object {
			return anInfo(object{"address": in(object{"first_line": "1 Elm Street", "city": "Duluth", "zip": "55802"}, state)})
		}, "body.address.state"},
		"payor": {"POST", "/v3/payor", func(state string) object {
			return object{"name": "Own", "address": in(anAddress(), state)}
		}, "body.address.state"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, bad := range []string{"mn", "Minnesota", "M1", "ZZ", "US", " MN"} {
				reply := c.Send(t, row.method, row.path, row.body(bad)).Want(t, 422)
				require.Equal(t, []string{row.loc}, reply.Locs(t), bad)
				require.Contains(t, string(reply.Body), `"type":"state_form"`)
			}
			for _, good := range []string{"PR", "DC", "AE", "MN"} {
				require.NotContains(t, string(c.Send(t, row.method, row.path, row.body(good)).Body), `"type":"state_form"`, good)
			}
		})
	}
	both := in(anAddress(), "mn")
	both["zip"] = "5580"
	require.ElementsMatch(t, []string{"body.patient_address.state", "body.patient_address.zip"},
		c.post("/v3/order", c.request(kitTest, object{"patient_address": both}), 422).Locs(t))
	abroad := kit["shipping_details"].(object)
	abroad["state"], abroad["country"] = "Ontario", "CA"
	c.order("POST", "/v3/order/testkit", kit)
	imported := c.anImport(walkInTest, "REQ-1") // from wherever it was kept, in whatever form
	imported["patient_address"] = in(imported["patient_address"].(object), "Minnesota")
	c.refused("POST", "/v3/order/import", imported, 400, catalogue.BillingStateNotAllowed) // as any state that the account does not list
	imported["patient_address"] = in(imported["patient_address"].(object), "mn")
	require.Equal(t, "mn", c.order("POST", "/v3/order/import", imported).PatientAddress.State)
	imported["patient_address"] = in(imported["patient_address"].(object), "")
	require.Equal(t, []string{"body.patient_address.state"}, c.post("/v3/order/import", imported, 422).Locs(t))
}

// Only the central labs are compared, and looked for in an area.
func TestCentralLabs_onlyTheyAreComparedAndSearchedByArea(t *testing.T) {
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
func TestProviderIDs_sharedByLabsResolveToTheLabOfTheAccount(t *testing.T) {
	c := remade(t, func(x *shop) {
		linked(x, ownAccount, catalogue.LabAccountActive, func(a *catalogue.LabAccount) { a.Lab = "southlab" })
		i := slices.IndexFunc(x.book.Markers, func(m catalogue.MarkerComplete) bool { return m.ID == 2001 })
		x.book.Markers[i].ProviderID = ptr("N011")
	})
	add := func(codes ...string) object { return object{"add_on": object{"provider_ids": codes}} }
	place := func(edits object) object {
		edits["collection_method"] = "walk_in_test"
		return c.request(kitTest, edits)
	}
	for _, path := range []string{"/v3/order", "/v3/order/create"} {
		c.refused("POST", path, place(object{"order_set": add("N011")}), 400, catalogue.MultipleLabs)
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

// A replacement order for another patient is not in the same transaction as the order that it
// replaces, so that a reader of one never sees the results of the other.
func TestReplacement_forAnotherPatientIsInAnotherTransaction(t *testing.T) {
	c := newFixture(t, nil)
	parent := c.placed()
	u, err := c.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "patient-78"})
	require.NoError(t, err)
	child := c.order("POST", "/v3/order/create", c.request(kitTest, object{"parent_id": parent.ID.String(), "user_id": u.ID.String()}))
	require.NotEqual(t, parent.OrderTransaction.ID, child.OrderTransaction.ID)
	require.Equal(t, orders.OriginRecreation, child.Origin)
	c.get("/v3/order/"+parent.ID.String(), 200).JSON(t, &parent)
	require.Equal(t, orders.Cancelled, parent.LowLevel())
	require.Len(t, parent.OrderTransaction.Orders, 1)
	c.refused("POST", "/v3/order/create", c.request(kitTest, object{"parent_id": parent.ID.String()}), 400, orders.AlreadyRecreated)
	again := c.order("POST", "/v3/order/create", c.request(kitTest, object{"parent_id": child.ID.String(), "user_id": u.ID.String()}))
	require.Equal(t, child.OrderTransaction.ID, again.OrderTransaction.ID, "of the same patient")
}

// A search for a payor by the id of a clearing house needs both the house and the id.
func TestPayorSearch_needsClearingHouseAndPayorID(t *testing.T) {
	c := newFixture(t, nil)
	for _, query := range []string{"provider=house_a", "provider_payor_id=1", "insurance_name=a&provider=house_a", "insurance_name=a&provider_payor_id=1"} {
		require.Equal(t, people.PayorSearchMissing, c.get("/v3/insurance/search/payor?"+query, 400).ErrorType(t), query)
	}
}

// Old names of statuses are understood.
func TestSimulation_acceptsOldStatusNames(t *testing.T) {
	c := newFixture(t, nil)
	o := c.order("POST", "/v3/order", c.request(onSiteTest, nil))
	path := "/v3/order/" + o.ID.String()
	c.Send(t, "POST", path+"/test?final_status=collecting_sample.on_site_collection.draw_completed", nil).Want(t, 200)
	c.get(path, 200).JSON(t, &o)
	require.Equal(t, orders.Status("sample_with_lab.on_site_collection.draw_completed"), o.LastEvent.Status)
}

// The rules of placing are checked in the order of the documentation: each row breaks all
// rules after it, too.
func TestPlacing_checksRulesInTheDocumentedOrder(t *testing.T) {
	c := remade(t, func(x *shop) {
		for i := range x.book.Markers {
			if m := &x.book.Markers[i]; m.ID == 1013 {
				m.ALaCarteEnabled = false
			}
		}
		linked(x, ownAccount, catalogue.LabAccountActive, func(a *catalogue.LabAccount) {
			a.DelegatedFlow, a.AllowedBilling = catalogue.OrderDelegated, map[catalogue.BillingType][]string{catalogue.ClientBill: {"MN"}}
		})
		linked(x, otherAccount, catalogue.LabAccountSuspended)
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
		{nil, 404, people.UserNotFound},
		{object{"user_id": c.user.String()}, 400, catalogue.NoTestsSelected},
		{object{"order_set": set(absent, object{"marker_ids": []int{}})}, 400, catalogue.AddOnRequiresMethod},
		{object{"collection_method": "testkit"}, 400, catalogue.AddOnIDsMissing},
		{object{"order_set": set(absent, add(2001, 1013))}, 404, catalogue.LabTestNotFound},
		{object{"order_set": set(onSiteTest, add(2001, 1013))}, 400, catalogue.MultipleLabs},
		{object{"order_set": object{"add_on": add(2001, 2002)}}, 400, catalogue.MethodNotSupported},
		{object{"order_set": set(onSiteTest, add(1009, 1013))}, 400, catalogue.MarkerNotALaCarte},
		{object{"order_set": set(onSiteTest, add(1009))}, 400, catalogue.LabAccountNotActive},
		{object{"lab_account_id": ownAccount}, 400, catalogue.BillingTypeNotAllowed},
		{object{"billing_type": "client_bill", "patient_address": object{"first_line": "1", "city": "M", "state": "AZ", "zip": "85201", "country": "US"}}, 400, catalogue.BillingStateNotAllowed},
		{object{"patient_address": address}, 400, orders.PhysicianRequired},
		{object{"physician": object{"first_name": "Cy", "last_name": "Vale", "npi": "1234567893"}}, 400, orders.MinorNotAllowed},
		{object{"patient_details": aPatient()}, 400, catalogue.AOEMissing},
		{object{"aoe_answers": []object{{"marker_id": 1009, "question_id": 5000000001, "answer": "perhaps"}}}, 400, catalogue.AOEInvalid},
	} {
		for k, v := range step.repair {
			body[k] = v
		}
		for _, path := range []string{"/v3/order", "/v3/order/create"} {
			require.Equal(t, step.rule, c.Send(t, "POST", path, body).Want(t, step.status).ErrorType(t), step.rule)
		}
	}
	var asked struct{ Markers []catalogue.MarkerComplete }
	c.post("/v3/lab_tests/list_order_set_markers", set(onSiteTest, add(1009)), 200).JSON(t, &asked)
	i := slices.IndexFunc(asked.Markers, func(m catalogue.MarkerComplete) bool { return m.ID == 1009 })
	q := asked.Markers[i].AOE.Questions[0]
	body["aoe_answers"] = []object{{"marker_id": 1009, "question_id": q.ID, "answer": q.Answers[0].Code}}
	c.refused("POST", "/v3/order", body, 400, orders.ActivateByInPast)
	body["activate_by"] = "2026-03-04"
	c.order("POST", "/v3/order", body)
}

// watchfulLab keeps what it is told of orders.
type watchfulLab struct {
	*busyLab
	got []exchange.Submission
}

func (l *watchfulLab) Submit(_ context.Context, s exchange.Submission) (exchange.Accepted, error) {
	l.got = append(l.got, s)
	return exchange.Accepted{SampleID: "S-" + s.Order.ID.String()}, nil
}

// The lab reads the order's comment, then the account's; labs that take none get none, and
// the order keeps its own as it was written.
func TestClinicalNotes_precedeTheDefaultNotesOfTheLabAccount(t *testing.T) {
	lab := &watchfulLab{busyLab: newBusyLab()}
	c := remade(t, func(x *shop) {
		x.lab, x.options.CentralLabs = lab, []string{"northlab"}
		for _, slug := range []string{"northlab", "southlab"} {
			linked(x, map[string]string{"northlab": ownAccount, "southlab": otherAccount}[slug], catalogue.LabAccountActive, func(a *catalogue.LabAccount) {
				a.Lab, a.DefaultClinicalNotes = slug, ptr("call us\nany time")
			})
		}
	})
	most := strings.Repeat("é", 1000)
	south := object{"order_set": object{"add_on": object{"marker_ids": []int{2001}}}, "collection_method": "walk_in_test"}
	for _, row := range []struct {
		edits object
		note  any
		want  string
	}{
		{object{}, most, most + "\ncall us\nany time"},
		{object{}, nil, "call us\nany time"},
		{object{}, "", "call us\nany time"},
		{south, "mine", ""},
	} {
		lab.got = nil
		row.edits["clinical_notes"] = row.note
		if row.note == nil {
			delete(row.edits, "clinical_notes")
		}
		o := c.order("POST", "/v3/order", c.request(kitTest, row.edits))
		_, err := c.config.Exchange.SubmitDue(t.Context())
		require.NoError(t, err)
		require.Len(t, lab.got, 1)
		require.Equal(t, row.want, lab.got[0].Comment)
		if row.note == nil {
			require.Nil(t, o.ClinicalNotes)
		} else {
			require.Equal(t, row.note, *o.ClinicalNotes)
		}
	}
	require.Equal(t, []string{"body.clinical_notes"}, c.post("/v3/order", c.request(kitTest, object{"clinical_notes": most + "x"}), 422).Locs(t))
}

// Every address may have access notes.
func TestAccessNotes_areAcceptedInEveryAddress(t *testing.T) {
	c := newFixture(t, nil)
	note, long := strings.Repeat("é", 1000), strings.Repeat("x", 1001)
	patient := func(note string) object {
		p, address := aPatient(), anAddress()
		address["access_notes"] = note
		p["medical_proxy"] = object{"first_name": "Bo", "last_name": "Ray", "phone_number": "+15550102", "address": address}
		return p
	}
	address := anAddress()
	address["access_notes"] = note
	o := c.order("POST", "/v3/order", c.request(atHomeTest, object{"patient_details": patient(note), "patient_address": address}))
	require.Equal(t, note, *o.PatientDetails.MedicalProxy.Address.AccessNotes)
	require.Equal(t, note, *o.PatientAddress.AccessNotes)
	address["access_notes"] = long
	require.ElementsMatch(t, []string{"body.patient_details.medical_proxy.address.access_notes", "body.patient_address.access_notes"},
		c.post("/v3/order", c.request(atHomeTest, object{"patient_details": patient(long), "patient_address": address}), 422).Locs(t))
	guarantor := object{"first_name": "Bo", "last_name": "Ray", "phone_number": "+14155550137", "address": address}
	require.Equal(t, []string{"body.guarantor.address.access_notes"}, c.post(c.about("insurance"), anInsurance(object{"guarantor": guarantor}), 422).Locs(t))
	home := homeAddress(object{"access_notes": long})
	require.Equal(t, []string{"body.access_notes"}, c.post("/v3/order/phlebotomy/appointment/availability", home, 422).Locs(t))
	require.Equal(t, []string{"body.address.access_notes"}, c.Send(t, "PATCH", c.about("info"), anInfo(object{"address": address})).Want(t, 422).Locs(t))
}

// A page beyond the end of a list is empty.
func TestPage_beyondTheEndIsEmpty(t *testing.T) {
	c := newFixture(t, nil)
	c.placed()
	var page struct {
		Orders      []orders.Order
		Markers     []catalogue.Marker
		Total, Page int
	}
	c.get("/v3/orders?page=2147483647&size=100", 200).JSON(t, &page)
	require.Empty(t, page.Orders)
	require.Equal(t, 1, page.Total)
	require.Equal(t, 2147483647, page.Page)
	c.get("/v3/lab_tests/markers?page=2147483647&size=100", 200).JSON(t, &page)
	require.Empty(t, page.Markers)
	require.Equal(t, 20, page.Total)
	c.get("/v3/orders?shipping_recipient_name=%20", 200)
}

// Who a kit is sent to is found by the name on the parcel; orders without a patient's name
// come last, whichever way the names are sorted.
func TestOrders_areFoundByRecipientAndSortedByPatientName(t *testing.T) {
	now := fixtureNow
	c := remade(t, func(x *shop) {
		x.options.Now = func() time.Time { now = now.Add(time.Second); return now }
	})
	kit := c.order("POST", "/v3/order/testkit", c.aKit())
	address := anAddress()
	address["receiver_name"] = "Uncle Bo"
	named := c.order("POST", "/v3/order", c.request(kitTest, object{"patient_address": address}))
	patient := aPatient()
	patient["first_name"], patient["last_name"] = "Zoe", "ray"
	other := c.order("POST", "/v3/order", c.request(kitTest, object{"patient_details": patient}))
	for query, want := range map[string][]orders.OrderID{
		"shipping_recipient_name=DESK":                          {kit.ID},
		"shipping_recipient_name=uncle":                         {named.ID},
		"search_input=%20dEsk%20":                               {kit.ID},
		"search_input=":                                         {other.ID, named.ID, kit.ID},
		"order_direction=asc":                                   {kit.ID, named.ID, other.ID},
		"order_key=created_at":                                  {other.ID, named.ID, kit.ID},
		"order_key=patient_name":                                {named.ID, other.ID, kit.ID},
		"order_key=patient_name&order_direction=desc":           {other.ID, named.ID, kit.ID},
		"order_key=last_status":                                 {kit.ID, named.ID, other.ID},
		"search_input=" + strings.ToUpper(kit.ID.String()):      {kit.ID},
		"search_input=" + kit.ID.String()[:35]:                  {},
		"search_input=1988-03-07":                               {other.ID, named.ID},
		"search_input=03-07":                                    {},
		"patient_name=ana+ray":                                  {named.ID},
		"order_type=walk_in_test&order_type=at_home_phlebotomy": {},
		"order_activation_types=current&order_activation_types=scheduled&order_direction=asc": {kit.ID, named.ID, other.ID},
	} {
		var page struct{ Orders []orders.Order }
		c.get("/v3/orders?"+query, 200).JSON(t, &page)
		got := []orders.OrderID{}
		for _, o := range page.Orders {
			got = append(got, o.ID)
		}
		if strings.HasPrefix(query, "order_") {
			require.Equal(t, want, got, query)
		} else {
			require.ElementsMatch(t, want, got, query)
		}
	}
}

// A test that the service built for an order can be read and listed, and ordered again;
// the same selection is the same test.
func TestGeneratedLabTest_isListedAndReusedForTheSameSelection(t *testing.T) {
	c := newFixture(t, nil)
	pick := object{"order_set": object{"lab_test_ids": []string{kitTest}, "add_on": object{"provider_ids": []string{"N011"}}}, "collection_method": "walk_in_test"}
	o := c.order("POST", "/v3/order", c.request(kitTest, pick))
	again := c.order("POST", "/v3/order/create", c.request(kitTest, pick))
	require.True(t, o.LabTest.AutoGenerated)
	require.Equal(t, o.LabTest, again.LabTest)
	path := "/v3/lab_tests/" + o.LabTest.ID.String()
	var got catalogue.LabTest
	c.get(path, 200).JSON(t, &got)
	require.Equal(t, o.LabTest, got)
	var markers markersPage
	c.get(path+"/markers", 200).JSON(t, &markers)
	require.Equal(t, o.LabTest.MarkerIDs(), markers.ids())
	require.Equal(t, catalogue.LabTestNotFound, c.With("x-service-api-key", "other").Send(t, "GET", path, nil).Want(t, 404).ErrorType(t))
	for query, want := range map[string]int{"": 4, "generation_method=manual": 4, "generation_method=auto": 1, "generation_method=all": 5,
		"generation_method=auto&marker_ids=1011": 1, "generation_method=auto&marker_ids=1001": 0} {
		var page struct{ Data []catalogue.LabTest }
		c.get("/v3/lab_test?"+query, 200).JSON(t, &page)
		require.Len(t, page.Data, want, query)
		var all []catalogue.LabTest
		c.get("/v3/lab_tests?"+query, 200).JSON(t, &all)
		require.Len(t, all, want, query)
	}
	pick = object{"order_set": object{"lab_test_ids": []string{got.ID.String()}}}
	require.Equal(t, got, c.order("POST", "/v3/order", c.request(kitTest, pick)).LabTest)
}

// Syntax problems and rule violations of one body are reported together.
func TestOrderInput_reportsSyntaxAndRuleProblemsTogether(t *testing.T) {
	c := newFixture(t, nil)
	patient, address := aPatient(), anAddress()
	patient["first_name"], patient["dob"], patient["email"] = " Ana", "soon", 7
	delete(patient, "gender")
	address["zip"] = "5580"
	body := c.request(walkInTest, object{"patient_details": patient, "patient_address": address, "billing_type": "barter", "priority": "yes", "colour": "red",
		"physician": "Vale", "icd_codes": []any{"E11.9", 7, "x"}, "user_id": nil})
	delete(body, "user_id")
	want := []string{"body.patient_details.first_name", "body.patient_details.dob", "body.patient_details.email", "body.patient_details.gender",
		"body.patient_address.zip", "body.billing_type", "body.priority", "body.colour", "body.physician", "body.icd_codes.1", "body.icd_codes.2", "body.user_id"}
	for _, path := range []string{"/v3/order", "/v3/order/create"} {
		require.ElementsMatch(t, want, c.post(path, body, 422).Locs(t))
	}
	body["update_reason"] = "INCORRECT_LAB"
	require.ElementsMatch(t, append(want, "body.update_reason"), c.post("/v3/order/create", body, 422).Locs(t))
	require.ElementsMatch(t, []string{"body.address.state", "body.colour", "body.phone_number", "body.dob"},
		c.Send(t, "PATCH", c.about("info"), anInfo(object{"colour": "red", "phone_number": "1", "dob": 5,
			"address": object{"first_line": "1", "city": "D", "state": "Mn", "zip": "55802"}})).Want(t, 422).Locs(t))
	require.ElementsMatch(t, []string{"body.guarantor", "body.member_id", "body.insured.dob", "body.insured.phone_number"}, c.post(c.about("insurance"), anInsurance(object{
		"relationship": "Other", "member_id": "", "insured": object{"first_name": "Ana", "last_name": "Ray", "gender": "Male", "email": "ana@example.com",
			"phone_number": "1", "address": object{"first_line": "1", "city": "D", "state": "MN", "zip": "55802"}}}), 422).Locs(t))
	require.Len(t, c.post("/v3/order", `{"priority": 1, "billing_type": "barter"`, 422).Locs(t), 2, "what comes after is not read")
}

func TestOrderCounts_areByStatus(t *testing.T) {
	c := newFixture(t, nil)
	c.placed()
	o := c.placed()
	c.order("POST", "/v3/order/"+o.ID.String()+"/cancel", nil)
	var counts struct {
		Total    int            `json:"total"`
		ByStatus map[string]int `json:"by_status"`
	}
	c.get("/v3/orders/count", 200).JSON(t, &counts)
	require.Equal(t, 2, counts.Total)
	require.Equal(t, map[string]int{"ordered": 1, "cancelled": 1}, counts.ByStatus)
}

func TestLifecycles_areServedAsDefined(t *testing.T) {
	var out struct {
		Lifecycles []orders.Lifecycle `json:"lifecycles"`
	}
	newFixture(t, nil).get("/v3/orders/lifecycle", 200).JSON(t, &out)
	require.Equal(t, orders.Lifecycles(), out.Lifecycles)
}
