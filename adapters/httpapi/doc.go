// Package httpapi serves the library over net/http: handlers, the contract that they
// keep, and what every answer has in common.
//
// A host says who is calling and which services stand behind the operations, and
// mounts the result where it likes:
//
//	mux.Handle("/", httpapi.Handler(httpapi.Config{
//		Authenticate: whose,
//		Parts:        []httpapi.Part{httpapi.HealthData(health), httpapi.Queries(questions)},
//	}))
//
// A program links the services of the [Part]s that it names. [Services] mounts many at once.
// [Handler] serves everything; [Routes] and [Mux] let a host choose. Logging of
// requests, metrics, CORS and rate limits are the host's: put its own
// func(http.Handler) http.Handler around the handler or around single routes.
//
// # Input
//
// Input is read strictly. Unknown and misspelt keys, keys that stand twice, wrong
// types, what is missing, trailing bytes, text with U+0000 and unknown query
// parameters are refused, all of them in one reply, and nothing is stored. The size
// of a body is bounded before it is read. Config.IgnoreUnknown lets unknown names
// pass.
//
// # Replies other than success
//
// A request that is not valid is 422 with a list, one entry per problem:
//
//	{"detail":[{"loc":["body","limit"],"msg":"is too large","type":"too_large","ctx":{"limit":500}}]}
//
// All others have one object:
//
//	{"detail":{"error_type":"NOT_FOUND","error_message":"user 0d4b1f5e-0000-4000-8000-000000000001 not found"}}
//
// A broken rule of the business is 400 with the rule's own error_type. Neither ever
// repeats a value that was sent, and a log line does not either. An error with a
// method RetryAfter() time.Duration sets the header of that name on a 429 or 503.
//
// # Keys
//
// [KeyAuth] knows teams by API keys, which [NewKey] makes. Only a key's SHA-256 is
// kept.
//
// # The contract
//
// [OpenAPI] is the contract, OpenAPI 3.1. It is served, without a key, at
// /openapi.json, with the names of Config in it.
package httpapi

// Files in the order of reading: each uses those before it.
//
//	api.go healthdata.go link.go access.go api_key.go config.go routes.go contract.go aggregate.go
//	access_log.go management.go webhooks.go continuous.go reports.go extension.go users.go lab_results.go
//	personexports.go reports_review.go cors.go bound.go bulk.go connections.go apps.go consents.go pulls.go
//	ingest.go settings.go serve.go glucose_profile.go webhooks_sends.go error_words.go link_pages.go parts.go
//	settings_providers.go credentials.go organisation.go link_flow.go ehr_pipelines.go
