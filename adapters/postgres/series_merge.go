package postgres

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/outbox"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/seriesbox"
	"github.com/healthlab-dev/healthlab/personkey"
)

// line is one series that a transaction writes to, with its row locked.
type line struct {
	userKey
	key   healthdata.SeriesKey
	box   seriesbox.Series
	span  series.Span
	parts []*part // of all requests, in the order of arrival

	found    bool
	number   int32
	lastAt   int64
	seq      int64
	segments int
	bytes    int
	rewrites int64 // only of a line that is folded
	direct   *bool // what the row is to say; nil for what it says

	// What was loaded: the pending segments, and the chunks of some ranges.
	seqs    []int64
	sizes   []int // as they are stored
	pending []series.Segment
	tail    []byte // nil if there is none, or it is closed
	body    []series.Chunk
	loaded  []series.Range
	taken   []int // of pending: those that take part

	ahead bool             // every part comes after all that is stored, and after the part before
	added *series.Block    // of a line that is ahead: the samples to write
	fresh []series.Segment // of another: the samples to write, in order
	// change is what to write, of a line with one part.
	change *series.Change
}

// merging is a transaction that writes samples.
type merging struct {
	s     *Store
	u     *db.Tx
	reqs  []*request
	lines []*line // by user and key: the order in which they are locked
	of    map[lineKey]*line
	names outbox.Names // of the live users
	news  touched
}

type lineKey struct {
	userKey
	key healthdata.SeriesKey
}

// mergeAll writes requests in one transaction. The error of a request alone is in the
// request; if there is only one, it is returned. If an error is returned nothing was
// written.
func (s *Store) mergeAll(ctx context.Context, reqs []*request) error {
	team := reqs[0].team
	if slices.ContainsFunc(reqs, func(r *request) bool { return r.team != team }) {
		team = db.AllTeams
	}
	if err := s.loadKeys(ctx, reqs); err != nil {
		return err
	}
	err := s.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		for _, r := range reqs {
			r.err = nil
		}
		m := &merging{s: s, u: u, reqs: reqs, names: outbox.Names{}}
		m.gather()
		if err := m.lock(ctx); err != nil {
			return err
		}
		if err := m.load(ctx); err != nil {
			return err
		}
		events := m.settle()
		if len(reqs) == 1 && reqs[0].err != nil {
			return reqs[0].err
		}
		b := u.Batch()
		begun, err := m.write(ctx, b)
		if err != nil {
			return err
		}
		if b.Len() == 0 && len(events) == 0 {
			return nil // nothing has changed; what was locked is let go
		}
		m.news.queue(b)
		if err := s.messages.Emit(ctx, u, b, events, m.names); err != nil {
			return err
		}
		if err := u.Commit(ctx, b); err != nil {
			return err
		}
		s.folds.began(begun)
		return nil
	})
	if len(reqs) > 1 {
		for _, r := range reqs {
			r.err = db.Finish(ctx, r.err)
		}
	}
	return err
}

// gather makes the lines of the requests.
func (m *merging) gather() {
	m.of = map[lineKey]*line{}
	for _, r := range m.reqs {
		for i := range r.parts {
			p := &r.parts[i]
			k := lineKey{r.userKey, p.Key}
			l := m.of[k]
			if l == nil {
				l = &line{userKey: r.userKey, key: p.Key, box: m.s.seriesOf(r.userKey, &p.Key)}
				m.of[k] = l
				m.lines = append(m.lines, l)
			}
			l.span = p.Span
			l.parts = append(l.parts, p)
		}
	}
	slices.SortFunc(m.lines, func(a, b *line) int { return compareLines(a.userKey, &a.key, b.userKey, &b.key) })
}

// compareLines is the order in which the rows of series are locked.
func compareLines(a userKey, k *healthdata.SeriesKey, b userKey, l *healthdata.SeriesKey) int {
	return cmp.Or(db.CompareIDs(a.user.UUID, b.user.UUID), db.CompareIDs(a.team.UUID, b.team.UUID), k.Compare(*l))
}

