package nightscout_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/nightscout"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

func hashed(secret string) string {
	sum := sha1.Sum([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func TestRecord_listsExactlyTheResourcesThatPullReads(t *testing.T) {
	list, err := healthdata.NewProviders([]healthdata.Provider{nightscout.Record()})
	require.NoError(t, err)
	flows := nightscout.New(nil).Flows()
	require.NotNil(t, flows.Password)
	require.NotNil(t, flows.Puller)
	for _, r := range list.Get(nightscout.Slug).Resources {
		_, err := flows.Puller.Pull(t.Context(), linking.PullRequest{Resource: r.Resource, To: noon})
		require.ErrorIs(t, err, healthlab.Invalid, "it is known, and the secret is missing")
	}
	_, err = flows.Puller.Pull(t.Context(), linking.PullRequest{Resource: "weight"})
	require.ErrorIs(t, err, healthlab.Unimplemented)
}

// What people type and paste as an address and a password.
func TestSignIn_acceptsAddressesAndTokensAsPeoplePasteThem(t *testing.T) {
	s := newServer(t)
	c := s.connector()
	for _, in := range []linking.PasswordRequest{
		{Username: s.at.URL, Password: token},
		{Username: "  " + s.at.URL + "/ ", Password: " " + token + "\n"},
		{Username: s.at.URL + "/?token=other-0123456789abcdef#now", Password: token},
		{Username: s.at.URL + "/api/v1/", Password: token},
		{Username: s.at.URL, Password: apiSecret},
		{Username: s.at.URL, Password: hashed(apiSecret)},
	} {
		got, err := c.SignIn(t.Context(), in)
		require.NoError(t, err)
		require.Equal(t, s.at.URL, got.Grant.ExternalUserID, "one site is one account, however it is written")
		require.NotContains(t, string(got.Grant.Secret), apiSecret, "the secret itself is not kept")
		_, _ = s.all(c, got.Grant.Secret, "glucose", 1)
	}
	for _, r := range s.requests {
		require.Contains(t, []string{"", token}, r.URL.Query().Get("token"))
		require.NotEqual(t, r.URL.Query().Get("token") == "", r.Header.Get("Api-Secret") == "", "one of the two")
	}
}

func TestSignIn_refusesWrongAddressesAndTokens(t *testing.T) {
	s := newServer(t)
	c := s.connector()
	refused := func(in linking.PasswordRequest) {
		t.Helper()
		_, err := c.SignIn(t.Context(), in)
		var e *linking.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, linking.ProviderCredentialError, e.Type)
	}
	refused(linking.PasswordRequest{Username: s.at.URL, Password: "ann-0123456789abcdee"})
	refused(linking.PasswordRequest{Username: s.at.URL, Password: "another long secret"})
	refused(linking.PasswordRequest{Username: s.at.URL})
	refused(linking.PasswordRequest{Username: s.at.URL + "/elsewhere", Password: token})
	s.open = true
	refused(linking.PasswordRequest{Username: s.at.URL, Password: "ann-0123456789abcdee"}) // although the site is readable without a token
	s.open, s.closed = false, true
	refused(linking.PasswordRequest{Username: s.at.URL, Password: token}) // it is known, and may not read

	// Addresses that a person may not enter: no request is sent.
	before := len(s.requests)
	strict := nightscout.New(nil)
	for _, address := range []string{
		"", "ann", s.at.URL, "http://site.example", "https://127.0.0.1", "https://169.254.169.254/latest", "https://[::1]/", "https://localhost",
		"https://router.local", "ftp://site.example", "https://ann:pass@site.example", "https://site.example:22", "https://site.example/../x", "javascript://x",
	} {
		_, err := strict.SignIn(t.Context(), linking.PasswordRequest{Username: address, Password: token})
		var e *linking.Error
		require.ErrorAs(t, err, &e, address)
		require.Equal(t, linking.ProviderCredentialError, e.Type)
	}
	require.Len(t, s.requests, before)
}

// failures are answers of a site that does not work, or of a proxy before it.
var failures = []struct {
	name string
	say  http.HandlerFunc
	kind error
	wait time.Duration
	// timeout of the connector; zero for its default. Only the answer that never comes
	// has a short one: a busy machine may need seconds for the others.
	timeout time.Duration
}{
	{"broken", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "MARK", http.StatusInternalServerError) }, healthlab.Unavailable, 0, 0},
	{"busy", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		http.Error(w, "MARK", http.StatusServiceUnavailable)
	}, healthlab.Unavailable, 2 * time.Minute, 0},
	{"too many", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "9")
		http.Error(w, "MARK", http.StatusTooManyRequests)
	}, healthlab.Exhausted, 9 * time.Second, 0},
	{"a host's own page", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>MARK</html>", http.StatusUnauthorized)
	}, healthlab.Unavailable, 0, 0},
	{"forbidden by a proxy", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "MARK", http.StatusForbidden) }, healthlab.Unavailable, 0, 0},
	{"asleep", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>MARK</html>") }, healthlab.Unavailable, 0, 0},
	{"another shape", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `"MARK"`) }, healthlab.Unavailable, 0, 0},
	{"elsewhere", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://MARK.example/", http.StatusFound)
	}, healthlab.Unavailable, 0, 0},
	{"too much", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `["`+strings.Repeat("MARK", 3<<20)+`"]`)
	}, healthlab.Unavailable, 0, 0},
	{"too late", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, context.DeadlineExceeded, 0, time.Second},
}

