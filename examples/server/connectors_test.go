package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/nightscout"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
)

// The invented providers, which accept any password, exist in the sandbox only.
func TestProviders_inventedOnesExistOnlyInASandbox(t *testing.T) {
	t.Parallel()
	invented := &sandbox.ConnectorOptions{Page: "https://service.example/sign-in"}
	real, err := (&config{environment: healthlab.Production}).sources(invented)
	require.NoError(t, err)
	require.Empty(t, real.connectors)
	require.NotEmpty(t, real.providers.List(""))
	made, err := (&config{environment: healthlab.Sandbox}).sources(invented)
	require.NoError(t, err)
	require.NotEmpty(t, made.connectors)

	dir := folder(t, "our id\nour secret\n")
	real, err = (&config{environment: healthlab.Production, connectors: dir}).sources(invented)
	require.NoError(t, err)
	require.Len(t, real.connectors, 2)
	for _, slug := range []string{"fjord_ring", nightscout.Slug} {
		require.NotNil(t, real.connectors[slug].Puller)
		require.NotNil(t, real.providers.Get(slug))
	}
	var slugs []string
	for _, p := range real.providers.List("") {
		slugs = append(slugs, p.Slug)
	}
	require.ElementsMatch(t, []string{"manual", "apple_health_kit", "health_connect", "samsung_health", "fjord_ring", "nightscout"}, slugs, "no invented ones")
	mixed, err := (&config{environment: healthlab.Sandbox, connectors: dir}).sources(invented)
	require.NoError(t, err)
	require.Len(t, mixed.connectors, len(made.connectors)+2)
	require.Equal(t, real.connectors["fjord_ring"].OAuth == nil, mixed.connectors["fjord_ring"].OAuth == nil)
	require.Nil(t, mixed.connectors[nightscout.Slug].OAuth, "it is the real one")
}

// folder is one with the example's provider, and a client.
func folder(t *testing.T, client string) string {
	t.Helper()
	dir := t.TempDir()
	doc, err := os.ReadFile(filepath.Join("connectors", "fjord_ring.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "fjord_ring.json"), doc, 0o600))
	if client != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "fjord_ring.client"), []byte(client), 0o600))
	}
	return dir
}

func TestConnectors_invalidFileIsNamedWithoutItsSecret(t *testing.T) {
	t.Parallel()
	try := func(dir string) string {
		t.Helper()
		_, err := (&config{environment: healthlab.Production, connectors: dir}).sources(&sandbox.ConnectorOptions{})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "our secret")
		return err.Error()
	}
	require.Contains(t, try(t.TempDir()), "must have a file NAME.json")
	require.Contains(t, try(folder(t, "")), "fjord_ring.client")
	require.Contains(t, try(folder(t, "our id\n")), "fjord_ring.json: connector: invalid: oauth.client_auth")
	dir := folder(t, "our id\nour secret")
	doc, err := os.ReadFile(filepath.Join(dir, "fjord_ring.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "again.json"), doc, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "again.client"), []byte("a\nb"), 0o600))
	require.Contains(t, try(dir), "slug: must be unique; another connector has the slug ")
	broken := strings.Replace(string(doc), `"bpm"}`, `"furlong"}`, 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "again.json"), []byte(broken), 0o600))
	require.Contains(t, try(dir), "again.json: read provider: invalid: resources[0].sample.unit: must be a unit that can be converted to bpm")
}

// The providers of a file with clients can be connected, in production, too.
func TestProvidersConfig_clientsOfAFileCanBeConnected(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, doc string) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(doc), 0o600))
		return filepath.Join(dir, name)
	}
	write("whoop.secret", "our secret\n")
	file := write("clients.json", `{
		"whoop": {"client_id": "our id", "client_secret": {"file": "whoop.secret"}},
		"dexcom_jp": {"client_id": "our id", "client_secret": "our secret"}
	}`)
	real, err := (&config{environment: healthlab.Production, clientsFile: file}).sources(&sandbox.ConnectorOptions{})
	require.NoError(t, err)
	require.Len(t, real.connectors, 2)
	for _, slug := range []string{"whoop", "dexcom_jp"} {
		require.NotNil(t, real.connectors[slug].Puller)
		require.NotNil(t, real.providers.Get(slug))
	}
	_, err = (&config{environment: healthlab.Production, clientsFile: write("wrong.json", `{"whoop": {"client_id": "our id"}}`)}).sources(&sandbox.ConnectorOptions{})
	require.EqualError(t, err, "-providers-config: providers config: invalid: whoop.client_secret: must be set and not empty")
}

// A person who links such a provider is sent to the provider's own page, as our client.
func TestProvidersConfig_linkLeadsToTheProvidersPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "clients.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"whoop": {"client_id": "our-id", "client_secret": {"env": "TEST_WHOOP_SECRET"}}}`), 0o600))
	t.Setenv("TEST_WHOOP_SECRET", "our-secret")
	p := start(t, "-providers-config", file)
	var user struct {
		ID string `json:"user_id"`
	}
	ask(p, "POST", "/v2/user/", `{"client_user_id":"ann"}`, 200, &user)
	var token struct {
		Token string `json:"link_token"`
	}
	ask(p, "POST", "/v2/link/token", fmt.Sprintf(`{"user_id":%q}`, user.ID), 200, &token)
	var source struct {
		URL string `json:"oauth_url"`
	}
	ask(p, "GET", "/v2/link/provider/oauth/whoop", "", 200, &source, "x-service-link-token", token.Token)
	page, err := url.Parse(source.URL)
	require.NoError(t, err)
	require.Equal(t, "api.prod.whoop.com", page.Host)
	require.Equal(t, "our-id", page.Query().Get("client_id"))
	require.NotContains(t, source.URL, "our-secret")
}
