package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/orders/critical"
)

// exampleOperation is an operation with the examples of its bodies.
type exampleOperation struct {
	ID        string                 `json:"operationId"`
	Body      exampleBody            `json:"requestBody"`
	Responses map[string]exampleBody `json:"responses"`
}

type exampleBody struct {
	Content map[string]struct {
		Schema  map[string]any  `json:"schema"`
		Example json.RawMessage `json:"example"`
	} `json:"content"`
}

func (b exampleBody) example() json.RawMessage { return b.Content["application/json"].Example }

// exampleOperations returns the operations of the contract by path and method.
func exampleOperations(t *testing.T) map[string]map[string]exampleOperation {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]exampleOperation `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(httpapi.OpenAPI(), &doc))
	return doc.Paths
}

// The example of each operation's body is sent, and the answer is a success as in the
// contract. The ids in examples are those of the test's user, team and lab test.
func TestContract_exampleBodiesAreAnsweredWithSuccess(t *testing.T) {
	operations := exampleOperations(t)
	tried := map[string]bool{}
	for path, item := range operations {
		for method, op := range item {
			example := op.Body.example()
			if example == nil {
				continue
			}
			tried[op.ID] = true
			t.Run(op.ID, func(t *testing.T) {
				config, user := full(t)
				if strings.HasPrefix(path, "/v1/org/{org_id}/team_api_keys") || path == "/v1/org/{org_id}/team" {
					_, err := config.Organisations.EnsureTeam(t.Context(), org, organisation.NewTeam{ID: team, Name: "First team"})
					require.NoError(t, err)
				} else {
					config.Organisations = nil // has no such team
				}
				loop := critical.Loop{}
				if strings.Contains(path, "{critical_result_id}") {
					loop = criticalLoop(t, config, user)
				}
				client := contract.NewClient(t, config.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
				send := func(method, path string, example json.RawMessage) *contract.Reply {
					body := strings.NewReplacer("3f0c2a51-7d0e-4e5b-9a52-0c1f6e0a9d11", user.String(), "dfe2bc7d-9b6d-50bf-a9af-9c33cb9131f2", walkInTest,
						"07813e1a-d864-4cf9-8c4d-ec53b5daf17b", team.String()).Replace(string(example))
					require.NotContains(t, path, "{", "a value for the parameter")
					got := client.Send(t, strings.ToUpper(method), path, body)
					require.Less(t, got.Status, 300, string(got.Body))
					return got
				}
				target := strings.NewReplacer("{critical_result_id}", loop.ID.String(), "{user_id}", user.String(), "{org_id}", org.String(), "{team_id}", team.String(),
					"{environment}", "sandbox", "{region}", "us", "{resource}", "heartrate", "{provider}", "manual").Replace(path)
				if list, _, ok := strings.Cut(target, "/{webhook_id}"); ok {
					var made struct{ ID string }
					send("post", list, operations["/v1/org/{org_id}/team/{team_id}/{environment}/webhook"]["post"].Body.example()).JSON(t, &made)
					target = strings.ReplaceAll(target, "{webhook_id}", made.ID)
				}
				if strings.Contains(target, "{order_id}") {
					var made struct{ Order struct{ ID string } }
					send("post", "/v3/order", operations["/v3/order"]["post"].Body.example()).JSON(t, &made)
					target = strings.ReplaceAll(target, "{order_id}", made.Order.ID)
				}
				send(method, target, example)
			})
		}
	}
	require.True(t, tried["acknowledge_critical_result"])
}

// The example of each answer is as in the contract.
func TestContract_exampleAnswersFitTheirSchemas(t *testing.T) {
	for path, item := range exampleOperations(t) {
		for method, op := range item {
			for status, answer := range op.Responses {
				if answer.example() == nil {
					continue
				}
				t.Run(op.ID+" "+status, func(t *testing.T) {
					code, err := strconv.Atoi(status)
					require.NoError(t, err)
					client := contract.NewClient(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						w.Header().Set("Content-Type", "application/json")
						w.WriteHeader(code)
						_, err := w.Write(answer.example())
						require.NoError(t, err)
					}), httpapi.OpenAPI())
					client.Lenient = true // nothing is sent
					client.Send(t, strings.ToUpper(method), strings.NewReplacer("{", "", "}", "").Replace(path), nil)
				})
			}
		}
	}
}

// The operations that people use first have an example of each body.
func TestContract_commonOperationsHaveExamples(t *testing.T) {
	seen := 0
	for _, item := range exampleOperations(t) {
		for _, op := range item {
			if !slices.Contains(firstOperations, op.ID) {
				continue
			}
			seen++
			if op.Body.Content["application/json"].Schema != nil {
				require.NotNil(t, op.Body.example(), "%s: a body", op.ID)
			}
			if answer := op.Responses["200"]; answer.Content["application/json"].Schema != nil && answer.Content["application/json"].Schema["type"] != "null" {
				require.NotNil(t, answer.example(), "%s: an answer", op.ID)
			}
		}
	}
	require.GreaterOrEqual(t, seen, 30)
}
