package httpapi_test

import (
	"context"
	"encoding/json"
	"os"
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
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/orders/documents"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/portal"
	"github.com/healthlab-dev/healthlab/orders/simulation"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

// orderPairs are the types of orders and their schemas.
func orderPairs() []contract.Pair {
	return []contract.Pair{
		{Schema: "Order", Value: orders.Order{}},
		{Schema: "OrderResults", Value: orders.OrderResults{}},
		{Schema: "ResultsMetadata", Value: labresult.Metadata{}},
		{Schema: "MissingResult", Value: labresult.Missing{}},
		{Schema: "SampleData", Value: labresult.SampleData{}},
		{Schema: "TransactionDetail", Value: orders.TransactionDetail{}},
		{Schema: "TestkitDetails", Value: orders.TestkitDetails{}},
		{Schema: "VisitDetails", Value: orders.VisitDetails{}},
		{Schema: "OnSiteDetails", Value: orders.OnSiteDetails{}},
		{Schema: "PlaceRequest", Value: orders.PlaceRequest{}, Input: true},
		{Schema: "CreateRequest", Value: orders.CreateRequest{}, Input: true},
		{Schema: "ImportRequest", Value: orders.ImportRequest{}, Input: true},
		{Schema: "TestkitRequest", Value: orders.TestkitRequest{}, Input: true},
		{Schema: "RegisterRequest", Value: orders.RegisterRequest{}, Input: true},
		{Schema: "AreaInfo", Value: appointment.AreaInfo{}},
		{Schema: "PSCInfo", Value: appointment.PSCInfo{}},
		{Schema: "AvailabilitySlots", Value: appointment.AvailabilitySlots{}},
		{Schema: "Appointment", Value: orders.Appointment{}},
		{Schema: "CancellationReason", Value: appointment.CancellationReason{}},
		{Schema: "BookRequest", Value: visits.BookRequest{}, Input: true},
		{Schema: "VisitRequest", Value: visits.VisitRequest{}, Input: true},
		{Schema: "ResendRequest", Value: orders.ResendRequest{}, Input: true},
	}
}

// idleLab is a laboratory that takes everything and never reports.
type idleLab struct{}

func (idleLab) Submit(_ context.Context, s exchange.Submission) (exchange.Accepted, error) {
	return exchange.Accepted{SampleID: "S-" + s.Order.ID.String()}, nil
}

func (idleLab) Cancel(context.Context, healthlab.TeamID, orders.OrderID) error { return nil }

func (idleLab) Updates(context.Context, string, int) (exchange.Batch, error) {
	return exchange.Batch{}, nil
}

// The lab tests of the catalogue, one for each way to collect a sample.
const (
	kitTest    = "5ab0c1d2-0000-4000-8000-000000000001"
	walkInTest = "5ab0c1d2-0000-4000-8000-000000000002"
	onSiteTest = "5ab0c1d2-0000-4000-8000-000000000004"
	absent     = "5ab0c1d2-0000-4000-8000-0000000000ff"
	// pendingAccount is linked to the other team and not active yet.
	pendingAccount = "5ab0c1d2-0000-4000-8000-1000000000aa"
)

// portalKey signs links to the portal.
var portalKey = []byte("0123456789abcdef0123456789abcdef")

// shop is what the service of orders is made of.
type shop struct {
	book     catalogue.StaticCatalogContents
	registry people.RegistryContents
	lab      exchange.LabBackend
	store    orders.Store
	settings orders.Settings // of the clinic's own team
	options  orders.Options
	exchange exchange.Options
	visits   visits.Options
	printer  documents.Printer
}

// makeOrders serves orders over a store, with the catalogue of the sandbox lab. The other team
// has an account that is pending. Edits change what the service is made of.
func (c *fixture) makeOrders(store *memory.Store, edits ...func(*shop)) {
	t := c.t
	t.Helper()
	x := shop{lab: newBusyLab(), store: store.Orders(), printer: titles{}}
	read := func(name string, into any) {
		text, err := os.ReadFile("../sandbox/" + name)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, into))
	}
	read("lab_catalogue.json", &x.book)
	read("lab_registry.json", &x.registry)
	linked := x.book.Accounts[0]
	linked.ID, linked.Status = catalogue.LabAccountID{UUID: uuid.MustParse(pendingAccount)}, catalogue.LabAccountPending
	linked.TeamIDAllowlist = []healthlab.TeamID{otherTeam}
	x.book.Accounts = append(x.book.Accounts, linked)
	seal, err := healthlab.NewAESSealer("test", map[string][]byte{"test": make([]byte, 32)})
	require.NoError(t, err)
	links, err := documents.NewLinks("https://lab.example.com"+httpapi.RequisitionFormPath, seal)
	require.NoError(t, err)
	x.settings = orders.Settings{OnSiteCollection: true, OrderImport: true, InsuranceRead: true, OwnPayors: true, UnmatchedResults: true,
		UnmatchedTestRuns: true, CompendiumTools: true, PSCScheduling: true,
		PreRequisitionBooking: true, CachedAvailability: true, BookingIdempotency: true, AsyncConfirmation: true}
	x.options = orders.Options{
		Environment: healthlab.Sandbox, LabTests: store.LabTests(),
		Background: orders.Background{Now: func() time.Time { return fixtureNow }, Log: c.logs.Logger()},
		Files:      store.Blobs(),
		Physicians: func(context.Context, healthlab.TeamID) ([]people.Physician, error) {
			return []people.Physician{{FirstName: "Cy", LastName: "Vale", NPI: "1"}}, nil
		},
		People: store.Persons(), Portal: &portal.Options{BaseURL: "https://portal.example.com", Key: portalKey},
		Settings: func(_ context.Context, of healthlab.TeamID) (orders.Settings, error) {
			if of == team {
				return x.settings, nil
			}
			return orders.Settings{OnSiteCollection: true, OrderImport: true, PSCScheduling: true, PreRequisitionBooking: true,
				CachedAvailability: true, BookingIdempotency: true, AsyncConfirmation: true}, nil
		},
	}
	x.exchange = exchange.Options{RequisitionURL: links.URL, Simulator: simulation.Lab{}}
	x.visits = visits.Options{
		Centers: somePlaces(t), Zips: mesaOnly{}, BookingKeys: seal, SlotCache: store.SlotCache(),
		Providers: []appointment.Provider{{Slug: "northlab", Type: appointment.PatientServiceCenter}},
	}
	for _, edit := range edits {
		edit(&x)
	}
	x.visits.Slots, _ = x.lab.(appointment.SlotBackend)
	x.visits.Bookings, _ = x.lab.(visits.Backend)
	book, err := catalogue.NewStaticCatalog(x.book)
	require.NoError(t, err)
	x.options.Registry, err = people.NewRegistry(x.registry)
	require.NoError(t, err)
	c.config.Orders, err = orders.New(x.store, c.health, book, &x.options)
	require.NoError(t, err)
	c.config.Exchange, err = exchange.New(c.config.Orders, x.store, store.Reviews(), x.lab, &x.exchange)
	require.NoError(t, err)
	c.config.Visits, err = visits.New(c.config.Orders, x.store, &x.visits)
	require.NoError(t, err)
	c.config.Critical, err = critical.New(store.CriticalResults(), &critical.Options{Now: x.options.Now, Log: x.options.Log})
	require.NoError(t, err)
	c.config.Idempotency = idempotency.New(store.OrderKeys(), nil)
	c.config.Documents = documents.New(c.config.Orders, x.printer, &documents.Options{Links: links, Now: x.options.Now})
	c.config.MatchTests, err = simulation.NewMatchTests(c.config.Exchange, store.MatchTestRuns(), &simulation.MatchTestOptions{
		User: func(ctx context.Context, team healthlab.TeamID, name string) (healthlab.UserID, error) {
			u, err := c.health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: name})
			return u.ID, err
		},
		Now: x.options.Now, Log: x.options.Log,
	})
	require.NoError(t, err)
}

