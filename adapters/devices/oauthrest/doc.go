// Package oauthrest connects a provider that signs people in by OAuth 2 and gives data as
// JSON over HTTP, from a file and without a line of Go.
//
// A [Config] has four parts: the provider's record in the catalogue, its OAuth addresses,
// what all requests have in common, and for each resource where it is asked for, how the
// answer goes on, where in it the items are and what their values mean: unit, format and
// zone included. [ReadConfig] reads it and names every mistake by its place;
// docs/providers.md explains every key.
//
//	config, err := oauthrest.ReadConfig(file)
//	connector, err := oauthrest.New(config, oauthrest.Client{ID: id, Secret: secret}, nil)
//	connectors[config.Provider.Slug] = connector.Flows()
//
// A [Connector] has the flows of linking (linking.OAuthFlow, Refresher, Revoker and
// Puller). It reaches only what a webhook.Guard lets through, follows no redirect, and
// reads no more of an answer than the configuration allows.
//
// # What an answer means
//
// A grant is over when the provider says so in the protocol's words (invalid_grant, or
// what the configuration lists); a failure of any other kind is tried again later, when
// Retry-After says so. An item whose values cannot be read is refused with its field and
// the rule, and the others are kept; an item without a measurement is none.
//
// It is not for providers that push, that sign requests, or whose answers are not JSON:
// they need a connector of their own, in Go.
package oauthrest

// Files in the order of reading: each uses those before it.
//
//	strict.go config.go place.go field.go mapping.go check.go connector.go items.go pull.go oauth.go answer.go
