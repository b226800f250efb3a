package httpapi

import (
	"context"
	"net/http"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// activation is the body of a change of the day of activation. The key must be there;
// null clears the day.
type activation struct {
	ActivateBy *healthlab.Date `json:"activate_by" wire:"required"`
}

func (a api) setActivation(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	id := orderID(in)
	var body activation
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	o, err := a.Orders.SetActivation(r.Context(), team, id, body.ActivateBy)
	return answerOrder(w, o, err, "order changed")
}

// resentOut names the orders whose latest event was told again.
type resentOut struct {
	OrderIDs []orders.OrderID `json:"order_ids"`
}

func (a api) resendEvents(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body orders.ResendRequest
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	ids, err := a.Orders.Resend(r.Context(), team, body)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, resentOut{OrderIDs: ids})
}

func (a api) resultMetadata(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (labresult.Metadata, error) {
	results, err := a.Orders.Results(ctx, team, id)
	return results.Metadata, err
}

func transactionID(in *wire.In) orders.TransactionID {
	return orders.TransactionID{UUID: in.PathUUID("transaction_id")}
}