func aPatient() object {
	return object{"first_name": "Ana", "last_name": "Ray", "dob": "1988-03-07", "gender": "female",
		"phone_number": "+15550100", "email": "ana@example.com"}
}

func anAddress() object {
	return object{"first_line": "1 Elm Street", "city": "Duluth", "state": "MN", "zip": "55802", "country": "US"}
}

// request is the body of an order for the fixture's user; edits are top-level keys, nil
// takes one away.
func (c *fixture) request(test string, edits object) object {
	body := object{"user_id": c.user.String(), "order_set": object{"lab_test_ids": []string{test}},
		"patient_details": aPatient(), "patient_address": anAddress()}
	if test == walkInTest {
		body["aoe_answers"] = []object{{"marker_id": 1001, "question_id": 5000000002, "answer": "Y"}}
	}
	for k, v := range edits {
		body[k] = v
		if v == nil {
			delete(body, k)
		}
	}
	return body
}

type orderAnswer struct {
	Order   orders.Order
	Status  string
	Message string
}

// order sends a body that makes or changes an order.
func (c *fixture) order(method, path string, body any) orders.Order {
	c.t.Helper()
	var out orderAnswer
	c.Send(c.t, method, path, body).Want(c.t, 200).JSON(c.t, &out)
	require.Equal(c.t, "success", out.Status)
	require.NotEmpty(c.t, out.Message)
	return out.Order
}

