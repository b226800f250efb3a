package orderstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/personkey"
)

// orderFilters are the filters of a list; a null, or an empty text, matches everything. Every
// list is planned with its arguments, so that filters that it does not have cost nothing.
const orderFilters = `
from healthlab.order_search o
where o.team_id = $1 and ($2::bigint[] is null or o.tokens @> $2)
	and ($3::bigint[] is null or o.tokens @> $3 or o.tokens @> $4::bigint[] or o.tokens @> $5::bigint[] or o.order_id = $6::uuid or o.user_id = $6)
	and ($7::timestamptz is null or o.created_at >= $7) and ($8::timestamptz is null or o.created_at < $8)
	and ($9::timestamptz is null or o.updated_at >= $9) and ($10::timestamptz is null or o.updated_at < $10)
	and ($11::timestamptz is null or o.event_at >= $11) and ($12::timestamptz is null or o.event_at < $12)
	and ($13::text[] is null or o.last_status = any ($13)) and ($14::text[] is null or o.method = any ($14))
	and ($15::boolean is distinct from true or o.interpretation = 'critical')
	and ($15 is distinct from false or o.interpretation is distinct from 'critical')
	and ($16::text = '' or o.interpretation = $16)
	and ($17::boolean is distinct from true or o.activate_by > $18::date)
	and ($17 is distinct from false or (o.activate_by > $18) is not true)
	and ($19::uuid is null or o.user_id = $19) and ($20::uuid is null or o.transaction_id = $20)
	and ($21::uuid[] is null or o.order_id = any ($21))`

const (
	// planLists has every list planned for its arguments, without the compiler and parallel
	// workers, which take longer to start than a list, and with memory for sorting.
	planLists = `
select set_config('plan_cache_mode', 'force_custom_plan', true), set_config('random_page_cost', '1.1', true), set_config('jit', 'off', true),
	set_config('max_parallel_workers_per_gather', '0', true), set_config('work_mem', '32MB', true)`

	countOrders = `
select count(*)` + orderFilters

	countOrdersByStatus = `
select o.last_status, count(*) from healthlab.order_search o where o.team_id = $1 group by o.last_status`

	// sortedAtMost is how many matches are collected and sorted for a page. More matches are
	// read in the order of the list, by an index, until the page is full.
	sortedAtMost = 50_000
)

// orderPage is how a page is read.
type orderPage struct {
	key    orders.SortKey
	way    catalogue.Direction
	sorted bool // all matches are collected and sorted
}

// orderPages are the statements of a page.
var orderPages = func() map[orderPage]string {
	all := map[orderPage]string{}
	for key, by := range map[orders.SortKey]string{
		orders.SortCreatedAt: `o.created_at`, orders.SortLastStatus: `o.last_status`,
	} {
		for way, word := range map[catalogue.Direction]string{catalogue.Ascending: ` asc`, catalogue.Descending: ` desc`} {
			order := ` order by ` + by + word + `, o.order_id`
			for sorted, from := range map[bool]string{
				false: orderFilters,
				true:  ` from (select o.order_id, o.created_at, o.last_status` + orderFilters + ` offset 0) o`,
			} {
				all[orderPage{key, way, sorted}] = `
with page as materialized (select o.order_id` + from + order + ` offset $22 limit $23)
select ` + orderColumns + ` from page p join healthlab.orders o on o.team_id = $1 and o.order_id = p.order_id` + order
			}
		}
	}
	return all
}()

func (v ordersStore) List(ctx context.Context, q orders.Query) (orders.Page, error) {
	q, err := q.Normal()
	if err != nil {
		return orders.Page{}, err
	}
	if err := ctx.Err(); err != nil {
		return orders.Page{}, err
	}
	if err := healthlab.CheckText(q.Search, q.PatientName, q.Recipient); err != nil {
		return orders.Page{}, err
	}
	filters, err := v.s.orderArguments(ctx, &q)
	if err != nil {
		return orders.Page{}, err
	}
	var page orders.Page
	err = v.s.db.Do(ctx, q.Team, db.Reading, func(x *db.Tx) error {
		page = orders.Page{Orders: []orders.Order{}}
		l := orderList{s: v.s, x: x, q: &q, filters: filters}
		if page.Total, err = l.count(ctx); err != nil {
			return err
		}
		if err := q.CheckSorted(page.Total); err != nil {
			return db.Answer(err)
		}
		return l.page(ctx, page.Total <= sortedAtMost, page.Total, func(r *orders.Record) { page.Orders = append(page.Orders, r.Order) })
	})
	if err != nil {
		return orders.Page{}, err
	}
	return page, nil
}