// eager reports whether to load with the lock, not after it: one batch, which could not
// simply be appended.
func (m *merging) eager() bool { return len(m.lines) == 1 && len(m.lines[0].parts) == 1 }

// keyColumns are natural keys as columns.
type keyColumns struct {
	teams, users                          []uuid.UUID
	resources, providers, sources, partOf []string
}

// grow makes room for n more keys.
func (k *keyColumns) grow(n int) {
	k.teams, k.users = slices.Grow(k.teams, n), slices.Grow(k.users, n)
	k.resources, k.providers = slices.Grow(k.resources, n), slices.Grow(k.providers, n)
	k.sources, k.partOf = slices.Grow(k.sources, n), slices.Grow(k.partOf, n)
}

func (k *keyColumns) add(l *line) { k.addKey(l.userKey, &l.key) }

func (k *keyColumns) addKey(u userKey, key *healthdata.SeriesKey) {
	k.teams, k.users = append(k.teams, u.team.UUID), append(k.users, u.user.UUID)
	k.resources, k.providers = append(k.resources, key.Resource), append(k.providers, key.Provider)
	k.sources, k.partOf = append(k.sources, string(key.SourceType)), append(k.partOf, key.Part)
}

func (k *keyColumns) args(more ...any) []any {
	return append([]any{k.teams, k.users, k.resources, k.providers, k.sources, k.partOf}, more...)
}

const (
	fromKeys = `
from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[]) with ordinality
	as x (team_id, user_id, resource, provider, source_type, part, n)
join healthlab.series s on s.user_id = x.user_id and s.resource = x.resource and s.provider = x.provider
	and s.source_type = x.source_type and s.part = x.part and s.team_id = x.team_id and ($7::uuid is null or s.user_id = $7)`

	lockSeries = `
select x.n, s.series, s.last_at, s.seq, s.segments, s.segment_bytes, ` + openTail + fromKeys + `
order by x.n
for no key update of s`

	openTail = `case when not s.tail_closed and s.tail_at is not null then s.tail end`

	loadSegments = `
select x.n, g.seq, g.start_at, g.header, g.data` + fromKeys + `
join healthlab.segment g on g.user_id = s.user_id and g.series = s.series and ($7::uuid is null or g.user_id = $7)
order by x.n, g.seq`

	loadChunks = `
select x.n, c.start_at, c.header, c.data
from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[])
	as x (team_id, user_id, resource, provider, source_type, part, from_at, to_at, n)
join healthlab.series s on s.user_id = x.user_id and s.resource = x.resource and s.provider = x.provider
	and s.source_type = x.source_type and s.part = x.part and s.team_id = x.team_id and ($10::uuid is null or s.user_id = $10)
join healthlab.chunk c on c.user_id = s.user_id and c.series = s.series and c.start_at < x.to_at and c.stop_at >= x.from_at
	and ($10::uuid is null or c.user_id = $10)
	and c.start_at >= coalesce((select max(p.start_at) from healthlab.chunk p
		where p.user_id = s.user_id and p.series = s.series and p.start_at <= x.from_at and ($10::uuid is null or p.user_id = $10)), x.from_at)
order by x.n, c.start_at`

	// New series are numbered under the lock of their user, which also keeps the user
	// from being erased meanwhile.
	lockUsers = `
select user_id from healthlab.users where user_id = any ($1) and deleted_at is null order by user_id for no key update`

	createSeries = `
insert into healthlab.series (user_id, series, team_id, resource, provider, source_type, part, span, last_at)
select x.user_id, coalesce((select max(s.series) from healthlab.series s where s.user_id = x.user_id and ($9::uuid is null or s.user_id = $9)), 0)
		+ row_number() over (partition by x.user_id order by x.n),
	x.team_id, x.resource, x.provider, x.source_type, x.part, x.span, $8
from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::smallint[]) with ordinality
	as x (team_id, user_id, resource, provider, source_type, part, span, n)
on conflict (user_id, resource, provider, source_type, part) do nothing`
)