func (c *fixture) placed() orders.Order {
	c.t.Helper()
	return c.order("POST", "/v3/order", c.request(walkInTest, nil))
}

func (c *fixture) refused(method, path string, body any, status int, rule string) {
	c.t.Helper()
	require.Equal(c.t, rule, c.Send(c.t, method, path, body).Want(c.t, status).ErrorType(c.t))
}

func TestOrder_goesFromPlacementToResult(t *testing.T) {
	c := newFixture(t, nil)
	o := c.placed()
	require.Equal(t, orders.Ordered, o.LowLevel())
	require.Equal(t, c.user, o.UserID)
	require.Equal(t, "55802", o.PatientAddress.Zip)
	path := "/v3/order/" + o.ID.String()
	c.refused("GET", path+"/result", nil, 404, orders.ResultNotFound)
	c.refused("GET", path+"/result/metadata", nil, 404, orders.ResultNotFound)
	journey := "/v3/order_transaction/" + o.OrderTransaction.ID.String()
	c.refused("GET", journey+"/result", nil, 404, orders.ResultNotFound)

	reply := c.Send(t, "POST", path+"/test", object{"interpretation": "abnormal", "has_missing_results": true}).Want(t, 200)
	require.Equal(t, "null", string(reply.Body))
	var got orders.Order
	c.get(path, 200).JSON(t, &got)
	require.Equal(t, orders.Completed, got.LowLevel())
	require.Equal(t, got.Events[len(got.Events)-1], got.LastEvent)
	var results, all orders.OrderResults
	c.get(path+"/result", 200).JSON(t, &results)
	require.NotEmpty(t, results.Results)
	require.Len(t, results.MissingResults, 1)
	var head labresult.Metadata
	c.get(path+"/result/metadata", 200).JSON(t, &head)
	require.Equal(t, results.Metadata, head)
	c.get(journey+"/result", 200).JSON(t, &all)
	require.Equal(t, results.Results, all.Results)
	var detail orders.TransactionDetail
	c.get(journey, 200).JSON(t, &detail)
	require.Equal(t, orders.TransactionCompleted, detail.Status)
	require.Equal(t, orders.Completed, *detail.Orders[0].LastStatus)
}

func TestKitOrder_isRegisteredByItsSampleID(t *testing.T) {
	c := newFixture(t, nil)
	kit := object{"user_id": c.user.String(), "lab_test_id": kitTest, "shipping_details": object{
		"receiver_name": "Front Desk", "first_line": "2 Elm Street", "city": "Duluth", "state": "MN",
		"zip_code": "55802-1234", "country": "US", "phone_number": "+15550101"}}
	o := c.order("POST", "/v3/order/testkit", kit)
	require.Nil(t, o.PatientDetails)
	require.Equal(t, "55802-1234", o.ShippingDetails.Zip)
	require.Equal(t, orders.AwaitingRegistration, o.LowLevel())
	_, err := c.config.Exchange.SubmitDue(t.Context())
	require.NoError(t, err)
	var shipped orders.Order
	c.get("/v3/order/"+o.ID.String(), 200).JSON(t, &shipped)

	register := object{"sample_id": *shipped.SampleID, "patient_details": aPatient(), "patient_address": anAddress()}
	registered := c.order("POST", "/v3/order/testkit/register", register)
	require.Equal(t, orders.Registered, registered.LowLevel())
	require.Equal(t, "Ana", *registered.PatientDetails.FirstName)
	c.refused("POST", "/v3/order/testkit/register", register, 400, orders.KitNotRegistrable)
	register["sample_id"] = "nobody's"
	c.refused("POST", "/v3/order/testkit/register", register, 404, orders.KitNotFound)
	require.Equal(t, orders.KitNotFound, c.With("x-service-api-key", "other").
		Send(t, "POST", "/v3/order/testkit/register", register).Want(t, 404).ErrorType(t))
	kit["lab_test_id"] = walkInTest
	c.refused("POST", "/v3/order/testkit", kit, 400, catalogue.MethodNotSupported)
}

