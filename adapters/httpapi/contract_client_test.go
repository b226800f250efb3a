package httpapi_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
)

// firstOperations are those that people use first. Each has examples in the contract, and
// adapters/client has its types.
var firstOperations = []string{
	"create_user", "list_users", "read_user", "resolve_user", "patch_user", "delete_user",
	"connect_manual_provider", "create_link_token", "list_user_providers",
	"ingest_samples", "ingest_activity", "ingest_body", "ingest_sleep", "ingest_workouts",
	"read_samples_grouped", "read_activity", "read_body", "read_sleep", "read_workouts", "query_aggregate",
	"create_team", "list_teams", "create_api_key",
	"create_webhook", "list_webhooks", "read_webhook_secret", "send_webhook_test",
	"list_lab_tests", "create_order", "read_order", "list_orders", "read_order_result", "cancel_order", "simulate_order",
}

// The schemas that the types of adapters/client are generated from are those of this contract
// that its operations send and receive.
func TestClient_schemasAreThoseOfTheContract(t *testing.T) {
	file := filepath.Join("..", "client", "internal", "api", "contract.json")
	want := clientPart(t, httpapi.OpenAPI())
	if *updateContract {
		require.NoError(t, os.WriteFile(file, want, 0o600))
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "run go test ./adapters/httpapi -run Client_schemas -update, then go generate in adapters/client")
}

// clientPart returns the schemas that the first operations send and receive, in a form that gives
// plain Go types: strings in place of enums, and any value in place of a choice of types.
func clientPart(t *testing.T, contract []byte) []byte {
	t.Helper()
	var doc struct {
		OpenAPI string         `json:"openapi"`
		Info    map[string]any `json:"info"`
		Paths   map[string]map[string]struct {
			ID        string         `json:"operationId"`
			Body      any            `json:"requestBody"`
			Responses map[string]any `json:"responses"`
		} `json:"paths"`
		Components map[string]map[string]any `json:"components"`
	}
	require.NoError(t, json.Unmarshal(contract, &doc))
	found := map[string]any{}
	var ids []string
	for _, item := range doc.Paths {
		for _, op := range item {
			if slices.Contains(firstOperations, op.ID) {
				ids = append(ids, op.ID)
				addSchemas(found, doc.Components["schemas"], op.Body)
				addSchemas(found, doc.Components["schemas"], op.Responses["200"])
			}
		}
	}
	require.ElementsMatch(t, firstOperations, ids)
	delete(doc.Info, "description")
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "\t")
	require.NoError(t, enc.Encode(map[string]any{
		"openapi": doc.OpenAPI, "info": doc.Info, "paths": map[string]any{},
		"components": map[string]any{"schemas": found},
	}))
	return out.Bytes()
}

// addSchemas adds to out the schemas that node refers to.
func addSchemas(out, all map[string]any, node any) {
	switch v := node.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			name := strings.TrimPrefix(ref, "#/components/schemas/")
			if _, ok := out[name]; !ok && name != ref {
				out[name] = plainTypes(all[name])
				addSchemas(out, all, out[name])
			}
		}
		for _, child := range v {
			addSchemas(out, all, child)
		}
	case []any:
		for _, child := range v {
			addSchemas(out, all, child)
		}
	}
}

// plainTypes returns a schema without enums and choices of types.
func plainTypes(node any) any {
	switch v := node.(type) {
	case map[string]any:
		for _, word := range []string{"oneOf", "anyOf"} {
			if choices, ok := v[word].([]any); ok && !orNull(choices) {
				delete(v, word)
				delete(v, "discriminator")
				delete(v, "type")
			}
		}
		for _, word := range []string{"enum", "const", "x-extensible-enum"} {
			if _, property := v[word].(map[string]any); !property {
				delete(v, word)
			}
		}
		for name, child := range v {
			v[name] = plainTypes(child)
		}
	case []any:
		for i, child := range v {
			v[i] = plainTypes(child)
		}
	}
	return node
}

// orNull reports whether a choice is one type or null.
func orNull(choices []any) bool {
	rest := 0
	for _, c := range choices {
		if m, _ := c.(map[string]any); m["type"] != "null" {
			rest++
		}
	}
	return rest <= 1
}
