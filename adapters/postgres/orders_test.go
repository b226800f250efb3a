package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/appointment/appointmenttest"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/catalogue/cataloguetest"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/orders/matchtest"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/people/peopletest"
)

func newOrders(t testing.TB) orderstest.StoreHarness {
	s, setClock := clockedStore(t)
	return orderstest.StoreHarness{Orders: s.Orders(), Messages: s.WebhookLog(), SetClock: setClock}
}

func TestOrders(t *testing.T) {
	t.Parallel()
	orderstest.RunStore(t, newOrders)
}

func TestOrdersModel(t *testing.T) {
	t.Parallel()
	orderstest.RunStoreModel(t, newOrders)
}

func TestOrderKeys(t *testing.T) {
	t.Parallel()
	orderstest.RunKeys(t, func(t testing.TB) orderstest.KeysHarness { return keysOf(clockedStore(t)) })
}

func personsOf(s *postgres.Store) peopletest.StoreHarness {
	return peopletest.StoreHarness{Persons: s.Persons(), Users: s.Users()}
}

func TestPersons(t *testing.T) {
	t.Parallel()
	peopletest.RunStore(t, func(t testing.TB) peopletest.StoreHarness { return personsOf(postgres.New(pgtest.Pool(t), sealed())) })
}

func keysOf(s *postgres.Store, setClock func(time.Time)) orderstest.KeysHarness {
	return orderstest.KeysHarness{Keys: s.OrderKeys(), SetClock: setClock}
}

func reviewsOf(s *postgres.Store, setClock func(time.Time)) orderstest.ReviewsHarness {
	return orderstest.ReviewsHarness{
		Reviews: s.Reviews(), MatchTestRuns: s.MatchTestRuns(), Orders: s.Orders(), Users: s.Users(), Messages: s.WebhookLog(), SetClock: setClock,
	}
}

func erasureOf(s *postgres.Store, setClock func(time.Time)) orderstest.ErasureHarness {
	return orderstest.ErasureHarness{Users: s.Users(), Orders: s.Orders(), Keys: s.OrderKeys(), SetClock: setClock}
}

func TestReviews(t *testing.T) {
	t.Parallel()
	orderstest.RunReviews(t, func(t testing.TB) orderstest.ReviewsHarness { return reviewsOf(clockedStore(t)) })
}

func TestLabTests(t *testing.T) {
	t.Parallel()
	cataloguetest.RunLabTestStore(t, func(t testing.TB) catalogue.LabTestStore { return postgres.New(pgtest.Pool(t), sealed()).LabTests() })
}

func TestOrderErasure(t *testing.T) {
	t.Parallel()
	orderstest.RunErasure(t, func(t testing.TB) orderstest.ErasureHarness { return erasureOf(clockedStore(t)) })
}

func visitsOf(t testing.TB, s *postgres.Store) orders.VisitStore {
	t.Helper()
	v, ok := s.Orders().(orders.VisitStore)
	require.True(t, ok)
	return v
}

func TestOrderVisits(t *testing.T) {
	t.Parallel()
	orderstest.RunVisits(t, func(t testing.TB) orderstest.VisitsHarness {
		s, setClock := clockedStore(t)
		return orderstest.VisitsHarness{Orders: s.Orders(), Visits: visitsOf(t, s), SetClock: setClock}
	})
}

func TestSlotCache(t *testing.T) {
	t.Parallel()
	appointmenttest.RunSlotCache(t, func(t testing.TB) appointment.SlotCache { return postgres.New(pgtest.Pool(t), sealed()).SlotCache() })
}

// fill returns the centers of a store that has these.
func fill(t testing.TB, s *postgres.Store, list []appointment.Center) appointment.Centers {
	t.Helper()
	labs := map[int][]appointment.Center{}
	for _, c := range list {
		labs[c.LabID] = append(labs[c.LabID], c)
	}
	for lab, of := range labs {
		require.NoError(t, s.Centers().Replace(t.Context(), lab, of))
	}
	return s.Centers()
}

func TestCenters(t *testing.T) {
	t.Parallel()
	appointmenttest.RunCenters(t, func(t testing.TB, list []appointment.Center) appointment.Centers {
		return fill(t, postgres.New(pgtest.Pool(t), sealed()), list)
	})
}

