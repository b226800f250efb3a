package linking_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// renews is a provider that answers as it is told.
type renews func(secret string) (linking.Renewal, error)

func (f renews) Refresh(_ context.Context, secret []byte) (linking.Renewal, error) {
	return f(string(secret))
}

// linked connects the person, who signs in with a name, and returns a credential refresher.
func (p *place) linked(r linking.Refresher, opts linking.CredentialRefresherOptions) *linking.CredentialRefresher {
	p.t.Helper()
	seal := sealer(p.t, "a", map[string][]byte{"a": key(1)})
	s := p.service(seal, linking.Options{}, key(2))
	issued, err := s.CreateToken(p.t.Context(), team, linking.NewToken{User: p.user})
	require.NoError(p.t, err)
	_, err = s.SignIn(p.t.Context(), issued.Token, linking.PasswordSignIn{Provider: "acme_scale", Username: "ann", Password: "correct horse"})
	require.NoError(p.t, err)
	got, err := s.CompleteMFA(p.t.Context(), issued.Token, "acme_scale", "123456")
	require.NoError(p.t, err)
	require.Equal(p.t, linking.ResultSuccess, got.State)
	opts.Now = p.clock
	k, err := linking.NewCredentialRefresher(p.store.Credentials(), p.health, map[string]linking.ProviderConnector{"acme_scale": {Refresher: r}}, seal, &opts)
	require.NoError(p.t, err)
	return k
}

func (p *place) secret(k *linking.CredentialRefresher) (linking.GrantSecret, error) {
	return k.Secret(p.t.Context(), team, p.user, "acme_scale")
}

func (p *place) status() healthdata.ConnectionStatus {
	p.t.Helper()
	list, err := p.health.Connections().List(p.t.Context(), team, p.user)
	require.NoError(p.t, err)
	return list[0].Status
}

// hint is an outage that says when it is over.
type hint struct{ time.Duration }

func (hint) Error() string               { return "429" }
func (h hint) RetryAfter() time.Duration { return h.Duration }

func TestNewCredentialRefresher_refusesMissingOrInvalidOptions(t *testing.T) {
	p := newPlace(t)
	seal := sealer(t, "a", map[string][]byte{"a": key(1)})
	for name, err := range map[string]error{
		"no store":    second(linking.NewCredentialRefresher(nil, p.health, nil, seal, nil)),
		"no users":    second(linking.NewCredentialRefresher(p.store.Credentials(), nil, nil, seal, nil)),
		"no sealer":   second(linking.NewCredentialRefresher(p.store.Credentials(), p.health, nil, nil, nil)),
		"short lease": second(linking.NewCredentialRefresher(p.store.Credentials(), p.health, nil, seal, &linking.CredentialRefresherOptions{Timeout: time.Minute, Lease: 2 * time.Minute})),
	} {
		require.ErrorIs(t, err, healthlab.Invalid, name)
	}
}

func TestRenew_withoutARefresherFailsTheConnection(t *testing.T) {
	p := newPlace(t)
	k := p.linked(nil, linking.CredentialRefresherOptions{})
	a, err := p.secret(k)
	require.NoError(t, err)
	require.NotEmpty(t, a.Secret)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", a, a, a), string(a.Secret))

	_, err = k.Renew(t.Context(), team, p.user, "acme_scale", a)
	var over *linking.GrantError
	require.ErrorAs(t, err, &over, "nobody can renew it")
	require.Equal(t, healthdata.FailureCredential, over.Type)
	require.Equal(t, healthdata.ConnectionError, p.status())
}

func TestRenew_returnsANewerSecretWithoutCallingTheProvider(t *testing.T) {
	p := newPlace(t)
	calls := 0
	k := p.linked(renews(func(s string) (linking.Renewal, error) {
		calls++
		return linking.Renewal{Secret: []byte(s + "+"), ExpiresAt: p.now.Add(time.Hour)}, nil
	}), linking.CredentialRefresherOptions{})
	first, err := p.secret(k)
	require.NoError(t, err)
	require.Zero(t, calls)
	newer, err := k.Renew(t.Context(), team, p.user, "acme_scale", first)
	require.NoError(t, err)
	require.Equal(t, string(first.Secret)+"+", string(newer.Secret))
	again, err := k.Renew(t.Context(), team, p.user, "acme_scale", first)
	require.NoError(t, err)
	require.Equal(t, newer, again)
	require.Equal(t, 1, calls)

	p.now = p.now.Add(59*time.Minute - time.Microsecond)
	_, err = p.secret(k)
	require.NoError(t, err)
	require.Equal(t, 1, calls)
	p.now = p.now.Add(time.Microsecond)
	_, err = p.secret(k)
	require.NoError(t, err)
	require.Equal(t, 2, calls, "a minute ahead")
}

