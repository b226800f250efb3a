package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// What a process of the test of bookings is told.
const (
	bookingChild = "HEALTHLABTEST_BOOKING_CHILD" // which of the orders are its own: 0 or 1
	bookingKey   = "HEALTHLABTEST_BOOKING_KEY"
	bookingTeam  = "HEALTHLABTEST_BOOKING_TEAM"
	bookingCount = "HEALTHLABTEST_BOOKING_COUNT"
)

func init() {
	postgres.Children["booking"] = func(address string) {
		if err := bookAll(address); err != nil {
			panic(err)
		}
	}
}

// willing is a laboratory that takes every booking of the one slot that it has, for it
// cannot tell that there is another process.
type willing struct{ calls atomic.Int64 }

func (*willing) Submit(context.Context, orders.Submission) (orders.Accepted, error) {
	return orders.Accepted{}, healthlab.Unavailable
}
func (*willing) Cancel(context.Context, healthlab.TeamID, orders.OrderID) error { return nil }
func (*willing) Updates(context.Context, string, int) (orders.Batch, error) {
	return orders.Batch{}, nil
}

func (*willing) ServedAt(context.Context, string) ([]appointment.Served, error) { return nil, nil }

func (*willing) FreeSlots(_ context.Context, q appointment.SlotQuery) ([]appointment.Slot, error) {
	at := noon.Add(48 * time.Hour)
	return []appointment.Slot{{Provider: q.Lab, SiteCode: "A", Start: at, End: at.Add(time.Hour), Places: 1, Key: "the slot"}}, nil
}

func (l *willing) BookVisit(context.Context, orders.Booking) (orders.Booked, error) {
	l.calls.Add(1)
	return orders.Booked{Confirmed: true}, nil
}

func (l *willing) MoveVisit(ctx context.Context, b orders.Booking) (orders.Booked, error) {
	return l.BookVisit(ctx, b)
}
func (*willing) CancelVisit(context.Context, orders.VisitCancellation) error { return nil }

// bookings is a service that makes appointments at one center.
func bookings(s *postgres.Store, lab orders.LabBackend) (*orders.Service, error) {
	book, err := catalogue.NewStaticCatalog(catalogue.StaticCatalogContents{Labs: []catalogue.Lab{{ID: 1, Slug: "northlab"}}})
	if err != nil {
		return nil, err
	}
	centers, err := appointment.NewCenterIndex([]appointment.Center{{LabID: 1, SiteCode: "A", IANATimezone: "UTC", Capabilities: appointment.PSCCapabilities(),
		Metadata: appointment.PSCMetadata{Name: "n", FirstLine: "1 f", City: "c", State: "s", ZipCode: "85201"}}})
	if err != nil {
		return nil, err
	}
	seal, err := healthlab.NewAESSealer("test", map[string][]byte{"test": make([]byte, 32)})
	if err != nil {
		return nil, err
	}
	everybody := people.UsersFunc(func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil })
	return orders.New(s.Orders(), everybody, book, lab, &orders.Options{
		Environment: healthlab.Production, Reviews: s.Reviews(),
		Centers: centers, BookingKeys: seal, Now: func() time.Time { return noon.Time }, LabTimeout: time.Minute,
		Providers: []appointment.Provider{{Slug: "northlab", Type: appointment.PatientServiceCenter}},
		Settings: func(context.Context, healthlab.TeamID) (orders.Settings, error) {
			return orders.Settings{PSCScheduling: true}, nil
		},
	})
}

func bookedOrder(i int) orders.OrderID {
	return orders.OrderID{UUID: uuid.NewSHA1(uuid.Nil, []byte("booked "+strconv.Itoa(i)))}
}

// tally is what a process of the test of bookings tells.
type tally struct {
	Booked, Gone int
	Calls        int64
	Answers      map[string]int
}

