package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/webhook"
)

// simulation is a population that lives with a service on a fake clock.
type simulation struct {
	t      *testing.T
	random *rand.Rand
	s      *service.Service
	team   healthlab.TeamID
	test   catalogue.LabTest
	home   catalogue.LabTest // a test whose sample a phlebotomist takes
	store  *memory.Store
	begin  time.Time
	people []*person
	// ordering is the chance that a person orders on a day.
	ordering float64

	samples, corrections, duplicates, zones, placed, booked, cancelled, deleted int
	provider                                                                    *tracker
	receiver                                                                    *receiver
	weeks                                                                       []week
}

// week is what happened until the end of a week.
type week struct{ samples, corrections, pulls, rotations, outages, limited, orders, deletions, events, refused int }

// person is what is true of one user.
type person struct {
	id      healthlab.UserID
	name    string // at the provider; empty without a connection
	steps   values
	every   int // the most days from one sync of the device to the next
	next    int // the day of the next one
	behind  int // days that were not sent
	orders  []placedOrder
	deleted time.Time
}

// placedOrder is an order and the day on which it was placed.
type placedOrder struct {
	id  orders.OrderID
	day int
}

// receiver takes events like a customer: it fails at times, and knows messages by their id.
type receiver struct {
	mu                sync.Mutex
	random            *rand.Rand
	begin             time.Time
	seen, before      map[string]bool // ids of messages: of these days, and of the days before
	history           map[string]int  // by order: number of events of the last message
	steps, heart      map[healthlab.UserID]*values
	received, refused int
	violations        []string
}

func (r *receiver) notify(_ context.Context, n webhook.Notification) webhook.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.random.IntN(20) == 0 {
		r.refused++
		return webhook.Result{Class: webhook.ClassThrottled, Status: 503}
	}
	if r.seen[n.ID] || r.before[n.ID] {
		return webhook.Result{Class: webhook.ClassOK, Status: 200}
	}
	r.seen[n.ID] = true
	r.received++
	var message struct {
		Type string           `json:"event_type"`
		User healthlab.UserID `json:"user_id"`
		Data json.RawMessage  `json:"data"`
	}
	if err := json.Unmarshal(n.Body, &message); err != nil {
		r.violations = append(r.violations, err.Error())
	}
	switch message.Type {
	case orders.EventOrderCreated, orders.EventOrderUpdated:
		var o struct {
			ID     string            `json:"id"`
			Events []json.RawMessage `json:"events"`
		}
		if err := json.Unmarshal(message.Data, &o); err != nil || len(o.Events) <= r.history[o.ID] {
			r.violations = append(r.violations, fmt.Sprintf("order %s: %d events after %d", o.ID, len(o.Events), r.history[o.ID]))
		}
		r.history[o.ID] = len(o.Events)
	case "daily.data.steps.created", "daily.data.steps.updated":
		r.take(r.steps, message.User, message.Data)
	case "daily.data.heartrate.created", "daily.data.heartrate.updated":
		r.take(r.heart, message.User, message.Data)
	}
	return webhook.Result{Class: webhook.ClassOK, Status: 200}
}

// take keeps the newest values of a person.
func (r *receiver) take(of map[healthlab.UserID]*values, user healthlab.UserID, data []byte) {
	var batch struct {
		Data []struct {
			At    healthlab.Time `json:"timestamp"`
			Value float64        `json:"value"`
		} `json:"data"`
	}
	if err := json.Unmarshal(data, &batch); err != nil {
		r.violations = append(r.violations, err.Error())
	}
	if of[user] == nil {
		of[user] = &values{begin: r.begin}
	}
	for _, x := range batch.Data {
		of[user].set(x.At.Time, x.Value)
	}
}

// forget drops ids of messages that are too old to be sent again.
func (r *receiver) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before, r.seen = r.seen, map[string]bool{}
}

