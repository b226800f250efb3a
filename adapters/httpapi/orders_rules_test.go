package httpapi_test

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

// remade is a fixture with other orders: none yet, and what edit makes of the shop.
func remade(t *testing.T, edit func(*shop)) *fixture {
	t.Helper()
	c := newFixture(t, nil)
	now := func() time.Time { return fixtureNow }
	store := memory.New(&memory.Options{Now: func() time.Time { return now() }, UsersElsewhere: true})
	c.makeOrders(store, edit, func(x *shop) { now = x.options.Now })
	c.Client = contract.NewClient(t, c.config.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	return c
}

// linked gives the fixture's team an account at the first lab.
func linked(x *shop, id string, status catalogue.LabAccountStatus, edits ...func(*catalogue.LabAccount)) {
	a := x.book.Accounts[0]
	a.ID, a.Status, a.TeamIDAllowlist = catalogue.LabAccountID{UUID: uuid.MustParse(id)}, status, []healthlab.TeamID{team}
	for _, edit := range edits {
		edit(&a)
	}
	x.book.Accounts = append(x.book.Accounts, a)
}

const (
	ownAccount   = "5ab0c1d2-0000-4000-8000-1000000000a1"
	otherAccount = "5ab0c1d2-0000-4000-8000-1000000000a2"
)

// unhappyLab makes no appointments.
type unhappyLab struct{ *busyLab }

func (unhappyLab) BookVisit(context.Context, visits.Booking) (visits.Booked, error) {
	return visits.Booked{}, healthlab.Invalid
}

func aMinor(edits object) object {
	p := aPatient()
	p["dob"] = "2015-01-01"
	for k, v := range edits {
		p[k] = v
	}
	return p
}

// homeAddress is the address of a visit at which a sample is drawn.
func homeAddress(edits object) object {
	a := object{"first_line": "7 Elm Rd", "city": "Mesa", "state": "AZ", "zip_code": "85201"}
	for k, v := range edits {
		a[k] = v
	}
	return a
}

// Each business rule has its status and its name, in a fixture where it applies.
// TestPlacing_eachBrokenRuleHasItsErrorType has the rules of placing that need no other fixture.
func TestOrderRules_eachHasItsStatusAndErrorType(t *testing.T) {
	addOn := func(markers ...int) object {
		return object{"order_set": object{"add_on": object{"marker_ids": markers}}, "collection_method": "walk_in_test"}
	}
	proxy := object{"first_name": "Bo", "last_name": "Ray", "phone_number": "+15550102", "address": anAddress()}
	// place sends an order, edited, for a test.
	place := func(test string, edits object) func(*fixture) *contract.Reply {
		return func(c *fixture) *contract.Reply { return c.Send(c.t, "POST", "/v3/order", c.request(test, edits)) }
	}
	send := func(method, path string, body any) func(*fixture) *contract.Reply {
		return func(c *fixture) *contract.Reply { return c.Send(c.t, method, path, body) }
	}
	// of sends something about an order for a test.
	of := func(test string, edits object, method, rest string, body any) func(*fixture) *contract.Reply {
		return func(c *fixture) *contract.Reply {
			o := c.order("POST", "/v3/order", c.request(test, edits))
			return c.Send(c.t, method, "/v3/order/"+o.ID.String()+rest, body)
		}
	}
	homeKey := func(c *fixture) string {
		return slotKeys(c.t, c.post("/v3/order/phlebotomy/appointment/availability", homeAddress(nil), 200))[0]
	}
	centerKey := func(c *fixture) string {
		return slotKeys(c.t, c.post("/v3/order/psc/appointment/availability?lab=northlab&zip_code=85201", nil, 200))[0]
	}
	book := func(test, kind string, edits object, key func(*fixture) string) func(*fixture) *contract.Reply {
		return func(c *fixture) *contract.Reply {
			return of(test, edits, "POST", "/"+kind+"/appointment/book", object{"booking_key": key(c)})(c)
		}
	}
	const centers = "/v3/order/psc/appointment/availability?lab=northlab"
	const home = "/v3/order/phlebotomy/appointment/availability"
	// unmatched accepts a result that matches no order for certain.
	unmatched := func(body func(*fixture, orders.Order) object) func(*fixture) *contract.Reply {
		return func(c *fixture) *contract.Reply {
			o := c.placed()
			c.unmatched(o, "1")
			choice := object{}
			if body != nil {
				choice = body(c, o)
			}
			return c.Send(c.t, "POST", "/v3/unmatched_result/"+c.unmatchedPage("").Data[0].ID.String()+"/accept", choice)
		}
	}
	minors := func(x *shop) { x.settings.Minors = true }
	for _, row := range []struct {
		name   string
		shop   func(*shop)
		send   func(*fixture) *contract.Reply
		status int
		rule   string
	}{
		{"tests that are collected in two ways", nil, place(kitTest, object{"order_set": object{"lab_test_ids": []string{kitTest, onSiteTest}}}), 400, catalogue.MultipleMethods},
		{"a marker that is not sold alone", func(x *shop) {
			i := slices.IndexFunc(x.book.Markers, func(m catalogue.MarkerComplete) bool { return m.ID == 1011 })
			x.book.Markers[i].ALaCarteEnabled = false
		}, place(kitTest, addOn(1011)), 400, catalogue.MarkerNotALaCarte},
		{"on-site collection without the switch", func(x *shop) { x.settings.OnSiteCollection = false }, place(onSiteTest, nil), 403, catalogue.FeatureNotEnabled},
		{"an account at another lab", func(x *shop) {
			linked(x, ownAccount, catalogue.LabAccountActive, func(a *catalogue.LabAccount) { a.Lab = "southlab" })
		}, place(kitTest, object{"lab_account_id": ownAccount}), 400, catalogue.LabAccountWrongLab},
		{"a marker of another lab than the account's", func(x *shop) {
			linked(x, ownAccount, catalogue.LabAccountActive, func(a *catalogue.LabAccount) { a.Lab = "southlab" })
		}, func(c *fixture) *contract.Reply {
			return c.Send(c.t, "POST", "/v3/order/create", c.request(kitTest, object{"lab_account_id": ownAccount}))
		}, 400, catalogue.MarkerNotInLab},
		{"an account that is suspended", func(x *shop) { linked(x, ownAccount, catalogue.LabAccountSuspended) },
			place(kitTest, object{"lab_account_id": ownAccount}), 400, catalogue.LabAccountNotActive},
		{"own accounts, none active", func(x *shop) { linked(x, ownAccount, catalogue.LabAccountPending) }, place(kitTest, nil), 400, catalogue.NoActiveLabAccount},
		{"two active accounts", func(x *shop) {
			linked(x, ownAccount, catalogue.LabAccountActive)
			linked(x, otherAccount, catalogue.LabAccountActive)
		}, place(kitTest, nil), 400, catalogue.LabAccountAmbiguous},
		{"no account at all", func(x *shop) { x.book.Accounts = x.book.Accounts[1:] }, place(kitTest, nil), 400, catalogue.NoLabAccount},
		{"billing that the state does not have", func(x *shop) {
			linked(x, ownAccount, catalogue.LabAccountActive, func(a *catalogue.LabAccount) {
				a.AllowedBilling = map[catalogue.BillingType][]string{catalogue.ClientBill: {"AZ"}}
			})
		}, place(kitTest, nil), 400, catalogue.BillingStateNotAllowed},
		{"a diagnosis that there is not", nil, place(kitTest, object{"billing_type": "commercial_insurance", "icd_codes": []string{"X"}}), 400, orders.ICDCodeInvalid},
		{"a marker that no insurer pays", func(x *shop) {
			x.registry.NotInsurable = []people.NotInsurable{{Lab: "northlab", ProviderID: "N011", States: []string{"MN"}}}
		}, func(c *fixture) *contract.Reply {
			c.Send(c.t, "PATCH", c.about("info"), anInfo(nil)).Want(c.t, 200)
			c.post(c.about("insurance"), anInsurance(nil), 200)
			return place(walkInTest, object{"billing_type": "commercial_insurance", "icd_codes": []string{"E11.9"}})(c)
		}, 400, orders.MarkerNotInsurable},
		{"nobody to order", func(x *shop) {
			linked(x, ownAccount, catalogue.LabAccountActive, func(a *catalogue.LabAccount) { a.DelegatedFlow = catalogue.OrderDelegated })
		}, place(kitTest, nil), 400, orders.PhysicianRequired},
		{"a consent that was not given", func(x *shop) { x.settings.RequiredConsents = []people.ConsentType{people.TermsOfUse} }, place(kitTest, nil), 400, orders.ConsentRequired},
		{"a question without an answer", nil, place(kitTest, addOn(1009)), 400, catalogue.AOEMissing},
		{"an answer that is none of those allowed", nil, place(kitTest, object{"order_set": addOn(1009)["order_set"], "collection_method": "walk_in_test",
			"aoe_answers": []object{{"marker_id": 1009, "question_id": 5000000001, "answer": "perhaps"}}}), 400, catalogue.AOEInvalid},
		{"a minor without a proxy", minors, place(kitTest, object{"patient_details": aMinor(nil)}), 400, orders.MedicalProxyRequired},
		{"a simulation in production", func(x *shop) { x.options.Environment = healthlab.Production }, of(walkInTest, nil, "POST", "/test", nil), 404, orders.SandboxOnly},
		{"a trial in production", func(x *shop) { x.options.Environment = healthlab.Production }, send("GET", "/v3/unmatched_result_test/case", nil), 404, orders.SandboxOnly},
		{"an import without the switch", func(x *shop) { x.settings.OrderImport = false }, func(c *fixture) *contract.Reply {
			return c.Send(c.t, "POST", "/v3/order/import", object{"user_id": c.user.String(), "billing_type": "client_bill", "collection_method": "walk_in_test",
				"order_set": object{"lab_test_ids": []string{walkInTest}}, "patient_details": aPatient(), "patient_address": object{
					"receiver_name": "Ana", "first_line": "1 Elm", "city": "D", "state": "MN", "zip": "55802", "country": "US"}, "sample_id": "S1"})
		}, 403, catalogue.FeatureNotEnabled},

		{"no such lab", nil, send("GET", "/v3/order/psc/info?zip_code=85201&lab_id=99", nil), 404, catalogue.LabNotFound},
		{"nobody knows of any center", func(x *shop) { x.visits.Centers = nil }, send("GET", "/v3/order/psc/info?zip_code=85201&lab_id=1", nil), 501, appointment.PSCNotAvailable},
		{"a patient without an address", nil, func(c *fixture) *contract.Reply {
			o := c.order("POST", "/v3/order/testkit", object{"user_id": c.user.String(), "lab_test_id": kitTest, "shipping_details": object{
				"receiver_name": "Desk", "first_line": "1 Elm", "city": "Duluth", "state": "MN", "zip": "55802", "country": "US", "phone_number": "+15550100"}})
			return c.Send(c.t, "GET", "/v3/order/"+o.ID.String()+"/psc/info", nil)
		}, 400, visits.PatientAddressMissing},
		{"neither sites nor a postal code", nil, send("POST", centers, nil), 400, appointment.PlaceMissing},
		{"a postal code without a radius", nil, send("POST", centers+"&zip_code=85201&radius=null", nil), 400, appointment.PlaceMissing},
		{"four sites", nil, send("POST", centers+"&site_codes=A&site_codes=B&site_codes=C&site_codes=D", nil), 400, appointment.TooManySites},
		{"a site that there is not", nil, send("POST", centers+"&site_codes=NOWHERE", nil), 400, appointment.SiteUnknown},
		{"scheduling without the switch", func(x *shop) { x.settings.PSCScheduling = false }, send("POST", centers+"&zip_code=85201", nil), 503, appointment.SchedulingNotEnabled},
		{"an installation that books nothing", func(x *shop) { x.visits.BookingKeys = nil }, send("POST", centers+"&zip_code=85201", nil), 501, appointment.AppointmentsNotOffered},
		{"a place where nobody comes", nil, send("POST", home, homeAddress(object{"zip_code": "85001"})), 400, appointment.AreaNotServed},
		{"a house without a number", nil, send("POST", home, homeAddress(object{"first_line": "Elm Rd"})), 400, appointment.StreetNumberMissing},
		{"a provider that takes no requests", nil, of(atHomeTest, nil, "POST", "/phlebotomy/appointment/request",
			object{"address": homeAddress(nil), "provider": "nobody"}), 400, visits.ProviderNotAvailable},
		{"no appointment", nil, of(atHomeTest, nil, "GET", "/phlebotomy/appointment", nil), 404, orders.AppointmentNotFound},
		{"a walk-in order at home", nil, book(walkInTest, "phlebotomy", nil, homeKey), 400, visits.OrderNotBookable},
		{"an order whose lab does not know of it", func(x *shop) { x.settings.PreRequisitionBooking = false }, book(atHomeTest, "phlebotomy", nil, homeKey), 400, visits.OrderNotBookable},
		{"a patient who is too young", minors, book(atHomeTest, "phlebotomy", object{"patient_details": aMinor(object{"medical_proxy": proxy})}, homeKey), 400, visits.PatientTooYoung},
		{"a provider that refuses", func(x *shop) { x.lab = unhappyLab{newBusyLab()} }, book(atHomeTest, "phlebotomy", nil, homeKey), 400, visits.BookingRefused},
		{"a slot at another lab's center", nil, book(walkInTest, "psc", object{"order_set": object{"add_on": object{"marker_ids": []int{2001}}},
			"collection_method": "walk_in_test", "aoe_answers": nil}, centerKey), 400, visits.SlotOfOtherPlace},
		{"a reason that there is not", nil, func(c *fixture) *contract.Reply {
			o := c.order("POST", "/v3/order", c.request(atHomeTest, nil))
			path := "/v3/order/" + o.ID.String() + "/phlebotomy/appointment"
			c.post(path+"/book", object{"booking_key": homeKey(c)}, 200)
			return c.Send(c.t, "PATCH", path+"/cancel", object{"cancellation_reason_id": absent})
		}, 400, visits.CancellationReasonUnknown},
		{"a lab that no longer takes appointments", nil, func(c *fixture) *contract.Reply {
			key := centerKey(c)
			closed := remade(c.t, func(x *shop) { x.visits.Providers = nil })
			return book(walkInTest, "psc", nil, func(*fixture) string { return key })(closed)
		}, 400, appointment.SchedulingNotSupported},

		{"a result that points to nobody alone", nil, unmatched(nil), 422, strings.ToLower(exchange.ReviewNeedsChoice)},
		{"a result for somebody else's order", nil, unmatched(func(c *fixture, o orders.Order) object {
			u, err := c.health.CreateUser(c.t.Context(), team, healthdata.NewUser{ClientUserID: "patient-78"})
			require.NoError(c.t, err)
			return object{"order_id": o.ID.String(), "user_id": u.ID.String()}
		}), 422, strings.ToLower(exchange.ReviewInconsistent)},
		{"a result for somebody of whom nothing is known", nil, unmatched(func(c *fixture, _ orders.Order) object {
			u, err := c.health.CreateUser(c.t.Context(), team, healthdata.NewUser{ClientUserID: "patient-78"})
			require.NoError(c.t, err)
			return object{"user_id": u.ID.String()}
		}), 422, strings.ToLower(exchange.ReviewNotPossible)},
		{"a clearing house that there is not", nil, send("GET", "/v3/insurance/search/payor?provider=house_z&provider_payor_id=1", nil), 422, strings.ToLower(people.ClearingHouseUnknown)},
		{"a marker that comes with another one", func(x *shop) {
			i := slices.IndexFunc(x.book.Markers, func(m catalogue.MarkerComplete) bool { return m.ID == 1011 })
			x.book.Markers[i].IsOrderable = new(bool)
		}, send("POST", "/v3/lab_tests", own("Mine", object{"provider_ids": []string{"N011"}})), 400, catalogue.MarkerNotOrderable},
		{"a lab test that waits for approval", func(x *shop) { x.options.HoldLabTests = true }, func(c *fixture) *contract.Reply {
			var made catalogue.LabTest
			c.post("/v3/lab_tests", own("Mine", nil), 200).JSON(c.t, &made)
			return c.Send(c.t, "PATCH", "/v3/lab_tests/"+made.ID.String(), object{"active": true})
		}, 400, catalogue.LabTestPending},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.shop == nil {
				row.shop = func(*shop) {}
			}
			c := remade(t, row.shop)
			require.Equal(t, row.rule, row.send(c).Want(t, row.status).ErrorType(t))
		})
	}
}

