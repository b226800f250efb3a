package httpapi_test

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/webhook"
)

// eventPairs are the published types of the data of events, but for those whose schema is
// compared with its enumerations elsewhere.
func eventPairs() []contract.Pair {
	var out []contract.Pair
	for _, p := range httpapi.EventBodies() {
		switch p.Schema {
		case "Order", "Appointment", "LabReportJob":
			continue
		case "CriticalResult":
			p.Enums = map[string][]string{"status": {"final", "partial", "corrected"}, "interpretation": {"normal", "abnormal", "critical", "unknown"}}
		case "EndpointDisabled":
			p.Enums = map[string][]string{"reason": {"failing", "gone"}}
		}
		out = append(out, p)
	}
	return out
}

// Every type of event has a webhook in the contract, and a message fits the webhook of its
// own type alone.
func TestContract_everyEventTypeHasItsWebhook(t *testing.T) {
	doc, err := contract.Read(httpapi.OpenAPI())
	require.NoError(t, err)
	var tree struct {
		Webhooks map[string]struct {
			Post struct{ OperationID, Description string }
		}
	}
	require.NoError(t, json.Unmarshal(httpapi.OpenAPI(), &tree))
	require.Len(t, tree.Webhooks, len(httpapi.EventBodies()))
	ids := map[string]bool{}
	for name, w := range tree.Webhooks {
		require.NotEmpty(t, w.Post.Description, name)
		require.False(t, ids[w.Post.OperationID], name)
		ids[w.Post.OperationID] = true
	}

	c := newFixture(t, nil)
	o := c.placed()
	for _, tc := range []struct {
		name string
		data any
		user healthlab.UserID
	}{
		{orders.EventOrderCreated, o, c.user},
		{healthdata.EventConnectionDeleted, healthdata.ConnectionDeleted{UserID: c.user}, c.user},
		{"endpoint.disabled", webhook.EndpointDisabled{EndpointID: "ep_1", URL: "https://receiver.example.com", Reason: "gone", At: healthlab.At(fixtureNow)}, healthlab.UserID{}},
	} {
		data, err := json.Marshal(tc.data)
		require.NoError(t, err)
		body, err := webhook.Envelope{Sequence: true}.Render(healthlab.Event{ID: uuid.New(), Type: tc.name, Team: team, User: tc.user, Seq: 7, Data: data}, nil)
		require.NoError(t, err)
		require.NoError(t, doc.CheckEvent(tc.name, body), tc.name)
		require.Error(t, doc.CheckEvent(orders.EventOrderUpdated, body))
	}
}
