package linking_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// installed are phones with the app on them.
type installed struct {
	*linking.Apps
	t      *testing.T
	now    time.Time
	team   healthlab.TeamID
	ann    healthlab.UserID
	health *healthdata.Service
}

func newInstalled(t *testing.T) *installed {
	t.Helper()
	p := &installed{t: t, now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC), team: healthlab.TeamID{UUID: uuid.New()}}
	clock := func() time.Time { return p.now }
	store := memory.New(&memory.Options{Now: clock})
	providers, err := healthdata.NewProviders(nil)
	require.NoError(t, err)
	p.health, err = healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox, Now: clock})
	require.NoError(t, err)
	ann, err := p.health.CreateUser(t.Context(), p.team, healthdata.NewUser{ClientUserID: "patient-17"})
	require.NoError(t, err)
	p.ann = ann.ID
	p.Apps, err = linking.NewApps(store.Apps(), p.health, bytes.Repeat([]byte{7}, 32), &linking.AppOptions{Now: clock})
	require.NoError(t, err)
	return p
}

func (p *installed) invited() string {
	p.t.Helper()
	issued, err := p.Invite(p.t.Context(), p.team, p.ann)
	require.NoError(p.t, err)
	require.Equal(p.t, p.ann, issued.UserID)
	return issued.Token
}

func (p *installed) signedIn() linking.UserTokens {
	p.t.Helper()
	got, err := p.SignIn(p.t.Context(), p.invited())
	require.NoError(p.t, err)
	return got
}

// refreshed spends a refresh token, which must work.
func (p *installed) refreshed(token string) linking.UserTokens {
	p.t.Helper()
	got, err := p.Refresh(p.t.Context(), token)
	require.NoError(p.t, err)
	require.Equal(p.t, p.ann, got.UserID)
	require.NotEqual(p.t, token, got.RefreshToken)
	p.works(got.AccessToken)
	return got
}

func (p *installed) works(access string) {
	p.t.Helper()
	team, user, err := p.Authenticate(p.t.Context(), access)
	require.NoError(p.t, err)
	require.Equal(p.t, p.team, team)
	require.Equal(p.t, p.ann, user)
}

func (p *installed) refused(rule string, err error) {
	p.t.Helper()
	require.ErrorIs(p.t, err, healthlab.Unauthenticated)
	var broken *healthlab.RuleError
	require.ErrorAs(p.t, err, &broken)
	require.Equal(p.t, rule, broken.Type)
}

func (p *installed) signedOut(tokens linking.UserTokens) {
	p.t.Helper()
	_, _, err := p.Authenticate(p.t.Context(), tokens.AccessToken)
	p.refused(linking.RuleInvalidAccessToken, err)
	_, err = p.Refresh(p.t.Context(), tokens.RefreshToken)
	p.refused(linking.RuleInvalidRefreshToken, err)
}

