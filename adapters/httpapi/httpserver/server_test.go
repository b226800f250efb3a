package httpserver_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/httpserver"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// endless are limits of time that no test reaches.
var endless = httpserver.Options{
	Header: time.Hour, Body: httpserver.BodyTimes{Whole: time.Hour, Pause: time.Hour}, Idle: time.Hour, Write: time.Hour, WritePause: time.Hour,
}

// site answers what the tests ask for.
func site() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("/refuse", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "refused", http.StatusUnauthorized) })
	mux.HandleFunc("/read", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, "broken", http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, "read")
	})
	mux.HandleFunc("/form", func(w http.ResponseWriter, r *http.Request) {
		err := r.ParseForm()
		if err == nil {
			err = r.ParseMultipartForm(1 << 20)
		}
		if err != nil && !errors.Is(err, http.ErrNotMultipart) {
			http.Error(w, "broken", http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, "form")
	})
	mux.HandleFunc("/close", func(_ http.ResponseWriter, r *http.Request) { _ = r.Body.Close() })
	mux.HandleFunc("/tls", func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		for range 512 {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	return mux
}

// serve serves a handler until the test ends, and returns the server and its address.
func serve(t *testing.T, h http.Handler, o httpserver.Options) (*httpserver.Server, string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := httpserver.New(h, &o)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		require.NoError(t, s.Shutdown(ctx))
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	return s, l.Addr().String()
}

// dial connects from an address of this machine, and sends bytes.
func dial(t *testing.T, from, to, first string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(t.Context(), "tcp", to)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	_, _ = io.WriteString(c, first) // the server may have closed it
	return c
}

const here = "127.0.0.1"

// status reads an answer and returns its status; 0 if the connection was closed instead.
func status(c net.Conn) int {
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// ask sends a request, reads its answer, and waits until the given number of connections wait for their callers: an
// answer may be read before its connection counts as one that waits.
func ask(t *testing.T, s *httpserver.Server, c net.Conn, waiting int) {
	t.Helper()
	_, err := io.WriteString(c, get)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status(c))
	require.Eventually(t, func() bool { return s.Waiting() == waiting }, patience, time.Millisecond)
}

func isClosed(c net.Conn) bool {
	_, err := io.Copy(io.Discard, c)
	return !os.IsTimeout(err)
}

const get = "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n"

func post(path, header string, length int, body string) string {
	if length >= 0 {
		header += "Content-Length: " + strconv.Itoa(length) + "\r\n"
	}
	return "POST " + path + " HTTP/1.1\r\nHost: x\r\n" + header + "\r\n" + body
}

const (
	urlencoded = "Content-Type: application/x-www-form-urlencoded\r\n"
	multipart  = "Content-Type: multipart/form-data; boundary=b\r\n"
	chunked    = "Transfer-Encoding: chunked\r\n"
)

// slowBodies are beginnings of requests whose body does not come whole, by what they are: each form
// of body at each length that net/http treats in its own way.
func slowBodies(path string) map[string]string {
	all := map[string]string{
		"chunked, no chunk":        post(path, chunked, -1, ""),
		"chunked, half a chunk":    post(path, chunked, -1, "5\r\n{"),
		"chunked, no last chunk":   post(path, chunked, -1, "1\r\n{\r\n"),
		"chunked, large chunk":     post(path, chunked, -1, "fffff\r\n{"),
		"expects 100":              post(path, "Expect: 100-continue\r\n", 1000, ""),
		"HTTP/1.0, kept alive":     strings.Replace(post(path, "Connection: keep-alive\r\n", 1000, "{"), "1.1", "1.0", 1),
		"chunked form":             post(path, urlencoded+chunked, -1, "3\r\nk=v"),
		"multipart, in the header": post(path, multipart, 1000, "--b\r\nContent-Disposition: form-data; name=\"k"),
		"multipart, in a part":     post(path, multipart, 1000, "--b\r\nContent-Disposition: form-data; name=\"k\"\r\n\r\nv"),
	}
	for _, length := range []int{1, 2, 100, 1000, 4095, 4096, 4097, 64 << 10, 256<<10 - 1, 256 << 10, 256<<10 + 1, 1_000_000, 16 << 20} {
		for _, form := range []string{"", urlencoded} {
			for _, sent := range []int{0, 1, length / 2} {
				if sent < length && sent <= 512<<10 {
					all[fmt.Sprintf("%d of %d bytes %s", sent, length, form)] = post(path, form, length, strings.Repeat("a", sent))
				}
			}
		}
	}
	return all
}

// A refusal is sent at once and the connection closed, although the body never comes. The handler
// alone, on another server, does the same.
func TestRefusal_isSentAtOnceWithoutReadingTheBody(t *testing.T) {
	t.Parallel()
	_, ours := serve(t, site(), endless)
	other := httptest.NewServer(httpserver.LimitBodies(site(), endless.Body))
	t.Cleanup(other.Close)
	for where, address := range map[string]string{"Server": ours, "LimitBodies": strings.TrimPrefix(other.URL, "http://")} {
		for what, first := range slowBodies("/refuse") {
			t.Run(where+": "+what, func(t *testing.T) {
				c := dial(t, here, address, first)
				require.Equal(t, http.StatusUnauthorized, status(c))
				require.True(t, isClosed(c))
			})
		}
	}
}

// A body that a handler reads may pause for a while, and take a while as a whole.
func TestBody_stalledOrTooSlowIsRefused(t *testing.T) {
	t.Parallel()
	times := httpserver.BodyTimes{Pause: 100 * time.Millisecond}
	_, ours := serve(t, site(), httpserver.Options{Body: times})
	other := httptest.NewServer(httpserver.LimitBodies(site(), times))
	t.Cleanup(other.Close)
	for where, address := range map[string]string{"Server": ours, "LimitBodies": strings.TrimPrefix(other.URL, "http://")} {
		t.Run(where, func(t *testing.T) {
			slow := map[string]net.Conn{}
			for _, path := range []string{"/read", "/form"} {
				for what, first := range slowBodies(path) {
					if path == "/read" || strings.Contains(first, "form-") { // the handler reads forms only
						slow[path+" "+what] = dial(t, here, address, first)
					}
				}
			}
			for what, c := range slow {
				require.Contains(t, []int{http.StatusBadRequest, http.StatusContinue}, status(c), what)
				require.True(t, isClosed(c), what)
			}
		})
	}
	t.Run("a byte at a time", func(t *testing.T) {
		t.Parallel()
		_, address := serve(t, site(), httpserver.Options{Body: httpserver.BodyTimes{Pause: patience, Whole: 300 * time.Millisecond}})
		c := dial(t, here, address, post("/read", "", 1<<20, "a"))
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					_, _ = c.Write([]byte("a"))
				case <-stop:
					return
				}
			}
		}()
		require.Equal(t, http.StatusBadRequest, status(c))
	})
}

