package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/double"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/registry"
)

// today is the day of the tests.
var today = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// truth is what a double has of a person.
type truth func(*double.Person) double.Truth

// doubles are the doubles by slug.
var doubles = map[string]func(double.Options) (http.Handler, truth){
	"dexcom_eu": handler(double.Dexcom), "google_health": handler(double.GoogleHealth), "oura": handler(double.Oura), "polar": handler(double.Polar),
	"strava": handler(double.Strava), "suunto": handler(double.Suunto), "wahoo": handler(double.Wahoo), "whoop": handler(double.Whoop),
	"withings": handler(double.Withings),
}

func handler[S http.Handler](create func(double.Options) (S, func(*double.Person) double.Truth)) func(double.Options) (http.Handler, truth) {
	return func(o double.Options) (http.Handler, truth) { return create(o) }
}

// screen is what the program prints. A person at it opens the address that is printed.
type screen struct {
	person string
	mu     sync.Mutex
	text   bytes.Buffer
	opened bool
}

var address = regexp.MustCompile(`http://\S+response_type\S*`)

// Write opens the address.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(b)
	if url := address.Find(b); url != nil && !s.opened {
		s.opened = true
		go func() {
			resp, err := http.Get(string(url) + "&person=" + s.person)
			if err == nil {
				_ = resp.Body.Close()
			}
		}()
	}
	return len(b), nil
}

// clients writes a file with the clients of the doubles.
func clients(t *testing.T, secret string) string {
	t.Helper()
	doc := map[string]map[string]string{}
	for slug := range doubles {
		doc[slug] = map[string]string{"client_id": "id", "client_secret": secret}
	}
	doc["suunto"]["key"] = double.SuuntoKey
	b, err := json.Marshal(doc)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "clients.json")
	require.NoError(t, os.WriteFile(file, b, 0o600))
	return file
}

// person is who signs in.
var person = double.NewPerson(1, today, 10)

// checked runs the program against a double, behind wrap.
func checked(t *testing.T, slug string, o double.Options, wrap func(http.Handler) http.Handler, args ...string) (string, error) {
	t.Helper()
	now := func() time.Time { return today }
	o.People, o.Now = []*double.Person{person}, now
	h, _ := doubles[slug](o)
	server := httptest.NewServer(wrap(h))
	defer server.Close()
	c, err := flags(append(args, "-origin", server.URL, "-addr", "127.0.0.1:0", slug), io.Discard)
	require.NoError(t, err)
	connector, err := c.connect(now)
	require.NoError(t, err)
	out := &screen{person: person.ID}
	k := &check{
		config: c, connector: connector, record: registry.Find(slug).Record(), out: out, now: now,
		sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
	err = k.run(t.Context())
	out.mu.Lock()
	defer out.mu.Unlock()
	return out.text.String(), err
}

func same(h http.Handler) http.Handler { return h }

// answers replaces the answers of paths that contain a text.
func answers(path string, answer http.HandlerFunc) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, path) {
				answer(w, r)
				return
			}
			h.ServeHTTP(w, r)
		})
	}
}

// Each double passes, also when it fails now and then. Every resource that it has comes.
func TestCheck_everyProviderDoublePassesDespiteFailures(t *testing.T) {
	for slug, create := range doubles {
		t.Run(slug, func(t *testing.T) {
			file := clients(t, "secret")
			text, err := checked(t, slug, double.Options{}, same, "-providers-config", file, "-revoke")
			require.NoError(t, err, text)
			require.NotContains(t, text, failure)
			_, truth := create(double.Options{})
			for resource := range truth(person) {
				require.Regexp(t, `\d+ `+resource+`\b`, text)
			}
			require.Contains(t, text, "token came, which works for ")
			for _, secret := range []string{"access-", "refresh-", "code-", "Test Person", person.ID} {
				require.NotContains(t, text, secret)
			}
			text, err = checked(t, slug, double.Options{Faults: double.Faults{Every: 5}}, same, "-providers-config", file)
			require.NoError(t, err, text)
		})
	}
}

