package webhook_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/webhook"
)

func loopback() *webhook.Guard {
	return &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
}

func note(t testing.TB, url string) webhook.Notification {
	return webhook.Notification{
		URL: url, ID: "msg_0001", At: time.Unix(1767225600, 0), Secrets: []webhook.Secret{secret(t, k2), secret(t, k1)},
		Body: []byte(vectors[1].body),
	}
}

func TestHTTP_sendsASignedRequest(t *testing.T) {
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, strings.Repeat("x", 50_000))
	}))
	defer server.Close()
	h := webhook.NewHTTP(&webhook.HTTPOptions{Guard: loopback(), KeepResponse: 1 << 20})
	defer h.Close()
	n := note(t, server.URL+"/in?q=1")
	n.Headers = http.Header{"X-Ward": {"7"}, "Host": {"elsewhere"}, "Webhook-Id": {"forged"}, "Idempotency-Key": {"x"}}
	r := h.Notify(t.Context(), n)
	require.Equal(t, webhook.ClassOK, r.Class)
	require.Equal(t, http.StatusAccepted, r.Status)
	require.Equal(t, 30*time.Second, r.RetryAfter)
	require.Len(t, r.Response, 1000)
	require.Positive(t, r.Duration)
	require.Equal(t, http.MethodPost, got.Method)
	require.Equal(t, "/in?q=1", got.RequestURI)
	require.Equal(t, vectors[1].body, string(body))
	require.NotEqual(t, "elsewhere", got.Host)
	require.Equal(t, http.Header{
		"Content-Type": {"application/json"}, "Content-Length": {fmt.Sprint(len(body))}, "User-Agent": {"healthlab-webhooks/1"},
		"Webhook-Id": {"msg_0001"}, "Webhook-Timestamp": {"1767225600"},
		"Webhook-Signature": {vectors[2].signature + " " + vectors[1].signature}, "X-Ward": {"7"},
	}, got.Header)
	require.NoError(t, webhook.Verify(body, got.Header, n.At, secret(t, k1)))
	require.False(t, h.Notify(t.Context(), note(t, server.URL)).Reused, "so long an answer costs its connection")
}

// The answer of a receiver is kept byte for byte, and never decompressed.
func TestHTTP_keepsTheResponseBodyByteForByte(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, err := z.Write(make([]byte, 1<<22))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	for _, answer := range []string{bomb.String()[:4<<10], "\xff\xfe no text\x00", "", "thanks"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, answer)
		}))
		h := webhook.NewHTTP(&webhook.HTTPOptions{Guard: loopback(), KeepResponse: 8 << 10})
		r := h.Notify(t.Context(), note(t, server.URL))
		require.Equal(t, webhook.ClassOK, r.Class)
		require.Equal(t, answer[:min(len(answer), 1000)], string(r.Response))
		require.True(t, h.Notify(t.Context(), note(t, server.URL)).Reused)
		h.Close()
		server.Close()
	}
}

func TestHTTP_followsNoRedirect(t *testing.T) {
	var hits atomic.Int32
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer inner.Close()
	h := webhook.NewHTTP(&webhook.HTTPOptions{Guard: loopback()})
	defer h.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(inner.URL, status))
		r := h.Notify(t.Context(), note(t, server.URL))
		require.Equal(t, webhook.ClassRedirect, r.Class)
		require.Equal(t, status, r.Status)
		server.Close()
	}
	require.Zero(t, hits.Load())
}

func TestHTTP_classifiesEachKindOfFailure(t *testing.T) {
	hang := make(chan struct{})
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hang":
			<-hang
		case "/reset":
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.Close()
		case "/slow-body":
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done() // until the sender has had enough
		case "/endless":
			for b := make([]byte, 1<<16); ; {
				if _, err := w.Write(b); err != nil {
					return
				}
			}
		case "/long-header":
			w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		case "/hints":
			w.Header().Set("Link", "</style.css>")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	defer plain.Close()
	defer close(hang)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer secure.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	h := webhook.NewHTTP(&webhook.HTTPOptions{Guard: loopback(), Timeout: 300 * time.Millisecond})
	defer h.Close()
	for path, want := range map[string]webhook.Class{
		plain.URL + "/hang":        webhook.ClassTimeout,
		plain.URL + "/reset":       webhook.ClassReset,
		plain.URL + "/slow-body":   webhook.ClassOK,
		plain.URL + "/endless":     webhook.ClassOK,
		plain.URL + "/long-header": webhook.ClassReset,
		plain.URL + "/hints":       webhook.ClassOK,
		secure.URL:                 webhook.ClassTLS, // its certificate is of an unknown authority
		closed.URL:                 webhook.ClassConnect,
		"http://10.0.0.1:9999/":    webhook.ClassBlocked,
		"http://receiver/":         webhook.ClassBlocked,
	} {
		r := h.Notify(t.Context(), note(t, path))
		require.Equal(t, want, r.Class, path)
		require.Empty(t, r.Response)
	}
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	trusting := webhook.NewHTTP(&webhook.HTTPOptions{Guard: loopback(), RootCAs: roots})
	defer trusting.Close()
	require.Equal(t, webhook.ClassOK, trusting.Notify(t.Context(), note(t, secure.URL)).Class)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NotEqual(t, webhook.ClassOK, h.Notify(ctx, note(t, plain.URL)).Class)
}