func (v ordersStore) CountByStatus(ctx context.Context, team healthlab.TeamID) (counts map[orders.LowLevel]int, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = v.s.db.Do(ctx, team, db.Reading, func(x *db.Tx) error {
		counts = map[orders.LowLevel]int{}
		b := x.Batch()
		b.Queue(countOrdersByStatus, team.UUID).Query(func(rows pgx.Rows) error {
			var status orders.Status // of any method
			var n int
			_, err := pgx.ForEachRow(rows, []any{&status, &n}, func() error {
				counts[status.LowLevel()] += n
				return nil
			})
			return err
		})
		return x.Send(ctx, b)
	})
	if err != nil {
		return nil, err
	}
	return counts, nil
}

// orderList is a list while it is read.
type orderList struct {
	s       *Store
	x       *db.Tx
	q       *orders.Query
	filters []any
}

// count returns how many orders match.
func (l *orderList) count(ctx context.Context) (n int, err error) {
	b := l.x.Batch()
	b.Queue(planLists)
	b.Queue(countOrders, l.filters...).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
	return n, l.x.Send(ctx, b)
}

// offset is how many matches are before the page.
func (l *orderList) offset() int64 {
	if before := int64(l.q.Page - 1); before <= math.MaxInt64/int64(l.q.Size) {
		return before * int64(l.q.Size)
	}
	return math.MaxInt64
}

// page reads the orders of the page, if the matches, of which there are total, go as far.
func (l *orderList) page(ctx context.Context, sorted bool, total int, each func(*orders.Record)) error {
	offset := l.offset()
	if offset >= int64(total) {
		return nil
	}
	b := l.x.Batch()
	if l.q.Sort == orders.SortPatientName {
		ids, err := l.byName(ctx)
		if err != nil {
			return err
		}
		b = l.x.Batch()
		b.Queue(selectOrders, l.q.Team.UUID, ids[offset:min(offset+int64(l.q.Size), int64(len(ids)))]).Query(l.s.eachOrder(ctx, each))
		return l.x.Send(ctx, b)
	}
	b.Queue(orderPages[orderPage{l.q.Sort, l.q.Direction, sorted}], append(slices.Clone(l.filters), offset, l.q.Size)...).Query(l.s.eachOrder(ctx, each))
	return l.x.Send(ctx, b)
}

const (
	selectNamesOfOrders = `select o.order_id, o.user_id, o.sort_name` + orderFilters

	selectOrders = `
select ` + orderColumns + ` from unnest($2::uuid[]) with ordinality p (order_id, n)
join healthlab.orders o on o.team_id = $1 and o.order_id = p.order_id order by p.n`
)

// byName returns the ids of all matches, sorted by the names, which it decrypts.
func (l *orderList) byName(ctx context.Context) ([]uuid.UUID, error) {
	type match struct {
		id   orders.OrderID
		ref  personkey.Ref
		box  []byte
		name string
	}
	var all []match
	b := l.x.Batch()
	b.Queue(selectNamesOfOrders, l.filters...).Query(func(rows pgx.Rows) (err error) {
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m match, err error) {
			m.ref.Team = l.q.Team
			return m, row.Scan(&m.id.UUID, &m.ref.User.UUID, &m.box)
		})
		return err
	})
	if err := l.x.Send(ctx, b); err != nil {
		return nil, err
	}
	keys := l.s.db.Keys
	refs := make([]personkey.Ref, len(all))
	for i := range all {
		refs[i] = all[i].ref
	}
	if err := keys.Load(ctx, refs); err != nil {
		return nil, err
	}
	for i := range all {
		name, err := keys.Open(ctx, all[i].ref, personkey.RowSortName(all[i].id), all[i].box)
		if err != nil && !errors.Is(err, personkey.ErrErased) { // the order is left out when it is read
			return nil, db.Answer(fmt.Errorf("decode the name of an order: %w", err))
		}
		all[i].name = string(name)
	}
	slices.SortFunc(all, func(a, b match) int {
		if (a.name == "") != (b.name == "") {
			return cmp.Compare(b.name, a.name) // those without a name last, in both directions
		}
		c := strings.Compare(a.name, b.name)
		if l.q.Direction == catalogue.Descending {
			c = -c
		}
		return cmp.Or(c, db.CompareIDs(a.id.UUID, b.id.UUID))
	})
	ids := make([]uuid.UUID, len(all))
	for i := range all {
		ids[i] = all[i].id.UUID
	}
	return ids, nil
}

