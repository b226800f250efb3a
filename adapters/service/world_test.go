package service_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
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
	"github.com/healthlab-dev/healthlab/orders/visits"
	"github.com/healthlab-dev/healthlab/webhook"
)

// simulation is a population that lives with a service on a fake clock. One goroutine does all of
// it: people live a day, and the service's work is stepped hour by hour, one kind after another. So
// a seed repeats a run.
type simulation struct {
	t        *testing.T
	random   *rand.Rand
	s        *service.Service
	work     []func(context.Context) (int, error) // what the service does in the background
	team     healthlab.TeamID
	tests    []catalogue.LabTest // a test kit, and a test whose sample a phlebotomist takes
	store    *memory.Store
	begin    time.Time
	people   []*person
	ordering float64 // the chance that a person orders on a day
	jumps    bool
	jumped   atomic.Int64 // by how many nanoseconds the clock of the store and the services is wrong

	samples, corrections, duplicates, zones, placed, asked, booked, cancelled, deleted int
	provider                                                                           *tracker
	receiver                                                                           *receiver
	weeks                                                                              [][]int // figures at the end of each
}

// person is what is true of one user.
type person struct {
	id      healthlab.UserID
	name    people.PatientDetailsInput
	account string // at the provider; empty without a connection
	steps   values
	hours   values // of the zone in which the steps were made, east of UTC
	zone    int    // of the device, in hours
	every   int    // the most days from one sync of the device to the next
	next    int    // the day of the next one
	behind  int    // days that were not sent
	orders  []placedOrder
	deleted time.Time
}

// placedOrder is an order, the day on which it was placed, and what becomes of its appointment.
type placedOrder struct {
	id    orders.OrderID
	day   int
	visit string // empty without an appointment
}

// Populations live for months: devices send data, twice and corrected; a provider rotates grants, is
// down, has limits and corrects what it said; people change zones, order lab tests that fail in every
// way, take appointments, and leave; the receiver of events fails. In the end every event came once
// and in order, totals equal the truth, orders have ended and hold no slot, and nothing is left of
// people who left. Each population has a service and a goroutine of its own, and a seed that repeats it.
func TestWorld_everyEventArrivesOnceAndTotalsEqualTheTruth(t *testing.T) {
	seed, population, days := setting(t, "HEALTHLABTEST_SEED", 1), setting(t, "HEALTHLABTEST_PEOPLE", prove.Count(20, 200)), setting(t, "HEALTHLABTEST_DAYS", prove.Count(30, 365))
	populations := setting(t, "HEALTHLABTEST_POPULATIONS", prove.Count(1, 2))
	require.Positive(t, populations)
	require.LessOrEqual(t, populations, population)
	for i := range populations {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			seed, size := seed+i, population/populations
			t.Logf("HEALTHLABTEST_POPULATIONS=1 HEALTHLABTEST_SEED=%d HEALTHLABTEST_PEOPLE=%d HEALTHLABTEST_DAYS=%d repeat this run", seed, size, days)
			began := time.Now()
			_, report := simulate(t, uint64(seed), size, days)
			t.Logf("took %v, 0 violations\n%s", time.Since(began), report)
		})
	}
}

// The same seed makes the same run, to the byte of each message and value.
func TestWorld_sameSeedRepeatsTheRun(t *testing.T) {
	first, _ := simulate(t, 7, 12, 20)
	again, _ := simulate(t, 7, 12, 20)
	other, _ := simulate(t, 8, 12, 20)
	require.Equal(t, first, again)
	require.NotEqual(t, first, other)
}

// The clock of the store and the services jumps by an hour and by a day, in both directions, and is right
// again hours later: nothing is sent twice, left out or ended before its time.
func TestWorld_clockJumpsLoseAndRepeatNothing(t *testing.T) {
	for seed := range prove.Count(2, 20) {
		simulateWith(t, uint64(100+seed), prove.Count(12, 40), prove.Count(20, 90), true)
	}
}

func simulate(t *testing.T, seed uint64, population, days int) (digest, report string) {
	return simulateWith(t, seed, population, days, false)
}

