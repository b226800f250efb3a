package orders_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/internal/eventlog"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/appointment/appointmenttest"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/catalogue/cataloguetest"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/orders/labjournal/labjournaltest"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/people/peopletest"
	"github.com/healthlab-dev/healthlab/orders/simulation"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/webhook"
)

// rowStore is an encrypted store in memory with users, orders and what belongs to orders.
type rowStore struct {
	store.Store
	engine   *memstore.Engine // without the encryption
	log      eventlog.Log
	setClock func(time.Time)
}

func newRowStore(t testing.TB) rowStore {
	t.Helper()
	tables := []store.Definition{userRows.Definition()}
	for _, more := range [][]store.Definition{eventlog.Tables(), orders.Tables(), exchange.Tables(), idempotency.Tables(), simulation.Tables(),
		catalogue.Tables(), appointment.Tables(), people.Tables(), labjournal.Tables()} {
		tables = append(tables, more...)
	}
	clock := conformance.NewClock(time.Unix(0, 0))
	engine, err := memstore.New(tables, &memstore.Options{Now: clock.Now})
	require.NoError(t, err)
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	s := personkey.Encrypt(engine, personkey.New(memory.NewPersonKeys(), sealer, nil), tables)
	return rowStore{s, engine, eventlog.New(s), clock.Set}
}

func (s rowStore) options() *orders.StoreOptions { return &orders.StoreOptions{Events: s.log} }

func (s rowStore) elsewhere() *orders.StoreOptions {
	return &orders.StoreOptions{Events: s.log, UsersElsewhere: true}
}

func newRowOrders(t testing.TB) orderstest.StoreHarness {
	s := newRowStore(t)
	return orderstest.StoreHarness{Orders: orders.NewStore(s, s.elsewhere()), Messages: messages{log: s.log}, SetClock: s.setClock}
}

func TestStore_overRowsPassesTheSuite(t *testing.T) { orderstest.RunStore(t, newRowOrders) }

func TestOrders_overRowsPassTheModelSuite(t *testing.T) { orderstest.RunStoreModel(t, newRowOrders) }

func TestIdempotencyKeys_overRowsPassTheSuite(t *testing.T) {
	orderstest.RunKeys(t, func(t testing.TB) orderstest.KeysHarness {
		s := newRowStore(t)
		return orderstest.KeysHarness{Keys: idempotency.NewStore(s, nil), SetClock: s.setClock}
	})
}

func TestReviews_overRowsPassTheSuite(t *testing.T) {
	orderstest.RunReviews(t, func(t testing.TB) orderstest.ReviewsHarness {
		s := newRowStore(t)
		return orderstest.ReviewsHarness{
			Reviews: exchange.NewReviewStore(s, s.options()), MatchTestRuns: simulation.NewMatchTestStore(s), Orders: orders.NewStore(s, s.options()),
			Users: usersOf{s: s}, Messages: messages{log: s.log}, SetClock: s.setClock,
		}
	})
}

func TestOrders_overRowsPassTheErasureSuite(t *testing.T) {
	orderstest.RunErasure(t, func(t testing.TB) orderstest.ErasureHarness {
		s := newRowStore(t)
		return orderstest.ErasureHarness{
			Users: usersOf{s: s}, Orders: orders.NewStore(s, s.options()), Keys: idempotency.NewStore(s, nil), SetClock: s.setClock,
		}
	})
}

func TestVisits_overRowsPassTheSuite(t *testing.T) {
	orderstest.RunVisits(t, func(t testing.TB) orderstest.VisitsHarness {
		s := newRowStore(t)
		both := orders.NewStore(s, s.elsewhere())
		return orderstest.VisitsHarness{Orders: both, Visits: both, SetClock: s.setClock}
	})
}

func twoProcesses(t testing.TB) []orderstest.Process {
	s := newRowStore(t)
	p := orderstest.Process{Orders: orders.NewStore(s, s.elsewhere()), Reviews: exchange.NewReviewStore(s, s.elsewhere()), Keys: idempotency.NewStore(s, &idempotency.StoreOptions{UsersElsewhere: true}), Messages: messages{log: s.log}}
	return []orderstest.Process{p, p}
}

func TestOrders_overRowsPassTheTwoProcessesSuite(t *testing.T) {
	orderstest.RunTwoProcesses(t, twoProcesses)
}

func TestOrders_overRowsPassTheConcurrentCreatesSuite(t *testing.T) {
	orderstest.RunConcurrentCreates(t, twoProcesses)
}

// messages shows events. It has no other method of webhook.Log.
type messages struct {
	webhook.Log
	log eventlog.Log
}

func (m messages) Message(ctx context.Context, team healthlab.TeamID, event uuid.UUID) (webhook.Message, error) {
	return m.log.Message(ctx, team, event)
}

func TestLabTests_overRowsPassTheSuite(t *testing.T) {
	cataloguetest.RunLabTestStore(t, func(t testing.TB) catalogue.LabTestStore { return catalogue.NewLabTestStore(newRowStore(t)) })
}

