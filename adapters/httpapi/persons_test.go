package httpapi_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/portal"
)

// personPairs are the types of persons and their schemas.
func personPairs() []contract.Pair {
	return append(httpapi.PersonBodies(), []contract.Pair{
		{Schema: "UserInfo", Value: people.UserInfo{}},
		{Schema: "UserInfoRequest", Value: people.UserInfoRequest{}, Input: true},
		{Schema: "InsuranceRecord", Value: people.InsuranceRecord{}},
		{Schema: "InsuranceRequest", Value: people.InsuranceRequest{}, Input: true,
			Enums: map[string][]string{"relationship": {"Self", "Spouse", "Other"}}},
		{Schema: "Payor", Value: people.Payor{}},
		{Schema: "PayorRequest", Value: people.PayorRequest{}, Input: true},
		{Schema: "Diagnosis", Value: people.Diagnosis{}},
		{Schema: "DiagnosisCheck", Value: people.DiagnosisCheck{}},
		{Schema: "PortalLink", Value: portal.Link{}},
		{Schema: "PortalRequest", Value: portal.Request{}, Input: true,
			Enums: map[string][]string{"context": {"launch", "communications"}}},
	}...)
}

func anInfo(edits object) object {
	body := object{"first_name": "Ana", "last_name": "Ray", "email": "ana@example.com", "phone_number": "+15550100", "gender": "Female",
		"dob": "1988-03-07", "address": object{"first_line": "1 Elm Street", "city": "Duluth", "state": "MN", "zip_code": "55802"}}
	for k, v := range edits {
		body[k] = v
	}
	return body
}

func anInsurance(edits object) object {
	body := object{"payor_code": "ASPEN", "member_id": "M-1", "relationship": "Self", "insured": object{
		"first_name": "Ana", "last_name": "Ray", "gender": "Female", "dob": "1988-03-07", "email": "ana@example.com",
		"phone_number": "+15550100", "address": object{"first_line": "1 Elm Street", "city": "Duluth", "state": "MN", "zip": "55802"}}}
	for k, v := range edits {
		body[k] = v
	}
	return body
}

func (c *fixture) about(rest string) string { return "/v2/user/" + c.user.String() + "/" + rest }

func TestUserInfo_isPatchedAndRead(t *testing.T) {
	c := newFixture(t, nil)
	c.refused("GET", c.about("info/latest"), nil, 404, people.UserInfoNotFound)
	var kept, got people.UserInfo
	c.Send(t, "PATCH", c.about("info"), anInfo(nil)).Want(t, 200).JSON(t, &kept)
	require.Equal(t, "55802", kept.Address.Zip)
	require.Equal(t, "55802", kept.Address.ZipCode)
	require.Equal(t, "US", kept.Address.Country)
	require.Equal(t, "", *kept.Address.SecondLine, "absent")
	c.get(c.about("info/latest"), 200).JSON(t, &got)
	require.Equal(t, kept, got)
	c.Send(t, "PATCH", c.about("info"), anInfo(object{"last_name": "Roe", "address": object{
		"first_line": "1 Elm Street", "second_line": nil, "city": "Duluth", "state": "MN", "zip": "55802", "zip_code": "55802", "country": "US"}})).
		Want(t, 200).JSON(t, &got)
	require.Nil(t, got.Address.SecondLine, "null stays null")
	require.Equal(t, "Roe", got.LastName)

	require.ElementsMatch(t, []string{
		"body.first_name", "body.phone_number", "body.dob", "body.address.zip_code", "body.address.state", "body.race",
	}, c.Send(t, "PATCH", c.about("info"), anInfo(object{"first_name": "A<b>", "phone_number": "55-5", "dob": "2099-01-01", "race": "none",
		"address": object{"first_line": "1 Elm Street", "city": "Duluth", "state": "Mn", "zip": "55802", "zip_code": "55803"}})).Want(t, 422).Locs(t))
	for _, nobody := range []string{"me", absent, c.foreign.String()} {
		c.refused("GET", "/v2/user/"+nobody+"/info/latest", nil, 404, people.UserNotFound)
		c.refused("PATCH", "/v2/user/"+nobody+"/info", anInfo(nil), 404, people.UserNotFound)
		c.refused("POST", "/v2/user/"+nobody+"/insurance", anInsurance(nil), 404, people.UserNotFound)
		c.refused("GET", "/v2/user/"+nobody+"/insurance/latest", nil, 404, people.UserNotFound)
	}
}