// TestOrderRules_eachHasItsStatusAndErrorType and TestPlacing_eachBrokenRuleHasItsErrorType together test every rule.
func TestOrderRules_everyRuleIsTestedOverHTTP(t *testing.T) {
	names := regexp.MustCompile(`^"[A-Z]+(_[A-Z]+)+"$`)
	var rules []string
	for _, name := range sources(t, "../../orders") {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			consts, ok := d.(*ast.GenDecl)
			if !ok || consts.Tok != token.CONST {
				continue
			}
			for _, s := range consts.Specs {
				v := s.(*ast.ValueSpec)
				if len(v.Values) != 1 || v.Type != nil || !v.Names[0].IsExported() {
					continue
				}
				if text, ok := v.Values[0].(*ast.BasicLit); ok && names.MatchString(text.Value) {
					rules = append(rules, v.Names[0].Name)
				}
			}
		}
	}
	require.Greater(t, len(rules), 70)
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	use := regexp.MustCompile(`\b(?:orders|exchange|visits|people|appointment|simulation|idempotency|portal|catalogue|documents|critical)\.(\w+)`)
	tested := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, m := range use.FindAllSubmatch(text, -1) {
			tested[string(m[1])] = true
		}
	}
	rules = slices.DeleteFunc(rules, func(rule string) bool { return tested[rule] })
	require.Empty(t, rules)
}