func TestSlotCache_overRowsPassesTheSuite(t *testing.T) {
	appointmenttest.RunSlotCache(t, func(t testing.TB) appointment.SlotCache { return appointment.NewSlotCache(newRowStore(t)) })
}

func TestPersons_overRowsPassTheSuite(t *testing.T) {
	peopletest.RunStore(t, func(t testing.TB) peopletest.StoreHarness {
		s := newRowStore(t)
		return peopletest.StoreHarness{Persons: people.NewStore(s, &people.StoreOptions{UsersElsewhere: true}), Users: usersOf{s: s}}
	})
}

func TestLabJournal_overRowsPassesTheSuite(t *testing.T) {
	labjournaltest.RunStore(t, func(t testing.TB) labjournaltest.Harness {
		s := newRowStore(t)
		return labjournaltest.Harness{Journal: labjournal.NewStore(s, &labjournal.StoreOptions{UsersElsewhere: true}), Users: usersOf{s: s}}
	})
}

// userRow is a user as the suites need it.
type userRow struct {
	User      healthdata.User
	Team      healthlab.TeamID
	DeletedAt time.Time
}

var userRows = store.Table[userRow]{Name: store.UserTable, Unique: [2]bool{true, false}, Row: func(u *userRow) store.Row {
	return store.Row{
		Key:   store.UserKey(u.Team, u.User.ID),
		Index: store.UserIndex(u.User.ID, u.User.ClientUserID, u.User.CreatedOn.Time, u.DeletedAt),
	}
}}

// usersOf adds, deletes and erases users of a store. It has no other method of healthdata.Users.
type usersOf struct {
	healthdata.Users
	s store.Store
}

func (v usersOf) Insert(ctx context.Context, u healthdata.User, _ int) error {
	return v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		return userRows.Insert(tx, &userRow{u, u.Team, u.DeletedAt})
	})
}

func (v usersOf) Get(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (healthdata.User, error) {
	u, err := userRows.LookOne(ctx, v.s, store.UserKey(team, id))
	if err != nil {
		return healthdata.User{}, err
	}
	if u == nil {
		return healthdata.User{}, fmt.Errorf("%w: user", healthlab.NotFound)
	}
	return u.Value.User, nil
}

func (v usersOf) Update(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, change func(*healthdata.User) ([]healthlab.Event, error)) (out healthdata.User, err error) {
	err = v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		u, err := userRows.Get(tx, store.UserKey(team, id), store.Held)
		if err != nil {
			return err
		}
		if u == nil {
			return fmt.Errorf("%w: user", healthlab.NotFound)
		}
		if _, err := change(&u.Value.User); err != nil {
			return err
		}
		u.Value.DeletedAt, out = u.Value.User.DeletedAt, u.Value.User
		return userRows.Put(tx, u)
	})
	return out, err
}

func (v usersOf) Erase(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) error {
	return v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		rows, err := tx.Read(store.Query{Key: store.Key{User: id}, By: store.ByUser, Lock: store.Held, Bare: true})
		if err != nil {
			return err
		}
		for _, r := range rows[0] {
			if r.Team == team || r.Team.IsZero() {
				tx.Delete(r.Key)
			}
		}
		return nil
	})
}

// Rows about a user of whom the store knows nothing are refused, so that none is left behind an
// erasure.
func TestStores_rowsOfAnUnknownUserAreRefused(t *testing.T) {
	s := newRowStore(t)
	ctx, team, user := t.Context(), conformance.Team("a"), conformance.User("ana")
	require.ErrorIs(t, people.NewStore(s, nil).PutUserInfo(ctx, team, user, people.UserInfo{}), healthlab.NotFound)

	journal := labjournal.NewStore(s, nil)
	_, err := journal.Open(ctx, "north", labjournal.Record{Number: "1", Team: team, User: user})
	require.ErrorIs(t, err, healthlab.NotFound)
	fresh, err := journal.Take(ctx, "north", labjournal.Delivery{Key: "k", Team: team}, nil, func(map[string]*labjournal.Record) (labjournal.Outcome, error) {
		return labjournal.Outcome{Messages: []labjournal.Message{{Team: team, User: user}, {Team: team}}}, nil
	})
	require.NoError(t, err)
	require.True(t, fresh)
	feed, err := journal.Feed(ctx, "north", 0, 10)
	require.NoError(t, err)
	require.Len(t, feed, 1)
	require.True(t, feed[0].User.IsZero())

	keys := idempotency.NewStore(s, nil)
	scope := idempotency.Scope{Team: team, Endpoint: "order", Key: "k"}
	state, err := keys.StartKey(ctx, scope, "print", orders.OrderID{UUID: uuid.New()}, time.Minute)
	require.NoError(t, err)
	require.NoError(t, keys.FinishKey(ctx, scope, state.Until, []byte("answer"), user, time.Hour))
	state, err = keys.StartKey(ctx, scope, "print", orders.OrderID{UUID: uuid.New()}, time.Minute)
	require.NoError(t, err)
	require.True(t, state.Started)
	require.Nil(t, state.Answer)
}