func TestInsurance_isAddedReadAndNeedsAKnownPayor(t *testing.T) {
	c := newFixture(t, nil)
	c.Send(t, "PATCH", c.about("info"), anInfo(nil)).Want(t, 200)
	c.refused("GET", c.about("insurance/latest"), nil, 404, people.InsuranceNotFound)
	c.refused("POST", c.about("insurance"), anInsurance(object{"payor_code": "OAK"}), 400, people.PayorNotFound)
	c.refused("POST", "/v3/order", c.request(walkInTest, object{"billing_type": "commercial_insurance", "icd_codes": []string{"E11.9"}}), 400, orders.InsuranceMissing)

	add := func(edits object) people.InsuranceRecord {
		var out people.InsuranceRecord
		c.post(c.about("insurance"), anInsurance(edits), 200).JSON(t, &out)
		return out
	}
	latest := func(query string) people.InsuranceRecord {
		var out people.InsuranceRecord
		c.get(c.about("insurance/latest"+query), 200).JSON(t, &out)
		return out
	}
	first := add(nil)
	require.True(t, first.IsPrimary)
	require.Equal(t, people.Female, first.Insured.Gender)
	require.Equal(t, "Aspen Mutual Health", first.Company.Name)
	require.Equal(t, first, latest(""))
	second := add(object{"is_primary": false, "payor_code": "MEDFED"})
	require.Equal(t, "FED-MN", second.PayorCode, "the plan of the state where the user lives")
	require.Equal(t, first, latest("?is_primary=true"))
	require.Equal(t, second, latest("?is_primary=false"))
	require.Contains(t, string(c.get(c.about("insurance/latest"), 200).Body), `"zip":"55802","country":"US","access_notes":null,"zip_code":"55802"`)

	guarantor := object{"first_name": "Bo", "last_name": "Ray", "phone_number": "+15550102",
		"address": object{"first_line": "1 Elm Street", "city": "Duluth", "state": "MN", "zip": "55802"}}
	require.ElementsMatch(t, []string{"body.guarantor", "body.member_id", "body.insured.gender"}, c.Send(t, "POST", c.about("insurance"), anInsurance(object{
		"relationship": "Spouse", "member_id": "", "insured": object{"first_name": "Ana", "last_name": "Ray", "gender": "x", "dob": "1988-03-07",
			"email": "ana@example.com", "phone_number": "+15550100", "address": object{"first_line": "1", "city": "D", "state": "MN", "zip": "55802"}},
	})).Want(t, 422).Locs(t))
	third := add(object{"relationship": "Spouse", "guarantor": guarantor})
	require.Equal(t, third, latest(""))

	// The newest primary record pays.
	o := c.order("POST", "/v3/order", c.request(walkInTest, object{"billing_type": "commercial_insurance", "icd_codes": []string{"E11.9"}}))
	kept, err := c.config.Orders.People().Insurance(t.Context(), team, *o.HealthInsuranceID)
	require.NoError(t, err)
	require.Equal(t, third, kept.Record)
	c.refused("POST", "/v3/order", c.request(walkInTest, object{"billing_type": "commercial_insurance"}), 400, orders.ICDCodesRequired)
	for _, code := range []string{"x", "E11", "E99.99"} { // malformed, a header, unknown
		c.refused("POST", "/v3/order", c.request(walkInTest, object{"billing_type": "commercial_insurance", "icd_codes": []string{code}}), 400, orders.ICDCodeInvalid)
	}
	require.Equal(t, catalogue.FeatureNotEnabled, c.With("x-service-api-key", "other").
		Send(t, "GET", "/v2/user/"+c.foreign.String()+"/insurance/latest", nil).Want(t, 403).ErrorType(t))
}

func TestPayorSearch_findsByNameOrClearingHouseID(t *testing.T) {
	c := newFixture(t, nil)
	codes := func(query string) []string {
		var found []people.Payor
		c.get("/v3/insurance/search/payor?"+query, 200).JSON(t, &found)
		out := []string{}
		for _, p := range found {
			out = append(out, p.PayorCode)
		}
		return out
	}
	require.Equal(t, []string{"ASPEN"}, codes("insurance_name=mutual"))
	require.Equal(t, []string{"BIRCH"}, codes("insurance_name=bRHp"))
	require.Equal(t, []string{"CEDAR"}, codes("provider=house_b&provider_payor_id=CED3"))
	require.Empty(t, codes("insurance_name=mutual&provider=house_b&provider_payor_id=CED3"))
	c.refused("GET", "/v3/insurance/search/payor", nil, 400, people.PayorSearchMissing)
	c.refused("GET", "/v3/insurance/search/payor?provider=house_b", nil, 400, people.PayorSearchMissing)
	c.get("/v3/insurance/search/payor?provider=house_z&provider_payor_id=1", 422)

	body := object{"name": "Our Own Plan", "address": object{"first_line": "9 Own Way", "city": "Duluth", "state": "MN", "zip": "55802", "country": "US"},
		"provider": "house_a", "provider_payor_id": "OWN1"}
	var own people.Payor
	c.post("/v3/payor", body, 200).JSON(t, &own)
	require.Equal(t, people.TeamPayor, own.Source)
	require.Equal(t, []string{own.PayorCode}, codes("insurance_name=our%20own"))
	require.Equal(t, []string{own.PayorCode}, codes("provider=house_a&provider_payor_id=OWN1"))
	other := c.With("x-service-api-key", "other")
	require.Equal(t, "[]", string(other.Send(t, "GET", "/v3/insurance/search/payor?insurance_name=our%20own", nil).Want(t, 200).Body))
	require.Equal(t, catalogue.FeatureNotEnabled, other.Send(t, "POST", "/v3/payor", body).Want(t, 403).ErrorType(t))
	require.ElementsMatch(t, []string{"body.name", "body.provider_payor_id"},
		c.post("/v3/payor", object{"name": "", "provider": "house_a", "address": body["address"]}, 422).Locs(t))
	c.Send(t, "PATCH", c.about("info"), anInfo(nil)).Want(t, 200)
	var record people.InsuranceRecord
	c.post(c.about("insurance"), anInsurance(object{"payor_code": own.PayorCode}), 200).JSON(t, &record)
	require.Equal(t, own.Name, record.Company.Name)

	require.JSONEq(t, `[{"code":"ASPEN","name":"Aspen Mutual Health","aliases":["Aspen","AMH"],"source":"platform","org_address":
		{"first_line":"100 Policy Way","second_line":null,"city":"Duluth","state":"MN","zip":"55802","zip_code":"55802","country":"US","access_notes":null}}]`,
		string(c.post("/v3/insurance/search/payor", object{"insurance_name": "aspen"}, 200).Body))
	c.refused("POST", "/v3/insurance/search/payor", object{}, 400, people.PayorSearchMissing)
}

