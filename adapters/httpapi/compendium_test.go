package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// compendiumPairs are the types of the compendium and their schemas.
func compendiumPairs() []contract.Pair {
	return append(httpapi.CompendiumBodies(), []contract.Pair{
		{Schema: "CompendiumResult", Value: catalogue.CompendiumResult{}},
		{Schema: "Conversion", Value: catalogue.Conversion{}},
		{Schema: "CompendiumRequest", Value: catalogue.CompendiumRequest{}, Input: true, Enums: map[string][]string{"mode": {"canonical", "crosswalk"}}},
		{Schema: "ConvertRequest", Value: catalogue.ConvertRequest{}, Input: true},
		{Schema: "OrderableRequest", Value: catalogue.OrderableRequest{}, Input: true},
		{Schema: "CommunicationSettings", Value: orders.CommunicationSettings{}},
	}...)
}

func TestCompendium_searchesAndConvertsTestsBetweenLabs(t *testing.T) {
	c := newFixture(t, nil)
	var found catalogue.CompendiumResult
	c.post("/v3/compendium/search", object{"mode": "crosswalk", "query": "a1c"}, 200).JSON(t, &found)
	require.Equal(t, "Hemoglobin A1c", found.SelectedCanonical.DisplayName)
	require.Contains(t, found.PerLab, "southlab")
	require.Equal(t, []string{"body.query"}, c.post("/v3/compendium/search", object{"mode": "canonical"}, 422).Locs(t))
	var converted catalogue.Conversion
	c.post("/v3/compendium/convert", object{"provider_ids": []string{"N002", "zzz"}, "target_lab": "southlab"}, 200).JSON(t, &converted)
	require.Equal(t, []string{"S002"}, converted.ConvertedProviderIDs)
	require.Equal(t, []string{"zzz"}, converted.UnresolvedProviderIDs)
	c.post("/v3/compendium/convert", object{"target_lab": "southlab"}, 422)
	c.refused("POST", "/v3/compendium/convert", object{"lab_test_id": absent, "target_lab": "southlab"}, 404, catalogue.LabTestNotFound)
	var orderable struct {
		Candidates map[string][]catalogue.PerLabCandidate
	}
	c.post("/v3/compendium/search_orderable_tests", object{"provider_ids": []string{"N001"}, "target_lab": "southlab"}, 200).JSON(t, &orderable)
	require.Equal(t, "S001", *orderable.Candidates["N001"][0].ProviderID)
	require.Equal(t, catalogue.FeatureNotEnabled, c.With("x-service-api-key", "other").
		Send(t, "POST", "/v3/compendium/search", object{"mode": "canonical", "query": "a"}).Want(t, 403).ErrorType(t))
}

func TestPhysicians_areListedOnlyForTheirTeam(t *testing.T) {
	c := newFixture(t, nil)
	require.JSONEq(t, `[{"first_name":"Cy","last_name":"Vale","npi":"1"}]`, string(c.get("/v2/team/"+team.String()+"/physicians", 200).Body))
	c.refused("GET", "/v2/team/"+otherTeam.String()+"/physicians", nil, 404, orders.TeamNotFound)
	c.get("/v2/team/x/physicians", 422)
}

func TestCommunicationSettings_areReadAndPatchedPerOrder(t *testing.T) {
	c := newFixture(t, nil)
	path := "/v3/order/" + c.placed().ID.String() + "/communication_settings"
	var got orders.CommunicationSettings
	c.get(path, 200).JSON(t, &got)
	require.True(t, got.SMSEnabled)
	c.Send(t, "PATCH", path, object{"sms_enabled": false}).Want(t, 200).JSON(t, &got)
	require.False(t, got.SMSEnabled)
	c.get(path, 200).JSON(t, &got)
	require.False(t, got.SMSEnabled)
	c.Send(t, "PATCH", path, object{}).Want(t, 422)
	require.Equal(t, orders.OrderNotFound, c.With("x-service-api-key", "other").Send(t, "GET", path, nil).Want(t, 404).ErrorType(t))
}

func TestSimulation_withADelayAppliesOnlyTheFirstStatusAtOnce(t *testing.T) {
	c := newFixture(t, nil)
	path := "/v3/order/" + c.placed().ID.String()
	c.post(path+"/test?delay=60", nil, 200)
	var got orders.Order
	c.get(path, 200).JSON(t, &got)
	require.Equal(t, orders.RequisitionCreated, got.LowLevel())
	c.post(path+"/test?delay=-1", nil, 422)
}
