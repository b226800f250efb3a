package httpapi_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
)

var team = healthlab.TeamID{UUID: uuid.MustParse("6f1c0b52-0000-4000-8000-00000000000a")}

func TestNewKey_prefixNamesEnvironmentAndRegion(t *testing.T) {
	for _, tt := range []struct {
		env    healthlab.Environment
		region httpapi.Region
		prefix string
	}{
		{healthlab.Production, httpapi.US, "pk_us_"},
		{healthlab.Production, httpapi.EU, "pk_eu_"},
		{healthlab.Sandbox, httpapi.US, "sk_us_"},
		{healthlab.Sandbox, httpapi.EU, "sk_eu_"},
	} {
		t.Run(tt.prefix, func(t *testing.T) {
			key, sum, err := httpapi.NewKey(bytes.NewReader(make([]byte, 32)), tt.env, tt.region)
			require.NoError(t, err)
			require.Equal(t, tt.prefix+strings.Repeat("0", 64), key)
			require.Equal(t, httpapi.SumKey(key), sum)
			require.Equal(t, tt.prefix+"…0000", httpapi.KeyHint(key))
		})
	}
	_, _, err := httpapi.NewKey(bytes.NewReader(make([]byte, 31)), healthlab.Sandbox, httpapi.US)
	require.Error(t, err)
	_, _, err = httpapi.NewKey(rand.Reader, "staging", httpapi.US)
	require.ErrorIs(t, err, healthlab.Invalid)
	_, _, err = httpapi.NewKey(rand.Reader, healthlab.Sandbox, "mars")
	require.ErrorIs(t, err, healthlab.Invalid)
	require.Equal(t, "…", httpapi.KeyHint("short"))
}

type down struct{}

func (down) FindKey(context.Context, httpapi.KeySum) (httpapi.APIKey, error) {
	return httpapi.APIKey{}, fmt.Errorf("%w: connection refused", healthlab.Unavailable)
}

// anyKey says of every key that it knows another one.
type anyKey struct{}

func (anyKey) FindKey(context.Context, httpapi.KeySum) (httpapi.APIKey, error) {
	return httpapi.APIKey{Team: team}, nil
}

func TestKeyAuth_acceptsKnownKeysOfItsEnvironmentAndRegion(t *testing.T) {
	newKey := func(env healthlab.Environment, region httpapi.Region) (string, httpapi.APIKey) {
		key, sum, err := httpapi.NewKey(rand.Reader, env, region)
		require.NoError(t, err)
		return key, httpapi.APIKey{Team: team, Sum: sum}
	}
	good, stored := newKey(healthlab.Sandbox, httpapi.EU)
	stranger, _ := newKey(healthlab.Sandbox, httpapi.EU)
	elsewhere, storedElsewhere := newKey(healthlab.Production, httpapi.EU)
	keys := httpapi.Keys{storedElsewhere, stored}
	for _, tt := range []struct {
		name string
		find httpapi.KeyFinder
		sent []string
		want healthlab.TeamID
		kind error
	}{
		{"good", keys, []string{good}, team, nil},
		{"none", keys, nil, healthlab.TeamID{}, healthlab.Unauthenticated},
		{"empty", keys, []string{""}, healthlab.TeamID{}, healthlab.Unauthenticated},
		{"two", keys, []string{good, good}, healthlab.TeamID{}, healthlab.Unauthenticated},
		{"unknown", keys, []string{stranger}, healthlab.TeamID{}, healthlab.Unauthenticated},
		{"of another environment", keys, []string{elsewhere}, healthlab.TeamID{}, healthlab.Unauthenticated},
		{"cut", keys, []string{good[:len(good)-1]}, healthlab.TeamID{}, healthlab.Unauthenticated},
		{"finder down", down{}, []string{good}, healthlab.TeamID{}, healthlab.Unavailable},
		{"finder found another", anyKey{}, []string{good}, healthlab.TeamID{}, healthlab.Unauthenticated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			whose, err := httpapi.KeyAuth(tt.find, healthlab.Sandbox, httpapi.EU, nil)
			require.NoError(t, err)
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			for _, k := range tt.sent {
				r.Header.Add("x-service-api-key", k)
			}
			got, err := whose(r)
			require.ErrorIs(t, err, tt.kind)
			require.Equal(t, tt.want, got.Team)
		})
	}

	whose, err := httpapi.KeyAuth(keys, healthlab.Sandbox, httpapi.EU, &httpapi.KeyOptions{Header: "x-acme-key"})
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("x-acme-key", good)
	got, err := whose(r)
	require.NoError(t, err)
	require.Equal(t, team, got.Team)

	_, err = httpapi.KeyAuth(nil, healthlab.Sandbox, httpapi.EU, nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = httpapi.KeyAuth(keys, "staging", httpapi.EU, nil)
	require.ErrorIs(t, err, healthlab.Invalid)
}
