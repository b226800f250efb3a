package httpapi_test

import (
	"context"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

func with(o object, edits object) object {
	out := maps.Clone(o)
	maps.Copy(out, edits)
	return out
}

// Each invalid field is reported by its path, and the message says what is allowed.
func TestOrderInput_eachInvalidFieldIsReportedByPath(t *testing.T) {
	c := newFixture(t, nil)
	physician := object{"first_name": "Cy", "last_name": "Vale", "npi": "1234567893", "licensed_states": []string{"MN"}}
	order := func(edits object) func() (string, string, object) {
		return func() (string, string, object) { return "POST", "/v3/order", c.request(kitTest, edits) }
	}
	patient := func(edits object) func() (string, string, object) {
		return order(object{"patient_details": with(aPatient(), edits)})
	}
	address := func(edits object) func() (string, string, object) {
		return order(object{"patient_address": with(anAddress(), edits)})
	}
	insurance := func(edits object) func() (string, string, object) {
		return func() (string, string, object) { return "POST", c.about("insurance"), anInsurance(edits) }
	}
	for name, row := range map[string]struct {
		call     func() (method, path string, body object)
		loc, msg string
	}{
		"phone too short":       {patient(object{"phone_number": "12"}), "body.patient_details.phone_number", "+14155550137"},
		"phone of letters":      {patient(object{"phone_number": "hello"}), "body.patient_details.phone_number", "+14155550137"},
		"phone too long":        {patient(object{"phone_number": "+1415555013799"}), "body.patient_details.phone_number", "+14155550137"},
		"phone at the address":  {address(object{"phone_number": "12"}), "body.patient_address.phone_number", "+14155550137"},
		"NPI":                   {order(object{"physician": with(physician, object{"npi": "1234567890"})}), "body.physician.npi", "check digit"},
		"NPI too short":         {order(object{"physician": with(physician, object{"npi": "123"})}), "body.physician.npi", "ten digits"},
		"licensed state":        {order(object{"physician": with(physician, object{"licensed_states": []string{"MN", "XX"}})}), "body.physician.licensed_states.1", "two upper-case letters"},
		"zip of another state":  {address(object{"zip": "85201"}), "body.patient_address.zip", "postal code of the state"},
		"country":               {address(object{"country": "XX"}), "body.patient_address.country", "ISO 3166-1"},
		"country in words":      {address(object{"country": "Germany"}), "body.patient_address.country", "ISO 3166-1"},
		"the same test twice":   {order(object{"order_set": object{"lab_test_ids": []string{kitTest, kitTest}}}), "body.order_set.lab_test_ids.1", "twice"},
		"the same marker twice": {order(object{"collection_method": "walk_in_test", "order_set": object{"add_on": object{"marker_ids": []int{1003, 1003}}}}), "body.order_set.add_on.marker_ids.1", "twice"},
		"method of no test":     {order(object{"collection_method": "walk_in_test"}), "body.collection_method", "testkit"},
		"unknown method":        {order(object{"collection_method": "by_post"}), "body.collection_method", "testkit, walk_in_test, at_home_phlebotomy, on_site_collection"},
		"unknown gender":        {patient(object{"gender": "F"}), "body.patient_details.gender", "female, male, other, unknown"},
		"activated too late":    {order(object{"activate_by": "2027-03-06"}), "body.activate_by", "366 days"},
		"blank member id":       {insurance(object{"member_id": "  "}), "body.member_id", "blank"},
		"blank group id":        {insurance(object{"group_id": " "}), "body.group_id", "blank"},
		"phone of the insured":  {insurance(object{"insured": with(anInsurance(nil)["insured"].(object), object{"phone_number": "12"})}), "body.insured.phone_number", "+14155550137"},
		"phone of a user":       {func() (string, string, object) { return "PATCH", c.about("info"), anInfo(object{"phone_number": "12"}) }, "body.phone_number", "+14155550137"},
		"phone at a kit's address": {func() (string, string, object) {
			kit := c.aKit()
			kit["shipping_details"] = with(kit["shipping_details"].(object), object{"phone_number": "12"})
			return "POST", "/v3/order/testkit", kit
		}, "body.shipping_details.phone_number", "+14155550137"},
	} {
		t.Run(name, func(t *testing.T) {
			method, path, body := row.call()
			reply := c.Send(t, method, path, body).Want(t, 422)
			require.Equal(t, []string{row.loc}, reply.Locs(t))
			require.Contains(t, string(reply.Body), row.msg)
		})
	}
	for _, phone := range []string{"+14155550137", "(415) 555-0137", "4155550137", "+49 30 901820"} {
		method, path, body := patient(object{"phone_number": phone})()
		c.Send(t, method, path, body).Want(t, 200)
	}
	o := c.order("POST", "/v3/order", c.request(kitTest, object{"activate_by": "2026-04-01"}))
	require.Equal(t, []string{"body.activate_by"}, c.Send(t, "PATCH", "/v3/order/"+o.ID.String(), object{"activate_by": "2028-01-01"}).Want(t, 422).Locs(t))
}

// Insurance may come before demographics: a federal program's plan is then that of the insured
// person's state.
func TestInsurance_beforeDemographicsUsesTheInsuredPersonsState(t *testing.T) {
	c := newFixture(t, nil)
	var added, latest people.InsuranceRecord
	c.post(c.about("insurance"), anInsurance(object{"payor_code": "MEDFED"}), 200).JSON(t, &added)
	require.Equal(t, "FED-MN", added.PayorCode)
	c.get(c.about("insurance/latest"), 200).JSON(t, &latest)
	require.Equal(t, added, latest)
	c.refused("GET", c.about("info/latest"), nil, 404, people.UserInfoNotFound)
}

// If the provider does not answer a reschedule, the appointment keeps its time.
func TestReschedule_providerTimeoutKeepsTheAppointmentTime(t *testing.T) {
	c := remade(t, func(x *shop) { x.lab = silentMover{newBusyLab()} })
	keys, o := c.keys("psc"), c.accepted(walkInTest, nil)
	path := "/v3/order/" + o.ID.String() + "/psc/appointment"
	var before, after orders.Appointment
	c.post(path+"/book", object{"booking_key": keys[0]}, 200).JSON(t, &before)
	c.refused("PATCH", path+"/reschedule", object{"booking_key": keys[1]}, 500, visits.BookingNotConfirmed)
	c.get(path, 200).JSON(t, &after)
	require.Equal(t, before.StartAt, after.StartAt)
}

// twoZips knows two postal codes, a thousand miles from each other.
type twoZips struct{}

func (twoZips) FindZip(_ context.Context, code string) (appointment.Zip, bool, error) {
	at := map[string]appointment.Zip{"85201": {Location: appointment.LngLat{Lng: -111.83, Lat: 33.42}, State: "AZ"}, "55802": {Location: appointment.LngLat{Lng: -92.09, Lat: 46.76}, State: "MN"}}
	zip, known := at[code]
	return zip, known, nil
}

// A visit at home takes place near the patient's address.
func TestBooking_refusesAHomeVisitFarFromThePatient(t *testing.T) {
	c := remade(t, func(x *shop) { x.visits.Zips = twoZips{} })
	key := c.keys("phlebotomy")[0]   // in Mesa
	o := c.accepted(atHomeTest, nil) // in Duluth
	path := "/v3/order/" + o.ID.String() + "/phlebotomy/appointment"
	reply := c.post(path+"/book", object{"booking_key": key}, 422)
	require.Equal(t, []string{"body.booking_key"}, reply.Locs(t))
	require.Contains(t, string(reply.Body), "100 miles")
	require.Equal(t, []string{"body.address.zip_code"}, c.post(path+"/request", object{"provider": "phleb", "address": homeAddress(nil)}, 422).Locs(t))
	near := c.accepted(atHomeTest, object{"patient_address": object{"first_line": "7 Elm Rd", "city": "Mesa", "state": "AZ", "zip": "85201", "country": "US"}})
	c.post("/v3/order/"+near.ID.String()+"/phlebotomy/appointment/book", object{"booking_key": key}, 200)
}

// Text of a center that has none is empty, not null.
func TestCenters_missingTextIsEmptyInsteadOfNull(t *testing.T) {
	c := newFixture(t, nil)
	reply := c.get("/v3/order/psc/info?zip_code=85201&lab_id=1", 200)
	for _, field := range []string{"second_line", "phone_number", "fax_number"} {
		require.Contains(t, string(reply.Body), `"`+field+`":""`)
	}
}

// Simulated results have the unit and the reference interval of their marker, and lie where
// the story says.
func TestSimulation_valuesHaveTheUnitAndIntervalOfTheirMarker(t *testing.T) {
	c := newFixture(t, nil)
	want := map[string][2]string{"Glucose": {"mg/dL", "70-99"}, "Hemoglobin A1c": {"%", "4.0-5.6"}, "Creatinine": {"mg/dL", "0.60-1.30"}, "Alanine aminotransferase": {"U/L", "7-56"}}
	for _, reading := range []labresult.Interpretation{labresult.Normal, labresult.Abnormal, labresult.Critical} {
		o := c.placed()
		path := "/v3/order/" + o.ID.String()
		c.post(path+"/test", object{"interpretation": reading}, 200)
		var got orders.OrderResults
		c.get(path+"/result", 200).JSON(t, &got)
		require.Equal(t, reading, *got.Metadata.Interpretation)
		require.Len(t, got.Results, len(want))
		for i, r := range got.Results {
			require.Equal(t, labresult.Numeric, r.Type)
			require.Equal(t, want[r.Name], [2]string{*r.Unit, *r.ReferenceRange}, r.Name)
			above := i == 0 && reading != labresult.Normal
			require.Equal(t, above, *r.IsAboveMaxRange)
			require.Equal(t, above, r.Value.GreaterThan(r.MaxRangeValue.Decimal), "%s %s", r.Name, r.Result)
			require.False(t, r.Value.LessThan(r.MinRangeValue.Decimal), "%s %s", r.Name, r.Result)
			require.Equal(t, above, r.Interpretation != labresult.Normal)
		}
	}
}
