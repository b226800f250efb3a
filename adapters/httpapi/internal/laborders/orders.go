package laborders

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

func (a API) orderOperations() []server.Operation {
	return []server.Operation{
		{ID: "create_order", Pattern: "POST /v3/order", Bound: server.UserInBody, Change: a.placeOrder, Keyed: true},
		{ID: "create_or_replace_order", Pattern: "POST /v3/order/create", Bound: server.UserInBody, Change: a.createOrder, Keyed: true},
		{ID: "import_order", Pattern: "POST /v3/order/import", Bound: server.TeamOnly, Change: a.importOrder, Keyed: true},
		{ID: "create_testkit_order", Pattern: "POST /v3/order/testkit", Bound: server.UserInBody, Change: a.createTestkit, Keyed: true},
		{ID: "register_testkit", Pattern: "POST /v3/order/testkit/register", Bound: server.UserInBody, Change: a.registerTestkit, Keyed: true},
		{ID: "resend_order_events", Pattern: "POST /v3/order/resend_events", Bound: server.TeamOnly, Team: server.AsJSON(a.resendEvents)},
		{ID: "list_orders", Pattern: "GET /v3/orders", Bound: server.UserInQuery, Team: server.AsJSON(a.listOrders)},
		{ID: "count_orders", Pattern: "GET /v3/orders/count", Bound: server.OwnList, Team: server.AsJSON(a.countOrders)},
		{ID: "list_order_lifecycles", Pattern: "GET /v3/orders/lifecycle", Bound: server.Public, Team: server.AsJSON(a.listOrderLifecycles)},
		{ID: "read_order", Pattern: "GET /v3/order/{order_id}", Bound: a.ofOrder(), Team: server.ReadOne(orderID, a.Orders.Get)},
		{ID: "change_order", Pattern: "PATCH /v3/order/{order_id}", Bound: a.ofOrder(), Change: a.setActivation},
		{ID: "read_order_result", Pattern: "GET /v3/order/{order_id}/result", Bound: a.ofOrder(), Team: server.ReadOne(orderID, a.Orders.Results)},
		{ID: "read_order_result_metadata", Pattern: "GET /v3/order/{order_id}/result/metadata", Bound: a.ofOrder(), Team: server.ReadOne(orderID, a.resultMetadata)},
		{ID: "cancel_order", Pattern: "POST /v3/order/{order_id}/cancel", Bound: a.ofOrder(), Change: a.changeOrder(a.Orders.Cancel)},
		{ID: "complete_draw", Pattern: "PATCH /v3/order/{order_id}/draw_completed", Bound: a.ofOrder(), Change: a.changeOrder(a.Orders.DrawCompleted)},
		{ID: "read_order_transaction", Pattern: "GET /v3/order_transaction/{transaction_id}", Bound: a.ofTransaction(), Team: server.ReadOne(transactionID, a.Orders.Transaction)},
		{ID: "read_order_transaction_result", Pattern: "GET /v3/order_transaction/{transaction_id}/result", Bound: a.ofTransaction(), Team: server.ReadOne(transactionID, a.Orders.TransactionResults)},
	}
}

// orderOut is the answer of operations that create or change an order.
type orderOut struct {
	Order   orders.Order `json:"order"`
	Status  string       `json:"status"`
	Message string       `json:"message"`
}

func orderID(in *wire.In) orders.OrderID { return orders.OrderID{UUID: in.PathUUID("order_id")} }

// ordersOut is one page of orders.
type ordersOut struct {
	Orders []orders.Order `json:"orders"`
	Total  int            `json:"total"`
	Page   int            `json:"page"`
	Size   int            `json:"size"`
}

func (a API) listOrders(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	q := orderQuery(in)
	q.Team = team
	if err := in.Err(); err != nil {
		return nil, err
	}
	page, err := a.Orders.List(ctx, q)
	if err != nil {
		return nil, err
	}
	out := ordersOut{Orders: page.Orders, Total: page.Total, Page: q.Page, Size: q.Size}
	if out.Orders == nil {
		out.Orders = []orders.Order{}
	}
	return out, nil
}

// orderCounts is the number of a team's orders by their latest status.
type orderCounts struct {
	Total    int                     `json:"total"`
	ByStatus map[orders.LowLevel]int `json:"by_status"`
}

func (a API) countOrders(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	if err := in.Err(); err != nil {
		return nil, err
	}
	count := a.Orders.CountByStatus
	if !in.Own().IsZero() {
		count = func(ctx context.Context, team healthlab.TeamID) (map[orders.LowLevel]int, error) {
			return a.countOf(ctx, team, in.Own())
		}
	}
	counts, err := count(ctx, team)
	if err != nil {
		return nil, err
	}
	out := orderCounts{ByStatus: counts}
	for _, n := range counts {
		out.Total += n
	}
	return out, nil
}