func TestOrders_ofOtherTeamsAreNotFound(t *testing.T) {
	c := newFixture(t, nil)
	o := c.placed()
	other := c.With("x-service-api-key", "other")
	path := "/v3/order/" + o.ID.String()
	for _, call := range []struct {
		method, path string
		body         any
		rule         string
	}{
		{"GET", path, nil, orders.OrderNotFound},
		{"GET", path + "/result", nil, orders.OrderNotFound},
		{"GET", path + "/result/metadata", nil, orders.OrderNotFound},
		{"PATCH", path, object{"activate_by": nil}, orders.OrderNotFound},
		{"POST", path + "/cancel", nil, orders.OrderNotFound},
		{"PATCH", path + "/draw_completed", nil, orders.OrderNotFound},
		{"POST", path + "/test", nil, orders.OrderNotFound},
		{"GET", "/v3/order_transaction/" + o.OrderTransaction.ID.String(), nil, orders.TransactionNotFound},
		{"GET", "/v3/order_transaction/" + o.OrderTransaction.ID.String() + "/result", nil, orders.TransactionNotFound},
	} {
		reply := other.Send(t, call.method, call.path, call.body).Want(t, 404)
		require.Equal(t, call.rule, reply.ErrorType(t), "%s %s", call.method, call.path)
	}
	var page struct {
		Orders []orders.Order
		Total  int
	}
	other.Send(t, "GET", "/v3/orders", nil).Want(t, 200).JSON(t, &page)
	require.Empty(t, page.Orders)
	require.Zero(t, page.Total)
	var resent struct {
		OrderIDs []string `json:"order_ids"`
	}
	other.Send(t, "POST", "/v3/order/resend_events", object{"order_ids": []string{o.ID.String()}}).Want(t, 200).JSON(t, &resent)
	require.Empty(t, resent.OrderIDs)
	require.Equal(t, "UNAUTHORIZED", c.With("x-service-api-key", "nobody").Send(t, "GET", path, nil).Want(t, 401).ErrorType(t))
}

func TestPlacing_eachBrokenRuleHasItsErrorType(t *testing.T) {
	c := newFixture(t, nil)
	minor := aPatient()
	minor["dob"] = "2015-01-01"
	add := func(method string, markers ...int) object {
		return object{"order_set": object{"add_on": object{"marker_ids": markers}}, "collection_method": method}
	}
	for _, row := range []struct {
		name  string
		test  string
		edits object
		want  int
		rule  string
	}{
		{"user of another team", walkInTest, object{"user_id": c.foreign.String()}, 404, people.UserNotFound},
		{"nothing selected", walkInTest, object{"order_set": nil}, 400, catalogue.NoTestsSelected},
		{"empty set", walkInTest, object{"order_set": object{}}, 400, catalogue.NoTestsSelected},
		{"two selections", walkInTest, object{"lab_test_id": walkInTest}, 400, catalogue.ConflictingSelection},
		{"add-on without a method", walkInTest, object{"order_set": object{"add_on": object{"marker_ids": []int{1011}}}}, 400, catalogue.AddOnRequiresMethod},
		{"add-on without ids", kitTest, add("walk_in_test"), 400, catalogue.AddOnIDsMissing},
		{"add-on with both ids", kitTest, object{"collection_method": "walk_in_test", "order_set": object{
			"add_on": object{"marker_ids": []int{1011}, "provider_ids": []string{"N011"}}}}, 400, catalogue.AddOnIDsConflict},
		{"no such test", absent, nil, 404, catalogue.LabTestNotFound},
		{"two labs", kitTest, add("walk_in_test", 1011, 2001), 400, catalogue.MultipleLabs},
		{"method of another lab", kitTest, add("testkit", 2002), 400, catalogue.MethodNotSupported},
		{"no such marker", kitTest, add("walk_in_test", 99), 400, catalogue.MarkerNotFound},
		{"account of another team", kitTest, object{"lab_account_id": pendingAccount}, 404, catalogue.LabAccountNotFound},
		{"billing", kitTest, object{"billing_type": "patient_bill_passthrough"}, 400, catalogue.BillingTypeNotAllowed},
		{"insurer without a code", kitTest, object{"billing_type": "commercial_insurance"}, 400, orders.ICDCodesRequired},
		{"insurer without insurance", kitTest, object{"billing_type": "commercial_insurance", "icd_codes": []string{"E11.9"}}, 400, orders.InsuranceMissing},
		{"minor", kitTest, object{"patient_details": minor}, 400, orders.MinorNotAllowed},
		{"foreign answer", kitTest, object{"aoe_answers": []object{{"marker_id": 1, "question_id": 1, "answer": "Y"}}}, 400, catalogue.AOEInvalid},
		{"in the past", kitTest, object{"activate_by": "2026-03-03"}, 400, orders.ActivateByInPast},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, path := range []string{"/v3/order", "/v3/order/create"} {
				require.Equal(t, row.rule, c.Send(t, "POST", path, c.request(row.test, row.edits)).Want(t, row.want).ErrorType(t))
			}
		})
	}
	var page struct{ Total int }
	c.get("/v3/orders", 200).JSON(t, &page)
	require.Zero(t, page.Total, "a refusal stored an order")
}

