package postgres

import (
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

// keepPlans makes the server plan each statement once per session, with an index. Otherwise it would keep sequential
// scans that it planned while a table was small.
const keepPlans = `select set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)`

// planEach makes the server plan each statement anew, for its argument values.
const planEach = `select set_config('plan_cache_mode', 'auto', true)`

// reading says how a batch of queries is executed.
type reading struct {
	locked bool // take the locks that the queries name
	absent bool // also lock users who have no row
	host   bool // the batch runs in a host's transaction, whose settings must not change
}

// queueQueries adds queries to a batch. The returned rows are filled when the batch is sent.
//
// Queries with a lock come first, those of single keys before those of ranges, so that later queries see the rows
// for which the locks waited. The row of a user is locked before all others, because erasures and insertions
// conflict on it.
func (e *Store) queueQueries(b *pgx.Batch, q []store.Query, how reading) [][]store.Row {
	order := make([]int, len(q))
	for i := range order {
		order[i] = i
	}
	if how.locked {
		slices.SortStableFunc(order, func(x, y int) int {
			return cmp.Or(rank(&q[x])-rank(&q[y]), store.CompareKeys(q[x].Key, q[y].Key), int(q[y].Lock)-int(q[x].Lock))
		})
	}
	out := make([][]store.Row, len(q))
	together := map[store.Query][]int{} // indexes of queries for single rows of one user, by group
	for _, i := range order {
		if k, ok := e.groupOf(&q[i], how); ok {
			together[k] = append(together[k], i)
		}
	}
	named := false
	last := ""
	for _, i := range order {
		// A query without a team needs no change of the setting: the policies show rows without a team to every team.
		if team := teamOfQuery(&q[i]); !named || team != last && team != "" {
			e.nameTeam(b, team)
			named, last = true, team
		}
		if k, ok := e.groupOf(&q[i], how); ok && len(together[k]) > 1 {
			if together[k][0] == i {
				e.tables[k.Table].queueKeys(b, &k, q, together[k], out)
			}
			continue
		}
		if how.absent && locksUser(&q[i]) {
			b.Queue(lockUser[q[i].Lock], e.userLock(q[i].Key))
		}
		if q[i].By == store.ByUser && q[i].Table == "" {
			e.queueAllTables(b, q[i], how, &out[i])
		} else if t := e.tables[q[i].Table]; t != nil {
			t.queue(b, &q[i], how, &out[i])
		}
	}
	return out
}

// rank returns the position of a query in the order of locks: user rows, other single rows, ranges, no lock.
func rank(q *store.Query) int {
	switch {
	case q.Lock == store.Plain:
		return 3
	case q.By != store.ByKey:
		return 2
	case q.Table != store.UserTable:
		return 1
	}
	return 0
}

// groupOf returns the group of a query, and true if one statement can answer the whole group. A group holds queries
// without locks for single rows of one user in a table per user.
func (e *Store) groupOf(q *store.Query, how reading) (store.Query, bool) {
	t := e.tables[q.Table]
	if t == nil || !t.def.PerUser || q.By != store.ByKey || how.locked && q.Lock != store.Plain {
		return store.Query{}, false
	}
	return store.Query{Key: store.Key{Table: q.Table, Team: q.Team, User: q.User}, Bare: q.Bare}, true
}

// queueKeys adds a statement that answers the queries of one group.
func (t *table) queueKeys(b *pgx.Batch, group *store.Query, q []store.Query, which []int, out [][]store.Row) {
	ids, at := make([][]byte, len(which)), map[string][]int{}
	for n, i := range which {
		ids[n], at[q[i].ID] = []byte(q[i].ID), append(at[q[i].ID], i)
	}
	sql := t.columns(group.Bare) + "team = $1 and user_id = $2 and id = any ($3)"
	b.Queue(sql, [16]byte(group.Team.UUID), [16]byte(group.User.UUID), ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			r, err := t.scan(rows)
			if err != nil {
				return err
			}
			for _, i := range at[r.ID] {
				out[i] = store.CopyRows([]store.Row{r}, group.Bare)
			}
		}
		return rows.Err()
	})
}

// lockUser maps a lock to the statement that takes an advisory lock for a user, who may have no row. A transaction
// that inserts the user's row takes the lock of Held first.
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

// queueAllTables adds a query for the rows of a user in all tables.
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

// queue adds a query for rows of the table, which are appended to out, up to the limit.
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

// columns returns the part "select … from …" of a statement that reads rows.
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

// scan returns the current row of a result.
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
	return bothTeams("", q.Team)
}

// teamOfWrites returns the id of the team whose rows are written; "" if only rows without a team are.
func teamOfWrites(writes []store.Write) string {
	of := ""
	for i := range writes {
		of = bothTeams(of, writes[i].Team)
	}
	return of
}

func bothTeams(of string, team healthlab.TeamID) string {
	switch {
	case team.IsZero() || of == team.String():
		return of
	case of == "":
		return team.String()
	}
	return allTeams
}
