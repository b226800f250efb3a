package linking

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/store"
)

// clientPage is the number of credentials that are read at a time to count connections.
const clientPage = 200

// NewTeamClients returns the TeamClients of a store whose tables include [Tables] and those of the users.
// Deleting a team must call [DeleteTeam].
func NewTeamClients(s store.Store) TeamClients {
	return clientRows{s, healthdata.NewUserRows(nil)}
}

type clientRows struct {
	s     store.Store
	users *healthdata.UserRows // users are only read
}

// normalClient returns a copy of a client in its stored form.
func normalClient(c TeamClient) TeamClient {
	c.Box.Box, c.Details = bytes.Clone(c.Box.Box), maps.Clone(c.Details)
	if len(c.Details) == 0 {
		c.Details = nil
	}
	c.CreatedAt, c.UpdatedAt, c.RetiredAt, c.ProvenAt = instant(c.CreatedAt), instant(c.UpdatedAt), instant(c.RetiredAt), instant(c.ProvenAt)
	return c
}

// connectionCounts has the number of a team's connections at a provider that have a credential and are not
// Deregistered, by client id: of live users, and of all users that are not erased.
type connectionCounts struct{ live, all map[string]int }

func (r clientRows) countConnections(tx store.Tx, team healthlab.TeamID, provider string) (connectionCounts, error) {
	n := connectionCounts{map[string]int{}, map[string]int{}}
	prefix := store.Text(provider)
	page := store.Query{
		Key: store.Key{Table: credentialTable.Name, Team: team}, By: store.ByFirst, From: prefix, To: store.End(prefix),
		Limit: clientPage, Lock: store.Plain, Bare: true,
	}
	for {
		got, err := tx.Read(page)
		if err != nil || len(got[0]) == 0 {
			return n, err
		}
		users := make([]store.Query, len(got[0]))
		for i, row := range got[0] {
			users[i] = store.User(team, row.User).Unlocked()
		}
		if _, err := tx.Read(users...); err != nil { // reads all rows at once
			return n, err
		}
		for _, row := range got[0] {
			u, err := r.users.Get(tx, team, row.User, store.Plain)
			if errors.Is(err, healthlab.NotFound) {
				continue // erased since the page was read
			}
			if err != nil {
				return n, err
			}
			to := u.Connection(provider)
			if to == nil || to.Status == healthdata.Deregistered {
				continue
			}
			n.all[to.Client]++
			if u.Live() {
				n.live[to.Client]++
			}
		}
		if len(got[0]) < clientPage {
			return n, nil
		}
		page = page.After(got[0][len(got[0])-1].Index[0], clientPage)
	}
}

// Clients implements [TeamClients].
func (r clientRows) Clients(ctx context.Context, q ClientQuery) ([]TeamClient, error) {
	var out []TeamClient
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		out = nil
		kept, err := clientTable.Find(tx, store.Query{Key: store.Key{Team: q.Team}, By: store.ByID, Lock: store.Plain})
		if err != nil {
			return err
		}
		for _, e := range kept {
			if q.Count {
				n, err := r.countConnections(tx, q.Team, e.Value.Provider)
				if err != nil {
					return err
				}
				for i := range e.Value.Clients {
					c := &e.Value.Clients[i]
					c.Connections = n.live[c.ClientID]
				}
			}
			out = append(out, e.Value.Clients...)
		}
		return nil
	})
	slices.SortFunc(out, func(a, b TeamClient) int {
		rank := func(c *TeamClient) int {
			if c.current() {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(rank(&a), rank(&b)), b.RetiredAt.Compare(a.RetiredAt), cmp.Compare(a.ClientID, b.ClientID))
	})
	return out, err
}

// client returns the client of an id; nil if there is none.
func (c *providerClients) client(id string) *TeamClient {
	i := slices.IndexFunc(c.Clients, func(x TeamClient) bool { return x.ClientID == id })
	if i < 0 {
		return nil
	}
	return &c.Clients[i]
}

// retire sets RetiredAt of the current client to an instant, unless its id is but, and reports whether it did.
func (c *providerClients) retire(but string, at time.Time) bool {
	done := false
	for i := range c.Clients {
		if x := &c.Clients[i]; x.current() && x.ClientID != but {
			x.RetiredAt, done = instant(at), true
		}
	}
	return done
}