// bookAll books the one slot for half of the orders at once, and then, as the other
// process does at the same time, for the last order with an idempotency key.
func bookAll(address string) error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, address+"&pool_max_conns=8")
	if err != nil {
		return err
	}
	lab := &willing{}
	store := postgres.New(pool, nil)
	s, err := bookings(store, lab)
	if err != nil {
		return err
	}
	team := healthlab.TeamID{UUID: uuid.MustParse(os.Getenv(bookingTeam))}
	mine, _ := strconv.Atoi(os.Getenv(bookingChild))
	n, _ := strconv.Atoi(os.Getenv(bookingCount))
	out := tally{Answers: map[string]int{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	var faults []error
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		faults = append(faults, err)
	}
	for i := mine; i < n; i += 2 {
		all.Go(func() {
			_, err := s.Bookings().Book(ctx, team, bookedOrder(i), appointment.PatientServiceCenter, orders.BookRequest{BookingKey: os.Getenv(bookingKey)})
			mu.Lock()
			defer mu.Unlock()
			var rule *healthlab.RuleError
			switch {
			case err == nil:
				out.Booked++
			case errors.As(err, &rule) && rule.Type == appointment.SlotNotAvailable:
				out.Gone++
			default:
				faults = append(faults, err)
			}
		})
	}
	all.Wait()
	out.Calls = lab.calls.Load()
	requests := idempotency.New(store.OrderKeys(), nil)
	req := idempotency.Request{Scope: idempotency.Scope{Team: team, Endpoint: "book", Key: "k"}, About: bookedOrder(n)}
	for range 20 {
		all.Go(func() {
			for {
				answer, err := requests.Once(ctx, req, func(ctx context.Context, _ orders.OrderID) (idempotency.Outcome, error) {
					a, err := s.Bookings().Book(ctx, team, bookedOrder(n), appointment.PatientServiceCenter, orders.BookRequest{BookingKey: os.Getenv(bookingKey + "_2")})
					if err != nil {
						return idempotency.Outcome{}, err
					}
					return idempotency.Outcome{Answer: []byte(a.ID.String())}, nil
				})
				var rule *healthlab.RuleError
				if errors.As(err, &rule) && rule.Type == orders.IdempotencyInProgress {
					continue // ask again
				}
				if err != nil {
					fail(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				out.Answers[string(answer)]++
				return
			}
		})
	}
	all.Wait()
	if err := errors.Join(faults...); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// Two processes book one slot for a thousand orders at once: one gets it, and the
// provider is called for one. One idempotency key gets one answer.
func TestManyBookingsOfOneSlot(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	pool := pgtest.Connect(t, address)
	store := postgres.New(pool, nil) // keys in memory are those of one process
	n := prove.Count(100, 1000)
	u := newPerson(t, store)
	for i := range n + 1 {
		r := orderOf(u)
		r.ID, r.LabTest.Lab = bookedOrder(i), &catalogue.Lab{ID: 1, Slug: "northlab"}
		_, err := store.Orders().Insert(t.Context(), r, func(r *orders.Record) ([]healthlab.Event, error) {
			if _, err := orders.Begin(&r.Order, noon.Time, uuid.New()); err != nil {
				return nil, err
			}
			_, err := orders.Apply(&r.Order, orders.Step{On: orders.LabAccepted, At: noon.Time, EventID: uuid.New()})
			return nil, err
		})
		require.NoError(t, err)
	}
	s, err := bookings(store, &willing{})
	require.NoError(t, err)
	key := func() string {
		slots, err := s.Appointments().CenterSlots(t.Context(), u.Team, appointment.CenterSlotsRequest{Lab: "northlab", SiteCodes: []string{"A"}})
		require.NoError(t, err)
		return *slots.Slots[2].Slots[0].BookingKey
	}
	one, two := key(), key()
	var got [2]tally
	var all sync.WaitGroup
	for i := range got {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), postgres.Child+"=booking", postgres.ChildAddress+"="+address, bookingChild+"="+strconv.Itoa(i), bookingKey+"="+one, bookingKey+"_2="+two,
			bookingTeam+"="+u.Team.String(), bookingCount+"="+strconv.Itoa(n))
		child.Stderr = os.Stderr
		all.Go(func() {
			text, err := child.Output()
			if err == nil {
				err = json.Unmarshal(text, &got[i])
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Equal(t, 1, got[0].Booked+got[1].Booked)
	require.Equal(t, n-1, got[0].Gone+got[1].Gone)
	require.EqualValues(t, 1, got[0].Calls+got[1].Calls, "the provider is called for the one that got it")
	require.Len(t, got[0].Answers, 1)
	require.Equal(t, got[0].Answers, got[1].Answers)
	appointments := 0
	for i := range n + 1 {
		r, err := store.Orders().Get(t.Context(), u.Team, bookedOrder(i))
		require.NoError(t, err)
		appointments += len(r.Visits)
		if i == n {
			require.Equal(t, 20, got[0].Answers[r.Visits[0].ID.String()])
		}
	}
	require.Equal(t, 2, appointments, "one of each slot")
}

// BenchmarkCenters looks for the 30 nearest of 20,000 centers of one lab.
func BenchmarkCenters(b *testing.B) {
	s := postgres.New(durable(b), sealed())
	r := rand.New(rand.NewPCG(1, 2))
	var all []appointment.Center
	for i := range 20_000 {
		// As people live: half of them around forty cities.
		at := appointment.LngLat{Lng: -124 + 57*r.Float64(), Lat: 25 + 24*r.Float64()}
		if i%2 == 0 {
			city := rand.New(rand.NewPCG(uint64(i%80), 3))
			at = appointment.LngLat{Lng: -120 + 50*city.Float64() + r.NormFloat64()/3, Lat: 28 + 18*city.Float64() + r.NormFloat64()/3}
		}
		all = append(all, appointment.Center{LabID: 1, SiteCode: fmt.Sprintf("S%05d", i), Location: at, IANATimezone: "UTC",
			Capabilities: appointment.PSCCapabilities()[:i%4],
			Metadata:     appointment.PSCMetadata{Name: "Center", FirstLine: "1 Main St", City: "Mesa", State: "AZ", ZipCode: "85201", Hours: []byte(`{"mon":"7-12"}`)}})
	}
	require.NoError(b, s.Centers().Replace(b.Context(), 1, all))
	for _, miles := range appointment.Radii() {
		b.Run(fmt.Sprintf("n=20k/miles=%d", miles), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				near, err := s.Centers().CentersNear(b.Context(), appointment.CenterQuery{LabID: 1, Near: all[i*7919%len(all)].Location, Miles: float64(miles), Most: 30})
				if err != nil || near.Total == 0 {
					b.Fatal(err)
				}
			}
		})
	}
}
