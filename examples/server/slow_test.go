package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Callers that send slowly, send nothing or read nothing do not stop the service, which has fewer
// file handles than they have connections, nor its end.
func TestServer_slowCallersDoNotBlockIt(t *testing.T) {
	t.Parallel()
	const callers = 300
	p, process := spawnWith(t, []string{"sh", "-c", `ulimit -n 256 && exec "$@"`, "sh"}, "-management-key", strings.Repeat("k", 32), "-files", t.TempDir(), "-secret-file", secretFile(t))
	address := strings.TrimPrefix(p.url, "http://")
	hold := func(first string) (held []net.Conn) {
		for range callers {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			_, _ = c.Write([]byte(first)) // the server may have closed it
			held = append(held, c)
		}
		return held
	}
	answers := func() bool {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/v2/user/", nil)
		require.NoError(t, err)
		r.Header.Set("x-service-api-key", p.key)
		answer, err := client.Do(r)
		if err != nil {
			return false
		}
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode == http.StatusOK
	}
	post := func(path, header, body string) string {
		return "POST " + path + " HTTP/1.1\r\nHost: x\r\n" + header + "\r\n" + body
	}
	form := "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n"
	kinds := map[string]string{
		"nothing": "", "half a header": "GET /v2/user/ HTTP/1.1\r\nHost: x\r\n", "kept alive after a 401": "GET /v2/user/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"chunked": post("/v2/user/", "Transfer-Encoding: chunked\r\n", "5\r\n{"), "link form": post("/link/source/acme_diary", form, "t"),
		"console form": post("/console/sign-in", form, "k"), "sandbox form": post("/sandbox/sign-in", form, "n"), "no such path": post("/nowhere", "Content-Length: 10\r\n", "{"),
		"never reads": strings.Repeat("GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n", 40),
	}
	for _, length := range []int{2, 1000, 256 << 10, 1_000_000, 16 << 20} {
		kinds[fmt.Sprintf("one byte of %d", length)] = post("/v2/user/", fmt.Sprintf("Content-Length: %d\r\n", length), "{")
	}
	for what, first := range kinds {
		held := hold(first)
		for range 5 {
			require.Eventually(t, answers, 15*time.Second, 100*time.Millisecond, what)
		}
		for _, c := range held {
			_ = c.Close()
		}
	}
	hold(kinds["one byte of 1000"])
	began := time.Now()
	require.NoError(t, process.Signal(os.Interrupt))
	require.NoError(t, <-p.done)
	require.Less(t, time.Since(began), stopGrace)
}

// Each target that is no URL gets an error of the contract, and the connection goes on.
func TestServer_malformedURLGetsAnError(t *testing.T) {
	t.Parallel()
	p := start(t)
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(p.url, "http://"))
	require.NoError(t, err)
	defer c.Close()
	in := bufio.NewReader(c)
	for _, target := range []string{"/%", "/v2/user/%zz", "/v2/user/%2", "/console/%zz", "/link/%zz?token=a", "/docs/%", "/sandbox/%zz", "/%zz?a=%zz", "/a\x7f", "user", "/v2/user/%ff"} {
		_, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nx-service-api-key: %s\r\n\r\n", target, p.key)
		require.NoError(t, err)
		answer, err := http.ReadResponse(in, nil)
		require.NoError(t, err, target)
		var body struct {
			Detail any
		}
		require.NoError(t, json.NewDecoder(answer.Body).Decode(&body), target)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, "application/json", answer.Header.Get("Content-Type"), target)
		require.NotEmpty(t, answer.Header.Get("X-Request-Id"), target)
		require.NotNil(t, body.Detail, target)
		require.Contains(t, []int{400, 404, 422}, answer.StatusCode, target)
	}
	p.quit()
}