func simulateWith(t *testing.T, seed uint64, population, days int, jumps bool) (digest, report string) {
	synctest.Test(t, func(t *testing.T) {
		retention := 48 * time.Hour
		if jumps {
			retention = 30 * 24 * time.Hour // longer than a jump: what is older than it is deleted by design
		}
		w := newSimulation(t, seed, retention)
		w.jumps = jumps
		w.ordering = min(0.1, mostOrders/float64(population*days))
		for range population {
			w.join()
		}
		for day := range days {
			for _, p := range w.people {
				w.live(p, day)
			}
			w.pass(24)
			if day%7 == 6 {
				w.receiver.forget()
				w.weeks = append(w.weeks, w.figures())
			}
		}
		for _, p := range w.people {
			w.giveUp(p, days+patience)
		}
		w.jumps = false
		w.pass(60 * 24) // orders end, grace periods are over, and events are sent
		w.check(days)
		digest = fmt.Sprintf("%x", w.receiver.digest.Sum(nil))
		report = w.report(digest)
	})
	return digest, report
}

// pass lets hours pass. In each, the service does all that is due.
func (w *simulation) pass(hours int) {
	for range hours {
		until := time.Now().Add(time.Hour)
		if w.jumps && w.random.IntN(8) == 0 {
			w.jumped.Store(int64([]time.Duration{0, time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour}[w.random.IntN(5)]))
		}
		for w.step() > 0 {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Until(until))
	}
	w.jumped.Store(0) // what people send is judged by the right time
}

