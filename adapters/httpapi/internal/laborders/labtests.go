package laborders

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

func (a API) labTestOperations() []server.Operation {
	return []server.Operation{
		{ID: "list_labs", Pattern: "GET /v3/lab_tests/labs", Bound: server.Public, Team: server.AsJSON(a.listLabs)},
		{ID: "list_markers", Pattern: "GET /v3/lab_tests/markers", Bound: server.Public, Team: server.AsJSON(a.listMarkers)},
		{ID: "list_order_set_markers", Pattern: "POST /v3/lab_tests/list_order_set_markers", Bound: server.Public, Team: server.AsJSON(a.listOrderSetMarkers)},
		{ID: "list_lab_test_markers", Pattern: "GET /v3/lab_tests/{lab_test_id}/markers", Bound: server.Public, Team: server.AsJSON(a.listLabTestMarkers)},
		{ID: "read_marker", Pattern: "GET /v3/lab_tests/{lab_id}/markers/{provider_id}", Bound: server.Public, Team: server.AsJSON(a.readMarker)},
		{ID: "list_lab_tests", Pattern: "GET /v3/lab_test", Bound: server.Public, Team: server.AsJSON(a.listLabTests)},
		{ID: "list_all_lab_tests", Pattern: "GET /v3/lab_tests", Bound: server.Public, Team: server.AsJSON(a.listAllLabTests)},
		{ID: "create_lab_test", Pattern: "POST /v3/lab_tests", Bound: server.TeamOnly, Team: a.createLabTest, Keyed: true},
		{ID: "change_lab_test", Pattern: "PATCH /v3/lab_tests/{lab_test_id}", Bound: server.TeamOnly, Team: server.AsJSON(a.changeLabTest)},
		{ID: "read_lab_test", Pattern: "GET /v3/lab_tests/{lab_test_id}", Bound: server.Public, Team: server.AsJSON(a.readLabTest)},
		{ID: "list_lab_accounts", Pattern: "GET /v3/lab_test/lab_account", Bound: server.TeamOnly, Team: server.AsJSON(a.listLabAccounts)},
	}
}

func (a API) listLabs(ctx context.Context, in *wire.In, _ healthlab.TeamID) (any, error) {
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Orders.Catalogue().Labs(ctx)
}

// markersOut is one page of markers.
type markersOut struct {
	Markers []catalogue.MarkerComplete `json:"markers"`
	Total   int                        `json:"total"`
	Page    int                        `json:"page"`
	Size    int                        `json:"size"`
	Pages   int                        `json:"pages"`
	Pricing *markerPricing             `json:"pricing"`
}

// markerPricing maps the ids of markers to their prices.
type markerPricing struct {
	Currency string        `json:"currency"`
	Data     map[int]price `json:"data"`
}

// labTestPricing maps the ids of lab tests to their prices.
type labTestPricing struct {
	Currency string                                  `json:"currency"`
	Data     map[catalogue.LabTestID]labTestPriceOut `json:"data"`
}

type labTestPriceOut struct {
	Pricing price `json:"pricing"`
	// MarkerBreakdown maps the ids of the markers of the test to their prices.
	MarkerBreakdown map[int]price `json:"marker_breakdown"`
}

// price is an amount in cents, or the reason why it is unknown.
type price struct {
	BaseAmountMinor *int64  `json:"base_amount_minor,omitempty"`
	Unspecified     *string `json:"unspecified,omitempty"`
}

// currency is the currency of every price.
const currency = "USD"

// priceOf returns an amount in major units (dollars) as a price.
func priceOf(major decimal.Decimal, known bool) price {
	if !known {
		none := "price_unavailable"
		return price{Unspecified: &none}
	}
	minor := major.Shift(2).Round(0).IntPart()
	return price{BaseAmountMinor: &minor}
}

// priceOfMarker returns the price of a single marker.
func priceOfMarker(m catalogue.Marker) price {
	if m.Price == nil {
		return priceOf(decimal.Decimal{}, false)
	}
	n, err := catalogue.ParseNumber(*m.Price)
	return priceOf(n.Decimal, err == nil)
}

func markersPage(p catalogue.MarkerPage, page, size int, priced bool) markersOut {
	out := markersOut{Markers: p.Markers, Total: p.Total, Page: page, Size: size, Pages: (p.Total + size - 1) / size}
	if priced {
		out.Pricing = &markerPricing{Currency: currency, Data: map[int]price{}}
		for _, m := range p.Markers {
			out.Pricing.Data[m.ID] = priceOfMarker(m.Marker)
		}
	}
	return out
}

func pageIn(in *wire.In) (page, size int) {
	return in.Int("page", 1, 1, 1<<31-1), in.Int("size", catalogue.DefaultPageSize, 1, catalogue.MaxPageSize)
}

func accountIn(in *wire.In) *catalogue.LabAccountID {
	if id := in.OptUUID("lab_account_id"); id != nil {
		return &catalogue.LabAccountID{UUID: *id}
	}
	return nil
}

func (a API) listMarkers(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	q := catalogue.MarkerQuery{
		Labs: ints(in, "lab_id"), LabSlug: in.ShortText("lab_slug"), Name: in.ShortText("name"),
		ALaCarte: in.OptBool("a_la_carte_enabled"),
	}
	q.Page, q.Size = pageIn(in)
	priced := in.Bool("include_pricing", false)
	account := accountIn(in)
	if err := in.Err(); err != nil {
		return nil, err
	}
	page, err := a.Orders.Catalogue().Markers(ctx, team, account, q)
	if err != nil {
		return nil, err
	}
	return markersPage(page, q.Page, q.Size, priced), nil
}

