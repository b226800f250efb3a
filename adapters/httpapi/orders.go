package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

func (a api) orderOperations() []operation {
	if a.Orders == nil {
		return nil
	}
	return []operation{
		{id: "create_order", pattern: "POST /v3/order", team: a.placeOrder, keyed: true},
		{id: "create_or_replace_order", pattern: "POST /v3/order/create", team: a.createOrder, keyed: true},
		{id: "import_order", pattern: "POST /v3/order/import", team: a.importOrder, keyed: true},
		{id: "create_testkit_order", pattern: "POST /v3/order/testkit", team: a.createTestkit, keyed: true},
		{id: "register_testkit", pattern: "POST /v3/order/testkit/register", team: a.registerTestkit, keyed: true},
		{id: "resend_order_events", pattern: "POST /v3/order/resend_events", team: a.resendEvents},
		{id: "list_orders", pattern: "GET /v3/orders", team: a.listOrders},
		{id: "count_orders", pattern: "GET /v3/orders/count", team: a.countOrders},
		{id: "list_order_lifecycles", pattern: "GET /v3/orders/lifecycle", team: a.listOrderLifecycles},
		{id: "read_order", pattern: "GET /v3/order/{order_id}", team: readOne(orderID, a.Orders.Get)},
		{id: "change_order", pattern: "PATCH /v3/order/{order_id}", team: a.setActivation},
		{id: "read_order_result", pattern: "GET /v3/order/{order_id}/result", team: readOne(orderID, a.Orders.Results)},
		{id: "read_order_result_metadata", pattern: "GET /v3/order/{order_id}/result/metadata", team: readOne(orderID, a.resultMetadata)},
		{id: "cancel_order", pattern: "POST /v3/order/{order_id}/cancel", team: a.changeOrder(a.Orders.Cancel)},
		{id: "complete_draw", pattern: "PATCH /v3/order/{order_id}/draw_completed", team: a.changeOrder(a.Orders.DrawCompleted)},
		{id: "simulate_order", pattern: "POST /v3/order/{order_id}/test", team: a.simulateOrder},
		{id: "read_order_transaction", pattern: "GET /v3/order_transaction/{transaction_id}", team: readOne(transactionID, a.Orders.Transaction)},
		{id: "read_order_transaction_result", pattern: "GET /v3/order_transaction/{transaction_id}/result", team: readOne(transactionID, a.Orders.TransactionResults)},
	}
}

// orderOut is the answer of everything that makes or changes an order.
type orderOut struct {
	Order   orders.Order `json:"order"`
	Status  string       `json:"status"`
	Message string       `json:"message"`
}

func answerOrder(w http.ResponseWriter, o orders.Order, err error, message string) error {
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, orderOut{Order: o, Status: "success", Message: message})
}

// readOne answers with what an id of the path leads to.
func readOne[ID, T any](of func(*wire.In) ID, read func(context.Context, healthlab.TeamID, ID) (T, error)) func(http.ResponseWriter, *http.Request, healthlab.TeamID) error {
	return func(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
		in := wire.From(r)
		id := of(in)
		if err := in.Err(); err != nil {
			return err
		}
		out, err := read(r.Context(), team, id)
		if err != nil {
			return err
		}
		return wire.JSON(w, http.StatusOK, out)
	}
}

func orderID(in *wire.In) orders.OrderID { return orders.OrderID{UUID: in.PathUUID("order_id")} }

// ordersOut is one page of orders.
type ordersOut struct {
	Orders []orders.Order `json:"orders"`
	Total  int            `json:"total"`
	Page   int            `json:"page"`
	Size   int            `json:"size"`
}

func (a api) listOrders(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	q := orderQuery(in)
	q.Team = team
	if err := in.Err(); err != nil {
		return err
	}
	page, err := a.Orders.List(r.Context(), q)
	if err != nil {
		return err
	}
	out := ordersOut{Orders: page.Orders, Total: page.Total, Page: q.Page, Size: q.Size}
	if out.Orders == nil {
		out.Orders = []orders.Order{}
	}
	return wire.JSON(w, http.StatusOK, out)
}

