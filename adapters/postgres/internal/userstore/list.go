package userstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// A list of users is of the live or of the deleted ones, and filters by the exact name,
// by a prefix, or by both; each has a statement of its own, because each has an index.
type userList struct{ deleted, name, prefix bool }

// userStatements are the two statements of a list: its size and one page.
type userStatements struct{ count, page string }

var userLists = func() map[userList]userStatements {
	all := map[userList]userStatements{}
	for i := range 8 {
		l := userList{deleted: i&1 != 0, name: i&2 != 0, prefix: i&4 != 0}
		all[l] = l.statements()
	}
	return all
}()

func (l userList) statements() userStatements {
	from := ` from healthlab.users u where u.team_id = $1 and u.deleted_at is null`
	order := ` order by u.created_on, u.user_id`
	if l.deleted {
		from = ` from healthlab.users u where u.team_id = $1 and u.deleted_at is not null`
		order = ` order by u.deleted_at desc, u.user_id`
	}
	n := 1
	if l.name {
		from += ` and u.client_user_id = $2`
		n++
	}
	if l.prefix {
		// In the C collation lower changes the letters A to Z alone, and a prefix is
		// a range. The bounds of ids are null where the prefix is none of an id.
		from += fmt.Sprintf(` and (lower(u.client_user_id) >= $%d and ($%d::text is null or lower(u.client_user_id) < $%[2]d)
			or u.user_id between $%[3]d::uuid and $%[4]d::uuid)`, n+1, n+2, n+3, n+4)
		n += 4
	}
	paging := fmt.Sprintf(` offset $%d limit $%d`, n+1, n+2)
	return userStatements{count: `select count(*)` + from, page: `select ` + Columns + from + order + paging}
}

// arguments are those of the size of a list; a page has its offset and limit besides.
func (l userList) arguments(q *healthdata.UserQuery) []any {
	args := []any{q.Team.UUID}
	if l.name {
		args = append(args, q.ClientUserID)
	}
	if l.prefix {
		from := foldASCII(q.Prefix)
		low, high := idRange(from)
		args = append(args, from, after(from), low, high)
	}
	return args
}

func (v users) List(ctx context.Context, q healthdata.UserQuery) (healthdata.UserPage, error) {
	if err := ctx.Err(); err != nil {
		return healthdata.UserPage{}, err
	}
	if q.Offset < 0 || q.Limit < 0 {
		return healthdata.UserPage{}, fmt.Errorf("%w: offset and limit are zero or more", healthlab.Invalid)
	}
	if err := healthlab.CheckText(q.ClientUserID, q.Prefix); err != nil {
		return healthdata.UserPage{}, err
	}
	list := userList{deleted: q.Deleted, name: q.ClientUserID != "", prefix: q.Prefix != ""}
	sql, args := userLists[list], list.arguments(&q)
	var page healthdata.UserPage
	err := v.s.db.Do(ctx, q.Team, db.Reading, func(x *db.Tx) error {
		page = healthdata.UserPage{Users: []healthdata.User{}}
		b := x.Batch()
		b.Queue(sql.count, args...).QueryRow(func(row pgx.Row) error { return row.Scan(&page.Total) })
		b.Queue(sql.page, append(slices.Clip(args), q.Offset, cmp.Or(q.Limit, 100))...).
			Query(func(rows pgx.Rows) error {
				for rows.Next() {
					u, err := v.s.Scan(ctx, rows)
					if err != nil {
						return err
					}
					page.Users = append(page.Users, u)
				}
				return rows.Err()
			})
		return x.Send(ctx, b)
	})
	if err != nil {
		return healthdata.UserPage{}, err
	}
	return page, nil
}

// foldASCII returns s with A to Z in lower case.
func foldASCII(s string) string {
	return string(bytes.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, []byte(s)))
}

// after returns the first text, by bytes, that is after all texts with the prefix; nil
// if there is none.
func after(prefix string) *string {
	for prefix != "" {
		r, n := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-n]
		switch {
		case r == utf8.MaxRune:
			continue
		case r == 0xd7ff: // surrogates are no text
			r = 0xe000
		default:
			r++
		}
		next := prefix + string(r)
		return &next
	}
	return nil
}

// idRange returns the first and the last id whose text begins with the prefix, which is
// in lower case; nil if none can.
func idRange(prefix string) (low, high *uuid.UUID) {
	const zeros, effs = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"
	if len(prefix) > len(zeros) {
		return nil, nil
	}
	a, err := uuid.Parse(prefix + zeros[len(prefix):])
	if err != nil || !strings.HasPrefix(a.String(), prefix) {
		return nil, nil
	}
	b, err := uuid.Parse(prefix + effs[len(prefix):])
	if err != nil {
		return nil, nil
	}
	return &a, &b
}

const (
	countUsers = `select count(*) from healthlab.users where team_id = $1 and deleted_at is null`

	// date_trunc begins a week on Monday.
	countConnections = `
select date_trunc('week', c.created_on at time zone 'UTC')::date, count(*), count(*) filter (where c.status = 'error')
from healthlab.connection c join healthlab.users u on u.user_id = c.user_id
where c.team_id = $1 and c.status <> 'deregistered' and u.deleted_at is null
group by 1 order by 1`
)

func (v users) Metrics(ctx context.Context, team healthlab.TeamID) (healthdata.TeamMetrics, error) {
	var m healthdata.TeamMetrics
	err := v.s.db.Do(ctx, team, db.Reading, func(x *db.Tx) error {
		m = healthdata.TeamMetrics{Team: team, ConnectedSourcesByWeek: []healthdata.WeekCount{}}
		b := x.Batch()
		b.Queue(countUsers, team.UUID).QueryRow(func(row pgx.Row) error { return row.Scan(&m.Users) })
		b.Queue(countConnections, team.UUID).Query(func(rows pgx.Rows) error {
			var week time.Time
			var n, failed int
			_, err := pgx.ForEachRow(rows, []any{&week, &n, &failed}, func() error {
				m.ConnectedSources += n
				m.ErroredConnectedSources += failed
				m.ConnectedSourcesByWeek = append(m.ConnectedSourcesByWeek, healthdata.WeekCount{
					Date: healthlab.DateOf(week), Value: n, All: m.ConnectedSources,
				})
				return nil
			})
			return err
		})
		return x.Send(ctx, b)
	})
	if err != nil {
		return healthdata.TeamMetrics{}, err
	}
	return m, nil
}
