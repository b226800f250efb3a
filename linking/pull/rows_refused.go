package pull

import (
	"context"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

func checkRefused(r *RefusedItem) error {
	text := []string{r.Provider, r.Resource}
	for _, why := range r.Reasons {
		text = append(text, why.Field, why.Code, why.Message)
	}
	return healthlab.CheckText(text...)
}

// Quarantine implements [Store].
func (r rowStore) Quarantine(ctx context.Context, ref Ref, refused []RefusedItem) error {
	if err := healthlab.CheckText(ref.Provider); err != nil {
		return err
	}
	queries := make([]store.Query, len(refused))
	for i := range refused {
		if err := checkRefused(&refused[i]); err != nil {
			return err
		}
		queries[i] = refusedTable.One(refusedKey(ref.Team, ref.User, refused[i].ID), store.Held)
	}
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		got, err := tx.Read(store.User(ref.Team, ref.User).Hold()) // the limit is per user
		if err != nil {
			return err
		}
		if !store.StateOf(got[0]).Live {
			return errNoUser
		}
		if _, err := tx.Read(queries...); err != nil { // reads all rows at once
			return err
		}
		added := false
		for _, item := range refused {
			item.At = healthlab.At(item.At.Time)
			e, err := refusedTable.Get(tx, refusedKey(ref.Team, ref.User, item.ID), store.Held)
			if err != nil {
				return err
			}
			if e == nil {
				item.Provider, added = ref.Provider, true
				e = &store.Entry[keptRefused]{Value: keptRefused{ref.Team, ref.User, item}}
			} else {
				e.Value.Item.At = item.At
				e.Value.Item.Count += item.Count
			}
			if err := refusedTable.Put(tx, e); err != nil {
				return err
			}
		}
		if !added {
			return nil
		}
		return limitRefused(tx, ref)
	})
}

// limitRefused deletes the oldest refused items of a user above MaxRefusedPerUser. The caller has locked the row of the
// user.
func limitRefused(tx store.Tx, ref Ref) error {
	q := refusedOf(ref.Team, store.ByFirst, store.UUID(ref.User.UUID), 0)
	q.Bare = true
	got, err := tx.Read(q)
	if err != nil {
		return err
	}
	surplus := got[0][min(MaxRefusedPerUser, len(got[0])):]
	held := make([]store.Query, len(surplus))
	for i, row := range surplus {
		held[i] = store.Query{Key: row.Key, Lock: store.Held}
	}
	if _, err := tx.Read(held...); err != nil {
		return err
	}
	for _, row := range surplus {
		tx.Delete(row.Key)
	}
	return nil
}

// Quarantined implements [Store].
func (r rowStore) Quarantined(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, n int) ([]RefusedItem, error) {
	if n <= 0 {
		return nil, ctx.Err()
	}
	got, err := r.s.Read(ctx, store.User(team, user), refusedOf(team, store.ByFirst, store.UUID(user.UUID), n))
	if err != nil || !store.StateOf(got[0]).Live {
		return nil, err
	}
	return refusedItems(got[1])
}

func refusedItems(rows []store.Row) ([]RefusedItem, error) {
	found, err := refusedTable.Decoded(rows)
	if err != nil {
		return nil, err
	}
	var out []RefusedItem
	for _, e := range found {
		out = append(out, e.Value.Item)
	}
	return out, nil
}