// A population lives for months: devices send data, twice and corrected; a provider rotates grants, is
// down, has limits and corrects what it said; people change zones, order lab tests that fail in every
// way, take appointments, and leave; the receiver of events fails. In the end every event came once
// and in order, totals equal the truth, orders have ended and hold no slot, and nothing is left of
// people who left. HEALTHLAB_SEED repeats what people, the provider and the laboratory do, but not
// the order in which goroutines run.
func TestWorld(t *testing.T) {
	seed, population, days := setting(t, "HEALTHLAB_SEED", 1), setting(t, "HEALTHLAB_PEOPLE", prove.Count(20, 200)), prove.Count(30, 365)
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		w := newSimulation(t, uint64(seed))
		ctx, stop := context.WithCancel(t.Context())
		var working sync.WaitGroup
		for _, run := range []func(context.Context) error{w.s.Health.Run, w.s.Orders.Run, w.s.Deliveries.Run, w.s.Pulls.Run} {
			working.Go(func() { require.NoError(t, run(ctx)) })
		}
		w.ordering = min(0.025, mostOrders/float64(population*days))
		for range population {
			w.join()
		}
		for day := range days {
			for _, p := range w.people {
				w.live(p, day)
			}
			time.Sleep(24 * time.Hour)
			if day%7 == 6 {
				w.count()
			}
		}
		time.Sleep(60 * 24 * time.Hour) // orders end, grace periods are over, and events are sent
		w.check()
		stop()
		working.Wait()
		w.report(seed, population, days)
	})
	t.Logf("took %v", time.Since(began))
}

// setting reads a number of the environment.
func setting(t *testing.T, name string, standard int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return standard
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	begin := time.Now().UTC().Truncate(24 * time.Hour)
	w := &simulation{t: t, random: rand.New(rand.NewPCG(seed, 1)), team: healthlab.TeamID{UUID: uuid.New()}, begin: begin}
	w.receiver = &receiver{
		random: rand.New(rand.NewPCG(seed, 2)), begin: begin, seen: map[string]bool{}, history: map[string]int{},
		steps: map[healthlab.UserID]*values{}, heart: map[healthlab.UserID]*values{},
	}
	w.provider = &tracker{number: seed, begin: begin, accounts: map[string]*account{}}
	c := config(t)
	w.store = memory.New(&memory.Options{Retention: 48 * time.Hour})
	c.Store, c.Files, c.Log = w.store, w.store.Blobs(), slog.New(slog.DiscardHandler)
	var err error
	c.Providers, err = healthdata.NewProviders([]healthdata.Provider{
		{Slug: "manual", Name: "Manual", SourceType: "app", Class: "manual"},
		{Slug: "tracker", Name: "Tracker", SourceType: "provider", Class: "cloud", AuthType: "password", UpdateModel: "poll",
			Resources: []healthdata.ProviderResource{{Resource: "heartrate"}}},
	})
	require.NoError(t, err)
	c.Connectors = map[string]linking.ProviderConnector{"tracker": {Password: w.provider, Refresher: w.provider, Puller: w.provider}}
	c.Pulls = pull.Options{Every: 24 * time.Hour, Overlap: 3 * 24 * time.Hour, SweepEvery: 3650 * 24 * time.Hour, Idle: time.Hour}
	c.Laboratory = sandbox.NewLab(&sandbox.LabOptions{Step: 24 * time.Hour})
	c.Notifier, c.Health.MaxUsers = notify(w.receiver.notify), 1_000_000
	c.Webhooks.Idle, c.Orders.Idle, c.Orders.SandboxMoves = time.Hour, time.Hour, true
	w.s, err = service.New(t.Context(), c)
	require.NoError(t, err)
	_, err = w.s.Organisations.CreateTeam(t.Context(), uuid.New(), organisation.NewTeam{ID: w.team, Name: "A team"})
	require.NoError(t, err)
	_, err = w.s.Webhooks.Create(t.Context(), w.team, webhook.NewEndpoint{URL: "https://receiver.example.com/events"})
	require.NoError(t, err)
	page, err := c.Catalogue.FindLabTests(t.Context(), catalogue.LabTestQuery{Team: w.team, Method: catalogue.Testkit})
	require.NoError(t, err)
	w.test = page.Tests[0]
	page, err = c.Catalogue.FindLabTests(t.Context(), catalogue.LabTestQuery{Team: w.team, Method: catalogue.AtHomePhlebotomy})
	require.NoError(t, err)
	w.home = page.Tests[0]
	return w
}