// lock finds out which users are live, and locks the series, which it makes where there
// are none yet.
func (m *merging) lock(ctx context.Context) error {
	b := m.u.Batch()
	m.u.PlanHints(b)
	var teams, users []uuid.UUID
	for _, r := range m.reqs {
		teams, users = append(teams, r.team.UUID), append(users, r.user.UUID)
	}
	m.queueLock(b, m.lines)
	m.names.LookLive(b, teams, users) // after the lock: a call that removes the user waits for it
	m.queueAwaited(b, m.lines)
	if m.eager() {
		m.queueSegments(ctx, b, m.lines)
		_, ranges := series.Reach(m.lines[0].span, m.lines[0].parts[0].cells, nil)
		m.lines[0].loaded = ranges
		m.queueChunks(ctx, b, []*line{m.lines[0]}, [][]series.Range{ranges})
	}
	if err := m.u.Send(ctx, b); err != nil {
		return err
	}
	var missing []*line
	var keys keyColumns
	var spans []int16
	users = nil
	for _, l := range m.lines {
		if _, live := m.names[l.ref()]; live && !l.found {
			missing = append(missing, l)
			keys.add(l)
			spans = append(spans, int16(l.span))
			users = append(users, l.user.UUID)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	b = m.u.Batch()
	held := map[uuid.UUID]bool{}
	b.Queue(lockUsers, users).Query(func(rows pgx.Rows) error {
		var id uuid.UUID
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
			held[id] = true
			return nil
		})
		return err
	})
	b.Queue(createSeries, keys.args(spans, int64(math.MinInt64), only(users))...)
	m.queueLock(b, missing)
	m.queueAwaited(b, missing)
	if err := m.u.Send(ctx, b); err != nil {
		return err
	}
	if slices.ContainsFunc(users, func(id uuid.UUID) bool { return !held[id] }) {
		if len(m.reqs) == 1 {
			return noLiveUser() // deleted meanwhile
		}
		return db.ErrChanged
	}
	for _, l := range missing {
		l.body = nil // of an older snapshot: another transaction may have created the series since
		if l.lastAt == math.MinInt64 {
			l.loaded = []series.Range{{From: math.MinInt64, To: math.MaxInt64}} // there is nothing
		} else {
			l.loaded = nil // another process was faster
		}
	}
	return nil
}

func (m *merging) queueLock(b *pgx.Batch, lines []*line) {
	if len(lines) == 0 {
		return
	}
	var keys keyColumns
	for _, l := range lines {
		keys.add(l)
	}
	b.Queue(lockSeries, keys.args(only(keys.users))...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var n int
			var got line
			if err := rows.Scan(&n, &got.number, &got.lastAt, &got.seq, &got.segments, &got.bytes, &got.tail); err != nil {
				return err
			}
			l := lines[n-1]
			l.found, l.number, l.lastAt, l.seq, l.segments, l.bytes, l.tail = true, got.number, got.lastAt, got.seq, got.segments, got.bytes, got.tail
		}
		return rows.Err()
	})
}

// queueAwaited asks which of the series that are locked a continuous query reads.
func (m *merging) queueAwaited(b *pgx.Batch, lines []*line) {
	teams, resources := make([]uuid.UUID, len(lines)), make([]string, len(lines))
	for i, l := range lines {
		teams[i], resources[i], l.direct = l.team.UUID, l.key.Resource, new(true)
	}
	queueAwaited(b, teams, resources, func(i int) { *lines[i].direct = false })
}

func (m *merging) queueSegments(ctx context.Context, b *pgx.Batch, lines []*line) {
	var keys keyColumns
	for _, l := range lines {
		keys.add(l)
		l.seqs, l.sizes, l.pending = nil, nil, nil
	}
	b.Queue(loadSegments, keys.args(only(keys.users))...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var n int
			var seq, start int64
			var header, data []byte
			if err := rows.Scan(&n, &seq, &start, &header, &data); err != nil {
				return err
			}
			l := lines[n-1]
			g, err := openSegment(ctx, &l.box, start, header, data)
			if err != nil {
				return err
			}
			l.seqs, l.sizes, l.pending = append(l.seqs, seq), append(l.sizes, len(data)), append(l.pending, g)
		}
		return rows.Err()
	})
}

