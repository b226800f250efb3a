package laborders

import (
	"context"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// compendiumOperations lists the operations that compare the tests of labs and list physicians.
func (a API) compendiumOperations() []server.Operation {
	return []server.Operation{
		{ID: "search_compendium", Pattern: "POST /v3/compendium/search", Bound: server.Public, Team: server.AsJSON(a.searchCompendium)},
		{ID: "convert_lab_codes", Pattern: "POST /v3/compendium/convert", Bound: server.Public, Team: server.AsJSON(a.convertCodes)},
		{ID: "search_orderable_tests", Pattern: "POST /v3/compendium/search_orderable_tests", Bound: server.Public, Team: server.AsJSON(a.searchOrderable)},
		{ID: "list_physicians", Pattern: "GET /v2/team/{team_id}/physicians", Bound: server.TeamOnly, Team: server.AsJSON(a.listPhysicians)},
		{ID: "read_communication_settings", Pattern: "GET /v3/order/{order_id}/communication_settings", Bound: a.ofOrder(), Team: server.ReadOne(orderID, a.Orders.PatientMessages().Settings)},
		{ID: "change_communication_settings", Pattern: "PATCH /v3/order/{order_id}/communication_settings", Bound: a.ofOrder(), Team: server.AsJSON(a.changeCommunication)},
	}
}

func (a API) searchCompendium(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	var body catalogue.CompendiumRequest
	in.Body(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Orders.Catalogue().SearchCompendium(ctx, team, body)
}

func (a API) convertCodes(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	var body catalogue.ConvertRequest
	in.Body(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Orders.Catalogue().Convert(ctx, team, body)
}

// OrderableTests lists the markers that a lab can test, by the code that the caller asked for.
type OrderableTests struct {
	Candidates map[string][]catalogue.PerLabCandidate `json:"candidates"`
}

func (a API) searchOrderable(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	var body catalogue.OrderableRequest
	in.Body(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	found, err := a.Orders.Catalogue().SearchOrderable(ctx, team, body)
	if err != nil {
		return nil, err
	}
	return OrderableTests{found}, nil
}

func (a API) listPhysicians(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	of := healthlab.TeamID{UUID: in.PathUUID("team_id")}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Orders.Physicians(ctx, team, of)
}

// CommunicationChange is the body that sets the channels of messages to a patient.
type CommunicationChange struct {
	SMSEnabled bool `json:"sms_enabled"`
}

func (a API) changeCommunication(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	id := orderID(in)
	var body CommunicationChange
	in.Body(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Orders.PatientMessages().SetSMS(ctx, team, id, body.SMSEnabled)
}