func TestReplaceCenters(t *testing.T) {
	t.Parallel()
	s := postgres.New(pgtest.Pool(t), sealed())
	at := func(lab int, code string) appointment.Center {
		return appointment.Center{LabID: lab, SiteCode: code, Location: appointment.LngLat{Lng: -112, Lat: 33}, IANATimezone: "UTC",
			Metadata: appointment.PSCMetadata{Name: "n", FirstLine: "f", City: "c", State: "s", ZipCode: "85201"}}
	}
	sites := func(lab int) []string {
		near, err := s.Centers().CentersNear(t.Context(), appointment.CenterQuery{LabID: lab, Near: appointment.LngLat{Lng: -112, Lat: 33}, Miles: 10, Most: 9})
		require.NoError(t, err)
		var out []string
		for _, c := range near.Centers {
			out = append(out, c.SiteCode)
		}
		return out
	}
	fill(t, s, []appointment.Center{at(1, "A"), at(1, "B"), at(2, "A")})
	closed := at(1, "B")
	closed.Inactive = true
	require.NoError(t, s.Centers().Replace(t.Context(), 1, []appointment.Center{closed, at(1, "C")}))
	require.Equal(t, []string{"C"}, sites(1))
	require.Equal(t, []string{"A"}, sites(2))
	for _, bad := range [][]appointment.Center{{at(1, "D"), at(2, "E")}, {at(1, "")}, {at(1, "D"), at(1, "D")}} {
		require.ErrorIs(t, s.Centers().Replace(t.Context(), 1, bad), healthlab.Invalid)
	}
	require.Equal(t, []string{"C"}, sites(1))
	require.NoError(t, s.Centers().Replace(t.Context(), 1, nil))
	require.Empty(t, sites(1))
}

// The suites pass for a role that row-level security holds for.
func TestOrdersWithRowSecurity(t *testing.T) {
	skipRowSecurity(t)
	t.Parallel()
	orderstest.RunStore(t, func(t testing.TB) orderstest.StoreHarness {
		s, setClock := restrictedClock(t)
		return orderstest.StoreHarness{Orders: s.Orders(), Messages: s.WebhookLog(), SetClock: setClock}
	})
	orderstest.RunVisits(t, func(t testing.TB) orderstest.VisitsHarness {
		s, setClock := restrictedClock(t)
		return orderstest.VisitsHarness{Orders: s.Orders(), Visits: visitsOf(t, s), SetClock: setClock}
	})
	orderstest.RunKeys(t, func(t testing.TB) orderstest.KeysHarness { return keysOf(restrictedClock(t)) })
	peopletest.RunStore(t, func(t testing.TB) peopletest.StoreHarness { return personsOf(newRestricted(t)) })
	orderstest.RunReviews(t, func(t testing.TB) orderstest.ReviewsHarness { return reviewsOf(restrictedClock(t)) })
	cataloguetest.RunLabTestStore(t, func(t testing.TB) catalogue.LabTestStore { return newRestricted(t).LabTests() })
	orderstest.RunErasure(t, func(t testing.TB) orderstest.ErasureHarness { return erasureOf(restrictedClock(t)) })
}

func orderOf(u healthdata.User) orders.Record {
	return orders.Record{Order: orders.Order{
		ID: orders.OrderID{UUID: uuid.New()}, TeamID: u.Team, UserID: u.ID, Origin: orders.OriginInitial, CreatedAt: noon, UpdatedAt: noon,
		Details:          orders.NewDetails(catalogue.WalkInTest, uuid.New(), uuid.New(), noon),
		OrderTransaction: orders.OrderTransaction{ID: orders.TransactionID{UUID: uuid.New()}},
	}}
}

func unchanged(*orders.Record) ([]healthlab.Event, error) { return nil, nil }

// placeOrder adds an order of a user.
func placeOrder(t testing.TB, s *postgres.Store, u healthdata.User) orders.Record {
	t.Helper()
	r, err := s.Orders().Insert(t.Context(), orderOf(u), unchanged)
	require.NoError(t, err)
	return r
}

// insure adds demographics and an insurance record of a user, and a payor of the team.
func insure(t testing.TB, s *postgres.Store, u healthdata.User) {
	t.Helper()
	born := healthlab.Date{Year: 1984, Month: 5, Day: 9}
	require.NoError(t, s.Persons().PutUserInfo(t.Context(), u.Team, u.ID, people.UserInfo{FirstName: "Ana", DOB: born}))
	require.NoError(t, s.Persons().AddCoverage(t.Context(), people.Coverage{ID: uuid.New(), Team: u.Team, User: u.ID, ValidFrom: noon.Time,
		Record: people.InsuranceRecord{Insured: people.PersonDetails{DOB: born}}}))
	scope := idempotency.Scope{Team: u.Team, Endpoint: "insurance", Key: u.ID.String()}
	k, err := s.OrderKeys().StartKey(t.Context(), scope, "", orders.OrderID{UUID: uuid.New()}, time.Minute)
	require.NoError(t, err)
	require.NoError(t, s.OrderKeys().FinishKey(t.Context(), scope, k.Until, []byte("answer"), u.ID, time.Minute))
	require.NoError(t, s.Persons().AddPayor(t.Context(), people.StoredPayor{Team: u.Team, Payor: people.Payor{PayorCode: uuid.NewString()}, CreatedAt: noon.Time}))
}