// Client implements [TeamClients].
func (r clientRows) Client(ctx context.Context, team healthlab.TeamID, provider, clientID string) (TeamClient, error) {
	if err := healthlab.CheckText(provider, clientID); err != nil {
		return TeamClient{}, err
	}
	e, err := clientTable.LookOne(ctx, r.s, clientKey(team, provider))
	if err != nil {
		return TeamClient{}, err
	}
	if e != nil {
		if c := e.Value.client(clientID); c != nil {
			return *c, nil
		}
	}
	return TeamClient{}, fmt.Errorf("%w: the team has no OAuth client with this client_id at the provider", healthlab.NotFound)
}

// PutClient implements [TeamClients].
func (r clientRows) PutClient(ctx context.Context, c TeamClient) (TeamClient, error) {
	if c.Team.IsZero() || c.Provider == "" || c.ClientID == "" || c.Box.Box == nil {
		return TeamClient{}, fmt.Errorf("%w: OAuth client: the team, the provider, the id and the sealed secret must be set", healthlab.Invalid)
	}
	c.RetiredAt, c.ProvenAt, c.ProvenURL, c.Connections = time.Time{}, time.Time{}, "", 0
	given := c
	var out TeamClient
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		c := normalClient(given)
		e, err := clientTable.Get(tx, clientKey(c.Team, c.Provider), store.Held)
		if err != nil {
			return err
		}
		if e == nil {
			e = &store.Entry[providerClients]{Value: providerClients{Team: c.Team, Provider: c.Provider}}
		}
		e.Value.retire(c.ClientID, c.UpdatedAt)
		if old := e.Value.client(c.ClientID); old != nil {
			c.CreatedAt, c.ProvenAt, c.ProvenURL = old.CreatedAt, old.ProvenAt, old.ProvenURL
			*old = c
		} else {
			e.Value.Clients = append(e.Value.Clients, c)
		}
		out = c
		return clientTable.Put(tx, e)
	})
	if err != nil {
		return TeamClient{}, err
	}
	return out, nil
}

// RetireClient implements [TeamClients].
func (r clientRows) RetireClient(ctx context.Context, team healthlab.TeamID, provider string, at time.Time) error {
	if err := healthlab.CheckText(provider); err != nil {
		return err
	}
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := clientTable.Get(tx, clientKey(team, provider), store.Held)
		if err != nil {
			return err
		}
		if e == nil || !e.Value.retire("", at) {
			return fmt.Errorf("%w: the team has no current OAuth client at the provider", healthlab.NotFound)
		}
		return clientTable.Put(tx, e)
	})
}

// ProveClient implements [TeamClients].
func (r clientRows) ProveClient(ctx context.Context, team healthlab.TeamID, provider, clientID, redirectURL string, at time.Time) error {
	if err := healthlab.CheckText(redirectURL); err != nil {
		return err
	}
	proven := func(c *TeamClient) bool { return c.ProvenURL == redirectURL && !c.ProvenAt.IsZero() }
	c, err := r.Client(ctx, team, provider, clientID)
	switch {
	case errors.Is(err, healthlab.NotFound), err == nil && proven(&c):
		return nil
	case err != nil:
		return err
	}
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := clientTable.Get(tx, clientKey(team, provider), store.Held)
		if err != nil || e == nil {
			return err
		}
		c := e.Value.client(clientID)
		if c == nil || proven(c) {
			return nil
		}
		c.ProvenURL, c.ProvenAt = redirectURL, instant(at)
		return clientTable.Put(tx, e)
	})
}

// ForgetClients implements [TeamClients].
func (r clientRows) ForgetClients(ctx context.Context, team healthlab.TeamID, provider string, before time.Time) (int, error) {
	if err := healthlab.CheckText(provider); err != nil {
		return 0, err
	}
	n := 0
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		n = 0
		q := store.Query{Key: store.Key{Team: team}, By: store.ByID, Lock: store.Held}
		if provider != "" {
			q = clientTable.One(clientKey(team, provider), store.Held)
		}
		kept, err := clientTable.Find(tx, q)
		if err != nil {
			return err
		}
		for _, e := range kept {
			old := func(c TeamClient) bool { return !c.current() && c.RetiredAt.Before(instant(before)) }
			var needed map[string]int
			if provider == "" {
				if !slices.ContainsFunc(e.Value.Clients, old) {
					continue
				}
				counts, err := r.countConnections(tx, team, e.Value.Provider)
				if err != nil {
					return err
				}
				needed = counts.all
			}
			had := len(e.Value.Clients)
			e.Value.Clients = slices.DeleteFunc(e.Value.Clients, func(c TeamClient) bool {
				return provider != "" || old(c) && needed[c.ClientID] == 0
			})
			n += had - len(e.Value.Clients)
			switch len(e.Value.Clients) {
			case had:
			case 0:
				clientTable.Delete(tx, e)
			default:
				if err := clientTable.Put(tx, e); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
