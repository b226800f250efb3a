package orderstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/personkey"
)

// OrderKeys returns the store as an [idempotency.Keys].
func (s *Store) OrderKeys() idempotency.Keys { return orderKeys{s} }

type orderKeys struct{ s *Store }

// abandoned is how long a key is kept after its last claim has ended without an answer.
const abandoned = 24 * time.Hour

const (
	insertKey = `
insert into healthlab.order_key (team_id, key_hash, order_id, fingerprint, forget_at) values ($1, $2, $3, $4, healthlab.clock() + $5::interval)
on conflict (team_id, key_hash) do nothing`

	lockKey = `
select order_id, fingerprint, claimed_until, answer, forget_at, user_id, healthlab.clock() from healthlab.order_key
where team_id = $1 and key_hash = $2 for update`

	startKey = `
update healthlab.order_key set order_id = $3, fingerprint = $4, claimed_until = $5, answer = null, forget_at = $6
where team_id = $1 and key_hash = $2`

	finishKey = `
update healthlab.order_key set claimed_until = null, answer = $4, forget_at = coalesce($5, healthlab.clock() + $6::interval), user_id = $7
where team_id = $1 and key_hash = $2 and answer is null and claimed_until = $3`

	pruneKeys = `
delete from healthlab.order_key k using (
	select team_id, key_hash from healthlab.order_key
	where forget_at <= healthlab.clock() order by forget_at limit $1 for update skip locked
) old
where k.team_id = old.team_id and k.key_hash = old.key_hash`
)

// hashOf returns what a key is known by within its team.
func hashOf(scope idempotency.Scope) []byte {
	text := binary.BigEndian.AppendUint64(nil, uint64(len(scope.Endpoint)))
	sum := sha256.Sum256(append(append(text, scope.Endpoint...), scope.Key...))
	return sum[:]
}

func (v orderKeys) StartKey(ctx context.Context, scope idempotency.Scope, fingerprint string, order orders.OrderID, lease time.Duration) (idempotency.State, error) {
	hash := hashOf(scope)
	var state idempotency.State
	err := v.s.db.Do(ctx, scope.Team, db.Writing, func(x *db.Tx) error {
		var print []byte
		var claimed *time.Time
		var forget, now time.Time
		var user *uuid.UUID
		state = idempotency.State{}
		b := x.Batch()
		b.Queue(insertKey, scope.Team.UUID, hash, order.UUID, []byte(fingerprint), lease+abandoned)
		b.Queue(lockKey, scope.Team.UUID, hash).QueryRow(func(row pgx.Row) error {
			return row.Scan(&state.Order.UUID, &print, &claimed, &state.Answer, &forget, &user, &now)
		})
		if err := x.Send(ctx, b); errors.Is(err, pgx.ErrNoRows) {
			return db.ErrChanged // it was pruned meanwhile
		} else if err != nil {
			return err
		}
		if state.Answer != nil && forget.After(now) {
			ref := personkey.Ref{Team: scope.Team}
			if user != nil {
				ref.User.UUID = *user
			}
			answered, err := v.s.db.Keys.Open(ctx, ref, personkey.RowAnswer(string(hash)), state.Answer)
			if err != nil {
				return db.Answer(err)
			}
			state.Answer = answered
		}
		state.Fingerprint = string(print)
		switch {
		case state.Answer != nil && !forget.After(now): // it begins anew
			state = idempotency.State{Order: order, Fingerprint: fingerprint}
		case state.Answer == nil && claimed == nil: // new, or given back
			state.Fingerprint = fingerprint
		}
		if state.Answer != nil || claimed != nil && claimed.After(now) {
			return x.Commit(ctx, x.Batch())
		}
		state.Started, state.Until = true, now.UTC().Add(lease)
		b = x.Batch()
		b.Queue(startKey, scope.Team.UUID, hash, state.Order.UUID, []byte(state.Fingerprint), state.Until, state.Until.Add(abandoned))
		return x.Commit(ctx, b)
	})
	if err != nil {
		return idempotency.State{}, err
	}
	return state, nil
}

func (v orderKeys) FinishKey(ctx context.Context, scope idempotency.Scope, until time.Time, answer []byte, user healthlab.UserID, keep time.Duration) error {
	var forget *time.Time // null for the time of keep
	if answer == nil {
		forget = new(db.Instant(until).Add(abandoned))
	}
	if answer != nil {
		var err error
		if answer, err = v.s.db.Keys.Seal(ctx, personkey.Ref{Team: scope.Team, User: user}, personkey.RowAnswer(string(hashOf(scope))), answer); err != nil {
			return err
		}
	}
	var kept pgconn.CommandTag
	err := v.s.db.Do(ctx, scope.Team, db.Writing, func(x *db.Tx) error {
		return x.Alone(ctx, func(b *pgx.Batch) {
			db.KeepTag(b.Queue(finishKey, scope.Team.UUID, hashOf(scope), db.Instant(until), answer, forget, keep, db.Optional(user.UUID)), &kept)
		})
	})
	if err == nil && kept.RowsAffected() == 0 {
		return fmt.Errorf("%w: another request has the key", healthlab.Precondition)
	}
	return err
}

func (v orderKeys) PruneKeys(ctx context.Context, n int) (int, error) {
	if n <= 0 {
		return 0, ctx.Err()
	}
	var pruned pgconn.CommandTag
	err := v.s.db.Do(ctx, db.AllTeams, db.Writing, func(x *db.Tx) error {
		return x.Alone(ctx, func(b *pgx.Batch) { db.KeepTag(b.Queue(pruneKeys, n), &pruned) })
	})
	if err != nil {
		return 0, err
	}
	return int(pruned.RowsAffected()), nil
}
