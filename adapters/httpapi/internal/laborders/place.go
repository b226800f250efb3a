package laborders

import (
	"context"
	"net/http"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders"
)

func (a API) placeOrder(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body orders.PlaceRequest
	in.Body(&body)
	once := server.OnceFrom(in, r, team, "create_order", body.UserID)
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return err
	}
	if err := body.Check(a.Orders.Today()); err != nil {
		return err
	}
	return server.AnswerOnce(a.Idempotency, w, r, once, body, orderAnswered("order placed", func(ctx context.Context, id orders.OrderID) (orders.Order, error) {
		return a.Orders.PlaceAs(ctx, team, id, body)
	}))
}

func (a API) createOrder(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body orders.CreateRequest
	in.Body(&body)
	once := server.OnceFrom(in, r, team, "create_or_replace_order", body.UserID)
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return err
	}
	if err := body.Check(a.Orders.Today()); err != nil {
		return err
	}
	return server.AnswerOnce(a.Idempotency, w, r, once, body, orderAnswered("order placed", func(ctx context.Context, id orders.OrderID) (orders.Order, error) {
		return a.Orders.Create(ctx, team, id, body)
	}))
}

func (a API) importOrder(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body orders.ImportRequest
	in.Body(&body)
	once := server.OnceFrom(in, r, team, "import_order", body.UserID)
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return err
	}
	return server.AnswerOnce(a.Idempotency, w, r, once, body, orderAnswered("order imported", func(ctx context.Context, id orders.OrderID) (orders.Order, error) {
		return a.Orders.ImportAs(ctx, team, id, body)
	}))
}

func (a API) createTestkit(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body orders.TestkitRequest
	in.Body(&body)
	once := server.OnceFrom(in, r, team, "create_testkit_order", body.UserID)
	if err := in.ErrAnd(body.Check); err != nil {
		return err
	}
	return server.AnswerOnce(a.Idempotency, w, r, once, body, orderAnswered("kit ordered", func(ctx context.Context, id orders.OrderID) (orders.Order, error) {
		return a.Orders.PlaceTestkitAs(ctx, team, id, body)
	}))
}

func (a API) registerTestkit(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body orders.RegisterRequest
	in.Body(&body)
	var user healthlab.UserID
	if body.UserID != nil {
		user = *body.UserID
	}
	once := server.OnceFrom(in, r, team, "register_testkit", user)
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return err
	}
	return server.AnswerOnce(a.Idempotency, w, r, once, body, orderAnswered("kit registered", func(ctx context.Context, _ orders.OrderID) (orders.Order, error) {
		return a.Orders.Register(ctx, team, body)
	}))
}

// orderAnswered returns a server.CreateFunc that answers with the order that create returns.
func orderAnswered(message string, create func(context.Context, orders.OrderID) (orders.Order, error)) server.CreateFunc {
	return func(ctx context.Context, id orders.OrderID) (func(http.ResponseWriter) error, error) {
		o, err := create(ctx, id)
		return func(w http.ResponseWriter) error { return answerOrder(w, o, nil, message) }, err
	}
}
