package orders_test

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/simulation"
	"github.com/healthlab-dev/healthlab/orders/visits"
	"github.com/healthlab-dev/healthlab/webhook"
)

// fixture is a whole ordering service with a laboratory, on a clock that only moves when
// it is told to.
type fixture struct {
	services
	visits *visits.Service
	t      testing.TB
	store  *memory.Store
	lab    *sandbox.Lab
	opts   *options
	more   []catalogue.LabAccount // beside those of the book
	team   healthlab.TeamID
	user   healthlab.UserID

	mu       sync.Mutex
	at       time.Time
	settings orders.Settings
	users    map[healthlab.UserID]bool
	ids      []uuid.UUID // every id that the service made
}

// options are those of all services of orders.
type options struct {
	orderOptions
	exchangeOptions
	visitOptions
}

type (
	orderOptions    = orders.Options
	exchangeOptions = exchange.Options
	visitOptions    = visits.Options
	exchangeService = exchange.Service
)

// services are those of orders and of their exchange with a laboratory.
type services struct {
	*orders.Service
	*exchangeService
}

// Run is the background work of both.
func (s services) Run(ctx context.Context) error {
	return work.Together(ctx, []work.Part{{Name: "patient messages", Run: s.PatientMessages().Run}, {Name: "exchange", Run: s.exchangeService.Run}})
}

func (d *fixture) newServices(cat catalogue.Source, lab exchange.LabBackend, opts *options) (services, error) {
	service, err := orders.New(d.store.Orders(), people.UsersFunc(d.hasUser), cat, &opts.orderOptions)
	if err != nil {
		return services{}, err
	}
	labs, err := exchange.New(service, d.store.Orders(), d.store.Reviews(), lab, &opts.exchangeOptions)
	return services{service, labs}, err
}

// day is how long everything takes at the sandbox lab.
const day = 24 * time.Hour

func newFixture(t testing.TB, edit ...func(*options)) *fixture {
	t.Helper()
	d := &fixture{
		t: t, at: noon, team: healthlab.TeamID{UUID: id("team")}, user: healthlab.UserID{UUID: id("user")},
		users: map[healthlab.UserID]bool{{UUID: id("user")}: true, {UUID: id("patient")}: true},
	}
	d.store = memory.New(&memory.Options{Now: d.now, UsersElsewhere: true})
	d.lab = sandbox.NewLab(&sandbox.LabOptions{Now: d.now, Step: day})
	opts := &options{orderOptions: orders.Options{
		Environment: healthlab.Sandbox, People: d.store.Persons(),
		Settings: func(context.Context, healthlab.TeamID) (orders.Settings, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.settings, nil
		},
		Background: orders.Background{Log: slog.New(slog.DiscardHandler), Now: d.now, NewID: func() uuid.UUID {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.ids = append(d.ids, uuid.Must(uuid.NewV7()))
			return d.ids[len(d.ids)-1]
		}},
	}, exchangeOptions: exchange.Options{Simulator: simulation.Lab{}}}
	for _, e := range edit {
		e(opts)
	}
	d.opts = opts
	d.restart()
	return d
}

func (d *fixture) restart() {
	d.t.Helper()
	var err error
	d.services, err = d.newServices(book(d.t, d.more...), d.lab, d.opts)
	require.NoError(d.t, err)
	d.opts.Slots, d.opts.Bookings = d.lab, d.lab
	d.visits, err = visits.New(d.Service, d.store.Orders(), &d.opts.visitOptions)
	require.NoError(d.t, err)
}

func (d *fixture) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at
}

func (d *fixture) hasUser(_ context.Context, team healthlab.TeamID, id healthlab.UserID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if team != d.team || !d.users[id] {
		return healthlab.NotFound
	}
	return nil
}

// advance does all background work that is due, before the clock moves and after.
func (d *fixture) advance(by time.Duration) {
	d.t.Helper()
	d.work()
	d.mu.Lock()
	d.at = d.at.Add(by)
	d.mu.Unlock()
	d.work()
}

func (d *fixture) work() {
	d.t.Helper()
	for {
		n, err := d.SubmitDue(d.t.Context())
		require.NoError(d.t, err)
		m, err := d.PullUpdates(d.t.Context())
		require.NoError(d.t, err)
		v, err := d.visits.ProcessDue(d.t.Context())
		require.NoError(d.t, err)
		if n+m+v == 0 {
			return
		}
	}
}

func (d *fixture) get(o orders.Order) orders.Order {
	d.t.Helper()
	got, err := d.Get(d.t.Context(), d.team, o.ID)
	require.NoError(d.t, err)
	checkOrder(d.t, got)
	return got
}