// mostTracked is how many people have a connection to the tracker: the store in memory looks at all of
// their tasks for each that it claims.
const mostTracked = 200

// mostOrders is about how many orders there are: each result is compared with all orders of the team.
const mostOrders = 3000

func (w *simulation) join() {
	u, err := w.s.Health.CreateUser(w.t.Context(), w.team, healthdata.NewUser{ClientUserID: strconv.Itoa(len(w.people))})
	require.NoError(w.t, err)
	_, err = w.s.Health.Connect(w.t.Context(), w.team, u.ID, healthdata.NewConnection{Provider: "manual"})
	require.NoError(w.t, err)
	p := &person{id: u.ID, steps: values{begin: w.begin}, every: 1 + w.random.IntN(14)}
	w.people = append(w.people, p)
	if len(w.people) > mostTracked {
		return
	}
	p.name = "member-" + strconv.Itoa(len(w.people))
	offer, err := w.s.Linking.CreateToken(w.t.Context(), w.team, linking.NewToken{User: u.ID})
	require.NoError(w.t, err)
	signed, err := w.s.Linking.SignIn(w.t.Context(), offer.Token, linking.PasswordSignIn{Provider: "tracker", Username: p.name, Password: "a password"})
	require.NoError(w.t, err)
	require.Equal(w.t, linking.ResultSuccess, signed.State)
}

// live is one day of a person.
func (w *simulation) live(p *person, day int) {
	if !p.deleted.IsZero() {
		return
	}
	ctx, chance := w.t.Context(), w.random.IntN(1000)
	w.wear(p, 0)
	if chance < 100 && day > 0 { // the provider corrects the day before
		w.wear(p, 1)
	}
	if p.behind++; day >= p.next {
		if chance < 100 && day >= p.behind { // a day that was sent is sent with other values
			p.behind++
		}
		w.sync(p)
		p.next, p.behind = day+1+w.random.IntN(p.every), 0
	}
	w.visit(p, day)
	switch {
	case chance < 10:
		_, err := w.s.Health.PatchUser(ctx, w.team, p.id, healthdata.UserPatch{
			FallbackTimeZone: healthdata.SetTo([]string{"UTC", "America/New_York", "Asia/Tokyo", "Pacific/Apia"}[w.random.IntN(4)]),
		})
		require.NoError(w.t, err)
		w.zones++
	case w.random.Float64() < w.ordering:
		test, fate := w.test, w.fate()
		if w.random.IntN(2) == 0 {
			test = w.home
		}
		o, err := w.s.Orders.Place(ctx, w.team, orders.PlaceRequest{
			UserID: p.id, OrderSet: &catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{test.ID}},
			PatientDetails: people.PatientDetailsInput{FirstName: "Ana", LastName: "Roe", DOB: healthlab.Date{Year: 1964, Month: 5, Day: 9},
				Gender: people.Female, PhoneNumber: "+15550100", Email: "ana@example.com"},
			PatientAddress: people.PatientAddressInput{FirstLine: "7 Elm Rd", City: "Phoenix", State: "AZ", Zip: "85004", Country: "US"},
			Passthrough:    &fate,
		})
		require.NoError(w.t, err)
		p.orders = append(p.orders, placedOrder{o.ID, day})
		w.placed++
	case chance < 12:
		require.NoError(w.t, w.s.Health.DeleteUser(ctx, w.team, p.id))
		p.deleted = time.Now()
		w.deleted++
	}
}

