package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/personkey"
)

type orderKeys struct {
	*database
	orders *orderTable
}

func (v orderKeys) StartKey(ctx context.Context, scope idempotency.Scope, fingerprint string, order orders.OrderID, lease time.Duration) (idempotency.State, error) {
	if err := v.lock(ctx); err != nil {
		return idempotency.State{}, err
	}
	defer v.mu.Unlock()
	k, now := v.orders.keys[scope], v.clock()
	if k == nil || k.answer != nil && !k.keep.After(now) {
		k = &orderKey{order: order, fingerprint: fingerprint}
		v.orders.keys[scope] = k
	}
	if k.answer == nil && k.until.IsZero() {
		k.fingerprint = fingerprint
	}
	state := idempotency.State{Order: k.order, Fingerprint: k.fingerprint}
	if k.answer != nil {
		answer, err := v.keys.Open(ctx, personkey.Ref{Team: scope.Team, User: k.user}, personkey.RowAnswer(scope.Endpoint+" "+scope.Key), slices.Clone(k.answer))
		if err != nil {
			return idempotency.State{}, err
		}
		state.Answer = answer
	}
	if k.answer == nil && !k.until.After(now) {
		k.until = now.Add(lease)
		state.Started, state.Until = true, k.until
	}
	return state, nil
}

func (v orderKeys) FinishKey(ctx context.Context, scope idempotency.Scope, until time.Time, answer []byte, user healthlab.UserID, keep time.Duration) error {
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	k := v.orders.keys[scope]
	if k == nil || k.answer != nil || !k.until.Equal(instant(until)) {
		return fmt.Errorf("%w: another worker has the key", healthlab.Precondition)
	}
	if answer == nil {
		k.until, k.user, k.keep = time.Time{}, user, instant(until)
		return nil
	}
	box, err := v.keys.Seal(ctx, personkey.Ref{Team: scope.Team, User: user}, personkey.RowAnswer(scope.Endpoint+" "+scope.Key), slices.Clone(answer))
	if err != nil {
		return err
	}
	k.until, k.answer, k.user, k.keep = time.Time{}, box, user, v.clock().Add(keep)
	return nil
}

func (v orderKeys) PruneKeys(ctx context.Context, n int) (int, error) {
	if err := v.lock(ctx); err != nil {
		return 0, err
	}
	defer v.mu.Unlock()
	pruned, now := 0, v.clock()
	for scope, k := range v.orders.keys {
		old := k.answer != nil && !k.keep.After(now) || k.answer == nil && !latest(k.until, k.keep).Add(24*time.Hour).After(now)
		if old && pruned < n {
			delete(v.orders.keys, scope)
			pruned++
		}
	}
	return pruned, nil
}