// A body in time is read, and its connection is kept: the limits of the body end with it.
func TestBody_arrivingInTimeKeepsItsConnection(t *testing.T) {
	t.Parallel()
	const pause = 200 * time.Millisecond
	long := make(chan struct{})
	mux := site()
	mux.HandleFunc("/long", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-long:
		case <-r.Context().Done():
			http.Error(w, "the request has ended", http.StatusInternalServerError)
		}
	})
	_, address := serve(t, mux, httpserver.Options{Body: httpserver.BodyTimes{Pause: pause, Whole: 2 * pause}, Header: pause})
	c := dial(t, here, address, get) // sent at once: the header has a limit of time, too
	require.Equal(t, http.StatusOK, status(c))
	for _, request := range []string{post("/read", "", 4, "body"), post("/read", chunked, -1, "4\r\nbody\r\n0\r\n\r\n"), post("/form", urlencoded, 3, "k=v"), post("/refuse", "", 0, ""), get} {
		_, err := io.WriteString(c, request)
		require.NoError(t, err)
		require.NotZero(t, status(c), request)
	}
	_, err := io.WriteString(c, post("/long", "", 4, "body"))
	require.NoError(t, err)
	time.AfterFunc(6*pause, func() { close(long) })
	require.Equal(t, http.StatusOK, status(c))
}

// A caller that sends a long body to a refusal reads the answer.
func TestRefusal_reachesACallerThatSendsALongBody(t *testing.T) {
	t.Parallel()
	_, address := serve(t, site(), httpserver.Options{})
	for _, size := range []int{1, 1000, 100_000, 1 << 20} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/refuse", bytes.NewReader(make([]byte, size)))
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err, size)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	}
}

