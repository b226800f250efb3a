package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// patient is a body with what people would not want to read in a log.
type patient struct {
	Name    string                `json:"name"`
	Email   string                `json:"email"`
	Born    healthlab.Date        `json:"born"`
	Seen    *healthlab.Time       `json:"seen"`
	ID      healthlab.UserID      `json:"id"`
	Weight  float64               `json:"weight"`
	Age     int8                  `json:"age"`
	Price   decimal.Decimal       `json:"price"`
	Tags    []string              `json:"tags"`
	Address map[string]string     `json:"address"`
	Notes   wire.Opt[[]string]    `json:"notes,omitzero"`
	Visits  []struct{ Day uint8 } `json:"visits"`
}

const patients = `{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{"/patients/{id}/{slug}":{"post":{"operationId":"admit",
"parameters":[{"name":"limit","in":"query","schema":{"type":"integer"}},{"name":"since","in":"query","schema":{"type":"string"}},
 {"name":"kind","in":"query","schema":{"type":"string"}},{"name":"search","in":"query","schema":{"type":"string"}},{"name":"x-once","in":"header","schema":{"type":"string"}}],
"requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":{
 "name":{"type":"string"},"email":{"type":"string"},"born":{"type":"string","format":"date"},"seen":{"type":["string","null"],"format":"date-time"},
 "id":{"type":"string","format":"uuid"},"weight":{"type":"number"},"age":{"type":"integer"},"price":{"type":"number"},
 "tags":{"type":"array","items":{"type":"string"}},"address":{"type":"object"},"notes":{"type":"array","items":{"type":"string"}},
 "visits":{"type":"array","items":{"type":"object","properties":{"Day":{"type":"integer"}}}}}}}}},
"responses":{"204":{"description":"d"}}}}}}`

// If a request fails, in reading, in a rule, in a store or by a panic, none of its values
// appears in the answer or the log.
func TestFailedRequest_valuesAppearInNoAnswerOrLog(t *testing.T) {
	for name, end := range map[string]func(context.Context, patient) error{
		"fine":     func(context.Context, patient) error { return nil },
		"store":    func(_ context.Context, p patient) error { return fmt.Errorf("insert: cannot write %q", p.Name+p.Email) },
		"rule":     func(context.Context, patient) error { return &healthlab.RuleError{Type: "NO", Msg: "not today"} },
		"not here": func(context.Context, patient) error { return fmt.Errorf("get user: %w", healthlab.NotFound) },
		"panic":    func(_ context.Context, p patient) error { panic(p.Name) },
	} {
		t.Run(name, func(t *testing.T) {
			logs := &contract.Logs{}
			a := newAPI(Config{
				Authenticate: func(r *http.Request) (Caller, error) {
					if r.Header.Get("x-service-api-key") != "k" {
						return Caller{}, healthlab.Unauthenticated
					}
					return Caller{Team: someTeam}, nil
				},
				Log: logs.Logger(),
			})
			reached := 0
			routes := a.routes([]server.Operation{{ID: "admit", Pattern: "POST /patients/{id}/{slug}", Bound: server.TeamOnly,
				Team: func(w http.ResponseWriter, r *http.Request, _ healthlab.TeamID) error {
					in := wire.From(r)
					in.PathUUID("id")
					in.PathText("slug", 40)
					in.Int("limit", 1, 1, 10)
					in.OptTime("since", wire.StartOfDay)
					in.Strings("kind", "a", "b")
					in.OptText("search", 100)
					in.OptHeader("x-once", 20)
					var p patient
					in.Body(&p)
					if err := in.Err(); err != nil {
						return err
					}
					reached++
					if err := end(r.Context(), p); err != nil {
						return err
					}
					return wire.NoContent(w)
				}}})
			found, err := contract.Leaks(t.Context(), Mux(routes), contract.Probes{
				Document: []byte(patients), Logs: logs, Header: http.Header{"X-Service-Api-Key": {"k"}},
			})
			require.NoError(t, err)
			require.Empty(t, found)
			require.Positive(t, reached, "no probe got as far as the handler's end")
		})
	}
}
