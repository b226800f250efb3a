package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"time"
)

// ClientOptions adjusts a client of [NewClient]. The zero value, and nil, mean the
// defaults.
type ClientOptions struct {
	// Guard decides which addresses may be reached. Default: the strict one.
	Guard *Guard
	// Timeout bounds one exchange, the body included. Default 15 s.
	Timeout time.Duration
	// RootCAs are the certificate authorities to believe. Default: the system's.
	RootCAs *x509.CertPool
	// Resolver resolves names. Default net.DefaultResolver.
	Resolver *net.Resolver
}

// NewClient returns an HTTP client behind a guard, for adapters that ask servers whose
// URLs come from outside. It follows no redirects, whose answer it returns, uses no proxy,
// keeps no cookies, and reaches no URL and no address that the guard refuses. How much of
// a body is read is up to the caller. Safe for concurrent use.
func NewClient(opts *ClientOptions) *http.Client {
	o := ClientOptions{}
	if opts != nil {
		o = *opts
	}
	if o.Guard == nil {
		o.Guard = &Guard{}
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	t := o.Guard.transport(o.Timeout, o.RootCAs, o.Resolver)
	t.MaxResponseHeaderBytes = 4 * maxResponseHeader
	return &http.Client{
		Timeout:       o.Timeout,
		Transport:     guarded{guard: o.Guard, next: t},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// guarded refuses what the guard refuses before anything is dialled.
type guarded struct {
	guard *Guard
	next  http.RoundTripper
}

// RoundTrip checks the place that a request goes to, not what it asks for there.
func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if u, err := g.guard.CheckURL(r.URL.Scheme + "://" + r.URL.Host); err != nil || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, errBlocked
	}
	return g.next.RoundTrip(r)
}

// transport reaches what the guard allows, directly.
func (g *Guard) transport(timeout time.Duration, roots *x509.CertPool, resolver *net.Resolver) *http.Transport {
	dialer := &net.Dialer{Timeout: timeout, ControlContext: g.Control, Resolver: resolver}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    timeout,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: maxResponseHeader,
		IdleConnTimeout:        idleTimeout,
	}
}