// orderCounts is the number of a team's orders by their latest status.
type orderCounts struct {
	Total    int                     `json:"total"`
	ByStatus map[orders.LowLevel]int `json:"by_status"`
}

func (a api) countOrders(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	if err := wire.From(r).Err(); err != nil {
		return err
	}
	counts, err := a.Orders.CountByStatus(r.Context(), team)
	if err != nil {
		return err
	}
	out := orderCounts{ByStatus: counts}
	for _, n := range counts {
		out.Total += n
	}
	return wire.JSON(w, http.StatusOK, out)
}

// orderLifecycles are the lifecycles of all collection methods.
type orderLifecycles struct {
	Lifecycles []orders.Lifecycle `json:"lifecycles"`
}

func (a api) listOrderLifecycles(w http.ResponseWriter, r *http.Request, _ healthlab.TeamID) error {
	if err := wire.From(r).Err(); err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, orderLifecycles{orders.Lifecycles()})
}

// orderQuery reads the filters of the list of orders. A day alone is its beginning, but
// for end_date, where it is all of it.
func orderQuery(in *wire.In) orders.Query {
	q := orders.Query{
		Search:         text(in, "search_input"),
		Interpretation: labresult.Interpretation(text(in, "interpretation")),
		PatientName:    text(in, "patient_name"),
		Recipient:      text(in, "shipping_recipient_name"),
		Critical:       in.OptBool("is_critical"),
		Sort:           orders.SortKey(text(in, "order_key")),
		Direction:      catalogue.Direction(text(in, "order_direction")),
		Page:           in.Int("page", 1, 1, 1<<31-1),
		Size:           in.Int("size", catalogue.DefaultPageSize, 1, catalogue.MaxPageSize),
	}
	q.CreatedFrom, q.UpdatedFrom = lowerBound(in, "start_date"), lowerBound(in, "updated_start_date")
	q.CreatedBefore = upperBound(in, "end_date", 24*time.Hour)
	q.UpdatedBefore = upperBound(in, "updated_end_date", time.Microsecond)
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

func text(in *wire.In, name string) string {
	if s := in.OptText(name, 256); s != nil {
		return *s
	}
	return ""
}

func lowerBound(in *wire.In, name string) time.Time {
	if m := in.OptMoment(name); m != nil {
		return m.In(time.UTC, wire.StartOfDay).Time
	}
	return time.Time{}
}

// upperBound makes an inclusive bound an exclusive one: an instant counts itself, a
// day alone as much of itself as it is said to cover.
func upperBound(in *wire.In, name string, day time.Duration) time.Time {
	m := in.OptMoment(name)
	switch {
	case m == nil:
		return time.Time{}
	case m.IsDay:
		return m.In(time.UTC, wire.StartOfDay).Add(day)
	default:
		return m.Instant.Add(time.Microsecond)
	}
}

// changeOrder answers operations that name an order and nothing else.
func (a api) changeOrder(change func(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Order, error)) func(http.ResponseWriter, *http.Request, healthlab.TeamID) error {
	return func(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
		in := wire.From(r)
		id := orderID(in)
		if err := in.Err(); err != nil {
			return err
		}
		o, err := change(r.Context(), team, id)
		return answerOrder(w, o, err, "order changed")
	}
}

// simulation is the query and body of a simulated walk.
type simulation struct {
	Interpretation    labresult.Interpretation `json:"interpretation" wire:"opt"`
	ResultTypes       []labresult.Type         `json:"result_types" wire:"opt"`
	HasMissingResults *bool                    `json:"has_missing_results"`
}

func (a api) simulateOrder(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	id := orderID(in)
	final := orders.Status(text(in, "final_status"))
	delay := in.Int("delay", 0, 0, 24*60*60)
	var body simulation
	in.OptBody(&body)
	if err := in.Err(); err != nil {
		return err
	}
	if _, err := a.Orders.SimulateSlowly(r.Context(), team, id, final, orders.SimulationFlags(body), time.Duration(delay)*time.Second); err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, nil)
}
