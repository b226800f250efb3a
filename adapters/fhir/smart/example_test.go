package smart_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir/smart"
)

// A server of tokens. Mounted by fhir.Config.Tokens, it answers at /auth/token.
func Example() {
	tokens, err := smart.New(smart.Config{
		TokenURL: "https://api.example.com/fhir/r4/auth/token", Secrets: [][]byte{[]byte(strings.Repeat("a secret of 32 bytes at least ", 2))},
		Clients: func(context.Context, string) (smart.Client, error) { return smart.Client{}, healthlab.NotFound },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tokens.Configuration()["token_endpoint"])
	g := &smart.Grant{Scopes: []string{"system/Patient.read", "system/Observation.r"}}
	fmt.Println(g.Searches("Patient"), g.Reads("Observation"), g.Searches("Observation"))
	// Output:
	// https://api.example.com/fhir/r4/auth/token
	// true true false
}
