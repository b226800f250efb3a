// Package rest is the base of the connectors to providers that sign people in by OAuth 2 and
// give data as JSON over HTTP.
//
// A connector is a [Definition]: the provider's record, its [OAuth] addresses and a table of
// [Collection]s. A collection is one collection of the provider: its path, how a range is written
// ([Range]), how pages go on ([Pages]), and a function that reads one item into a [Batch].
// [New] makes a [Connector] of it, which has the flows of package linking. [Definition.Read]
// decodes a stored page without a network.
//
//	var collections = []rest.Collection{{
//		Name: "sleep", Path: "/v2/sleep", Items: "data", Pages: rest.Cursor("next_token", "next_token"),
//		Range: rest.Range{From: "start_date", To: "end_date", Days: true, After: 24 * time.Hour},
//		Messages: []string{"sleep"}, Resources: []string{"sleep", "sleep_cycle"}, Read: rest.Each(readSleep),
//	}}
//
// A new collection is a new row with its function, in one file: the record, the scopes, the resources that
// a message announces and the requests of a pull follow from the row.
//
// # Requests
//
// One call of Pull makes one request, so that the limits of package linking/pull hold. Resources
// that have a collection in common are one set of linking.ProviderConnector.Together, and come with one
// request. A collection that joins another collection, or asks for each item of a list, spreads its
// requests over several pages: what it has read so far stands in the cursor. Requests go only to
// addresses that a webhook.Guard allows, follow no redirect, and read a bounded body.
//
// # Errors
//
// An answer of 401 is healthlab.Unauthenticated, one of 429 a linking.RateLimitError, any other
// refusal healthlab.Unavailable or healthlab.Invalid; [Definition.Refused] reads what a
// provider says in its own words. No error holds what was sent or received. An item that
// cannot be read is reported in linking.PullItem and the others are kept.
package rest

// Files in the order of reading: each uses those before it.
//
//	values.go timerange.go batch.go pages.go http.go oauth.go definition.go listen.go connector.go describe.go
//	pull.go probe.go show.go track.go
