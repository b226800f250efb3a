// Package smart gives access to FHIR with tokens of SMART backend services: a client signs a JWT with a key of
// its own, gets a token for a few minutes, and reads what the scopes of the token say.
//
//	clients, err := smart.OpenClientFile("clients.json")
//	tokens, err := smart.New(smart.Config{
//		TokenURL: "https://api.example.com/fhir/r4/auth/token", Clients: clients.Find, Secrets: [][]byte{secret},
//	})
//	h, err := fhir.Handler(fhir.Config{API: s.API(), Tokens: tokens, …})
//
// Names to know: Server, Client, Grant, ClientFile. The host keeps the clients, in a file or as it likes; their key sets
// are part of them or are read from an address.
package smart
