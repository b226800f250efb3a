package continuous

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/store"
)

// Tables declares the tables of [NewStore].
func Tables() []store.Definition {
	return []store.Definition{
		queryTable.Definition(), queryIDs.Definition(), backfillTable.Definition(),
		taskTable.Definition(), historyTable.Definition(), resultTable.Definition(),
	}
}

// StoreOptions adjusts a RowStore. The zero value, and nil, mean the defaults.
type StoreOptions struct {
	// Events stores the events of Finish. Default: none is stored.
	Events store.Events
	// Pushed is called when the rows of a query that pushes FHIR Observations have changed for a user, in the
	// transaction of the change. Default: none.
	Pushed func(ctx context.Context, tx store.Tx, team healthlab.TeamID, user healthlab.UserID, query uuid.UUID) error
}

// RowStore is a [Store] and a [Work] that stores its rows in a [store.Store]. It also schedules tasks in the
// transactions of other stores: as healthdata.Changes after writes of data, and by [RowStore.Restart] after changes of
// preferences. It is safe for concurrent use.
type RowStore struct {
	s    store.Store
	opts StoreOptions
}

// NewStore returns a RowStore that stores its rows in s, whose tables must include [Tables].
func NewStore(s store.Store, opts *StoreOptions) *RowStore {
	r := &RowStore{s: s}
	if opts != nil {
		r.opts = *opts
	}
	return r
}

// queryRow is a stored query.
type queryRow struct {
	Query     Query     `json:"q"`
	CreatedAt time.Time `json:"c"`
	Revision  int64     `json:"r"`
}

func (q *queryRow) value() Query {
	out := q.Query
	out.CreatedAt, out.Revision = q.CreatedAt, q.Revision
	return out
}

func queryKey(team healthlab.TeamID, id QueryID) store.Key {
	return store.Key{Team: team, ID: store.UUID(id.UUID)}
}

func placeInList(at time.Time, id QueryID) string {
	return store.Reverse(store.Time(at) + store.UUID(id.UUID))
}

// queryTable stores the queries. The first index value is the slug of an active query; archived queries have none.
// Every write of health data reads the table. It is not encrypted, because it has no personal data.
var queryTable = store.Table[queryRow]{
	Name: "continuous_query", Unique: [2]bool{true}, Clear: true,
	Row: func(q *queryRow) store.Row {
		r := store.Row{Key: queryKey(q.Query.Team, q.Query.ID), Index: [2]string{1: placeInList(q.CreatedAt, q.Query.ID)}}
		if q.Query.Status == Active {
			r.Index[0] = activeSlug(q.Query.Slug)
		}
		return r
	},
}

func activeSlug(slug string) string { return store.Text(slug) }

// queryIDs stores the ids of the queries of all teams, so that an id is used once.
var queryIDs = store.Table[QueryID]{
	Name: "continuous_query_id", Clear: true,
	Row:    func(id *QueryID) store.Row { return store.Row{Key: store.Key{ID: store.UUID(id.UUID)}} },
	Encode: func(*QueryID) ([]byte, error) { return []byte{}, nil },
}

// backfill is a query for whose existing users tasks are being scheduled.
type backfill struct {
	Team  healthlab.TeamID
	Query QueryID
	After healthlab.UserID // users up to this id have tasks
	Due   time.Time        // zero while the query is not active
}

var backfillTable = store.Table[backfill]{
	Name: "continuous_backfill", Clear: true,
	Row: func(b *backfill) store.Row { return store.Row{Key: queryKey(b.Team, b.Query), Due: b.Due} },
}

func asConflict(err error) error {
	if t := (*store.TakenError)(nil); errors.As(err, &t) {
		return fmt.Errorf("%w: a continuous query with this id, or an active one with this slug, exists", healthlab.Conflict)
	}
	return err
}

func noQuery() error {
	return fmt.Errorf("%w: the team has no such continuous query", healthlab.NotFound)
}

