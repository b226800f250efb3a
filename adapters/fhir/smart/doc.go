// Package smart gives access to FHIR with tokens of SMART backend services: a client signs a JWT with its own key,
// gets a token for a few minutes in exchange, and reads the resources that the scopes of the token allow.
//
//	clients, err := smart.OpenClientFile("clients.json")
//	tokens, err := smart.New(smart.Config{
//		TokenURL: "https://api.example.com/fhir/r4/auth/token", Clients: clients.Find, Secrets: [][]byte{secret},
//	})
//	h, err := fhir.Handler(fhir.Config{API: s.API(), Tokens: tokens, …})
//
// Names to know: Server, Client, Grant, ClientFile. The host keeps the clients, in a file or elsewhere. The public
// keys of a client are part of it, or are read from an address.
package smart
