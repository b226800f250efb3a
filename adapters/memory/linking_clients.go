package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

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

func (v linkStore) InsertApp(ctx context.Context, a linking.AppSession) error {
	if a.ID == uuid.Nil || a.Team.IsZero() || a.User.IsZero() {
		return fmt.Errorf("%w: the session of an app needs an id, a team and a user", healthlab.Invalid)
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	t := v.linking
	t.sweep(v.clock())
	if !v.users.isLive(a.Team, a.User) {
		return fmt.Errorf("%w: the team has no such user", healthlab.NotFound)
	}
	if _, taken := t.apps[a.ID]; taken {
		return fmt.Errorf("%w: the id of the app's session is taken", healthlab.Conflict)
	}
	t.apps[a.ID] = normalApp(a)
	return nil
}

func (v linkStore) App(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (linking.AppSession, error) {
	if err := v.lock(ctx); err != nil {
		return linking.AppSession{}, err
	}
	defer v.mu.Unlock()
	return v.app(team, id)
}

// app returns a session of a live user; the lock is held.
func (v linkStore) app(team healthlab.TeamID, id uuid.UUID) (linking.AppSession, error) {
	a, ok := v.linking.apps[id]
	if !ok || a.Team != team || !v.users.isLive(team, a.User) {
		return linking.AppSession{}, fmt.Errorf("%w: no such app is signed in", healthlab.NotFound)
	}
	return normalApp(a), nil
}

func (v linkStore) UpdateApp(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change func(*linking.AppSession) error) (linking.AppSession, error) {
	if err := v.lock(ctx); err != nil {
		return linking.AppSession{}, err
	}
	defer v.mu.Unlock()
	old, err := v.app(team, id)
	if err != nil {
		return linking.AppSession{}, err
	}
	next := normalApp(old)
	if err := change(&next); err != nil {
		return linking.AppSession{}, err
	}
	next.ID, next.Team, next.User, next.CreatedAt = old.ID, old.Team, old.User, old.CreatedAt
	v.linking.apps[id] = normalApp(next)
	return normalApp(next), nil
}

func (v linkStore) DeleteApps(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id uuid.UUID) (int, error) {
	if err := v.lock(ctx); err != nil {
		return 0, err
	}
	defer v.mu.Unlock()
	n := 0
	for k, a := range v.linking.apps {
		if a.Team == team && a.User == user && (id == uuid.Nil || id == k) {
			delete(v.linking.apps, k)
			n++
		}
	}
	return n, nil
}

// normalApp returns a copy of a session in the form in which it is kept.
func normalApp(a linking.AppSession) linking.AppSession {
	a.CreatedAt, a.ExpiresAt, a.RotatedAt = instant(a.CreatedAt), instant(a.ExpiresAt), instant(a.RotatedAt)
	a.Access = slices.Clone(a.Access)
	for i := range a.Access {
		a.Access[i].ExpiresAt = instant(a.Access[i].ExpiresAt)
	}
	if len(a.Access) == 0 {
		a.Access = nil
	}
	return a
}
