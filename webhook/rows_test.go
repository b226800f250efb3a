package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/webhooktest"
)

// storeClock is the time of day, moved forward as far as it is told to.
type storeClock struct{ ahead atomic.Int64 }

func (c *storeClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *storeClock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// rowStore returns an encrypted store in memory for the tables of webhooks and users.
func rowStore(t testing.TB, now func() time.Time) store.Store {
	t.Helper()
	tables := append(webhook.Tables(), store.Definition{Name: store.UserTable})
	engine, err := memstore.New(tables, &memstore.Options{Now: now})
	require.NoError(t, err)
	return personkey.Encrypt(engine, storeKeys(t), tables)
}

func storeKeys(t testing.TB) *personkey.Keys {
	t.Helper()
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	return personkey.New(memory.NewPersonKeys(), sealer, nil)
}

func TestOutbox_overRowsPassesTheSuite(t *testing.T) {
	webhooktest.RunOutbox(t, func(t *testing.T) webhooktest.OutboxHarness {
		s := webhook.NewStore(rowStore(t, nil), nil)
		return webhooktest.OutboxHarness{Outbox: s, Message: s.Message}
	})
}

func storeHarness(t *testing.T) webhooktest.Harness {
	c := &storeClock{}
	s := webhook.NewStore(rowStore(t, c.now), nil)
	return webhooktest.Harness{Outbox: s, Deliveries: s, Endpoints: s, Log: s, Bodies: s, Advance: c.advance}
}

func TestDeliveries_overRowsPassTheSuite(t *testing.T) { webhooktest.RunDeliveries(t, storeHarness) }

func TestEndpoints_overRowsPassTheSuite(t *testing.T) { webhooktest.RunEndpoints(t, storeHarness) }

func TestBodies_overRowsPassTheSuite(t *testing.T) { webhooktest.RunBodies(t, storeHarness) }

func TestDeliveries_keepTheOrderOfAKeyUnderFailures(t *testing.T) {
	webhooktest.RunOrderUnderFailures(t, storeHarness)
}

func TestDeliveries_overRowsPassTheModelSuite(t *testing.T) {
	webhooktest.RunDeliveriesModel(t, storeHarness)
}

func TestDispatcher_overRowsPassesTheSuite(t *testing.T) { webhooktest.RunDispatcher(t, storeHarness) }

// storeBench is a Store over rows, and words for what tests do with it.
type storeBench struct {
	*testing.T
	*webhook.Store
	storeClock
	rows store.Store
	team healthlab.TeamID
	to   webhook.EndpointID
}

func newStoreBench(t *testing.T, opts *webhook.StoreOptions, change ...func(*webhook.Endpoint)) *storeBench {
	b := &storeBench{T: t, team: healthlab.TeamID{UUID: uuid.New()}, to: webhook.EndpointID{UUID: uuid.New()}}
	b.rows = rowStore(t, b.now)
	b.Store = webhook.NewStore(b.rows, opts)
	e := webhook.Endpoint{ID: b.to, Team: b.team, URL: "https://receiver.example.com/in?token=planted"}
	for _, c := range change {
		c(&e)
	}
	require.NoError(t, b.Insert(t.Context(), e, 1))
	return b
}

func (b *storeBench) event(user healthlab.UserID, key string) healthlab.Event {
	return healthlab.Event{
		ID: uuid.Must(uuid.NewV7()), Type: "test.ordered.changed", Team: b.team, User: user, Key: key, Data: json.RawMessage(`{"a": "planted"}`),
	}
}

func (b *storeBench) write(user healthlab.UserID, key string) uuid.UUID {
	b.Helper()
	e := b.event(user, key)
	require.NoError(b, b.Append(b.Context(), []healthlab.Event{e}))
	return e.ID
}

func (b *storeBench) route() int {
	b.Helper()
	routed, err := b.Route(b.Context(), nil, 100)
	require.NoError(b, err)
	return routed.Events
}

func (b *storeBench) claim() []webhook.Delivery {
	b.Helper()
	c, err := b.Claim(b.Context(), webhook.Claim{Quotas: []webhook.Quota{{Endpoint: b.to, Max: 9}}, Lease: time.Minute})
	require.NoError(b, err)
	return c.Deliveries
}

func (b *storeBench) succeed(d webhook.Delivery) webhook.RecordedOutcomes {
	b.Helper()
	recorded, err := b.RecordOutcomes(b.Context(), []webhook.Outcome{{Delivery: d, State: webhook.Succeeded, Sent: true, Response: []byte("planted")}})
	require.NoError(b, err)
	return recorded
}

func (b *storeBench) known(event uuid.UUID) bool {
	_, err := b.Message(b.Context(), b.team, event)
	return err == nil
}

// about returns the rows about a user, by table.
func (b *storeBench) about(user healthlab.UserID) map[string]int {
	b.Helper()
	got, err := b.rows.Read(b.Context(), store.Query{Key: store.Key{User: user}, By: store.ByUser})
	require.NoError(b, err)
	out := map[string]int{}
	for _, r := range got[0] {
		out[r.Table]++
	}
	return out
}

// What is older than the retention is removed: messages, attempts, and deliveries that were never
// finished. What is not routed yet stays, however old.
func TestStore_removesOldRowsButNothingUnrouted(t *testing.T) {
	b := newStoreBench(t, nil)
	nobody := healthlab.UserID{}
	first, second := b.write(nobody, "k"), b.write(nobody, "k")
	require.Equal(t, 2, b.route())
	b.succeed(b.claim()[0])
	waits := b.write(nobody, "k") // and no router for a month

	b.advance(29 * 24 * time.Hour)
	fresh := b.write(nobody, "k")
	require.True(t, b.known(first))

	b.advance(2 * 24 * time.Hour)
	last := b.write(nobody, "k")
	require.Equal(t, 3, b.route())
	require.False(t, b.known(first))
	require.False(t, b.known(second))
	require.True(t, b.known(waits))
	for i, want := range []uuid.UUID{waits, fresh, last} {
		got := b.claim()
		require.Len(t, got, 1)
		require.Equal(t, want, got[0].Event, "the unfinished old one is gone")
		require.Equal(t, int64(i+3), got[0].Seq, "the count goes on")
		b.succeed(got[0])
	}
	page, err := b.Attempts(t.Context(), webhook.AttemptQuery{Team: b.team})
	require.NoError(t, err)
	require.Len(t, page.Attempts, 3)
}

// putUser writes the row of a user as package healthdata does.
func (b *storeBench) putUser(user healthlab.UserID, deletedAt time.Time) {
	b.Helper()
	require.NoError(b, b.rows.Update(b.Context(), func(_ context.Context, tx store.Tx) error {
		got, err := tx.Read(store.User(b.team, user).Hold())
		name := "client " + user.String()
		r := store.Row{Key: store.UserKey(b.team, user), Index: store.UserIndex(user, name, b.now(), deletedAt), Doc: []byte(`{"ClientUserID":"` + name + `"}`)}
		if len(got[0]) > 0 {
			r.Revision = got[0][0].Revision
		}
		tx.Put(r)
		return err
	}))
}

func (b *storeBench) forget(opts *webhook.StoreOptions, user healthlab.UserID) {
	b.Helper()
	require.NoError(b, b.rows.Update(b.Context(), func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.Read(store.User(b.team, user).Hold()); err != nil {
			return err
		}
		return webhook.NewOutbox(opts).Forget(ctx, tx, b.team, user)
	}))
}