// All requests go through the configured proxy, and failures of the proxy are distinguished
// from failures behind it.
func TestHTTP_proxyFailuresDifferFromReceiverFailures(t *testing.T) {
	var status atomic.Int32
	var tunnels atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code := int(status.Load()); code != http.StatusOK || r.Method != http.MethodConnect {
			w.WriteHeader(code)
			return
		}
		there, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer there.Close()
		tunnels.Add(1)
		here, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer here.Close()
		_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(there, here) }()
		_, _ = io.Copy(here, there)
	}))
	defer proxy.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer secure.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	through := func(address string) *webhook.HTTP {
		u, err := url.Parse(address)
		require.NoError(t, err)
		h := webhook.NewHTTP(&webhook.HTTPOptions{Guard: loopback(), RootCAs: roots, Proxy: u})
		t.Cleanup(h.Close)
		return h
	}
	for code, want := range map[int32]webhook.Class{
		200: webhook.ClassOK, 407: webhook.ClassProxy, 403: webhook.ClassBlocked, 500: webhook.ClassConnect, 502: webhook.ClassConnect, 503: webhook.ClassConnect,
	} {
		status.Store(code)
		require.Equal(t, want, through(proxy.URL).Notify(t.Context(), note(t, secure.URL)).Class, code)
	}
	require.Equal(t, int32(1), tunnels.Load())
	status.Store(407)
	require.Equal(t, webhook.ClassProxy, through(proxy.URL).Notify(t.Context(), note(t, "http://127.0.0.1:8443/")).Class, "without a tunnel")
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer cut.Close()
	require.Equal(t, webhook.ClassProxy, through(cut.URL).Notify(t.Context(), note(t, secure.URL)).Class, "it breaks off")
	proxy.Close()
	require.Equal(t, webhook.ClassProxy, through(proxy.URL).Notify(t.Context(), note(t, secure.URL)).Class, "nobody there")
	require.Equal(t, webhook.ClassBlocked, through(proxy.URL).Notify(t.Context(), note(t, "https://10.0.0.1/")).Class, "the guard still sees the URL")
}

// A connection to a private address is refused when it is dialled, whatever the name resolved
// to before, and whatever other addresses it has.
func TestHTTP_refusesPrivateAddressesWhenDialling(t *testing.T) {
	var hits atomic.Int32
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			hits.Add(1)
			_ = conn.Close()
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	for _, a := range hostile {
		addr := netip.MustParseAddr(a).WithZone("")
		h := webhook.NewHTTP(&webhook.HTTPOptions{Resolver: names(addr.String()), Timeout: 5 * time.Second})
		r := h.Notify(t.Context(), note(t, "https://receiver.example.com:"+port+"/"))
		require.Equal(t, webhook.ClassBlocked, r.Class, a)
		require.Zero(t, r.Status)
	}
	both := webhook.NewHTTP(&webhook.HTTPOptions{Resolver: names("127.0.0.1", "::1"), Timeout: 5 * time.Second})
	require.Equal(t, webhook.ClassBlocked, both.Notify(t.Context(), note(t, "https://receiver.example.com:"+port+"/")).Class)
	require.Zero(t, hits.Load(), "no connection was made")
}

// names is a resolver that says the same addresses for every name.
func names(addrs ...string) *net.Resolver {
	return &net.Resolver{
		PreferGo: true,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go answerDNS(server, addrs)
			return client, nil
		},
	}
}

// answerDNS answers queries over a stream (RFC 1035, 4.2.2) until it is closed.
func answerDNS(conn net.Conn, addrs []string) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		q := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, q); err != nil {
			return
		}
		end := 12
		for q[end] != 0 {
			end += int(q[end]) + 1
		}
		end += 5 // the root label, type, class
		wantType := binary.BigEndian.Uint16(q[end-4:])
		var answers []byte
		count := byte(0)
		for _, text := range addrs {
			a := netip.MustParseAddr(text)
			if (wantType == 1) != a.Is4() || wantType != 1 && wantType != 28 {
				continue
			}
			raw := a.AsSlice()
			answers = append(answers, 0xc0, 12, byte(wantType>>8), byte(wantType), 0, 1, 0, 0, 0, 1, 0, byte(len(raw)))
			answers = append(answers, raw...)
			count++
		}
		reply := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, count, 0, 0, 0, 0}, q[12:end]...)
		reply = append(reply, answers...)
		out := binary.BigEndian.AppendUint16(nil, uint16(len(reply)))
		if _, err := conn.Write(append(out, reply...)); err != nil {
			return
		}
	}
}