// countOf counts the orders of one user by their latest status.
func (a API) countOf(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (map[orders.LowLevel]int, error) {
	out := map[orders.LowLevel]int{}
	for q := (orders.Query{Team: team, User: user, Page: 1, Size: catalogue.MaxPageSize}); ; q.Page++ {
		page, err := a.Orders.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for i := range page.Orders {
			out[page.Orders[i].LowLevel()]++
		}
		if len(page.Orders) < q.Size {
			return out, nil
		}
	}
}

// orderLifecycles holds the states of an order and the steps between them, for each collection method.
type orderLifecycles struct {
	Lifecycles []orders.Lifecycle `json:"lifecycles"`
}

func (a API) listOrderLifecycles(_ context.Context, in *wire.In, _ healthlab.TeamID) (any, error) {
	if err := in.Err(); err != nil {
		return nil, err
	}
	return orderLifecycles{orders.Lifecycles()}, nil
}

// orderQuery reads the filters of the list of orders. A date without a time is the start of the day, and for end_date
// the end of the day.
func orderQuery(in *wire.In) orders.Query {
	q := orders.Query{
		Search:         in.ShortText("search_input"),
		Interpretation: labresult.Interpretation(in.ShortText("interpretation")),
		PatientName:    in.ShortText("patient_name"),
		Recipient:      in.ShortText("shipping_recipient_name"),
		Critical:       in.OptBool("is_critical"),
		Sort:           orders.SortKey(in.ShortText("order_key")),
		Direction:      catalogue.Direction(in.ShortText("order_direction")),
		Page:           in.Int("page", 1, 1, 1<<31-1),
		Size:           in.Int("size", catalogue.DefaultPageSize, 1, catalogue.MaxPageSize),
	}
	q.CreatedFrom, q.UpdatedFrom = lowerBound(in, "start_date"), lowerBound(in, "updated_start_date")
	q.CreatedBefore = upperBound(in, "end_date", 24*time.Hour)
	q.UpdatedBefore = upperBound(in, "updated_end_date", time.Microsecond)
	in.Range(q.CreatedFrom, q.CreatedBefore, "start_date", "end_date")
	in.Range(q.UpdatedFrom, q.UpdatedBefore, "updated_start_date", "updated_end_date")
	for _, s := range in.Strings("status") {
		q.Status = append(q.Status, orders.LowLevel(s))
	}
	for _, s := range in.Strings("order_type") {
		q.Methods = append(q.Methods, catalogue.CollectionMethod(s))
	}
	for _, s := range in.Strings("order_activation_types") {
		q.Activations = append(q.Activations, orders.ActivationType(s))
	}
	for _, id := range in.UUIDs("order_ids") {
		q.IDs = append(q.IDs, orders.OrderID{UUID: id})
	}
	if id := in.OptUUID("user_id"); id != nil {
		q.User = healthlab.UserID{UUID: *id}
	}
	if id := in.OptUUID("order_transaction_id"); id != nil {
		q.Transaction = orders.TransactionID{UUID: *id}
	}
	return q
}

func lowerBound(in *wire.In, name string) time.Time {
	if m := in.OptMoment(name, nil); m != nil {
		return m.In(time.UTC, wire.StartOfDay).Time
	}
	return time.Time{}
}

// upperBound reads the query parameter name as an inclusive upper bound, and returns an exclusive one: an instant plus
// one microsecond, or the start of a date plus day.
func upperBound(in *wire.In, name string, day time.Duration) time.Time {
	m := in.OptMoment(name, nil)
	switch {
	case m == nil:
		return time.Time{}
	case m.IsDay:
		return m.In(time.UTC, wire.StartOfDay).Add(day)
	default:
		return m.Instant.Add(time.Microsecond)
	}
}

// changeOrder returns a handler for operations whose only parameter is the order.
func (a API) changeOrder(change func(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Order, error)) func(*wire.In, healthlab.TeamID) (*server.Change, error) {
	return func(in *wire.In, team healthlab.TeamID) (*server.Change, error) {
		id := orderID(in)
		if err := in.Err(); err != nil {
			return nil, err
		}
		return orderChange(func(ctx context.Context) (orders.Order, error) { return change(ctx, team, id) }), nil
	}
}

func orderChange(change func(context.Context) (orders.Order, error)) *server.Change {
	return &server.Change{Do: func(ctx context.Context) (any, error) {
		o, err := change(ctx)
		return orderOut{Order: o, Status: "success", Message: "order changed"}, err
	}}
}

// simulatedWalk holds the query and body of a request that moves a sandbox order through its states.
type simulatedWalk struct {
	Interpretation    labresult.Interpretation `json:"interpretation" wire:"opt"`
	ResultTypes       []labresult.Type         `json:"result_types" wire:"opt"`
	HasMissingResults *bool                    `json:"has_missing_results"`
}

func (a API) simulateOrder(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	id := orderID(in)
	final := orders.Status(in.ShortText("final_status"))
	delay := in.Int("delay", 0, 0, 24*60*60)
	var body simulatedWalk
	in.OptBody(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	if _, err := a.Exchange.SimulateSlowly(ctx, team, id, final, orders.SimulationFlags(body), time.Duration(delay)*time.Second); err != nil {
		return nil, err
	}
	return nil, nil
}

// activation is the body that changes the activation date of an order. The key is required; null deletes the date.
type activation struct {
	ActivateBy *healthlab.Date `json:"activate_by" wire:"required"`
}

func (a API) setActivation(in *wire.In, team healthlab.TeamID) (*server.Change, error) {
	id := orderID(in)
	var body activation
	in.Body(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	return orderChange(func(ctx context.Context) (orders.Order, error) {
		return a.Orders.SetActivation(ctx, team, id, body.ActivateBy)
	}), nil
}

// resentOut lists the orders whose latest event was sent again.
type resentOut struct {
	OrderIDs []orders.OrderID `json:"order_ids"`
}

func (a API) resendEvents(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	var body orders.ResendRequest
	in.Body(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	ids, err := a.Orders.Resend(ctx, team, body)
	if err != nil {
		return nil, err
	}
	return resentOut{OrderIDs: ids}, nil
}

func (a API) resultMetadata(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (labresult.Metadata, error) {
	results, err := a.Orders.Results(ctx, team, id)
	return results.Metadata, err
}

func transactionID(in *wire.In) orders.TransactionID {
	return orders.TransactionID{UUID: in.PathUUID("transaction_id")}
}
