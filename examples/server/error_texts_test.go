package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// Of every operation of the contract a 401 names the header of the credential, a 404 the kind of thing and
// its id, and a refused parameter with a list of values that list.
func TestAPI_errorsNameHeaderKindIDAndAllowedValues(t *testing.T) {
	t.Parallel()
	const manage = "mk_0123456789abcdef0123456789abcdef"
	p := start(t, "-management-key", manage)
	defer p.quit()
	ask := func(method, path string, keys bool) (int, string) {
		var body io.Reader = http.NoBody
		if method != http.MethodGet && method != http.MethodDelete {
			body = strings.NewReader("{}")
		}
		r, err := http.NewRequestWithContext(t.Context(), method, p.url+path, body)
		require.NoError(t, err)
		if body != http.NoBody {
			r.Header.Set("Content-Type", "application/json")
		}
		if keys {
			r.Header.Set("x-service-api-key", p.key)
			r.Header.Set("x-management-key", manage)
		}
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(text)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			ID         string                `json:"operationId"`
			Security   []map[string][]string `json:"security"`
			Parameters []struct {
				Name   string `json:"name"`
				In     string `json:"in"`
				Schema struct {
					Enum []any `json:"enum"`
				} `json:"schema"`
			} `json:"parameters"`
		} `json:"paths"`
	}
	_, text := ask(http.MethodGet, "/openapi.json", false)
	require.NoError(t, json.Unmarshal([]byte(text), &doc))
	require.Greater(t, len(doc.Paths), 100)
	headers := map[string]string{"TeamKey": "x-service-api-key", "ManagementKey": "x-management-key", "LinkTokenKey": "x-service-link-token"}
	parameter := regexp.MustCompile(`\{(\w+)\}`)
	refused, missing, listed := 0, 0, 0
	for _, pattern := range slices.Sorted(maps.Keys(doc.Paths)) {
		for method, op := range doc.Paths[pattern] {
			method = strings.ToUpper(method)
			values := map[string]string{"environment": "sandbox", "region": "us", "org_id": orgOf(p), "resource": "heartrate", "page": "1"}
			var ids []string // in the path
			path := parameter.ReplaceAllStringFunc(pattern, func(name string) string {
				name = strings.Trim(name, "{}")
				if values[name] == "" {
					values[name] = uuid.NewString()
				}
				if strings.HasSuffix(name, "_id") && name != "client_user_id" {
					ids = append(ids, values[name])
				}
				return values[name]
			})
			for _, scheme := range op.Security {
				for name := range scheme {
					header := headers[name]
					if status, answer := ask(method, path, false); header != "" && status == http.StatusUnauthorized {
						require.Contains(t, answer, header, op.ID)
						refused++
					}
				}
			}
			if status, answer := ask(method, path, true); status == http.StatusNotFound {
				missing++
				require.NotContains(t, answer, "the requested resource was not found", op.ID)
				if len(ids) > 0 {
					require.True(t, slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(answer, id) }), "%s: %s", op.ID, answer)
				}
			}
			for _, q := range op.Parameters {
				if q.In != "query" || len(q.Schema.Enum) == 0 {
					continue
				}
				status, answer := ask(method, path+"?"+q.Name+"=qz7marker9xw", true)
				require.Equal(t, http.StatusUnprocessableEntity, status, op.ID)
				require.NotContains(t, answer, "qz7marker9xw")
				if len(q.Schema.Enum) > longEnum {
					require.Contains(t, answer, "such as ", op.ID)
					require.Contains(t, answer, "/openapi.json lists all", op.ID)
				} else {
					for _, v := range q.Schema.Enum {
						require.Contains(t, answer, fmt.Sprint(v), "%s: %s", op.ID, q.Name)
					}
				}
				listed++
			}
		}
	}
	require.Greater(t, refused, 150)
	require.Greater(t, missing, 50)
	require.Greater(t, listed, 10)
}

// longEnum is how many values an error lists at most; of more it shows an example and where the list is.
const longEnum = 20