// Insert implements [Store].
func (r *RowStore) Insert(ctx context.Context, q Query) error {
	if q.Team.IsZero() || q.ID.UUID == uuid.Nil {
		return fmt.Errorf("%w: continuous query: the team and the id must be set", healthlab.Invalid)
	}
	return asConflict(r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		if err := queryTable.Insert(tx, &queryRow{Query: q, CreatedAt: healthlab.At(q.CreatedAt).Time, Revision: 1}); err != nil {
			return err
		}
		if err := queryIDs.Insert(tx, &q.ID); err != nil {
			return err
		}
		return backfillTable.Insert(tx, &backfill{Team: q.Team, Query: q.ID, Due: tx.Now()})
	}))
}

// Get implements [Store].
func (r *RowStore) Get(ctx context.Context, team healthlab.TeamID, id QueryID) (Query, error) {
	return firstOrNotFound(queryTable.Look(ctx, r.s, store.Query{Key: queryKey(team, id)}))
}

// Find implements [Store].
func (r *RowStore) Find(ctx context.Context, team healthlab.TeamID, slug string) (Query, error) {
	if err := healthlab.CheckText(slug); err != nil {
		return Query{}, err
	}
	return firstOrNotFound(queryTable.Look(ctx, r.s, store.Query{Key: store.Key{Team: team}, By: store.ByFirst}.Equal(activeSlug(slug))))
}

func firstOrNotFound(list []*store.Entry[queryRow], err error) (Query, error) {
	if err == nil && len(list) == 0 {
		err = noQuery()
	}
	if err != nil {
		return Query{}, err
	}
	return list[0].Value.value(), nil
}

// Update implements [Store].
func (r *RowStore) Update(ctx context.Context, team healthlab.TeamID, id QueryID, change func(*Query) error) (out Query, err error) {
	err = asConflict(r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		got, err := tx.Read(queryTable.One(queryKey(team, id), store.Held), backfillTable.One(queryKey(team, id), store.Held))
		if err != nil {
			return err
		}
		list, err := queryTable.Decoded(got[0])
		if err != nil {
			return err
		}
		waiting, err := backfillTable.Decoded(got[1])
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return noQuery()
		}
		e := list[0]
		was, q := e.Value.value(), e.Value.value()
		if err := change(&q); err != nil {
			return err
		}
		q.ID, q.Team, q.Slug, q.CreatedAt, q.Revision = was.ID, was.Team, was.Slug, was.CreatedAt, was.Revision+1
		e.Value = queryRow{Query: q, CreatedAt: q.CreatedAt, Revision: q.Revision}
		out = q
		if q.Status == Active && len(waiting) > 0 {
			waiting[0].Value.Due = tx.Now()
			if err := backfillTable.Put(tx, waiting[0]); err != nil {
				return err
			}
		}
		return queryTable.Put(tx, e)
	}))
	if err != nil {
		return Query{}, err
	}
	return copyQuery(&out)
}

// copyQuery returns a deep copy of a query.
func copyQuery(q *Query) (Query, error) {
	data, err := json.Marshal(q)
	if err != nil {
		return Query{}, fmt.Errorf("copy continuous query: %w", err)
	}
	out := Query{CreatedAt: q.CreatedAt, Revision: q.Revision}
	return out, json.Unmarshal(data, &out)
}

const defaultPage = 50

func badCursor() error {
	return &healthlab.InvalidError{Problems: []healthlab.Problem{{
		Path: []any{"cursor"}, Code: "bad_cursor", Msg: "must be the next_cursor of an earlier page of the same list",
	}}}
}

