package oauthrest_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/oauthrest"
)

func TestReadConfig_readsTheExampleFile(t *testing.T) {
	f, err := os.Open(exampleFile)
	require.NoError(t, err)
	defer f.Close()
	config, err := oauthrest.ReadConfig(f)
	require.NoError(t, err)
	require.Len(t, config.Resources, 8)
	c, err := oauthrest.New(config, oauthrest.Client{ID: "id", Secret: "secret"}, nil)
	require.NoError(t, err, "its addresses are public ones")
	flows := c.Flows()
	require.NotNil(t, flows.OAuth)
	require.NotNil(t, flows.Refresher)
	require.NotNil(t, flows.Puller)
	require.NotNil(t, flows.Revoker)
	require.Equal(t, []string{"heart"}, flows.Minimum)
	require.Equal(t, 5000, config.Provider.RateLimits.App[0].Requests)
}

// edited is the example with a change, made by a path of keys and positions.
func edited(t testing.TB, value any, path ...any) string {
	t.Helper()
	doc, err := os.ReadFile(exampleFile)
	require.NoError(t, err)
	var root any
	require.NoError(t, json.Unmarshal(doc, &root))
	at := root
	for _, part := range path[:len(path)-1] {
		switch part := part.(type) {
		case string:
			next, ok := at.(map[string]any)[part]
			if !ok {
				next = map[string]any{}
				at.(map[string]any)[part] = next
			}
			at = next
		case int:
			at = at.([]any)[part]
		}
	}
	last := path[len(path)-1]
	switch node := at.(type) {
	case map[string]any:
		if value == nil {
			delete(node, last.(string))
		} else {
			node[last.(string)] = value
		}
	case []any:
		node[last.(int)] = value
	}
	out, err := json.Marshal(root)
	require.NoError(t, err)
	return string(out)
}

type object = map[string]any

