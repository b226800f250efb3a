package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/healthlab-dev/healthlab"
)

const (
	maxURL      = 2048
	maxHostName = 253
	maxLabel    = 63

	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// Guard is the wall between endpoints, whose URLs strangers choose, and networks that
// are none of their business. The zero value is the strict one: https only, public
// addresses only. Immutable while in use; safe for concurrent use.
//
// What decides is [Guard.Control], on the very address about to be connected, after
// names are resolved. [Guard.CheckURL] is a check for the registration of a URL.
type Guard struct {
	// Plain allows http as well, and port 80: for a sandbox.
	Plain bool
	// Allow lists ranges that may be reached although they are not public: for a
	// sandbox, or for receivers inside the operator's own network.
	Allow []netip.Prefix
	// Refuse lists further ranges that may not be reached: the operator's own public
	// addresses. It wins over Allow.
	Refuse []netip.Prefix
	// NAT64 allows addresses in 64:ff9b::/96 if the IPv4 address in them is allowed.
	NAT64 bool
	// Brokers are the schemes of message brokers that the host has a [Notifier] for.
	// A URL with one of them is the scheme and a name, "nats://healthlab.events"; it is
	// never dialled but passed to the host's Notifier. See [ByScheme].
	Brokers []string
}

// errBlocked says that the guard refused. It names no address.
var errBlocked = errors.New("the guard refused the address")

// The special-purpose ranges of the IANA registries (RFC 6890) in the public-looking
// space, and one address on which a cloud serves its hosts.
var (
	refused4 = prefixes(
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32",
	)
	global6  = netip.MustParsePrefix("2000::/3")
	refused6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
	nat64    = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		out[i] = netip.MustParsePrefix(t)
	}
	return out
}

func within(a netip.Addr, ranges []netip.Prefix) bool {
	return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Allowed reports whether the address may be connected. An IPv4 address in IPv6
// clothes is treated as what it is; one with a zone is refused.
func (g *Guard) Allowed(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	switch {
	case within(a, g.Refuse):
		return false
	case within(a, g.Allow):
		return true
	case a.Is4():
		return !within(a, refused4)
	case nat64.Contains(a):
		b := a.As16()
		return g.NAT64 && g.Allowed(netip.AddrFrom4([4]byte(b[12:])))
	default:
		return global6.Contains(a) && !within(a, refused6)
	}
}

// Control is for ControlContext of a net.Dialer: it sees the address of every single
// connection, after name resolution, and refuses those that are not allowed. What it
// cannot read, it refuses.
func (g *Guard) Control(_ context.Context, network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" && network != "tcp" {
		return errBlocked
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil || !g.Allowed(at.Addr()) {
		return errBlocked
	}
	return nil
}

// hiddenSuffixes end names that never lead to the public internet.
var hiddenSuffixes = []string{"localhost", "local", "internal", "arpa", "onion"}

// CheckURL reads the URL of an endpoint and returns it in the form in which it is
// stored and dialled. Otherwise it is Invalid, with every problem.
func (g *Guard) CheckURL(raw string) (*url.URL, error) {
	u, p := g.checkURL(raw)
	if err := p.Err(); err != nil {
		return nil, err
	}
	return u, nil
}

func (g *Guard) checkURL(raw string) (*url.URL, healthlab.Problems) {
	var p healthlab.Problems
	if len(raw) > maxURL {
		p.Add("too_long", fmt.Sprintf("a URL has at most %d characters", maxURL))
		return nil, p
	}
	u, err := url.Parse(raw)
	if err != nil || !u.IsAbs() || u.Host == "" || u.Opaque != "" || strings.ContainsAny(raw, " \t\r\n\\") {
		p.Add("bad_url", "an absolute URL is needed")
		return nil, p
	}
	if slices.Contains(g.Brokers, u.Scheme) {
		if u.Scheme+"://"+u.Host != raw || !brokerName(u.Host) {
			p.Add("bad_name", fmt.Sprintf("after the scheme of a broker comes a name alone: parts of letters, digits, - and _ between dots, a letter first, at most %d characters", maxHostName))
		}
		return u, p
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !g.Plain) {
		p.Add("bad_scheme", "must have the scheme https")
	}
	if u.User != nil {
		p.Add("user_info", "a URL must not hold a user or a password")
	}
	if u.Fragment != "" || strings.Contains(raw, "#") {
		p.Add("fragment", "a URL must not have a fragment")
	}
	if !g.portAllowed(u.Port()) || strings.HasSuffix(u.Host, ":") {
		p.Add("bad_port", "must have the port 443, 8443, or one from 1024 on")
	}
	if msg := g.badHost(u.Hostname()); msg != "" {
		p.Add("bad_host", msg)
	}
	u.Host = strings.ToLower(u.Host)
	return u, p
}

// brokerName reports whether a name is one that every broker can tell from its wildcards
// and its own names.
func brokerName(name string) bool {
	if strings.Trim(name[:min(len(name), 1)], letters) != "" {
		return false
	}
	for part := range strings.SplitSeq(name, ".") {
		if part == "" || strings.Trim(part, letters+"0123456789-_") != "" {
			return false
		}
	}
	return len(name) <= maxHostName
}

func (g *Guard) portAllowed(port string) bool {
	if port == "" || port == "443" || g.Plain && port == "80" {
		return true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n >= 1024
}

// badHost says what is wrong with a host, or nothing.
func (g *Guard) badHost(host string) string {
	if a, err := netip.ParseAddr(host); err == nil {
		if !g.Allowed(a) {
			return "an address must be a public one"
		}
		return ""
	}
	if g.Plain && strings.EqualFold(host, "localhost") && g.Allowed(netip.AddrFrom4([4]byte{127, 0, 0, 1})) {
		return ""
	}
	labels := strings.Split(strings.ToLower(host), ".")
	last := labels[len(labels)-1]
	switch {
	case len(host) > maxHostName, slices.ContainsFunc(labels, badLabel):
		return "the host must be a DNS name in ASCII, or an address"
	case len(labels) < 2, slices.Contains(hiddenSuffixes, last):
		return "the host must be a public name"
	case strings.Trim(last, "0123456789") == "", strings.HasPrefix(last, "0x"):
		return "an address must be in the usual form"
	default:
		return ""
	}
}

func badLabel(label string) bool {
	if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return true
	}
	return strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != ""
}

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

const (
	maxResponseHeader = 16 << 10
	idleTimeout       = 90 * time.Second
)

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
