package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
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
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders"
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
	people []*person

	samples, corrections, duplicates, zones, placed, deleted int
	receiver                                                 *receiver
}

// person is what is true of one user.
type person struct {
	id      healthlab.UserID
	steps   map[int64]float64 // by microseconds since 1970
	orders  []orders.OrderID
	deleted time.Time
}

// receiver takes events like a customer: it fails at times, and knows messages by their id.
type receiver struct {
	mu                sync.Mutex
	random            *rand.Rand
	seen              map[string]bool
	history           map[string]int // by order: number of events of the last message
	steps             map[healthlab.UserID]map[int64]float64
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
	if r.seen[n.ID] {
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
		var batch struct {
			Data []struct {
				At    healthlab.Time `json:"timestamp"`
				Value float64        `json:"value"`
			} `json:"data"`
		}
		if err := json.Unmarshal(message.Data, &batch); err != nil {
			r.violations = append(r.violations, err.Error())
		}
		if r.steps[message.User] == nil {
			r.steps[message.User] = map[int64]float64{}
		}
		for _, x := range batch.Data {
			r.steps[message.User][x.At.UnixMicro()] = x.Value
		}
	}
	return webhook.Result{Class: webhook.ClassOK, Status: 200}
}

// A population lives for months: devices send data, twice and corrected; people change zones,
// order lab tests that fail in every way, and leave; the receiver of events fails. In the end
// every event came once and in order, totals equal the truth, orders have ended, and nothing
// is left of people who left. HEALTHLAB_SEED repeats a run.
func TestWorld(t *testing.T) {
	seed := uint64(1)
	if text := os.Getenv("HEALTHLAB_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		seed = n
	}
	population, days := prove.Count(20, 200), prove.Count(30, 365)
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		w := newSimulation(t, seed)
		ctx, stop := context.WithCancel(t.Context())
		var working sync.WaitGroup
		for _, run := range []func(context.Context) error{w.s.Health.Run, w.s.Orders.Run, w.s.Deliveries.Run} {
			working.Go(func() { require.NoError(t, run(ctx)) })
		}
		for range population {
			w.join()
		}
		for day := range days {
			for _, p := range w.people {
				w.live(p, day)
			}
			time.Sleep(24 * time.Hour)
		}
		time.Sleep(60 * 24 * time.Hour) // orders end, grace periods are over, and events are sent
		w.check()
		stop()
		working.Wait()
		t.Logf("seed %d: %d people, %d days, %d samples, %d corrections, %d duplicates, %d changes of zone, %d orders, %d deletions, %d events, %d refused",
			seed, population, days, w.samples, w.corrections, w.duplicates, w.zones, w.placed, w.deleted, w.receiver.received, w.receiver.refused)
	})
	t.Logf("took %v", time.Since(began))
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	w := &simulation{t: t, random: rand.New(rand.NewPCG(seed, 1)), team: healthlab.TeamID{UUID: uuid.New()}}
	w.receiver = &receiver{random: rand.New(rand.NewPCG(seed, 2)), seen: map[string]bool{}, history: map[string]int{}, steps: map[healthlab.UserID]map[int64]float64{}}
	c := config(t)
	store := memory.New(&memory.Options{Retention: 48 * time.Hour})
	c.Store, c.Files, c.Log = store, store.Blobs(), slog.New(slog.DiscardHandler)
	c.Laboratory = sandbox.NewLab(&sandbox.LabOptions{Step: 24 * time.Hour})
	c.Notifier, c.Health.MaxUsers = notify(w.receiver.notify), 1_000_000
	c.Webhooks.Idle, c.Orders.Idle, c.Orders.SandboxMoves = time.Hour, time.Hour, true
	var err error
	w.s, err = service.New(t.Context(), c)
	require.NoError(t, err)
	_, err = w.s.Webhooks.Create(t.Context(), w.team, webhook.NewEndpoint{URL: "https://receiver.example.com/events"})
	require.NoError(t, err)
	page, err := c.Catalogue.FindLabTests(t.Context(), catalogue.LabTestQuery{Team: w.team, Method: catalogue.Testkit})
	require.NoError(t, err)
	w.test = page.Tests[0]
	return w
}