// openSegment returns a segment that is stored with its header, or as a tail.
func openSegment(ctx context.Context, box *seriesbox.Series, start int64, header, data []byte) (series.Segment, error) {
	if len(header) == 0 {
		return box.ReadTail(ctx, data)
	}
	return box.Open(ctx, start, header, data)
}

// seriesOf returns what encrypts a series.
func (s *Store) seriesOf(k userKey, key *healthdata.SeriesKey) seriesbox.Series {
	return s.samples.Series(k.owner(), key)
}

// loadKeys opens the keys of the persons of some requests, if samples are encrypted.
func (s *Store) loadKeys(ctx context.Context, reqs []*request) error {
	refs := make([]personkey.Ref, len(reqs))
	for i, r := range reqs {
		refs[i] = r.owner()
	}
	return s.samples.Load(ctx, refs)
}

// ofTail is in the place of the number of a segment.
const ofTail = -1

// addTail adds the tail to the segments that were loaded, behind them.
func (l *line) addTail(ctx context.Context) error {
	if l.tail == nil {
		return nil
	}
	g, err := l.box.ReadTail(ctx, l.tail)
	l.seqs, l.sizes, l.pending = append(l.seqs, ofTail), append(l.sizes, 0), append(l.pending, g)
	return err
}

func (m *merging) queueChunks(ctx context.Context, b *pgx.Batch, lines []*line, ranges [][]series.Range) {
	var keys keyColumns
	var from, to, number []int64
	for i, of := range ranges {
		for _, r := range of {
			keys.add(lines[i])
			from, to, number = append(from, r.From), append(to, r.To), append(number, int64(i))
		}
	}
	if len(from) == 0 {
		return
	}
	b.Queue(loadChunks, keys.args(from, to, number, only(keys.users))...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var n int
			var start int64
			var header, data []byte
			if err := rows.Scan(&n, &start, &header, &data); err != nil {
				return err
			}
			c, err := lines[n].box.Open(ctx, start, header, data)
			if err != nil {
				return err
			}
			lines[n].insert(c)
		}
		return rows.Err()
	})
}

// insert adds a chunk that was loaded to those that are known.
func (l *line) insert(c series.Chunk) {
	at, there := slices.BinarySearchFunc(l.body, c.Start, func(c series.Chunk, t int64) int { return cmp.Compare(c.Start, t) })
	if !there {
		l.body = slices.Insert(l.body, at, c)
	}
}

// full reports whether the segments should be folded before there are more.
func (l *line) full() bool { return l.segments >= maxSegments || l.bytes >= maxSegmentBytes }

// crowded reports whether RunFolding is due because of the number of segments.
func (l *line) crowded() bool { return 2*l.segments >= maxSegments || 2*l.bytes >= maxSegmentBytes }

// isAhead reports whether the parts can be written without looking at what is stored.
func (l *line) isAhead() bool {
	last, n := l.lastAt, 0
	for _, p := range l.parts {
		if p.start <= last {
			return false
		}
		last = p.stop
		n += p.n
	}
	return !l.full() || n >= wholeChunk
}

// load brings the chunks and segments that take part.
func (m *merging) load(ctx context.Context) error {
	var need []*line
	for _, l := range m.lines {
		if l.ahead = l.isAhead(); !l.ahead && l.found {
			need = append(need, l)
		}
	}
	return m.fetch(ctx, need)
}

// fetch brings what takes part in a change of some lines.
func (m *merging) fetch(ctx context.Context, need []*line) error {
	if len(need) == 0 {
		return nil
	}
	b := m.u.Batch()
	var first []*line
	for _, l := range need {
		if l.loaded == nil {
			first = append(first, l)
		}
	}
	if len(first) > 0 {
		m.queueSegments(ctx, b, first)
		ranges := make([][]series.Range, len(first))
		for i, l := range first {
			_, ranges[i] = series.Reach(l.span, l.want(), nil)
			l.loaded = ranges[i]
		}
		m.queueChunks(ctx, b, first, ranges)
		if err := m.u.Send(ctx, b); err != nil {
			return err
		}
	}
	// Segments that take part may reach further than what is written.
	var more []*line
	var ranges [][]series.Range
	for _, l := range need {
		if err := l.addTail(ctx); err != nil {
			return err
		}
		if beyond := l.reach(); len(beyond) > 0 {
			more, ranges = append(more, l), append(ranges, beyond)
		}
	}
	if len(more) == 0 {
		return nil
	}
	b = m.u.Batch()
	m.queueChunks(ctx, b, more, ranges)
	return m.u.Send(ctx, b)
}

