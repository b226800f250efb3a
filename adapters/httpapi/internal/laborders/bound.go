package laborders

import (
	"context"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/critical"
)

func (a API) ofOrder() server.Bound {
	return server.OwnedID("order_id", func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (healthlab.UserID, error) {
		o, err := a.Orders.Get(ctx, team, orders.OrderID{UUID: id})
		return o.UserID, err
	})
}

// ofTransaction returns the Bound of operations whose path names an order transaction: its user owns the request.
func (a API) ofTransaction() server.Bound {
	return server.OwnedID("transaction_id", func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (healthlab.UserID, error) {
		page, err := a.Orders.List(ctx, orders.Query{Team: team, Transaction: orders.TransactionID{UUID: id}, Page: 1, Size: 1})
		if err != nil || len(page.Orders) == 0 {
			return healthlab.UserID{}, err
		}
		return page.Orders[0].UserID, nil
	})
}

func (a API) ofCritical() server.Bound {
	return server.OwnedID("critical_result_id", func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (healthlab.UserID, error) {
		loop, err := a.Critical.Get(ctx, team, critical.LoopID{UUID: id})
		return loop.UserID, err
	})
}
