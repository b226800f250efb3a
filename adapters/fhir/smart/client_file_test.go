package smart_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir/smart"
)

const (
	clientID = "0b5a9d3e-7b1c-4a63-9d55-3d0c8f6c1a2e"
	teamID   = "4450ffd6-177d-5496-9fc0-fece76c3d507"
)

// clientsOf is a file with one client. edit changes it; nil removes a field.
func clientsOf(t testing.TB, keys []byte, edit map[string]any) string {
	t.Helper()
	c := map[string]any{"client_id": clientID, "team": teamID, "scopes": []string{"system/*.read"}, "key_set": json.RawMessage(keys)}
	for name, v := range edit {
		if c[name] = v; v == nil {
			delete(c, name)
		}
	}
	b, err := json.Marshal(map[string]any{"clients": []any{c}})
	require.NoError(t, err)
	return string(b)
}

func TestReadClients_returnsTheClientsOfTheFile(t *testing.T) {
	keys := keySet(t, newSigner(t, "one", false), newSigner(t, "two", true))
	list, err := smart.ReadClients(strings.NewReader(clientsOf(t, keys, nil)))
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, clientID, list[0].ID)
	require.Equal(t, clientID, list[0].Key.String())
	require.Equal(t, teamID, list[0].Team.String())
	require.Equal(t, []string{"system/*.read"}, list[0].Scopes)
	require.JSONEq(t, string(keys), string(list[0].KeySet))
	list, err = smart.ReadClients(strings.NewReader(clientsOf(t, nil, map[string]any{"key_set": nil, "key_set_url": "https://client.example.com/keys"})))
	require.NoError(t, err)
	require.Equal(t, "https://client.example.com/keys", list[0].KeySetURL)
	list, err = smart.ReadClients(strings.NewReader(`{"clients": []}`))
	require.NoError(t, err)
	require.Empty(t, list)
}

// setOf is a key set of one key, as it is: with its private part if it has one.
func setOf(t testing.TB, raw any, edit map[string]string) json.RawMessage {
	t.Helper()
	key, err := jwk.Import(raw)
	require.NoError(t, err)
	for name, v := range edit {
		require.NoError(t, key.Set(name, v))
	}
	b, err := json.Marshal(map[string]any{"keys": []any{key}})
	require.NoError(t, err)
	return b
}

func TestReadClients_errorNamesThePathWithoutTheValue(t *testing.T) {
	good := keySet(t, newSigner(t, "one", false))
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	small := json.RawMessage(`{"keys": [{"kty": "RSA", "kid": "marker", "e": "AQAB", "n": "` + strings.Repeat("w", 170) + `w"}]}`)
	named := map[string]string{"kid": "marker"}
	for _, c := range []struct {
		what, place string
		edit        map[string]any
	}{
		{"an id that is no UUID", "clients[0].client_id", map[string]any{"client_id": "marker"}},
		{"an id in capitals", "clients[0].client_id", map[string]any{"client_id": strings.ToUpper(clientID)}},
		{"no team", "clients[0].team", map[string]any{"team": nil}},
		{"no scopes", "clients[0].scopes", map[string]any{"scopes": []string{}}},
		{"a scope of persons", "clients[0].scopes[1]", map[string]any{"scopes": []string{"system/*.read", "patient/marker.read"}}},
		{"no keys", "clients[0].key_set", map[string]any{"key_set": nil}},
		{"keys twice", "clients[0].key_set", map[string]any{"key_set_url": "https://marker.example.com"}},
		{"an address of a file", "clients[0].key_set_url", map[string]any{"key_set": nil, "key_set_url": "file:///marker"}},
		{"an empty key set", "clients[0].key_set", map[string]any{"key_set": json.RawMessage(`{"keys": []}`)}},
		{"a private key", "clients[0].key_set.keys[0]: must be a public key", map[string]any{"key_set": setOf(t, p384, named)}},
		{"a secret", "clients[0].key_set.keys[0]: must be a public key", map[string]any{"key_set": setOf(t, []byte("marker"), named)}},
		{"no kid", "clients[0].key_set.keys[0].kid", map[string]any{"key_set": setOf(t, &p384.PublicKey, nil)}},
		{"another curve", "clients[0].key_set.keys[0].crv", map[string]any{"key_set": setOf(t, &p256.PublicKey, named)}},
		{"a short key", "clients[0].key_set: must be a JWK set", map[string]any{"key_set": small}},
		{"another algorithm", "clients[0].key_set.keys[0].alg", map[string]any{"key_set": setOf(t, &p384.PublicKey, map[string]string{"kid": "marker", "alg": "ES256"})}},
		{"a key for encryption", "clients[0].key_set.keys[0].use", map[string]any{"key_set": setOf(t, &p384.PublicKey, map[string]string{"kid": "marker", "use": "enc"})}},
		{"an unknown field", "must be a JSON object", map[string]any{"marker": true}},
	} {
		_, err := smart.ReadClients(strings.NewReader(clientsOf(t, good, c.edit)))
		require.ErrorIs(t, err, healthlab.Invalid, c.what)
		require.ErrorContains(t, err, c.place, c.what)
		require.NotContains(t, err.Error(), "marker", c.what)
	}
	one := clientsOf(t, good, nil)
	twice := strings.TrimSuffix(one, "]}") + "," + strings.TrimPrefix(one, `{"clients":[`)
	_, err = smart.ReadClients(strings.NewReader(twice))
	require.ErrorContains(t, err, "clients[1].client_id: must be unique: another client of the file has this client_id")
	for _, text := range []string{"", "[]", "{}", `{"clients": null}`, one + one} {
		_, err := smart.ReadClients(strings.NewReader(text))
		require.ErrorIs(t, err, healthlab.Invalid, text)
	}
}

func TestClientFile_isReadAgainAfterAChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clients.json")
	_, err := smart.OpenClientFile(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	find := func(f *smart.ClientFile) (smart.Client, error) {
		return f.Find(context.WithoutCancel(t.Context()), clientID)
	}
	write("{")
	_, err = smart.OpenClientFile(path)
	require.ErrorIs(t, err, healthlab.Invalid)
	good := keySet(t, newSigner(t, "one", false))
	write(clientsOf(t, good, nil))
	f, err := smart.OpenClientFile(path)
	require.NoError(t, err)
	c, err := find(f)
	require.NoError(t, err)
	require.Equal(t, []string{"system/*.read"}, c.Scopes)
	write(clientsOf(t, good, map[string]any{"scopes": []string{"system/Patient.read"}}))
	c, err = find(f)
	require.NoError(t, err)
	require.Equal(t, []string{"system/Patient.read"}, c.Scopes)
	write("{")
	_, err = find(f)
	require.ErrorIs(t, err, healthlab.Unavailable)
	require.NotErrorIs(t, err, healthlab.Invalid)
	require.NoError(t, os.Remove(path))
	_, err = find(f)
	require.ErrorIs(t, err, healthlab.Unavailable)
	write(`{"clients": []}`)
	_, err = find(f)
	require.ErrorIs(t, err, healthlab.NotFound)
}
