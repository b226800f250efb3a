package postgres

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/personkey"
)

// Continuous returns the store as a [continuous.Store].
func (s *Store) Continuous() continuous.Store { return continuousStore{s} }

type continuousStore struct{ s *Store }

const (
	queryColumns = `q.doc, q.created_at, q.revision`

	insertQuery = `
insert into healthlab.continuous_query (team_id, query_id, slug, status, resources, gap, created_at, revision, doc, backfill_after)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, '00000000-0000-0000-0000-000000000000')`

	updateQuery = `
update healthlab.continuous_query
set slug = $3, status = $4, resources = $5, gap = $6, created_at = $7, revision = $8, doc = $9
where team_id = $1 and query_id = $2`

	selectQuery = `select ` + queryColumns + ` from healthlab.continuous_query q where q.team_id = $1 and q.query_id = $2`

	lockQuery = selectQuery + ` for no key update`

	findQuery = `select ` + queryColumns + ` from healthlab.continuous_query q where q.team_id = $1 and q.slug = $2 and q.status = 'active'`

	listQueries = `
select ` + queryColumns + ` from healthlab.continuous_query q
where q.team_id = $1 and ($2::timestamptz is null or (q.created_at, q.query_id) < ($2, $3::uuid))
order by q.created_at desc, q.query_id desc limit $4`

	selectContinuousResult = `select data from healthlab.continuous_result where team_id = $1 and user_id = $2 and query_id = $3`

	selectWaiting = `
select due_at from healthlab.continuous_task where team_id = $1 and user_id = $2 and query_id = $3 and due_at is not null`

	selectHistory = `
select n, status, scheduled_at, started_at, ended_at, details from healthlab.continuous_history
where team_id = $1 and user_id = $2 and query_id = $3 and n < $4
order by n desc limit $5`
)

// queryRow returns the columns of a query.
func queryRow(q *continuous.Query) ([]any, error) {
	if err := healthlab.CheckText(q.Slug, q.Title); err != nil {
		return nil, err
	}
	doc, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("keep continuous query: %w", err)
	}
	if bytes.Contains(doc, []byte(`\u0000`)) {
		return nil, fmt.Errorf("%w: text does not contain NUL", healthlab.Invalid)
	}
	return []any{q.Team.UUID, q.ID.UUID, q.Slug, string(q.Status), q.Resources, q.Gap(), db.Instant(q.CreatedAt), q.Revision, string(doc)}, nil
}

func scanQuery(row pgx.Row, q *continuous.Query) error {
	var doc []byte
	var made time.Time
	var revision int64
	if err := row.Scan(&doc, &made, &revision); err != nil {
		return err
	}
	*q = continuous.Query{CreatedAt: made.UTC(), Revision: revision}
	return json.Unmarshal(doc, q)
}

func noQuery(err error) error { return db.MissingRow(err, "the team has no such continuous query") }

func (v continuousStore) Insert(ctx context.Context, q continuous.Query) error {
	if q.Team.IsZero() || q.ID.UUID == uuid.Nil {
		return fmt.Errorf("%w: a continuous query needs a team and an id", healthlab.Invalid)
	}
	q.Revision = 1
	row, err := queryRow(&q)
	if err != nil {
		return err
	}
	return v.s.db.Do(ctx, q.Team, db.Writing, func(u *db.Tx) error {
		return u.Alone(ctx, func(b *pgx.Batch) { b.Queue(insertQuery, row...) })
	})
}

// one reads one query.
func (v continuousStore) one(ctx context.Context, team healthlab.TeamID, sql string, name any) (continuous.Query, error) {
	var q continuous.Query
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(sql, team.UUID, name).QueryRow(func(row pgx.Row) error { return scanQuery(row, &q) })
	})
	if err != nil {
		return continuous.Query{}, noQuery(err)
	}
	return q, nil
}

func (v continuousStore) Get(ctx context.Context, team healthlab.TeamID, id continuous.QueryID) (continuous.Query, error) {
	return v.one(ctx, team, selectQuery, id.UUID)
}

func (v continuousStore) Find(ctx context.Context, team healthlab.TeamID, slug string) (continuous.Query, error) {
	if err := ctx.Err(); err != nil {
		return continuous.Query{}, err
	}
	if err := healthlab.CheckText(slug); err != nil {
		return continuous.Query{}, err
	}
	return v.one(ctx, team, findQuery, slug)
}

func (v continuousStore) Update(ctx context.Context, team healthlab.TeamID, id continuous.QueryID, change func(*continuous.Query) error) (continuous.Query, error) {
	var kept continuous.Query
	err := v.s.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		var q continuous.Query
		b := u.Batch()
		b.Queue(lockQuery, team.UUID, id.UUID).QueryRow(func(row pgx.Row) error { return scanQuery(row, &q) })
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		was := q
		was.Resources = slices.Clone(q.Resources)
		if err := change(&q); err != nil {
			return db.Answer(err)
		}
		q.ID, q.Team, q.Slug, q.CreatedAt, q.Revision = was.ID, was.Team, was.Slug, was.CreatedAt, was.Revision+1
		row, err := queryRow(&q)
		if err != nil {
			return db.Answer(err)
		}
		b = u.Batch()
		b.Queue(updateQuery, row...)
		if q.Status == continuous.Active && (was.Status != q.Status || !slices.Equal(was.Resources, q.Resources)) {
			var users []uuid.UUID
			b.Queue(selectUsersOfTeam, team.UUID).Query(func(rows pgx.Rows) (err error) {
				users, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
				return err
			})
			if err := u.Send(ctx, b); err != nil {
				return err
			}
			b = u.Batch()
			recallAll.queue(b, users, q.Resources)
		}
		b.Queue(selectQuery, team.UUID, id.UUID).QueryRow(func(row pgx.Row) error { return scanQuery(row, &kept) })
		return u.Commit(ctx, b)
	})
	if err != nil {
		return continuous.Query{}, noQuery(err)
	}
	return kept, nil
}

