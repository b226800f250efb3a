package httpapi_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
)

// Each team, and each address without a key, has its own rate limit.
func TestRateLimits(t *testing.T) {
	c := newFixture(t, nil)
	c.config.Limits = httpapi.Limits{TeamRate: 0.001, TeamBurst: 3, AddressRate: 0.001, AddressBurst: 2}
	h := httpapi.Handler(c.config)
	send := func(path, key, address string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		r.Header.Set("x-service-api-key", key)
		r.RemoteAddr = address
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	path := "/v2/user/" + c.user.String()
	for i, want := range []int{200, 200, 200, 429, 429} {
		w := send(path, goodKey, "192.0.2.1:1000")
		require.Equal(t, want, w.Code, i)
		require.Equal(t, "3", w.Header().Get("RateLimit-Limit"))
		require.Equal(t, want == 429, w.Header().Get("Retry-After") != "")
	}
	require.Equal(t, 200, send("/v2/user/"+c.foreign.String(), "other", "192.0.2.1:1000").Code, "another team")
	for i, want := range []int{401, 401, 429} {
		require.Equal(t, want, send(path, "wrong", "192.0.2.2:1000").Code, i)
	}
	require.Equal(t, 401, send(path, "wrong", "192.0.2.3:1000").Code, "another address")
	require.Equal(t, 429, send("/openapi.json", "", "192.0.2.2:2000").Code, "an operation without a key")
}

// Large bodies share a bounded memory; a request that finds no room is refused with
// Retry-After.
func TestLargeBodiesShareMemory(t *testing.T) {
	t.Parallel() // the second request waits for memory
	c := newFixture(t, nil)
	c.config.Limits = httpapi.Limits{Memory: 1 << 20}
	server := httptest.NewServer(httpapi.Handler(c.config))
	defer server.Close()
	request := func(body io.Reader) (*http.Response, error) {
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		t.Cleanup(stop)
		r, err := http.NewRequestWithContext(ctx, "POST", server.URL+c.timeseries("heartrate"), body)
		require.NoError(t, err)
		r.Header.Set("x-service-api-key", goodKey)
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = 200 << 10
		return http.DefaultClient.Do(r)
	}
	first, hold := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if resp, err := request(first); err == nil {
			resp.Body.Close()
		}
	}()
	_, err := hold.Write([]byte(strings.Repeat(" ", 100<<10))) // it is being read: the memory is taken
	require.NoError(t, err)
	resp, err := request(strings.NewReader(strings.Repeat(" ", 200<<10)))
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
	require.NotEmpty(t, resp.Header.Get("Retry-After"))
	small, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+c.timeseries("heartrate")+year, nil)
	require.NoError(t, err)
	small.Header.Set("x-service-api-key", goodKey)
	resp, err = http.DefaultClient.Do(small)
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode, "small requests go on")
	require.NoError(t, hold.CloseWithError(io.ErrUnexpectedEOF))
	<-done
}

// Slow bodies without a key are answered at once, and hold nothing.
func TestSlowBodiesWithoutKey(t *testing.T) {
	c := newFixture(t, nil)
	server := httptest.NewServer(httpapi.Handler(c.config))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	for range 50 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "POST "+c.timeseries("heartrate")+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{")
		require.NoError(t, err)
		answer, err := io.ReadAll(conn) // to the end of the connection, although the body never comes
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(answer), "HTTP/1.1 401"), string(answer))
	}
}

// A request ends at its deadline if the store does not answer.
func TestDeadlineOfRequests(t *testing.T) {
	c := newFixture(t, nil)
	c.config.Limits = httpapi.Limits{Timeout: 20 * time.Millisecond}
	c.config.Authenticate = func(r *http.Request) (httpapi.Caller, error) {
		<-r.Context().Done()
		return httpapi.Caller{}, r.Context().Err()
	}
	w := httptest.NewRecorder()
	httpapi.Handler(c.config).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/v2/user/"+c.user.String(), nil))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.NotEmpty(t, w.Header().Get("Retry-After"))
}