// hold keeps a result of a user under review, and starts a test run of the team.
func hold(t testing.TB, s *postgres.Store, u healthdata.User) orders.RawResult {
	t.Helper()
	r := orders.RawResult{Team: u.Team, Subject: u.ID}
	r.ID.UUID, r.Status, r.CreatedAt, r.UpdatedAt = uuid.New(), orders.MatchPendingCustomer, noon, noon
	require.NoError(t, s.Reviews().InsertResult(t.Context(), r, nil))
	_, fresh, err := s.MatchTestRuns().StartMatchTestRun(t.Context(), matchtest.Record{Team: u.Team, Key: uuid.NewString(), Due: noon.Time,
		Run: matchtest.Run{RunID: matchtest.RunID{UUID: uuid.New()}, CreatedAt: noon, UpdatedAt: noon}})
	require.NoError(t, err)
	require.True(t, fresh)
	return r
}

func ownTest(u healthdata.User) catalogue.TeamTest {
	return catalogue.TeamTest{ID: catalogue.LabTestID{UUID: uuid.New()}, Team: u.Team, Name: "iron", CreatedAt: noon.Time, UpdatedAt: noon.Time}
}

// everyOrderWrite calls every method of the interfaces of orders that writes, once.
func everyOrderWrite(t testing.TB, s *postgres.Store, u healthdata.User) {
	t.Helper()
	at := noon.Time
	insure(t, s, u)
	r := placeOrder(t, s, u)
	raw := hold(t, s, u)
	_, err := s.Reviews().AssignResult(t.Context(), u.Team, raw.ID, orders.Assignment{Order: r.ID}, func(*orders.RawResult, *orders.Record, *orders.Record) ([]healthlab.Event, error) { return nil, nil })
	require.NoError(t, err)
	runs, err := s.MatchTestRuns().ClaimMatchTestRuns(t.Context(), 10, time.Minute)
	require.NoError(t, err)
	require.NotEmpty(t, runs)
	_, err = s.MatchTestRuns().UpdateMatchTestRun(t.Context(), u.Team, runs[0].RunID, func(*matchtest.Record) error { return nil })
	require.NoError(t, err)
	r, err = s.Orders().Update(t.Context(), u.Team, r.ID, func(r *orders.Record) ([]healthlab.Event, error) {
		r.Lab.Due = at
		return nil, nil
	})
	require.NoError(t, err)
	_, _, err = s.Orders().InsertAfter(t.Context(), r.ID, orderOf(u), func(*orders.Record, *orders.Record) ([]healthlab.Event, error) { return nil, nil })
	require.NoError(t, err)
	due, err := s.Orders().Claim(t.Context(), 10, at, time.Minute)
	require.NoError(t, err)
	require.NotEmpty(t, due)
	r, err = s.Orders().Update(t.Context(), u.Team, r.ID, func(r *orders.Record) ([]healthlab.Event, error) {
		r.Visits, r.VisitWork.Due = []orders.Visit{{Keys: []uuid.UUID{uuid.New()}}}, at
		return nil, nil
	})
	require.NoError(t, err)
	due, err = visitsOf(t, s).ClaimVisits(t.Context(), 10, at, time.Minute)
	require.NoError(t, err)
	require.NotEmpty(t, due)
	require.NoError(t, s.SlotCache().PutSlots(t.Context(), "northlab", at, map[string][]appointment.Slot{"A": nil}))
	fill(t, s, []appointment.Center{{LabID: 1, SiteCode: "A", IANATimezone: "UTC",
		Metadata: appointment.PSCMetadata{Name: "n", FirstLine: "f", City: "c", State: "s", ZipCode: "85201"}}})
	_, until, err := s.Orders().ClaimFeed(t.Context(), "northlab", time.Minute)
	require.NoError(t, err)
	require.NotZero(t, until)
	require.NoError(t, s.Orders().MoveFeed(t.Context(), "northlab", until, "c"))
	scope := idempotency.Scope{Team: u.Team, Endpoint: "order", Key: "k"}
	k, err := s.OrderKeys().StartKey(t.Context(), scope, "print", r.ID, time.Minute)
	require.NoError(t, err)
	require.NoError(t, s.OrderKeys().FinishKey(t.Context(), scope, k.Until, []byte("answer"), healthlab.UserID{}, time.Hour))
	scope.Key = "old"
	_, err = s.OrderKeys().StartKey(t.Context(), scope, "print", r.ID, -48*time.Hour)
	require.NoError(t, err)
	n, err := s.OrderKeys().PruneKeys(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	own := ownTest(u)
	require.NoError(t, s.LabTests().InsertLabTest(t.Context(), own))
	_, err = s.LabTests().UpdateLabTest(t.Context(), u.Team, own.ID, func(*catalogue.TeamTest) error { return nil })
	require.NoError(t, err)
}

// An order that is being changed is not claimed, and what a claim wrote stays when the
// order is changed by a transaction that began before.
func TestClaimsAndChangesOfOneOrder(t *testing.T) {
	t.Parallel()
	s, setClock := clockedStore(t)
	setClock(noon.Time)
	u := newPerson(t, s)
	at, end := noon.Time, noon.Add(time.Minute)
	r := orderOf(u)
	r.Lab.Due = at
	_, err := s.Orders().Insert(t.Context(), r, unchanged)
	require.NoError(t, err)
	claim := func(want int) {
		due, err := s.Orders().Claim(t.Context(), 10, at, time.Minute)
		require.NoError(t, err)
		require.Len(t, due, want)
	}
	_, err = s.Orders().Update(t.Context(), u.Team, r.ID, func(*orders.Record) ([]healthlab.Event, error) {
		claim(0)
		return nil, nil
	})
	require.NoError(t, err)
	claim(1)
	got, err := s.Orders().Update(t.Context(), u.Team, r.ID, unchanged)
	require.NoError(t, err)
	require.Equal(t, end, got.Lab.Lease)
	require.Equal(t, 1, got.Lab.Attempts)
	claim(0)
}

// Changes of one order transaction wait for each other, and for no other change of the team.
func TestOrdersOfATeamDoNotWait(t *testing.T) {
	t.Parallel()
	s := postgres.New(pgtest.Pool(t), sealed())
	u := newPerson(t, s)
	one, two := placeOrder(t, s, u), placeOrder(t, s, u)
	var ids []int64
	_, err := s.Orders().Update(t.Context(), u.Team, one.ID, func(r *orders.Record) ([]healthlab.Event, error) {
		ids = append(ids, r.NextEventID)
		_, err := s.Orders().Update(t.Context(), u.Team, two.ID, func(r *orders.Record) ([]healthlab.Event, error) {
			ids = append(ids, r.NextEventID)
			return nil, nil
		})
		return nil, err
	})
	require.NoError(t, err)
	require.Len(t, ids, 2)
	require.GreaterOrEqual(t, ids[1], ids[0]+100)
}

// Erasing takes the lock of a transaction when its last order goes, and leaves it to
// each user with an order in it.
func TestErasedTransactions(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := postgres.New(pool, sealed())
	ann := newPerson(t, s)
	bob := personOf(ann.Team)
	require.NoError(t, s.Users().Insert(t.Context(), bob, 0))
	placeOrder(t, s, ann)
	shared := placeOrder(t, s, ann)
	other := orderOf(bob)
	other.OrderTransaction.ID = shared.OrderTransaction.ID
	_, err := s.Orders().Insert(t.Context(), other, unchanged)
	require.NoError(t, err)
	for _, tc := range []struct {
		u    healthdata.User
		left int
	}{{ann, 1}, {bob, 0}} {
		_, err := s.Users().Update(t.Context(), tc.u.Team, tc.u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
			u.DeletedAt = noon.Time
			return nil, nil
		})
		require.NoError(t, err)
		require.NoError(t, s.Users().Erase(t.Context(), tc.u.Team, tc.u.ID))
		require.Equal(t, tc.left, rows(t, pool, "order_transaction"))
		require.Equal(t, tc.left, rows(t, pool, "orders"))
	}
}

func TestOrdersOfErasedKeys(t *testing.T) {
	t.Parallel()
	orderstest.RunErasedKeys(t, func(t testing.TB) orderstest.ErasedKeysHarness {
		opts := sealed()
		s := postgres.New(pgtest.Pool(t), opts)
		return orderstest.ErasedKeysHarness{Orders: s.Orders(), Reviews: s.Reviews(), Keys: opts.Keys}
	})
}
