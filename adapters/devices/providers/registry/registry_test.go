package registry_test

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/registry"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// A stored page gives only resources that its kind declares: problems are reported for these.
func TestRead_returnsOnlyResourcesThatTheCollectionDeclares(t *testing.T) {
	for _, slug := range columns {
		t.Run(slug, func(t *testing.T) {
			e := registry.Find(slug)
			c, err := e.New(rest.Client{ID: "id", Secret: "secret", Key: "key"}, nil)
			require.NoError(t, err)
			for _, k := range c.Describe() {
				page, err := os.ReadFile("../" + strings.ReplaceAll(slug, "_", "") + "/testdata/" + k.Name + ".json")
				if errors.Is(err, os.ErrNotExist) {
					continue
				}
				require.NoError(t, err)
				data, err := e.Read(k.Name, page)
				require.NoError(t, err)
				require.Subset(t, append(k.Resources, k.Stored...), slices.Collect(maps.Keys(data)), k.Name)
			}
		})
	}
}

// Every connector makes a record under its slug, and has a page in docs/providers.
func TestRegistry_listsEveryConnectorWithARecordAndAPage(t *testing.T) {
	var records []healthdata.Provider
	pages, err := filepath.Glob("../../../../docs/providers/*.md")
	require.NoError(t, err)
	docs := ""
	for _, name := range pages {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		docs += string(b)
	}
	folders, err := filepath.Glob("../*/*.go")
	require.NoError(t, err)
	connectors := map[string]bool{}
	for _, name := range folders {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		if strings.Contains(string(b), "&rest.Definition{\n\t") && !strings.HasSuffix(name, "_test.go") && !strings.Contains(name, "/rest/") {
			connectors[filepath.Base(filepath.Dir(name))] = true
		}
	}
	services := map[string]bool{}
	for _, e := range registry.All() {
		records = append(records, e.Record())
		require.Equal(t, e.Slug, e.Record().Slug)
		require.Contains(t, docs, "`"+e.Slug+"`")
		c, err := e.New(rest.Client{ID: "id", Secret: "secret", Key: "key"}, nil)
		require.NoError(t, err)
		require.NotNil(t, c.Flows().Puller)
		_, err = e.New(rest.Client{ID: "id", Secret: "secret"}, nil)
		require.Equal(t, e.Key, err != nil, e.Slug)
		_, err = e.Read("no such kind", nil)
		require.ErrorIs(t, err, healthlab.Invalid)
		service, _, _ := strings.Cut(e.Slug, "_")
		services[service] = true
	}
	_, err = healthdata.NewProviders(records)
	require.NoError(t, err)
	require.Len(t, services, len(connectors), "a connector is not listed")
	require.Nil(t, registry.Find("nothing"))
	require.Len(t, registry.Slugs(), len(records))
}

// A connector asks as the client of the document.
func TestConnectors_useTheClientOfTheConfig(t *testing.T) {
	dir := t.TempDir()
	write := func(name, doc string) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(doc), 0o600))
		return filepath.Join(dir, name)
	}
	write("suunto.secret", " secret-2\n")
	t.Setenv("TEST_SECRET", "secret-3")
	config, err := registry.ReadFile(write("config.json", `{
		"whoop": {"client_id": "id-1", "client_secret": "secret-1"},
		"suunto": {"client_id": "id-2", "client_secret": {"file": "suunto.secret"}, "key": {"env": "TEST_SECRET"}, "verify_token": "word-1"},
		"withings": {"client_id": "id-3", "client_secret": {"env": "TEST_SECRET"}, "message_url": "https://app.example/v2/link/push/withings"}
	}`), os.LookupEnv)
	require.NoError(t, err)
	require.Equal(t, registry.Config{
		"whoop":    {Client: rest.Client{ID: "id-1", Secret: "secret-1"}},
		"suunto":   {Client: rest.Client{ID: "id-2", Secret: "secret-2", Key: "secret-3"}, VerifyToken: "word-1"},
		"withings": {Client: rest.Client{ID: "id-3", Secret: "secret-3"}, MessageURL: "https://app.example/v2/link/push/withings"},
	}, config)
	for _, text := range []string{fmt.Sprint(config), fmt.Sprintf("%+v", config), fmt.Sprintf("%#v", config), fmt.Sprintf("%v", config["suunto"]), fmt.Sprintf("%#v", config["suunto"])} {
		require.NotContains(t, text, "secret-")
		require.NotContains(t, text, "word-1")
	}
	all, err := config.Connectors(nil)
	require.NoError(t, err)
	require.Len(t, all, 3)
	for i, slug := range []string{"suunto", "whoop", "withings"} {
		require.Equal(t, slug, all[i].Record.Slug)
		page, err := all[i].Connector.Authorize(t.Context(), linking.AuthorizeRequest{State: "state", RedirectURL: "https://app.example/back"})
		require.NoError(t, err)
		u, err := url.Parse(page)
		require.NoError(t, err)
		require.Equal(t, config[slug].Client.ID, u.Query().Get("client_id"))
		require.Equal(t, config[slug].MessageURL, all[i].Connector.MessageURL)
	}
	_, err = registry.ReadFile(filepath.Join(dir, "none.json"), os.LookupEnv)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = registry.Config{"nothing": {}}.Connectors(nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = registry.Config{"suunto": {Client: rest.Client{ID: "id", Secret: "secret-1"}}}.Connectors(nil)
	require.ErrorContains(t, err, "suunto: connector: invalid: client")
}

