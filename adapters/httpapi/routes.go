package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/httpserver"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/laborders"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
)

// Route is one operation with its path and handler.
type Route struct {
	// ID is the operationId of the contract.
	ID string
	// Pattern is the method and path as net/http's ServeMux writes them:
	// "GET /v2/user/{user_id}".
	Pattern string
	// Handler answers the request. It reads path parameters with Request.PathValue.
	Handler http.Handler
	// Preflight answers OPTIONS at the same path if web pages of other origins may call the operation; nil otherwise.
	// [Mux] serves it.
	Preflight http.Handler
}

// Routes lists every operation, so that a host can mount some of them, wrap one, or leave one out, and hand the rest
// to [Mux]. It panics if c.Authenticate is nil, or something that a part of c needs is missing. The link pages are
// not part of the contract: their ids begin with link_page.
//
// The patterns are also valid for a ServeMux, with two limits: it answers a path only with or only without a
// trailing slash, and it refuses pairs of which neither is narrower, such as /v2/user/providers/{user_id} and
// /v2/user/{user_id}/info. Mux has neither limit.
func Routes(c Config) []Route {
	if c.Authenticate == nil {
		panic("httpapi: Config.Authenticate is nil")
	}
	a := newAPI(c)
	return a.routes(a.operations())
}

// Handler serves every operation. Paths answer with and without a trailing slash and never redirect. HEAD works
// where GET does. Answers are compressed if the caller accepts it. To mount the handler below a prefix, use
// http.StripPrefix. It panics if c.Authenticate is nil.
//
// It limits the time in which bodies must arrive. [httpserver.Server] limits headers, answers and connections.
func Handler(c Config) http.Handler {
	return httpserver.LimitBodies(Compress(Mux(Routes(c))), c.Limits.Body)
}

// Mux serves routes. From left to right, a literal part of a path wins over a parameter. A path answers with and
// without a trailing slash, and is never redirected. An unknown path is 404, and an unknown method of a known path
// 405 with the header Allow; both as JSON. It panics if two routes are the same, or a pattern is not "METHOD /path".
func Mux(routes []Route) http.Handler {
	m := &server.Mux{}
	for _, r := range routes {
		m.Add(r.Pattern, r.Handler, r.Preflight)
	}
	return httpserver.LimitBodies(m, httpserver.BodyTimes{})
}

// Compress compresses the answers of a handler with gzip or zstd as the request header Accept-Encoding asks. It does
// not compress answers under 1 KiB or the link pages, because the length of a compressed secret reveals information
// about it (BREACH); all answers with secrets are under 1 KiB. [Handler] compresses; a host that mounts [Routes] itself
// wraps its own mux.
func Compress(h http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(1024), gzhttp.SetContentType(false), gzhttp.ContentTypes([]string{
		"application/json", "application/xml", "text/css", "text/plain", "text/csv", "text/javascript", "image/svg+xml",
		"application/vnd.apache.parquet",
	}))
	if err != nil {
		panic("httpapi: " + err.Error()) // its options are constants, so this is a bug
	}
	compressed := wrap(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// gzhttp reads only the first line of the header. Several lines form one list (RFC 9110, section 5.2).
		if lines := r.Header.Values("Accept-Encoding"); len(lines) > 1 {
			r.Header.Set("Accept-Encoding", strings.Join(lines, ", "))
		}
		compressed.ServeHTTP(w, r)
	})
}

// RequestID returns the id of the request whose context this is: the value of the header X-Request-Id if the caller
// or a proxy sent a UUID or a trace id of 32 digits, otherwise a new id. The answer carries it in the same header,
// and log lines of this package in the field request. Empty outside of a request.
func RequestID(ctx context.Context) string { return server.RequestID(ctx) }

// operations returns the operations of all parts, those of the access log, and the operation that serves the contract.
func (a api) operations() []server.Operation {
	ops := a.accessOperations()
	for _, p := range a.Config.Parts {
		ops = append(ops, p.operations(a)...)
	}
	return append(ops, a.contractOperation(ops))
}

func (a api) routes(ops []server.Operation) []Route {
	routes := make([]Route, 0, len(ops))
	for i := range ops {
		op := &ops[i]
		pattern := op.Pattern
		if strings.HasSuffix(pattern, "/") {
			pattern += "{$}"
		}
		route := Route{ID: op.ID, Pattern: pattern, Handler: httpserver.LimitBodies(a.serve(op), a.Limits.Body)}
		if op.Browser {
			method, _, _ := strings.Cut(pattern, " ")
			route.Preflight = a.preflight(method)
		}
		routes = append(routes, route)
	}
	return routes
}

// RequisitionFormPath is the path below which signed URLs of requisitions are answered. A host passes its own address
// followed by this path to [documents.NewLinks].
const RequisitionFormPath = laborders.RequisitionFormPath
