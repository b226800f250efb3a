package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Config holds the configuration of providers by slug. Printing a Config shows no secret.
type Config map[string]Setup

// String returns the configured slugs without secrets.
func (c Config) String() string {
	return "clients of " + strings.Join(slices.Sorted(maps.Keys(c)), ", ")
}

// Format writes the result of String for every verb, so that no secret is printed.
func (c Config) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// Setup holds the OAuth client and the message options of one provider.
type Setup struct {
	healthlab.Private

	Client rest.Client
	// VerifyToken and MessageURL are the options of the same names in [rest.Options]. They may be empty.
	VerifyToken, MessageURL string
}

// Sources reads secrets that the configuration document only refers to. If a function is nil, such references are
// refused.
type Sources struct {
	// File returns the content of the file to which {"file": NAME} refers.
	File func(name string) ([]byte, error)
	// Env returns the environment variable to which {"env": NAME} refers, and whether it is set.
	Env func(name string) (string, bool)
}

// secret is a secret in the configuration document: a text, {"file": NAME} or {"env": NAME}.
type secret struct {
	text      string
	file, env *string
}

var errSecret = errors.New(`must be a text, {"file": NAME} or {"env": NAME}`)

// UnmarshalJSON reads a text or a reference. Its error is errSecret.
func (s *secret) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &s.text)
	}
	var from struct {
		File *string `json:"file"`
		Env  *string `json:"env"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&from); err != nil || (from.File == nil) == (from.Env == nil) {
		return errSecret
	}
	s.file, s.env = from.File, from.Env
	return nil
}

// maxSecret is the largest accepted size of a file that contains a secret, in bytes.
const maxSecret = 4096

// read returns the secret, which may be in a file or in the environment. The error contains no part of the secret.
func (s *secret) read(from *Sources) (string, error) {
	switch {
	case s == nil:
		return "", nil
	case s.file != nil && from.File != nil:
		b, err := from.File(*s.file)
		switch {
		case err != nil:
			return "", errors.New("the named file must exist and be readable")
		case len(b) > maxSecret:
			return "", fmt.Errorf("the file must have at most %d bytes", maxSecret)
		}
		return strings.TrimSpace(string(b)), nil
	case s.env != nil && from.Env != nil:
		v, set := from.Env(*s.env)
		if !set || v == "" {
			return "", errors.New("the named environment variable must be set and not empty")
		}
		return v, nil
	case s.file != nil || s.env != nil:
		return "", errors.New(`must be a text: {"file": NAME} and {"env": NAME} are not allowed here`)
	}
	return s.text, nil
}

// entry is the JSON of one provider in the configuration document. The list members must have the same names.
type entry struct {
	ClientID     string  `json:"client_id"`
	ClientSecret *secret `json:"client_secret"`
	Key          *secret `json:"key"`
	VerifyToken  *secret `json:"verify_token"`
	MessageURL   string  `json:"message_url"`
}

// members lists the JSON names of an entry.
var members = []string{"client_id", "client_secret", "key", "verify_token", "message_url"}

// ReadFile reads a configuration document (see [ReadConfig]) from a file. Relative paths in the document are relative
// to the folder of the file. env returns the environment variables that the document refers to, usually os.LookupEnv;
// if env is nil, the document must refer to none.
func ReadFile(name string, env func(string) (string, bool)) (Config, error) {
	f, err := os.Open(name) //nolint:gosec // the operator chooses the file
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // the file was only read
	return ReadConfig(f, &Sources{Env: env, File: func(secret string) ([]byte, error) {
		if !filepath.IsAbs(secret) {
			secret = filepath.Join(filepath.Dir(name), secret)
		}
		return os.ReadFile(secret) //nolint:gosec // the operator chooses the file
	}})
}

// maxConfig is the largest accepted size of a configuration document, in bytes.
const maxConfig = 1 << 20

// ReadConfig reads a JSON document: an object with an object for each provider, by slug.
//
//	{
//	  "whoop":    {"client_id": "4f…", "client_secret": {"env": "WHOOP_SECRET"}},
//	  "suunto":   {"client_id": "9a…", "client_secret": {"file": "suunto.secret"}, "key": {"file": "suunto.key"}}
//	}
//
// It returns Invalid with every problem and its path in the document: an unknown, duplicate or missing provider, and an
// unknown, duplicate, missing or malformed member. The first malformed member of a provider ends the check of that
// provider. No error contains a secret. If from is nil, secrets must be in the document itself.
func ReadConfig(r io.Reader, from *Sources) (Config, error) {
	doc, err := io.ReadAll(io.LimitReader(r, maxConfig+1))
	if err != nil {
		return nil, err
	}
	if from == nil {
		from = &Sources{}
	}
	var p healthlab.Problems
	out := Config{}
	if len(doc) > maxConfig {
		return nil, fmt.Errorf("providers config: %w: must have at most %d bytes", healthlab.Invalid, maxConfig)
	}
	list, err := object(doc)
	if err != nil {
		return nil, fmt.Errorf("providers config: %w: must be a JSON object with an object for each provider: %s", healthlab.Invalid, syntaxPosition(err, doc))
	}
	for _, one := range list {
		out.add(&p, one, from)
	}
	if len(list) == 0 {
		p.Add("missing", "must have at least one provider")
	}
	if err := p.Err(); err != nil {
		return nil, fmt.Errorf("providers config: %w", err)
	}
	return out, nil
}

// add adds the configuration of one provider to c, and its problems to p. The name of the member one is the slug of the
// provider.
func (c Config) add(p *healthlab.Problems, one member, from *Sources) {
	provider := Find(one.name)
	if provider == nil {
		p.AddEnum(Slugs(), shortened(one.name))
		return
	}
	if _, twice := c[one.name]; twice {
		p.Add("duplicate", "must occur only once", one.name)
		return
	}
	list, err := object(one.value)
	if err != nil {
		p.Add("type", "must be an object", one.name)
		return
	}
	var e entry
	seen := map[string]bool{}
	for _, m := range list {
		switch {
		case !slices.Contains(members, m.name):
			p.Add("unknown", "must be one of: "+strings.Join(members, ", "), one.name, shortened(m.name))
			continue
		case seen[m.name]:
			p.Add("duplicate", "must occur only once", one.name, m.name)
		}
		seen[m.name] = true
		doc, _ := json.Marshal(map[string]json.RawMessage{m.name: m.value}) //nolint:errchkjson // the value was JSON
		if err := json.Unmarshal(doc, &e); err != nil {
			rule := "must be a text"
			if errors.Is(err, errSecret) {
				rule = errSecret.Error()
			}
			p.Add("type", rule, one.name, m.name)
			return
		}
	}
	read := func(s *secret, name string) string {
		text, err := s.read(from)
		if err != nil {
			p.Add("secret", err.Error(), one.name, name)
			return "?" // one problem is enough
		}
		return text
	}
	s := Setup{
		Client:      rest.Client{ID: strings.TrimSpace(e.ClientID), Secret: read(e.ClientSecret, "client_secret"), Key: read(e.Key, "key")},
		VerifyToken: read(e.VerifyToken, "verify_token"), MessageURL: e.MessageURL,
	}
	for _, x := range []struct {
		name, value string
		needed      bool
	}{{"client_id", s.Client.ID, true}, {"client_secret", s.Client.Secret, true}, {"key", s.Client.Key, provider.Key}} {
		if x.needed && x.value == "" {
			p.Add("missing", "must be set and not empty", one.name, x.name)
		}
	}
	if s.Client.Key != "" && !provider.Key {
		p.Add("unknown", "must be absent: clients of this provider have no key", one.name, "key")
	}
	if u, err := url.Parse(s.MessageURL); s.MessageURL != "" && (err != nil || u.Host == "" || u.Scheme != "https") {
		p.Add("url", "must be an https:// URL", one.name, "message_url")
	}
	c[one.name] = s
}

// ConfiguredProvider is a provider with its connector.
type ConfiguredProvider struct {
	Record    healthdata.Provider
	Connector *rest.Connector
}

// Connectors returns a connector for each configured provider, sorted by slug. opts apply to all of them, except that
// VerifyToken and MessageURL are those of each provider. An error names the provider. It is Invalid for an unknown
// slug, and otherwise wraps an error of [rest.New].
func (c Config) Connectors(opts *rest.Options) (out []ConfiguredProvider, err error) {
	for _, slug := range slices.Sorted(maps.Keys(c)) {
		e := Find(slug)
		if e == nil {
			return nil, fmt.Errorf("%w: providers config: %s: must be one of: %s", healthlab.Invalid, shortened(slug), strings.Join(Slugs(), ", "))
		}
		var o rest.Options
		if opts != nil {
			o = *opts
		}
		s := c[slug]
		o.VerifyToken, o.MessageURL = s.VerifyToken, s.MessageURL
		connector, err := e.New(s.Client, &o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", slug, err)
		}
		out = append(out, ConfiguredProvider{e.Record(), connector})
	}
	return out, nil
}

// member is a name and a value in a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

var errObject = errors.New("must be an object")

// object returns the members of a JSON object in their order, including duplicates.
func object(doc []byte) (out []member, err error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.Join(errObject, err)
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string) // keys of an object are strings
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		out = append(out, member{name, value})
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errObject
	}
	return out, nil
}

// syntaxPosition describes where a document is malformed, without quoting the document. err is the error of the JSON
// decoder.
func syntaxPosition(err error, doc []byte) string {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return "it is of another shape"
	}
	return fmt.Sprintf("it is no JSON at line %d", 1+bytes.Count(doc[:min(int(syntax.Offset), len(doc))], []byte{'\n'}))
}

// maxShown is the number of bytes of an unknown name that an error shows.
const maxShown = 64

func shortened(name string) string { return strings.ToValidUTF8(name[:min(len(name), maxShown)], "") }
