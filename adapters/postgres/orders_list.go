package postgres

import (
	"context"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// The filters of a list; a null, or an empty text, matches everything. Names are looked
// for in lower case, byte by byte.
const (
	inNames = `($2::text = '' or strpos(o.patient_name, $2) > 0) and ($3::text = '' or strpos(o.recipient, $3) > 0)`

	// Most orders go to the patient, and what begins with no digit is no birth date: that
	// is asked once for all orders.
	inTexts = `strpos(o.patient_name, $4) > 0 or o.recipient <> o.patient_name and strpos(o.recipient, $4) > 0
		or $5 ~ '^[0-9]' and starts_with(o.birth_date, $5)`

	inTextsOnly = inNames + ` and ($4::text = '' or ` + inTexts + `)`

	inList = `o.team_id = $1 and ` + inNames + `
	and ($4::text = '' or ` + inTexts + ` or o.order_id = $6::uuid or o.user_id = $6)
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

	ofList = `
where ` + inList

	// ofOrder is what the index order_search_grams has.
	ofOrder = `healthlab.order_grams(team_id, patient_name, sort_name, recipient, birth_date, method)`

	// beginning is that the last name begins with some letters, as the indexes by name know it.
	beginning = `(o.sort_name = '') is false and starts_with(o.sort_name, $23)`

	allOrders = `
from healthlab.orders o`
	allSearched = `
from healthlab.order_search o`
)

// orderSource is where a list looks for the orders that match.
type orderSource uint8

const (
	// anywhere is among all orders of the team.
	anywhere orderSource = iota
	// inTextsAlone is the same for a list that has no filters but texts.
	inTextsAlone
	// byNames is among those that have the parts of the names.
	byNames
	// byLastName is among those whose last name begins as a text does, and among the others
	// that have the parts of the texts.
	byLastName
	// bySearch is among those that have the parts of what is searched.
	bySearch
	// byID is the same where what is searched may be the id of an order or a user.
	byID
)

// orderSources are the conditions of the sources. What the parts find is compared again.
var orderSources = [...]string{
	anywhere: allOrders + ofList,
	inTextsAlone: allSearched + `
where o.team_id = $1 and ` + inTextsOnly,
	byNames: allSearched + ofList + ` and ` + ofOrder + ` @> $22::integer[]`,
	byLastName: `
from (
	select ` + listed + allSearched + ofList + ` and ` + ofOrder + ` @> $22::integer[] and not starts_with(o.sort_name, $23)
	union all
	select ` + listed + allOrders + ofList + ` and ` + beginning + `) o`,
	bySearch: allSearched + ofList + ` and (` + ofOrder + ` @> $22::integer[] or ` + ofOrder + ` @> $23::integer[])`,
	byID: allOrders + ofList + `
	and o.order_id in (
		select s.order_id from healthlab.order_search s where s.team_id = $1 and ` + ofOrder + ` @> $22::integer[]
		union all select s.order_id from healthlab.order_search s where s.team_id = $1 and ` + ofOrder + ` @> $23::integer[]
		union all select s.order_id from healthlab.orders s where s.team_id = $1 and s.order_id = $6
		union all select s.order_id from healthlab.orders s where s.team_id = $1 and s.user_id = $6)`,
}

// arguments are those of a source: of the filters, and its own.
func (from orderSource) arguments(q *orders.Query, filters []any) []any {
	args := slices.Clone(filters)
	switch from {
	case inTextsAlone:
		return args[:5]
	case byNames:
		return append(args, nameGrams(q))
	case byLastName:
		grams, start := nameGrams(q), lastName(q)
		if i := slices.Index(grams, gram(q.Team, start)); i >= 0 {
			grams[i] = gram(q.Team, elsewhereGram(start))
		}
		return append(args, grams, start)
	case bySearch, byID:
		method := methodGrams(q)
		return append(args, append(gramsIn(q.Team, strings.ToLower(q.Search)), method...), append(method, gram(q.Team, bornGram(q.Search))))
	}
	return args
}

const (
	// planEach has every list planned for the filters that it has, by a planner that knows
	// that indexes are at hand, that compiling and starting workers takes as long as a list
	// may, and that there is room for what is found.
	planEach = `
select set_config('plan_cache_mode', 'force_custom_plan', true), set_config('random_page_cost', '1.1', true), set_config('jit', 'off', true),
	set_config('max_parallel_workers_per_gather', '0', true), set_config('work_mem', '32MB', true)`

	// sampleOrders counts orders that lie spread over the times of creation that a list asks
	// for: all, those that the parts of the names find, those that the parts of what is
	// searched find, those that have all texts, and those that match, the last two in a list
	// by name of those that have a place among the names; those whose last name begins as a
	// text does, and of them those that have all texts.
	sampleOrders = `
select count(*), count(*) filter (where ` + inNames + ` and ` + inParts + `), count(*) filter (where (` + inTexts + `) and ` + inParts + `),
	count(*) filter (where ` + inTextsOnly + ` and ` + inPlace + `), count(*) filter (where ` + inList + ` and ` + inPlace + `),
	count(*) filter (where starts_with(o.sort_name, $25)), count(*) filter (where starts_with(o.sort_name, $25) and ` + inTextsOnly + `)
from (
	select min(o.created_at) as first, max(o.created_at) as last` + allOrders + `
	where o.team_id = $1` + inTime + `) span,
generate_series(0, $23::integer - 1) n,
lateral (
	select ` + listed + allOrders + `
	where o.team_id = $1 and o.created_at <= span.last - (span.last - span.first) * n / $23::integer` + inTime + `
	order by o.created_at desc, o.order_id limit $24) o`
	// So many times are taken, and so many orders at each.
	moments, ofMoment = 16, 64

	// listed are the columns that lists know.
	listed = `o.team_id, o.order_id, o.user_id, o.transaction_id, o.created_at, o.updated_at, o.event_at, o.last_status, o.method,
		o.interpretation, o.activate_by, o.patient_name, o.sort_name, o.recipient, o.birth_date`
	inTime = ` and ($7::timestamptz is null or o.created_at >= $7) and ($8::timestamptz is null or o.created_at < $8)`
	// inParts is the method, where it is among the parts that are looked for.
	inParts = `($14::text[] is null or cardinality($14) <> 1 or o.method = any ($14))`
	inPlace = `($22::boolean is not true or o.sort_name > '')`

	// rare is how many of a hundred have something that is found by its parts.
	rare = 5
	// handful is how many orders that other filters leave are read sooner than all that have
	// a text.
	handful = 1000
	// few is how many matches are gathered and sorted. From more of them, the page is
	// taken as they come in the order that is asked for: from indexes that know all that
	// matters. So that is sooner where nothing that is asked for can go with that order,
	// as a time does with times and a status with statuses.
	few, fewApart, fewCommon, fewCommonByTime = 60_000, 20_000, 10_000, 5_000
)

// orderPage is how a page of what is looked for anywhere is found.
type orderPage struct {
	key orders.SortKey
	way catalogue.Direction
	// gathered: all matches are, and then sorted. Else they are taken in order until the
	// page is full.
	gathered bool
}

// orderCounts are the statements that count: in the smallest index that has what is asked.
var orderCounts = map[orderSource]string{
	anywhere:     `select count(*)` + orderSources[anywhere],
	inTextsAlone: `select count(*)` + orderSources[inTextsAlone],
	byNames:      `select count(*)` + orderSources[byNames],
	bySearch:     `select count(*)` + orderSources[bySearch],
}

// orderPages are the statements of one page.
var orderPages = func() map[orderPage]string {
	all := map[orderPage]string{}
	for key, by := range map[orders.SortKey]string{
		orders.SortCreatedAt: `o.created_at`, orders.SortLastStatus: `o.last_status`,
		orders.SortPatientName: `o.sort_name = '', o.sort_name`,
	} {
		for way, word := range map[catalogue.Direction]string{catalogue.Ascending: ` asc`, catalogue.Descending: ` desc`} {
			order := ` order by ` + by + word + `, o.order_id`
			page := order + ` offset $22 limit $23`
			whole := `
select ` + orderColumns + ` from page p join healthlab.orders o on o.team_id = $1 and o.order_id = p.order_id` + order
			all[orderPage{key, way, true}] = `
with page as materialized (
	select o.order_id from (
		select o.order_id, o.created_at, o.sort_name, o.last_status` + orderSources[anywhere] + ` offset 0) o` + page + `)` + whole
			all[orderPage{key, way, false}] = `
with page as materialized (select o.order_id` + orderSources[anywhere] + page + `)` + whole
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
	if err := checkText(q.Search, q.PatientName, q.Recipient); err != nil {
		return orders.Page{}, err
	}
	var page orders.Page
	err = v.s.do(ctx, q.Team, looking, func(x *unit) error {
		page = orders.Page{Orders: []orders.Order{}}
		l := orderList{x: x, q: &q, filters: orderArguments(&q)}
		if err := l.look(ctx); err != nil {
			return err
		}
		add := func(r *orders.Record) { page.Orders = append(page.Orders, r.Order) }
		var ids []uuid.UUID
		switch {
		case l.source == anywhere:
			if page.Total, err = l.count(ctx); err != nil {
				return err
			}
			return l.page(ctx, page.Total, add)
		case l.far > 0:
			if page.Total, err = l.number(ctx, l.source, l.filters); err != nil {
				return err
			}
			ids, err = l.walk(ctx)
		default:
			page.Total, ids, err = l.find(ctx)
		}
		if err != nil {
			return err
		}
		return l.read(ctx, ids, add)
	})
	if err != nil {
		return orders.Page{}, err
	}
	return page, nil
}

// orderList is a list while it is read.
type orderList struct {
	x       *unit
	q       *orders.Query
	filters []any
	source  orderSource
	// far is how many orders are walked past at most, if the page is to be walked to; nearby
	// is how many of them that have the texts of the list are enough, if that is by name.
	far, nearby int64
}

// named reports whether names are looked for in their own fields.
func (l *orderList) named() bool { return l.q.PatientName != "" || l.q.Recipient != "" }

// texts reports whether texts are looked for at all.
func (l *orderList) texts() bool { return l.named() || l.q.Search != "" }

// look decides where to look: what is rare is found by its parts, and what many orders
// have is not.
func (l *orderList) look(ctx context.Context) error {
	names, search := l.named(), l.q.Search != ""
	b := l.x.batch()
	b.Queue(planEach)
	var s orderSample
	if names || search {
		byName := l.q.Sort == orders.SortPatientName
		b.Queue(sampleOrders, append(l.anybody(), byName, moments, ofMoment, lastName(l.q))...).
			QueryRow(func(row pgx.Row) error {
				return row.Scan(&s.orders, &s.named, &s.found, &s.texts, &s.match, &s.begin, &s.beginWith)
			})
		b.Queue(likelyOfTeam, l.q.Team.UUID).QueryRow(expected(&s.team))
	}
	if err := l.x.send(ctx, b); err != nil {
		return err
	}
	switch {
	case s.orders == 0: // of these times
		return nil
	case names && s.rare(s.named):
		l.source = byNames
	case search && s.rare(s.found) && l.filters[argSearchID] != (*uuid.UUID)(nil):
		l.source = byID
	case search && s.rare(s.found):
		l.source = bySearch
	}
	if l.source != anywhere && l.others() {
		likely, err := l.likely(ctx, l.filters)
		if err != nil {
			return err
		}
		if likely <= handful {
			l.source = anywhere
			return nil
		}
	}
	if l.covered() && !(names && l.source == bySearch) && lastName(l.q) != "" && s.side() {
		l.source = byLastName
	}
	l.ahead(&s)
	return nil
}

// orderSample is what sampleOrders counts, and about how many orders the team has.
type orderSample struct {
	orders, named, found, texts, match, begin, beginWith int64
	team                                                 float64
}

func (s *orderSample) rare(n int64) bool { return n*100 <= s.orders*rare }

// side reports whether it pays to read all whose last name begins as a text does, side
// by side: they take half the time of those that are found by their parts, which are no
// more than they.
func (s *orderSample) side() bool { return 2*s.beginWith > s.texts && 2*s.begin <= 3*s.beginWith }

// covered reports whether the indexes that the orders are in by creation, name and status
// have all that a list of texts asks for.
func (l *orderList) covered() bool {
	return (l.source == byNames || l.source == bySearch) && !l.owned() && l.q.EventFrom.IsZero() && l.q.EventBefore.IsZero()
}

// owned reports whether a list asks for the orders of a user, of a transaction, or for some.
func (l *orderList) owned() bool {
	return !l.q.User.IsZero() || !l.q.Transaction.IsZero() || len(l.q.IDs) > 0
}

// anybody returns the filters of a list but for whose orders it asks.
func (l *orderList) anybody() []any {
	args, none := slices.Clone(l.filters), orderArguments(&orders.Query{})
	copy(args[argUser:], none[argUser:])
	return args
}

// others reports whether a list has filters besides texts.
func (l *orderList) others() bool {
	return slices.ContainsFunc(l.filters[5:], func(v any) bool {
		switch v := v.(type) {
		case string:
			return v != ""
		case time.Time: // today
			return false
		}
		return !reflect.ValueOf(v).IsNil()
	})
}

// counted is where the matches are counted that are looked for anywhere.
func (l *orderList) counted() orderSource {
	if l.texts() && !l.others() {
		return inTextsAlone
	}
	return anywhere
}

// count returns how many orders match that are looked for anywhere.
func (l *orderList) count(ctx context.Context) (int, error) {
	rest, err := l.mostHave(ctx)
	if err != nil {
		return 0, err
	}
	if rest == nil {
		from := l.counted()
		return l.number(ctx, from, l.filters)
	}
	have, err := l.number(ctx, inTextsAlone, l.filters)
	if err != nil {
		return 0, err
	}
	without, err := l.number(ctx, anywhere, rest)
	return have - without, err
}

func (l *orderList) number(ctx context.Context, from orderSource, filters []any) (n int, err error) {
	b := l.x.batch()
	b.Queue(orderCounts[from], from.arguments(l.q, filters)...).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
	return n, l.x.send(ctx, b)
}

// offset is how many matches are before the page.
func (l *orderList) offset() int64 {
	if before := int64(l.q.Page - 1); before <= math.MaxInt64/int64(l.q.Size) {
		return before * int64(l.q.Size)
	}
	return math.MaxInt64
}

// page reads the orders of the page, if the matches, of which there are total, go as far.
func (l *orderList) page(ctx context.Context, total int, each func(*orders.Record)) error {
	offset := l.offset()
	if offset >= int64(total) {
		return nil
	}
	b := l.x.batch()
	b.Queue(orderPages[l.how(total)], append(anywhere.arguments(l.q, l.filters), offset, l.q.Size)...).Query(eachOrder(each))
	return l.x.send(ctx, b)
}

// eachOrder hands on the orders that are read, in their order. Their documents take most
// of the time of a page: each is decoded while the next are on their way, on all cores.
func eachOrder(each func(*orders.Record)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		type read struct {
			row   orderRow
			order orders.Record
			fault error
		}
		var list []*read
		var decoding sync.WaitGroup
		defer decoding.Wait()
		for rows.Next() {
			o := &read{}
			if err := o.row.scan(rows); err != nil {
				return err
			}
			list = append(list, o)
			decoding.Go(func() { o.fault = o.row.decode(&o.order) })
		}
		if err := rows.Err(); err != nil {
			return err
		}
		decoding.Wait()
		for _, o := range list {
			if o.fault != nil {
				return o.fault
			}
			each(&o.order)
		}
		return nil
	}
}

// how returns how a page of so many matches is found.
func (l *orderList) how(total int) orderPage {
	most := fewApart
	switch by := l.q.Sort; {
	case by == orders.SortCreatedAt && l.created():
		most = 0 // they are in order where they are found
	case by == orders.SortCreatedAt && l.texts():
		most = fewCommonByTime
	case by == orders.SortCreatedAt, by == orders.SortLastStatus && len(l.q.Status)+len(l.q.Methods) > 0:
		most = few
	case l.texts(): // where they are is not known
		most = fewCommon
	}
	return orderPage{l.q.Sort, l.q.Direction, total <= most}
}

// created reports whether the time of creation is all that the list asks for.
func (l *orderList) created() bool {
	only := *l.q
	only.CreatedFrom, only.CreatedBefore = time.Time{}, time.Time{}
	x := orderList{q: &only, filters: orderArguments(&only)}
	return !x.texts() && !x.others()
}

// orderArguments are those of ofList.
func orderArguments(q *orders.Query) []any {
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
	var whole *uuid.UUID
	if id, err := uuid.Parse(q.Search); err == nil && len(q.Search) == 36 {
		whole = &id
	}
	return []any{
		q.Team.UUID, strings.ToLower(q.PatientName), strings.ToLower(q.Recipient), strings.ToLower(q.Search), q.Search, whole,
		bound(q.CreatedFrom), bound(q.CreatedBefore), bound(q.UpdatedFrom), bound(q.UpdatedBefore), bound(q.EventFrom), bound(q.EventBefore),
		statusesOf(q), words(q.Methods), q.Critical, string(q.Interpretation), scheduled, q.Today.At(time.UTC),
		optional(q.User.UUID), optional(q.Transaction.UUID), ids,
	}
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

// allStatuses are the full statuses that orders have.
func allStatuses() []string { return statusesOf(&orders.Query{Methods: catalogue.CollectionMethods()}) }

// bound returns a bound of times that are kept to the microsecond: the first of them
// that is not before t. Nil if there is no bound.
func bound(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	at := instant(t)
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
