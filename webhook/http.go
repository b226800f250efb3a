package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	maxResponseRead = 8 << 10
	maxResponseKept = 1000
	maxResponseTime = time.Second
)

// HTTPOptions configures an HTTP notifier. The zero value, and nil, mean the defaults.
type HTTPOptions struct {
	// Guard decides which addresses may be reached. Default: the zero Guard.
	Guard *Guard
	// Timeout limits one exchange, from resolving the name to the response headers. Default 15 s.
	Timeout time.Duration
	// KeepResponse is how many bytes of a response are kept, at most 1 kB. Default
	// none.
	KeepResponse int
	// Slots is the number of concurrent requests. It is the size of the connection pool, also for a single host.
	// Default 256.
	Slots int
	// RootCAs are the trusted certificate authorities. Default: the system's.
	RootCAs *x509.CertPool
	// Resolver resolves names. Default net.DefaultResolver.
	Resolver *net.Resolver
	// Proxy is an egress proxy, http or https, for all requests. The proxy of the environment is never used. The
	// guard then checks only URLs, so the proxy must refuse private addresses. Failures of the proxy are
	// [ClassProxy].
	Proxy *url.URL
	// Now measures how long a request takes. Default time.Now.
	Now func() time.Time
}

// HTTP is the [Notifier] that sends signed POST requests. It follows no redirects, uses no proxy but the given
// one, does not decompress, and reads only the start of the response: the status decides. Safe for concurrent
// use.
type HTTP struct {
	guard     *Guard
	timeout   time.Duration
	keep      int
	now       func() time.Time
	transport *http.Transport
}

