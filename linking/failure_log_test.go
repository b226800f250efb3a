package linking_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

// failingScale fails each sign-in.
type failingScale struct {
	scale
	err func() error
}

func (s failingScale) SignIn(context.Context, linking.PasswordRequest) (linking.PasswordResponse, error) {
	return linking.PasswordResponse{}, s.err()
}

// A failure of a provider is logged with the provider, the session and the cause, the first of a
// kind at WARN. A person who left is no failure, and neither is a mistake of the person.
func TestSignIn_providerFailureIsLoggedAndAUserErrorIsNot(t *testing.T) {
	p := newPlace(t)
	var logs bytes.Buffer
	ctx := t.Context()
	var err error
	s, fault := linking.New(p.store.Linking(), p.health, map[string]linking.ProviderConnector{"acme_scale": {Password: failingScale{err: func() error { return err }}}},
		sealer(t, "a", map[string][]byte{"a": key(1)}), &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{key(2)}, Now: p.clock, Log: slog.New(slog.NewTextHandler(&logs, nil))})
	require.NoError(t, fault)
	logged := func(cause error) string {
		logs.Reset()
		err = cause
		issued, fault := s.CreateToken(t.Context(), team, linking.NewToken{User: p.user})
		require.NoError(t, fault)
		_, _ = s.SignIn(ctx, issued.Token, linking.PasswordSignIn{Provider: "acme_scale", Username: "ann", Password: "planted"})
		return logs.String()
	}
	down := fmt.Errorf("sign in: %w", healthlab.Unavailable)
	got := logged(down)
	require.Contains(t, got, `level=WARN msg="provider failed"`)
	require.Contains(t, got, "provider=acme_scale")
	require.Contains(t, got, "session=")
	require.Contains(t, got, `: sign in: unavailable"`)
	require.Contains(t, logged(down), "level=INFO", "the second within an hour")
	p.now = p.now.Add(time.Hour)
	require.Contains(t, logged(down), "level=WARN")
	require.Contains(t, logged(&linking.Error{Type: linking.ProviderAPIError, Cause: errors.New("the provider answered 502")}), "the provider answered 502")
	require.Empty(t, logged(&linking.Error{Type: linking.ProviderCredentialError}))
	require.NotContains(t, logged(down), "planted")

	var leave context.CancelFunc
	ctx, leave = context.WithCancel(ctx)
	left := failingScale{err: func() error { leave(); return ctx.Err() }}
	err = nil
	s, fault = linking.New(p.store.Linking(), p.health, map[string]linking.ProviderConnector{"acme_scale": {Password: left}},
		sealer(t, "a", map[string][]byte{"a": key(1)}), &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{key(2)}, Now: p.clock, Log: slog.New(slog.NewTextHandler(&logs, nil))})
	require.NoError(t, fault)
	require.Empty(t, strings.TrimSpace(logged(nil)), "a person who left")
}
