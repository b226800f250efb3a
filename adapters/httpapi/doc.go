// Package httpapi serves the library over HTTP, as JSON. It contains the handlers, and the contract that they follow:
// an OpenAPI 3.1 document.
//
// The host authenticates callers, and chooses the groups of operations with the service of each:
//
//	mux.Handle("/", httpapi.Handler(httpapi.Config{
//		Authenticate: authenticate,
//		Parts:        []httpapi.Part{httpapi.HealthData(health), httpapi.Queries(queries)},
//	}))
//
// A program links only the services of the [Part] values that it names. [Services] mounts many at once. [Handler]
// serves all operations; [Routes] and [Mux] let a host choose. [Limits] limits the rate of requests. The host logs
// requests, collects metrics and answers CORS, except for the link API: it wraps the handler or single routes with
// its own func(http.Handler) http.Handler.
//
// # Input
//
// A request is refused, and nothing is stored, if it has unknown, misspelt or repeated keys, wrong types, missing
// values, trailing bytes, text with U+0000, or unknown query parameters. One answer lists all problems. An upload of
// health data refuses single invalid items, and stores the others. A body that exceeds the limit of its operation is
// refused. Config.IgnoreUnknown accepts unknown keys and parameters.
//
// # Error answers
//
// An invalid request gets status 422 with a list of problems:
//
//	{"detail":[{"loc":["query","limit"],"msg":"must be 1 to 500","type":"too_large","ctx":{"limit":500}}]}
//
// Other errors get one object:
//
//	{"detail":{"error_type":"NOT_FOUND","error_message":"user 0d4b1f5e-0000-4000-8000-000000000001 not found"}}
//
// A broken business rule has its own error_type, mostly with status 400. Error answers and log lines repeat no value
// that was sent, except ids that are UUIDs. An error with a method RetryAfter() time.Duration sets the header
// Retry-After of a 429 or 503.
//
// # Keys
//
// [KeyAuth] authenticates teams by API keys, which [NewKey] makes. Only the SHA-256 of a key is stored.
//
// # The contract
//
// [OpenAPI] returns the contract. A [Handler] serves it at /openapi.json without a key, with the operations, headers
// and media types of its Config.
package httpapi

// Files in the order of reading: each uses those before it.
//
//	api.go healthdata.go link.go access.go api_key.go config.go routes.go contract.go aggregate.go
//	access_log.go management.go webhooks.go continuous.go reports.go extension.go users.go lab_results.go
//	personexports.go reports_review.go cors.go bound.go bulk.go connections.go apps.go consents.go pulls.go
//	ingest.go settings.go serve.go glucose_profile.go webhooks_sends.go error_words.go link_pages.go parts.go
//	settings_providers.go credentials.go organisation.go link_flow.go ehr_pipelines.go
