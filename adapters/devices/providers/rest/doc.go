// Package rest is the base of the connectors to providers that sign people in by OAuth 2 and serve data as JSON over
// HTTP.
//
// A connector is a [Definition]: the provider's record, its [OAuth] addresses and a table of [Collection]s. A
// collection describes one kind of items of the provider: its path, how a range is written ([Range]), the paging
// ([Pages]), and a function that reads one item into a [Batch]. [New] makes a [Connector] of it, which has the flows
// of package linking. [Definition.Read] decodes a stored page without a network.
//
//	var collections = []rest.Collection{{
//		Name: "sleep", Path: "/v2/sleep", Items: "data",
//		Pages: rest.Cursor("next_token", "next_token"),
//		Range: rest.Range{From: "start_date", To: "end_date", Days: true, After: 24 * time.Hour},
//		Messages: []string{"sleep"}, Resources: []string{"sleep", "sleep_cycle"},
//		Read: rest.Each(readSleep),
//	}}
//
// A new collection needs one row with its function, in one file. The record, the scopes, the resources that a
// message announces and the requests of a pull are derived from the row.
//
// # Requests
//
// One call of Pull makes one request, so that the limits of package linking/pull hold. Resources that share a
// collection form one set of linking.ProviderConnector.Together, and are read with one request. A collection that
// joins another collection, or requests each item of a list, needs several calls of Pull; the cursor holds what was
// read before. Requests go only to addresses that a webhook.Guard allows, follow no redirect, and read a body of
// limited size.
//
// # Errors
//
// An answer 401 is healthlab.Unauthenticated, 429 a linking.RateLimitError, and any other refusal
// healthlab.Unavailable or healthlab.Invalid. [Definition.Refused] reads errors that a provider expresses in its own
// form. No error contains what was sent or received. An item that cannot be read is reported in linking.PullItem,
// and the others are kept.
package rest

// Files in the order of reading: each uses those before it.
//
//	values.go timerange.go batch.go pages.go http.go oauth.go definition.go listen.go connector.go describe.go
//	pull.go probe.go show.go track.go
