package pull

import (
	"context"
	"fmt"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// normalBudget returns a copy of a budget in its stored form.
func normalBudget(b Budget) Budget {
	b.Next, b.Blocked, b.PaceEnd = instant(b.Next), instant(b.Blocked), instant(b.PaceEnd)
	b.Recent = slices.Clone(b.Recent)
	for i := range b.Recent {
		b.Recent[i] = instant(b.Recent[i])
	}
	if len(b.Recent) == 0 {
		b.Recent = nil
	}
	return b
}

// UpdateBudgets implements [Store].
func (r rowStore) UpdateBudgets(ctx context.Context, keys []BudgetKey, change func([]Budget) error) error {
	for i, k := range keys {
		if err := healthlab.CheckText(k.Provider, k.Name); err != nil {
			return err
		}
		if slices.Contains(keys[:i], k) {
			return fmt.Errorf("%w: budgets: each BudgetKey must be unique", healthlab.Invalid)
		}
	}
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		if err := shareLiveUsers(tx, keys); err != nil {
			return err
		}
		queries := make([]store.Query, len(keys))
		for i, k := range keys {
			queries[i] = budgetTable.One(budgetKey(k), store.Held)
		}
		got, err := tx.Read(queries...)
		if err != nil {
			return err
		}
		entries, list := make([]*store.Entry[keptBudget], len(keys)), make([]Budget, len(keys))
		for i := range keys {
			e, err := budgetTable.DecodedOne(got[i])
			if err != nil {
				return err
			}
			if e == nil {
				e = &store.Entry[keptBudget]{Value: keptBudget{BudgetKey: keys[i]}}
			}
			entries[i], list[i] = e, e.Value.Budget
		}
		if err := change(list); err != nil {
			return err
		}
		for i, e := range entries {
			e.Value.Budget = normalBudget(list[i])
			if err := budgetTable.Put(tx, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// shareLiveUsers reads the users of budgets with the lock Shared, and fails if one is not live.
func shareLiveUsers(tx store.Tx, keys []BudgetKey) error {
	var users []store.Query
	for _, k := range keys {
		if !k.User.IsZero() {
			users = append(users, store.User(k.Team, k.User))
		}
	}
	got, err := tx.Read(users...)
	if err != nil {
		return err
	}
	for _, rows := range got {
		if !store.StateOf(rows).Live {
			return errNoUser
		}
	}
	return nil
}
