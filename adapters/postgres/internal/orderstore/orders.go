package orderstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/outbox"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/personkey"
)

// Orders returns the store as an [orders.Store].
func (s *Store) Orders() orders.Store { return ordersStore{s} }

type ordersStore struct{ s *Store }

const (
	selectOrder = `select ` + orderColumns + ` from healthlab.orders o where o.team_id = $1 and o.order_id = $2`

	selectSample = `select ` + orderColumns + ` from healthlab.orders o where o.team_id = $1 and o.sample_id = $2`

	// A claim holds the order without its transaction, so the order is locked, too.
	lockOrder = selectOrder + ` for no key update of o`

	// These lock the transaction first and draw afterwards, so that of two changes the
	// later one has the higher number. Other transactions do not wait.
	drawForNew = `
insert into healthlab.order_transaction (team_id, transaction_id) values ($1, $2)
on conflict (team_id, transaction_id) do update set event_id = default
returning event_id, healthlab.clock()`

	drawForOrder = `
insert into healthlab.order_transaction (team_id, transaction_id)
select team_id, transaction_id from healthlab.orders where team_id = $1 and order_id = $2
on conflict (team_id, transaction_id) do update set event_id = default
returning event_id, healthlab.clock()`

	// An erasure of the user waits for the order, and finds it. A team that has no users
	// here keeps them elsewhere.
	shareUserOfOrder = `
with alive as (select from healthlab.users where team_id = $1 and user_id = $2 and deleted_at is null for key share)
select exists (select from alive) or not exists (select from healthlab.users where team_id = $1)`

	hasOrder = `select exists (select from healthlab.orders where order_id = $1)`
)

// eventRoom is how many ids of events one order may use of those that were drawn; there
// is room for two orders.
const eventRoom = 100

func (v ordersStore) Insert(ctx context.Context, r orders.Record, change orders.Change) (orders.Record, error) {
	if r.TeamID.IsZero() || r.ID.IsZero() {
		return orders.Record{}, fmt.Errorf("%w: an order needs a team and an id", healthlab.Invalid)
	}
	var kept orders.Record
	var wanted []string
	err := v.s.db.Do(ctx, r.TeamID, db.Writing, func(x *db.Tx) error {
		next := r
		var alive, taken bool
		b := x.Batch()
		queueAlive(b, &r, &alive)
		queueDraw(b, &next.NextEventID, &next.StoreTime, drawForNew, r.TeamID.UUID, r.OrderTransaction.ID.UUID)
		queueTaken(b, r.ID, &taken)
		if err := x.Send(ctx, b); err != nil {
			return err
		}
		if !alive {
			return errUserGone
		}
		if taken {
			return errOrderTaken
		}
		events, err := change(&next)
		if err != nil {
			return db.Answer(err)
		}
		row, err := v.s.keepOrder(ctx, &next, orderIdentity(&r), 1)
		if err != nil {
			return db.Answer(err)
		}
		b = x.Batch()
		b.Queue(insertOrder, row...)
		wanted = holdsOf(&next)
		queueHolds(b, &next, nil)
		if err := v.s.messages.Emit(ctx, x, b, events, outbox.Names{}); err != nil {
			return err
		}
		v.s.queueOrder(ctx, b, selectOrder, r.TeamID, r.ID, &kept)
		return x.Commit(ctx, b)
	})
	if err != nil {
		return orders.Record{}, v.held(ctx, err, r.TeamID, r.ID, wanted)
	}
	return kept, nil
}

func (v ordersStore) InsertAfter(ctx context.Context, parent orders.OrderID, child orders.Record, change orders.PairChange) (orders.Record, orders.Record, error) {
	team := child.TeamID
	if team.IsZero() || child.ID.IsZero() {
		return orders.Record{}, orders.Record{}, fmt.Errorf("%w: an order needs a team and an id", healthlab.Invalid)
	}
	var keptParent, keptChild orders.Record
	var wanted []string
	err := v.s.db.Do(ctx, team, db.Writing, func(x *db.Tx) error {
		var p orders.Record
		var drawn int64
		var now time.Time
		var taken bool
		b := x.Batch()
		queueDraw(b, &drawn, &now, drawForOrder, team.UUID, parent.UUID)
		v.s.queueOrder(ctx, b, lockOrder, team, parent, &p)
		queueTaken(b, child.ID, &taken)
		if err := x.Send(ctx, b); err != nil {
			return err
		}
		if taken {
			return errOrderTaken
		}
		c := child
		c.OrderTransaction = joined(&p, &c)
		p.NextEventID, c.NextEventID = drawn, drawn+eventRoom
		p.StoreTime, c.StoreTime = now, now
		wasParent, wasChild, revision := orderIdentity(&p), orderIdentity(&c), p.Revision
		held := holdsOf(&p)
		events, err := change(&p, &c)
		if err != nil {
			return db.Answer(err)
		}
		parentRow, err := v.s.keepOrder(ctx, &p, wasParent, revision+1)
		if err != nil {
			return db.Answer(err)
		}
		if !c.OrderTransaction.ID.IsZero() {
			wasChild.transaction = c.OrderTransaction.ID // it may be one of its own
		}
		childRow, err := v.s.keepOrder(ctx, &c, wasChild, 1)
		if err != nil {
			return db.Answer(err)
		}
		b = x.Batch()
		b.Queue(updateOrder, parentRow...)
		b.Queue(insertOrder, childRow...)
		wanted = append(holdsOf(&p), holdsOf(&c)...)
		queueHolds(b, &p, held)
		queueHolds(b, &c, nil)
		if err := v.s.messages.Emit(ctx, x, b, events, outbox.Names{}); err != nil {
			return err
		}
		v.s.queueOrder(ctx, b, selectOrder, team, parent, &keptParent)
		v.s.queueOrder(ctx, b, selectOrder, team, child.ID, &keptChild)
		return x.Commit(ctx, b)
	})
	if err != nil {
		return orders.Record{}, orders.Record{}, noOrder(v.held(ctx, err, team, parent, wanted))
	}
	return keptParent, keptChild, nil
}