// Every mistake is named with its place, and no secret is in it.
func TestReadConfig_namesEveryMistakeWithoutASecret(t *testing.T) {
	slugs := strings.Join(registry.Slugs(), ", ")
	from := &registry.Sources{
		File: func(name string) ([]byte, error) {
			if name == "long" {
				return make([]byte, 5000), nil
			}
			return nil, errors.New("secret-9")
		},
		Env: func(string) (string, bool) { return "", true },
	}
	for name, c := range map[string]struct{ doc, want string }{
		"no JSON":         {"{\n\"whoop\": {\"client_secret\": secret-1}}", "must be a JSON object with an object for each provider: it is no JSON at line 2"},
		"list":            {`[]`, "must be a JSON object with an object for each provider: it is of another shape"},
		"more behind":     {`{} {}`, "must be a JSON object with an object for each provider: it is of another shape"},
		"cut off":         {`{"whoop": {"client_id": "a"`, "must be a JSON object with an object for each provider: it is of another shape"},
		"empty":           {`{}`, "must have at least one provider"},
		"provider":        {`{"fjord": {}}`, "fjord: must be one of: " + slugs},
		"twice":           {`{"whoop": {"client_id": "a", "client_secret": "secret-1"}, "whoop": {}}`, "whoop: must occur only once"},
		"no object":       {`{"whoop": "secret-1"}`, "whoop: must be an object"},
		"member":          {`{"whoop": {"client_id": "a", "client_secret": "secret-1", "secret": "secret-2"}}`, "whoop.secret: must be one of: client_id, client_secret, key, verify_token, message_url"},
		"case":            {`{"whoop": {"Client_ID": "a", "client_secret": "secret-1"}}`, "whoop.Client_ID: must be one of: client_id, client_secret, key, verify_token, message_url; whoop.client_id: must be set and not empty"},
		"member twice":    {`{"whoop": {"client_id": "a", "client_secret": "secret-1", "client_secret": "secret-2"}}`, "whoop.client_secret: must occur only once"},
		"missing":         {`{"whoop": {}}`, "whoop.client_id: must be set and not empty; whoop.client_secret: must be set and not empty"},
		"null":            {`{"whoop": {"client_id": null, "client_secret": null}}`, "whoop.client_id: must be set and not empty; whoop.client_secret: must be set and not empty"},
		"number":          {`{"whoop": {"client_id": 12, "client_secret": "secret-1"}}`, "whoop.client_id: must be a text"},
		"secret's shape":  {`{"whoop": {"client_id": "a", "client_secret": {"file": "a", "env": "b"}}}`, `whoop.client_secret: must be a text, {"file": NAME} or {"env": NAME}`},
		"secret's member": {`{"whoop": {"client_id": "a", "client_secret": {"vault": "secret-1"}}}`, `whoop.client_secret: must be a text, {"file": NAME} or {"env": NAME}`},
		"file":            {`{"whoop": {"client_id": "a", "client_secret": {"file": "x"}}}`, "whoop.client_secret: the named file must exist and be readable"},
		"long file":       {`{"whoop": {"client_id": "a", "client_secret": {"file": "long"}}}`, "whoop.client_secret: the file must have at most 4096 bytes"},
		"environment":     {`{"whoop": {"client_id": "a", "client_secret": {"env": "X"}}}`, "whoop.client_secret: the named environment variable must be set and not empty"},
		"no key":          {`{"suunto": {"client_id": "a", "client_secret": "secret-1"}}`, "suunto.key: must be set and not empty"},
		"key":             {`{"whoop": {"client_id": "a", "client_secret": "secret-1", "key": "secret-2"}}`, "whoop.key: must be absent: clients of this provider have no key"},
		"message URL":     {`{"withings": {"client_id": "a", "client_secret": "secret-1", "message_url": "http://app.example"}}`, "withings.message_url: must be an https:// URL"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := registry.ReadConfig(strings.NewReader(c.doc), from)
			require.ErrorIs(t, err, healthlab.Invalid)
			require.NotContains(t, err.Error(), "secret-")
			require.Contains(t, err.Error()+"$", c.want+"$")
		})
	}
	_, err := registry.ReadConfig(strings.NewReader(`{"whoop": {"client_id": "a", "client_secret": {"env": "X"}}}`), nil)
	require.ErrorContains(t, err, `whoop.client_secret: must be a text: {"file": NAME} and {"env": NAME} are not allowed here`)
	_, err = registry.ReadConfig(strings.NewReader(strings.Repeat(" ", 2<<20)), nil)
	require.ErrorContains(t, err, "at most 1048576 bytes")
}

// A document gives a client of a known provider, or an error without a secret.
func FuzzReadConfig(f *testing.F) {
	for _, doc := range []string{`{"whoop": {"client_id": "a", "client_secret": {"env": "X"}}}`, `{"whoop": {}, "whoop": []}`, `{"a":`, `{"suunto": {"key": {"file": 1}}}`} {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		config, err := registry.ReadConfig(strings.NewReader(doc), nil)
		if err != nil {
			return
		}
		all, err := config.Connectors(nil)
		require.NoError(t, err)
		require.Len(t, all, len(config))
	})
}