// What identifies a sample or a patient is in no key, no index value and no document that is kept in
// clear; and an erasure leaves no row of the user.
func TestStores_keysAndClearDocumentsContainNoPatientData(t *testing.T) {
	s := newRowStore(t)
	users, team, user := usersOf{s: s}, conformance.Team("a"), conformance.User("ana")
	require.NoError(t, users.Insert(t.Context(), healthdata.User{ID: user, Team: team, ClientUserID: "c"}, 0))
	id := orders.OrderID{UUID: uuid.New()}
	order := orders.Record{Order: orders.Order{
		ID: id, TeamID: team, UserID: user, SampleID: new("planted sample"), Notes: new("planted note"),
		PatientDetails: &people.PatientDetails{FirstName: new("planted name"), DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9}}, OrderTransaction: orders.OrderTransaction{ID: orders.TransactionID{UUID: uuid.New()}},
	}}
	order.Lab.Due, order.VisitWork.Due, order.Notifications.Due = time.Unix(0, 0), time.Unix(0, 0), time.Unix(0, 0)
	_, err := orders.NewStore(s, s.options()).Insert(t.Context(), order, func(*orders.Record) ([]healthlab.Event, error) { return nil, nil })
	require.NoError(t, err)
	require.NoError(t, exchange.NewReviewStore(s, s.options()).InsertResult(t.Context(), exchange.RawResult{
		Team: team, Subject: user, UnmatchedResult: exchange.UnmatchedResult{ID: exchange.RawResultID{UUID: uuid.New()}, Reason: "planted reason"},
	}, nil))

	of := func() []store.Row {
		rows, err := s.engine.Read(t.Context(), store.Query{Key: store.Key{User: user}, By: store.ByUser})
		require.NoError(t, err)
		return rows[0]
	}
	require.Len(t, of(), 8, "the user, the order, its two names, three kinds of work and the result")
	for _, r := range of() {
		require.NotContains(t, r.ID+r.Index[0]+r.Index[1]+string(r.Doc), "planted", r.Table)
	}
	require.NoError(t, users.Erase(t.Context(), team, user))
	require.Empty(t, of())
}

// An order that changes its user, as that of a kit that is registered for another person, is erased
// with the new user and stays, with all by which it is found, when the first one is erased.
func TestStore_reassignedOrderIsErasedWithItsNewUser(t *testing.T) {
	s := newRowStore(t)
	ctx, users, team := t.Context(), usersOf{s: s}, conformance.Team("a")
	first, second := conformance.User("ana"), conformance.User("bo")
	for _, user := range []healthlab.UserID{first, second} {
		require.NoError(t, users.Insert(ctx, healthdata.User{ID: user, Team: team, ClientUserID: user.String()}, 0))
	}
	kept := orders.NewStore(s, s.options())
	id := orders.OrderID{UUID: uuid.New()}
	order := orders.Record{Order: orders.Order{
		ID: id, TeamID: team, UserID: first, SampleID: new("A1"), OrderTransaction: orders.OrderTransaction{ID: orders.TransactionID{UUID: uuid.New()}},
	}}
	order.Visits = []orders.Visit{{Keys: []uuid.UUID{uuid.New()}}}
	order.Lab.Due = time.Unix(0, 0)
	edit := func(to healthlab.UserID) orders.Change {
		return func(r *orders.Record) ([]healthlab.Event, error) {
			r.UserID = to
			return nil, nil
		}
	}
	_, err := kept.Insert(ctx, order, edit(first))
	require.NoError(t, err)
	_, err = kept.Update(ctx, team, id, edit(conformance.User("cy")))
	require.ErrorIs(t, err, healthlab.NotFound, "a user whom the store does not keep")
	_, err = kept.Update(ctx, team, id, edit(second))
	require.NoError(t, err)

	require.NoError(t, users.Erase(ctx, team, first))
	found, err := kept.FindSample(ctx, team, "A1")
	require.NoError(t, err)
	require.Equal(t, second, found.UserID)
	claimed, err := kept.Claim(ctx, 10, time.Unix(0, 0), time.Hour)
	require.NoError(t, err)
	require.Len(t, claimed, 1)
	order.UserID, order.SampleID = second, nil
	_, err = kept.Insert(ctx, order, edit(second))
	require.ErrorIs(t, err, healthlab.Conflict, "the id is taken")
	order.ID = orders.OrderID{UUID: uuid.New()}
	var reserved *orders.ReservedError
	_, err = kept.Insert(ctx, order, edit(second))
	require.ErrorAs(t, err, &reserved)

	require.NoError(t, users.Erase(ctx, team, second))
	_, err = kept.Get(ctx, team, id)
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = kept.FindSample(ctx, team, "A1")
	require.ErrorIs(t, err, healthlab.NotFound)
}