// Forgetting a user removes all rows about the user but the counts of keys, wherever a message
// stands, and nothing of others: what waited behind a message goes on.
func TestForget_removesOneUsersMessagesAndUnblocksOthers(t *testing.T) {
	for _, scope := range []webhook.OrderScope{webhook.OrderKey, webhook.OrderUser} {
		t.Run(string(scope), func(t *testing.T) {
			b := newStoreBench(t, nil, func(e *webhook.Endpoint) { e.OrderScope = scope })
			gone, stays := healthlab.UserID{UUID: uuid.New()}, healthlab.UserID{UUID: uuid.New()}
			b.putUser(gone, time.Time{})
			b.putUser(stays, time.Time{})
			finished := b.write(gone, "own")
			b.route()
			b.succeed(b.claim()[0])
			events := []uuid.UUID{finished, b.write(gone, "own"), b.write(gone, "own"), b.write(gone, "shared")}
			others := []uuid.UUID{b.write(stays, "shared"), b.write(healthlab.UserID{}, "shared")}
			b.route()
			sending := b.claim()
			unrouted := []uuid.UUID{b.write(gone, "own"), b.write(gone, ""), b.write(gone, "shared")}
			b.forget(nil, gone)
			b.putUser(gone, b.now())
			require.Equal(t, map[string]int{store.UserTable: 1, "webhook_key": 1}, b.about(gone))
			for _, e := range append(events, unrouted...) {
				require.False(t, b.known(e))
			}
			for _, d := range sending {
				if d.Event == events[1] || d.Event == events[3] {
					require.Len(t, b.succeed(d).Lost, 1)
				} else {
					require.Empty(t, b.succeed(d).Lost)
				}
			}
			require.Equal(t, map[string]int{store.UserTable: 1, "webhook_key": 1}, b.about(gone), "a late outcome leaves nothing")
			require.NoError(t, b.Append(t.Context(), []healthlab.Event{b.event(gone, "own")}), "left out")
			last := b.write(stays, "shared")
			for range 2 {
				b.route()
			}
			var got []uuid.UUID
			for _, d := range sending {
				if d.Event == others[0] || d.Event == others[1] {
					got = append(got, d.Event)
				}
			}
			for list := b.claim(); len(list) > 0; list = b.claim() {
				for _, d := range list {
					got = append(got, d.Event)
					b.succeed(d)
				}
			}
			require.ElementsMatch(t, append(others, last), got)
			require.Equal(t, int64(5), b.seq(last), "the count goes on")
		})
	}
}

