package postgres

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// keepPlans makes the server plan each statement once per session, and use an index. Otherwise the server would go on
// to use sequential scans that it planned while a table was small.
const keepPlans = `select set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)`

// planEach lets the server plan a statement for its argument values. It reverses the first setting of keepPlans.
const planEach = `select set_config('plan_cache_mode', 'auto', true)`

// reading says how a batch of queries is executed.
type reading struct {
	locked bool // take the locks that the queries name
	absent bool // also lock users who have no row
	host   bool // the batch runs in the host's transaction, whose settings must not change
}

// queueQueries adds queries to a batch. The returned rows are filled when the batch is sent.
//
// Queries with a lock come first, those of single keys before those of ranges, so that later queries see the rows
// for which the locks waited. The row of a user is locked before all others, because erasures and insertions
// conflict on it. One statement answers consecutive queries for single values of one column.
func (e *Store) queueQueries(b *pgx.Batch, q []store.Query, how reading) [][]store.Row {
	order := make([]int, len(q))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		x, y := &q[i], &q[j]
		return cmp.Or(rank(x, how)-rank(y, how), store.CompareKeys(x.Key, y.Key), cmp.Compare(x.From, y.From), int(y.Lock)-int(x.Lock))
	})
	out := make([][]store.Row, len(q))
	named := false
	last := ""
	for len(order) > 0 {
		first, n := &q[order[0]], 1
		for n < len(order) && e.answersBoth(first, &q[order[n]], how) {
			n++
		}
		these := order[:n]
		order = order[n:]
		// A query without a team needs no change of the setting: the policies show rows without a team to every team.
		if team := teamOfQuery(first); !named || team != last && team != "" {
			e.nameTeam(b, team)
			named, last = true, team
		}
		for _, i := range these {
			if how.absent && locksUser(&q[i]) {
				b.Queue(lockUser[q[i].Lock], e.userLock(q[i].Key))
			}
		}
		switch t := e.tables[first.Table]; {
		case n > 1:
			t.queueValues(b, q, these, how, out)
		case first.By == store.ByUser && first.Table == "":
			e.queueAllTables(b, *first, how, &out[these[0]])
		case t != nil:
			t.queue(b, first, how, &out[these[0]])
		}
	}
	return out
}

// rank returns the position of a query in the order in which a batch takes locks: 0 for the row of a user, 1 for
// another single row, 2 for a range, 3 for a query without a lock.
func rank(q *store.Query, how reading) int {
	switch {
	case q.Lock == store.Plain || !how.locked:
		return 3
	case q.By != store.ByKey:
		return 2
	case q.Table != store.UserTable:
		return 1
	}
	return 0
}

// answersBoth reports whether one statement can answer two queries: both are for single values of the same column of a
// table, and lock rows in the same way. For a table per user, both must name the same user; if Citus distributes it,
// neither may lock.
func (e *Store) answersBoth(x, y *store.Query, how reading) bool {
	t := e.tables[x.Table]
	switch {
	case t == nil || x.Table != y.Table || x.Team != y.Team || x.By != y.By || x.Bare != y.Bare:
		return false
	case how.locked && (x.Lock != y.Lock || t.spread && x.Lock != store.Plain):
		return false
	case t.def.PerUser && (x.User.IsZero() || x.User != y.User):
		return false
	}
	return ofOneValue(x) && ofOneValue(y)
}

// ofOneValue reports whether a query is for the rows with one value of a column, without a limit.
func ofOneValue(q *store.Query) bool {
	switch q.By {
	case store.ByKey:
		return true
	case store.ByFirst, store.BySecond:
		return q.Limit == 0 && !q.Desc && q.To == q.From+"\x00"
	default:
		return false
	}
}

// queueValues adds one statement that answers the queries q[i] for all i in these. They are for single values of one
// column. It appends the rows of q[i] to out[i].
func (t *table) queueValues(b *pgx.Batch, q []store.Query, these []int, how reading, out [][]store.Row) {
	first := &q[these[0]]
	column, order, valueIn := "id", "id", func(r *store.Row) string { return r.ID }
	if first.By != store.ByKey {
		n := int(first.By - store.ByFirst)
		column, valueIn = indexColumn(n), func(r *store.Row) string { return r.Index[n] }
		order = column + ", id"
	}
	values, at := make([][]byte, len(these)), map[string][]int{}
	for n, i := range these {
		value := q[i].ID
		if first.By != store.ByKey {
			value = q[i].From
		}
		values[n], at[value] = []byte(value), append(at[value], i)
	}
	sql, args := t.columns(first.Bare)+"team = $1 and "+column+" = any ($2)", []any{[16]byte(first.Team.UUID), values}
	if t.def.PerUser {
		sql, args = sql+" and user_id = $3", append(args, [16]byte(first.User.UUID))
	}
	sql += " order by " + order
	if how.locked {
		sql += lockClause(first.Lock)
	}
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			r, err := t.scan(rows)
			if err != nil {
				return err
			}
			for n, i := range at[valueIn(&r)] {
				if n > 0 { // the query was asked more than once
					r.Doc = bytes.Clone(r.Doc)
				}
				out[i] = append(out[i], r)
			}
		}
		return rows.Err()
	})
}

// lockUser maps a lock to the statement that takes an advisory lock for a user, who may have no row. A transaction that
// inserts the user's row takes the advisory lock of store.Held first.
var lockUser = map[store.Lock]string{
	store.Shared: "select pg_advisory_xact_lock_shared($1)",
	store.Held:   "select pg_advisory_xact_lock($1)",
}

func locksUser(q *store.Query) bool {
	return q.By == store.ByKey && q.Table == store.UserTable && lockUser[q.Lock] != ""
}

