package linking_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/mock/gomock"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/linkingmock"
)

var team = healthlab.TeamID{UUID: uuid.MustParse("8f14e45f-ceea-467f-9b1c-3d4a0a1b2c3d")}

func key(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

// place is what services are made on.
type place struct {
	t      *testing.T
	store  *memory.Store
	health *healthdata.Service
	user   healthlab.UserID
	now    time.Time
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, now: noon}
	p.store = memory.New(&memory.Options{Now: p.clock})
	providers, err := healthdata.NewProviders([]healthdata.Provider{
		{Slug: "acme_scale", Name: "Scale", AuthType: "password", Category: "device", Class: "cloud"},
	})
	require.NoError(t, err)
	p.health, err = healthdata.New(p.store.Users(), p.store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox, Now: p.clock})
	require.NoError(t, err)
	u, err := p.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "ann"})
	require.NoError(t, err)
	p.user = u.ID
	return p
}

func (p *place) clock() time.Time { return p.now }

func (p *place) service(seal healthlab.Sealer, opts linking.Options, keys ...[]byte) *linking.Service {
	p.t.Helper()
	opts.Now = p.clock
	revoker := linkingmock.NewMockRevoker(gomock.NewController(p.t))
	revoker.EXPECT().Revoke(gomock.Any(), gomock.Any()).Return(errors.New("no answer")).AnyTimes()
	opts.Environment = cmp.Or(opts.Environment, healthlab.Sandbox)
	opts.SigningKeys = keys
	s, err := linking.New(p.store.Linking(), p.health, map[string]linking.ProviderConnector{"acme_scale": {Password: scale{}, Revoker: revoker}}, seal, &opts)
	require.NoError(p.t, err)
	return s
}

func sealer(t *testing.T, current string, keys map[string][]byte) *healthlab.AESSealer {
	t.Helper()
	s, err := healthlab.NewAESSealer(current, keys)
	require.NoError(t, err)
	return s
}

func TestNew_refusesMissingOrInvalidOptions(t *testing.T) {
	p := newPlace(t)
	seal := sealer(t, "a", map[string][]byte{"a": key(1)})
	store := p.store.Linking()
	for name, err := range map[string]error{
		"no store":         second(linking.New(nil, p.health, nil, seal, &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{key(2)}})),
		"no users":         second(linking.New(store, nil, nil, seal, &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{key(2)}})),
		"no sealer":        second(linking.New(store, p.health, nil, nil, &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{key(2)}})),
		"no options":       second(linking.New(store, p.health, nil, seal, nil)),
		"no environment":   second(linking.New(store, p.health, nil, seal, &linking.Options{SigningKeys: [][]byte{key(2)}})),
		"no key":           second(linking.New(store, p.health, nil, seal, &linking.Options{Environment: healthlab.Sandbox})),
		"short key":        second(linking.New(store, p.health, nil, seal, &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{key(2), key(2)[:31]}})),
		"unknown provider": second(linking.New(store, p.health, map[string]linking.ProviderConnector{"x": {}}, seal, &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{key(2)}})),
		"unknown region":   second(linking.New(store, p.health, nil, seal, &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{key(2)}, Region: "mars"})),
	} {
		require.ErrorIs(t, err, healthlab.Invalid, name)
	}
}

func second[T any](_ T, err error) error { return err }

func TestToken_ofAnotherServiceOrForgedIsInvalid(t *testing.T) {
	p := newPlace(t)
	seal := sealer(t, "a", map[string][]byte{"a": key(1)})
	here := p.service(seal, linking.Options{}, key(2))
	issued, err := here.CreateToken(t.Context(), team, linking.NewToken{User: p.user})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(issued.Token), 43, "256 random bits alone are 43 characters")
	for name, other := range map[string]*linking.Service{
		"another key":      p.service(seal, linking.Options{}, key(3)),
		"another audience": p.service(seal, linking.Options{BaseURL: "https://api.example"}, key(2)),
	} {
		_, err := other.Open(t.Context(), issued.Token)
		requireLinkError(t, linking.InvalidToken, err, name)
	}
	_, err = p.service(seal, linking.Options{}, key(4), key(2)).Open(t.Context(), issued.Token)
	require.NoError(t, err, "the key was rotated")

	// A key that leaked does not help: a token must be one that was handed out.
	parts := strings.Split(issued.Token, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	at := bytes.Index(payload, []byte(`"jti":"`)) + len(`"jti":"`)
	require.Positive(t, at)
	payload[at] ^= 1
	body := parts[0] + "." + base64.RawURLEncoding.EncodeToString(payload)
	m := hmac.New(sha256.New, key(2))
	m.Write([]byte(body))
	_, err = here.Open(t.Context(), body+"."+base64.RawURLEncoding.EncodeToString(m.Sum(nil)))
	requireLinkError(t, linking.InvalidToken, err, "signed with our key, of a session that is there")
}

