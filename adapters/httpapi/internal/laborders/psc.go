package laborders

import (
	"context"
	"strconv"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

func (a API) pscOperations() []server.Operation {
	return []server.Operation{
		{ID: "read_area", Pattern: "GET /v3/order/area/info", Bound: server.Public, Team: server.AsJSON(a.readArea)},
		{ID: "find_patient_service_centers", Pattern: "GET /v3/order/psc/info", Bound: server.Public, Team: server.AsJSON(a.findPSCs)},
		{ID: "find_patient_service_centers_of_order", Pattern: "GET /v3/order/{order_id}/psc/info", Bound: a.ofOrder(), Team: server.AsJSON(a.findOrderPSCs)},
	}
}

// radius reads the search radius, in miles.
func radius(in *wire.In) int {
	var allowed []string
	for _, miles := range appointment.Radii() {
		allowed = append(allowed, strconv.Itoa(miles))
	}
	miles, _ := strconv.Atoi(in.OneOf("radius", strconv.Itoa(appointment.DefaultRadius), allowed...))
	return miles
}

func (a API) pscCapabilities(in *wire.In) []appointment.PSCCapability {
	var allowed []string
	known := map[string]appointment.PSCCapability{}
	for _, c := range appointment.PSCCapabilities() {
		name := string(c)
		if a.CapabilityName != nil {
			name = a.CapabilityName(name)
		}
		allowed, known[name] = append(allowed, name), c
	}
	var out []appointment.PSCCapability
	for _, name := range in.Strings("capabilities", allowed...) {
		out = append(out, known[name])
	}
	return out
}

func (a API) readArea(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	req := appointment.AreaRequest{Zip: in.Text("zip_code", 5), Radius: radius(in), Labs: in.Strings("labs"), Lab: in.ShortText("lab"), LabAccountID: accountIn(in)}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Visits.Places().Area(ctx, team, req)
}

func (a API) findPSCs(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	req := appointment.CenterRequest{
		Zip: in.Text("zip_code", 5), Radius: radius(in), Capabilities: a.pscCapabilities(in), LabAccountID: accountIn(in),
	}
	if lab := in.OptInt("lab_id", 1, 1<<31-1); lab != nil {
		req.LabID = *lab
	} else {
		in.Problem("missing", "is required", "query", "lab_id")
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Visits.Places().PSCs(ctx, team, req)
}

func (a API) findOrderPSCs(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	id := orderID(in)
	req := appointment.CenterRequest{Radius: radius(in), Capabilities: a.pscCapabilities(in)}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Visits.OrderPSCs(ctx, team, id, req)
}
