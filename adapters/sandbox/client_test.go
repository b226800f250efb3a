package sandbox_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/linking"
)

// A grant belongs to one client: with another one its code cannot be exchanged, and it can be
// neither renewed nor revoked.
func TestGrant_belongsToItsClient(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	c := sandbox.NewConnector("acme_band", &sandbox.ConnectorOptions{Now: func() time.Time { return now }, PushKey: []byte("ours")})
	as := func(id, secret string, details map[string]string) linking.ProviderConnector {
		own, err := c.ForClient(linking.OAuthClient{ID: id, Secret: secret, Details: details})
		require.NoError(t, err)
		return own
	}
	ours, one, two := c.Flows(), as("one", "secret 1", nil), as("two", "secret 2", nil)
	tries := 0 // each with a verifier of its own
	code := func(by linking.ProviderConnector, name string) string {
		tries++
		sum := sha256.Sum256([]byte(strconv.Itoa(tries)))
		page, err := by.OAuth.Authorize(t.Context(), linking.AuthorizeRequest{State: "s", RedirectURL: "https://x.example/", Challenge: base64.RawURLEncoding.EncodeToString(sum[:])})
		require.NoError(t, err)
		to, err := c.Approve(page, name)
		require.NoError(t, err)
		u, err := url.Parse(to)
		require.NoError(t, err)
		return u.Query().Get("code")
	}
	exchange := func(by linking.ProviderConnector, code string) (linking.Grant, error) {
		return by.OAuth.Exchange(t.Context(), linking.ExchangeRequest{Code: code, RedirectURL: "https://x.example/", Verifier: strconv.Itoa(tries)})
	}
	var over *linking.GrantError
	accounts := map[string]bool{}
	for _, by := range []linking.ProviderConnector{ours, one, two} {
		for _, other := range []linking.ProviderConnector{ours, one, two} {
			text := code(by, "ann")
			g, err := exchange(other, text)
			if g.Secret == nil {
				require.Error(t, err)
				g, err = exchange(by, text)
			}
			require.NoError(t, err)
			accounts[g.ExternalUserID] = true
			renewed := 0
			for _, any := range []linking.ProviderConnector{ours, one, two} {
				r, err := any.Refresher.Refresh(t.Context(), g.Secret)
				if err != nil {
					require.ErrorAs(t, err, &over)
					require.Error(t, any.Revoker.Revoke(t.Context(), g.Secret))
					continue
				}
				renewed++
				_, err = ours.Puller.Pull(t.Context(), linking.PullRequest{Secret: r.Secret, Resource: "steps", From: now.Add(-time.Hour), To: now, Zone: time.UTC})
				require.NoError(t, err, "data does not ask whose the grant is")
			}
			require.Equal(t, 1, renewed)
		}
	}
	require.Len(t, accounts, 1, "a person is one account, whoever asks")

	g, err := exchange(one, code(one, "bob"))
	require.NoError(t, err)
	wrong := as("one", "secret 1+refused", nil)
	_, err = exchange(wrong, code(wrong, "bob"))
	require.Error(t, err)
	_, err = wrong.Refresher.Refresh(t.Context(), g.Secret)
	require.Error(t, err)
	require.NotErrorAs(t, err, &over, "a wrong secret ends no grant")
	c.Withdraw("bob")
	_, err = one.Refresher.Refresh(t.Context(), g.Secret)
	require.ErrorAs(t, err, &over, "the person takes it back from every client")

	require.True(t, ours.ClientListener)
	require.Nil(t, one.Listener)
	require.NotNil(t, as("one", "secret 1", map[string]string{sandbox.DetailPushKey: "theirs"}).Listener)
	for _, bad := range []linking.OAuthClient{{Secret: "x"}, {ID: "x"}, {ID: "x", Secret: "x", Details: map[string]string{"color": "red"}}} {
		_, err := c.ForClient(bad)
		require.ErrorIs(t, err, healthlab.Invalid)
	}
}
