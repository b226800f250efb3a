package laborders

import (
	"net/http"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// compendiumOperations compare what labs can measure, and tell who orders.
func (a API) compendiumOperations() []server.Operation {
	return []server.Operation{
		{ID: "search_compendium", Pattern: "POST /v3/compendium/search", Team: a.searchCompendium},
		{ID: "convert_lab_codes", Pattern: "POST /v3/compendium/convert", Team: a.convertCodes},
		{ID: "search_orderable_tests", Pattern: "POST /v3/compendium/search_orderable_tests", Team: a.searchOrderable},
		{ID: "list_physicians", Pattern: "GET /v2/team/{team_id}/physicians", Team: a.listPhysicians},
		{ID: "read_communication_settings", Pattern: "GET /v3/order/{order_id}/communication_settings", Team: server.ReadOne(orderID, a.Orders.Communication)},
		{ID: "change_communication_settings", Pattern: "PATCH /v3/order/{order_id}/communication_settings", Team: a.changeCommunication},
	}
}

func (a API) searchCompendium(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body catalogue.CompendiumRequest
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	found, err := a.Orders.Catalogue().SearchCompendium(r.Context(), team, body)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, found)
}

func (a API) convertCodes(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body catalogue.ConvertRequest
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	found, err := a.Orders.Catalogue().Convert(r.Context(), team, body)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, found)
}

// OrderableTests are a lab's markers, by the code that was asked for.
type OrderableTests struct {
	Candidates map[string][]catalogue.PerLabCandidate `json:"candidates"`
}

func (a API) searchOrderable(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body catalogue.OrderableRequest
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	found, err := a.Orders.Catalogue().SearchOrderable(r.Context(), team, body)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, OrderableTests{found})
}

func (a API) listPhysicians(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	of := healthlab.TeamID{UUID: in.PathUUID("team_id")}
	if err := in.Err(); err != nil {
		return err
	}
	found, err := a.Orders.Physicians(r.Context(), team, of)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, found)
}

// CommunicationChange is the body that sets the channels of messages to a patient.
type CommunicationChange struct {
	SMSEnabled bool `json:"sms_enabled"`
}

func (a API) changeCommunication(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	id := orderID(in)
	var body CommunicationChange
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	settings, err := a.Orders.SetCommunication(r.Context(), team, id, body.SMSEnabled)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, settings)
}