func TestPlacing_invalidFieldsAreReportedByPath(t *testing.T) {
	c := newFixture(t, nil)
	patient, address := aPatient(), anAddress()
	patient["first_name"], patient["email"], patient["dob"] = " Ana", "nobody", "2030-01-01"
	address["zip"], address["zip_code"] = "5580", "55802"
	body := c.request(walkInTest, object{"patient_details": patient, "patient_address": address,
		"billing_type": "barter", "clinical_notes": strings.Repeat("é", 1001)})
	reply := c.post("/v3/order", body, 422)
	require.ElementsMatch(t, []string{"body.patient_details.first_name", "body.patient_details.email", "body.patient_details.dob",
		"body.patient_address.zip", "body.patient_address.zip_code", "body.billing_type", "body.clinical_notes"}, reply.Locs(t))
	require.NotContains(t, string(reply.Body), "5580")

	for name, row := range map[string]struct {
		body any
		locs []string
	}{
		"no body":      {`{}`, []string{"body.patient_address", "body.patient_details", "body.user_id"}},
		"unknown key":  {c.request(walkInTest, object{"zipcode": "1"}), []string{"body.zipcode"}},
		"no zip":       {c.request(walkInTest, object{"patient_address": object{"first_line": "1", "city": "D", "state": "MN", "country": "US"}}), []string{"body.patient_address.zip"}},
		"a bad method": {c.request(walkInTest, object{"collection_method": "by_post"}), []string{"body.collection_method"}},
	} {
		locs := c.post("/v3/order", row.body, 422).Locs(t)
		slices.Sort(locs)
		require.Equal(t, row.locs, locs, name)
	}
	require.Equal(t, []string{"path.order_id"}, c.get("/v3/order/7", 422).Locs(t))
}

func TestAddress_acceptsZipAndZipCode(t *testing.T) {
	c := newFixture(t, nil)
	address := anAddress()
	delete(address, "zip")
	address["zip_code"] = "55802-0001"
	for _, path := range []string{"/v3/order", "/v3/order/create"} {
		o := c.order("POST", path, c.request(kitTest, object{"patient_address": address}))
		require.Equal(t, "55802-0001", o.PatientAddress.Zip)
	}
	proxy := object{"first_name": "Bo", "last_name": "Ray", "phone_number": "+15550102", "address": address}
	patient := aPatient()
	patient["medical_proxy"] = proxy
	o := c.order("POST", "/v3/order", c.request(kitTest, object{"patient_details": patient}))
	require.Equal(t, "55802-0001", o.PatientDetails.MedicalProxy.Address.Zip)
	body := string(c.get("/v3/order/"+o.ID.String(), 200).Body)
	require.Contains(t, body, `"zip":"55802-0001","country":"US","access_notes":null,"zip_code":"55802-0001"`, "a guarantor's address has both")
	require.Equal(t, 1, strings.Count(body, "zip_code"))
}

func TestCancelOrder_succeedsOnlyOnce(t *testing.T) {
	c := newFixture(t, nil)
	o := c.placed()
	got := c.order("POST", "/v3/order/"+o.ID.String()+"/cancel", nil)
	require.Equal(t, orders.Cancelled, got.LowLevel())
	c.refused("POST", "/v3/order/"+o.ID.String()+"/cancel", nil, 400, orders.CancelNotAllowed)
	c.refused("POST", "/v3/order/"+absent+"/cancel", nil, 404, orders.OrderNotFound)
}

