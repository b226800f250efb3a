package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/examples/internal/browse"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

const key = "sk_us_of_the_test"

// service is what the widget speaks to.
func service(t *testing.T) string {
	t.Helper()
	ours := httptest.NewUnstartedServer(nil)
	base := "http://" + ours.Listener.Addr().String()
	providers, err := healthdata.NewProviders([]healthdata.Provider{
		{Slug: "acme_band", Name: "Acme Band", AuthType: "oauth", Category: "device", Class: "cloud"},
		{Slug: "acme_scale", Name: "Acme Scale", AuthType: "password", Category: "device", Class: "cloud"},
		{Slug: "acme_cgm", Name: "Acme CGM", AuthType: "email", Category: "device", Class: "cloud", Regions: map[string][]string{"us": {"us", "ca"}}},
	})
	require.NoError(t, err)
	store := memory.New(nil)
	health, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	require.NoError(t, err)
	seal, err := healthlab.NewAESSealer("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	links, err := linking.New(store.Linking(), health, sandbox.Connectors(providers, &sandbox.ConnectorOptions{Page: base + "/sign-in"}),
		seal, &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{bytes.Repeat([]byte{2}, 32)}, BaseURL: base})
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/sign-in", sandbox.SignInPage(base+"/v2/link/connect"))
	mux.Handle("/", httpapi.Handler(httpapi.Config{
		Authenticate: func(r *http.Request) (httpapi.Caller, error) {
			if r.Header.Get("x-service-api-key") != key {
				return httpapi.Caller{}, healthlab.Unauthenticated
			}
			return httpapi.Caller{Team: healthlab.TeamID{UUID: [16]byte{1}}}, nil
		},
		Parts: (&httpapi.Services{Health: health, Linking: links}).Parts(),
	}))
	ours.Config.Handler = mux
	ours.Start()
	t.Cleanup(ours.Close)
	return base
}

// start runs the widget on a free port.
func start(t *testing.T, api string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"-addr", "127.0.0.1:0", "-api", api, "-api-key", key}, in, io.Discard)
		in.Close()
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	line := make([]byte, 200)
	n, err := out.Read(line)
	require.NoError(t, err)
	return strings.TrimSpace(strings.TrimPrefix(string(line[:n]), "open "))
}

func TestWidget_everySignInConnects(t *testing.T) {
	b := browse.Start(t)
	page := start(t, service(t))
	tab := b.Open(t, browse.Person{})
	do := func(press, see string) {
		tab.Touch(press)
		tab.Wait(see)
	}
	tab.Go(page)
	tab.Wait("Choose a source")

	do("Acme Band", "Sandbox sign-in")
	tab.Press("Deny")
	tab.Wait("The sign-in was not accepted")
	do("Start again", "Choose a source")
	do("Acme Band", "Sandbox sign-in")
	tab.Press("Allow")
	tab.Wait("The source acme_band is connected.")
	require.Equal(t, page, tab.At())

	do("Connect another", "Choose a source")
	do("Acme Scale", "Sign in at Acme Scale")
	tab.Enter("User name or e-mail", "ann+refused")
	tab.Enter("Password", "x")
	do("Connect", "The sign-in was not accepted")
	tab.Enter("User name or e-mail", "ann+mfa")
	tab.Enter("Password", "x")
	do("Connect", "a number that ends in 42")
	tab.Enter("Code", "1")
	do("Confirm", "The code is wrong")
	tab.Enter("Code", sandbox.GoodCode)
	do("Confirm", "The source acme_scale is connected.")

	do("Connect another", "Choose a source")
	do("Acme CGM", "Sign in at Acme CGM")
	tab.Enter("E-mail", "ann@example.com")
	tab.Choose("Region", "ca")
	do("Connect", "The source acme_cgm is connected.")

	// What comes back without having left is not believed.
	tab.Go(page + "?state=success&provider=acme_band")
	tab.Wait("Choose a source")
	for _, asked := range tab.Asked() {
		require.NotContains(t, asked, key)
	}
}

func TestFlags_requireAnAPIKeyAndAValidAddress(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), nil, io.Discard, io.Discard), "-api-key")
	require.ErrorContains(t, run(t.Context(), []string{"-api-key", "x", "-addr", "nowhere:x"}, io.Discard, io.Discard), "listen")
}

func TestProxy_passesOnlyLinkTokenOperations(t *testing.T) {
	page := start(t, service(t))
	r, err := http.Get(page + "v2/user/")
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, r.StatusCode)
	require.NoError(t, r.Body.Close())
}
