package orders_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

func ptr[T any](v T) *T { return &v }

// fullOrder has every field set.
func fullOrder(t testing.TB) orders.Order {
	o := newOrder(catalogue.Testkit, true)
	o.PatientDetails = &people.PatientDetails{
		FirstName: ptr("Ana"), LastName: ptr("Roe"), DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9},
		Gender: people.Female, PhoneNumber: ptr("+15550100"), Email: ptr("ana@example.com"),
		MedicalProxy: &people.GuarantorDetails{FirstName: "Bo", LastName: "Roe", Address: people.Address{
			FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201", Country: "US"}, PhoneNumber: "+15550101"},
		Race: ptr(people.Race("asian")), Ethnicity: ptr(people.Ethnicity("other")),
		SexualOrientation: ptr(people.SexualOrientation("dont_know")), GenderIdentity: ptr(people.GenderIdentity("genderqueer")),
	}
	o.PatientAddress = &people.PatientAddress{ReceiverName: "Ana Roe", FirstLine: "7 Elm Rd", SecondLine: ptr("Unit 2"),
		City: "Mesa", State: "AZ", Zip: "85201", Country: "US", PhoneNumber: ptr("+15550100"), AccessNotes: ptr("Side gate")}
	o.SampleID, o.Notes, o.ClinicalNotes = ptr("A100200"), ptr("a note"), ptr("a comment")
	o.Physician = &people.Physician{FirstName: "Cy", LastName: "Vale", NPI: "1234567890"}
	o.HealthInsuranceID, o.RequisitionFormURL, o.Priority = ptr(id("insurance")), ptr("https://files.example.com/r"), true
	o.ActivateBy, o.Passthrough, o.ICDCodes = &healthlab.Date{Year: 2026, Month: 4, Day: 1}, ptr("ours"), []string{"E11.9"}
	o.HasABN, o.Interpretation, o.HasMissingResults = true, ptr(labresult.Abnormal), ptr(false)
	o.ExpectedResultByDate = &healthlab.Date{Year: 2026, Month: 4, Day: 5}
	o.WorstCaseResultByDate = &healthlab.Date{Year: 2026, Month: 4, Day: 9}
	o.LabTest.Price = number(t, "49.90")
	o.LabTest.Lab = &catalogue.Lab{ID: 6, Slug: "northlab", Name: "Northlab", CollectionMethods: []catalogue.CollectionMethod{catalogue.Testkit},
		SampleTypes: []catalogue.SampleType{catalogue.Serum}}
	o.LabTest.Markers = []catalogue.Marker{{ID: 12, Name: "Glucose", Slug: "glucose", IsOrderable: ptr(true), AOE: &catalogue.AOE{Questions: []catalogue.Question{
		{ID: 1 << 40, Type: catalogue.MultiChoiceQuestion, Answers: []catalogue.Answer{{ID: 1 << 41, Code: "Y", Value: "Yes"}}}}}}}
	_, err := orders.Begin(&o, noon, id("first"))
	require.NoError(t, err)
	_, err = orders.Apply(&o, orders.Step{On: orders.PatientAwaited, At: noon.Add(1500 * time.Microsecond), EventID: id("second")})
	require.NoError(t, err)
	return o
}

func number(t testing.TB, s string) catalogue.Number {
	t.Helper()
	n, err := catalogue.ParseNumber(s)
	require.NoError(t, err)
	return n
}

func TestOrder_roundTripsThroughJSON(t *testing.T) {
	bare := newOrder(catalogue.WalkInTest, false)
	_, err := orders.Begin(&bare, noon, id("first"))
	require.NoError(t, err)
	for _, tc := range []struct {
		name  string
		order orders.Order
	}{
		{"full", fullOrder(t)},
		{"bare", bare},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, err := json.MarshalIndent(tc.order, "", "  ")
			require.NoError(t, err)
			golden(t, "testdata/order_"+tc.name+".json", string(b)+"\n")
			var back orders.Order
			require.NoError(t, json.Unmarshal(b, &back))
			again, err := json.MarshalIndent(back, "", "  ")
			require.NoError(t, err)
			require.Equal(t, string(b), string(again))
		})
	}
}

