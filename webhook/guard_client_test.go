package webhook_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/webhook"
)

func get(t *testing.T, c *http.Client, url string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	resp, err := c.Do(req)
	if resp != nil {
		t.Cleanup(func() { _ = resp.Body.Close() })
	}
	return resp, err
}

// A client reaches what its guard allows, asks once, and stays within its time.
func TestClient_reachesOnlyAllowedAddressesWithoutRetries(t *testing.T) {
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "/", http.StatusFound)
		case "/slow":
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	c := webhook.NewClient(&webhook.ClientOptions{Guard: loopback(), Timeout: 200 * time.Millisecond})
	resp, err := get(t, c, server.URL+"/away")
	require.NoError(t, err)
	require.Equal(t, http.StatusFound, resp.StatusCode, "the answer is the redirect")
	require.EqualValues(t, 1, hits.Load())
	resp, err = get(t, c, server.URL+"/slow")
	require.NoError(t, err)
	_, err = io.ReadAll(resp.Body)
	require.Error(t, err, "the body has to come in time as well")

	hits.Store(0)
	for _, strict := range []*http.Client{webhook.NewClient(nil), webhook.NewClient(&webhook.ClientOptions{Guard: &webhook.Guard{Plain: true}})} {
		_, err = get(t, strict, server.URL)
		require.Error(t, err)
		_, err = get(t, strict, strings.Replace(server.URL, "http://", "https://", 1))
		require.Error(t, err)
	}
	_, err = get(t, webhook.NewClient(&webhook.ClientOptions{Guard: &webhook.Guard{Brokers: []string{"nats"}}}), "nats://name/")
	require.Error(t, err)
	require.Zero(t, hits.Load())
}
