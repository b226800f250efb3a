package bulk

import (
	"context"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

func (r rowStore) Connections(ctx context.Context, q ConnectionQuery) ([]Connection, error) {
	list, err := r.links.Connections(ctx, q.Team, q.Provider, q.Users, q.After, q.N)
	var out []Connection
	for _, c := range list {
		out = append(out, Connection{Credential: c.Credential, ExternalUserID: c.Connection.ExternalUserID, Scopes: c.Connection.Scopes})
	}
	return out, err
}

func (r rowStore) Items(ctx context.Context, team healthlab.TeamID, id uuid.UUID, from, n int) ([]Item, error) {
	q := itemsOf(team, id, store.ByID)
	q.From, q.Limit = itemKey(team, id, from).ID, max(n, 1)
	found, err := itemTable.Look(ctx, r.s, q)
	var out []Item
	for _, e := range found[:min(max(n, 0), len(found))] {
		out = append(out, e.Value.Item)
	}
	return out, err
}

func (r rowStore) Import(ctx context.Context, c Import) (Outcome, error) {
	text := []string{c.Credential.Provider, c.Credential.Secret.KeyID, c.Credential.Previous.KeyID}
	if c.Sole != nil {
		text = append(text, *c.Sole)
	}
	if err := healthlab.CheckText(text...); err != nil {
		return "", err
	}
	return r.setOutcome(ctx, c.Team, c.Op, c.N, func(ctx context.Context, tx store.Tx, user healthlab.UserID) (Outcome, error) {
		grant := c.Credential
		grant.Team, grant.User = c.Team, user
		return Connected, r.links.WriteConnection(ctx, tx, grant, c.Sole, c.Change)
	})
}

func (r rowStore) Reject(ctx context.Context, team healthlab.TeamID, id uuid.UUID, n int, why Outcome) (Outcome, error) {
	if err := healthlab.CheckText(string(why)); err != nil {
		return "", err
	}
	return r.setOutcome(ctx, team, id, n, func(context.Context, store.Tx, healthlab.UserID) (Outcome, error) { return why, nil })
}

// setOutcome sets the Outcome of item n to the result of outcome, and removes the item's Grant. It does not change an
// item without a Grant. It returns the item's Outcome.
func (r rowStore) setOutcome(ctx context.Context, team healthlab.TeamID, id uuid.UUID, n int,
	outcome func(context.Context, store.Tx, healthlab.UserID) (Outcome, error),
) (Outcome, error) {
	var out Outcome
	err := r.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		e, err := itemTable.Get(tx, itemKey(team, id, n), store.Held)
		switch {
		case err != nil:
			return err
		case e == nil:
			return errNoItem
		}
		it := &e.Value.Item
		if it.Grant.Box != nil {
			if it.Outcome, err = outcome(ctx, tx, it.User); err != nil {
				return err
			}
			it.Grant = healthlab.Sealed{}
			if err := itemTable.Put(tx, e); err != nil {
				return err
			}
		}
		out = it.Outcome
		return nil
	})
	if err != nil {
		return "", err
	}
	return out, nil
}