// Every mistake is named by its place and its rule, and no value is repeated.
func TestReadConfig_namesEveryMistakeByPathWithoutItsValue(t *testing.T) {
	heart, oxygen, weight, activity, sleep := 0, 1, 2, 3, 4
	r := func(i int, more ...any) []any { return append([]any{"resources", i}, more...) }
	for _, tt := range []struct {
		value any
		path  []any
		want  string
	}{
		{1, []any{"oauth", "nam\u00e9MARK"}, "oauth.nam\u00e9MARK unknown_key"},
		{"MARK", []any{"resources"}, "resources type"},
		{"MARK", []any{"api", "max_bytes"}, "api.max_bytes type"},
		{1.5, []any{"oauth", "token_seconds"}, "oauth.token_seconds type"},
		{"MARK", []any{"oauth", "pkce"}, "oauth.pkce type"},
		{7, r(heart, "path"), "resources[0].path type"},
		{"x", r(heart, "sample", "value", "times"), "resources[0].sample.value.times type"},
		{object{"a": 1}, []any{"oauth", "token_params"}, "oauth.token_params.a type"},

		{"password", []any{"provider", "auth_type"}, "provider.auth_type enum"},
		{"manual", []any{"provider", "class"}, "provider.class enum"},
		{"Bad Slug", []any{"provider", "slug"}, "provider.slug pattern"},
		{"MARK", []any{"provider", "resources", 0, "resource"}, "provider.resources[0].resource unknown_resource, provider.resources[0].resource no_entry, provider.scopes unknown_resource, resources[0].resource unknown_resource"},
		{nil, []any{"oauth", "token_url"}, "oauth.token_url missing"},
		{"MARK", []any{"oauth", "client_auth"}, "oauth.client_auth enum"},
		{object{"state": "x"}, []any{"oauth", "authorize_params"}, "oauth.authorize_params.state reserved"},
		{object{"code_verifier": "x"}, []any{"oauth", "token_params"}, "oauth.token_params.code_verifier reserved"},
		{"x", []any{"oauth", "account", "at"}, "oauth.account.at place"},
		{[]object{{"type": "iam_principal", "key": "reader", "value": "x"}}, []any{"oauth", "setup"}, "oauth.setup[0].description missing"},
		{object{"Authorization": "x"}, []any{"api", "headers"}, "api.headers.Authorization header"},
		{object{"X-A": "x\ny"}, []any{"api", "headers"}, "api.headers.X-A header"},
		{-1, []any{"api", "max_bytes"}, "api.max_bytes range"},
		{[]int{429}, []any{"api", "nothing_status"}, "api.nothing_status[0] range"},
		{"MARK", []any{"api", "over", 0, "type"}, "api.over[0].type enum"},
		{nil, []any{"api", "over", 0, "equals"}, "api.over[0] together"},
		{0, []any{"provider", "rate_limits", "user", 0, "seconds"}, "provider.rate_limits.user[0] range"},
		{nil, []any{"api", "rate_headers", 0, "reset"}, "api.rate_headers[0] missing"},
		{"https://a.example/?x=1", []any{"api", "base_url"}, "api.base_url bad_url"},

		{"glucose", r(heart, "resource"), "provider.resources[0].resource no_entry, resources[0].resource unknown_resource"},
		{"heart", r(heart, "path"), "resources[0].path path"},
		{"/{userid}", r(heart, "path"), "resources[0].path placeholder"},
		{"{to", r(heart, "query", "to"), "resources[0].query.to placeholder"},
		{"x", r(heart, "query", "cursor"), "resources[0].query.cursor reserved"},
		{"MARK", r(heart, "range", "format"), "resources[0].range.format enum"},
		{true, r(heart, "range", "inclusive"), "resources[0].range.inclusive not_allowed"},
		{"MARK", r(heart, "paging", "kind"), "resources[0].paging.kind enum"},
		{nil, r(heart, "paging", "next"), "resources[0].paging.next missing"},
		{nil, r(heart, "paging", "param"), "resources[0].paging.param missing"},
		{nil, r(activity, "paging", "size"), "resources[3].paging.size missing"},
		{"samples", r(heart, "items"), "resources[0].items place"},
		{"/a/~2", r(heart, "items"), "resources[0].items place"},
		{"^^/user", r(heart, "owner"), "resources[0].owner place"},
		{[]object{{"at": "/a"}}, r(heart, "where"), "resources[0].where[0] one_of"},
		{object{"at": "/a", "const": "b"}, r(heart, "source_type"), "resources[0].source_type one_of"},
		{object{}, r(heart, "summary"), "resources[0] one_of"},
		{nil, r(sleep, "summary"), "resources[4] one_of"},
		{object{"at": "/a/*"}, r(heart, "sample", "value"), "resources[0].sample.value.at place"},
		{object{"at": "/a", "map": object{"a": "b"}}, r(heart, "sample", "value"), "resources[0].sample.value.map not_allowed"},
		{object{"const": "many"}, r(heart, "sample", "value"), "resources[0].sample.value.const const"},
		{nil, r(heart, "sample", "value"), "resources[0].sample.value missing"},
		{object{"at": "/a"}, r(heart, "sample", "systolic"), "resources[0].sample.systolic not_allowed"},
		{object{"at": "/a"}, r(heart, "sample", "type"), "resources[0].sample.type not_allowed"},
		{"stone", r(heart, "sample", "unit", "const"), "resources[0].sample.unit unit"},
		{"furlong", r(weight, "sample", "unit", "map", "pound"), "resources[2].sample.unit unit"},
		{"Europe/MARK", r(weight, "sample", "timestamp", "zone"), "resources[2].sample.timestamp.zone unknown_zone"},
		{"/z", r(weight, "sample", "timestamp", "zone_at"), "resources[2].sample.timestamp.zone_at one_of"},
		{"floating", r(oxygen, "sample", "timestamp", "format"), "resources[1].sample.timestamp.format floating"},
		{object{"at": "/a", "format": "floating"}, r(heart, "sample", "end"), "resources[0].sample.end.format floating"},
		{"floating", r(sleep, "summary", "fields", "bedtime_start", "format"), "resources[4].summary.fields.bedtime_start.format floating"},
		{"floating", []any{"provider", "resources", sleep, "affinity"}, "resources[4].summary.fields.bedtime_start.format floating, resources[4].summary.fields.bedtime_stop.format floating"},
		{object{"at": "/a"}, r(sleep, "summary", "fields", "MARK"), "resources[4].summary.fields.MARK unknown_key"},
		{object{"at": "/a"}, r(sleep, "summary", "fields", "created_at"), "resources[4].summary.fields.created_at unknown_key"},
		{"unix", r(sleep, "summary", "fields", "score", "format"), "resources[4].summary.fields.score.format not_allowed"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			_, err := oauthrest.ReadConfig(strings.NewReader(edited(t, tt.value, tt.path...)))
			require.ErrorIs(t, err, healthlab.Invalid)
			require.Equal(t, tt.want, places(t, err))
		})
	}
}