func (b *storeBench) seq(event uuid.UUID) int64 {
	b.Helper()
	m, err := b.Message(b.Context(), b.team, event)
	require.NoError(b, err)
	return m.Seq
}

// The events of an outbox commit with the change, know the user's own name for the team, and wake
// the dispatcher once the commit is there.
func TestNewOutbox_eventsCommitWithTheChange(t *testing.T) {
	written := 0
	opts := &webhook.StoreOptions{OnWritten: func() { written++ }}
	b := newStoreBench(t, opts)
	user := healthlab.UserID{UUID: uuid.New()}
	b.putUser(user, time.Time{})
	e, undo := b.event(user, "k"), errors.New("undo")
	change := func(fail error) error {
		return b.rows.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			if err := webhook.NewOutbox(opts).Append(ctx, tx, []healthlab.Event{e}); err != nil {
				return err
			}
			require.Zero(t, written)
			return fail
		})
	}
	require.ErrorIs(t, change(undo), undo)
	require.Zero(t, written)
	require.False(t, b.known(e.ID))
	require.NoError(t, change(nil))
	require.Equal(t, 1, written)
	m, err := b.Message(t.Context(), b.team, e.ID)
	require.NoError(t, err)
	require.Contains(t, string(m.Body), `"client_user_id":"client `+user.String()+`"`)
	require.Equal(t, int64(1), m.Seq)
}

// puts counts what transactions put, by table.
type puts struct {
	store.Store
	put map[string]int
}

type putsTx struct {
	store.Tx
	puts
}

func (p puts) Update(ctx context.Context, run func(context.Context, store.Tx) error) error {
	return p.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		clear(p.put)
		return run(ctx, putsTx{tx, p})
	})
}

func (t putsTx) Put(rows ...store.Row) {
	for _, r := range rows {
		t.put[r.Table]++
	}
	t.Tx.Put(rows...)
}

// An append puts the event and the count of its key: no row of the team, of its endpoints or of lanes,
// which concurrent requests would share.
func TestNewOutbox_appendWritesOnlyTheEventAndItsKeyCounter(t *testing.T) {
	b := newStoreBench(t, nil)
	p := puts{b.rows, map[string]int{}}
	s := webhook.NewStore(p, nil)
	for range 3 {
		require.NoError(t, s.Append(t.Context(), []healthlab.Event{b.event(healthlab.UserID{UUID: uuid.New()}, "k")}))
		require.Equal(t, map[string]int{"webhook_event": 1, "webhook_key": 1}, p.put)
		b.route()
	}
}

// Nothing of a message, an answer or the URL of an endpoint is stored in clear.
func TestStore_encryptsMessagesAnswersAndURLs(t *testing.T) {
	tables := append(webhook.Tables(), store.Definition{Name: store.UserTable})
	engine, err := memstore.New(tables, nil)
	require.NoError(t, err)
	b := newStoreBench(t, nil)
	b.rows = personkey.Encrypt(engine, storeKeys(t), tables)
	b.Store = webhook.NewStore(b.rows, nil)
	require.NoError(t, b.Insert(t.Context(), webhook.Endpoint{ID: b.to, Team: b.team, URL: "https://receiver.example.com/in?token=planted"}, 1))
	user := healthlab.UserID{UUID: uuid.New()}
	for range 3 {
		b.write(user, "planted key")
	}
	b.route()
	b.succeed(b.claim()[0])
	for _, d := range tables {
		for _, team := range []healthlab.TeamID{{}, b.team} {
			got, err := engine.Read(t.Context(), store.Query{Key: store.Key{Table: d.Name, Team: team}, By: store.ByID})
			require.NoError(t, err)
			for _, r := range got[0] {
				require.NotContains(t, r.ID+r.Index[0]+r.Index[1]+string(r.Doc), "planted", d.Name)
			}
		}
	}
}