// A sign-in fails if the site does not return its unit and zone at that time, because they
// are read only at the sign-in.
func TestSignIn_failsIfTheRequestForSettingsFails(t *testing.T) {
	for _, path := range []string{"/api/v1/status.json", "/api/v1/profile.json"} {
		for _, tt := range failures {
			t.Run(path+" "+tt.name, func(t *testing.T) {
				t.Parallel()
				s := newServer(t)
				s.fail, s.failing = tt.say, path
				_, err := s.connectorWithTimeout(tt.timeout).SignIn(t.Context(), linking.PasswordRequest{Username: s.at.URL, Password: token})
				require.ErrorIs(t, err, tt.kind)
				require.NotContains(t, err.Error(), "MARK")
				var person *linking.Error
				require.False(t, errors.As(err, &person), "it is no fault of the person")
				var hint interface{ RetryAfter() time.Duration }
				if errors.As(err, &hint) {
					require.Equal(t, tt.wait, hint.RetryAfter())
				}
			})
		}
	}
	// An unknown path, but no site is without a status.
	s := newServer(t)
	s.fail, s.failing = http.NotFound, "/api/v1/status.json"
	_, err := s.connector().SignIn(t.Context(), linking.PasswordRequest{Username: s.at.URL, Password: token})
	require.ErrorIs(t, err, healthlab.Unavailable)
}

// A sign-in succeeds at a site that has no settings, or whose settings the token may not
// read.
func TestSignIn_succeedsIfSettingsAreMissingOrForbidden(t *testing.T) {
	say := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
	}
	unauthorized := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"status":401,"message":"Unauthorized"}`)
	}
	for path, answers := range map[string][]http.HandlerFunc{
		"/api/v1/profile.json": {
			http.NotFound, unauthorized, say(`[]`), say(`[{}]`), say(`[{"store":7}]`), say(`[null]`), say(`[{"defaultProfile":"a","store":{"a":{"timezone":"Mars"}}}]`),
			say(`[{"defaultProfile":"a","store":{"a":{"timezone":"Local"}}}]`), say(`[{"defaultProfile":"a","store":{"a":{"timezone":null}}}]`),
		},
		"/api/v1/status.json": {unauthorized, say(`{}`), say(`{"settings":{}}`), say(`{"settings":{"units":null}}`), say(`{"settings":{"units":"stone"}}`), say(`{"settings":{"units":7}}`)},
	} {
		for i, answer := range answers {
			s := withData(t)
			s.fail, s.failing = answer, path
			c := s.connector()
			got, _ := s.all(c, s.signedIn(c), "glucose", 1)
			profile := path == "/api/v1/profile.json"
			require.Equal(t, map[bool]string{true: "", false: "Europe/Vienna"}[profile], got[0].TimeZone, i)
			require.Len(t, append(got[0].Samples, got[1].Samples...), 2, i)
			require.Len(t, got[4].Samples, map[bool]int{true: 2, false: 1}[profile], "the treatment's own unit needs no site's")
		}
	}
}

func TestPull_eachFailureHasItsErrorKind(t *testing.T) {
	for _, tt := range failures {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			c := s.connectorWithTimeout(tt.timeout)
			secret := s.signedIn(s.connector())
			s.fail = tt.say
			check := func(err error) {
				require.ErrorIs(t, err, tt.kind)
				require.NotContains(t, err.Error(), "MARK")
				require.NotContains(t, err.Error(), "127.0.0.1")
				require.NotContains(t, err.Error(), token)
				var over *linking.GrantError
				require.False(t, errors.As(err, &over))
				require.NotErrorIs(t, err, healthlab.Unauthenticated)
				var hint interface{ RetryAfter() time.Duration }
				if errors.As(err, &hint) {
					require.Equal(t, tt.wait, hint.RetryAfter())
				}
			}
			_, err := c.Pull(t.Context(), linking.PullRequest{Secret: secret, Resource: "glucose", From: noon.AddDate(0, 0, -1), To: noon})
			check(err)
			_, err = c.SignIn(t.Context(), linking.PasswordRequest{Username: s.at.URL, Password: token})
			check(err)
		})
	}
	s := newServer(t)
	c := s.connector()
	secret := s.signedIn(c)
	s.closed = true // the person took the token back
	_, err := c.Pull(t.Context(), linking.PullRequest{Secret: secret, Resource: "glucose", From: noon.AddDate(0, 0, -1), To: noon})
	require.ErrorIs(t, err, healthlab.Unauthenticated)
	s.at.Close()
	_, err = c.Pull(t.Context(), linking.PullRequest{Secret: secret, Resource: "glucose", From: noon.AddDate(0, 0, -1), To: noon})
	require.ErrorIs(t, err, healthlab.Unavailable)
	for _, r := range []linking.PullRequest{
		{Secret: secret, Resource: "glucose", Cursor: "MARK"}, {Secret: secret, Resource: "glucose", Cursor: "-1.5"}, {Secret: []byte("MARK"), Resource: "note"},
	} {
		_, err = c.Pull(t.Context(), r)
		require.ErrorIs(t, err, healthlab.Invalid)
		require.NotContains(t, err.Error(), "MARK")
	}
}