func (v continuousStore) List(ctx context.Context, q continuous.ListQuery) (continuous.Page, error) {
	if err := ctx.Err(); err != nil {
		return continuous.Page{}, err
	}
	size := pageSize(q.Size)
	after, id, err := parseQueryPlace(q.Cursor)
	if err != nil {
		return continuous.Page{}, err
	}
	page := continuous.Page{Queries: []continuous.Query{}}
	err = v.s.db.Read(ctx, q.Team, func(b *pgx.Batch) {
		page.Queries = page.Queries[:0]
		b.Queue(listQueries, q.Team.UUID, after, id, size+1).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var one continuous.Query
				if err := scanQuery(rows, &one); err != nil {
					return err
				}
				page.Queries = append(page.Queries, one)
			}
			return rows.Err()
		})
	})
	if err != nil {
		return continuous.Page{}, err
	}
	if len(page.Queries) > size {
		page.Queries = page.Queries[:size]
		page.Next = queryPlace(&page.Queries[size-1])
	}
	return page, nil
}

// pageSize is how many things a page has.
func pageSize(n int) int {
	if n <= 0 {
		return 50
	}
	return n
}

// queryPlace is the cursor behind a query.
func queryPlace(q *continuous.Query) string {
	return base64.RawURLEncoding.EncodeToString([]byte(q.CreatedAt.Format(time.RFC3339Nano) + " " + q.ID.String()))
}

func parseQueryPlace(cursor string) (*time.Time, *uuid.UUID, error) {
	if cursor == "" {
		return nil, nil, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	at, id, _ := bytes.Cut(text, []byte(" "))
	made, err1 := time.Parse(time.RFC3339Nano, string(at))
	u, err2 := uuid.ParseBytes(id)
	if err := errors.Join(err, err1, err2); err != nil {
		return nil, nil, db.BadCursor() // the words of err may quote the cursor
	}
	return &made, &u, nil
}

func (v continuousStore) Result(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id continuous.QueryID) ([]byte, error) {
	var data []byte
	err := v.s.db.Read(ctx, team, func(b *pgx.Batch) {
		b.Queue(selectContinuousResult, team.UUID, user.UUID, id.UUID).QueryRow(func(row pgx.Row) error { return row.Scan(&data) })
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("%w: there is no table yet", healthlab.NotFound)
	}
	if err != nil {
		return nil, err
	}
	return v.s.db.Keys.Open(ctx, personkey.Ref{Team: team, User: user}, personkey.RowResultTable(id), data)
}

func (v continuousStore) History(ctx context.Context, q continuous.HistoryQuery) (continuous.HistoryPage, error) {
	if err := ctx.Err(); err != nil {
		return continuous.HistoryPage{}, err
	}
	size := pageSize(q.Size)
	before, err := parseNumber(q.Cursor)
	if err != nil {
		return continuous.HistoryPage{}, err
	}
	entry := func(status continuous.TaskStatus, at time.Time) continuous.HistoryEntry {
		return continuous.HistoryEntry{Query: q.Query, User: q.User, Status: status, ScheduledAt: healthlab.At(at)}
	}
	var page continuous.HistoryPage
	var numbers []int64 // 0 for the one that waits
	err = v.s.db.Do(ctx, q.Team, db.Reading, func(u *db.Tx) error {
		page, numbers = continuous.HistoryPage{Entries: []continuous.HistoryEntry{}}, nil
		b := u.Batch()
		if q.Cursor == "" {
			b.Queue(selectWaiting, q.Team.UUID, q.User.UUID, q.Query.UUID).Query(func(rows pgx.Rows) error {
				for rows.Next() {
					var due time.Time
					if err := rows.Scan(&due); err != nil {
						return err
					}
					page.Entries, numbers = append(page.Entries, entry(continuous.TaskScheduled, due)), append(numbers, 0)
				}
				return rows.Err()
			})
		}
		b.Queue(selectHistory, q.Team.UUID, q.User.UUID, q.Query.UUID, before, size+1).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var n int64
				var status string
				var due time.Time
				var started, ended *time.Time
				var details *string
				if err := rows.Scan(&n, &status, &due, &started, &ended, &details); err != nil {
					return err
				}
				e := entry(continuous.TaskStatus(status), due)
				e.StartedAt, e.EndedAt, e.Details = at(started), at(ended), details
				page.Entries, numbers = append(page.Entries, e), append(numbers, n)
			}
			return rows.Err()
		})
		return u.Send(ctx, b)
	})
	if err != nil {
		return continuous.HistoryPage{}, err
	}
	if len(page.Entries) > size {
		page.Entries = page.Entries[:size]
		page.Next = numberCursor(numbers, size)
	}
	return page, nil
}

func at(t *time.Time) *healthlab.Time {
	if t == nil {
		return nil
	}
	out := healthlab.At(*t)
	return &out
}
