package smart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"sync"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"

	"github.com/healthlab-dev/healthlab"
)

// ClientFile is a JSON file with clients, in the form of [ReadClients]. Find checks whether the file has changed, so
// that changes have effect at once. It is safe for concurrent use.
type ClientFile struct {
	path string

	mu      sync.Mutex
	text    []byte
	clients map[string]Client
}

// OpenClientFile reads the file. It returns errors of ReadClients, and of opening the file.
func OpenClientFile(path string) (*ClientFile, error) {
	f := &ClientFile{path: path}
	_, err := f.read()
	return f, err
}

// Find returns a client of the file, for Config.Clients. It returns NotFound if the file has no client with this id. It
// returns Unavailable while the file cannot be read; no client has access meanwhile. To change the file, rename a new
// file to its path, so that it is never read half written.
func (f *ClientFile) Find(_ context.Context, id string) (Client, error) {
	clients, err := f.read()
	if err != nil {
		return Client{}, fmt.Errorf("%w: file of clients: %s", healthlab.Unavailable, err.Error()) // without the kind of err
	}
	c, ok := clients[id]
	if !ok {
		return Client{}, fmt.Errorf("client: %w", healthlab.NotFound)
	}
	return c, nil
}

// read returns the current clients of the file.
func (f *ClientFile) read() (map[string]Client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := os.ReadFile(f.path)
	if err != nil {
		return nil, errors.Unwrap(err) // without the path
	}
	if f.clients != nil && bytes.Equal(text, f.text) {
		return f.clients, nil
	}
	list, err := ReadClients(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	clients := make(map[string]Client, len(list))
	for _, c := range list {
		clients[c.ID] = c
	}
	f.text, f.clients = text, clients
	return clients, nil
}

// clientIn is a client of a file.
type clientIn struct {
	ID        string          `json:"client_id"`
	Team      string          `json:"team"`
	Scopes    []string        `json:"scopes"`
	KeySet    json.RawMessage `json:"key_set"`
	KeySetURL string          `json:"key_set_url"`
}

// maxClientFile is the largest file of clients, in bytes.
const maxClientFile = 4 << 20

// ReadClients reads clients of JSON:
//
//	{"clients": [{
//		"client_id": "0b5a9d3e-7b1c-4a63-9d55-3d0c8f6c1a2e", "team": "4450ffd6-177d-5496-9fc0-fece76c3d507",
//		"scopes": ["system/Patient.read", "system/Observation.rs"],
//		"key_set": {"keys": [{"kty": "RSA", "kid": "2026-11", "n": "…", "e": "AQAB"}]}
//	}]}
//
// The client_id is a UUID, which becomes Client.Key; the access log names the client by it. A key_set must contain only
// public keys. key_set_url, the URL of a key set, may replace key_set. ReadClients returns Invalid with every mistake
// and its path in the JSON.
func ReadClients(r io.Reader) ([]Client, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxClientFile+1))
	if err != nil {
		return nil, fmt.Errorf("read clients: %w", err)
	}
	var p healthlab.Problems
	if len(text) > maxClientFile {
		p.Add("too_long", fmt.Sprintf("must have at most %d bytes", maxClientFile))
		return nil, p.Err()
	}
	var in struct {
		Clients []clientIn `json:"clients"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil || in.Clients == nil {
		p.Add("invalid", "must be a JSON object with the list clients; a client has client_id, team, scopes, and key_set or key_set_url")
		return nil, p.Err()
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		p.Add("invalid", "must be one JSON object")
	}
	out, seen := make([]Client, len(in.Clients)), map[string]bool{}
	for i := range in.Clients {
		var wrong healthlab.Problems
		out[i] = in.Clients[i].read(&wrong)
		if id := out[i].ID; id != "" {
			if seen[id] {
				wrong.Add("duplicate", "must be unique: another client of the file has this client_id", "client_id")
			}
			seen[id] = true
		}
		p.Under(wrong, "clients", i)
	}
	return out, p.Err()
}

// read returns the client, and adds the problems of its fields to p.
func (c *clientIn) read(p *healthlab.Problems) (out Client) {
	if key, err := uuid.Parse(c.ID); err != nil || key.String() != c.ID {
		p.Add("invalid", "must be a UUID in small letters, such as 0b5a9d3e-7b1c-4a63-9d55-3d0c8f6c1a2e", "client_id")
	} else {
		out.ID, out.Key = c.ID, key
	}
	team, err := uuid.Parse(c.Team)
	if err != nil {
		p.Add("invalid", "must be the id of a team, a UUID", "team")
	}
	out.Team, out.Scopes, out.KeySetURL = healthlab.TeamID{UUID: team}, c.Scopes, c.KeySetURL
	if len(c.Scopes) == 0 {
		p.Add("missing", "must have at least one scope, such as system/*.read", "scopes")
	}
	for i, scope := range c.Scopes {
		if _, _, ok := parseScope(scope); !ok {
			p.Add("invalid", "must be system/*.read or system/TYPE.read, with read, rs, r or s", "scopes", i)
		}
	}
	switch at, err := url.Parse(c.KeySetURL); {
	case (c.KeySet == nil) == (c.KeySetURL == ""):
		p.Add("invalid", "exactly one of key_set and key_set_url is required", "key_set")
	case c.KeySet != nil:
		out.KeySet = c.KeySet
		checkKeySet(c.KeySet, p)
	case err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "":
		p.Add("invalid", "must be an https:// address, or in a sandbox an http:// one", "key_set_url")
	}
	return out
}

// checkKeySet adds the problems of a key set to p. Each key must be usable to check the signature of an assertion.
func checkKeySet(text []byte, p *healthlab.Problems) {
	keys, err := jwk.Parse(text)
	if err != nil || keys.Len() == 0 {
		p.Add("invalid", "must be a JWK set with at least one public key, of RSA with 2048 bits or more, or of the curve P-384", "key_set")
		return
	}
	seen := map[string]bool{}
	for i := range keys.Len() {
		key, _ := keys.Key(i)
		add := func(msg string, field ...any) {
			p.Add("invalid", msg, append([]any{"key_set", "keys", i}, field...)...)
		}
		kid, _ := key.KeyID()
		switch {
		case kid == "":
			add("is required: an assertion names its key by the kid", "kid")
		case seen[kid]:
			add("must be unique: another key of the set has this kid", "kid")
		}
		seen[kid] = true
		if alg, said := key.Algorithm(); said && alg != jwa.RS384() && alg != jwa.ES384() {
			add("must be RS384 or ES384", "alg")
		}
		if use, said := key.KeyUsage(); said && use != string(jwk.ForSignature) {
			add("must be sig", "use")
		}
		if private, err := jwk.IsPrivateKey(key); err != nil || private {
			add("must be a public key of RSA or of the curve P-384")
			continue
		}
		if key, ok := key.(jwk.ECDSAPublicKey); ok {
			if curve, _ := key.Crv(); curve != jwa.P384() {
				add("must be P-384", "crv")
			}
		}
	}
}