func TestSignInToken_worksOnceAndExpires(t *testing.T) {
	p := newInstalled(t)
	token := p.invited()
	var wg sync.WaitGroup
	var mu sync.Mutex
	worked := 0
	for range 8 {
		wg.Go(func() {
			if _, err := p.SignIn(t.Context(), token); err == nil {
				mu.Lock()
				worked++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, worked)

	late := p.invited()
	p.now = p.now.Add(10 * time.Minute)
	_, err := p.SignIn(t.Context(), late)
	p.refused(linking.RuleInvalidSignInToken, err)
	_, err = p.Invite(t.Context(), p.team, healthlab.UserID{UUID: uuid.New()})
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = p.Invite(t.Context(), healthlab.TeamID{UUID: uuid.New()}, p.ann)
	require.ErrorIs(t, err, healthlab.NotFound, "another team's user")
}

func TestAppTokens_ofOneKindAreRefusedAsAnother(t *testing.T) {
	p := newInstalled(t)
	issued, tokens := p.invited(), p.signedIn()
	body := func(token string) string { return token[4:] }
	for _, token := range []string{"", "x", issued, tokens.AccessToken, tokens.RefreshToken, "uat_" + body(tokens.RefreshToken), "urt_" + body(tokens.AccessToken), "uis_" + body(tokens.RefreshToken), tokens.AccessToken + "A", strings.ToLower(tokens.AccessToken)} {
		if token != tokens.AccessToken {
			_, _, err := p.Authenticate(t.Context(), token)
			p.refused(linking.RuleInvalidAccessToken, err)
		}
		if token != issued {
			_, err := p.SignIn(t.Context(), token)
			p.refused(linking.RuleInvalidSignInToken, err)
		}
	}
	p.works(tokens.AccessToken)
	for _, text := range []string{fmt.Sprint(tokens), fmt.Sprintf("%#v", tokens), tokens.LogValue().String()} {
		require.NotContains(t, text, body(tokens.AccessToken))
		require.NotContains(t, text, body(tokens.RefreshToken))
	}
}

func TestAccessToken_expiresAfterAnHour(t *testing.T) {
	p := newInstalled(t)
	tokens := p.signedIn()
	require.Equal(t, 3600, tokens.ExpiresIn)
	p.now = p.now.Add(time.Hour - time.Second)
	p.works(tokens.AccessToken)
	p.now = p.now.Add(time.Second)
	_, _, err := p.Authenticate(t.Context(), tokens.AccessToken)
	p.refused(linking.RuleInvalidAccessToken, err)
	// A phone that lay in a drawer is still signed in.
	p.now = p.now.AddDate(2, 0, 0)
	p.refreshed(tokens.RefreshToken)
}

func TestRefresh_concurrentCallersGetTheSameToken(t *testing.T) {
	p := newInstalled(t)
	first := p.signedIn()
	var wg sync.WaitGroup
	got := make([]linking.UserTokens, 8)
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = p.Refresh(t.Context(), first.RefreshToken); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, g := range got {
		require.Equal(t, got[0].RefreshToken, g.RefreshToken)
		p.works(g.AccessToken)
	}
	p.refreshed(got[0].RefreshToken)
}

// If the answer to a refresh is lost, the app can refresh again with the same token.
func TestRefresh_succeedsAgainIfTheAnswerWasLost(t *testing.T) {
	p := newInstalled(t)
	first := p.signedIn()
	lost := p.refreshed(first.RefreshToken)
	p.now = p.now.Add(3 * time.Hour)
	again := p.refreshed(first.RefreshToken)
	require.NotEqual(t, lost.RefreshToken, again.RefreshToken)
	next := p.refreshed(again.RefreshToken)

	// The lost token is in other hands: it is refused, and the session ends.
	_, err := p.Refresh(t.Context(), lost.RefreshToken)
	p.refused(linking.RuleInvalidRefreshToken, err)
	p.signedOut(next)
}

func TestRefresh_reusedTokenEndsTheSession(t *testing.T) {
	p := newInstalled(t)
	other := p.signedIn()
	first := p.signedIn()
	second := p.refreshed(first.RefreshToken)
	third := p.refreshed(second.RefreshToken)
	_, err := p.Refresh(t.Context(), first.RefreshToken)
	p.refused(linking.RuleInvalidRefreshToken, err)
	p.signedOut(third)
	p.works(other.AccessToken)
}

func TestRefresh_forgedTokenEndsNoSession(t *testing.T) {
	p := newInstalled(t)
	forged := func(token string, from int) string {
		b, err := base64.RawURLEncoding.DecodeString(token[4:])
		require.NoError(t, err)
		for i := range b[from:] {
			b[from+i] ^= 0x55
		}
		return "urt_" + base64.RawURLEncoding.EncodeToString(b)
	}
	first := p.signedIn()
	second := p.refreshed(first.RefreshToken)
	third := p.refreshed(second.RefreshToken)
	// All tokens say in clear of which team and session they are; what follows is secret.
	for _, token := range []string{first.AccessToken, third.AccessToken, first.RefreshToken, third.RefreshToken} {
		for _, from := range []int{32, 48, 63} {
			_, err := p.Refresh(t.Context(), forged(token, from))
			p.refused(linking.RuleInvalidRefreshToken, err)
		}
	}
	_, err := p.Refresh(t.Context(), "urt_"+third.AccessToken[4:])
	p.refused(linking.RuleInvalidRefreshToken, err)
	// One that was spent in another session is none of this one.
	spent, err := base64.RawURLEncoding.DecodeString(first.RefreshToken[4:])
	require.NoError(t, err)
	other := p.signedIn()
	mixed, err := base64.RawURLEncoding.DecodeString(other.AccessToken[4:])
	require.NoError(t, err)
	copy(mixed[32:], spent[32:])
	_, err = p.Refresh(t.Context(), "urt_"+base64.RawURLEncoding.EncodeToString(mixed))
	p.refused(linking.RuleInvalidRefreshToken, err)
	p.refreshed(other.RefreshToken)
	p.works(third.AccessToken)
	p.refreshed(third.RefreshToken)

	issued := p.invited()
	_, err = p.Refresh(t.Context(), forged(issued, 32))
	p.refused(linking.RuleInvalidRefreshToken, err)
	_, err = p.SignIn(t.Context(), issued)
	require.NoError(t, err, "the invitation is there")
}

func TestSignOut_endsOneSessionOrAllOfAUser(t *testing.T) {
	p := newInstalled(t)
	phone, tablet, watch := p.signedIn(), p.signedIn(), p.invited()
	require.NoError(t, p.SignOut(t.Context(), "urt_nothing"))
	require.NoError(t, p.SignOut(t.Context(), phone.RefreshToken))
	require.NoError(t, p.SignOut(t.Context(), phone.RefreshToken))
	p.signedOut(phone)
	p.works(tablet.AccessToken)
	n, err := p.SignOutUser(t.Context(), p.team, p.ann)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	p.signedOut(tablet)
	_, err = p.SignIn(t.Context(), watch)
	p.refused(linking.RuleInvalidSignInToken, err)
	_, err = p.SignOutUser(t.Context(), healthlab.TeamID{UUID: uuid.New()}, p.ann)
	require.ErrorIs(t, err, healthlab.NotFound)
}

func TestDeleteUser_endsTheUsersAppSessions(t *testing.T) {
	p := newInstalled(t)
	tokens, invited := p.signedIn(), p.invited()
	require.NoError(t, p.health.Deletions().Delete(t.Context(), p.team, p.ann))
	p.signedOut(tokens)
	_, err := p.SignIn(t.Context(), invited)
	p.refused(linking.RuleInvalidSignInToken, err)
}

func TestNewApps_requiresAStoreAndAKeyOf32Bytes(t *testing.T) {
	p := newInstalled(t)
	_, err := linking.NewApps(memory.New(nil).Apps(), p.health, make([]byte, 31), nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = linking.NewApps(nil, p.health, make([]byte, 32), nil)
	require.ErrorIs(t, err, healthlab.Invalid)
}

func ExampleApps() {
	ctx := context.Background()
	team := healthlab.TeamID{UUID: uuid.New()}
	store := memory.New(nil)
	providers, _ := healthdata.NewProviders(nil)
	health, _ := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	ann, _ := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "patient-17"})
	apps, _ := linking.NewApps(store.Apps(), health, bytes.Repeat([]byte{7}, 32), nil) // 32 random bytes

	// Ann signs in at her clinic's own server, which asks for a token and hands it to the app.
	issued, _ := apps.Invite(ctx, team, ann.ID)

	// The app exchanges it once, and is signed in from then on.
	tokens, _ := apps.SignIn(ctx, issued.Token)
	_, user, _ := apps.Authenticate(ctx, tokens.AccessToken)
	fmt.Println("acts for Ann:", user == ann.ID, "for", tokens.ExpiresIn, "seconds")
	_, err := apps.SignIn(ctx, issued.Token)
	fmt.Println(err)

	// Now and then it asks for new ones. A copy of a token that was spent ends it all.
	newer, _ := apps.Refresh(ctx, tokens.RefreshToken)
	newest, _ := apps.Refresh(ctx, newer.RefreshToken)
	_, err = apps.Refresh(ctx, tokens.RefreshToken)
	fmt.Println(err)
	_, _, err = apps.Authenticate(ctx, newest.AccessToken)
	fmt.Println(err)
	// Output:
	// acts for Ann: true for 3600 seconds
	// sign in app: INVALID_SIGN_IN_TOKEN: the sign-in token is unknown, has expired or was used
	// refresh app: INVALID_REFRESH_TOKEN: invalid refresh token: the app is signed out; create a new sign-in token for the user
	// access of app: INVALID_ACCESS_TOKEN: the access token is unknown or has expired
}
