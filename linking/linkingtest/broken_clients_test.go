package linkingtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
)

func clientMutant(name, dies string, how func(b *brokenClients)) conformance.Broken {
	return conformance.Broken{Name: "clients: " + name, Suite: func(t *testing.T) {
		s := memory.New(nil)
		b := &brokenClients{TeamClients: s.TeamClients()}
		how(b)
		linkingtest.RunClients(t, linkingtest.ClientsHarness{Clients: b, Linking: linkingtest.StoreHarness{
			Linking: s.Linking(), Credentials: s.Credentials(), Second: s.Credentials(), Users: s.Users(), Data: s.Data(), Messages: s.WebhookLog(),
		}})
	}, Subtest: dies}
}

var brokenClientStores = []conformance.Broken{
	clientMutant("forgets when it came first", "Again", func(b *brokenClients) {
		b.putClient = func(ctx context.Context, c linking.TeamClient) (linking.TeamClient, error) {
			_, _ = b.TeamClients.ForgetClients(ctx, c.Team, c.Provider, time.Time{})
			return b.TeamClients.PutClient(ctx, c)
		}
	}),
	clientMutant("shows other teams' clients", "OtherTeam", func(b *brokenClients) {
		var teams []healthlab.TeamID
		b.putClient = func(ctx context.Context, c linking.TeamClient) (linking.TeamClient, error) {
			teams = append(teams, c.Team)
			return b.TeamClients.PutClient(ctx, c)
		}
		b.clients = func(ctx context.Context, q linking.ClientQuery) ([]linking.TeamClient, error) {
			list, err := b.TeamClients.Clients(ctx, q)
			for _, other := range teams {
				if err == nil && len(list) == 0 && other != q.Team {
					q.Team = other
					return b.TeamClients.Clients(ctx, q)
				}
			}
			return list, err
		}
	}),
	clientMutant("notes every proof anew", "Proven", func(b *brokenClients) {
		b.proveClient = func(ctx context.Context, team healthlab.TeamID, provider, id, url string, at time.Time) error {
			_ = b.TeamClients.ProveClient(ctx, team, provider, id, url+"/", at)
			return b.TeamClients.ProveClient(ctx, team, provider, id, url, at)
		}
	}),
	clientMutant("forgets what connections need", "Bound", func(b *brokenClients) {
		b.forgetClients = func(ctx context.Context, team healthlab.TeamID, provider string, before time.Time) (int, error) {
			if provider == "" {
				provider = "acme_scale"
			}
			return b.TeamClients.ForgetClients(ctx, team, provider, before)
		}
	}),
	clientMutant("keeps what is erased while it is current", "Erased", func(b *brokenClients) {
		b.forgetClients = func(ctx context.Context, team healthlab.TeamID, _ string, before time.Time) (int, error) {
			return b.TeamClients.ForgetClients(ctx, team, "", before)
		}
	}),
	clientMutant("shares what it is given", "Aliasing", func(b *brokenClients) {
		var last linking.TeamClient
		b.putClient = func(ctx context.Context, c linking.TeamClient) (linking.TeamClient, error) {
			last = c
			return b.TeamClients.PutClient(ctx, c)
		}
		b.clients = func(ctx context.Context, q linking.ClientQuery) ([]linking.TeamClient, error) {
			list, err := b.TeamClients.Clients(ctx, q)
			for i := range list {
				list[i].Box, list[i].Details = last.Box, last.Details
			}
			return list, err
		}
	}),
}