// history is the low-level statuses of an order.
func history(o orders.Order) []orders.LowLevel {
	var out []orders.LowLevel
	for _, e := range o.Events {
		out = append(out, e.Status.LowLevel())
	}
	return out
}

// messages returns the events that the team was told of an order, in their order.
func (d *fixture) messages(o orders.Order) []webhook.Message {
	d.t.Helper()
	var out []webhook.Message
	loops, err := d.store.CriticalResults().List(d.t.Context(), critical.Query{Team: d.team, Order: o.ID.UUID, Limit: 100})
	require.NoError(d.t, err)
	for _, l := range loops.Loops {
		for n := range l.History {
			m, err := d.store.WebhookLog().Message(d.t.Context(), d.team, uuid.NewSHA1(l.ID.UUID, []byte("event "+strconv.Itoa(n+1))))
			if err == nil {
				out = append(out, m)
			}
		}
	}
	for _, base := range d.ids {
		ids := []uuid.UUID{base}
		for n := range 6 { // and what follows from appointments
			ids = append(ids, uuid.NewSHA1(base, []byte("visit "+strconv.Itoa(n+1))))
		}
		for _, id := range ids {
			m, err := d.store.WebhookLog().Message(d.t.Context(), d.team, id)
			if err == nil && m.Key == o.ID.String() {
				out = append(out, m)
			}
		}
	}
	slices.SortFunc(out, func(a, b webhook.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// notified returns what messages tell, by the status of the order or their own type.
func (d *fixture) notified(o orders.Order) []string {
	d.t.Helper()
	var out []string
	for _, m := range d.messages(o) {
		out = append(out, eventName(d.t, m))
	}
	return out
}

func eventName(t testing.TB, m webhook.Message) string {
	t.Helper()
	var envelope struct {
		Data struct {
			LastEvent struct {
				Status orders.Status `json:"status"`
			} `json:"last_event"`
		} `json:"data"`
	}
	require.NoError(t, json.Unmarshal(m.Body, &envelope))
	if low := envelope.Data.LastEvent.Status.LowLevel(); low != "" {
		return string(low)
	}
	return m.Type
}

func test(name string) catalogue.LabTestID { return catalogue.LabTestID{UUID: id("test " + name)} }

func account(name string) catalogue.LabAccountID {
	return catalogue.LabAccountID{UUID: id("account " + name)}
}

// book is an invented catalogue: two laboratories, and a test for everything that can
// go wrong.
func book(t testing.TB, more ...catalogue.LabAccount) *catalogue.StaticCatalog {
	t.Helper()
	all := catalogue.CollectionMethods()
	everywhere := map[catalogue.BillingType][]string{
		catalogue.ClientBill: {"AZ", "NY"}, catalogue.CommercialInsurance: {"AZ"},
	}
	marker := func(id, lab int, name string, edit ...func(*catalogue.MarkerComplete)) catalogue.MarkerComplete {
		m := catalogue.MarkerComplete{Marker: catalogue.Marker{ID: id, LabID: &lab, Name: name, Slug: name, ProviderID: ptr("code-" + name),
			Unit: ptr("mg/dL"), CommonTATDays: ptr(id % 7), WorstCaseTATDays: ptr(id%7 + 2), ALaCarteEnabled: true}}
		for _, e := range edit {
			e(&m)
		}
		return m
	}
	asks := func(questions ...catalogue.Question) func(*catalogue.MarkerComplete) {
		return func(m *catalogue.MarkerComplete) { m.AOE = &catalogue.AOE{Questions: questions} }
	}
	entry := func(name string, lab int, method catalogue.CollectionMethod, markers ...int) catalogue.StaticTest {
		return catalogue.StaticTest{LabTest: catalogue.LabTest{ID: test(name), Slug: name, Name: name, SampleType: catalogue.Serum,
			Method: method, Price: number(t, "49.90"), Status: catalogue.LabTestActive}, LabID: lab, MarkerIDs: markers}
	}
	archived := entry("archived", 1, catalogue.WalkInTest, 11)
	archived.Status = catalogue.LabTestInactive
	private := entry("private", 1, catalogue.WalkInTest, 11)
	private.Teams = []healthlab.TeamID{{UUID: id("other team")}}
	yesNo := []catalogue.Answer{{ID: 1, Code: "Y", Value: "Yes"}, {ID: 2, Code: "N", Value: "No"}}
	b, err := catalogue.NewStaticCatalog(catalogue.StaticCatalogContents{
		Labs: []catalogue.Lab{
			{ID: 1, Slug: "northlab", Name: "Northlab", CollectionMethods: all, SampleTypes: []catalogue.SampleType{catalogue.Serum}},
			{ID: 2, Slug: "southlab", Name: "Southlab", CollectionMethods: all[1:2]},
			{ID: 3, Slug: "eastlab", Name: "Eastlab", CollectionMethods: all},
		},
		Markers: []catalogue.MarkerComplete{
			marker(11, 1, "glucose"), marker(12, 1, "urea", func(m *catalogue.MarkerComplete) { m.Price = ptr("1.25") }),
			marker(13, 1, "asked", asks(
				catalogue.Question{ID: 131, Required: true, Code: "PREG", Type: catalogue.ChoiceQuestion, Answers: yesNo},
				catalogue.Question{ID: 132, Required: true, Code: "FSTING", Type: catalogue.ChoiceQuestion, Answers: yesNo},
				catalogue.Question{ID: 133, Code: "WEIGHT", Type: catalogue.NumericQuestion},
				catalogue.Question{ID: 134, Code: "DRUGS", Type: catalogue.MultiChoiceQuestion, Answers: yesNo},
				catalogue.Question{ID: 135, Code: "SOURCE", Type: catalogue.TextQuestion, Default: ptr("arm")})),
			marker(14, 1, "reflex", func(m *catalogue.MarkerComplete) { m.IsOrderable = ptr(false) }),
			marker(15, 1, "in panels only", func(m *catalogue.MarkerComplete) { m.ALaCarteEnabled = false }),
			marker(16, 1, "untimed", func(m *catalogue.MarkerComplete) { m.CommonTATDays = nil }),
			marker(17, 1, "coded", func(m *catalogue.MarkerComplete) {
				m.ExpectedResults = []catalogue.ExpectedResult{{ID: 171, Name: "Sodium", Slug: "sodium", ProviderID: ptr("N001-1"), Required: true,
					LOINC: &catalogue.LOINC{ID: 1, Name: "Sodium", Slug: "sodium-serum", Code: "2951-2"}}}
			}),
			marker(18, 1, "unpriced", func(m *catalogue.MarkerComplete) { m.Price = ptr("N/A") }),
			marker(21, 2, "lipids"), marker(22, 2, "urea"), marker(31, 3, "iron"),
		},
		Tests: []catalogue.StaticTest{
			entry("kit", 1, catalogue.Testkit, 11, 12), entry("walk-in", 1, catalogue.WalkInTest, 11, 12, 16),
			entry("at home", 1, catalogue.AtHomePhlebotomy, 11), entry("on site", 1, catalogue.OnSiteCollection, 12),
			entry("asked", 1, catalogue.WalkInTest, 13), entry("coded", 1, catalogue.WalkInTest, 17), entry("south", 2, catalogue.WalkInTest, 21), entry("east", 3, catalogue.WalkInTest, 31), entry("asked kit", 1, catalogue.Testkit, 13),
			archived, private,
		},
		Accounts: append([]catalogue.LabAccount{
			{ID: account("platform"), Lab: "northlab", Status: catalogue.LabAccountActive, DelegatedFlow: catalogue.NotDelegated,
				ProviderAccountID: "P-1", AllowedBilling: everywhere, DefaultClinicalNotes: ptr("call us")},
		}, more...),
	})
	require.NoError(t, err)
	return b
}

func address() people.PatientAddressInput {
	return people.PatientAddressInput{ReceiverName: "Ana Roe", FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201", Country: "US"}
}

func patient() people.PatientDetailsInput {
	return people.PatientDetailsInput{FirstName: "Ana", LastName: "Roe", DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9},
		Gender: people.Female, PhoneNumber: "+15550100", Email: "ana@example.com"}
}

// asks is a request for a test of the book.
func (d *fixture) asks(name string, edit ...func(*orders.PlaceRequest)) orders.PlaceRequest {
	req := orders.PlaceRequest{UserID: d.user, OrderSet: &catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{test(name)}},
		PatientDetails: patient(), PatientAddress: address()}
	for _, e := range edit {
		e(&req)
	}
	return req
}

func (d *fixture) placed(name string, edit ...func(*orders.PlaceRequest)) orders.Order {
	d.t.Helper()
	o, err := d.Place(d.t.Context(), d.team, d.asks(name, edit...))
	require.NoError(d.t, err)
	checkOrder(d.t, o)
	return o
}

func (d *fixture) kit() orders.TestkitRequest {
	return orders.TestkitRequest{UserID: d.user, LabTestID: test("kit"), ShippingDetails: people.ShippingDetailsInput{
		ReceiverName: "Front Desk", FirstLine: "8 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201", Country: "US", PhoneNumber: "+15550102"}}
}

func withOutcome(outcome string) func(*orders.PlaceRequest) {
	return func(r *orders.PlaceRequest) { r.Passthrough = ptr("sandbox:" + outcome) }
}