func (a API) listOrderSetMarkers(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	page, size := pageIn(in)
	var body catalogue.OrderSet
	in.Body(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	p, err := a.Orders.Catalogue().OrderSetMarkers(ctx, team, body, page, size)
	if err != nil {
		return nil, err
	}
	return markersPage(p, page, size, false), nil
}

// ints reads a list of whole numbers; nil when absent.
func ints(in *wire.In, name string) []int {
	var out []int
	for i, v := range in.Strings(name) {
		n, err := strconv.Atoi(v)
		if err != nil {
			in.Problem("wrong_type", "must be a whole number", "query", name, i)
		}
		out = append(out, n)
	}
	return out
}

func labTestID(in *wire.In) catalogue.LabTestID {
	return catalogue.LabTestID{UUID: in.PathUUID("lab_test_id")}
}

func (a API) listLabTestMarkers(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	id := labTestID(in)
	page, size := pageIn(in)
	account := accountIn(in)
	if err := in.Err(); err != nil {
		return nil, err
	}
	p, err := a.Orders.Catalogue().LabTestMarkers(ctx, team, account, id, page, size)
	if err != nil {
		return nil, err
	}
	return markersPage(p, page, size, false), nil
}

func (a API) readMarker(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	lab, err := strconv.Atoi(in.PathText("lab_id", 20))
	if err != nil {
		in.Problem("wrong_type", "must be a whole number", "path", "lab_id")
	}
	code := in.PathText("provider_id", 256)
	account := accountIn(in)
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Orders.Catalogue().Marker(ctx, team, account, lab, code)
}

// labTestQuery reads the filters of the lists of lab tests.
func labTestQuery(in *wire.In, team healthlab.TeamID) catalogue.LabTestQuery {
	return catalogue.LabTestQuery{
		Team:        team,
		Generation:  catalogue.Generation(in.ShortText("generation_method")),
		LabSlug:     in.ShortText("lab_slug"),
		Method:      catalogue.CollectionMethod(in.ShortText("collection_method")),
		Status:      catalogue.LabTestStatus(in.ShortText("status")),
		MarkerIDs:   ints(in, "marker_ids"),
		ProviderIDs: in.Strings("provider_ids"),
		Name:        in.ShortText("name"),
		Sort:        catalogue.LabTestSort(in.ShortText("order_key")),
		Direction:   catalogue.Direction(in.ShortText("order_direction")),
	}
}

// labTestsOut is one page of lab tests.
type labTestsOut struct {
	Data       []catalogue.LabTest `json:"data"`
	NextCursor *string             `json:"next_cursor"`
	Pricing    *labTestPricing     `json:"pricing"`
}

func (a API) listLabTests(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	q := labTestQuery(in, team)
	q.Limit = in.Int("lab_test_limit", catalogue.DefaultPageSize, 1, catalogue.MaxPageSize)
	q.Cursor = in.ShortText("next_cursor")
	priced := in.Bool("include_pricing", false)
	account := accountIn(in)
	if err := in.Err(); err != nil {
		return nil, err
	}
	page, err := a.Orders.Catalogue().LabTests(ctx, account, q)
	if err != nil {
		return nil, err
	}
	out := labTestsOut{Data: page.Tests}
	if page.Next != "" {
		out.NextCursor = &page.Next
	}
	if priced {
		out.Pricing = &labTestPricing{Currency: currency, Data: map[catalogue.LabTestID]labTestPriceOut{}}
		for _, t := range page.Tests {
			parts := map[int]price{}
			for _, m := range t.Markers {
				parts[m.ID] = priceOfMarker(m)
			}
			out.Pricing.Data[t.ID] = labTestPriceOut{priceOf(t.Price.Decimal, !t.PriceUnknown), parts}
		}
	}
	return out, nil
}

func (a API) listAllLabTests(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	q := labTestQuery(in, team)
	if err := in.Err(); err != nil {
		return nil, err
	}
	page, err := a.Orders.Catalogue().LabTests(ctx, nil, q)
	if err != nil {
		return nil, err
	}
	return page.Tests, nil
}

func (a API) readLabTest(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	id := labTestID(in)
	account := accountIn(in)
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Orders.Catalogue().LabTest(ctx, team, account, id)
}

func (a API) createLabTest(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body catalogue.LabTestRequest
	in.Body(&body)
	once := server.OnceFrom(in, team, "create_lab_test", healthlab.UserID{})
	if err := in.ErrAnd(body.Check); err != nil {
		return err
	}
	return server.AnswerOnce(a.Idempotency, w, r, once, body, server.Answered(func(ctx context.Context) (catalogue.LabTest, error) {
		return a.Orders.Catalogue().CreateLabTest(ctx, team, body)
	}))
}

func (a API) changeLabTest(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	id := labTestID(in)
	var body catalogue.LabTestChange
	in.Body(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Orders.Catalogue().ChangeLabTest(ctx, team, id, body)
}

// accountsOut are the lab accounts of a team.
type accountsOut struct {
	Data []catalogue.LabAccount `json:"data"`
}

func (a API) listLabAccounts(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	id := accountIn(in)
	status := catalogue.LabAccountStatus(strings.ToLower(in.ShortText("status")))
	switch status {
	case "", catalogue.LabAccountActive, catalogue.LabAccountPending, catalogue.LabAccountSuspended, catalogue.LabAccountReadyToLaunch:
	default:
		in.Problem("enum", "must be one of: active, pending, suspended, ready_to_launch", "query", "status")
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	accounts, err := a.Orders.Catalogue().LabAccounts(ctx, team, id, status)
	if err != nil {
		return nil, err
	}
	if accounts == nil {
		accounts = []catalogue.LabAccount{}
	}
	return accountsOut{Data: accounts}, nil
}