// Neither ids nor the times of writing order the events of a key: another process may have taken its
// id, or begun, before.
func TestStore_ordersEventsOfAKeyByTheirSequence(t *testing.T) {
	b := newStoreBench(t, nil)
	var ids []uuid.UUID
	for range 12 {
		ids = append(ids, uuid.Must(uuid.NewV7()))
	}
	var want []uuid.UUID
	for i := range 6 {
		e := b.event(healthlab.UserID{}, "k")
		e.ID = ids[len(ids)-1-i]
		other := b.event(healthlab.UserID{}, "l")
		other.ID = ids[i]
		require.NoError(t, b.Append(t.Context(), []healthlab.Event{e, other}))
		want = append(want, e.ID)
		b.advance(-time.Hour)
	}
	b.advance(7 * time.Hour)
	var got []uuid.UUID
	for range 30 {
		_, err := b.Route(t.Context(), nil, 4) // in several batches, each of a part of a key
		require.NoError(t, err)
		for _, d := range b.claim() {
			if d.Key == "k" {
				got = append(got, d.Event)
			}
			b.succeed(d)
		}
	}
	require.Equal(t, want, got)
}

// A reader gets what is appended, with its Seq, and nothing else; what it refuses is not appended.
func TestNewOutbox_readersReceiveEventsAndMayRefuseThem(t *testing.T) {
	var got []healthlab.Event
	refused := errors.New("refused")
	b := newStoreBench(t, &webhook.StoreOptions{Readers: []webhook.Reader{
		func(_ context.Context, _ store.Tx, events []healthlab.Event) error { got = events; return nil },
		func(_ context.Context, _ store.Tx, events []healthlab.Event) error {
			if events[0].Key == "refused" {
				return refused
			}
			return nil
		},
	}})
	live, deleted := healthlab.UserID{UUID: uuid.New()}, healthlab.UserID{UUID: uuid.New()}
	b.putUser(live, time.Time{})
	b.putUser(deleted, b.now())
	want := []healthlab.Event{b.event(live, "k"), b.event(live, "k"), b.event(healthlab.UserID{}, "")}
	require.NoError(t, b.Append(t.Context(), []healthlab.Event{want[0], b.event(deleted, "k"), want[1], want[2]}))
	want[0].Seq, want[1].Seq = 1, 2
	require.Equal(t, want, got)
	e := b.event(live, "refused")
	require.ErrorIs(t, b.Append(t.Context(), []healthlab.Event{e}), refused)
	require.False(t, b.known(e.ID))
	got = nil
	require.NoError(t, b.Append(t.Context(), []healthlab.Event{b.event(deleted, "k")}))
	require.Nil(t, got)
}

// The backlog is what is not routed, and what is not finished, with the age of the oldest.
func TestBacklog_countsUnroutedAndUnfinishedWithTheOldestAge(t *testing.T) {
	b := newStoreBench(t, nil)
	backlog := func(unrouted, unfinished int, age time.Duration) {
		t.Helper()
		got, err := b.Backlog(t.Context())
		require.NoError(t, err)
		require.Equal(t, []int{unrouted, unfinished}, []int{got.Unrouted, got.Unfinished})
		require.InDelta(t, age, got.Oldest, float64(time.Minute))
	}
	backlog(0, 0, 0)
	for _, key := range []string{"k", "k", "k", "", "l"} {
		b.write(healthlab.UserID{}, key)
	}
	b.advance(time.Hour)
	backlog(5, 0, time.Hour)
	require.Equal(t, 5, b.route())
	backlog(0, 5, 0)
	b.advance(time.Hour)
	b.write(healthlab.UserID{}, "k")
	backlog(1, 5, time.Hour)
	b.succeed(b.claim()[0])
	backlog(1, 4, time.Hour)
}
