package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
)

// Every operation that reads a range of time refuses one that ends before it starts, and a time without an offset.
func TestTimeRanges_reversedOrWithoutOffsetAreRefusedEverywhere(t *testing.T) {
	c, user := full(t)
	h := c.handler()
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, In, Ref string
				Schema        struct{ Ref, Format string }
			}
		}
		Components struct {
			Parameters map[string]struct {
				Name, In string
				Schema   struct {
					Ref    string `json:"$ref"`
					Format string
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(string(httpapi.OpenAPI()), `"$ref"`, `"Ref"`)), &doc))
	tried := 0
	for path, operations := range doc.Paths {
		times := map[string]bool{} // the parameters, and whether they take a time of day
		for _, p := range operations["get"].Parameters {
			name, in, schema := p.Name, p.In, p.Schema.Ref+p.Schema.Format
			if p.Ref != "" {
				shared := doc.Components.Parameters[p.Ref[strings.LastIndexByte(p.Ref, '/')+1:]]
				name, in, schema = shared.Name, shared.In, shared.Schema.Ref+shared.Schema.Format
			}
			if in == "query" {
				times[name] = strings.HasSuffix(schema, "DateOrTime") || schema == "date-time"
			}
		}
		for start, ofDay := range times {
			end := strings.Replace(start, "start", "end", 1)
			if _, ok := times[end]; !ok || end == start {
				continue
			}
			target := strings.NewReplacer("{user_id}", user.String(), "{resource}", "heartrate").Replace(path)
			ask := func(from, to string) *httptest.ResponseRecorder {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target+"?"+start+"="+from+"&"+end+"="+to, nil)
				r.Header.Set("x-service-api-key", goodKey)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w
			}
			tried++
			w := ask("2026-03-02", "2026-03-01")
			require.Equal(t, 422, w.Code, path)
			require.Contains(t, w.Body.String(), `"must not be before `+start+`"`, path)
			require.Equal(t, 200, ask("2026-03-02", "2026-03-02").Code, path)
			if ofDay {
				require.Equal(t, 422, ask("2026-03-02T07:00:00", "2026-03-03").Code, "%s: without an offset", path)
				require.Equal(t, 422, ask("2026-03-02T07:00:00Z", "2026-03-02T07:59:59%2B01:00").Code, path)
				require.Equal(t, 200, ask("2026-03-02T07:00:00Z", "2026-03-02T08:00:00%2B01:00").Code, path)
			}
		}
	}
	require.Greater(t, tried, 20)
}
