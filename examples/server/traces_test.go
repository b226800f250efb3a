package main

import (
	"bytes"
	"encoding/hex"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
)

// collected holds the spans that a collector received over OTLP.
type collected struct {
	mu    sync.Mutex
	spans []*tracev1.Span
	raw   bytes.Buffer
}

func (c *collected) receive(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var in collector.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &in) != nil {
			t.Errorf("not an export of traces: %s", r.URL.Path)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw.Write(body)
		for _, from := range in.GetResourceSpans() {
			for _, scope := range from.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
	}
}

// A request, its statements in the database and the deliveries of its events are one trace,
// with nothing of the person in it.
func TestTraces_joinRequestStatementsAndDeliveries(t *testing.T) {
	var spans collected
	endpoint := newServer(t, spans.receive(t))
	delivered := make(chan struct{}, 10)
	hook := newServer(t, func(http.ResponseWriter, *http.Request) { delivered <- struct{}{} })
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test-stage")
	p := start(t, "-database-url", pgtest.Empty(t), "-secret-file", secretFile(t), "-files", t.TempDir(), "-webhook-url", hook, "-otlp-endpoint", endpoint)
	post(p, "/v2/user/", `{"client_user_id":"planted-name"}`)
	var user struct {
		ID string `json:"user_id"`
	}
	p.get("/v2/user/resolve/planted-name", &user)
	const of = "0af7651916cd43dd8448eb211c80319c"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/v2/link/provider/manual/manual", bytes.NewReader([]byte(`{"user_id":"`+user.ID+`"}`)))
	require.NoError(t, err)
	r.Header.Set("x-service-api-key", p.key)
	r.Header.Set("content-type", "application/json")
	r.Header.Set("traceparent", "00-"+of+"-b7ad6b7169203331-01")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	select {
	case <-delivered:
	case <-time.After(time.Minute):
		require.Fail(t, "no delivery")
	}
	p.quit() // exports what is left

	byName := map[string][]*tracev1.Span{}
	for _, s := range spans.spans {
		if hex.EncodeToString(s.GetTraceId()) == of {
			byName[s.GetName()] = append(byName[s.GetName()], s)
		}
	}
	require.Len(t, byName["api request"], 1)
	require.Len(t, byName["webhook attempt"], 1)
	root := byName["api request"][0].GetSpanId()
	require.Equal(t, root, byName["webhook attempt"][0].GetParentSpanId())
	var statements []string
	for _, s := range byName["store"] {
		require.Equal(t, root, s.GetParentSpanId())
		for _, a := range s.GetAttributes() {
			if a.GetKey() == "db.query.summary" {
				statements = append(statements, a.GetValue().GetStringValue())
			}
		}
	}
	writes := func(summary string) bool { return strings.Contains(summary, "insert webhook_event") }
	require.True(t, slices.ContainsFunc(statements, writes), "%q", statements)
	require.Contains(t, spans.raw.String(), "test-stage")
	for _, value := range []string{"planted-name", user.ID, p.key} {
		require.NotContains(t, spans.raw.String(), value)
	}
}
