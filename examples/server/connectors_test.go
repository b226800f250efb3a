package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/nightscout"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
)

// Outside of a sandbox nobody signs in at a provider that does not exist, where any
// password is right.
func TestOnlyASandboxInventsProviders(t *testing.T) {
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

func TestConnectorsThatCannotBe(t *testing.T) {
	try := func(dir string) string {
		t.Helper()
		_, err := (&config{environment: healthlab.Production, connectors: dir}).sources(&sandbox.ConnectorOptions{})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "our secret")
		return err.Error()
	}
	require.Contains(t, try(t.TempDir()), "no file *.json")
	require.Contains(t, try(folder(t, "")), "fjord_ring.client")
	require.Contains(t, try(folder(t, "our id\n")), "fjord_ring.json: connector: invalid: oauth.client_auth")
	dir := folder(t, "our id\nour secret")
	doc, err := os.ReadFile(filepath.Join(dir, "fjord_ring.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "again.json"), doc, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "again.client"), []byte("a\nb"), 0o600))
	require.Contains(t, try(dir), "there is a connector with this slug")
	broken := strings.Replace(string(doc), `"bpm"}`, `"furlong"}`, 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "again.json"), []byte(broken), 0o600))
	require.Contains(t, try(dir), "again.json: read provider: invalid: resources[0].sample.unit: not a unit")
}