// NewHTTP returns a Notifier with a guard.
func NewHTTP(opts *HTTPOptions) *HTTP {
	o := HTTPOptions{}
	if opts != nil {
		o = *opts
	}
	if o.Guard == nil {
		o.Guard = &Guard{}
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Slots <= 0 {
		o.Slots = defaultSlots
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	t := o.Guard.transport(o.Timeout, o.RootCAs, o.Resolver)
	if o.Proxy != nil {
		useProxy(t, o.Proxy, o.Timeout, o.Resolver)
	}
	t.MaxIdleConns, t.MaxIdleConnsPerHost = min(max(32*o.Slots, 512), 4096), o.Slots
	return &HTTP{
		guard: o.Guard, timeout: o.Timeout, keep: min(o.KeepResponse, maxResponseKept), now: o.Now,
		transport: t,
	}
}

var (
	errProxy  = errors.New("the egress proxy refused or broke the connection")
	errBeyond = errors.New("the egress proxy cannot connect to the receiver")
)

// useProxy makes the transport t use a proxy, which may have a private address. The timeout of dialling is a third of
// timeout, that of the whole request.
func useProxy(t *http.Transport, proxy *url.URL, timeout time.Duration, resolver *net.Resolver) {
	t.Proxy = http.ProxyURL(proxy)
	t.DialContext = (&net.Dialer{Timeout: timeout / 3, Resolver: resolver}).DialContext
	t.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
		switch answer.StatusCode {
		case http.StatusOK:
			return nil
		case http.StatusForbidden:
			return errBlocked
		case http.StatusProxyAuthRequired:
			return errProxy
		}
		return errBeyond // proxies report an unreachable host in different ways
	}
}

// Close closes idle connections. The HTTP can still be used.
func (h *HTTP) Close() { h.transport.CloseIdleConnections() }

func (h *HTTP) returnsWithin(limit time.Duration) bool { return h.timeout <= limit }

// Notify sends one signed request. See [Notifier].
func (h *HTTP) Notify(ctx context.Context, n Notification) Result {
	began := h.now()
	r := h.exchange(ctx, n, began)
	r.Duration = h.now().Sub(began)
	return r
}

func (h *HTTP) exchange(ctx context.Context, n Notification, began time.Time) Result {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	t := trace{proxied: h.transport.Proxy != nil}
	req, err := h.request(httptrace.WithClientTrace(ctx, t.hooks()), n)
	if err != nil {
		return Result{Class: ClassBlocked}
	}
	resp, err := h.transport.RoundTrip(req) //nolint:bodyclose // readSome closes it
	if err != nil {
		return Result{Class: t.classify(err, errors.Is(ctx.Err(), context.DeadlineExceeded)), Reused: t.reused.Load()}
	}
	answered := n.At.Add(h.now().Sub(began)) // by the store's clock, which is close to the receiver's
	body := readSome(resp.Body, h.keep, cancel)
	if t.proxied && resp.StatusCode == http.StatusProxyAuthRequired {
		return Result{Class: ClassProxy}
	}
	return Result{
		Class:      ClassOf(resp.StatusCode),
		Status:     resp.StatusCode,
		RetryAfter: ParseRetryAfter(resp.Header.Get("Retry-After"), answered),
		Head:       headOf(resp),
		Response:   body,
		Reused:     t.reused.Load(),
	}
}

// request returns the signed request of a notification. It fails if the guard refuses the URL. Without a proxy, the
// guard also checks the resolved address when a connection is made.
func (h *HTTP) request(ctx context.Context, n Notification) (*http.Request, error) {
	u, err := h.guard.CheckURL(n.URL)
	if err != nil {
		return nil, err
	}
	if slices.Contains(h.guard.Brokers, u.Scheme) {
		return nil, errBlocked
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "", bytes.NewReader(n.Body))
	if err != nil {
		return nil, err
	}
	req.URL, req.Host = u, u.Host
	for name, values := range n.Headers {
		if !refusedHeader(name) {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "healthlab-webhooks/1")
	SetSignature(req.Header, n.ID, n.At, n.Body, n.Secrets...)
	return req, nil
}

// readSome reads a short body to its end, so that its connection can be reused, and returns the first keep bytes. For a
// long or slow body it calls cancel, which closes the connection.
func readSome(body io.ReadCloser, keep int, cancel func()) []byte {
	if body == http.NoBody {
		return nil
	}
	defer body.Close() //nolint:errcheck // nothing depends on it
	defer time.AfterFunc(maxResponseTime, cancel).Stop()
	b, _ := io.ReadAll(io.LimitReader(body, maxResponseRead+1))
	if len(b) > maxResponseRead {
		cancel()
	}
	if keep <= 0 {
		return nil
	}
	return bytes.Clone(b[:min(len(b), keep)])
}

// trace records how far a request has come: whether it has a connection, and the state of the TLS handshake. Its hooks
// run on several goroutines.
type trace struct {
	proxied            bool
	connected, reused  atomic.Bool
	shaking, handShook atomic.Bool
}

func (t *trace) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		TLSHandshakeStart: func() { t.shaking.Store(true) },
		TLSHandshakeDone:  func(_ tls.ConnectionState, err error) { t.handShook.Store(err == nil) },
		GotConn: func(info httptrace.GotConnInfo) {
			t.connected.Store(true)
			t.reused.Store(info.Reused)
		},
	}
}

func (t *trace) cut(err error) bool {
	return t.proxied && !t.connected.Load() && !t.shaking.Load() &&
		(errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE))
}

// classify returns the class of an error without a status. late reports whether the time limit of the request has
// passed. If a connection was made, the request may have been written.
func (t *trace) classify(err error, late bool) Class {
	var dns *net.DNSError
	var dial *net.OpError
	switch {
	case errors.Is(err, errBlocked):
		return ClassBlocked
	case errors.Is(err, errProxy), errors.As(err, &dial) && dial.Op == "proxyconnect", t.cut(err):
		return ClassProxy
	case errors.Is(err, errBeyond):
		return ClassConnect
	case t.connected.Load() && late:
		return ClassTimeout
	case t.connected.Load():
		return ClassReset
	case errors.As(err, &dns):
		return ClassDNS
	case t.shaking.Load() && !t.handShook.Load():
		return ClassTLS
	default:
		return ClassConnect
	}
}