func requireLinkError(t *testing.T, want linking.ErrorType, err error, why string) {
	t.Helper()
	var e *linking.Error
	require.ErrorAs(t, err, &e, why)
	require.Equal(t, want, e.Type, why)
}

func TestToken_expiresAfterAnHour(t *testing.T) {
	p := newPlace(t)
	s := p.service(sealer(t, "a", map[string][]byte{"a": key(1)}), linking.Options{}, key(2))
	issued, err := s.CreateToken(t.Context(), team, linking.NewToken{User: p.user})
	require.NoError(t, err)
	p.now = noon.Add(time.Hour - time.Microsecond)
	_, err = s.Open(t.Context(), issued.Token)
	require.NoError(t, err)
	p.now = noon.Add(time.Hour)
	x, err := s.Open(t.Context(), issued.Token)
	requireLinkError(t, linking.TokenExpired, err, "at its end")
	require.Equal(t, linking.StateExpired, x.State)
	x, err = p.store.Linking().Session(t.Context(), team, issued.Session)
	require.NoError(t, err)
	require.Equal(t, linking.StateExpired, x.State, "it is recorded")
}

func TestClose_redirectsWithUserCancelled(t *testing.T) {
	p := newPlace(t)
	s := p.service(sealer(t, "a", map[string][]byte{"a": key(1)}), linking.Options{}, key(2))
	issued, err := s.CreateToken(t.Context(), team, linking.NewToken{User: p.user, RedirectURL: "https://app.example/?visit=7", OnClose: "redirect"})
	require.NoError(t, err)
	for range 2 { // a second click changes nothing
		r, err := s.Close(t.Context(), issued.Token)
		require.NoError(t, err)
		require.Contains(t, r.Location, "https://app.example/?visit=7&state=error&error_type=user_cancelled&error=")
	}
	r, err := s.SignIn(t.Context(), issued.Token, linking.PasswordSignIn{Provider: "acme_scale", Username: "ann", Password: "correct horse"})
	require.NoError(t, err)
	require.Equal(t, linking.ResultPending, r.State, "opening them again goes on")
}

// If a person closes the pages while the provider answers, nothing is connected.
func TestClose_duringASignInConnectsNothing(t *testing.T) {
	p := newPlace(t)
	seal := sealer(t, "a", map[string][]byte{"a": key(1)})
	var s *linking.Service
	var token string
	flow := during(func() {
		_, err := s.Close(t.Context(), token)
		require.NoError(t, err)
	})
	s, err := linking.New(p.store.Linking(), p.health, map[string]linking.ProviderConnector{"acme_scale": {Password: flow}}, seal, &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{key(2)}, Now: p.clock})
	require.NoError(t, err)
	issued, err := s.CreateToken(t.Context(), team, linking.NewToken{User: p.user})
	require.NoError(t, err)
	token = issued.Token
	r, err := s.SignIn(t.Context(), token, linking.PasswordSignIn{Provider: "acme_scale", Username: "ann", Password: "x"})
	require.NoError(t, err)
	require.Equal(t, linking.TokenNotValidated, r.Error)
	list, err := p.health.Connections().List(t.Context(), team, p.user)
	require.NoError(t, err)
	require.Empty(t, list)
}

// during is a sign-in that runs a function before it succeeds.
type during func()

func (d during) SignIn(context.Context, linking.PasswordRequest) (linking.PasswordResponse, error) {
	d()
	return linking.PasswordResponse{}, nil
}

func (d during) CompleteMFA(context.Context, linking.MFARequest) (linking.Grant, error) {
	return linking.Grant{}, healthlab.Unimplemented
}

