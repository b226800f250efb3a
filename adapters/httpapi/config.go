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

// Config is the configuration of an API handler. It may be copied. This package reads it when it makes the routes,
// and never writes it.
type Config struct {
	// Authenticate returns the calling team and the permissions of its API key. It runs once per request, before any part
	// of the request is read, and must be safe for concurrent use. Errors: Unauthenticated (answered with 401), Forbidden
	// (403), Unavailable (503). Required. [KeyAuth] returns a function for API keys.
	Authenticate func(*http.Request) (Caller, error)

	// Parts lists the mounted groups of operations, each with its service. A program links only the services of its
	// parts.
	Parts []Part

	// Idempotency stores the answers of requests with an idempotency key. Nil: such a request is refused with 501.
	Idempotency *idempotency.Service

	// AuthenticateManagement returns the holder of a management key, with the teams that the key may manage and its role.
	// It runs before any part of the request is read, and must be safe for concurrent use. It must not accept the API key
	// of a team. Its errors are those of Authenticate. [ManagementAuth] returns such a function. Nil: operations with a
	// management key are not available, and [Handler] panics if a part needs them.
	AuthenticateManagement func(*http.Request) (Manager, error)
	// Environment is the environment of this deployment. A management request whose path names the other environment
	// gets 404.
	Environment healthlab.Environment

	// Region is the region in which this deployment stores data. A management request whose path names another region
	// gets 404. Default [US].
	Region Region
	// TeamsOf returns the teams of an organisation. It is called for management requests that name no teams, which concern
	// all teams of the organisation that the key may manage. It must be safe for concurrent use. Nil: the part
	// Organisations lists them; without that part, a request must name its teams.
	TeamsOf func(ctx context.Context, org uuid.UUID) ([]healthlab.TeamID, error)

	// Access records the caller and the person of each access before the answer is sent. If an access cannot be
	// recorded, the answer is 503. Nil: nothing is recorded.
	Access *accesslog.Service

	// Transact runs a function in one transaction of the store, and may run it again after a conflict. Calls of
	// services with the function's context are part of the transaction. Operations that only change the store run in
	// it, together with their entry in Access. Nil: each call of a service commits by itself.
	Transact func(ctx context.Context, run func(context.Context) error) error

	// Ping returns nil if the store behind the services answers, and Unavailable if it does not.
	// It must be safe for concurrent use. While it fails or does not return, requests are answered
	// with 503; see Limits.StoreTimeout. Nil: a store that does not answer is noticed only by
	// Limits.Timeout.
	Ping func(context.Context) error

	// URL is the address of the API that the contract states. Default /.
	URL string
	// SignIn is the security scheme that the contract states for requests of teams: an OpenAPI object such as
	// {"type":"apiKey","in":"cookie","name":"session"}. Default: an API key in KeyHeader.
	SignIn json.RawMessage
	// SendsEvents adds the events of the parts to the contract, for a host that sends them to webhook endpoints.
	// Default: true if the part Webhooks is mounted.
	SendsEvents bool
	// KeyHeader is the name of the header with the team's API key. Default x-service-api-key. It appears in the
	// contract only; KeyAuth has an option of its own.
	KeyHeader string
	// LinkTokenHeader is the header with a link token. Default x-service-link-token.
	LinkTokenHeader string
	// ManagementKeyHeader is the header with a management key. Default
	// x-management-key.
	ManagementKeyHeader string
	// ClientAddress returns the address by which callers without a key are rate limited. Default: the address of the
	// connection; of IPv6 the first 64 bits. Behind a proxy it must return the address that the proxy adds, or all
	// callers share one limit.
	ClientAddress func(*http.Request) string
	// Parquet writes results of queries as Parquet files; package aggregate/parquet implements it. Nil: results are
	// JSON, and a request for a Parquet file answers 406.
	Parquet ParquetWriter
	// GlucoseProfiles prints ambulatory glucose profiles; adapters/labs/pdfdoc implements it. Nil: profiles are JSON,
	// and a request for a PDF file answers 406.
	GlucoseProfiles glucoseprofile.Printer
	// ServiceName replaces <service> in the media type application/vnd.<service>.tar+gzip+parquet. Default healthlab.
	ServiceName string

	// MaxBody is the largest request body, in bytes, for operations without a limit of their own. Default 1 MiB.
	MaxBody int64
	// MaxIngestBody is the largest request body, in bytes, for uploads of health data. Default 16 MiB.
	MaxIngestBody int64
	// Limits protect the process from load. The zero value means their defaults.
	Limits Limits
	// Compat makes answers and bodies use the shapes of existing clients where these differ from the contract. Nil: the
	// contract applies.
	Compat *Compat
	// IgnoreUnknown makes every operation ignore unknown keys in bodies and unknown query parameters. By default they
	// are refused, because a misspelt filter would return everything.
	IgnoreUnknown bool

	// Observe is called when a request to an operation of the contract begins. The function that it returns is called
	// with the status after the answer. Both must be safe for concurrent use and must not block. Default: none.
	Observe func(operation string) (answered func(status int))

	// Log receives the cause and the ids of each answer with status 500, without values of persons. Default:
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

// Compat selects names and values that existing clients expect where these differ from the contract. docs/compat.md
// lists them.
type Compat struct {
	// Service replaces the word "service" in two names of JSON fields, appointment_with_service and
	// appointment_scheduling_via_service. Empty changes nothing.
	Service string
	// DelegatedFlow is the value of delegated_flow in the answer about a team. Default not_delegated.
	DelegatedFlow string
}

// Limits protects one process from load. Requests to other processes do not count.
type Limits struct {
	// Timeout is the deadline of a request, database included; after it the answer is 503.
	// Default 2 minutes, which is longer than the longest wait that a caller can ask for.
	Timeout time.Duration
	// Body limits how long bodies may take to arrive. Connections of a caller whose body is not
	// read to its end are closed after the answer.
	Body httpserver.BodyTimes
	// StoreTimeout is how long a request waits for a store that does not answer [Config.Ping], before the answer is
	// 503. A long request continues as long as the store answers. Default 6 seconds.
	StoreTimeout time.Duration
	// Memory bounds the memory of all requests with large bodies, in bytes, while they are read and stored. A body of
	// samples counts 16 times its size, and one of summaries 50 times. A body that exceeds the bound runs alone.
	// Default 512 MiB.
	Memory int64
	// MemoryWait is how long a large body waits for its share of Memory; then the answer is 429.
	// Default 25 seconds.
	MemoryWait time.Duration
	// TeamRate is the number of requests that one team may send per second on average, and TeamBurst the largest
	// number at once. Zero means no limit.
	TeamRate  float64
	TeamBurst int
	// AddressRate and AddressBurst limit callers without a key by [Config.ClientAddress]: the link API, apps that sign
	// in, and calls with a wrong key.
	AddressRate  float64
	AddressBurst int
	// Now is the clock of the rate limits. Default time.Now.
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

// Names of headers unless Config sets others.
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
			panic("httpapi: KeyHeader, LinkTokenHeader, ManagementKeyHeader and ServiceName must consist of letters, digits, - and _")
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

// connectionAddress returns the address of a request's connection. Of IPv6 it returns the first 64 bits, because one
// subscriber has all addresses below them.
func connectionAddress(r *http.Request) string {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return server.Network(at.Addr())
}

// ForwardedAddress returns a function for Config.ClientAddress for a service behind proxies that append to the header
// X-Forwarded-For. The client is the last address in the header that is not a trusted proxy. Entries before that
// address are ignored.
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

// isToken reports whether s consists of letters, digits, - and _, and so may be the name of a header.
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
