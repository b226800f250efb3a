package orders_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/store"
)

// Few changes of orders hold the row of their team from which ids of events are taken. The ids of an order
// ascend, and no other order of the team has them, also if two processes change the orders by turns and
// transactions are undone.
func TestEventIDs_fewOrderChangesLockTheRowOfTheTeam(t *testing.T) {
	rows := newRowStore(t)
	counted := &puts{Store: rows.Store}
	opts := rows.options()
	opts.UsersElsewhere = true
	processes := [2]orders.Store{orders.NewStore(counted, opts), orders.NewStore(counted, opts)}
	team, at := conformance.Team("a"), healthlab.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	place := func(s orders.Store, name string) (orders.Record, error) {
		r := orders.Record{Order: orders.Order{
			ID: orders.OrderID{UUID: conformance.Named(name)}, TeamID: team, UserID: conformance.User("ana"), Origin: orders.OriginInitial,
			LabTest:     catalogue.LabTest{ID: catalogue.LabTestID{UUID: conformance.Named("test")}, Name: "Basics", Method: catalogue.WalkInTest},
			Details:     orders.NewDetails(catalogue.WalkInTest, conformance.Named("details"), conformance.Named("shipment"), at),
			BillingType: catalogue.ClientBill, CreatedAt: at, OrderTransaction: orders.OrderTransaction{ID: orders.TransactionID{UUID: conformance.Named("t" + name)}},
		}}
		return s.Insert(t.Context(), r, func(r *orders.Record) ([]healthlab.Event, error) {
			return orders.Begin(&r.Order, at.Time, uuid.New())
		})
	}
	step := func(s orders.Store, id orders.OrderID, on orders.Trigger, end error) (orders.Record, error) {
		return s.Update(t.Context(), team, id, func(r *orders.Record) ([]healthlab.Event, error) {
			events, err := orders.Apply(&r.Order, orders.Step{On: on, At: at.Time, EventID: uuid.New(), NotifyPartial: true})
			return events, errors.Join(err, end)
		})
	}
	seen := map[int64]bool{}
	check := func(r orders.Record) {
		t.Helper()
		for i, e := range r.Events {
			require.True(t, i == 0 || e.ID > r.Events[i-1].ID)
			require.False(t, seen[e.ID])
			seen[e.ID] = true
		}
	}
	for n := range 200 {
		r, err := place(processes[0], strconv.Itoa(n))
		require.NoError(t, err)
		require.Equal(t, int64(n+1), r.LastEvent.ID, "unused ids are given back")
		check(r)
	}
	require.LessOrEqual(t, counted.counters, 2, "once, and once more by a run that lacked the keys of the person")

	failed := errors.New("undone")
	for n := range 50 {
		r, err := place(processes[1], "of both "+strconv.Itoa(n))
		require.NoError(t, err)
		for i, on := range []orders.Trigger{orders.LabAccepted, orders.PartialResult, orders.PartialResult} {
			_, err = step(processes[(n+i)%2], r.ID, on, failed)
			require.ErrorIs(t, err, failed)
			r, err = step(processes[(n+i+1)%2], r.ID, on, nil)
			require.NoError(t, err)
		}
		check(r)
	}
}

// puts counts the rows of ids of events that are put.
type puts struct {
	store.Store
	counters int
}

func (p *puts) Update(ctx context.Context, run func(context.Context, store.Tx) error) error {
	return p.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return run(ctx, putsTx{tx, p}) })
}

type putsTx struct {
	store.Tx
	of *puts
}

func (t putsTx) Put(rows ...store.Row) {
	for _, r := range rows {
		if r.Table == "order_event_counter" {
			t.of.counters++
		}
	}
	t.Tx.Put(rows...)
}
