// Package oauthrest connects a provider that signs people in by OAuth 2 and serves data as JSON over HTTP. It needs
// a configuration file and no Go code.
//
// A [Config] has four parts: the provider's record in the catalogue, its OAuth addresses, what all requests have in
// common, and for each resource the request, the paging, the JSON pointer to the items in the response, and the meaning
// of their values, with unit, format and zone. [ReadConfig] reads it and reports every mistake with its path in the
// document; docs/providers.md explains every key.
//
//	config, err := oauthrest.ReadConfig(file)
//	connector, err := oauthrest.New(config, oauthrest.Client{ID: id, Secret: secret}, nil)
//	connectors[config.Provider.Slug] = connector.Flows()
//
// A [Connector] has the flows of linking (linking.OAuthFlow, Refresher, Revoker and Puller). It connects only to
// addresses that a webhook.Guard allows, follows no redirect, and reads no more of an answer than the configuration
// allows.
//
// # What an answer means
//
// A grant has ended if the provider says so in the terms of the protocol (invalid_grant, or what the configuration
// lists). Any other failure is retried later, at the time in Retry-After if there is one. An item whose values
// cannot be read is refused with its field and the rule, and the others are kept. An item without a measurement is
// skipped.
//
// The package does not support providers that push data, that require signed requests, or whose answers are not
// JSON. They need a connector in Go.
package oauthrest

// Files in the order of reading: each uses those before it.
//
//	strict.go config.go place.go field.go mapping.go check.go connector.go items.go pull.go oauth.go answer.go