// Headers, idle connections and answers have limits of time of their own.
func TestTimeouts_areSeparateForHeaderIdleAndResponse(t *testing.T) {
	t.Parallel()
	const short = 100 * time.Millisecond
	for what, tt := range map[string]struct {
		o     httpserver.Options
		first string
	}{
		"nothing":           {httpserver.Options{Header: short}, ""},
		"half a line":       {httpserver.Options{Header: short}, "GET /o"},
		"half a header":     {httpserver.Options{Header: short}, "GET /ok HTTP/1.1\r\nHost: x\r\nA: "},
		"kept alive":        {httpserver.Options{Idle: short}, get},
		"half a second one": {httpserver.Options{Header: short}, get + "GET /ok HTT"},
		"an answer":         {httpserver.Options{Write: short}, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n"},
		"a part of one":     {httpserver.Options{WritePause: short}, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(tt.first, "large") {
				ended := make(chan struct{})
				_, address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer close(ended)
					site().ServeHTTP(w, r)
				}), tt.o)
				dial(t, here, address, tt.first)
				select {
				case <-ended: // the caller has read nothing
				case <-time.After(patience):
					require.Fail(t, "the handler still writes")
				}
				return
			}
			_, address := serve(t, site(), tt.o)
			require.True(t, isClosed(dial(t, here, address, tt.first)))
		})
	}
}

// waitingKinds are connections that send nothing more, by what they are.
func waitingKinds() map[string]string {
	kinds := map[string]string{
		"nothing": "", "half a line": "GET /o", "half a header": "GET /ok HTTP/1.1\r\nHost: x\r\n", "kept alive": get,
		"kept alive after a refusal": "GET /refuse HTTP/1.1\r\nHost: x\r\n\r\n", "never reads": strings.Repeat("GET /large HTTP/1.1\r\nHost: x\r\n\r\n", 2),
	}
	slow := "Host: x\r\nContent-Length: 1000\r\n"
	kinds["options"] = "OPTIONS * HTTP/1.1\r\n" + slow + "\r\n{"
	kinds["expectation"] = "POST /ok HTTP/1.1\r\nExpect: tea\r\n" + slow + "\r\n{"
	kinds["coding"] = "POST /ok HTTP/1.1\r\nTransfer-Encoding: tea\r\n" + slow + "\r\n{"
	kinds["large header"] = "POST /ok HTTP/1.1\r\nA: " + strings.Repeat("a", 100<<10) + "\r\n" + slow + "\r\n{"
	kinds["no host"] = "POST /ok HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{"
	kinds["target"] = "POST /%zz HTTP/1.1\r\n" + slow + "\r\n{"
	for _, path := range []string{"/refuse", "/read", "/form", "/close", "/nowhere"} {
		for what, first := range map[string]string{
			"one byte of two": post(path, "", 2, "{"), "one byte of 1000": post(path, "", 1000, "{"), "one byte of a million": post(path, "", 1_000_000, "{"),
			"chunked": post(path, chunked, -1, "5\r\n{"), "form": post(path, urlencoded, 1000, "k"), "multipart": post(path, multipart, 1000, "--b"),
		} {
			kinds[path+" "+what] = first
		}
	}
	return kinds
}

// Connections that send nothing more never keep a caller of the same address out, nor one of another
// address.
func TestIdleConnections_neverBlockOtherCallers(t *testing.T) {
	t.Parallel()
	for what, first := range waitingKinds() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			_, address := serve(t, site(), httpserver.Options{Connections: 12, AddressConnections: 8})
			for range 30 {
				dial(t, here, address, first)
			}
			for _, from := range []string{here, "127.0.0.2", "127.0.0.3", here} {
				require.Eventually(t, func() bool { return status(dial(t, from, address, get)) == http.StatusOK }, patience, 10*time.Millisecond)
			}
		})
	}
}

// A bound closes the connection of its own address that waits longest, and no other.
func TestAddressLimit_closesTheLongestIdleConnectionOfTheAddress(t *testing.T) {
	t.Parallel()
	s, address := serve(t, site(), httpserver.Options{Connections: 20, AddressConnections: 3})
	other := dial(t, "127.0.0.2", address, "")
	ask(t, s, other, 1)
	var own []net.Conn
	for range 3 {
		own = append(own, dial(t, here, address, ""))
		ask(t, s, own[len(own)-1], 1+len(own))
	}
	ask(t, s, own[0], 4) // the second one waits longest
	ask(t, s, dial(t, here, address, ""), 4)
	require.True(t, isClosed(own[1]))
	for _, c := range []net.Conn{other, own[0], own[2]} {
		ask(t, s, c, 4)
	}
}

// Requests that are being answered are not closed; if there are no other connections, a new one is.
func TestConnectionLimit_neverClosesARequestInProgress(t *testing.T) {
	t.Parallel()
	begun, release := make(chan struct{}), make(chan struct{})
	mux := site()
	mux.HandleFunc("/wait", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		begun <- struct{}{}
		<-release
		_, _ = io.WriteString(w, "waited")
	})
	_, address := serve(t, mux, httpserver.Options{Connections: 8, AddressConnections: 2})
	var busy []net.Conn
	for _, request := range []string{"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n", post("/wait", "", 1, "a")} {
		busy = append(busy, dial(t, here, address, request))
		<-begun
	}
	require.True(t, isClosed(dial(t, here, address, "")))
	require.Equal(t, http.StatusOK, status(dial(t, "127.0.0.2", address, get)), "another address has room")
	close(release)
	for _, c := range busy {
		require.Equal(t, http.StatusOK, status(c))
	}
}

