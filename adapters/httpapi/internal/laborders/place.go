package laborders

import (
	"context"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/store"
)

func (a API) placeOrder(in *wire.In, team healthlab.TeamID) (*server.Change, error) {
	var body orders.PlaceRequest
	in.Body(&body)
	once := server.OnceFrom(in, team, "create_order", body.UserID)
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return nil, err
	}
	if err := body.Check(a.Orders.Today()); err != nil {
		return nil, err
	}
	return a.planned(once, body, "order placed", a.Orders.Plans().Place(in.Request().Context(), team, body)), nil
}

func (a API) createOrder(in *wire.In, team healthlab.TeamID) (*server.Change, error) {
	var body orders.CreateRequest
	in.Body(&body)
	once := server.OnceFrom(in, team, "create_or_replace_order", body.UserID)
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return nil, err
	}
	if err := body.Check(a.Orders.Today()); err != nil {
		return nil, err
	}
	return a.planned(once, body, "order placed", a.Orders.Plans().Create(in.Request().Context(), team, body)), nil
}

func (a API) importOrder(in *wire.In, team healthlab.TeamID) (*server.Change, error) {
	var body orders.ImportRequest
	in.Body(&body)
	once := server.OnceFrom(in, team, "import_order", body.UserID)
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return nil, err
	}
	return a.planned(once, body, "order imported", a.Orders.Plans().Import(in.Request().Context(), team, body)), nil
}

func (a API) createTestkit(in *wire.In, team healthlab.TeamID) (*server.Change, error) {
	var body orders.TestkitRequest
	in.Body(&body)
	once := server.OnceFrom(in, team, "create_testkit_order", body.UserID)
	if err := in.ErrAnd(body.Check); err != nil {
		return nil, err
	}
	return a.planned(once, body, "kit ordered", a.Orders.Plans().Testkit(in.Request().Context(), team, body)), nil
}

func (a API) registerTestkit(in *wire.In, team healthlab.TeamID) (*server.Change, error) {
	var body orders.RegisterRequest
	in.Body(&body)
	var user healthlab.UserID
	if body.UserID != nil {
		user = *body.UserID
	}
	body.Owner = in.Own()
	once := server.OnceFrom(in, team, "register_testkit", user)
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return nil, err
	}
	return a.planned(once, body, "kit registered", a.Orders.Plans().Register(in.Request().Context(), team, body)), nil
}

// planned returns the change that stores a planned order, and answers with the order and message. once is nil for a
// request without an idempotency key; body identifies the request.
func (a API) planned(once *idempotency.Request, body any, message string, plan *orders.Plan) *server.Change {
	var key []store.Query
	if once != nil {
		once.About = plan.ID()
		key = idempotency.Queries(once.Scope)
	}
	do := server.OnceIn(a.Idempotency, a.Transact, once, body, func(ctx context.Context, id orders.OrderID) (any, error) {
		o, err := plan.Run(ctx, id)
		return orderOut{Order: o, Status: "success", Message: message}, err
	})
	return &server.Change{Do: func(ctx context.Context) (any, error) {
		if err := plan.Read(ctx, key...); err != nil {
			return nil, err
		}
		return do(ctx)
	}}
}
