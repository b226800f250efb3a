package webhook_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Both forms of Retry-After are read, and count from the answer on.
func TestHTTP_readsBothFormsOfRetryAfter(t *testing.T) {
	start := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	var passed atomic.Int64 // how long a request has taken
	now := func() time.Time { return start.Add(time.Duration(passed.Load())) }
	var header string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		passed.Store(int64(10 * time.Second))
		w.Header().Set("Retry-After", header)
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	h := webhook.NewHTTP(&webhook.HTTPOptions{Guard: loopback(), Now: now})
	defer h.Close()
	for value, want := range map[string]time.Duration{
		"90":                                 90 * time.Second,
		"315360000":                          24 * time.Hour,
		"Wed, 04 Mar 2026 12:01:40 GMT":      90 * time.Second,
		"Wednesday, 04-Mar-26 12:01:40 GMT":  90 * time.Second,
		"Wed Mar  4 12:01:40 2026":           90 * time.Second,
		"Wed, 04 Mar 2026 12:00:05 GMT":      0,
		"Wed, 04 Mar 2026 11:00:00 GMT":      0,
		"Mon, 04 Mar 2036 12:00:00 GMT":      24 * time.Hour,
		"soon":                               0,
		"-1":                                 0,
		"":                                   0,
		"Wed, 04 Mar 2026 12:01:40 GMT, 120": 0,
	} {
		passed.Store(0)
		header = value
		n := note(t, server.URL)
		n.At = start
		r := h.Notify(t.Context(), n)
		require.Equal(t, webhook.ClassThrottled, r.Class)
		require.Equal(t, want, r.RetryAfter, value)
	}
}

// listeners are an address of a receiver and one that is none of its business, on the
// same port, and how many connections each has had.
type listeners struct {
	port      string
	good, bad atomic.Int32
}

// twoListeners listens on 127.0.0.1, where a receiver answers, and on the other address.
func twoListeners(t *testing.T, other string) *listeners {
	t.Helper()
	l := &listeners{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			l.good.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	_, l.port, _ = net.SplitHostPort(server.Listener.Addr().String())
	bad, err := net.Listen("tcp", net.JoinHostPort(other, l.port))
	if err != nil {
		t.Skipf("nobody can listen on %s here", other)
	}
	t.Cleanup(func() { _ = bad.Close() })
	go func() {
		for {
			conn, err := bad.Accept()
			if err != nil {
				return
			}
			l.bad.Add(1)
			_ = conn.Close()
		}
	}()
	return l
}

// If a name has an allowed and a blocked address, only the allowed one is used, in any order
// of the addresses, and also if it does not answer.
func TestHTTP_dialsOnlyTheAllowedAddressOfAName(t *testing.T) {
	good := &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	for _, other := range []string{"127.0.0.2", "::1"} {
		for _, answer := range [][]string{{"127.0.0.1", other}, {other, "127.0.0.1"}} {
			l := twoListeners(t, other)
			h := webhook.NewHTTP(&webhook.HTTPOptions{Guard: good, Resolver: names(answer...), Timeout: 5 * time.Second})
			r := h.Notify(t.Context(), note(t, "http://receiver.example.com:"+l.port+"/"))
			require.Equal(t, webhook.ClassOK, r.Class, answer)
			require.Equal(t, int32(1), l.good.Load())
			require.Zero(t, l.bad.Load(), answer)
			h.Close()
		}
		// The allowed address refuses the connection: the blocked one must not be tried.
		l := twoListeners(t, other)
		closed := &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.3/32")}}
		h := webhook.NewHTTP(&webhook.HTTPOptions{Guard: closed, Resolver: names("127.0.0.3", other), Timeout: 5 * time.Second})
		r := h.Notify(t.Context(), note(t, "http://receiver.example.com:"+l.port+"/"))
		require.Contains(t, []webhook.Class{webhook.ClassBlocked, webhook.ClassConnect}, r.Class)
		require.Zero(t, l.good.Load()+l.bad.Load())
		h.Close()
	}
}

// An open connection keeps its address when its name changes; a new connection to a name that
// now leads to a private address is refused.
func TestHTTP_refusesANameThatMovedToAPrivateAddress(t *testing.T) {
	l := twoListeners(t, "127.0.0.2")
	at := atomic.Pointer[string]{}
	move := func(to string) { at.Store(&to) }
	moving := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go answerDNS(server, []string{*at.Load()})
		return client, nil
	}}
	h := webhook.NewHTTP(&webhook.HTTPOptions{
		Guard:    &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
		Resolver: moving, Timeout: 5 * time.Second,
	})
	send := func() webhook.Result {
		return h.Notify(t.Context(), note(t, "http://receiver.example.com:"+l.port+"/"))
	}
	move("127.0.0.1")
	require.Equal(t, webhook.ClassOK, send().Class)
	move("127.0.0.2")
	r := send()
	require.Equal(t, []any{webhook.ClassOK, true}, []any{r.Class, r.Reused})
	h.Close()
	require.Equal(t, webhook.ClassBlocked, send().Class)
	require.Equal(t, int32(1), l.good.Load())
	require.Zero(t, l.bad.Load())
}

