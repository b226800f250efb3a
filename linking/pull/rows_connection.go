package pull

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/store"
)

// ClaimConnections implements [Store].
func (r rowStore) ClaimConnections(ctx context.Context, n int, now, until time.Time) ([]Ref, error) {
	if n <= 0 {
		return nil, ctx.Err()
	}
	var out []Ref
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		out = nil
		tried := map[Ref]bool{}
		for limit := n; len(out) < n; {
			due, err := healthdata.ConnectionTable.Find(tx, store.Query{By: store.ByDue, Until: now, Limit: limit, Lock: store.Plain})
			if err != nil {
				return err
			}
			var refs []Ref
			for _, e := range due {
				if ref := (Ref{e.Value.Team, e.Value.User, e.Value.Provider}); !tried[ref] && len(refs) < n-len(out) {
					tried[ref] = true
					refs = append(refs, ref)
				}
			}
			switch {
			case len(refs) > 0:
			case len(due) < limit:
				return nil
			default: // all were tried, and other transactions have locked some of the users
				limit *= 2
			}
			claimed, err := r.claimConnections(tx, refs, now, until)
			if err != nil {
				return err
			}
			out = append(out, claimed...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// claimConnections claims those connections of refs that are still due and whose users are not locked. It locks the
// rows of the users first, as all changes of users do.
func (r rowStore) claimConnections(tx store.Tx, refs []Ref, now, until time.Time) ([]Ref, error) {
	users := make([]store.Query, len(refs))
	for i, ref := range refs {
		users[i] = store.User(ref.Team, ref.User)
		users[i].Lock = store.Skip
	}
	got, err := tx.Read(users...)
	if err != nil {
		return nil, err
	}
	var out []Ref
	var rows []store.Query
	for i, ref := range refs {
		if len(got[i]) == 0 {
			continue
		}
		u, err := r.users.Get(tx, ref.Team, ref.User, store.Skip) // no round trip: the row was read
		if err != nil {
			return nil, err
		}
		c := u.Connection(ref.Provider)
		if !u.Live() || c == nil || c.Due.IsZero() || c.Due.After(now) {
			continue // changed since it was found
		}
		out = append(out, ref)
		row := healthdata.ConnectionTable.Row(&healthdata.ConnectionRow{Team: ref.Team, User: ref.User, Provider: ref.Provider})
		rows = append(rows, healthdata.ConnectionTable.One(row.Key, store.Held))
	}
	if _, err := tx.Read(rows...); err != nil { // locks all rows at once, so that SetDue needs no round trip
		return nil, err
	}
	for _, ref := range out {
		if err := r.users.SetDue(tx, ref.Team, ref.User, ref.Provider, until); err != nil {
			return nil, err
		}
	}
	return out, nil
}
