package sandbox_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// A person at the provider's page, as a browser sees it.
func TestSignInPage_allowsAndDeniesLikeAProvider(t *testing.T) {
	d := newFixture(t)
	page := sandbox.SignInPage("http://localhost:8080/v2/link/connect")
	ask := func(method, query string, form url.Values) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "/sign-in?"+query, strings.NewReader(form.Encode()))
		if method == http.MethodPost {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		return w
	}
	query := func(token string) string {
		u, err := url.Parse(d.page(token, "acme_band"))
		require.NoError(t, err)
		return u.RawQuery
	}
	_, token := d.user("ann")
	q := query(token)
	shown := ask(http.MethodGet, q, nil)
	require.Equal(t, http.StatusOK, shown.Code)
	for _, want := range []string{"Sandbox sign-in", `value="sleep" checked`, `value="move" checked`, "+refused", "frame-ancestors 'none'"} {
		require.Contains(t, shown.Body.String()+shown.Header().Get("Content-Security-Policy"), want)
	}
	for answer, want := range map[string]struct {
		form url.Values
		then linking.ErrorType
	}{
		"no":               {url.Values{"answer": {"deny"}}, linking.ProviderCredentialError},
		"nothing":          {url.Values{}, linking.ProviderCredentialError},
		"yes, and refused": {url.Values{"answer": {"allow"}, "name": {"ann+refused"}}, linking.ProviderCredentialError},
		"yes, and down":    {url.Values{"answer": {"allow"}, "name": {"ann+down"}}, linking.ProviderAPIError},
	} {
		w := ask(http.MethodPost, query(token), want.form)
		require.Equal(t, http.StatusSeeOther, w.Code, answer)
		require.Equal(t, want.then, d.returns(w.Header().Get("Location"), nil).Error, answer)
	}
	user, token := d.user("bob")
	w := ask(http.MethodPost, query(token), url.Values{"answer": {"allow"}, "name": {"bob"}, "scope": {"sleep"}})
	require.Equal(t, linking.ResultSuccess, d.returns(w.Header().Get("Location"), nil).State)
	require.Equal(t, healthdata.Unavailable, d.connection(user).ResourceAvailability["steps"].Status, "only what was ticked is granted")

	// The page redirects to no other address.
	for _, bad := range []string{
		"", "response_type=code", "response_type=token&redirect_uri=http://localhost:8080/v2/link/connect/x", "response_type=code&redirect_uri=https://evil.example/",
		"response_type=code&redirect_uri=http://localhost:8080/v2/link/connectevil", "response_type=code&redirect_uri=http://localhost:8080.evil.example/v2/link/connect/x",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			require.Equal(t, http.StatusBadRequest, ask(method, bad, url.Values{"answer": {"allow"}}).Code, bad)
		}
	}
	require.Equal(t, http.StatusBadRequest, ask(http.MethodPost, q, url.Values{"name": {strings.Repeat("x", 70<<10)}}).Code)
}
