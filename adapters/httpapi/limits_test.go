package httpapi_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/httpserver"
)

// Each team, and each address without a key, has its own rate limit.
func TestRateLimit_isPerTeamAndPerAddressWithoutAKey(t *testing.T) {
	c := newFixture(t, nil)
	c.config.Limits = httpapi.Limits{TeamRate: 0.001, TeamBurst: 3, AddressRate: 0.001, AddressBurst: 2}
	h := c.config.handler()
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
func TestLargeBody_withoutFreeMemoryAnswersRetryAfter(t *testing.T) {
	t.Parallel()
	c := newFixture(t, nil)
	c.config.Limits = httpapi.Limits{Memory: 1 << 20, MemoryWait: 100 * time.Millisecond}
	server := httptest.NewServer(c.config.handler())
	defer server.Close()
	// A body is sent once the server reads it, which is after it has its share.
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}}
	t.Cleanup(client.CloseIdleConnections)
	request := func(body io.Reader) (*http.Response, error) {
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		t.Cleanup(stop)
		r, err := http.NewRequestWithContext(ctx, "POST", server.URL+c.timeseries("heartrate"), body)
		require.NoError(t, err)
		r.Header.Set("x-service-api-key", goodKey)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Expect", "100-continue")
		r.ContentLength = 200 << 10
		return client.Do(r)
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

// A body that does not come is answered by each operation, and holds nothing: at once where the
// operation does not read it, else after the limit. The answer is an error of the contract.
func TestSlowBody_isAnsweredAfterTheLimit(t *testing.T) {
	t.Parallel()
	c, user := full(t)
	c.Limits.Body = httpserver.BodyTimes{Pause: 100 * time.Millisecond}
	c.LinkPages = &httpapi.LinkPages{Manual: true}
	bodies := map[string]string{
		"chunked": "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
		"form":    "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nt",
		"files":   "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 100\r\n\r\n--b\r\n",
	}
	for _, length := range []int{2, 1000, 100_000, 1_000_000} {
		bodies[strconv.Itoa(length)] = "Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(length) + "\r\n\r\n{"
	}
	requests := []string{"POST /no/such/path", "TRACE /v2/user"}
	for _, route := range httpapi.Routes(c.of()) {
		path := strings.TrimSuffix(route.Pattern, "{$}")
		requests = append(requests, regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, user.String()))
	}
	require.Greater(t, len(requests), 100)
	server := httptest.NewServer(c.handler())
	t.Cleanup(server.Close)
	for what, body := range bodies {
		for _, key := range []string{goodKey, "wrong"} {
			t.Run(what+" "+key, func(t *testing.T) {
				conns := map[string]net.Conn{}
				for _, request := range requests {
					conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(server.URL, "http://"))
					require.NoError(t, err)
					defer conn.Close()
					require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
					_, err = io.WriteString(conn, request+" HTTP/1.1\r\nHost: x\r\nx-service-api-key: "+key+"\r\n"+body)
					require.NoError(t, err)
					conns[request] = conn
				}
				for request, conn := range conns {
					answer, err := io.ReadAll(conn) // to the end of the connection, although the body never comes
					require.NoError(t, err, request)
					require.Regexp(t, `^HTTP/1.1 [1234]`, string(answer), request)
				}
			})
		}
	}
}

// A request ends at its deadline if the store does not answer.
func TestRequest_endsAtItsDeadlineIfTheStoreDoesNotRespond(t *testing.T) {
	c := newFixture(t, nil)
	c.config.Limits = httpapi.Limits{Timeout: 20 * time.Millisecond}
	c.config.Authenticate = func(r *http.Request) (httpapi.Caller, error) {
		<-r.Context().Done()
		return httpapi.Caller{}, r.Context().Err()
	}
	w := httptest.NewRecorder()
	c.config.handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/v2/user/"+c.user.String(), nil))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.NotEmpty(t, w.Header().Get("Retry-After"))
}