func TestSecrets_areSealedAndReadableAfterAKeyRotation(t *testing.T) {
	p := newPlace(t)
	old := sealer(t, "2025", map[string][]byte{"2025": key(1)})
	s := p.service(old, linking.Options{}, key(2))
	issued, err := s.CreateToken(t.Context(), team, linking.NewToken{User: p.user})
	require.NoError(t, err)
	_, err = s.SignIn(t.Context(), issued.Token, linking.PasswordSignIn{Provider: "acme_scale", Username: "ann", Password: "correct horse"})
	require.NoError(t, err)
	r, err := s.CompleteMFA(t.Context(), issued.Token, "acme_scale", "123456")
	require.NoError(t, err)
	require.Equal(t, linking.ResultSuccess, r.State)
	kept, err := p.store.Linking().Credential(t.Context(), team, p.user, "acme_scale")
	require.NoError(t, err)
	require.Equal(t, "2025", kept.Secret.KeyID)
	require.NotContains(t, string(kept.Secret.Box), "access token")

	read := func(seal healthlab.Sealer) ([]byte, error) {
		return p.service(seal, linking.Options{}, key(2)).Secret(t.Context(), team, p.user, "acme_scale")
	}
	secret, err := read(sealer(t, "2026", map[string][]byte{"2026": key(7), "2025": key(1)}))
	require.NoError(t, err)
	require.Equal(t, "access token", string(secret), "the key was rotated")
	_, err = read(sealer(t, "2026", map[string][]byte{"2026": key(7)}))
	require.ErrorIs(t, err, healthlab.Unavailable, "the old key is gone")
	_, err = read(sealer(t, "2025", map[string][]byte{"2025": key(9)}))
	require.ErrorIs(t, err, healthlab.Invalid, "another key of that name")

	// The provider does not answer; it is disconnected all the same.
	require.NoError(t, s.Disconnect(t.Context(), team, p.user, "acme_scale"))
	_, err = read(old)
	require.ErrorIs(t, err, healthlab.NotFound)
}

// Printed and logged values show no secret and nothing of a person.
func TestPrint_containsNoSecretOrPersonalValue(t *testing.T) {
	const mark = "Zq7Marker"
	ext := mark
	values := []any{
		linking.Code{Text: mark}, linking.IssuedCode{Code: mark, ExchangeURL: mark}, linking.IssuedToken{Token: mark, WebURL: mark},
		linking.Session{Pending: healthlab.Sealed{Box: []byte(mark)}, Challenge: linking.Challenge{Hint: mark}, Options: linking.NewToken{RedirectURL: mark}},
		linking.PasswordSignIn{Username: mark, Password: mark}, linking.EmailSignIn{Email: mark},
		linking.PasswordRequest{Username: mark, Password: mark}, linking.Grant{ExternalUserID: mark, Secret: []byte(mark)},
		linking.AuthorizeRequest{State: mark}, linking.ExchangeRequest{Code: mark, Verifier: mark}, linking.MFARequest{Code: mark},
		linking.EmailRequest{Email: mark}, linking.Challenge{Hint: mark}, linking.Callback{State: mark, Code: mark, Browser: mark}, linking.OAuthSignIn{Browser: mark}, linking.Authorization{URL: mark},
		linking.PasswordResponse{Notes: []byte(mark), Grant: linking.Grant{ExternalUserID: mark}},
		linking.Result{RedirectURL: mark, Location: mark, ExternalUserID: &ext, Challenge: &linking.Challenge{Hint: mark}},
		&linking.Error{Type: linking.ProviderAPIError, Cause: errors.New(mark)}, sealer(t, "a", map[string][]byte{"a": []byte(strings.Repeat(mark, 4)[:32])}),
	}
	for _, v := range values {
		var b strings.Builder
		slog.New(slog.NewTextHandler(&b, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "v", v)
		for _, said := range []string{fmt.Sprint(v), fmt.Sprintf("%+v", v), fmt.Sprintf("%#v", v), b.String()} {
			require.NotContains(t, said, mark, "%T", v)
		}
	}
	var b strings.Builder
	log := slog.New(slog.NewTextHandler(&b, nil))
	for _, v := range []any{
		linking.NewToken{RedirectURL: mark}, linking.Credential{Secret: healthlab.Sealed{Box: []byte(mark)}}, healthdata.NewConnection{ExternalUserID: &ext},
	} {
		log.Info("x", "v", v)
	}
	require.NotContains(t, b.String(), mark)
}
