package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// An assistant asks the running server, over HTTP and through the program's input and output, and each call
// is in the access log.
func TestMCP_assistantsAskOverHTTPAndStdioAndAreLogged(t *testing.T) {
	t.Parallel()
	p := start(t)
	var user struct {
		ID string `json:"user_id"`
	}
	ask(p, "POST", "/v2/user/", `{"client_user_id":"ann"}`, 200, &user)
	post(p, "/v2/link/provider/manual/manual", `{"user_id":"`+user.ID+`"}`)
	post(p, "/v2/timeseries/"+user.ID+"/heartrate", `{"stage":"daily","provider":"manual","time_zone":"UTC","source":{"type":"app"},
		"data":[{"timestamp":"2026-03-02T07:00:00Z","unit":"bpm","value":60},{"timestamp":"2026-03-02T08:00:00Z","unit":"bpm","value":70}]}`)

	var placed struct{ Order struct{ ID string } }
	ask(p, "POST", "/v3/order", fmt.Sprintf(anOrder, user.ID, tourLabTest, time.Now().Year()-40), 200, &placed)
	post(p, "/v3/order/"+placed.Order.ID+"/test", `{}`)
	var history struct {
		Data []struct {
			ReportedValue string `json:"reported_value"`
			Name          string
		}
	}
	wait(t, func() bool {
		p.get("/v2/user/"+user.ID+"/lab_result", &history)
		return len(history.Data) > 0
	})

	fromAssistant, toServer := io.Pipe()
	fromServer, toAssistant := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- passAssistant(ctx, []string{"-url", p.url + assistantsPath, "-api-key", p.key}, fromAssistant, toAssistant, io.Discard)
	}()
	for name, transport := range map[string]sdk.Transport{
		"http":  &sdk.StreamableClientTransport{Endpoint: p.url + assistantsPath, HTTPClient: &http.Client{Transport: bearer(p.key)}},
		"stdio": &sdk.IOTransport{Reader: fromServer, Writer: toServer},
	} {
		session, err := sdk.NewClient(&sdk.Implementation{Name: name + "-assistant"}, nil).Connect(t.Context(), transport, nil)
		require.NoError(t, err, name)
		tools, err := session.ListTools(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, tools.Tools, 5)
		got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask", Arguments: map[string]any{
			"user": "ann", "measure": "heartrate", "function": "mean", "from": "2026-03-02", "to": "2026-03-02",
		}})
		require.NoError(t, err)
		require.False(t, got.IsError)
		require.Equal(t, 65.0, got.StructuredContent.(map[string]any)["values"].([]any)[0].(map[string]any)["value"])
		got, err = session.CallTool(t.Context(), &sdk.CallToolParams{Name: "labs", Arguments: map[string]any{"user": "ann", "limit": 50}})
		require.NoError(t, err)
		require.False(t, got.IsError)
		results := got.StructuredContent.(map[string]any)["results"].([]any)
		require.Len(t, results, len(history.Data))
		for i, want := range history.Data {
			require.Equal(t, want.ReportedValue, results[i].(map[string]any)["reported_value"])
			require.Equal(t, want.Name, results[i].(map[string]any)["text"])
		}
		got, err = session.CallTool(t.Context(), &sdk.CallToolParams{Name: "orders", Arguments: map[string]any{"user": "ann"}})
		require.NoError(t, err)
		require.False(t, got.IsError)
		placedOrders := got.StructuredContent.(map[string]any)["orders"].([]any)
		require.Len(t, placedOrders, 1)
		require.Equal(t, placed.Order.ID, placedOrders[0].(map[string]any)["order_id"])
		require.NoError(t, session.Close())
	}
	stop()
	<-done
	var log struct {
		Lines []struct{ Operation, Actor string }
	}
	wait(t, func() bool {
		p.get("/v2/access_log?user_id="+user.ID, &log)
		seen := map[string]bool{}
		for _, l := range log.Lines {
			if l.Operation == "mcp_ask" {
				seen[l.Actor[len(l.Actor)-len("stdio-assistant"):]] = true
			}
		}
		return len(seen) == 2
	})
	p.quit()
}

var conformance = flag.String("conformance", "", "the program of the package @modelcontextprotocol/conformance; see make conformance")

// The scenarios of the package that need no fixtures pass against the server. The package sends no key, so
// a proxy adds it.
func TestMCP_passesTheConformanceScenarios(t *testing.T) {
	if *conformance == "" {
		t.Skip("needs the package of scenarios: make conformance")
	}
	p := start(t)
	target, err := url.Parse(p.url)
	require.NoError(t, err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+p.key)
	}})
	t.Cleanup(proxy.Close)
	for _, scenario := range strings.Fields("server-initialize ping tools-list dns-rebinding-protection server-sse-multiple-streams") {
		t.Run(scenario, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), *conformance, "server", "--url", proxy.URL+assistantsPath, "--scenario", scenario, "-o", t.TempDir()).CombinedOutput()
			require.NoError(t, err, string(out))
			require.Regexp(t, `Passed: [1-9]\d*/\d+, 0 failed, 0 warnings`, string(out))
		})
	}
	p.quit()
}