func (w *simulation) join() {
	u, err := w.s.Health.CreateUser(w.t.Context(), w.team, healthdata.NewUser{ClientUserID: strconv.Itoa(len(w.people))})
	require.NoError(w.t, err)
	_, err = w.s.Health.Connect(w.t.Context(), w.team, u.ID, healthdata.NewConnection{Provider: "manual"})
	require.NoError(w.t, err)
	w.people = append(w.people, &person{id: u.ID, steps: map[int64]float64{}})
}

// live is one day of a person.
func (w *simulation) live(p *person, day int) {
	if !p.deleted.IsZero() {
		return
	}
	ctx, chance := w.t.Context(), w.random.IntN(1000)
	w.sync(p, 0)
	if chance < 100 && day > 0 { // a correction of the day before
		w.sync(p, -1)
	}
	switch {
	case chance < 10:
		_, err := w.s.Health.PatchUser(ctx, w.team, p.id, healthdata.UserPatch{
			FallbackTimeZone: healthdata.SetTo([]string{"UTC", "America/New_York", "Asia/Tokyo", "Pacific/Apia"}[w.random.IntN(4)]),
		})
		require.NoError(w.t, err)
		w.zones++
	case chance < 25:
		fate := w.fate()
		o, err := w.s.Orders.Place(ctx, w.team, orders.PlaceRequest{
			UserID: p.id, OrderSet: &catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{w.test.ID}},
			PatientDetails: people.PatientDetailsInput{FirstName: "Ana", LastName: "Roe", DOB: healthlab.Date{Year: 1964, Month: 5, Day: 9},
				Gender: people.Female, PhoneNumber: "+15550100", Email: "ana@example.com"},
			PatientAddress: people.PatientAddressInput{FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201", Country: "US"},
			Passthrough:    &fate,
		})
		require.NoError(w.t, err)
		p.orders = append(p.orders, o.ID)
		w.placed++
	case chance < 27:
		require.NoError(w.t, w.s.Health.DeleteUser(ctx, w.team, p.id))
		p.deleted = time.Now()
		w.deleted++
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

// sync uploads the steps of a day, by three hours, at times twice.
func (w *simulation) sync(p *person, daysAgo int) {
	midnight := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, daysAgo)
	var samples []healthdata.Sample
	for i := range 8 {
		at := midnight.Add(time.Duration(3*i) * time.Hour)
		end, steps := healthlab.At(at.Add(time.Hour)), float64(w.random.IntN(2000))
		if _, known := p.steps[at.UnixMicro()]; known {
			w.corrections++
		} else {
			w.samples++
		}
		p.steps[at.UnixMicro()] = steps
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

// check holds the service and the receiver to the truth.
func (w *simulation) check() {
	ctx, t := w.t.Context(), w.t
	require.Empty(t, w.receiver.violations)
	live := 0
	for i, p := range w.people {
		samples, err := w.s.Health.AllSamples(ctx, w.team, p.id, healthdata.SampleQuery{
			Resource: "steps", From: time.Unix(0, 0), To: time.Now(),
		})
		if !p.deleted.IsZero() {
			require.ErrorIs(t, err, healthlab.NotFound)
			_, err = w.s.Health.UndoDelete(ctx, w.team, healthdata.DeletedUser{User: p.id})
			require.ErrorIs(t, err, healthlab.NotFound, "person %d is erased", i)
			for _, id := range p.orders {
				_, err = w.s.Orders.Get(ctx, w.team, id)
				require.ErrorIs(t, err, healthlab.NotFound, "order of person %d is erased", i)
			}
			continue
		}
		require.NoError(t, err)
		live++
		stored := map[int64]float64{}
		for _, s := range samples {
			stored[s.Timestamp.UnixMicro()] = s.Value.Number
		}
		require.Equal(t, p.steps, stored, "steps of person %d", i)
		require.Equal(t, p.steps, w.receiver.steps[p.id], "events of person %d", i)
		for _, id := range p.orders {
			o, err := w.s.Orders.Get(ctx, w.team, id)
			require.NoError(t, err)
			lost := *o.Passthrough == "sandbox:"+string(sandbox.NeverAgain) // the laboratory sends nothing
			require.True(t, o.LowLevel().Final() || lost, "order of person %d, %s, is %s", i, *o.Passthrough, o.LastEvent.Status)
			require.Len(t, o.Events, w.receiver.history[id.String()], "events of an order of person %d", i)
		}
	}
	list, err := w.s.Health.Users(ctx, w.team, 0, 1)
	require.NoError(t, err)
	require.Equal(t, live, list.Total)
}