// step does once each kind of the service's work, and returns how much there was to do.
func (w *simulation) step() int {
	all := 0
	for _, do := range w.work {
		n, err := do(w.t.Context())
		require.NoError(w.t, err)
		all += n
	}
	return all
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

func newSimulation(t *testing.T, seed uint64, retention time.Duration) *simulation {
	begin := time.Now().UTC().Truncate(24 * time.Hour)
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	ids := rand.NewChaCha8(key)
	newID := func() uuid.UUID { return uuid.Must(uuid.NewRandomFromReader(ids)) }
	w := &simulation{t: t, random: rand.New(rand.NewPCG(seed, 1)), team: healthlab.TeamID{UUID: newID()}, begin: begin}
	w.receiver = newReceiver(seed, begin)
	w.provider = &tracker{number: seed, begin: begin, accounts: map[string]*account{}}
	c := config(t)
	now := func() time.Time { return time.Now().Add(time.Duration(w.jumped.Load())) }
	w.store = memory.New(&memory.Options{Now: now, Retention: retention, Envelope: webhook.Envelope{Sequence: true}})
	c.Stores, c.Files, c.Log = w.store.Stores, w.store.Blobs(), slog.New(slog.DiscardHandler)
	var err error
	c.Providers, err = healthdata.NewProviders([]healthdata.Provider{
		{Slug: "manual", Name: "Manual", Category: "app", Class: "manual"},
		{Slug: "tracker", Name: "Tracker", Category: "provider", Class: "cloud", AuthType: "password", UpdateModel: "poll",
			Resources: []healthdata.ProviderResource{{Resource: "heartrate"}}},
	})
	require.NoError(t, err)
	c.Connectors = map[string]linking.ProviderConnector{"tracker": {Password: w.provider, Refresher: w.provider, Puller: w.provider}}
	c.Pulls = pull.Options{
		Every: 24 * time.Hour, Overlap: 3 * 24 * time.Hour, SweepEvery: 3650 * 24 * time.Hour, Workers: 64,
		Limits: map[string]pull.Limits{"tracker": {App: []pull.Limit{{Requests: hourLimit, Per: time.Hour, Burst: 60}}}},
	}
	c.Laboratory = sandbox.NewLab(&sandbox.LabOptions{Step: 24 * time.Hour})
	c.Notifier, c.Health.MaxUsers = notify(w.receiver.notify), 1_000_000
	c.Exchange.SandboxMoves = true
	c.Health.NewID, c.Health.NewUserID, c.Orders.NewID, c.Linking.NewID, c.Webhooks.NewID = newID, newID, newID, newID, newID
	c.Health.Now, c.Orders.Now, c.Linking.Now, c.Pulls.Now, c.Webhooks.Now = now, now, now, now, now
	w.s, err = service.New(t.Context(), c)
	require.NoError(t, err)
	w.work = []func(context.Context) (int, error){
		w.s.Pulls.Step, w.s.Exchange.SubmitDue, w.s.Exchange.PullUpdates, w.s.Visits.ProcessDue, w.s.Orders.PatientMessages().SendDue, w.s.Exchange.ContinueSimulations, w.s.Critical.EscalateDue,
		w.s.Health.Deletions().EraseDue, w.s.Deliveries.Step,
	}
	_, err = w.s.Organisations.CreateTeam(t.Context(), newID(), organisation.NewTeam{ID: w.team, Name: "A team"})
	require.NoError(t, err)
	_, err = w.s.Webhooks.Create(t.Context(), w.team, webhook.NewEndpoint{URL: "https://receiver.example.com/events"})
	require.NoError(t, err)
	for _, method := range []catalogue.CollectionMethod{catalogue.Testkit, catalogue.AtHomePhlebotomy} {
		page, err := c.Catalogue.FindLabTests(t.Context(), catalogue.LabTestQuery{Team: w.team, Method: method})
		require.NoError(t, err)
		w.tests = append(w.tests, page.Tests[0])
	}
	return w
}

const (
	mostTracked = 500  // people of a population with a connection to the tracker
	hourLimit   = 600  // requests that the tracker takes in an hour
	mostOrders  = 5000 // about how many orders a population places
)

func (w *simulation) join() {
	u, err := w.s.Health.CreateUser(w.t.Context(), w.team, healthdata.NewUser{ClientUserID: strconv.Itoa(len(w.people))})
	require.NoError(w.t, err)
	_, err = w.s.Health.Connections().Connect(w.t.Context(), w.team, u.ID, healthdata.NewConnection{Provider: "manual"})
	require.NoError(w.t, err)
	n := len(w.people)
	p := &person{id: u.ID, steps: values{begin: w.begin}, hours: values{begin: w.begin}, every: 1 + w.random.IntN(14)}
	p.name = people.PatientDetailsInput{
		FirstName: "Ana " + letters(n), LastName: "Roe", DOB: healthlab.Date{Year: 1930 + n%50, Month: 5, Day: 9},
		Gender: people.Female, PhoneNumber: "+15550100", Email: "ana@example.com",
	}
	w.people = append(w.people, p)
	if n >= mostTracked {
		return
	}
	p.account = "member-" + strconv.Itoa(n)
	offer, err := w.s.Linking.CreateToken(w.t.Context(), w.team, linking.NewToken{User: u.ID})
	require.NoError(w.t, err)
	signed, err := w.s.Linking.SignIn(w.t.Context(), offer.Token, linking.PasswordSignIn{Provider: "tracker", Username: p.account, Password: "a password"})
	require.NoError(w.t, err)
	require.Equal(w.t, linking.ResultSuccess, signed.State)
}

// letters writes a number in letters.
func letters(n int) string {
	text := string(rune('a' + n%26))
	if n >= 26 {
		text = letters(n/26-1) + text
	}
	return text
}

// zones are where people go: names, and hours east of UTC that their devices say.
var zones = []struct {
	name  string
	hours int
}{{"UTC", 0}, {"America/New_York", -5}, {"Asia/Tokyo", 9}, {"Pacific/Apia", 13}}

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
	w.giveUp(p, day)
	switch {
	case chance < 10:
		to := zones[w.random.IntN(len(zones))]
		_, err := w.s.Health.PatchUser(ctx, w.team, p.id, healthdata.UserPatch{FallbackTimeZone: healthdata.SetTo(to.name)})
		require.NoError(w.t, err)
		p.zone = to.hours
		w.zones++
	case w.random.Float64() < w.ordering:
		// Every failure comes with every test.
		test, failure := w.tests[w.placed%len(w.tests)], failures[w.placed/len(w.tests)%len(failures)]
		o, err := w.s.Orders.Place(ctx, w.team, orders.PlaceRequest{
			UserID: p.id, OrderSet: &catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{test.ID}}, PatientDetails: p.name,
			PatientAddress: people.PatientAddressInput{FirstLine: "7 Elm Rd", City: "Phoenix", State: "AZ", Zip: "85004", Country: "US"},
			Passthrough:    &failure,
		})
		require.NoError(w.t, err)
		p.orders = append(p.orders, placedOrder{id: o.ID, day: day})
		w.placed++
	case chance < 12:
		require.NoError(w.t, w.s.Health.Deletions().Delete(ctx, w.team, p.id))
		p.deleted = time.Now()
		w.deleted++
	}
}