// The text of a mistake says what is expected, with the allowed values and limits.
func TestReadConfig_textsGiveTheAllowedValues(t *testing.T) {
	r := func(more ...any) []any { return append([]any{"resources", 0}, more...) }
	for _, tt := range []struct {
		value any
		path  []any
		want  string
	}{
		{nil, []any{"oauth", "token_url"}, "oauth.token_url: must be set to an https URL"},
		{"x", []any{"oauth", "client_auth"}, "oauth.client_auth: must be one of: basic, body, none"},
		{-1, []any{"api", "max_bytes"}, "api.max_bytes: must be from 0 to 67108864 bytes; 0 means 8388608"},
		{object{"Host": "x"}, []any{"api", "headers"}, "api.headers.Host: must be none of: Authorization, Host, Cookie, Content-Length"},
		{object{"X-A": "x\ny"}, []any{"api", "headers"}, "api.headers.X-A: must have a value of printable ASCII characters"},
		{-1, r("paging", "first"), "resources[0].paging: size and first must be at least 0, and max_pages must be from 0 to 100000"},
		{nil, r("sample", "value"), "resources[0].sample.value: must be set for the resource heartrate"},
		{object{"const": "many"}, r("sample", "value"), "resources[0].sample.value.const: must be a number, or a text that contains one"},
		{"stone", r("sample", "unit", "const"), "resources[0].sample.unit: must be a unit that can be converted to bpm"},
	} {
		_, err := oauthrest.ReadConfig(strings.NewReader(edited(t, tt.value, tt.path...)))
		require.EqualError(t, err, "read provider: invalid: "+tt.want)
	}
}

// places are the places and rules of an error, whose words repeat no value.
func places(t *testing.T, err error) string {
	t.Helper()
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	var out []string
	for _, p := range invalid.Problems {
		require.NotContains(t, p.Msg, "MARK")
		place, _, _ := strings.Cut(healthlab.Problem{Path: p.Path, Msg: "|"}.String(), ": |")
		out = append(out, strings.TrimPrefix(place, "|")+" "+p.Code)
	}
	return strings.Join(out, ", ")
}

func TestReadConfig_refusesMalformedJSON(t *testing.T) {
	for _, tt := range []struct{ doc, want string }{
		{``, " json"},
		{`{"provider":`, " json"},
		{`{} {}`, " json"},
		{`[]`, " type"},
		{strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000), " json"},
		{`{"oauth":{"token_url":"a","token_url":"b"}}`, "oauth.token_url duplicate"},
		{`{"oauth":null}`, "oauth type"},
		{strings.Repeat(" ", 2<<20), " too_long"},
	} {
		_, err := oauthrest.ReadConfig(strings.NewReader(tt.doc))
		require.ErrorIs(t, err, healthlab.Invalid)
		require.Equal(t, tt.want, places(t, err))
	}
}

// The guard decides which addresses there may be.
func TestNew_guardDecidesTheAllowedAddresses(t *testing.T) {
	for _, tt := range []struct {
		value string
		path  []any
		want  string
	}{
		{"http://a.example/token", []any{"oauth", "token_url"}, "oauth.token_url bad_scheme"},
		{"https://10.0.0.1/authorize", []any{"oauth", "authorize_url"}, "oauth.authorize_url bad_host"},
		{"https://localhost/revoke", []any{"oauth", "revocation_url"}, "oauth.revocation_url bad_host"},
		{"https://metadata.internal/me", []any{"oauth", "account", "url"}, "oauth.account.url bad_host"},
		{"https://user:pass@a.example/", []any{"api", "base_url"}, "api.base_url user_info"},
	} {
		config, err := oauthrest.ReadConfig(strings.NewReader(edited(t, tt.value, tt.path...)))
		require.NoError(t, err)
		_, err = oauthrest.New(config, oauthrest.Client{ID: "id", Secret: "secret"}, nil)
		require.Equal(t, tt.want, places(t, err))
	}
	config, err := oauthrest.ReadConfig(strings.NewReader(edited(t, "none", "oauth", "client_auth")))
	require.NoError(t, err)
	for _, c := range []oauthrest.Client{{}, {Secret: "s"}, {ID: "i", Secret: "s"}} {
		_, err = oauthrest.New(config, c, nil)
		require.Equal(t, "oauth.client_auth client", places(t, err))
	}
	_, err = oauthrest.New(config, oauthrest.Client{ID: "i"}, nil)
	require.NoError(t, err)
}

// Whatever a document says, reading it ends, and what is accepted makes a connector.
func FuzzConfig(f *testing.F) {
	doc, err := os.ReadFile(exampleFile)
	require.NoError(f, err)
	f.Add(doc)
	f.Add([]byte(`{"provider":{"slug":"a"},"resources":[{"sample":{}}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		config, err := oauthrest.ReadConfig(strings.NewReader(string(doc)))
		if err != nil {
			var invalid *healthlab.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.NotEmpty(t, invalid.Problems)
			return
		}
		client := oauthrest.Client{ID: "id", Secret: "secret"}
		if config.OAuth.ClientAuth == "none" {
			client.Secret = ""
		}
		if _, err = oauthrest.New(config, client, nil); err != nil {
			var invalid *healthlab.InvalidError
			require.True(t, errors.As(err, &invalid), "only addresses are refused later")
		}
		b, err := json.Marshal(config.Resources)
		require.NoError(t, err)
		require.NotEmpty(t, b)
	})
}
