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

// Guard keeps requests to URLs that teams choose out of private networks. The zero value allows only https and
// public addresses. Immutable while in use; safe for concurrent use.
//
// [Guard.Control] checks the resolved address of each connection. [Guard.CheckURL] checks a URL at its
// registration.
type Guard struct {
	// Plain also allows http and port 80, for a sandbox.
	Plain bool
	// Allow lists address ranges that may be reached although they are not public, for a sandbox or for
	// receivers in the operator's network.
	Allow []netip.Prefix
	// Refuse lists further refused ranges, such as the operator's own public addresses. It has priority over
	// Allow.
	Refuse []netip.Prefix
	// NAT64 allows addresses in 64:ff9b::/96 if the IPv4 address in them is allowed.
	NAT64 bool
	// Brokers are the schemes of message brokers that the host has a [Notifier] for. A URL with such a scheme
	// has only a name, "nats://healthlab.events"; it is passed to the host's Notifier and not dialled. See
	// [ByScheme].
	Brokers []string
}

// errBlocked reports that the guard refused an address. The text does not contain the address.
var errBlocked = errors.New("the address of the URL is not allowed: the guard refuses private, local and reserved addresses")

// Special-purpose ranges of the IANA registries (RFC 6890) outside of the private ranges, and the address of a
// cloud's metadata service.
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

// Allowed reports whether a connection to the address is allowed. IPv4-mapped IPv6 addresses are treated as
// IPv4. An address with a zone is refused.
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

// Control is a ControlContext function of a net.Dialer. It checks the resolved address of each connection, and
// refuses addresses that are not allowed or not readable.
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

// hiddenSuffixes are suffixes of host names that do not exist on the public internet.
var hiddenSuffixes = []string{"localhost", "local", "internal", "arpa", "onion"}

// CheckURL parses the URL of an endpoint and returns it in its stored form. It returns Invalid with every
// problem.
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
		p.Add("too_long", fmt.Sprintf("must have at most %d characters", maxURL))
		return nil, p
	}
	u, err := url.Parse(raw)
	if err != nil || !u.IsAbs() || u.Host == "" || u.Opaque != "" || strings.ContainsAny(raw, " \t\r\n\\") {
		p.Add("bad_url", "must be an absolute URL without spaces and backslashes")
		return nil, p
	}
	if slices.Contains(g.Brokers, u.Scheme) {
		if u.Scheme+"://"+u.Host != raw || !brokerName(u.Host) {
			p.Add("bad_name", fmt.Sprintf("must be the scheme of a broker, :// and a name alone: parts of letters, digits, - and _ between dots, a letter first, at most %d characters", maxHostName))
		}
		return u, p
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !g.Plain) {
		p.Add("bad_scheme", "the scheme must be one of: "+strings.Join(g.schemes(), ", "))
	}
	if u.User != nil {
		p.Add("user_info", "must not contain a user or a password")
	}
	if u.Fragment != "" || strings.Contains(raw, "#") {
		p.Add("fragment", "must not have a fragment")
	}
	if !g.portAllowed(u.Port()) || strings.HasSuffix(u.Host, ":") {
		p.Add("bad_port", "the port must be "+g.ports())
	}
	if msg := g.hostProblem(u.Hostname()); msg != "" {
		p.Add("bad_host", msg)
	}
	u.Host = strings.ToLower(u.Host)
	return u, p
}

// brokerName reports whether a name is valid at every broker: it has no wildcard and no reserved prefix.
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

func (g *Guard) schemes() []string {
	if g.Plain {
		return append([]string{"https", "http"}, g.Brokers...)
	}
	return append([]string{"https"}, g.Brokers...)
}

func (g *Guard) ports() string {
	if g.Plain {
		return "80, 443 or 1024 to 65535"
	}
	return "443 or 1024 to 65535"
}

func (g *Guard) portAllowed(port string) bool {
	if port == "" || port == "443" || g.Plain && port == "80" {
		return true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n >= 1024
}

// hostProblem returns what is wrong with the host of a URL; empty if nothing is.
func (g *Guard) hostProblem(host string) string {
	if a, err := netip.ParseAddr(host); err == nil {
		if !g.Allowed(a) {
			return "the host must be a public address, not a private, local, reserved or refused one"
		}
		return ""
	}
	if g.Plain && strings.EqualFold(host, "localhost") && g.Allowed(netip.AddrFrom4([4]byte{127, 0, 0, 1})) {
		return ""
	}
	labels := strings.Split(strings.ToLower(host), ".")
	last := labels[len(labels)-1]
	switch {
	case len(host) > maxHostName, slices.ContainsFunc(labels, isInvalidLabel):
		return "the host must be a DNS name in ASCII, or an address"
	case len(labels) < 2, slices.Contains(hiddenSuffixes, last):
		return "the host must be a public name: one with a dot that does not end with ." + strings.Join(hiddenSuffixes, ", .")
	case strings.Trim(last, "0123456789") == "", strings.HasPrefix(last, "0x"):
		return "the host must be a DNS name, or an IPv4 address of four decimal numbers, such as 203.0.113.7"
	default:
		return ""
	}
}

func isInvalidLabel(label string) bool {
	if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return true
	}
	return strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != ""
}

// ClientOptions configures a client of [NewClient]. The zero value, and nil, mean the defaults.
type ClientOptions struct {
	// Guard decides which addresses may be reached. Default: the zero Guard.
	Guard *Guard
	// Timeout limits one exchange, including the body. Default 15 s.
	Timeout time.Duration
	// RootCAs are the trusted certificate authorities. Default: the system's.
	RootCAs *x509.CertPool
	// Resolver resolves names. Default net.DefaultResolver.
	Resolver *net.Resolver
}

// NewClient returns an HTTP client behind a guard, for adapters that call servers with URLs of teams or people.
// It returns redirects without following them, uses no proxy, keeps no cookies, and refuses what the guard
// refuses. The caller must limit the size of bodies. Safe for concurrent use.
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

// guarded is an HTTP transport that refuses requests before it dials.
type guarded struct {
	guard *Guard
	next  http.RoundTripper
}

// RoundTrip checks the scheme and host of a request.
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

// transport returns a transport that dials only allowed addresses, without a proxy.
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