// Each failure has a line that says what it is.
func TestCheck_eachFailureHasItsLine(t *testing.T) {
	refuse := func(status int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
		}
	}
	say := func(doc string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(doc)) }
	}
	const night = `{"id": "a", "user_id": 10001, "start": "2026-03-03T22:00:00Z", "end": "2026-03-04T06:00:00Z", "timezone_offset": "+01:00", "score_state": "SCORED",
		"score": {"stage_summary": {"total_in_bed_time_milli": 28800000}, "respiratory_rate": `
	for name, c := range map[string]struct {
		path   string
		answer http.HandlerFunc
		want   []string
	}{
		"no longer there":    {"/activity/sleep", refuse(404), []string{"FAIL  sleep", "the provider answered the request for sleep with status 404, which means that the request is wrong", "ok    workout"}},
		"down":               {"/activity/sleep", refuse(500), []string{"FAIL  sleep", "the provider answers with status 500"}},
		"not granted":        {"/activity/sleep", refuse(403, "WWW-Authenticate", `Bearer error="insufficient_scope"`), []string{"FAIL  sleep", "has not granted a scope that this resource requires"}},
		"too many":           {"/activity/sleep", refuse(429, "Retry-After", "300"), []string{"FAIL  sleep", "asks to wait for 5m0s, which is longer than -wait"}},
		"no token":           {"/activity/sleep", refuse(401), []string{"FAIL  sleep", "does not accept the token"}},
		"another shape":      {"/activity/sleep", say(`[1]`), []string{"FAIL  sleep", "does not have the documented form"}},
		"an item":            {"/activity/sleep", say(`{"records": [` + night + `"high"}}]}`), []string{"FAIL  sleep", "1 times: not read: score.respiratory_rate the item must have the form that the provider documents"}},
		"a value":            {"/activity/sleep", say(`{"records": [` + night + `-5}}]}`), []string{"FAIL  sleep", "1 times: sleep not stored: respiratory_rate"}},
		"a page at a circle": {"/activity/workout", say(`{"records": [], "next_token": "7"}`), []string{"FAIL  workout", "the pages of the provider do not end"}},
		"nothing":            {"/activity/workout", say(`{"records": []}`), []string{"note  workout", "no data in 30 days (requests: 1)"}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := checked(t, "whoop", double.Options{}, answers(c.path, c.answer), "-providers-config", clients(t, "secret"))
			for _, want := range c.want {
				require.Contains(t, text, want)
			}
			require.NotContains(t, text, "high")
			require.Equal(t, strings.HasPrefix(c.want[0], failure), errors.Is(err, errFailed))
		})
	}
}

// The sign-in says what is wrong with the client.
func TestSignIn_errorNamesWhatIsWrongWithTheClient(t *testing.T) {
	_, err := checked(t, "whoop", double.Options{}, same, "-providers-config", clients(t, "another"))
	require.ErrorContains(t, err, "the client id or secret may be wrong")
	require.NotContains(t, err.Error(), "another")
	no := answers("/oauth2/auth", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		http.Redirect(w, r, q.Get("redirect_uri")+"?error=access_denied&state="+q.Get("state"), http.StatusSeeOther)
	})
	_, err = checked(t, "whoop", double.Options{}, no, "-providers-config", clients(t, "secret"))
	require.ErrorContains(t, err, "the provider sent no code")
	some := answers("/oauth2/token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token": "a", "refresh_token": "b", "expires_in": 60, "scope": "offline read:profile"}`))
	})
	text, err := checked(t, "whoop", double.Options{}, func(h http.Handler) http.Handler {
		return answers("/user/profile", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"user_id": 1}`)) })(some(h))
	}, "-providers-config", clients(t, "secret"))
	require.NoError(t, err, text)
	require.Contains(t, text, "note  scopes                 not granted: read:body_measurement, read:cycles, read:recovery, read:sleep, read:workout")
	require.Contains(t, text, "note  workout                not granted: read:workout")
}

// A token of a file needs no sign-in and no client.
func TestTokenFile_replacesSignInAndClient(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("access-9\n"), 0o600))
	asked := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer access-9" {
				w.WriteHeader(http.StatusTeapot)
				return
			}
			_, _ = w.Write([]byte(`{"records": []}`))
		})
	}
	text, err := checked(t, "whoop", double.Options{}, asked, "-token-file", file)
	require.NoError(t, err, text)
	require.Contains(t, text, "note  renewal                there is no refresh token, or no client to use it")
	require.Contains(t, text, "note  sleep                  no data in 30 days")
	require.NotContains(t, text, "access-9")
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	_, err = checked(t, "whoop", double.Options{}, asked, "-token-file", file)
	require.ErrorContains(t, err, "the first line must be an access token")
	_, err = checked(t, "whoop", double.Options{}, asked, "-token-file", file+".none")
	require.ErrorContains(t, err, "no such file")
}

func TestFlags_invalidArgumentIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no provider":    {[]string{"-providers-config", "x"}, "SLUG: must be one of dexcom"},
		"other provider": {[]string{"-providers-config", "x", "fjord"}, "SLUG: must be one of dexcom"},
		"no client":      {[]string{"whoop"}, "-providers-config or -token-file is required"},
		"days":           {[]string{"-token-file", "x", "-days", "0", "whoop"}, "-days: must be 1 to 365"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, run(t.Context(), c.args, io.Discard, io.Discard), c.want)
		})
	}
	file := filepath.Join(t.TempDir(), "clients.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"oura": {"client_id": "id", "client_secret": "secret"}}`), 0o600))
	require.EqualError(t, run(t.Context(), []string{"-providers-config", file, "whoop"}, io.Discard, io.Discard), "-providers-config: whoop: is required")
}