// visit books an appointment for the order of the day before, if it needs one, and at times the team
// cancels the order afterwards. The rules refuse both for orders that have gone another way.
func (w *simulation) visit(p *person, day int) {
	if len(p.orders) == 0 || p.orders[len(p.orders)-1].day != day-1 {
		return
	}
	ctx, id := w.t.Context(), p.orders[len(p.orders)-1].id
	o, err := w.s.Orders.Get(ctx, w.team, id)
	require.NoError(w.t, err)
	if o.Method() != catalogue.AtHomePhlebotomy {
		return
	}
	free, err := w.s.Orders.Appointments().HomeSlots(ctx, w.team, nil, appointment.AddressInput{FirstLine: "7 Elm Rd", City: "Phoenix", State: "AZ", ZipCode: "85004"})
	require.NoError(w.t, err)
	var refused *healthlab.RuleError
	for _, d := range free.Slots {
		if len(d.Slots) == 0 || d.Slots[0].BookingKey == nil {
			continue
		}
		_, err = w.s.Orders.Bookings().Book(ctx, w.team, id, appointment.Phlebotomy, orders.BookRequest{BookingKey: *d.Slots[0].BookingKey})
		if err == nil {
			w.booked++
			break
		}
		require.ErrorAs(w.t, err, &refused)
	}
	if w.random.IntN(4) == 0 {
		if _, err = w.s.Orders.Cancel(ctx, w.team, id); err == nil {
			w.cancelled++
		} else {
			require.ErrorAs(w.t, err, &refused)
		}
	}
}

// fate is what becomes of an order at the laboratory: all goes well, or one of its failures.
func (w *simulation) fate() string {
	names := []string{"well", "refused", "down", "silent", "slow", "repeats", "too_late_to_cancel", "uncovered"}
	for _, story := range sandbox.Stories() {
		names = append(names, string(story))
	}
	return "sandbox:" + names[w.random.IntN(len(names))]
}

// wear records the heart rates of a day at the provider, for a person who has a connection to it.
func (w *simulation) wear(p *person, daysAgo int) {
	if p.name == "" {
		return
	}
	midnight := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -daysAgo)
	for i := range slotsOfDay {
		w.provider.record(p.name, midnight.Add(time.Duration(i)*slot), float64(50+w.random.IntN(60)))
	}
}

// sync uploads the steps of the last days, by three hours, at times twice.
func (w *simulation) sync(p *person) {
	midnight := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-p.behind)
	var samples []healthdata.Sample
	for i := range slotsOfDay * p.behind {
		at := midnight.Add(time.Duration(i) * slot)
		end, steps := healthlab.At(at.Add(time.Hour)), float64(w.random.IntN(2000))
		if p.steps.at(at) != absent {
			w.corrections++
		} else {
			w.samples++
		}
		p.steps.set(at, steps)
		samples = append(samples, healthdata.Sample{Timestamp: healthlab.At(at), End: &end, Unit: "count", Value: healthdata.Number(steps)})
	}
	upload := healthdata.Upload{Provider: "manual", Source: healthdata.Source{Type: healthdata.SourceWatch}}
	for again := range 2 {
		if again > 0 && w.random.IntN(5) > 0 {
			return
		}
		w.duplicates += again * len(samples)
		_, err := w.s.Health.IngestSamples(w.t.Context(), w.team, p.id, "steps", upload, samples)
		require.NoError(w.t, err)
	}
}

// count ends a week of the report.
func (w *simulation) count() {
	w.receiver.forget()
	w.provider.mu.Lock()
	defer w.provider.mu.Unlock()
	p := w.provider
	w.weeks = append(w.weeks, week{w.samples, w.corrections, p.pulls, p.rotations, p.outages, p.limited, w.placed, w.deleted, w.receiver.received, w.receiver.refused})
}