func TestOrder_decodesUnknownValuesAndFields(t *testing.T) {
	var o orders.Order
	require.NoError(t, json.Unmarshal([]byte(`{
		"patient_details": {"first_name": "Ana", "dob": "1984-05-09T00:00:00+00:00", "gender": "something new"},
		"patient_address": {"first_line": "7 Elm Rd", "zip_code": "85201"},
		"details": {"type": "by_drone", "data": {"altitude": 12}},
		"lab_test": {"name": "Basics", "method": "by_drone", "markers": [{"aoe": {"questions": [{"type": "multiple_choice"}]}}]},
		"events": [{"id": 9, "created_at": "2026-03-02T15:00:00Z", "status": "received.testkit.testkit_registered", "status_detail": "brand_new"}],
		"status": "somewhere_else", "unknown": 1}`), &o))
	require.Equal(t, healthlab.Date{Year: 1984, Month: 5, Day: 9}, o.PatientDetails.DOB)
	require.Equal(t, "85201", o.PatientAddress.Zip)
	require.Equal(t, people.Gender("something new"), o.PatientDetails.Gender)
	require.Equal(t, orders.Registered, o.Events[0].Status.LowLevel())
	require.Equal(t, orders.StatusDetail("brand_new"), *o.Events[0].StatusDetail)
	require.Equal(t, catalogue.MultiChoiceQuestion, o.LabTest.Markers[0].AOE.Questions[0].Type)
	b, err := json.Marshal(o.Details)
	require.NoError(t, err)
	require.JSONEq(t, `{"type": "by_drone", "data": {"altitude": 12}}`, string(b))
}

func TestNumber_keepsItsDigits(t *testing.T) {
	for _, s := range []string{"0", "1.20", "-0.050", "12345678901234567890.123456789", "100", "0.0"} {
		var n catalogue.Number
		require.NoError(t, json.Unmarshal([]byte(s), &n))
		b, err := json.Marshal(n)
		require.NoError(t, err)
		require.Equal(t, s, string(b))
	}
	for _, s := range []string{`""`, `"x"`, `true`, `1e999999999`, `1e-999999999`, `[]`} {
		var n catalogue.Number
		require.Error(t, json.Unmarshal([]byte(s), &n), s)
	}
}

func TestOrder_isLoggedWithoutPatientData(t *testing.T) {
	o := fullOrder(t)
	var b bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&b, nil))
	log.Info("order", "order", o, "pointer", &o, "details", o.PatientDetails, "address", o.PatientAddress, "shipping", o.ShippingDetails,
		"proxy", o.PatientDetails.MedicalProxy)
	r := orders.Record{Order: o, Results: &labresult.Report{Results: []labresult.Result{{Result: "Ana"}}}}
	req := orders.PlaceRequest{PatientDetails: people.PatientDetailsInput{FirstName: "Ana"}}
	kept := orders.ImportRequest{PatientDetails: req.PatientDetails}
	log.Info("more", "record", r, "results", r.Results, "request", req, "create", orders.CreateRequest{PlaceRequest: req}, "import", kept,
		"message", exchange.Message{Results: r.Results}, "submission", exchange.Submission{Order: o})
	fmt.Fprintf(&b, "%+v%+v%+v%+v%#v%#v", r, r.Results, req, kept, exchange.Submission{Order: o}, orders.CreateRequest{PlaceRequest: req})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		fmt.Fprintf(&b, verb+verb+verb+verb+verb, o, &o, *o.PatientDetails, o.PatientAddress, *o.ShippingDetails)
		fmt.Fprintf(&b, verb, struct{ Orders []orders.Order }{[]orders.Order{o}})
		fmt.Fprintf(&b, verb, o.PatientDetails.MedicalProxy)
	}
	for _, secret := range []string{"Ana", "Roe", "1984", "Elm", "5550100", "ana@example.com", "Side gate", "Front desk", "a note", "a comment"} {
		require.NotContains(t, b.String(), secret)
	}
	require.Contains(t, b.String(), o.ID.String(), "but the id is")
}

func TestEventTypes_haveUniqueNamesDataAndADescription(t *testing.T) {
	var names []string
	for _, e := range orders.EventTypes() {
		names = append(names, e.Name)
		require.NotNil(t, e.Data)
		require.NotEmpty(t, e.Doc)
		require.Equal(t, healthlab.Ordered, e.Mode)
	}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(names))), 7)
}