func TestDrawCompleted_isAllowedOnceAfterSubmission(t *testing.T) {
	c := newFixture(t, nil)
	o := c.order("POST", "/v3/order", c.request(onSiteTest, nil))
	path := "/v3/order/" + o.ID.String() + "/draw_completed"
	c.refused("PATCH", path, nil, 400, orders.TransitionNotAllowed)
	_, err := c.config.Exchange.SubmitDue(t.Context())
	require.NoError(t, err)
	require.Equal(t, orders.DrawCompleted, c.order("PATCH", path, nil).LowLevel())
	c.refused("PATCH", path, nil, 400, orders.TransitionNotAllowed)
	c.refused("PATCH", "/v3/order/"+c.placed().ID.String()+"/draw_completed", nil, 400, catalogue.MethodNotSupported)
}

func TestScheduledOrder_activationDateCanMoveUntilActivation(t *testing.T) {
	c := newFixture(t, nil)
	o := c.order("POST", "/v3/order", c.request(walkInTest, object{"activate_by": "2026-04-01"}))
	path := "/v3/order/" + o.ID.String()
	require.Equal(t, "2026-05-01", c.order("PATCH", path, object{"activate_by": "2026-05-01"}).ActivateBy.String())
	c.refused("PATCH", path, object{"activate_by": "2026-03-03"}, 400, orders.ActivateByInPast)
	require.Equal(t, []string{"body.activate_by"}, c.Send(t, "PATCH", path, object{}).Want(t, 422).Locs(t))
	require.Nil(t, c.order("PATCH", path, object{"activate_by": nil}).ActivateBy)
	require.NotNil(t, c.order("PATCH", path, object{"activate_by": "2026-03-04"}).ActivateBy, "it was created with a day")
	c.refused("PATCH", "/v3/order/"+c.placed().ID.String(), object{"activate_by": nil}, 400, orders.OrderNotScheduled)
	c.Send(t, "POST", path+"/test", nil).Want(t, 200)
	c.refused("PATCH", path, object{"activate_by": nil}, 400, orders.OrderNotModifiable)
}

func TestReplacement_isInTheTransactionOfItsParent(t *testing.T) {
	c := newFixture(t, nil)
	parent := c.placed()
	child := c.order("POST", "/v3/order/create", c.request(kitTest, object{"parent_id": parent.ID.String(), "update_reason": "INCORRECT_LAB"}))
	require.Equal(t, orders.OriginRecreation, child.Origin)
	require.Equal(t, parent.OrderTransaction.ID, child.OrderTransaction.ID)
	require.Equal(t, parent.ID, *child.Parent())
	var got orders.Order
	c.get("/v3/order/"+parent.ID.String(), 200).JSON(t, &got)
	require.Equal(t, orders.Cancelled, got.LowLevel())
	c.refused("POST", "/v3/order/create", c.request(kitTest, object{"parent_id": parent.ID.String()}), 400, orders.AlreadyRecreated)
	c.refused("POST", "/v3/order/create", c.request(kitTest, object{"parent_id": absent}), 404, orders.OrderNotFound)
	require.Equal(t, []string{"body.update_reason"}, c.post("/v3/order/create", c.request(kitTest, object{"update_reason": "INCORRECT_LAB"}), 422).Locs(t))
	require.Equal(t, []string{"body.parent_id"}, c.post("/v3/order", c.request(kitTest, object{"parent_id": absent}), 422).Locs(t))
}