func (v ordersStore) Get(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
	var r orders.Record
	if err := v.s.db.Read(ctx, team, func(b *pgx.Batch) { v.s.queueOrder(ctx, b, selectOrder, team, id, &r) }); err != nil {
		return orders.Record{}, noOrder(err)
	}
	return r, nil
}

func (v ordersStore) Update(ctx context.Context, team healthlab.TeamID, id orders.OrderID, change orders.Change) (orders.Record, error) {
	var kept orders.Record
	var wanted []string
	err := v.s.db.Do(ctx, team, db.Writing, func(x *db.Tx) error {
		var r orders.Record
		var drawn int64
		var now time.Time
		b := x.Batch()
		queueDraw(b, &drawn, &now, drawForOrder, team.UUID, id.UUID)
		v.s.queueOrder(ctx, b, lockOrder, team, id, &r)
		if err := x.Send(ctx, b); err != nil {
			return err
		}
		was, revision, held := orderIdentity(&r), r.Revision, holdsOf(&r)
		r.NextEventID, r.StoreTime = drawn, now
		events, err := change(&r)
		if err != nil {
			return db.Answer(err)
		}
		row, err := v.s.keepOrder(ctx, &r, was, revision+1)
		if err != nil {
			return db.Answer(err)
		}
		b = x.Batch()
		b.Queue(updateOrder, row...)
		wanted = holdsOf(&r)
		queueHolds(b, &r, held)
		if err := v.s.messages.Emit(ctx, x, b, events, outbox.Names{}); err != nil {
			return err
		}
		v.s.queueOrder(ctx, b, selectOrder, team, id, &kept)
		return x.Commit(ctx, b)
	})
	if err != nil {
		return orders.Record{}, noOrder(v.held(ctx, err, team, id, wanted))
	}
	return kept, nil
}

const selectOrdersOfUser = `select order_id from healthlab.orders where team_id = $1 and user_id = $2 order by order_id`

func (v ordersStore) OfUser(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]orders.OrderID, error) {
	var ids []orders.OrderID
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(selectOrdersOfUser, team.UUID, user.UUID).Query(func(rows pgx.Rows) (err error) {
			ids, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (id orders.OrderID, err error) {
				return id, row.Scan(&id.UUID)
			})
			return err
		})
	})
	return ids, err
}

func (v ordersStore) FindSample(ctx context.Context, team healthlab.TeamID, sampleID string) (orders.Record, error) {
	if err := ctx.Err(); err != nil {
		return orders.Record{}, err
	}
	if err := healthlab.CheckText(sampleID); err != nil {
		return orders.Record{}, err
	}
	var r orders.Record
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(selectSample, team.UUID, sampleID).QueryRow(func(row pgx.Row) error { return v.s.scanOrder(ctx, row, &r) })
	})
	if err != nil {
		return orders.Record{}, noOrder(err)
	}
	return r, nil
}

// The claimed rows are locked before they are changed, and what others hold is passed
// over.
const claimOrders = `
with due as (
	select team_id, order_id, lab_due as was from healthlab.orders
	where lab_due <= $1 and (lab_lease is null or lab_lease <= healthlab.clock())
	order by lab_due, order_id limit $2 for no key update skip locked
), moved as (
	update healthlab.orders t set lab_lease = healthlab.clock() + $3::interval, lab_attempts = t.lab_attempts + 1, lab_started = true
	from due where t.team_id = due.team_id and t.order_id = due.order_id
	returning t.*, due.was
)
select ` + orderColumns + ` from moved o order by o.was, o.order_id`