const proxyChild = "HEALTHLABTEST_PROXY_CHILD"

// The environment is read once in a process, so the test starts another one. There a plain
// client does use the proxy, which shows that the environment is effective.
func TestHTTP_ignoresTheEnvironmentProxy(t *testing.T) {
	if to := os.Getenv(proxyChild); to != "" {
		_, port, err := net.SplitHostPort(to)
		require.NoError(t, err)
		target := "http://receiver.example.com:" + port + "/"
		h := webhook.NewHTTP(&webhook.HTTPOptions{Guard: loopback(), Resolver: names("127.0.0.1"), Timeout: 5 * time.Second})
		require.Equal(t, webhook.ClassOK, h.Notify(t.Context(), note(t, target)).Class)
		resp, err := webhook.NewClient(&webhook.ClientOptions{Guard: loopback(), Resolver: names("127.0.0.1")}).Get(target)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		plain, err := http.Get(target + "through-the-proxy")
		require.NoError(t, err)
		require.NoError(t, plain.Body.Close())
		return
	}
	var direct, proxied atomic.Int32
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { direct.Add(1) }))
	defer receiver.Close()
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { proxied.Add(1) }))
	defer proxy.Close()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHTTP_ignoresTheEnvironmentProxy$", "-test.count=1")
	child.Env = append(os.Environ(), proxyChild+"="+receiver.Listener.Addr().String(),
		"HTTP_PROXY="+proxy.URL, "HTTPS_PROXY="+proxy.URL, "http_proxy="+proxy.URL, "https_proxy="+proxy.URL, "NO_PROXY=", "no_proxy=")
	out, err := child.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, int32(2), direct.Load(), "ours")
	require.Equal(t, int32(1), proxied.Load(), "the plain client's")
}

// raw answers every request on a connection with what write writes, and no more.
func raw(t *testing.T, write func(w io.Writer)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				req, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				write(conn)
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// repeat writes about size bytes of a pattern, and stops when the reader closes.
func repeat(w io.Writer, pattern string, size int) {
	block := []byte(strings.Repeat(pattern, max(1, 32<<10/len(pattern))))
	for n := 0; n < size; n += len(block) {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// However a receiver answers, it is classified and costs little memory.
func TestHTTP_hostileAnswersAreClassifiedAtLowCost(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, err := z.Write(make([]byte, 64<<20))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	write := func(head string, then func(io.Writer)) func(io.Writer) {
		return func(w io.Writer) {
			_, _ = io.WriteString(w, head)
			if then != nil {
				then(w)
			}
		}
	}
	const ok = "HTTP/1.1 200 OK\r\n"
	gibibyte := prove.Count(1<<27, 1<<30)
	for _, c := range []struct {
		name  string
		write func(io.Writer)
		want  webhook.Class
		kept  int
	}{
		{"a gzip bomb", write(ok+"Content-Encoding: gzip\r\nContent-Type: application/json\r\n\r\n", func(w io.Writer) { _, _ = w.Write(bomb.Bytes()) }), webhook.ClassOK, 1000},
		{"10 MiB of headers", write(ok, func(w io.Writer) {
			repeat(w, "X-Header: "+strings.Repeat("v", 100)+"\r\n", 10<<20)
			_, _ = io.WriteString(w, "\r\n")
		}), webhook.ClassReset, 0},
		{"one header of 10 MiB", write(ok+"X-Long: ", func(w io.Writer) { repeat(w, "v", 10<<20); _, _ = io.WriteString(w, "\r\n\r\n") }), webhook.ClassReset, 0},
		{"a status line of 10 MiB", write("HTTP/1.1 200 ", func(w io.Writer) { repeat(w, "v", 10<<20); _, _ = io.WriteString(w, "\r\n\r\n") }), webhook.ClassReset, 0},
		{"hints without end", write("", func(w io.Writer) { repeat(w, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 10<<20) }), webhook.ClassReset, 0},
		{"a body of 1 GiB", write(ok+"Content-Length: 1073741824\r\n\r\n", func(w io.Writer) { repeat(w, "b", gibibyte) }), webhook.ClassOK, 1000},
		{"a body without end", write(ok+"\r\n", func(w io.Writer) { repeat(w, "b", gibibyte) }), webhook.ClassOK, 1000},
		{"trailers of 10 MiB", write(ok+"Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\n", func(w io.Writer) { repeat(w, "X: y\r\n", 10<<20) }), webhook.ClassOK, 0},
		{"a chunk that says 16 EiB", write(ok+"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nbody", nil), webhook.ClassOK, 4},
		{"no UTF-8", write("HTTP/1.1 500 \xff\xfe\r\nContent-Length: 4\r\nX-Odd: \xc3\x28\r\n\r\n\xff\xfe\x00\x80", nil), webhook.ClassRefused, 4},
		{"a length that is a lie", write(ok+"Content-Length: 10\r\n\r\nhello", nil), webhook.ClassOK, 5},
		{"a negative length", write(ok+"Content-Length: -1\r\n\r\n", nil), webhook.ClassReset, 0},
		{"two lengths", write(ok+"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", nil), webhook.ClassReset, 0},
		{"no HTTP", write("SSH-2.0-OpenSSH_9.6\r\n", nil), webhook.ClassReset, 0},
		{"nothing", write("", nil), webhook.ClassReset, 0},
		{"status 99999", write("HTTP/1.1 99999 Odd\r\n\r\n", nil), webhook.ClassReset, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := raw(t, c.write)
			h := webhook.NewHTTP(&webhook.HTTPOptions{Guard: loopback(), KeepResponse: 8 << 10})
			defer h.Close()
			n := note(t, to)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := h.Notify(t.Context(), n)
			runtime.ReadMemStats(&after)
			require.Equal(t, c.want, r.Class)
			require.Len(t, r.Response, c.kept)
			if !prove.Race {
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), "all that was allocated, the other side's included")
			}
		})
	}
}

