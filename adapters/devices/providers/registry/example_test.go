package registry_test

import (
	"fmt"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/registry"
)

// A file has a client for each provider. What comes out goes into service.Config.
func Example() {
	clients, err := registry.ReadConfig(strings.NewReader(`{
		"whoop":    {"client_id": "4f1c", "client_secret": {"env": "WHOOP_SECRET"}},
		"withings": {"client_id": "9a20", "client_secret": {"file": "withings.secret"}, "verify_token": "word"}
	}`), &registry.Sources{
		Env:  func(string) (string, bool) { return "a secret", true },
		File: func(string) ([]byte, error) { return []byte("another secret\n"), nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(clients)
	all, err := clients.Connectors(nil)
	for _, c := range all {
		fmt.Println(c.Record.Name, len(c.Record.Resources), c.Connector.Flows().OAuth != nil)
	}
	fmt.Println(err)
	// Output:
	// clients of whoop, withings
	// WHOOP 7 true
	// Withings 23 true
	// <nil>
}