func (e *Store) userLock(k store.Key) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(store.Text(e.opts.Schema) + store.UUID(k.Team.UUID) + k.ID)) // never fails
	return int64(h.Sum64())
}

// check returns an error if a query of a table per user names an id but no user.
func (e *Store) check(q []store.Query) error {
	for i := range q {
		t := e.tables[q[i].Table]
		if t != nil && t.def.PerUser && q[i].User.IsZero() && (q[i].By == store.ByKey || q[i].By == store.ByID) {
			return fmt.Errorf("postgres: table %s: a query by id must name the user", q[i].Table)
		}
	}
	return nil
}

// queueAllTables adds queries for the rows of a user in all tables. The rows are appended to out.
func (e *Store) queueAllTables(b *pgx.Batch, q store.Query, how reading, out *[]store.Row) {
	names := slices.Clone(e.names)
	if q.Desc {
		slices.Reverse(names)
	}
	for _, name := range names {
		one := q
		one.Table = name
		e.tables[name].queue(b, &one, how, out)
	}
}

// queue adds a query for rows of the table. The rows are appended to out until out has q.Limit rows, if there is a
// limit.
func (t *table) queue(b *pgx.Batch, q *store.Query, how reading, out *[]store.Row) {
	sql, args := t.selectRows(q, how.locked)
	limit, everywhere := q.Limit, t.spread && q.User.IsZero() && !how.host
	if everywhere { // Citus cannot use a generic plan for a statement that reads all machines
		b.Queue(planEach)
		defer b.Queue(keepPlans)
	}
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if limit > 0 && len(*out) == limit {
				continue // the limit was reached in an earlier table
			}
			r, err := t.scan(rows)
			if err != nil {
				return err
			}
			*out = append(*out, r)
		}
		return rows.Err()
	})
}

// selectRows returns the SQL and the arguments of a query.
func (t *table) selectRows(q *store.Query, locked bool) (sql string, args []any) {
	var b strings.Builder
	b.WriteString(t.columns(q.Bare))
	where := func(condition string, arg any) {
		if len(args) > 0 {
			b.WriteString(" and ")
		}
		args = append(args, arg)
		b.WriteString(condition + strconv.Itoa(len(args)))
	}
	within := func(column string) {
		where(column+" >= $", []byte(q.From))
		if q.To != "" {
			where(column+" < $", []byte(q.To))
		}
	}
	if q.By != store.ByUser && q.By != store.ByDue {
		where("team = $", [16]byte(q.Team.UUID))
	}
	if t.def.PerUser && q.By != store.ByUser && !q.User.IsZero() {
		where("user_id = $", [16]byte(q.User.UUID))
	}
	var order []string
	switch q.By {
	case store.ByKey:
		where("id = $", []byte(q.ID))
	case store.ByID:
		within("id")
		order = []string{"id"}
	case store.ByFirst, store.BySecond:
		column := indexColumn(int(q.By - store.ByFirst))
		within(column)
		order = []string{column, "id"}
		if t.def.Unique[q.By-store.ByFirst] {
			order = order[:1]
		}
	case store.ByUser:
		where("user_id = $", [16]byte(q.User.UUID))
		within("id")
		order = []string{"team", "id"}
	case store.ByDue:
		where("due <= $", q.Until)
		order = []string{"due", "team", "id"}
	}
	if len(order) > 0 {
		direction := ""
		if q.Desc {
			direction = " desc"
		}
		b.WriteString(" order by " + strings.Join(order, direction+", ") + direction)
		if q.Limit > 0 {
			args = append(args, int64(q.Limit))
			b.WriteString(" limit $" + strconv.Itoa(len(args)))
		}
	}
	if locked {
		b.WriteString(lockClause(q.Lock))
	}
	return b.String(), args
}

// columns returns the start of a statement that reads rows: "select columns from table where". If bare is true, the
// statement does not read documents.
func (t *table) columns(bare bool) string {
	doc := "doc"
	if bare {
		doc = "null::bytea as doc"
	}
	return "select team, id, user_id, due, i0, i1, revision, " + doc + " from " + t.sql + " where "
}

func lockClause(l store.Lock) string {
	switch l {
	case store.Held:
		return " for update"
	case store.Skip:
		return " for update skip locked"
	case store.Plain:
		return ""
	default:
		return " for share"
	}
}

// scan returns the current row of rows.
func (t *table) scan(rows pgx.Rows) (store.Row, error) {
	r := store.Row{Key: store.Key{Table: t.def.Name}}
	var user *[16]byte
	var due *time.Time
	var id, first, second []byte
	err := rows.Scan((*[16]byte)(&r.Team.UUID), &id, &user, &due, &first, &second, &r.Revision, &r.Doc)
	if user != nil {
		r.User.UUID = *user
	}
	if due != nil {
		r.Due = due.UTC()
	}
	r.ID, r.Index = string(id), [2]string{string(first), string(second)}
	return r, err
}

func (e *Store) nameTeam(b *pgx.Batch, team string) {
	if e.opts.RowSecurity {
		b.Queue("select set_config('"+teamSetting+"', $1, true)", team)
	}
}

func teamOfQuery(q *store.Query) string {
	if q.By == store.ByUser || q.By == store.ByDue {
		return allTeams
	}
	return mergeTeams("", q.Team)
}

// teamOfWrites returns the id of the team whose rows are written. It is allTeams if several teams have such rows, and
// "" if only rows without a team are written.
func teamOfWrites(writes []store.Write) string {
	of := ""
	for i := range writes {
		of = mergeTeams(of, writes[i].Team)
	}
	return of
}

func mergeTeams(of string, team healthlab.TeamID) string {
	switch {
	case team.IsZero() || of == team.String():
		return of
	case of == "":
		return team.String()
	}
	return allTeams
}