// List implements [Store]. A cursor is the position of the page's last query in the list.
func (r *RowStore) List(ctx context.Context, q ListQuery) (Page, error) {
	after, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil || len(after) != 0 && len(after) != len(placeInList(time.Time{}, QueryID{})) {
		return Page{}, badCursor()
	}
	size := q.Size
	if size <= 0 {
		size = defaultPage
	}
	list, err := queryTable.Look(ctx, r.s, store.Query{Key: store.Key{Team: q.Team}, By: store.BySecond}.After(string(after), size+1))
	if err != nil {
		return Page{}, err
	}
	page := Page{Queries: []Query{}}
	for i, e := range list {
		if i == size {
			last := &page.Queries[size-1]
			page.Next = base64.RawURLEncoding.EncodeToString([]byte(placeInList(last.CreatedAt, last.ID)))
			break
		}
		page.Queries = append(page.Queries, e.Value.value())
	}
	return page, nil
}

// watch is the part of a query that decides when a task is due.
type watch struct {
	Query struct {
		ID         QueryID    `json:"id"`
		Resources  []string   `json:"resource_dependencies"`
		Scheduling Scheduling `json:"scheduling_preferences"`
	} `json:"q"`
}

var watches = store.Table[watch]{Name: queryTable.Name, Clear: true}

func (w *watch) gap() time.Duration {
	q := Query{Scheduling: w.Query.Scheduling}
	return q.Gap()
}

func active(team healthlab.TeamID) store.Query {
	return store.Query{Key: store.Key{Table: queryTable.Name, Team: team}, By: store.ByFirst}
}

// Queries implements [healthdata.Changes].
func (r *RowStore) Queries(team healthlab.TeamID) []store.Query { return []store.Query{active(team)} }

// Changed implements [healthdata.Changes]: it schedules the active queries of the team that depend on a
// resource.
func (r *RowStore) Changed(_ context.Context, tx store.Tx, team healthlab.TeamID, user healthlab.UserID, spans map[string]aggregate.Span) error {
	list, err := watches.Find(tx, active(team))
	if err != nil {
		return err
	}
	var due []*watch
	var over []aggregate.Span
	var read []store.Query
	for _, e := range list {
		w := &e.Value
		span, depends := aggregate.Span{}, false
		for _, resource := range w.Query.Resources {
			if one, ok := spans[resource]; ok && depends {
				span = union(span, one)
			} else if ok {
				span, depends = one, true
			}
		}
		if depends {
			due, over = append(due, w), append(over, span)
			read = append(read, taskTable.One(taskKey(team, user, w.Query.ID), store.Held))
		}
	}
	if len(read) == 0 {
		return nil
	}
	if _, err := tx.Read(read...); err != nil { // one round trip for all tasks
		return err
	}
	for i, w := range due {
		if err := schedule(tx, team, user, w, over[i]); err != nil {
			return err
		}
	}
	return nil
}

// Restart starts to schedule tasks for every live user of a team and each of its queries, in the transaction
// tx.
func (r *RowStore) Restart(_ context.Context, tx store.Tx, team healthlab.TeamID) error {
	all := store.Query{Key: store.Key{Table: queryTable.Name, Team: team}, By: store.ByID}
	waiting := store.Query{Key: store.Key{Table: backfillTable.Name, Team: team}, By: store.ByID, Lock: store.Held}
	got, err := tx.Read(all, waiting)
	if err != nil {
		return err
	}
	queries, err := watches.Decoded(got[0])
	if err != nil {
		return err
	}
	list, err := backfillTable.Decoded(got[1])
	if err != nil {
		return err
	}
	revisions := map[QueryID]int64{}
	for _, e := range list {
		revisions[e.Value.Query] = e.Revision
	}
	for _, q := range queries {
		id := q.Value.Query.ID
		e := &store.Entry[backfill]{Value: backfill{Team: team, Query: id, Due: tx.Now()}, Revision: revisions[id]}
		if err := backfillTable.Put(tx, e); err != nil {
			return err
		}
	}
	return nil
}

// userRows is the number of user rows that Backfill reads at a time.
const userRows = 200

