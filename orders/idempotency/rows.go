package idempotency

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/store"
)

// keyRow is a stored idempotency key with the answer to its request.
type keyRow struct {
	Team        healthlab.TeamID
	ID          string           `json:"-"` // digest of the endpoint and the key
	User        healthlab.UserID // user of the answer; zero for none
	Order       orders.OrderID
	Fingerprint string
	Until       time.Time // end of the latest claim, even if it is over; zero with an answer or after a release
	Answer      []byte
	Keep        time.Time // time until which the answer is kept; without an answer, the time of the release
}

// keyRows stores keys. A key is due when it can be deleted.
var keyRows = store.Table[keyRow]{
	Name: "order_idempotency_key",
	Row: func(k *keyRow) store.Row {
		due := k.Keep
		if k.Answer == nil {
			if k.Until.After(due) {
				due = k.Until
			}
			due = due.Add(24 * time.Hour)
		}
		return store.Row{Key: store.Key{Team: k.Team, User: k.User, ID: k.ID}, Due: due}
	},
}

func rowKey(scope Scope) store.Key {
	sum := sha256.Sum256([]byte(store.Text(scope.Endpoint) + scope.Key))
	return store.Key{Team: scope.Team, ID: string(sum[:])}
}

// Queries returns the queries that [Service.Once] runs first for a key, for callers that read all rows of a
// transaction in one round trip.
func Queries(scope Scope) []store.Query { return []store.Query{keyRows.One(rowKey(scope), store.Held)} }

// Tables declares the table of [NewStore].
func Tables() []store.Definition { return []store.Definition{keyRows.Definition()} }

// StoreOptions are the options of [NewStore]. The zero value, and nil, mean the defaults.
type StoreOptions struct {
	// UsersElsewhere is true if the host stores its users outside of the store. Default false: an answer about
	// a user without a row in the store is not stored, because the user was erased.
	UsersElsewhere bool
}

// NewStore returns Keys over a store whose tables must include [Tables] and those of package orders. While a
// user is deleted, answers about the user are not found.
func NewStore(s store.Store, opts *StoreOptions) Keys {
	v := rows{s: s}
	if opts != nil {
		v.opts = *opts
	}
	return v
}

type rows struct {
	s    store.Store
	opts StoreOptions
}

// StartKey implements [Keys].
func (v rows) StartKey(ctx context.Context, scope Scope, fingerprint string, order orders.OrderID, lease time.Duration) (out State, err error) {
	err = v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := find(tx, scope)
		if err != nil {
			return err
		}
		now := tx.Now()
		if e == nil {
			e = &store.Entry[keyRow]{}
		}
		k := &e.Value
		if e.Revision == 0 || k.Answer != nil && !k.Keep.After(now) {
			key := rowKey(scope)
			*k = keyRow{Team: key.Team, ID: key.ID, Order: order, Fingerprint: fingerprint}
		}
		if k.Answer == nil && k.Until.IsZero() {
			k.Fingerprint = fingerprint
		}
		out = State{Order: k.Order, Fingerprint: k.Fingerprint, Answer: k.Answer}
		if k.Answer != nil || k.Until.After(now) {
			return nil
		}
		k.Until = healthlab.At(now.Add(lease)).Time
		out.Started, out.Until = true, k.Until
		return keyRows.Put(tx, e)
	})
	return out, err
}

// find returns the stored key of a scope, locked; nil if there is none. It leaves out an answer about a deleted user.
// NotFound if the answer cannot be decrypted, because the encryption key of its user was deleted.
func find(tx store.Tx, scope Scope) (*store.Entry[keyRow], error) {
	key := rowKey(scope)
	e, err := keyRows.Get(tx, key, store.Held)
	if err != nil {
		return nil, err
	}
	if e == nil {
		r, err := keyRows.Bare(tx, key, store.Held)
		if err == nil && r != nil {
			err = fmt.Errorf("%w: the stored answer cannot be decrypted, because the key of its user was deleted", healthlab.NotFound)
		}
		return nil, err
	}
	e.Value.ID = key.ID
	if e.Value.User.IsZero() {
		return e, nil
	}
	u, err := store.LockUser(tx, scope.Team, e.Value.User)
	if u.Known && !u.Live && e.Value.Answer != nil {
		e.Value.Answer, e.Value.Until, e.Value.Keep = nil, time.Time{}, time.Time{}
	}
	return e, err
}

// FinishKey implements [Keys].
func (v rows) FinishKey(ctx context.Context, scope Scope, until time.Time, answer []byte, user healthlab.UserID, keep time.Duration) error {
	return v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := find(tx, scope)
		if err != nil {
			return err
		}
		until := healthlab.At(until).Time
		if e == nil || e.Value.Answer != nil || !e.Value.Until.Equal(until) {
			return fmt.Errorf("%w: the lease of the idempotency key has passed to another call", healthlab.Precondition)
		}
		k := &e.Value
		k.Until, k.User, k.Answer, k.Keep = time.Time{}, user, answer, until
		if answer != nil {
			k.Keep = healthlab.At(tx.Now().Add(keep)).Time
		}
		if k.User.IsZero() {
			if k.User, err = orders.PlacedFor(tx, scope.Team, k.Order); err != nil {
				return err
			}
		}
		if !k.User.IsZero() {
			u, err := store.LockUser(tx, scope.Team, k.User)
			if err != nil {
				return err
			}
			if !u.Known && !v.opts.UsersElsewhere {
				keyRows.Delete(tx, e)
				return nil
			}
		}
		return keyRows.Put(tx, e)
	})
}

// PruneKeys implements [Keys].
func (v rows) PruneKeys(ctx context.Context, n int) (pruned int, err error) {
	if n <= 0 {
		return 0, ctx.Err()
	}
	err = v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		ask := store.Query{Key: keyRows.Key(store.Key{}), By: store.ByDue, Until: tx.Now(), Limit: n, Lock: store.Skip, Bare: true}
		got, err := tx.Read(ask)
		if err != nil {
			return err
		}
		for _, r := range got[0] {
			tx.Delete(r.Key)
		}
		pruned = len(got[0])
		return nil
	})
	return pruned, err
}
