package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/orders/critical"
)

// The example of each operation's body is sent, and the answer is a success as in the
// contract. The ids in examples are those of the test's user and lab test.
func TestExamplesAreAnswered(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct {
			ID   string `json:"operationId"`
			Body struct {
				Content map[string]struct {
					Example json.RawMessage `json:"example"`
				} `json:"content"`
			} `json:"requestBody"`
		} `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(httpapi.OpenAPI(), &doc))
	tried := map[string]bool{}
	for path, item := range doc.Paths {
		for method, op := range item {
			example := op.Body.Content["application/json"].Example
			if example == nil {
				continue
			}
			tried[op.ID] = true
			t.Run(op.ID, func(t *testing.T) {
				config, user := full(t)
				config.Organisations = nil // has no such team
				client := contract.NewClient(t, config.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
				loop := critical.Loop{}
				if strings.Contains(path, "{critical_result_id}") {
					loop = criticalLoop(t, config, user)
				}
				target := strings.NewReplacer("{critical_result_id}", loop.ID.String(), "{user_id}", user.String(), "{org_id}", org.String(), "{team_id}", team.String(), "{environment}", "sandbox",
					"{resource}", "heartrate").Replace(path)
				require.NotContains(t, target, "{", "a value for the parameter")
				body := strings.NewReplacer("3f0c2a51-7d0e-4e5b-9a52-0c1f6e0a9d11", user.String(), "dfe2bc7d-9b6d-50bf-a9af-9c33cb9131f2", walkInTest).Replace(string(example))
				got := client.Send(t, strings.ToUpper(method), target, body)
				require.Less(t, got.Status, 300, string(got.Body))
			})
		}
	}
	for _, id := range []string{"create_user", "patch_user", "ingest_samples", "ingest_sleep", "query_aggregate", "create_link_token", "create_order", "create_webhook", "acknowledge_critical_result"} {
		require.True(t, tried[id], "%s has an example", id)
	}
}
