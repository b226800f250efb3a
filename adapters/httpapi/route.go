package httpapi

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
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
func Handler(c Config) http.Handler { return Compress(Mux(Routes(c))) }

// api holds what handlers need.
type api struct {
	Config
	pages *pages // nil if they are not mounted
	gate  *gate
}

func newAPI(c Config) api {
	c = c.withDefaults()
	return api{Config: c, gate: newGate(c.Limits)}
}

// operation is one row of the tables of routes. Exactly one of handle and team is
// set.
type operation struct {
	id      string // operationId
	pattern string // METHOD /path, spelt as in the contract
	// handle answers. Who is calling is the operation's own affair.
	handle func(w http.ResponseWriter, r *http.Request) error
	// team answers a team, which was authenticated before anything was read.
	team func(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error
	// keyed operations take the idempotency headers. All others refuse them.
	keyed bool
	// own opens the operation to the app of the user whom it is about.
	own bool
	// maxBody is the largest body; 0 means Config.MaxBody.
	maxBody int64
	// ignoreUnknown passes over unknown keys and parameters, where the contract of
	// the operation says so.
	ignoreUnknown bool
	// timeout is the longest that the operation may take; 0 means Limits.Timeout.
	timeout time.Duration
	// browser operations may be called by web pages of other origins, with a link token.
	browser bool
	// needs is what the contract demands of the credential.
	needs requirement
	// replies are the faults that this operation words otherwise than all others.
	replies []reply
}

// reply gives an error another status or name, for one operation.
type reply struct {
	// on is what the error is (errors.Is): a kind, context.DeadlineExceeded, an
	// error of a domain package.
	on error
	// rule is the Type of a RuleError, in place of on.
	rule string
	// status and errorType are what is sent instead. Zero leaves what it was.
	status    int
	errorType string
	// msg replaces the error_message. Empty leaves what it was.
	msg string
}

// answers reports whether the reply is for an error.
func (r *reply) answers(err error) bool {
	var rule *healthlab.RuleError
	return r.on != nil && errors.Is(err, r.on) || r.rule != "" && errors.As(err, &rule) && rule.Type == r.rule
}

// operations are all that c has the services for: the tables of the other files.
func (a api) operations() []operation {
	var ops []operation
	ops = append(ops, a.contractOperations()...)
	ops = append(ops, a.userOperations()...)
	ops = append(ops, a.healthOperations()...)
	ops = append(ops, a.ingestOperations()...)
	ops = append(ops, a.connectionOperations()...)
	ops = append(ops, a.consentOperations()...)
	ops = append(ops, a.linkOperations()...)
	ops = append(ops, a.linkPageOperations()...)
	ops = append(ops, a.pullOperations()...)
	ops = append(ops, a.bulkOperations()...)
	ops = append(ops, a.appOperations()...)
	ops = append(ops, a.aggregateOperations()...)
	ops = append(ops, a.priorityOperations()...)
	ops = append(ops, a.continuousOperations()...)
	ops = append(ops, a.settingsOperations()...)
	ops = append(ops, a.pullPreferenceOperations()...)
	ops = append(ops, a.scopeOperations()...)
	ops = append(ops, a.credentialOperations()...)
	ops = append(ops, a.organisationOperations()...)
	ops = append(ops, a.orderOperations()...)
	ops = append(ops, a.documentOperations()...)
	ops = append(ops, a.pscOperations()...)
	ops = append(ops, a.visitOperations()...)
	ops = append(ops, a.webhookOperations()...)
	ops = append(ops, a.labTestOperations()...)
	ops = append(ops, a.personOperations()...)
	ops = append(ops, a.reportOperations()...)
	ops = append(ops, a.unmatchedOperations()...)
	ops = append(ops, a.compendiumOperations()...)
	ops = append(ops, a.accessOperations()...)
	ops = append(ops, a.exportOperations()...)
	for i := range ops {
		ops[i].own, ops[i].needs = isOwn(&ops[i]), requirements()[ops[i].id]
	}
	return ops
}

func (a api) routes(ops []operation) []Route {
	routes := make([]Route, 0, len(ops))
	for _, op := range ops {
		pattern := op.pattern
		if strings.HasSuffix(pattern, "/") {
			pattern += "{$}"
		}
		route := Route{ID: op.id, Pattern: pattern, Handler: a.serve(op)}
		if op.browser {
			method, _, _ := strings.Cut(pattern, " ")
			route.Preflight = a.preflight(method)
		}
		routes = append(routes, route)
	}
	return routes
}