// want returns the cells that are written to.
func (l *line) want() []series.Range {
	var all []series.Range
	for _, p := range l.parts {
		all = append(all, p.cells...)
	}
	return all
}

// reach decides which segments take part, and returns the ranges of the body that have
// to be loaded for them.
func (l *line) reach() (beyond []series.Range) {
	want := l.want()
	var load []series.Range
	if l.taken, load = series.Reach(l.span, want, l.pending); l.full() {
		l.taken, load = series.Reach(l.span, nil, l.pending)
	}
	for _, r := range load {
		if !slices.ContainsFunc(l.loaded, func(has series.Range) bool { return has.From <= r.From && r.To <= has.To }) {
			beyond = append(beyond, r)
		}
	}
	return beyond
}

// log returns the pending segments that take part.
func (l *line) log() []series.Segment {
	out := make([]series.Segment, 0, len(l.taken)+len(l.fresh))
	for _, i := range l.taken {
		out = append(out, l.pending[i])
	}
	return out
}

// settle finds out what becomes of each request, in order, and returns the events of
// those that are written.
func (m *merging) settle() []healthlab.Event {
	var all []healthlab.Event
	for _, r := range m.reqs {
		events, err := m.settleOne(r)
		if err != nil {
			r.err = err
			continue
		}
		all = append(all, events...)
	}
	return all
}

func (m *merging) settleOne(r *request) (events []healthlab.Event, err error) {
	if _, live := m.names[r.ref()]; !live {
		return nil, noLiveUser()
	}
	err = r.hold(func() error {
		outcomes := make([]series.Outcome, len(r.parts))
		changes := make([]*series.Change, len(r.parts))
		for i := range r.parts {
			p := &r.parts[i]
			l := m.of[lineKey{r.userKey, p.Key}]
			if outcomes[i], changes[i], err = l.outcome(p); err != nil {
				return fmt.Errorf("batch %d: %w", i, err)
			}
		}
		if events, err = r.tell(outcomes); err != nil {
			return err
		}
		for i := range r.parts {
			p := &r.parts[i]
			if err := m.of[lineKey{r.userKey, p.Key}].accept(p, &outcomes[i], changes[i]); err != nil {
				return fmt.Errorf("batch %d: %w", i, err)
			}
			m.news.addSamples(r.userKey, &p.SampleBatch, &outcomes[i])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return events, nil
}

// outcome says what becomes of a part after those that were accepted.
func (l *line) outcome(p *part) (series.Outcome, *series.Change, error) {
	switch {
	case l.ahead:
		return allNew(p.n), nil, nil
	case len(l.parts) == 1:
		c, err := series.Apply(l.body, l.log(), p.Samples, l.span)
		return c.Outcome, &c, err
	default:
		o, err := series.Compare(l.body, append(l.log(), l.fresh...), p.Samples)
		return o, nil, err
	}
}

// accept takes a part to be written. It keeps nothing that is the caller's.
func (l *line) accept(p *part, o *series.Outcome, change *series.Change) error {
	switch {
	case l.ahead && l.added == nil:
		l.added = new(series.Block)
		series.Merge(l.added, &series.Block{}, p.Samples)
	case l.ahead:
		sum := new(series.Block)
		series.Merge(sum, l.added, p.Samples)
		l.added = sum
	case o.Idle() && !l.full():
		// Nothing is new: nothing is written, folded neither.
	case change != nil:
		l.change = change
	default:
		more, err := series.Segments(p.Samples)
		if err != nil {
			return err
		}
		l.fresh = append(l.fresh, more...)
	}
	l.noteLast(p.stop)
	return nil
}

func (l *line) noteLast(stop int64) { l.lastAt = max(l.lastAt, stop) }
