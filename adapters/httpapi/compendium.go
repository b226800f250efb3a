package httpapi

import (
	"net/http"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// compendiumOperations compare what labs can measure, and tell who orders.
func (a api) compendiumOperations() []operation {
	if a.Orders == nil {
		return nil
	}
	return []operation{
		{id: "search_compendium", pattern: "POST /v3/compendium/search", team: a.searchCompendium},
		{id: "convert_lab_codes", pattern: "POST /v3/compendium/convert", team: a.convertCodes},
		{id: "search_orderable_tests", pattern: "POST /v3/compendium/search_orderable_tests", team: a.searchOrderable},
		{id: "list_physicians", pattern: "GET /v2/team/{team_id}/physicians", team: a.listPhysicians},
		{id: "read_communication_settings", pattern: "GET /v3/order/{order_id}/communication_settings", team: readOne(orderID, a.Orders.Communication)},
		{id: "change_communication_settings", pattern: "PATCH /v3/order/{order_id}/communication_settings", team: a.changeCommunication},
	}
}

func (a api) searchCompendium(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
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

func (a api) convertCodes(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
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

// orderableOut are a lab's markers, by the code that was asked for.
type orderableOut struct {
	Candidates map[string][]catalogue.PerLabCandidate `json:"candidates"`
}

func (a api) searchOrderable(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
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
	return wire.JSON(w, http.StatusOK, orderableOut{found})
}

func (a api) listPhysicians(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
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

// communicationIn is the body that says how a patient may be told.
type communicationIn struct {
	SMSEnabled bool `json:"sms_enabled"`
}

func (a api) changeCommunication(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	id := orderID(in)
	var body communicationIn
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