// The enumerations of the contract are those of the lifecycles.
func TestContract_enumerationsAreThoseOfTheLifecycles(t *testing.T) {
	type schema struct {
		Enum  []string
		Items *schema
	}
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name   string
				Schema schema
			}
		}
	}
	require.NoError(t, json.Unmarshal(httpapi.OpenAPI(), &doc))
	enum := func(method, path, name string) []string {
		for _, p := range doc.Paths[path][method].Parameters {
			if p.Name != name {
				continue
			}
			if p.Schema.Items != nil {
				return slices.Sorted(slices.Values(p.Schema.Items.Enum))
			}
			return slices.Sorted(slices.Values(p.Schema.Enum))
		}
		return nil
	}
	lows, full, methods := map[string]bool{}, []string{}, []string{}
	for _, s := range orders.Statuses() {
		lows[string(s.LowLevel())] = true
		full = append(full, string(s))
	}
	for _, m := range catalogue.CollectionMethods() {
		methods = append(methods, string(m))
	}
	slices.Sort(full)
	slices.Sort(methods)
	require.Equal(t, slices.Sorted(maps.Keys(lows)), enum("get", "/v3/orders", "status"))
	require.Equal(t, methods, enum("get", "/v3/orders", "order_type"))
	require.Equal(t, full, enum("post", "/v3/order/{order_id}/test", "final_status"))
	// The server takes all of them, and nothing else.
	c := newFixture(t, nil)
	c.get("/v3/orders?status="+strings.Join(slices.Collect(maps.Keys(lows)), "&status=")+"&order_type="+strings.Join(methods, "&order_type="), 200)
	require.Equal(t, []string{"query.status.0", "query.order_type.0"}, c.get("/v3/orders?status=shipped&order_type=by_post", 422).Locs(t))
	path := "/v3/order/" + c.placed().ID.String() + "/test?final_status="
	for _, s := range full {
		c.Send(t, "POST", "/v3/order/"+absent+"/test?final_status="+s, nil).Want(t, 404)
	}
	require.Equal(t, []string{"query.final_status"}, c.Send(t, "POST", path+"received.walk_in_test.shipped", nil).Want(t, 422).Locs(t))
}

// silentMover is a laboratory that does not answer when an appointment gets another time.
type silentMover struct{ *busyLab }

func (silentMover) MoveVisit(context.Context, visits.Booking) (visits.Booked, error) {
	return visits.Booked{}, healthlab.Unavailable
}
