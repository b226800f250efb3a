package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzhttp"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/httpserver"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/compat"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/laborders"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
)

// Route is one operation.
type Route struct {
	// ID is the operationId of the contract.
	ID string
	// Pattern is the method and path as net/http's ServeMux writes them:
	// "GET /v2/user/{user_id}".
	Pattern string
	// Handler answers. It takes the parts of the path from Request.PathValue.
	Handler http.Handler
	// Preflight answers OPTIONS at the same path, where web pages of other origins may call
	// the operation; nil elsewhere. [Mux] serves it.
	Preflight http.Handler
}

// Routes lists every operation, so that a host can mount some of them, wrap one, or
// leave one out, and hand the rest to [Mux]. It panics if c.Authenticate is nil, or
// something that c.Webhooks or c.LinkPages needs is missing. The link pages are no part of
// the contract: their ids begin with link_page.
//
// A ServeMux takes the patterns, too, with two limits: it answers only one of the
// two spellings with and without a trailing slash, and it refuses pairs that overlap
// without one being narrower, such as /v2/user/providers/{user_id} and
// /v2/user/{user_id}/info. Mux has neither.
func Routes(c Config) []Route {
	if c.Authenticate == nil {
		panic("httpapi: Config.Authenticate is nil")
	}
	known := c.Environment == healthlab.Sandbox || c.Environment == healthlab.Production
	if (c.Webhooks != nil || c.Continuous != nil || c.Teams != nil || c.Organisations != nil) && (c.AuthenticateManagement == nil || !known) {
		panic("httpapi: Config.Webhooks, Config.Continuous, Config.Teams and Config.Organisations need AuthenticateManagement and Environment")
	}
	a := newAPI(c)
	a.pages = a.newPages()
	return a.routes(a.operations())
}

// Handler serves every operation. Paths answer with and without a trailing slash and
// never redirect; HEAD works where GET does. Answers are compressed where the caller asks. To mount it below a prefix, use
// http.StripPrefix. It panics if c.Authenticate is nil.
//
// It limits the time of bodies. [httpserver.Server] limits the rest: headers, answers, and
// connections.
func Handler(c Config) http.Handler {
	return httpserver.LimitBodies(Compress(Mux(Routes(c))), c.Limits.Body)
}

// Mux serves routes. From left to right, a literal part of a path wins over a
// parameter. A path answers with and without a trailing slash, and is never
// redirected. What is not there is 404, and a method that is not there 405 with the
// header Allow; both as JSON. It panics if two routes are the same, or a pattern is
// not "METHOD /path".
func Mux(routes []Route) http.Handler {
	m := &server.Mux{}
	for _, r := range routes {
		m.Add(r.Pattern, r.Handler, r.Preflight)
	}
	return httpserver.LimitBodies(m, httpserver.BodyTimes{})
}

// Compress compresses the answers of a handler with gzip or zstd, as the request's header
// Accept-Encoding asks. Answers under 1 KiB, which all answers with a secret are, and the link
// pages go as they are: the length of a compressed secret tells of it (BREACH). [Handler] compresses; a host that mounts [Routes] itself wraps
// its own mux.
func Compress(h http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(1024), gzhttp.SetContentType(false), gzhttp.ContentTypes([]string{
		"application/json", "application/xml", "text/css", "text/plain", "text/csv", "text/javascript", "image/svg+xml",
		"application/vnd.apache.parquet",
	}))
	if err != nil {
		panic("httpapi: " + err.Error()) // the options are constants
	}
	return wrap(h)
}

// RequestID returns the id of the request whose context this is: that of the header
// X-Request-Id if the caller or a proxy sent a UUID or a trace id of 32 digits, else a new one. Every answer has it in the
// same header, and every line that this package logs about the request has it as request.
// Empty outside of a request.
func RequestID(ctx context.Context) string { return server.RequestID(ctx) }

// operations are all that c has the services for: the tables of the other files.
func (a api) operations() []server.Operation {
	return slices.Concat(
		a.contractOperations(), a.userOperations(), a.healthOperations(), a.ingestOperations(), a.connectionOperations(),
		a.consentOperations(), a.linkOperations(), a.linkPageOperations(), a.pullOperations(), a.bulkOperations(),
		a.appOperations(), a.aggregateOperations(), a.priorityOperations(), a.continuousOperations(), a.settingsOperations(),
		a.pullPreferenceOperations(), a.scopeOperations(), a.credentialOperations(), a.organisationOperations(),
		a.labOrderOperations(), a.webhookOperations(), a.reportOperations(), a.labResultOperations(), a.accessOperations(), a.exportOperations(),
	)
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

// RequisitionFormPath is where signed URLs of requisitions are answered: a host gives
// [documents.NewLinks] its own address with this after it.
const RequisitionFormPath = laborders.RequisitionFormPath

func (a api) labOrderOperations() []server.Operation {
	if a.Orders == nil {
		return nil
	}
	lab := laborders.API{Orders: a.Orders, Critical: a.Critical, MatchTests: a.MatchTests, Documents: a.Documents, Idempotency: a.Idempotency, Transact: a.Transact}
	if a.Compat != nil {
		lab.CapabilityName = compat.Shapes(*a.Compat).Name
	}
	return lab.Operations()
}
