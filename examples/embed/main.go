// Embed is a program with the whole service inside. It keeps everything in the folder embed-data and the key that
// encrypts it in the file embed.key, and prints its address and an API key: go run ./examples/embed
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/httpserver"
	"github.com/healthlab-dev/healthlab/adapters/operations/blob"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/adapters/sqlite"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

func main() {
	ctx, org, team := context.Background(), uuid.UUID{1}, healthlab.TeamID{UUID: uuid.UUID{2}} // never change these ids
	secret, err := os.ReadFile("embed.key")
	if os.IsNotExist(err) {
		secret = make([]byte, 96) // 32 bytes each for encryption, signatures and the API key
		_, _ = rand.Read(secret)  // never fails
		err = os.WriteFile("embed.key", secret, 0o600)
	}
	sealer := must(healthlab.NewAESSealer("1", map[string][]byte{"1": must(secret, err)[:32]}))
	files := must(blob.OpenDirectory("embed-data/files", nil)) // also creates the folder embed-data
	data := must(sqlite.Open(ctx, "embed-data/healthlab.db", stores.Tables(), nil))
	keys := personkey.New(personkey.NewStore(must(sqlite.Open(ctx, "embed-data/keys.db", personkey.Tables(), nil))), sealer, nil)
	listener := must((&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0"))
	s := must(service.New(ctx, service.Config{
		Environment: healthlab.Sandbox, URL: "http://" + listener.Addr().String(), Secret: secret[32:64],
		Stores: stores.New(data, &stores.Options{Keys: keys, Events: stores.Outbox}), Files: must(blob.New(files, sealer, &blob.Options{Keys: keys})),
		Providers: must(healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual entry", Class: "manual", Category: "app"}})),
	}))
	must(s.Organisations.EnsureTeam(ctx, org, organisation.NewTeam{ID: team, Name: "Clinic"}))
	key := fmt.Sprintf("sk_us_%x", secret[64:])
	must(key, s.Organisations.AdmitKey(ctx, team, "first", key, "sk_us_…"))
	go func() { must("", s.Run(ctx)) }() // runs all background work
	fmt.Printf("listening on http://%s\napi key: %s\n", listener.Addr(), key)
	must("", httpserver.New(s.Handler(), nil).Serve(listener)) // s.Handler can be mounted in another mux instead
}

// must returns v. If err is not nil, it ends the program; the service has already stored all data that it acknowledged.
func must[T any](v T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
	return v
}