func TestOrderImport_refusesAUsedSampleIDAndAcceptsAPendingAccount(t *testing.T) {
	c := newFixture(t, nil)
	body := object{"user_id": c.user.String(), "billing_type": "client_bill", "collection_method": "walk_in_test",
		"order_set":       object{"add_on": object{"provider_ids": []string{"N011"}}},
		"patient_details": aPatient(), "sample_id": "REQ-1",
		"patient_address": object{"receiver_name": "Ana", "first_line": "1 Elm Street", "city": "Duluth", "state": "MN", "zip": "unknown", "country": "US"}}
	o := c.order("POST", "/v3/order/import", body)
	require.Equal(t, orders.RequisitionBypassed, o.LowLevel())
	require.Equal(t, "REQ-1", *o.SampleID)
	require.Equal(t, "unknown", o.PatientAddress.Zip)
	require.Equal(t, []string{"body.sample_id"}, c.post("/v3/order/import", body, 422).Locs(t))
	require.ElementsMatch(t, []string{"body.user_id", "body.billing_type", "body.order_set", "body.collection_method",
		"body.patient_details", "body.patient_address", "body.sample_id"}, c.post("/v3/order/import", `{}`, 422).Locs(t))
	body["sample_id"], body["user_id"] = "REQ-2", absent
	c.refused("POST", "/v3/order/import", body, 404, people.UserNotFound)

	// The account of the other team is pending: enough for an import, not for an order.
	other := c.With("x-service-api-key", "other")
	body["user_id"] = c.foreign.String()
	other.Send(t, "POST", "/v3/order/import", body).Want(t, 200)
	place := c.request(kitTest, object{"user_id": c.foreign.String(), "lab_account_id": pendingAccount})
	require.Equal(t, catalogue.LabAccountNotActive, other.Send(t, "POST", "/v3/order/create", place).Want(t, 400).ErrorType(t))
	delete(place, "lab_account_id")
	require.Equal(t, catalogue.NoActiveLabAccount, other.Send(t, "POST", "/v3/order", place).Want(t, 400).ErrorType(t))
}

func TestResendEvents_selectsByOrderOrTimeWindow(t *testing.T) {
	c := newFixture(t, nil)
	one, two := c.placed(), c.placed()
	ids := func(body object) []string {
		var out struct {
			OrderIDs []string `json:"order_ids"`
		}
		c.post("/v3/order/resend_events", body, 200).JSON(t, &out)
		return out.OrderIDs
	}
	require.ElementsMatch(t, []string{one.ID.String(), two.ID.String()}, ids(object{"start_at": "2026-03-01T00:00:00Z"}))
	require.Equal(t, []string{two.ID.String()}, ids(object{"order_ids": []string{two.ID.String(), absent}, "start_at": "2026-03-01T00:00:00Z"}))
	require.Empty(t, ids(object{"start_at": "2026-03-01T00:00:00Z", "end_at": "2026-03-02T00:00:00Z"}))
	const path = "/v3/order/resend_events"
	c.refused("POST", path, object{"end_at": "2026-03-01T00:00:00Z"}, 400, orders.ResendSelectionMissing)
	c.refused("POST", path, object{"start_at": "2026-03-02T00:00:00Z", "end_at": "2026-03-01T00:00:00Z"}, 400, orders.ResendWindowInvalid)
	c.refused("POST", path, object{"start_at": "2025-12-01T00:00:00Z"}, 400, orders.ResendWindowInvalid)
	require.Equal(t, []string{"body.order_ids.0"}, c.post(path, object{"order_ids": []string{"x"}}, 422).Locs(t))
}

func TestSimulation_refusesUnreachableStatuses(t *testing.T) {
	c := newFixture(t, nil)
	path := "/v3/order/" + c.placed().ID.String() + "/test"
	c.refused("POST", path+"?final_status=received.testkit.ordered", nil, 400, orders.StatusOfOtherMethod)
	require.Equal(t, []string{"body.interpretation"}, c.post(path, object{"interpretation": "fine"}, 422).Locs(t))
	c.Send(t, "POST", path+"?final_status=received.walk_in_test.requisition_created", nil).Want(t, 200)
	c.refused("POST", path+"?final_status=received.walk_in_test.ordered", nil, 400, orders.StatusNotReachable)
}