// A body that never ends does not hold up its success.
func TestHTTP_endlessBodyIsASuccessWithoutWaiting(t *testing.T) {
	gone := make(chan struct{})
	to := raw(t, func(w io.Writer) {
		defer close(gone)
		_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
		for {
			if _, err := io.WriteString(w, "b"); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	h := webhook.NewHTTP(&webhook.HTTPOptions{Guard: loopback(), KeepResponse: 8 << 10})
	defer h.Close()
	r := h.Notify(t.Context(), note(t, to)) // the body would take hours
	require.Equal(t, []any{webhook.ClassOK, 200}, []any{r.Class, r.Status})
	<-gone // its connection is closed
}

// No text of a result has a value of the URL, a header, a secret or a body.
func TestHTTP_resultsContainNoURLSecretOrBody(t *testing.T) {
	for _, to := range []string{
		"https://planted.example.invalid/planted?t=planted", "http://127.0.0.1:1/planted?t=planted", "http://10.0.0.1/planted",
		"https://planted@receiver.example.com/", "https://receiver.example.com:22/planted", "planted", "\x00planted",
	} {
		u, err := (&webhook.Guard{}).CheckURL(to)
		if err != nil {
			require.NotContains(t, err.Error(), "planted")
		} else {
			require.IsType(t, &url.URL{}, u)
		}
		h := webhook.NewHTTP(&webhook.HTTPOptions{Guard: loopback(), Resolver: names(), Timeout: time.Second, KeepResponse: 8 << 10})
		r := h.Notify(t.Context(), note(t, to))
		require.NotEqual(t, webhook.ClassOK, r.Class)
		require.Empty(t, r.Response)
		require.NotContains(t, string(r.Class), "planted")
		h.Close()
	}
}

// The head of an answer is kept up to its limit, without headers that hold credentials.
func TestHTTP_keepsResponseHeadersWithoutCredentials(t *testing.T) {
	head := "HTTP/1.1 429 Slow Down\r\nContent-Length: 0\r\nserver: edge/1\r\nX-Request-Id: r-7\r\nX-Request-Id: r-8\r\n" +
		"Set-Cookie: planted\r\nWWW-Authenticate: planted\r\nLocation: https://x.example/?planted\r\nX-Api-Key: planted\r\nX-Auth-Token: planted\r\n"
	long := "X-Z-Long: " + strings.Repeat("v", 2000) + "\r\n"
	for name, c := range map[string]struct {
		head, want string
	}{
		"all of it": {head, `HTTP/1.1 429 Slow Down
Content-Length: 0
Location: (not kept)
Server: edge/1
Set-Cookie: (not kept)
Www-Authenticate: (not kept)
X-Api-Key: (not kept)
X-Auth-Token: (not kept)
X-Request-Id: r-7
X-Request-Id: r-8`},
		"cut at the end of a line": {"HTTP/1.1 200 OK\r\nA: b\r\n" + long + long, "HTTP/1.1 200 OK\nA: b\n" + strings.TrimSuffix(long, "\r\n")},
		"a long status line":       {"HTTP/1.1 200 " + strings.Repeat("x", 4000) + "\r\nA: b\r\n", ("HTTP/1.1 200 " + strings.Repeat("x", 4000))[:2<<10]},
	} {
		to := raw(t, func(w io.Writer) { _, _ = io.WriteString(w, c.head+"\r\n") })
		h := webhook.NewHTTP(&webhook.HTTPOptions{Guard: loopback()})
		r := h.Notify(t.Context(), note(t, to))
		require.Equal(t, c.want, string(r.Head), name)
		require.LessOrEqual(t, len(r.Head), 2<<10)
		require.Nil(t, r.Response)
		h.Close()
	}
	h := webhook.NewHTTP(&webhook.HTTPOptions{Guard: loopback()})
	defer h.Close()
	require.Nil(t, h.Notify(t.Context(), note(t, "http://10.0.0.1/")).Head, "no answer has no head")
}
