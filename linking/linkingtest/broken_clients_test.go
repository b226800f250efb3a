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

// brokenClients passes on what it is not told to break.
type brokenClients struct {
	linking.TeamClients
	list   func(context.Context, linking.ClientQuery) ([]linking.TeamClient, error)
	put    func(context.Context, linking.TeamClient) (linking.TeamClient, error)
	prove  func(ctx context.Context, team healthlab.TeamID, provider, id, url string, at time.Time) error
	forget func(context.Context, healthlab.TeamID, string, time.Time) (int, error)
}

func (b *brokenClients) Clients(ctx context.Context, q linking.ClientQuery) ([]linking.TeamClient, error) {
	if b.list != nil {
		return b.list(ctx, q)
	}
	return b.TeamClients.Clients(ctx, q)
}

func (b *brokenClients) PutClient(ctx context.Context, c linking.TeamClient) (linking.TeamClient, error) {
	if b.put != nil {
		return b.put(ctx, c)
	}
	return b.TeamClients.PutClient(ctx, c)
}

func (b *brokenClients) ProveClient(ctx context.Context, team healthlab.TeamID, provider, id, url string, at time.Time) error {
	if b.prove != nil {
		return b.prove(ctx, team, provider, id, url, at)
	}
	return b.TeamClients.ProveClient(ctx, team, provider, id, url, at)
}

func (b *brokenClients) ForgetClients(ctx context.Context, team healthlab.TeamID, provider string, before time.Time) (int, error) {
	if b.forget != nil {
		return b.forget(ctx, team, provider, before)
	}
	return b.TeamClients.ForgetClients(ctx, team, provider, before)
}

func clientMutant(name, dies string, how func(b *brokenClients)) conformance.Broken {
	return conformance.Broken{Name: "clients: " + name, Suite: func(t *testing.T) {
		s := memory.New(nil)
		b := &brokenClients{TeamClients: s.TeamClients()}
		how(b)
		linkingtest.RunClients(t, linkingtest.ClientsHarness{Clients: b, Linking: linkingtest.StoreHarness{
			Linking: s.Linking(), Grants: s.Grants(), Second: s.Grants(), Users: s.Users(), Data: s.Data(), Messages: s.WebhookLog(),
		}})
	}, Subtest: dies}
}

var brokenClientStores = []conformance.Broken{
	clientMutant("forgets when it came first", "Again", func(b *brokenClients) {
		b.put = func(ctx context.Context, c linking.TeamClient) (linking.TeamClient, error) {
			_, _ = b.TeamClients.ForgetClients(ctx, c.Team, c.Provider, time.Time{})
			return b.TeamClients.PutClient(ctx, c)
		}
	}),
	clientMutant("shows other teams' clients", "OtherTeam", func(b *brokenClients) {
		var teams []healthlab.TeamID
		b.put = func(ctx context.Context, c linking.TeamClient) (linking.TeamClient, error) {
			teams = append(teams, c.Team)
			return b.TeamClients.PutClient(ctx, c)
		}
		b.list = func(ctx context.Context, q linking.ClientQuery) ([]linking.TeamClient, error) {
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
		b.prove = func(ctx context.Context, team healthlab.TeamID, provider, id, url string, at time.Time) error {
			_ = b.TeamClients.ProveClient(ctx, team, provider, id, url+"/", at)
			return b.TeamClients.ProveClient(ctx, team, provider, id, url, at)
		}
	}),
	clientMutant("forgets what connections need", "Bound", func(b *brokenClients) {
		b.forget = func(ctx context.Context, team healthlab.TeamID, provider string, before time.Time) (int, error) {
			if provider == "" {
				provider = "acme_scale"
			}
			return b.TeamClients.ForgetClients(ctx, team, provider, before)
		}
	}),
	clientMutant("keeps what is erased while it is current", "Erased", func(b *brokenClients) {
		b.forget = func(ctx context.Context, team healthlab.TeamID, _ string, before time.Time) (int, error) {
			return b.TeamClients.ForgetClients(ctx, team, "", before)
		}
	}),
	clientMutant("shares what it is given", "Aliasing", func(b *brokenClients) {
		var last linking.TeamClient
		b.put = func(ctx context.Context, c linking.TeamClient) (linking.TeamClient, error) {
			last = c
			return b.TeamClients.PutClient(ctx, c)
		}
		b.list = func(ctx context.Context, q linking.ClientQuery) ([]linking.TeamClient, error) {
			list, err := b.TeamClients.Clients(ctx, q)
			for i := range list {
				list[i].Box, list[i].Details = last.Box, last.Details
			}
			return list, err
		}
	}),
}
