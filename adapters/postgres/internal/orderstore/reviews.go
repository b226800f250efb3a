package orderstore

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/outbox"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/matchtest"
	"github.com/healthlab-dev/healthlab/personkey"
)

// Reviews returns the store as an [orders.ReviewStore].
func (s *Store) Reviews() orders.ReviewStore { return reviews{s} }

type reviews struct{ s *Store }

const (
	insertResult = `
insert into healthlab.raw_result (team_id, raw_id, user_id, revision, status, escalated, decision, lab, tokens, created_at, doc)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

	// An erasure of the user waits for the result, and finds it. A team that has no users
	// here keeps them elsewhere.
	shareUserOfResult = `
with there as (select from healthlab.users where team_id = $1 and user_id = $2 for key share)
select exists (select from there) or not exists (select from healthlab.users where team_id = $1)`

	updateResult = `
update healthlab.raw_result set user_id = $3, revision = $4, status = $5, escalated = $6, decision = $7, lab = $8, tokens = $9,
	created_at = $10, doc = $11
where team_id = $1 and raw_id = $2`

	selectResult = `select r.raw_id, r.user_id, r.doc, r.revision, r.created_at from healthlab.raw_result r where r.team_id = $1 and r.raw_id = $2`

	selectVisibleResult = selectResult + notDeleted

	lockResult = selectResult + ` for update`

	resultFilters = ` from healthlab.raw_result r where team_id = $1` + notDeleted + `
	and case when $2 = '' then status = 'pending_customer_review' or status = 'pending_ops_review' and escalated else status = $2 end
	and ($3 = '' or decision = $3) and ($4 = '' or lab = $4)
	and ($5::timestamptz is null or created_at >= $5) and ($6::timestamptz is null or created_at < $6)
	and ($7::bigint[] is null or tokens @> $7 or tokens @> $8::bigint[])
	and (not $9 or escalated or status <> 'pending_ops_review')`

	countResults = `select count(*)` + resultFilters

	// The cursor names the row where the page before ended, whatever became of it.
	selectResults = `select raw_id, user_id, doc, revision, created_at` + resultFilters + `
	and ($10::uuid is null or (created_at, raw_id) = ($11, $10) or created_at < $11 or created_at = $11 and raw_id > $10)
order by created_at desc, raw_id limit $12`

	startMatchTestRun = `
insert into healthlab.result_trial (team_id, trial_id, key_hash, due_at, doc) values ($1, $2, $3, $4, $5)
on conflict (team_id, key_hash) do nothing`

	trialColumns = `select team_id, trial_id, doc, due_at from healthlab.result_trial `

	selectMatchTestRunByKey = trialColumns + `where team_id = $1 and key_hash = $2`

	selectMatchTestRun = trialColumns + `where team_id = $1 and trial_id = $2`

	lockMatchTestRun = selectMatchTestRun + ` for update`

	updateMatchTestRun = `update healthlab.result_trial set due_at = $3, doc = $4 where team_id = $1 and trial_id = $2`

	claimResultMatchTestRuns = `
with due as (
	select team_id, trial_id, due_at as was from healthlab.result_trial
	where due_at <= healthlab.clock() order by due_at, trial_id limit $1 for no key update skip locked
), moved as (
	update healthlab.result_trial t set due_at = healthlab.clock() + $2::interval from due where t.team_id = due.team_id and t.trial_id = due.trial_id
	returning t.team_id, t.trial_id, t.doc, t.due_at, due.was
)
select team_id, trial_id, doc, due_at from moved order by was, trial_id`
)

// resultRow returns the arguments of insertResult and updateResult.
func (v reviews) resultRow(ctx context.Context, r orders.RawResult, revision int64) ([]any, error) {
	r.CandidateGroups, r.AllowedActions, r.Revision = nil, nil, 0
	doc, err := v.s.db.SealDocument(ctx, personkey.Ref{Team: r.Team, User: r.Owner()}, personkey.RowResult(r.ID), r)
	if err != nil {
		return nil, err
	}
	tokens, err := v.s.db.Keys.Tokens(ctx, r.Team, r.SearchTerms())
	if err != nil {
		return nil, err
	}
	return []any{
		r.Team.UUID, r.ID.UUID, db.Optional(r.Owner().UUID), revision, string(r.Status), r.Escalated, string(r.DecisionCode), r.Lab.Slug,
		tokens, db.Instant(r.CreatedAt.Time), doc,
	}, nil
}

// scanResult reads a result. After [personkey.ErrErased], r has its id and when it was made.
func (v reviews) scanResult(ctx context.Context, row pgx.Row, team healthlab.TeamID, r *orders.RawResult) error {
	var id orders.RawResultID
	var user *uuid.UUID
	var doc []byte
	var kept orders.RawResult
	var revision int64
	var made time.Time
	if err := row.Scan(&id.UUID, &user, &doc, &revision, &made); err != nil {
		return err
	}
	r.ID, r.CreatedAt = id, healthlab.At(made)
	ref := personkey.Ref{Team: team}
	if user != nil {
		ref.User.UUID = *user
	}
	if err := v.s.db.OpenDocument(ctx, ref, personkey.RowResult(id), doc, &kept); err != nil {
		return fmt.Errorf("decode result: %w", err)
	}
	kept.Revision = revision
	*r = kept
	return nil
}

func (v reviews) queueResult(ctx context.Context, b *pgx.Batch, sql string, team healthlab.TeamID, id orders.RawResultID, r *orders.RawResult) {
	b.Queue(sql, team.UUID, id.UUID).QueryRow(func(row pgx.Row) error { return v.scanResult(ctx, row, team, r) })
}

func (v reviews) InsertResult(ctx context.Context, r orders.RawResult, events []healthlab.Event) error {
	row, err := v.resultRow(ctx, r, 1)
	if err != nil {
		return err
	}
	return v.s.db.Do(ctx, r.Team, db.Writing, func(x *db.Tx) error {
		there := true
		b := x.Batch()
		if user := r.Owner(); !user.IsZero() {
			b.Queue(shareUserOfResult, r.Team.UUID, user.UUID).QueryRow(func(row pgx.Row) error { return row.Scan(&there) })
		}
		b.Queue(insertResult, row...)
		if err := x.Send(ctx, b); err != nil {
			return err
		}
		if !there {
			return errUserGone
		}
		b = x.Batch()
		if err := v.s.messages.Emit(ctx, x, b, events, outbox.Names{}); err != nil {
			return err
		}
		return x.Commit(ctx, b)
	})
}

func (v reviews) Result(ctx context.Context, team healthlab.TeamID, id orders.RawResultID) (orders.RawResult, error) {
	var r orders.RawResult
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) { v.queueResult(ctx, b, selectVisibleResult, team, id, &r) })
	return r, db.MissingRow(err, "result under review")
}

// resultCursor is the cursor behind a result.
func resultCursor(r *orders.RawResult) string {
	text := r.ID.String() + " " + db.Instant(r.CreatedAt.Time).Format(time.RFC3339Nano)
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

func readResultCursor(cursor string) (*uuid.UUID, time.Time, error) {
	if cursor == "" {
		return nil, time.Time{}, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	first, second, _ := strings.Cut(string(raw), " ")
	id, errID := uuid.Parse(first)
	at, errAt := time.Parse(time.RFC3339Nano, second)
	if err != nil || errID != nil || errAt != nil {
		return nil, time.Time{}, catalogue.BadCursor()
	}
	return &id, at, nil
}

func (v reviews) Results(ctx context.Context, q orders.ResultQuery) (orders.ResultPage, error) {
	q, err := q.Normal()
	if err != nil {
		return orders.ResultPage{}, err
	}
	if err := healthlab.CheckText(q.Search, q.LabSlug); err != nil {
		return orders.ResultPage{}, err
	}
	after, at, err := readResultCursor(q.Cursor)
	if err != nil {
		return orders.ResultPage{}, err
	}
	search := make([]any, 2) // by the name, and by the birth date
	for i, terms := range q.SearchTerms() {
		if search[i], err = v.s.tokens(ctx, q.Team, terms); err != nil {
			return orders.ResultPage{}, err
		}
	}
	filters := []any{q.Team.UUID, string(q.Status), string(q.Decision), q.LabSlug, bound(q.CreatedFrom), bound(q.CreatedBefore),
		search[0], search[1], q.Escalated}
	var page orders.ResultPage
	var more bool
	var read int // rows of the page, those of erased persons included
	var last orders.RawResult
	err = v.s.db.Do(ctx, q.Team, db.Reading, func(x *db.Tx) error {
		page, more, read = orders.ResultPage{Results: []orders.RawResult{}}, false, 0
		b := x.Batch()
		b.Queue(countResults, filters...).QueryRow(func(row pgx.Row) error { return row.Scan(&page.Total) })
		b.Queue(selectResults, append(filters, after, at, q.Limit+2)...).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var r orders.RawResult
				err := v.scanResult(ctx, rows, q.Team, &r)
				erased := errors.Is(err, personkey.ErrErased)
				if err != nil && !erased {
					return err
				}
				if after != nil && r.ID.UUID == *after {
					continue
				}
				if more = read == q.Limit; more {
					continue
				}
				read, last = read+1, r
				if !erased {
					page.Results = append(page.Results, r)
				}
			}
			return rows.Err()
		})
		return x.Send(ctx, b)
	})
	if err != nil {
		return orders.ResultPage{}, err
	}
	if more {
		page.Next = resultCursor(&last)
	}
	return page, nil
}

func (v reviews) UpdateResult(ctx context.Context, team healthlab.TeamID, id orders.RawResultID, change func(*orders.RawResult) ([]healthlab.Event, error)) (orders.RawResult, error) {
	return v.AssignResult(ctx, team, id, orders.Assignment{}, func(r *orders.RawResult, _, _ *orders.Record) ([]healthlab.Event, error) {
		return change(r)
	})
}

func (v reviews) AssignResult(ctx context.Context, team healthlab.TeamID, id orders.RawResultID, s orders.Assignment, change orders.AssignChange) (orders.RawResult, error) {
	if s.New != nil && (s.New.TeamID != team || s.New.ID.IsZero()) {
		return orders.RawResult{}, fmt.Errorf("%w: an order needs its team and an id", healthlab.Invalid)
	}
	var kept orders.RawResult
	err := v.s.db.Do(ctx, team, db.Writing, func(x *db.Tx) error {
		sides, item, err := v.lockSides(ctx, x, team, id, s)
		if err != nil {
			return err
		}
		revision := item.Revision
		events, err := change(&item, sides.was, sides.made)
		if err != nil {
			return db.Answer(err)
		}
		if item.Team != team || item.ID != id {
			return db.Answer(fmt.Errorf("%w: a result keeps its id and its team", healthlab.Invalid))
		}
		row, err := v.resultRow(ctx, item, revision+1)
		if err != nil {
			return db.Answer(err)
		}
		b := x.Batch()
		if err := sides.queue(ctx, v.s, b); err != nil {
			return db.Answer(err)
		}
		b.Queue(updateResult, row...)
		if err := v.s.messages.Emit(ctx, x, b, events, outbox.Names{}); err != nil {
			return err
		}
		v.queueResult(ctx, b, selectResult, team, id, &kept)
		return x.Commit(ctx, b)
	})
	return kept, db.MissingRow(err, "result under review, or its order")
}

// assignedOrders are the orders that a decision about a result changes.
type assignedOrders struct {
	was, made             *orders.Record
	wasBefore, madeBefore orderKept
	held                  []string // by was, before
}

// lockSides locks what a decision changes: the user of an order that follows no
// other, the orders' transaction, and the result last.
func (v reviews) lockSides(ctx context.Context, x *db.Tx, team healthlab.TeamID, id orders.RawResultID, s orders.Assignment) (assignedOrders, orders.RawResult, error) {
	var out assignedOrders
	var item orders.RawResult
	var drawn int64
	var now time.Time
	var taken bool
	alive := true
	b := x.Batch()
	if s.New != nil && s.Order.IsZero() {
		queueAlive(b, s.New, &alive)
	}
	switch {
	case !s.Order.IsZero():
		out.was = &orders.Record{}
		queueDraw(b, &drawn, &now, drawForOrder, team.UUID, s.Order.UUID)
		v.s.queueOrder(ctx, b, lockOrder, team, s.Order, out.was)
	case s.New != nil:
		queueDraw(b, &drawn, &now, drawForNew, team.UUID, s.New.OrderTransaction.ID.UUID)
	}
	if s.New != nil {
		queueTaken(b, s.New.ID, &taken)
	}
	v.queueResult(ctx, b, lockResult, team, id, &item)
	if err := x.Send(ctx, b); err != nil {
		return out, item, err
	}
	if !alive {
		return out, item, errUserGone
	}
	if taken {
		return out, item, errOrderTaken
	}
	if out.was != nil {
		out.was.NextEventID, out.was.StoreTime = drawn, now
		out.wasBefore, out.held = orderIdentity(out.was), holdsOf(out.was)
	}
	if s.New != nil {
		r := *s.New
		if out.was != nil {
			r.OrderTransaction = joined(out.was, &r)
		}
		r.NextEventID, r.StoreTime = drawn+eventRoom, now
		out.made, out.madeBefore = &r, orderIdentity(&r)
	}
	return out, item, nil
}

// queue writes the orders.
func (s assignedOrders) queue(ctx context.Context, store *Store, b *pgx.Batch) error {
	if s.was != nil {
		row, err := store.keepOrder(ctx, s.was, s.wasBefore, s.was.Revision+1)
		if err != nil {
			return err
		}
		b.Queue(updateOrder, row...)
		queueHolds(b, s.was, s.held)
	}
	if s.made != nil {
		row, err := store.keepOrder(ctx, s.made, s.madeBefore, 1)
		if err != nil {
			return err
		}
		b.Queue(insertOrder, row...)
		queueHolds(b, s.made, nil)
	}
	return nil
}

// joined is the transaction of an order with another one that is about to come in.
func joined(parent, child *orders.Record) orders.OrderTransaction {
	members := parent.OrderTransaction.Orders
	return orders.NewTransaction(parent.OrderTransaction.ID, append(members[:len(members):len(members)],
		orders.TransactionMember{ID: child.ID, Origin: child.Origin, ParentID: &parent.ID, CreatedAt: child.CreatedAt, UpdatedAt: child.CreatedAt}))
}

// MatchTestRuns returns the store as a [matchtest.Store].
func (s *Store) MatchTestRuns() matchtest.Store { return matchTestRuns{s} }

type matchTestRuns struct{ s *Store }

// document encodes a test run under the team's own key: its persons are made up.
func (v matchTestRuns) document(ctx context.Context, t matchtest.Record) ([]byte, error) {
	t.Due = time.Time{}
	return v.s.db.SealDocument(ctx, personkey.Ref{Team: t.Team}, personkey.RowMatchTestRun(t.RunID), t)
}

func (v matchTestRuns) scan(ctx context.Context, row pgx.Row, t *matchtest.Record) error {
	var doc []byte
	var due *time.Time
	var kept matchtest.Record
	var team healthlab.TeamID
	var id matchtest.RunID
	if err := row.Scan(&team.UUID, &id.UUID, &doc, &due); err != nil {
		return err
	}
	if err := v.s.db.OpenDocument(ctx, personkey.Ref{Team: team}, personkey.RowMatchTestRun(id), doc, &kept); err != nil {
		return fmt.Errorf("decode test run: %w", err)
	}
	if due != nil {
		kept.Due = due.UTC()
	}
	*t = kept
	return nil
}

func keyHash(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

func (v matchTestRuns) StartMatchTestRun(ctx context.Context, t matchtest.Record) (matchtest.Record, bool, error) {
	doc, err := v.document(ctx, t)
	if err != nil {
		return matchtest.Record{}, false, err
	}
	var kept matchtest.Record
	err = v.s.db.Do(ctx, t.Team, db.Writing, func(x *db.Tx) error {
		b := x.Batch()
		b.Queue(startMatchTestRun, t.Team.UUID, t.RunID.UUID, keyHash(t.Key), db.Nullable(db.Instant(t.Due)), doc)
		b.Queue(selectMatchTestRunByKey, t.Team.UUID, keyHash(t.Key)).QueryRow(func(row pgx.Row) error { return v.scan(ctx, row, &kept) })
		return x.Commit(ctx, b)
	})
	return kept, err == nil && kept.RunID == t.RunID, err
}

func (v matchTestRuns) MatchTestRun(ctx context.Context, team healthlab.TeamID, id matchtest.RunID) (matchtest.Record, error) {
	var t matchtest.Record
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(selectMatchTestRun, team.UUID, id.UUID).QueryRow(func(row pgx.Row) error { return v.scan(ctx, row, &t) })
	})
	return t, db.MissingRow(err, "test run")
}

func (v matchTestRuns) UpdateMatchTestRun(ctx context.Context, team healthlab.TeamID, id matchtest.RunID, change func(*matchtest.Record) error) (matchtest.Record, error) {
	var kept matchtest.Record
	err := v.s.db.Do(ctx, team, db.Writing, func(x *db.Tx) error {
		var t matchtest.Record
		b := x.Batch()
		b.Queue(lockMatchTestRun, team.UUID, id.UUID).QueryRow(func(row pgx.Row) error { return v.scan(ctx, row, &t) })
		if err := x.Send(ctx, b); err != nil {
			return err
		}
		was := t
		if err := change(&t); err != nil {
			return db.Answer(err)
		}
		t.Team, t.RunID, t.Key, t.Fingerprint = was.Team, was.RunID, was.Key, was.Fingerprint
		doc, err := v.document(ctx, t)
		if err != nil {
			return db.Answer(err)
		}
		b = x.Batch()
		b.Queue(updateMatchTestRun, team.UUID, id.UUID, db.Nullable(db.Instant(t.Due)), doc)
		b.Queue(selectMatchTestRun, team.UUID, id.UUID).QueryRow(func(row pgx.Row) error { return v.scan(ctx, row, &kept) })
		return x.Commit(ctx, b)
	})
	return kept, db.MissingRow(err, "test run")
}

func (v matchTestRuns) ClaimMatchTestRuns(ctx context.Context, n int, lease time.Duration) ([]matchtest.Record, error) {
	if n <= 0 {
		return []matchtest.Record{}, ctx.Err()
	}
	var out []matchtest.Record
	err := v.s.db.Do(ctx, db.AllTeams, db.Writing, func(x *db.Tx) error {
		out = []matchtest.Record{}
		return x.Alone(ctx, func(b *pgx.Batch) {
			b.Queue(claimResultMatchTestRuns, n, lease).Query(func(rows pgx.Rows) error {
				for rows.Next() {
					var t matchtest.Record
					if err := v.scan(ctx, rows, &t); err != nil {
						return err
					}
					out = append(out, t)
				}
				return rows.Err()
			})
		})
	})
	return out, err
}
