package linking

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/store"
)

// connectionPage is how many credentials are read at a time to list connections.
const connectionPage = 200

// LiveConnection is a connection of a live user that is not Deregistered, with its credential.
type LiveConnection struct {
	Credential Credential
	Connection healthdata.Connection
}

// Connections returns up to n connections of a team to a provider, by user id, of users whose id is greater than after.
// A non-nil users limits them to these users.
func (r *Rows) Connections(ctx context.Context, team healthlab.TeamID, provider string, users []healthlab.UserID,
	after healthlab.UserID, n int,
) ([]LiveConnection, error) {
	if err := healthlab.CheckText(provider); err != nil {
		return nil, err
	}
	var out []LiveConnection
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		out = nil
		for page := connectionPages(team, provider, users, after); len(out) < n; {
			found, more, err := page(tx)
			if err != nil {
				return err
			}
			if out, err = r.appendLive(tx, out, found); err != nil {
				return err
			}
			if !more {
				break
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out[:min(max(n, 0), len(out))], nil
}

// connectionPages returns a function that reads the next page of the credentials of a team at a provider, by user id,
// and reports whether further pages may follow. users and after are those of [Rows.Connections].
func connectionPages(team healthlab.TeamID, provider string, users []healthlab.UserID, after healthlab.UserID,
) func(store.Tx) ([]*store.Entry[Credential], bool, error) {
	if users == nil {
		prefix := store.Text(provider)
		q := store.Query{
			Key: store.Key{Team: team}, By: store.ByFirst, From: prefix + store.UUID(after.UUID) + "\x00", To: store.End(prefix),
			Limit: connectionPage, Lock: store.Plain,
		}
		return func(tx store.Tx) ([]*store.Entry[Credential], bool, error) {
			found, err := credentialTable.Find(tx, q)
			if len(found) > 0 {
				q.From = prefix + store.UUID(found[len(found)-1].Value.User.UUID) + "\x00"
			}
			return found, len(found) == connectionPage, err
		}
	}
	compare := func(a, b healthlab.UserID) int { return bytes.Compare(a.UUID[:], b.UUID[:]) }
	users = slices.DeleteFunc(slices.Clone(users), func(u healthlab.UserID) bool { return compare(u, after) <= 0 })
	slices.SortFunc(users, compare)
	users = slices.Compact(users)
	return func(tx store.Tx) ([]*store.Entry[Credential], bool, error) {
		asked := users[:min(connectionPage, len(users))]
		users = users[len(asked):]
		queries := make([]store.Query, len(asked))
		for i, u := range asked {
			queries[i] = credentialTable.One(credentialKey(team, u, provider), store.Plain)
		}
		got, err := tx.Read(queries...)
		if err != nil {
			return nil, false, err
		}
		found, err := credentialTable.Decoded(slices.Concat(got...))
		return found, len(users) > 0, err
	}
}

// appendLive appends the connections of the credentials in found to out. It leaves out deleted users and Deregistered
// connections.
func (r *Rows) appendLive(tx store.Tx, out []LiveConnection, found []*store.Entry[Credential]) ([]LiveConnection, error) {
	users := make([]store.Query, len(found))
	for i, e := range found {
		users[i] = store.User(e.Value.Team, e.Value.User).Unlocked()
	}
	if _, err := tx.Read(users...); err != nil { // reads all rows at once
		return nil, err
	}
	for _, e := range found {
		c := e.Value
		u, err := r.users.Get(tx, c.Team, c.User, store.Plain)
		if errors.Is(err, healthlab.NotFound) {
			continue // erased since the page was read
		}
		if err != nil {
			return nil, err
		}
		to := u.Connection(c.Provider)
		if !u.Live() || to == nil || to.Status == healthdata.Deregistered {
			continue
		}
		c.Client = to.Client
		out = append(out, LiveConnection{c, *to})
	}
	return out, nil
}
