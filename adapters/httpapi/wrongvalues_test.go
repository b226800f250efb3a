package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
)

// Wherever the contract has an enumeration, in a query or a body, another value is answered with the values.
func TestEnumeration_otherValueIsAnsweredWithTheAllowedValues(t *testing.T) {
	logs := &contract.Logs{}
	c, user := full(t)
	c.Log = logs.Logger()
	_, err := c.Organisations.EnsureTeam(t.Context(), org, organisation.NewTeam{ID: team, Name: "First team"})
	require.NoError(t, err)
	h := c.handler()
	fixture := &fixture{t: t, config: c, user: user}
	fixture.Client = contract.NewClient(t, h, httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	o := fixture.placed()
	tried, found, err := contract.WrongValues(t.Context(), h, contract.Probes{
		Document: httpapi.OpenAPI(), Logs: logs, Header: http.Header{"X-Service-Api-Key": {goodKey}},
		Path: map[string]string{
			"user_id": user.String(), "resource": "heartrate", "environment": "sandbox", "order_id": o.ID.String(),
			"transaction_id": o.OrderTransaction.ID.String(), "provider": "manual", "lab_test_id": walkInTest, "client_user_id": "patient-77",
			"team_id": team.String(), "org_id": org.String(), "region": "us", "page": "1", "func": "time_in_range",
		},
	}, nil)
	require.NoError(t, err)
	for _, f := range found {
		t.Log(f)
	}
	require.Empty(t, found, "%d of %d", len(found), tried)
	require.Greater(t, tried, 100)
}