// eachOrder hands on the orders that are read, in their order, without those of erased persons.
// Their documents take most of the time of a page: they are decoded on all cores, after the keys
// of their persons are there.
func (s *Store) eachOrder(ctx context.Context, each func(*orders.Record)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		type read struct {
			row   orderRow
			order orders.Record
			fault error
		}
		var list []*read
		var refs []personkey.Ref
		for rows.Next() {
			o := &read{}
			if err := o.row.scan(rows); err != nil {
				return err
			}
			list, refs = append(list, o), append(refs, o.row.ref)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		if err := s.db.Keys.Load(ctx, refs); err != nil {
			return err
		}
		var decoding sync.WaitGroup
		for _, o := range list {
			decoding.Go(func() { o.fault = s.decodeOrder(ctx, &o.row, &o.order) })
		}
		decoding.Wait()
		for _, o := range list {
			if errors.Is(o.fault, personkey.ErrErased) {
				continue
			}
			if o.fault != nil {
				return o.fault
			}
			each(&o.order)
		}
		return nil
	}
}

// orderArguments are those of orderFilters.
func (s *Store) orderArguments(ctx context.Context, q *orders.Query) ([]any, error) {
	var scheduled *bool
	for _, a := range q.Activations {
		is := a == orders.ActivationScheduled
		if scheduled != nil && *scheduled != is {
			scheduled = nil // both, so any
			break
		}
		scheduled = &is
	}
	var ids []uuid.UUID
	for _, id := range q.IDs {
		ids = append(ids, id.UUID)
	}
	names, err := s.tokens(ctx, q.Team, q.Terms())
	if err != nil {
		return nil, err
	}
	search := make([]any, 3) // by the patient's name, the recipient's, and the birth date
	for i, terms := range q.SearchTerms() {
		if search[i], err = s.tokens(ctx, q.Team, terms); err != nil {
			return nil, err
		}
	}
	var whole *uuid.UUID
	if id, err := uuid.Parse(q.Search); err == nil && len(q.Search) == 36 {
		whole = &id
	}
	return []any{
		q.Team.UUID, names, search[0], search[1], search[2], whole,
		bound(q.CreatedFrom), bound(q.CreatedBefore), bound(q.UpdatedFrom), bound(q.UpdatedBefore), bound(q.EventFrom), bound(q.EventBefore),
		statusesOf(q), words(q.Methods), q.Critical, string(q.Interpretation), scheduled, q.Today.At(time.UTC),
		db.Optional(q.User.UUID), db.Optional(q.Transaction.UUID), ids,
	}, nil
}

// tokens returns the tokens of terms; nil for none, which the statements take for no filter.
func (s *Store) tokens(ctx context.Context, team healthlab.TeamID, terms []string) ([]int64, error) {
	if len(terms) == 0 {
		return nil, nil
	}
	return s.db.Keys.Tokens(ctx, team, terms)
}

// statusesOf are the full statuses that the filters of status and method leave; nil for
// all. An order before its first event has none.
func statusesOf(q *orders.Query) []string {
	if len(q.Status) == 0 && len(q.Methods) == 0 {
		return nil
	}
	methods, out := q.Methods, []string{}
	if len(methods) == 0 {
		methods = catalogue.CollectionMethods()
	}
	for _, m := range methods {
		for _, l := range orders.LowLevels(m) {
			if len(q.Status) == 0 || slices.Contains(q.Status, l) {
				out = append(out, string(orders.StatusOf(m, l)))
			}
		}
	}
	if len(q.Status) == 0 {
		out = append(out, "")
	}
	return out
}

// bound returns a bound of times that are kept to the microsecond: the first of them
// that is not before t. Nil if there is no bound.
func bound(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	at := db.Instant(t)
	if at.Before(t) {
		at = at.Add(time.Microsecond)
	}
	return &at
}

// words returns texts of an enumeration; nil if there are none.
func words[T ~string](list []T) []string {
	var out []string
	for _, w := range list {
		out = append(out, string(w))
	}
	return out
}
