package linking_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

func TestConsent_isRecordedWhenAPersonLinks(t *testing.T) {
	p, s := phones(t, linking.Options{Settings: func(context.Context, healthlab.TeamID) (linking.TeamSettings, error) {
		return linking.TeamSettings{Consent: healthdata.ConsentText{Version: "2026-11", URL: "https://app.example/consent"}}, nil
	}})
	token := p.token(s)
	page, err := s.Page(t.Context(), token)
	require.NoError(t, err)
	require.Equal(t, "https://app.example/consent", page.Consent.URL)
	_, err = s.Accept(t.Context(), token, linking.Acceptance{Provider: "manual"})
	require.NoError(t, err)
	require.Equal(t, []string{"manual"}, p.connected())
	at := healthlab.At(p.now)
	list, err := p.health.Connections().Consents(t.Context(), team, p.user)
	require.NoError(t, err)
	require.Equal(t, []healthdata.Consent{{Provider: "manual", Version: "2026-11", Means: healthdata.ConsentByLink, GrantedAt: &at}}, list)

	require.NoError(t, s.WithdrawConsent(t.Context(), team, p.user, "manual"))
	require.Empty(t, p.connected())
	_, err = p.health.Connections().Connect(t.Context(), team, p.user, healthdata.NewConnection{Provider: "manual"})
	requireRule(t, healthdata.RuleConsentWithdrawn, err)

	_, err = s.Accept(t.Context(), p.token(s), linking.Acceptance{Provider: "manual"})
	require.NoError(t, err, "connecting through a link token is a new consent")
	require.Equal(t, []string{"manual"}, p.connected())
}