// The bound of an address does not hold for proxies, and that of all does.
func TestAddressLimit_doesNotApplyToProxies(t *testing.T) {
	t.Parallel()
	s, address := serve(t, site(), httpserver.Options{Connections: 10, AddressConnections: 1, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/30")}})
	var open []net.Conn
	for range 12 {
		open = append(open, dial(t, here, address, ""))
		ask(t, s, open[len(open)-1], min(len(open), 10))
	}
	for i, c := range open {
		if i < 2 {
			require.True(t, isClosed(c), i)
			continue
		}
		ask(t, s, c, 10)
	}
}

// A stop does not wait for connections that wait for their callers, and lets a request end that is being answered.
func TestShutdown_waitsForRequestsButNotForIdleConnections(t *testing.T) {
	t.Parallel()
	begun, release := make(chan struct{}), make(chan struct{})
	mux := site()
	mux.HandleFunc("/wait", func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-release
		_, _ = io.WriteString(w, "waited")
	})
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	limits := endless
	limits.AddressConnections = 400
	s := httpserver.New(mux, &limits)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	kinds := waitingKinds()
	for range 300 / len(kinds) {
		for _, first := range kinds {
			dial(t, here, l.Addr().String(), first)
		}
	}
	busy := dial(t, here, l.Addr().String(), "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
	<-begun
	stopped := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		stopped <- s.Shutdown(ctx)
	}()
	require.ErrorIs(t, <-ended, http.ErrServerClosed)
	close(release)
	require.Equal(t, http.StatusOK, status(busy))
	require.NoError(t, <-stopped)
}

// A stop cuts off requests that go on.
func TestShutdown_cutsOffRequestsAtItsDeadline(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := httpserver.New(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	}), nil)
	go func() { _ = s.Serve(l) }()
	c := dial(t, here, l.Addr().String(), get)
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Shutdown(ctx), context.DeadlineExceeded)
	require.True(t, isClosed(c))
}

// detail decodes an error of the contract.
func detail(t *testing.T, answer *http.Response) (kind string) {
	t.Helper()
	require.Equal(t, "application/json", answer.Header.Get("Content-Type"))
	require.NotEmpty(t, answer.Header.Get("X-Request-Id"))
	var body struct {
		Detail struct {
			Type string `json:"error_type"`
			Text string `json:"error_message"`
		}
	}
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&body))
	require.NotEmpty(t, body.Detail.Text)
	return body.Detail.Type
}

// A target that is no URL is answered as JSON, and the connection goes on; over TLS too.
func TestMalformedURL_isAnsweredAsJSONAndKeepsTheConnection(t *testing.T) {
	t.Parallel()
	_, address := serve(t, site(), httpserver.Options{})
	secured, trust := serveTLS(t, httpserver.Options{})
	for where, connect := range map[string]func(*testing.T) net.Conn{
		"plain": func(t *testing.T) net.Conn { return dial(t, here, address, "") },
		"TLS": func(t *testing.T) net.Conn {
			return tls.Client(dial(t, here, secured, ""), &tls.Config{RootCAs: trust, ServerName: here, MinVersion: tls.VersionTLS12})
		},
	} {
		for _, target := range []string{
			"/%", "/%z", "/%zz", "/%2", "/%2z", "/v2/user/%zz/info", "/%%", "/ok%", "/%zz?a=b", "/ok\x01", "/ok\x7f", "/a b", "/a HTTP/1.1 b", "ok", ":", "", "http://[::1/", "http://x:port/",
			"/%zz" + strings.Repeat("a", 10_000), strings.Repeat("%", 9000),
		} {
			t.Run(where+" "+target[:min(len(target), 40)], func(t *testing.T) {
				t.Parallel()
				c := connect(t)
				head := " " + target + " HTTP/1.1\r\nHost: x\r\n"
				for _, parts := range [][]string{{"GET" + head + "\r\n"}, strings.SplitAfterN("GET"+head+"\r\n", "", 40), {"POST" + head + "Content-Length: 2\r\n\r\n{}"}} {
					for _, part := range parts {
						_, err := io.WriteString(c, part)
						require.NoError(t, err)
					}
					answer, err := http.ReadResponse(bufio.NewReader(c), nil)
					require.NoError(t, err)
					require.Equal(t, http.StatusBadRequest, answer.StatusCode)
					require.Equal(t, "PATH_INVALID", detail(t, answer))
					if answer.Close {
						require.Contains(t, parts[0], "POST", "the body is not read")
						return
					}
					_, err = io.WriteString(c, get)
					require.NoError(t, err)
					require.Equal(t, http.StatusOK, status(c), "the next request")
				}
			})
		}
	}
}