const claimNotifications = `
with due as (
	select team_id, order_id, later_due as was from healthlab.orders
	where later_due <= $1 and not hidden and (later_lease is null or later_lease <= healthlab.clock())
	order by later_due, order_id limit $2 for no key update skip locked
), moved as (
	update healthlab.orders t set later_lease = healthlab.clock() + $3::interval
	from due where t.team_id = due.team_id and t.order_id = due.order_id
	returning t.*, due.was
)
select ` + orderColumns + ` from moved o order by o.was, o.order_id`

func (v ordersStore) Claim(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
	return v.claim(ctx, claimOrders, n, now, lease)
}

func (v ordersStore) ClaimNotifications(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
	return v.claim(ctx, claimNotifications, n, now, lease)
}

func (v ordersStore) claim(ctx context.Context, sql string, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
	if n <= 0 {
		return []orders.Record{}, ctx.Err()
	}
	var out []orders.Record
	err := v.s.db.Do(ctx, db.AllTeams, db.Writing, func(x *db.Tx) error {
		out = []orders.Record{}
		return x.Alone(ctx, func(b *pgx.Batch) {
			b.Queue(sql, now.UTC(), n, lease).Query(func(rows pgx.Rows) error {
				for rows.Next() {
					var r orders.Record
					err := v.s.scanOrder(ctx, rows, &r)
					if errors.Is(err, personkey.ErrErased) {
						continue
					}
					if err != nil {
						return err
					}
					out = append(out, r)
				}
				return rows.Err()
			})
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

const (
	claimFeed = `
insert into healthlab.order_feed as f (team_id, lab, cursor, until) values ($1, $2, '', healthlab.clock() + $3::interval)
on conflict (team_id, lab) do update set until = excluded.until where f.until is null or f.until <= healthlab.clock()
returning cursor, until`

	moveFeed = `
update healthlab.order_feed set cursor = $4, until = null where team_id = $1 and lab = $2 and until = $3`
)

func (v ordersStore) ClaimFeed(ctx context.Context, lab string, lease time.Duration) (cursor string, until time.Time, err error) {
	err = v.s.db.Do(ctx, db.AllTeams, db.Writing, func(x *db.Tx) error {
		return x.Alone(ctx, func(b *pgx.Batch) {
			b.Queue(claimFeed, db.AllTeams.UUID, lab, lease).QueryRow(func(row pgx.Row) error {
				err := row.Scan(&cursor, &until)
				until = until.UTC()
				if errors.Is(err, pgx.ErrNoRows) {
					return nil
				}
				return err
			})
		})
	})
	if err != nil {
		return "", time.Time{}, err
	}
	return cursor, until, nil
}

func (v ordersStore) MoveFeed(ctx context.Context, lab string, until time.Time, cursor string) error {
	var moved pgconn.CommandTag
	err := v.s.db.Do(ctx, db.AllTeams, db.Writing, func(x *db.Tx) error {
		return x.Alone(ctx, func(b *pgx.Batch) {
			db.KeepTag(b.Queue(moveFeed, db.AllTeams.UUID, lab, db.Instant(until), cursor), &moved)
		})
	})
	if err == nil && moved.RowsAffected() == 0 {
		return fmt.Errorf("%w: another process has the feed", healthlab.Precondition)
	}
	return err
}

// errOrderTaken says that an order has the id of a new one.
var errOrderTaken = fmt.Errorf("%w: the order's id is taken", healthlab.Conflict)

// errUserGone says that a new order is for a user who is not there, or not any more.
var errUserGone = fmt.Errorf("%w: the user of the order", healthlab.NotFound)

func noOrder(err error) error { return db.MissingRow(err, "order") }

func queueDraw(b *pgx.Batch, drawn *int64, now *time.Time, sql string, team, id uuid.UUID) {
	b.Queue(sql, team, id).QueryRow(func(row pgx.Row) error {
		err := row.Scan(drawn, now)
		*now = now.UTC()
		return err
	})
}

func queueAlive(b *pgx.Batch, r *orders.Record, alive *bool) {
	b.Queue(shareUserOfOrder, r.TeamID.UUID, r.UserID.UUID).QueryRow(func(row pgx.Row) error { return row.Scan(alive) })
}

func queueTaken(b *pgx.Batch, id orders.OrderID, taken *bool) {
	b.Queue(hasOrder, id.UUID).QueryRow(func(row pgx.Row) error { return row.Scan(taken) })
}

func (s *Store) queueOrder(ctx context.Context, b *pgx.Batch, sql string, team healthlab.TeamID, id orders.OrderID, r *orders.Record) {
	b.Queue(sql, team.UUID, id.UUID).QueryRow(func(row pgx.Row) error { return s.scanOrder(ctx, row, r) })
}
