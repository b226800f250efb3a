package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/httpserver"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/glucoseprofile"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
)

// Config is what a mount consists of. Copy it as you like; it is read when the routes
// are made and not written.
type Config struct {
	// Authenticate says which team is calling, and what its key may do. It runs before anything of the
	// request is read, once per request, and must be safe for concurrent use.
	// Errors: Unauthenticated (the reply is 401), Forbidden (403), Unavailable
	// (503). Required. [KeyAuth] makes one for API keys.
	Authenticate func(*http.Request) (Caller, error)

	// Parts are the operations that are mounted, each with the service behind it. A program links the
	// services of the parts that it names, and no other.
	Parts []Part

	// Idempotency runs requests with an idempotency key once. Nil: a request with such a key is
	// refused (501).
	Idempotency *idempotency.Service

	// AuthenticateManagement says which teams the caller may manage, and how, from a management
	// key. It runs before anything of the request is read, and must be safe for
	// concurrent use. It takes no team's API key, as Authenticate takes no management
	// key. Errors as those of Authenticate. [ManagementAuth] makes one.
	AuthenticateManagement func(*http.Request) (Manager, error)
	// Environment is which of the two worlds this deployment serves. Paths of the
	// management that name the other one lead nowhere.
	Environment healthlab.Environment

	// Region is where the data of this deployment stays. Paths of the management that name
	// another one lead nowhere. Default [US].
	Region Region
	// TeamsOf returns the teams of an organisation, for questions about all those that a
	// management key opens. It must be safe for concurrent use. Nil: as Organisations says;
	// without those, such questions have to name teams.
	TeamsOf func(ctx context.Context, org uuid.UUID) ([]healthlab.TeamID, error)

	// Access records who reads and writes whose data, before an answer is sent; an answer whose
	// access cannot be recorded is 503. Nil: nothing is recorded.
	Access *accesslog.Service

	// Transact runs a function in one transaction of the store behind the services, perhaps again
	// after a conflict, with a context that their calls join: operations that change what is stored and
	// do nothing else run in it, together with the line of Access. Nil: each
	// call of a service commits by itself.
	Transact func(ctx context.Context, run func(context.Context) error) error

	// Ping returns nil if the store behind the services answers, and Unavailable if it does not.
	// It must be safe for concurrent use. While it fails or does not return, requests are answered
	// with 503; see Limits.StoreTimeout. Nil: a store that does not answer is noticed only by
	// Limits.Timeout.
	Ping func(context.Context) error

	// URL is where the mount is reached, for its contract. Default /.
	URL string
	// SignIn is how a team signs in, for the contract: a security scheme object of OpenAPI, such as
	// {"type":"apiKey","in":"cookie","name":"session"}. Default: a key in KeyHeader.
	SignIn json.RawMessage
	// SendsEvents says that the host sends events to webhook endpoints, so that the contract has those of the
	// parts. Default: where the part Webhooks is mounted.
	SendsEvents bool
	// KeyHeader is the header with the team's API key. Default x-service-api-key.
	// Here it is only a name in the contract; KeyAuth is told by its own option.
	KeyHeader string
	// LinkTokenHeader is the header with a link token. Default x-service-link-token.
	LinkTokenHeader string
	// ManagementKeyHeader is the header with a management key. Default
	// x-management-key.
	ManagementKeyHeader string
	// ClientAddress tells callers without a key apart, for their limits: the address of the
	// client. Default: that of the connection, of IPv6 its first 64 bits. Behind a proxy it
	// must be the address that the proxy adds, or all callers share one limit.
	ClientAddress func(*http.Request) string
	// Parquet writes results of queries as Parquet files, as package aggregate/parquet does. Nil: they are
	// there as JSON alone, and a request for such a file is 406.
	Parquet ParquetWriter
	// GlucoseProfiles prints ambulatory glucose profiles, as adapters/labs/pdfdoc does. Nil: they are there as
	// JSON alone, and a request for a PDF file is 406.
	GlucoseProfiles glucoseprofile.Printer
	// ServiceName is the <service> in application/vnd.<service>.tar+gzip+parquet.
	// Default healthlab.
	ServiceName string

	// MaxBody is the largest request body, in bytes, where an operation does not
	// say otherwise. Default 1 MiB.
	MaxBody int64
	// MaxIngestBody is the same for operations that take health data. Default 16
	// MiB.
	MaxIngestBody int64
	// Limits protect the process from load. The zero value means their defaults.
	Limits Limits
	// Compat, if it is set, gives answers and takes bodies in the shapes that existing clients
	// of such services expect where they differ from the contract. Nil: the contract holds.
	Compat *Compat
	// IgnoreUnknown makes every operation pass over unknown keys in bodies and
	// unknown query parameters. By default they are refused, because a misspelt
	// filter must not return everything.
	IgnoreUnknown bool

	// Observe is called for each request to an operation of the contract when it begins; the
	// function that it returns is called with the status after the answer. Both are called
	// from many goroutines and must not block. Default: none.
	Observe func(operation string) (answered func(status int))

	// Log receives what answered 500, with ids and causes and no values. Default:
	// slog.Default().
	Log *slog.Logger
}