// check holds the service and the receiver to the truth.
func (w *simulation) check() {
	ctx, t := w.t.Context(), w.t
	require.Empty(t, w.receiver.violations)
	require.Zero(t, w.provider.refused, "the provider refused grants: a rotation was lost")
	live := 0
	for i, p := range w.people {
		stored, err := w.stored(p, "steps")
		if !p.deleted.IsZero() {
			require.ErrorIs(t, err, healthlab.NotFound)
			_, err = w.s.Health.UndoDelete(ctx, w.team, healthdata.DeletedUser{User: p.id})
			require.ErrorIs(t, err, healthlab.NotFound, "person %d is erased", i)
			for _, o := range p.orders {
				_, err = w.s.Orders.Get(ctx, w.team, o.id)
				require.ErrorIs(t, err, healthlab.NotFound, "order of person %d is erased", i)
			}
			continue
		}
		require.NoError(t, err)
		live++
		require.Equal(t, p.steps.of, stored, "steps of person %d", i)
		require.Equal(t, p.steps.of, w.receiver.steps[p.id].of, "events of person %d", i)
		if p.name != "" {
			heart := w.provider.accounts[p.name].heart.of
			stored, err = w.stored(p, "heartrate")
			require.NoError(t, err)
			require.Equal(t, heart, stored, "heart rates of person %d", i)
			require.Equal(t, heart, w.receiver.heart[p.id].of, "events of the heart rates of person %d", i)
		}
		for _, placed := range p.orders {
			o, err := w.store.Orders().Get(ctx, w.team, placed.id)
			require.NoError(t, err)
			lost := *o.Passthrough == "sandbox:"+string(sandbox.NeverAgain) // the laboratory sends nothing
			final := o.LowLevel().Final()
			booked := slices.ContainsFunc(o.Visits, func(v orders.Visit) bool { return !v.Status.Final() })
			waits := o.Method() == catalogue.AtHomePhlebotomy && !booked &&
				slices.Contains([]orders.LowLevel{orders.RequisitionCreated, orders.AppointmentCancelled}, o.LowLevel()) // for an appointment
			require.True(t, final || lost || waits, "order of person %d, %s, is %s", i, *o.Passthrough, o.LastEvent.Status)
			require.Len(t, o.Events, w.receiver.history[placed.id.String()], "events of an order of person %d", i)
			require.False(t, final && booked, "an ended order of person %d holds a slot", i)
		}
	}
	list, err := w.s.Health.Users(ctx, w.team, 0, 1)
	require.NoError(t, err)
	require.Equal(t, live, list.Total)
}

// stored reads the values that the service has.
func (w *simulation) stored(p *person, resource string) ([]int16, error) {
	samples, err := w.s.Health.AllSamples(w.t.Context(), w.team, p.id, healthdata.SampleQuery{Resource: resource, From: time.Unix(0, 0), To: time.Now()})
	v := values{begin: w.begin}
	for _, s := range samples {
		v.set(s.Timestamp.Time, s.Value.Number)
	}
	return v.of, err
}

// report prints what happened, with a plot of each figure by week.
func (w *simulation) report(seed, population, days int) {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d people, %d days, 0 violations\n", seed, population, days)
	p := w.provider
	for _, row := range []struct {
		name  string
		total int
		of    func(week) int
	}{
		{"samples of devices", w.samples, func(k week) int { return k.samples }},
		{"corrections", w.corrections, func(k week) int { return k.corrections }},
		{"pulls", p.pulls, func(k week) int { return k.pulls }},
		{"rotations of grants", p.rotations, func(k week) int { return k.rotations }},
		{"requests while the provider was down", p.outages, func(k week) int { return k.outages }},
		{"requests over a limit", p.limited, func(k week) int { return k.limited }},
		{"orders", w.placed, func(k week) int { return k.orders }},
		{"deletions", w.deleted, func(k week) int { return k.deletions }},
		{"events received", w.receiver.received, func(k week) int { return k.events }},
		{"events refused by the receiver", w.receiver.refused, func(k week) int { return k.refused }},
	} {
		fmt.Fprintf(&b, "%38s %10d  %s\n", row.name, row.total, spark(w.weeks, row.of))
	}
	fmt.Fprintf(&b, "%38s %10d\n%38s %10d\n%38s %10d\n%38s %10d\n%38s %10d\n", "duplicates", w.duplicates, "changes of zone", w.zones,
		"renewals whose answer was lost", p.lost, "appointments", w.booked, "orders cancelled by the team", w.cancelled)
	w.t.Log(b.String())
}

// spark plots how much a figure grew in each week.
func spark(weeks []week, of func(week) int) string {
	var grown []int
	before, top := 0, 1
	for _, k := range weeks {
		grown = append(grown, of(k)-before)
		before, top = of(k), max(top, of(k)-before)
	}
	levels := []rune(" ▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, n := range grown {
		b.WriteRune(levels[(n*(len(levels)-1)+top-1)/top])
	}
	return b.String()
}