// failures are what becomes of orders at the laboratory: all goes well, or one of its failures.
var failures = func() []string {
	out := []string{"well", "refused", "down", "silent", "slow", "repeats", "too_late_to_cancel", "uncovered"}
	for _, story := range sandbox.Stories() {
		out = append(out, string(story))
	}
	for i := range out {
		out[i] = "sandbox:" + out[i]
	}
	return out
}()

// visitFailures are what becomes of appointments: all goes well, or one of the failures of those who
// come.
var visitFailures = []string{"well", "refused", "gone", "down", "silent", "slow", "never", "moved", "dropped", "too_late", "repeats"}

// visit books an appointment for the order of the day before, if it needs one, and at times the team
// cancels the order afterwards. The rules refuse both for orders that have gone another way.
func (w *simulation) visit(p *person, day int) {
	if len(p.orders) == 0 || p.orders[len(p.orders)-1].day != day-1 {
		return
	}
	placed := &p.orders[len(p.orders)-1]
	ctx, id := w.t.Context(), placed.id
	o, err := w.s.Orders.Get(ctx, w.team, id)
	require.NoError(w.t, err)
	if o.Method() != catalogue.AtHomePhlebotomy {
		return
	}
	w.book(placed)
	if w.random.IntN(4) == 0 {
		w.cancel(id)
	}
}

// patience is after how many days the team cancels an order whose appointment is not confirmed.
const patience = 7

// giveUp cancels orders whose provider never confirms the appointment.
func (w *simulation) giveUp(p *person, day int) {
	for i := range p.orders {
		if placed := &p.orders[i]; placed.visit == "never" && placed.day <= day-patience && p.deleted.IsZero() {
			w.cancel(placed.id)
			placed.visit = "given up"
		}
	}
}

func (w *simulation) cancel(id orders.OrderID) {
	if _, err := w.s.Orders.Cancel(w.t.Context(), w.team, id); err != nil {
		var refused *healthlab.RuleError
		require.ErrorAs(w.t, err, &refused)
		return
	}
	w.cancelled++
}

// book books the first time that is free. If the provider refuses it, the next one goes well.
func (w *simulation) book(placed *placedOrder) {
	ctx := w.t.Context()
	free, err := w.s.Visits.Places().HomeSlots(ctx, w.team, nil, appointment.AddressInput{FirstLine: "7 Elm Rd", City: "Phoenix", State: "AZ", ZipCode: "85004"})
	require.NoError(w.t, err)
	visit := visitFailures[w.asked%len(visitFailures)]
	w.asked++
	for _, d := range free.Slots {
		if len(d.Slots) == 0 || d.Slots[0].BookingKey == nil {
			continue
		}
		notes := "sandbox:" + visit
		_, err = w.s.Visits.Book(ctx, w.team, placed.id, appointment.Phlebotomy, visits.BookRequest{BookingKey: *d.Slots[0].BookingKey, AppointmentNotes: &notes})
		if err == nil {
			w.booked++
			placed.visit = visit
			return
		}
		var refused *healthlab.RuleError
		require.ErrorAs(w.t, err, &refused)
		visit = "well"
	}
}

// wear records the heart rates of a day at the provider, for a person who has a connection to it.
func (w *simulation) wear(p *person, daysAgo int) {
	if p.account == "" {
		return
	}
	midnight := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -daysAgo)
	for i := range slotsOfDay {
		w.provider.record(p.account, midnight.Add(time.Duration(i)*slot), float64(50+w.random.IntN(60)))
	}
}

// sync uploads the steps of the last days, by three hours, at times twice.
func (w *simulation) sync(p *person) {
	midnight := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-p.behind)
	offset := p.zone * 3600
	samples := make([]healthdata.Sample, 0, slotsOfDay*p.behind)
	for i := range slotsOfDay * p.behind {
		at := midnight.Add(time.Duration(i) * slot)
		end, steps := healthlab.At(at.Add(time.Hour)), float64(w.random.IntN(2000))
		if p.steps.at(at) != absent {
			w.corrections++
		} else {
			w.samples++
		}
		p.steps.set(at, steps)
		p.hours.set(at, float64(p.zone))
		samples = append(samples, healthdata.Sample{
			Timestamp: healthlab.At(at), End: &end, TimezoneOffset: &offset, Unit: "count", Value: healthdata.Number(steps),
		})
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