// ParquetWriter writes tables as Parquet files. parquet.Writer of package aggregate/parquet is one.
type ParquetWriter interface {
	// WriteArchive writes the frames of a result as a tar archive, compressed with gzip.
	WriteArchive(to io.Writer, r *aggregate.Result) error
	// WriteFrame writes one frame as a file.
	WriteFrame(to io.Writer, f *aggregate.Frame) error
}

// Compat is the set of shapes on which existing clients of such services differ from the
// contract. docs/compat.md lists them.
type Compat struct {
	// Service is the word that the clients have in place of service in the names
	// appointment_with_service and appointment_scheduling_via_service. Empty leaves them.
	Service string
	// DelegatedFlow is the value of delegated_flow of a team. Default not_delegated.
	DelegatedFlow string
}

// Limits protect one process. Several processes have these limits each.
type Limits struct {
	// Timeout is the deadline of a request, database included; after it the answer is 503.
	// Default 2 minutes, which is longer than the longest wait that a caller can ask for.
	Timeout time.Duration
	// Body limits how long bodies may take to arrive. Connections of a caller whose body is not
	// read to its end are closed after the answer.
	Body httpserver.BodyTimes
	// StoreTimeout is how long a request waits while the store does not answer [Config.Ping];
	// after it the answer is 503. A request of any length goes on while the store answers.
	// Default 6 seconds.
	StoreTimeout time.Duration
	// Memory bounds what requests with large bodies may take together, in bytes, while their bodies
	// are read and stored. A body of samples takes 16 times its size, one of summaries 50 times, and
	// one that takes more than all runs alone. Default 512 MiB.
	Memory int64
	// MemoryWait is how long a large body waits for its share of Memory; then the answer is 429.
	// Default 25 seconds.
	MemoryWait time.Duration
	// TeamRate is how many requests a second one team may make, and TeamBurst how many at
	// once. Zero is no limit.
	TeamRate  float64
	TeamBurst int
	// AddressRate and AddressBurst are the same for callers without a key, by
	// [Config.ClientAddress]: the link API, apps that sign in, and calls with a wrong key.
	AddressRate  float64
	AddressBurst int
	// Now is the clock of the rates. Default time.Now.
	Now func() time.Time
}

func (l *Limits) defaults() {
	if l.Timeout <= 0 {
		l.Timeout = 2 * time.Minute
	}
	if l.StoreTimeout <= 0 {
		l.StoreTimeout = 6 * time.Second
	}
	if l.Memory <= 0 {
		l.Memory = 512 << 20
	}
	if l.MemoryWait <= 0 {
		l.MemoryWait = 25 * time.Second
	}
	if l.Now == nil {
		l.Now = time.Now
	}
}

// The names of the contract, where Config does not say otherwise.
const (
	defaultKeyHeader           = "x-service-api-key"
	defaultLinkTokenHeader     = "x-service-link-token"
	defaultManagementKeyHeader = "x-management-key"
	defaultServiceName         = "healthlab"
	defaultMaxIngestBody       = 16 << 20
)

func (c Config) withDefaults() Config {
	orName := func(s *string, def string) {
		if *s == "" {
			*s = def
		}
		if !isToken(*s) {
			panic("httpapi: a header or service name has a character that no header may have")
		}
	}
	orName(&c.KeyHeader, defaultKeyHeader)
	orName(&c.LinkTokenHeader, defaultLinkTokenHeader)
	orName(&c.ManagementKeyHeader, defaultManagementKeyHeader)
	orName(&c.ServiceName, defaultServiceName)
	c.Region = cmp.Or(c.Region, US)
	if c.MaxBody <= 0 {
		c.MaxBody = wire.DefaultMaxBody
	}
	if c.MaxIngestBody <= 0 {
		c.MaxIngestBody = defaultMaxIngestBody
	}
	c.Limits.defaults()
	if c.ClientAddress == nil {
		c.ClientAddress = connectionAddress
	}
	c.Log = cmp.Or(c.Log, slog.Default())
	return c
}

// connectionAddress returns the address of a request's connection; of IPv6 the first 64 bits,
// which one subscriber has.
func connectionAddress(r *http.Request) string {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return server.Network(at.Addr())
}

// ForwardedAddress returns a function for Config.ClientAddress for a service behind proxies
// that add to the header X-Forwarded-For: the client is the last address there that is not
// a trusted proxy. Entries that an untrusted address has added are ignored.
func ForwardedAddress(trusted []netip.Prefix) func(*http.Request) string {
	isProxy := func(text string) bool {
		addr, err := netip.ParseAddr(text)
		return err == nil && slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(addr.Unmap()) })
	}
	return func(r *http.Request) string {
		client := r.RemoteAddr
		if at, err := netip.ParseAddrPort(client); err != nil || !isProxy(at.Addr().Unmap().String()) {
			return connectionAddress(r)
		}
		named := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		for _, text := range slices.Backward(named) {
			addr, err := netip.ParseAddr(strings.TrimSpace(text))
			if err != nil {
				break // not an address: ignore the entries before it
			}
			client = netip.AddrPortFrom(addr, 0).String()
			if !isProxy(addr.Unmap().String()) {
				break
			}
		}
		return connectionAddress(&http.Request{RemoteAddr: client})
	}
}

// isToken reports whether s may be the name of a header; letters, digits, and - _ .
func isToken(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return s != ""
}
