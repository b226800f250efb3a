package sandbox_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/linking"
)

// A user of the sandbox makes a provider send a message, twice, and then makes a person
// withdraw consent.
func TestControl_triggersProviderMessagesAndConsentWithdrawal(t *testing.T) {
	key := []byte("0123456789abcdef")
	band := sandbox.NewConnector("acme_band", &sandbox.ConnectorOptions{PushKey: key})
	quiet := sandbox.NewConnector("acme_ring", nil)
	var heard []linking.Notification
	inlet := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/link/push/acme_band" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		body, _ := io.ReadAll(r.Body)
		got, err := band.Listen(r.Context(), linking.Message{Method: r.Method, Header: r.Header, Query: r.URL.Query(), Body: body, At: time.Now()})
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		heard = append(heard, got.Notifications...)
		w.WriteHeader(http.StatusNoContent)
	})
	linked, ann, other := "", healthlab.UserID{UUID: uuid.New()}, healthlab.UserID{UUID: uuid.New()}
	h := sandbox.Control(map[string]linking.ProviderConnector{"acme_band": band.Flows(), "acme_ring": quiet.Flows(), "foreign": {}}, inlet,
		func(_ *http.Request, provider, account string) ([]healthlab.UserID, error) {
			require.Equal(t, "acme_band", provider)
			if account == linked {
				return []healthlab.UserID{ann}, nil
			}
			return nil, nil
		})
	send := func(path string, form url.Values) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	code, _ := send("/acme_band/withdraw", url.Values{"name": {"bob"}})
	require.Equal(t, 404, code, "no user of the team")
	code, body := send("/acme_band/push", url.Values{"name": {"ann"}, "times": {"2"}, "resource": {"steps", "sleep"}, "since": {"2026-03-01T00:00:00Z"}})
	require.Equal(t, 200, code, body)
	require.JSONEq(t, `{"statuses":[204,204]}`, body)
	require.Len(t, heard, 2)
	require.Equal(t, heard[0], heard[1], "the same message")
	in, err := band.SignIn(t.Context(), linking.PasswordRequest{Username: "ann", Password: "x"})
	require.NoError(t, err)
	linked = heard[0].ExternalUserID
	require.Equal(t, []string{"steps", "sleep"}, heard[0].Resources)
	require.Equal(t, 2026, heard[0].Since.Year())
	_, _ = send("/acme_band/push", url.Values{"name": {"ann"}})
	require.Len(t, heard, 3)
	require.NotEqual(t, heard[0].ID, heard[2].ID, "news")

	ask := linking.PullRequest{Secret: in.Grant.Secret, User: ann, Resource: "steps", From: time.Now().Add(-time.Hour), To: time.Now()}
	_, err = band.Pull(t.Context(), ask)
	require.NoError(t, err)
	code, _ = send("/acme_band/withdraw", url.Values{"name": {"ann"}})
	require.Equal(t, 204, code)
	_, err = band.Pull(t.Context(), ask)
	var over *linking.GrantError
	require.ErrorAs(t, err, &over)
	require.NotEqual(t, healthlab.Unavailable, healthlab.KindOf(err))
	theirs := ask
	theirs.User = other
	_, err = band.Pull(t.Context(), theirs)
	require.NoError(t, err, "a user of another team keeps the consent")
	in, err = band.SignIn(t.Context(), linking.PasswordRequest{Username: "ann", Password: "x"})
	require.NoError(t, err)
	ask.Secret = in.Grant.Secret
	_, err = band.Pull(t.Context(), ask)
	require.NoError(t, err, "the person signed in once more")

	for path, want := range map[string]struct {
		form url.Values
		code int
	}{
		"/foreign/push":        {url.Values{"name": {"ann"}}, 404},
		"/acme_ring/push":      {url.Values{"name": {"ann"}}, 404},
		"/moon/withdraw":       {url.Values{"name": {"ann"}}, 404},
		"/acme_band/withdraw":  {url.Values{}, 422},
		"/acme_band/push?x=1":  {url.Values{"name": {"ann"}, "times": {"101"}}, 422},
		"/acme_band/push?x=2":  {url.Values{"name": {"ann"}, "since": {"soon"}}, 422},
		"/acme_band/something": {url.Values{"name": {"ann"}}, 404},
	} {
		code, _ := send(path, want.form)
		require.Equal(t, want.code, code, path)
	}
}
