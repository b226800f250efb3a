package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// normalClient returns a copy of a client in the form in which it is kept.
func normalClient(c linking.TeamClient) linking.TeamClient {
	c.Box.Box, c.Details = slices.Clone(c.Box.Box), maps.Clone(c.Details)
	if len(c.Details) == 0 {
		c.Details = nil
	}
	c.CreatedAt, c.UpdatedAt, c.RetiredAt, c.ProvenAt = instant(c.CreatedAt), instant(c.UpdatedAt), instant(c.RetiredAt), instant(c.ProvenAt)
	return c
}

// countConnections counts the connections that need a client, those of live users alone if live.
func (v linkStore) countConnections(k clientKey, live bool) (n int) {
	for at := range v.linking.credentials {
		if at.team != k.team || at.provider != k.provider {
			continue
		}
		row := v.users.find(at.team, at.user)
		if row == nil || live && !row.user.Live() {
			continue
		}
		if c := row.user.Connection(k.provider); c != nil && c.Client == k.client && c.Status != healthdata.Deregistered {
			n++
		}
	}
	return n
}

func (v linkStore) Clients(ctx context.Context, q linking.ClientQuery) ([]linking.TeamClient, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	var out []linking.TeamClient
	for k, c := range v.linking.clients {
		if k.team == q.Team {
			c = normalClient(c)
			if q.Count {
				c.Connections = v.countConnections(k, true)
			}
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b linking.TeamClient) int {
		first := func(c *linking.TeamClient) int {
			if c.RetiredAt.IsZero() {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(first(&a), first(&b)), b.RetiredAt.Compare(a.RetiredAt), cmp.Compare(a.ClientID, b.ClientID))
	})
	return out, nil
}

func (v linkStore) Client(ctx context.Context, team healthlab.TeamID, provider, clientID string) (linking.TeamClient, error) {
	if err := healthlab.CheckText(provider, clientID); err != nil {
		return linking.TeamClient{}, err
	}
	if err := v.lock(ctx); err != nil {
		return linking.TeamClient{}, err
	}
	defer v.mu.Unlock()
	c, ok := v.linking.clients[clientKey{team, provider, clientID}]
	if !ok {
		return linking.TeamClient{}, fmt.Errorf("%w: the team has no such client", healthlab.NotFound)
	}
	return normalClient(c), nil
}

func (v linkStore) PutClient(ctx context.Context, c linking.TeamClient) (linking.TeamClient, error) {
	if c.Team.IsZero() || c.Provider == "" || c.ClientID == "" || c.Box.Box == nil {
		return linking.TeamClient{}, fmt.Errorf("%w: a client has a team, a provider, an id and a box", healthlab.Invalid)
	}
	text := []string{c.Provider, c.ClientID, c.Box.KeyID, c.Tail, c.RedirectURL}
	for name, shown := range c.Details {
		text = append(text, name, shown)
	}
	if err := healthlab.CheckText(text...); err != nil {
		return linking.TeamClient{}, err
	}
	if err := v.lock(ctx); err != nil {
		return linking.TeamClient{}, err
	}
	defer v.mu.Unlock()
	c = normalClient(c)
	key := clientKey{c.Team, c.Provider, c.ClientID}
	v.retireOthers(c.Team, c.Provider, c.ClientID, c.UpdatedAt)
	c.RetiredAt, c.ProvenAt, c.ProvenURL, c.Connections = time.Time{}, time.Time{}, "", 0
	if old, ok := v.linking.clients[key]; ok {
		c.CreatedAt, c.ProvenAt, c.ProvenURL = old.CreatedAt, old.ProvenAt, old.ProvenURL
	}
	v.linking.clients[key] = c
	return normalClient(c), nil
}

// retireOthers retires the current client of a provider but for one.
func (v linkStore) retireOthers(team healthlab.TeamID, provider, but string, at time.Time) (n int) {
	for k, c := range v.linking.clients {
		if k.team == team && k.provider == provider && k.client != but && c.RetiredAt.IsZero() {
			c.RetiredAt = instant(at)
			v.linking.clients[k] = c
			n++
		}
	}
	return n
}

func (v linkStore) RetireClient(ctx context.Context, team healthlab.TeamID, provider string, at time.Time) error {
	if err := healthlab.CheckText(provider); err != nil {
		return err
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	if v.retireOthers(team, provider, "", at) == 0 {
		return fmt.Errorf("%w: the team has no client at this provider", healthlab.NotFound)
	}
	return nil
}

func (v linkStore) ProveClient(ctx context.Context, team healthlab.TeamID, provider, clientID, redirectURL string, at time.Time) error {
	if err := healthlab.CheckText(provider, clientID, redirectURL); err != nil {
		return err
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	key := clientKey{team, provider, clientID}
	if c, ok := v.linking.clients[key]; ok && (c.ProvenURL != redirectURL || c.ProvenAt.IsZero()) {
		c.ProvenURL, c.ProvenAt = redirectURL, instant(at)
		v.linking.clients[key] = c
	}
	return nil
}

func (v linkStore) ForgetClients(ctx context.Context, team healthlab.TeamID, provider string, before time.Time) (int, error) {
	if err := healthlab.CheckText(provider); err != nil {
		return 0, err
	}
	if err := v.lock(ctx); err != nil {
		return 0, err
	}
	defer v.mu.Unlock()
	n := 0
	for k, c := range v.linking.clients {
		old := !c.RetiredAt.IsZero() && c.RetiredAt.Before(instant(before))
		if k.team == team && (provider == "" && old && v.countConnections(k, false) == 0 || provider != "" && k.provider == provider) {
			delete(v.linking.clients, k)
			n++
		}
	}
	return n, nil
}
