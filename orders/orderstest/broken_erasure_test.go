package orderstest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
)

// brokenErasures are stores that forget too little of an erased user, or too much.
var brokenErasures = []conformance.Broken{
	{Name: "keeps the orders of the erased", Suite: erasing(func(h *orderstest.ErasureHarness, astray *memory.Store) {
		h.Orders = astray.Orders()
	}), Subtest: "Erase/Orders"},
	{Name: "takes orders of the deleted", Suite: erasing(func(h *orderstest.ErasureHarness, astray *memory.Store) {
		h.Orders = careless{h.Orders, astray.Orders()}
	}), Subtest: "Erase/Gone"},
	{Name: "takes orders while it erases", Suite: erasing(func(h *orderstest.ErasureHarness, astray *memory.Store) {
		h.Orders = hasty{careless{h.Orders, astray.Orders()}}
	}), Subtest: "Erase/Meanwhile"},
	{Name: "keeps the answers of the erased", Suite: erasing(func(h *orderstest.ErasureHarness, astray *memory.Store) {
		h.Keys = astray.OrderKeys()
	}), Subtest: "Erase/Keys"},
	{Name: "lists orders of the deleted", Suite: erasing(func(h *orderstest.ErasureHarness, astray *memory.Store) {
		h.Orders = astray.Orders()
	}), Subtest: "Delete/Lists"},
	{Name: "hands out orders of the deleted as others", Suite: erasing(func(h *orderstest.ErasureHarness, _ *memory.Store) {
		h.Orders = unmarked{h.Orders}
	}), Subtest: "Delete/BackgroundWorkGoesOn"},
	{Name: "notifies the deleted", Suite: erasing(func(h *orderstest.ErasureHarness, astray *memory.Store) {
		h.Orders = astray.Orders()
	}), Subtest: "Delete/Notifications"},
	{Name: "repeats answers about the deleted", Suite: erasing(func(h *orderstest.ErasureHarness, astray *memory.Store) {
		h.Keys = astray.OrderKeys()
	}), Subtest: "Delete/Answers"},
	{Name: "erases whole transactions", Suite: erasing(func(h *orderstest.ErasureHarness, _ *memory.Store) {
		b := &tracked{of: map[healthlab.UserID]orders.TransactionID{}, gone: map[orders.TransactionID]bool{}}
		h.Users, h.Orders = trackedUsers{h.Users, b}, trackedOrders{h.Orders, b}
	}), Subtest: "Erase/NothingElse"},
}

// unmarked does not say that the user of an order is deleted.
type unmarked struct{ orders.Store }

func (b unmarked) Get(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
	r, err := b.Store.Get(ctx, team, id)
	r.UserDeleted = false
	return r, err
}

// careless takes orders of users who are not there, or not any more.
type careless struct {
	orders.Store
	astray orders.Store
}

func (b careless) Insert(ctx context.Context, r orders.Record, c orders.Change) (orders.Record, error) {
	stored, err := b.Store.Insert(ctx, r, c)
	if errors.Is(err, healthlab.NotFound) {
		return b.astray.Insert(ctx, r, c)
	}
	return stored, err
}

func (b careless) Get(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
	if r, err := b.astray.Get(ctx, team, id); err == nil {
		return r, nil
	}
	return b.Store.Get(ctx, team, id)
}

// hasty asks for the change before it looks for the user.
type hasty struct{ careless }

func (b hasty) Insert(ctx context.Context, r orders.Record, c orders.Change) (orders.Record, error) {
	again := r
	if _, err := c(&again); err != nil {
		return r, err
	}
	return b.careless.Insert(ctx, r, c)
}

// erasing returns the suite over stores that were broken in one way. how gets another store with
// the same clock.
func erasing(how func(h *orderstest.ErasureHarness, astray *memory.Store)) func(*testing.T) {
	return func(t *testing.T) {
		orderstest.RunErasure(t, func(testing.TB) orderstest.ErasureHarness {
			s, clock := clockedStore()
			h := orderstest.ErasureHarness{Users: s.Users(), Orders: s.Orders(), Keys: s.OrderKeys(), SetClock: clock.Set}
			how(&h, memory.New(&memory.Options{Now: clock.Now}))
			return h
		})
	}
}

// tracked is which transactions users are in, and whose users were erased.
type tracked struct {
	of   map[healthlab.UserID]orders.TransactionID
	gone map[orders.TransactionID]bool
}

type trackedUsers struct {
	healthdata.Users
	*tracked
}

func (b trackedUsers) Erase(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) error {
	b.gone[b.of[id]] = true
	return b.Users.Erase(ctx, team, id)
}

type trackedOrders struct {
	orders.Store
	*tracked
}

func (b trackedOrders) Insert(ctx context.Context, r orders.Record, c orders.Change) (orders.Record, error) {
	b.of[r.UserID] = r.OrderTransaction.ID
	return b.Store.Insert(ctx, r, c)
}

// Get hides what was in a transaction with an order of an erased user.
func (b trackedOrders) Get(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
	r, err := b.Store.Get(ctx, team, id)
	if b.gone[r.OrderTransaction.ID] {
		return orders.Record{}, fmt.Errorf("%w: the team has no such order", healthlab.NotFound)
	}
	return r, err
}