func TestOrders_areFilteredSortedAndPaged(t *testing.T) {
	c := newFixture(t, nil)
	patient := aPatient()
	patient["first_name"], patient["last_name"] = "Zoe", "Abel"
	first := c.placed()
	second := c.order("POST", "/v3/order", c.request(kitTest, object{"patient_details": patient, "activate_by": "2026-04-01"}))
	c.Send(t, "POST", "/v3/order/"+first.ID.String()+"/test", object{"interpretation": "critical"}).Want(t, 200)
	both := []orders.OrderID{first.ID, second.ID}
	for query, want := range map[string][]orders.OrderID{
		"":                       both,
		"order_key=patient_name": {second.ID, first.ID},
		"order_key=patient_name&order_direction=desc":                 {first.ID, second.ID},
		"order_key=last_status":                                       {first.ID, second.ID},
		"search_input=" + second.ID.String():                          {second.ID},
		"search_input=zoe":                                            {second.ID},
		"search_input=1988-03":                                        both,
		"patient_name=ana":                                            {first.ID},
		"is_critical=true":                                            {first.ID},
		"is_critical=false":                                           {second.ID},
		"interpretation=critical":                                     {first.ID},
		"status=completed&status=cancelled":                           {first.ID},
		"order_type=testkit":                                          {second.ID},
		"order_activation_types=scheduled":                            {second.ID},
		"order_activation_types=current":                              {first.ID},
		"order_ids=" + first.ID.String():                              {first.ID},
		"user_id=" + c.user.String():                                  both,
		"user_id=" + c.foreign.String():                               {},
		"order_transaction_id=" + second.OrderTransaction.ID.String(): {second.ID},
		// A day alone is its beginning; as the end of creation, all of it.
		"start_date=2026-03-04&end_date=2026-03-04": both,
		"start_date=2026-03-05":                     {},
		"end_date=2026-03-03":                       {},
		"end_date=2026-03-04T12:00:00Z":             both,
		"end_date=2026-03-04T11:59:59Z":             {},
		"updated_start_date=2026-03-04":             both,
		"updated_end_date=2026-03-04":               {},
		"updated_end_date=2026-03-05":               both,
		"page=2&size=50":                            {},
	} {
		var page struct {
			Orders            []orders.Order
			Total, Page, Size int
		}
		c.get("/v3/orders?"+query, 200).JSON(t, &page)
		got := []orders.OrderID{}
		for _, o := range page.Orders {
			got = append(got, o.ID)
		}
		if strings.Contains(query, "order_key") {
			require.Equal(t, want, got, query)
		} else {
			require.ElementsMatch(t, want, got, query)
		}
	}
	require.ElementsMatch(t, []string{"query.page", "query.size", "query.is_critical", "query.user_id", "query.start_date", "query.orderkey"},
		c.get("/v3/orders?page=0&size=101&is_critical=perhaps&user_id=7&start_date=soon&orderkey=x", 422).Locs(t))
	require.ElementsMatch(t, []string{"query.order_key", "query.order_direction", "query.status.0", "query.order_type.0", "query.interpretation"},
		c.get("/v3/orders?order_key=x&order_direction=x&status=x&order_type=x&interpretation=x", 422).Locs(t))
}

// Errors and logs of refused orders have no value of the patient.
func TestOrderErrors_containNoValueOfThePatient(t *testing.T) {
	c := newFixture(t, nil)
	const mark = "Qzmarker"
	patient := aPatient()
	patient["first_name"], patient["last_name"], patient["email"] = mark, mark, mark+"1@example.com"
	address := anAddress()
	address["first_line"], address["access_notes"] = mark+"2", mark
	rest := object{"patient_details": patient, "patient_address": address, "passthrough": mark, "clinical_notes": mark}
	with := func(edits object) object {
		body := c.request(walkInTest, rest)
		for k, v := range edits {
			body[k] = v
		}
		return body
	}
	o := c.order("POST", "/v3/order", with(nil))
	for _, call := range []struct {
		method, path string
		body         any
	}{
		{"POST", "/v3/order", with(object{"order_set": object{"lab_test_ids": []string{absent}}})},
		{"POST", "/v3/order", with(object{"aoe_answers": []object{}, "billing_type": mark})},
		{"POST", "/v3/order", with(object{"order_set": object{"add_on": object{"provider_ids": []string{mark}}}, "collection_method": "testkit"})},
		{"POST", "/v3/order/create", with(object{"parent_id": absent})},
		{"POST", "/v3/order/import", with(object{"sample_id": mark})},
		{"POST", "/v3/order/testkit/register", object{"sample_id": mark, "patient_details": patient, "patient_address": address}},
		{"GET", "/v3/orders?patient_name=" + mark + "&page=0", nil},
		{"POST", "/v3/order/" + o.ID.String() + "/test?final_status=" + mark, nil},
		{"GET", "/v3/order/" + mark, nil},
	} {
		reply := c.Send(t, call.method, call.path, call.body)
		require.GreaterOrEqual(t, reply.Status, 400, "%s %s", call.method, call.path)
		require.NotContains(t, string(reply.Body), mark)
	}
	require.NotContains(t, c.logs.Take(), mark)
}