func TestRenew_outageKeepsTheConnectionAndWaitsLonger(t *testing.T) {
	p := newPlace(t)
	calls, fault := 0, errors.New("502")
	k := p.linked(renews(func(s string) (linking.Renewal, error) {
		calls++
		return linking.Renewal{Secret: []byte("new"), ExpiresAt: p.now.Add(time.Hour)}, fault
	}), linking.CredentialRefresherOptions{})
	a, err := p.secret(k)
	require.NoError(t, err)
	renew := func() error { return second(k.Renew(t.Context(), team, p.user, "acme_scale", a)) }
	for i, want := range []int{5, 10, 20, 40, 80, 160, 320, 640, 900, 900} {
		var later *linking.RetryLaterError
		require.ErrorAs(t, renew(), &later)
		require.ErrorIs(t, renew(), healthlab.Unavailable)
		require.Equal(t, time.Duration(want)*time.Second, later.RetryAfter())
		require.Equal(t, i+1, calls, "nobody asks before the time")
		p.now = p.now.Add(later.Wait)
	}
	var later *linking.RetryLaterError
	fault = hint{7 * time.Minute}
	require.ErrorAs(t, renew(), &later)
	require.Equal(t, 7*time.Minute, later.Wait)
	p.now = p.now.Add(later.Wait)
	fault = hint{7 * time.Hour}
	require.ErrorAs(t, renew(), &later)
	require.Equal(t, 15*time.Minute, later.Wait, "nobody waits longer")
	require.Equal(t, healthdata.Connected, p.status())
	p.now = p.now.Add(later.Wait)
	fault = nil
	require.NoError(t, renew())
}

func TestRenew_emptyAnswerIsTreatedAsAnOutage(t *testing.T) {
	p := newPlace(t)
	k := p.linked(renews(func(string) (linking.Renewal, error) { return linking.Renewal{}, nil }), linking.CredentialRefresherOptions{})
	a, err := p.secret(k)
	require.NoError(t, err)
	require.ErrorIs(t, second(k.Renew(t.Context(), team, p.user, "acme_scale", a)), healthlab.Unavailable)
	require.Equal(t, healthdata.Connected, p.status())

	k = p.linked(renews(func(string) (linking.Renewal, error) { panic("a bug") }), linking.CredentialRefresherOptions{})
	a, err = p.secret(k)
	require.NoError(t, err)
	require.Error(t, second(k.Renew(t.Context(), team, p.user, "acme_scale", a)))
	require.Equal(t, healthdata.Connected, p.status())
}

func TestRenew_refusedSecretIsRetriedWithThePreviousOne(t *testing.T) {
	p := newPlace(t)
	back := false // the provider was set back by one rotation
	var asked []string
	k := p.linked(renews(func(s string) (linking.Renewal, error) {
		asked = append(asked, s)
		if back && len(asked)%2 == 0 {
			return linking.Renewal{}, &linking.GrantError{}
		}
		return linking.Renewal{Secret: []byte("v" + fmt.Sprint(len(asked)))}, nil
	}), linking.CredentialRefresherOptions{})
	a, err := p.secret(k)
	require.NoError(t, err)
	b, err := k.Renew(t.Context(), team, p.user, "acme_scale", a)
	require.NoError(t, err)
	back = true
	c, err := k.Renew(t.Context(), team, p.user, "acme_scale", b)
	require.NoError(t, err)
	require.Equal(t, "v3", string(c.Secret))
	require.Equal(t, []string{string(a.Secret), "v1", string(a.Secret)}, asked)
}

func TestFail_withASecretFromBeforeARelinkIsIgnored(t *testing.T) {
	p := newPlace(t)
	k := p.linked(nil, linking.CredentialRefresherOptions{})
	old, err := p.secret(k)
	require.NoError(t, err)
	k = p.linked(nil, linking.CredentialRefresherOptions{}) // once more
	require.NoError(t, k.Fail(t.Context(), team, p.user, "acme_scale", old, &linking.GrantError{}))
	require.Equal(t, healthdata.Connected, p.status())
	now, err := p.secret(k)
	require.NoError(t, err)
	require.NoError(t, k.Fail(t.Context(), team, p.user, "acme_scale", now, &linking.GrantError{Type: healthdata.FailureUserNotFound}))
	require.Equal(t, healthdata.ConnectionError, p.status())
	require.NoError(t, k.Fail(t.Context(), team, p.user, "acme_scale", now, &linking.GrantError{}))
}

// If a provider's access tokens expire at once, each use renews the token once and does not
// loop.
func TestRenew_instantlyExpiredSecretIsRenewedOncePerUse(t *testing.T) {
	p := newPlace(t)
	for _, life := range []time.Duration{-time.Hour, 0, 30 * time.Second} {
		calls := 0
		k := p.linked(renews(func(s string) (linking.Renewal, error) {
			if calls++; calls > 10 {
				return linking.Renewal{}, errors.New("enough")
			}
			return linking.Renewal{Secret: []byte(s + "+"), ExpiresAt: p.now.Add(life)}, nil
		}), linking.CredentialRefresherOptions{})
		first, err := p.secret(k)
		require.NoError(t, err)
		newer, err := k.Renew(t.Context(), team, p.user, "acme_scale", first)
		require.NoError(t, err)
		require.Equal(t, string(first.Secret)+"+", string(newer.Secret))
		require.Equal(t, 1, calls, life)
		newest, err := p.secret(k)
		require.NoError(t, err)
		require.Equal(t, string(newer.Secret)+"+", string(newest.Secret))
		require.Equal(t, 2, calls, life)
	}
}
