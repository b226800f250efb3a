package httpapi_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
)

// idleLab is a laboratory that takes everything and never reports.
type idleLab struct{}

func (idleLab) Submit(context.Context, orders.Submission) (orders.Accepted, error) {
	return orders.Accepted{}, nil
}

func (idleLab) Cancel(context.Context, healthlab.TeamID, orders.OrderID) error { return nil }

func (idleLab) Updates(context.Context, string, int) (orders.Batch, error) {
	return orders.Batch{}, nil
}

// newOrders is the service of orders over a store, with an empty catalogue.
func newOrders(t *testing.T, store *memory.Store, users *healthdata.Service) *orders.Service {
	t.Helper()
	book, err := orders.NewBook(orders.BookContents{})
	require.NoError(t, err)
	s, err := orders.New(store.Orders(), users, book, idleLab{}, &orders.Options{Environment: healthlab.Sandbox})
	require.NoError(t, err)
	return s
}