// Backfill implements [Work]. One transaction works on one query.
//
// It locks the rows of the users. So a write that began before the query existed has ended before the user's
// task is made, and the task covers it.
func (r *RowStore) Backfill(ctx context.Context, n int) (count int, err error) {
	if n <= 0 {
		return 0, ctx.Err()
	}
	for again := true; again && count == 0 && err == nil; {
		err = r.s.Update(ctx, func(_ context.Context, tx store.Tx) (err error) {
			count = 0
			list, err := backfillTable.Find(tx, store.Query{By: store.ByDue, Until: tx.Now(), Limit: 1, Lock: store.Skip})
			if again = len(list) > 0; err != nil || !again {
				return err
			}
			count, err = r.backfill(tx, list[0], n)
			return err
		})
	}
	if err != nil {
		return 0, err
	}
	return count, nil
}

// backfill schedules tasks for at most n users of a query and returns their number.
func (r *RowStore) backfill(tx store.Tx, b *store.Entry[backfill], n int) (int, error) {
	q, err := queryTable.Get(tx, queryKey(b.Value.Team, b.Value.Query), store.Shared)
	if err != nil {
		return 0, err
	}
	if q == nil || q.Value.Query.Status != Active {
		b.Value.Due = time.Time{}
		return 0, backfillTable.Put(tx, b)
	}
	users, more, err := liveUsers(tx, b.Value.Team, b.Value.After, n)
	if err != nil {
		return 0, err
	}
	var w watch
	w.Query.ID, w.Query.Scheduling = q.Value.Query.ID, q.Value.Query.Scheduling
	hold := make([]store.Query, len(users))
	for i, u := range users {
		hold[i] = store.User(b.Value.Team, u).Hold()
		hold[i].Bare = true
	}
	states, err := tx.Read(hold...)
	if err != nil {
		return 0, err
	}
	count := 0
	for i, u := range users {
		b.Value.After = u
		if !store.StateOf(states[i]).Live {
			continue // deleted since
		}
		if err := schedule(tx, b.Value.Team, u, &w, aggregate.Always); err != nil {
			return 0, err
		}
		count++
	}
	if more {
		return count, backfillTable.Put(tx, b)
	}
	backfillTable.Delete(tx, b)
	return count, nil
}

// liveUsers returns the first n live users of a team after a given one, by id, and whether there are more.
func liveUsers(tx store.Tx, team healthlab.TeamID, after healthlab.UserID, n int) (out []healthlab.UserID, more bool, err error) {
	last := store.UUID(after.UUID)
	for {
		q := store.Query{Key: store.Key{Table: store.UserTable, Team: team}, By: store.ByID, Bare: true}.After(last, userRows).Unlocked()
		got, err := tx.Read(q)
		if err != nil {
			return nil, false, err
		}
		for _, row := range got[0] {
			if !store.StateOf([]store.Row{row}).Live {
				continue
			}
			if len(out) == n {
				return out, true, nil
			}
			out = append(out, store.UserIDOf(row))
		}
		if len(got[0]) < userRows {
			return out, false, nil
		}
		last = got[0][len(got[0])-1].ID
	}
}

// resultRow is the result table of a query for a user.
type resultRow struct {
	team  healthlab.TeamID
	user  healthlab.UserID
	query QueryID
	table []byte
}

var resultTable = store.Table[resultRow]{
	Name: "continuous_result",
	Row:  func(t *resultRow) store.Row { return store.Row{Key: taskKey(t.team, t.user, t.query)} },
	Encode: func(t *resultRow) ([]byte, error) {
		return t.table, nil
	},
	Decode: func(r store.Row, t *resultRow) error {
		t.team, t.user, t.query = r.Team, r.User, QueryID{store.ParseUUID(r.ID[16:])}
		t.table = append([]byte{}, r.Doc...)
		return nil
	},
}

// Result implements [Store].
func (r *RowStore) Result(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id QueryID) ([]byte, error) {
	e, err := resultTable.LookOne(ctx, r.s, taskKey(team, user, id))
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, fmt.Errorf("%w: the continuous query has no result table until its first run ends", healthlab.NotFound)
	}
	return e.Value.table, nil
}