func TestDiagnosisSearch_findsCodesAndChecksExclusions(t *testing.T) {
	c := newFixture(t, nil)
	codes := func(query string) []string {
		var found []people.Diagnosis
		c.get("/v3/insurance/search/diagnosis?diagnosis_query="+query, 200).JSON(t, &found)
		var out []string
		for _, d := range found {
			out = append(out, d.DiagnosisCode)
		}
		return out
	}
	require.Equal(t, []string{"E11.22", "E11.65", "E11.9"}, codes("e11"))
	require.Equal(t, []string{"E11.65"}, codes("E116"))
	require.Equal(t, []string{"E55.9"}, codes("vitamin%20d%20deficiency"))
	require.Equal(t, []string{"I10"}, codes("essential%20hypertention"), "a typing error")
	require.Empty(t, codes("zzz"))
	c.get("/v3/insurance/search/diagnosis", 422)

	check := func(list ...string) (out people.DiagnosisCheck) {
		c.post("/v3/insurance/validate_icd_codes", object{"codes": list}, 200).JSON(t, &out)
		return out
	}
	fine := people.DiagnosisCheck{Valid: true, Errors: []string{}, Violations: []people.DiagnosisConflict{}, Warnings: []people.DiagnosisOverlap{}}
	require.Equal(t, fine, check("E11.9", "I10"))
	require.Equal(t, fine, check([]string{}...))
	bad := check("E11.9", "nonsense", "E10.9", "E11", "E99.9", "R73.9")
	require.False(t, bad.Valid)
	require.Equal(t, []string{"codes[1] is not an ICD-10 code", "codes[3] is not a known code", "codes[4] is not a known code"}, bad.Errors)
	require.Equal(t, []people.DiagnosisConflict{
		{Code: "E11.9", ConflictsWith: "E10.9", Type: "excludes1"}, {Code: "E11.9", ConflictsWith: "R73.9", Type: "excludes1"},
		{Code: "E10.9", ConflictsWith: "R73.9", Type: "excludes1"}}, bad.Violations)
	odd := check("R05.9", "J45.909")
	require.True(t, odd.Valid)
	require.Equal(t, []people.DiagnosisOverlap{{Code: "R05.9", OverlapsWith: "J45.909", Type: "excludes2"}}, odd.Warnings)
}

func TestPortalURL_needsDemographicsAndAContext(t *testing.T) {
	c := newFixture(t, nil)
	require.Equal(t, strings.ToLower(people.DemographicsMissing), c.post(c.about("create_portal_url"), object{"context": "launch"}, 422).ErrorType(t))
	c.Send(t, "PATCH", c.about("info"), anInfo(nil)).Want(t, 200)
	o := c.placed()
	link := func(body object) portal.Link {
		var out portal.Link
		c.post(c.about("create_portal_url"), body, 200).JSON(t, &out)
		return out
	}
	launch, short := link(object{"context": "launch", "order_id": o.ID.String()}), link(object{"context": "communications"})
	require.Contains(t, launch.URL, "order_id="+o.ID.String())
	require.Equal(t, 600, launch.ExpiresIn)
	require.Equal(t, 28*24*3600, short.ExpiresIn)
	require.Less(t, len(short.URL), 90)
	token, err := portal.ReadToken(portalKey, short.URL[len("https://portal.example.com/l/"):], fixtureNow)
	require.NoError(t, err)
	require.Equal(t, c.user, token.User)
	c.refused("POST", c.about("create_portal_url"), object{"context": "launch", "order_id": absent}, 404, orders.OrderNotFound)
	require.Equal(t, []string{"body.context"}, c.post(c.about("create_portal_url"), object{"context": "sms"}, 422).Locs(t))
	c.refused("POST", "/v2/user/"+absent+"/create_portal_url", object{"context": "launch"}, 404, people.UserNotFound)
}