// Targets that are URLs arrive as they are.
func TestRequestURI_reachesTheHandlerUnchanged(t *testing.T) {
	t.Parallel()
	_, address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RequestURI) }), httpserver.Options{})
	c := dial(t, here, address, "")
	for _, target := range []string{"/", "/%7E/a%2Fb?c=%zz&d", "/é", "*", "http://x/ok", "//x", "/a?b c"[:4], "/" + strings.Repeat("a", 20_000)} {
		for _, part := range strings.SplitAfterN("GET "+target+" HTTP/1.1\r\nHost: x\r\n\r\n", "", 12) {
			_, err := io.WriteString(c, part)
			require.NoError(t, err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, target, string(text))
	}
}

// Whatever the target, the answer is the handler's or an error of the contract.
func FuzzTargets(f *testing.F) {
	for _, seed := range []string{"/", "/%", "/%zz", "/%00", "*", "http://x", "/a\tb", "/\xff", "//", "/?%"} {
		f.Add(seed)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(f, err)
	s := httpserver.New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }), nil)
	go func() { _ = s.Serve(l) }()
	f.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	f.Fuzz(func(t *testing.T, target string) {
		if strings.ContainsAny(target, "\r\n") {
			return // the line ends there
		}
		c := dial(t, here, l.Addr().String(), "GET "+target+" HTTP/1.1\r\nHost: x\r\n\r\n"+get)
		in := bufio.NewReader(c)
		for i := range 2 {
			answer, err := http.ReadResponse(in, nil)
			require.NoError(t, err)
			if i == 0 && answer.StatusCode == http.StatusBadRequest {
				require.Equal(t, "PATH_INVALID", detail(t, answer))
			}
			_, err = io.Copy(io.Discard, answer.Body)
			require.NoError(t, err)
		}
	})
}

// serveTLS serves the site over TLS until the test ends.
func serveTLS(t *testing.T, o httpserver.Options) (address string, trust *x509.CertPool) {
	t.Helper()
	certificate, key, trust := pair(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := httpserver.New(site(), &o)
	ended := make(chan error, 1)
	go func() { ended <- s.ServeTLS(l, certificate, key) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		require.NoError(t, s.Shutdown(ctx))
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	return l.Addr().String(), trust
}

// TLS and HTTP/2 have the bounds and the limits of time, too.
func TestTLS_andHTTP2HaveTheSameLimits(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"http/1.1", "h2"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			few := httpserver.Options{Connections: 12, AddressConnections: 4}
			address, trust := serveTLS(t, few)
			for range 10 {
				dial(t, here, address, "\x16\x03\x01")
			}
			config := &tls.Config{RootCAs: trust, NextProtos: []string{protocol}, MinVersion: tls.VersionTLS12}
			request := func(address, path string, body io.Reader) int {
				client := http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: protocol == "h2"}}
				defer client.CloseIdleConnections()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+path, body)
				require.NoError(t, err)
				answer, err := client.Do(r)
				require.NoError(t, err)
				defer answer.Body.Close()
				require.Equal(t, map[string]int{"http/1.1": 1, "h2": 2}[protocol], answer.ProtoMajor)
				return answer.StatusCode
			}
			for path, want := range map[string]int{"/ok": 200, "/read": 200, "/refuse": 401, "/tls": 200} {
				require.Equal(t, want, request(address, path, strings.NewReader("body")), path)
			}
			few.Body.Pause = 200 * time.Millisecond
			address, config.RootCAs = serveTLS(t, few)
			slow, hold := io.Pipe()
			go func() { _, _ = hold.Write([]byte("{")) }()
			require.Equal(t, http.StatusBadRequest, request(address, "/read", slow))
			require.NoError(t, hold.Close())
		})
	}
	t.Run("no handshake", func(t *testing.T) {
		t.Parallel()
		address, _ := serveTLS(t, httpserver.Options{Header: 100 * time.Millisecond})
		for _, first := range []string{"", "\x16\x03\x01", get} {
			require.True(t, isClosed(dial(t, here, address, first)))
		}
	})
	t.Run("no certificate", func(t *testing.T) {
		t.Parallel()
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.Error(t, httpserver.New(site(), nil).ServeTLS(l, "no-such-file", "no-such-file"))
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
	})
}
