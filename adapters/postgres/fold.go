package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/personkey"
)

const (
	// foldLease is how long one fold may take before another process tries it.
	foldLease = 5 * time.Minute
	// foldIdle is how often a process looks for series to fold.
	foldIdle = 5 * time.Second
	// foldWorkers is how many transactions fold at a time, and foldBatch how many series
	// each of them takes.
	foldWorkers = 2
	foldBatch   = 16
)

// foldable names a series that is due to be folded.
type foldable struct {
	userKey
	number int32
}

const (
	selectFolds = `
select team_id, user_id, series from healthlab.series where fold_due <= now() order by fold_due limit $1`

	selectFoldLag = `
select coalesce(extract(epoch from now() - min(fold_due)), 0)::float8 from healthlab.series where fold_due <= now()`

	// Of two processes that saw the same, one gets it; what a writer holds is for the next time.
	claimFolds = `
with due as materialized (
	select s.user_id, s.series from unnest($1::uuid[], $2::integer[]) as x (user_id, series)
	join healthlab.series s on s.user_id = x.user_id and s.series = x.series
	where s.fold_due <= now() and ($4::uuid is null or s.user_id = $4) for no key update of s skip locked)
update healthlab.series s set fold_due = now() + $3::interval
from due where s.user_id = due.user_id and s.series = due.series and ($4::uuid is null or s.user_id = $4)
returning s.team_id, s.user_id, s.series`

	selectNumbered = `
select x.n, s.resource, s.provider, s.source_type, s.part, s.span, s.last_at, s.seq, s.segments, s.segment_bytes, s.rewrites::bigint, ` + openTail + `
from unnest($1::uuid[], $2::uuid[], $3::integer[]) with ordinality as x (team_id, user_id, series, n)
join healthlab.series s on s.user_id = x.user_id and s.series = x.series and s.team_id = x.team_id and ($4::uuid is null or s.user_id = $4)
order by s.user_id, s.resource, s.provider, s.source_type, s.part`

	// In the order in which every writer locks.
	lockNumbered = selectNumbered + `
for no key update of s`
)

// RunFolding moves what was appended in small batches into chunks, until ctx ends: where there
// is much of it at once, else after Options.FoldAfter. Any number of processes may run it on one
// database: each series is claimed with a lease. Run it where samples are written: without it
// reading is right, and slower, and a writer folds what gets too long, while its caller waits.
func (s *Store) RunFolding(ctx context.Context) error {
	loop := work.Loop[[]foldable]{
		Name:    "folding",
		Claim:   s.claimFolds,
		Do:      s.fold,
		Workers: foldWorkers,
		Idle:    foldIdle,
		Wake:    s.folds.wake,
		Log:     s.opts.Log,
	}
	return loop.Run(ctx)
}

// FoldLag returns for how long the first series of all teams has been due to be folded; 0 if none
// is due.
func (s *Store) FoldLag(ctx context.Context) (time.Duration, error) {
	var seconds float64
	if err := s.db.QueryRow(ctx, selectFoldLag).Scan(&seconds); err != nil {
		return 0, fmt.Errorf("read fold lag: %w", db.Classify(ctx, err))
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// claimFolds claims series for n transactions; for more, each about one user, where users are
// spread over machines.
func (s *Store) claimFolds(ctx context.Context, n int) ([][]foldable, error) {
	spread, err := s.isSpread(ctx)
	if err != nil {
		return nil, err
	}
	var due []foldable
	err = s.db.Read(ctx, db.AllTeams, func(b *pgx.Batch) { b.Queue(selectFolds, n*foldBatch).Query(scanFolds(&due)) })
	if err != nil || len(due) == 0 {
		return nil, err
	}
	groups := slices.Collect(slices.Chunk(due, (len(due)+n-1)/n))
	if spread {
		of := map[healthlab.UserID][]foldable{}
		for _, f := range due {
			of[f.user] = append(of[f.user], f)
		}
		groups = slices.Collect(maps.Values(of))
	}
	var claimed [][]foldable
	for _, g := range groups {
		got, err := s.claimThese(ctx, g)
		if err != nil {
			return claimed, err
		}
		if len(got) > 0 {
			claimed = append(claimed, got)
		}
	}
	return claimed, nil
}

// claimThese claims those of some series that are still due and that no writer holds.
func (s *Store) claimThese(ctx context.Context, some []foldable) (got []foldable, err error) {
	users, numbers := make([]uuid.UUID, len(some)), make([]int32, len(some))
	for i, f := range some {
		users[i], numbers[i] = f.user.UUID, f.number
	}
	err = s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		b := u.Batch()
		u.PlanHints(b)
		b.Queue(claimFolds, users, numbers, foldLease, only(users)).Query(scanFolds(&got))
		return u.Commit(ctx, b)
	})
	return got, err
}

// scanFolds reads rows of team, user and number.
func scanFolds(to *[]foldable) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		*to = nil
		var f foldable
		_, err := pgx.ForEachRow(rows, []any{&f.team.UUID, &f.user.UUID, &f.number}, func() error {
			*to = append(*to, f)
			return nil
		})
		return err
	}
}

// fold moves the segments of some series into their bodies. If that fails, each is tried by
// itself, so that a damaged one does not keep the others.
func (s *Store) fold(ctx context.Context, some []foldable) error {
	err := s.foldTogether(ctx, some)
	if err == nil || len(some) == 1 || ctx.Err() != nil || healthlab.KindOf(err) == healthlab.Unavailable {
		return err
	}
	var all []error
	for i := range some {
		all = append(all, s.foldTogether(ctx, some[i:i+1]))
	}
	return errors.Join(all...)
}

// foldTogether folds in one transaction; the tails as well, but of those series that are so
// busy that they are folded because of the number of their segments. What takes long is done
// before the rows are locked, and once more after that for series of which something has
// changed that was read.
func (s *Store) foldTogether(ctx context.Context, some []foldable) error {
	team := some[0].team
	if slices.ContainsFunc(some, func(f foldable) bool { return f.team != team }) {
		team = db.AllTeams
	}
	refs := make([]personkey.Ref, len(some))
	for i, f := range some {
		refs[i] = f.owner()
	}
	if err := s.samples.Load(ctx, refs); err != nil {
		return err
	}
	return s.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		f := &folding{merging: merging{s: s, u: u}, some: some}
		was, err := f.numbered(ctx, selectNumbered)
		if err != nil {
			return err
		}
		if was, err = f.prepare(ctx, was); err != nil || len(was) == 0 {
			return err
		}
		f.some = f.some[:0:0]
		prepared := map[foldable]*line{}
		for _, l := range was {
			k := foldable{l.userKey, l.number}
			f.some, prepared[k] = append(f.some, k), l
		}
		locked, err := f.numbered(ctx, lockNumbered)
		if err != nil {
			return err
		}
		var changed []*line
		for _, l := range locked {
			if l.adopt(prepared[foldable{l.userKey, l.number}]) {
				f.lines = append(f.lines, l)
			} else {
				changed = append(changed, l)
			}
		}
		if changed, err = f.prepare(ctx, changed); err != nil {
			return err
		}
		f.lines = append(f.lines, changed...)
		b := u.Batch()
		if _, err := f.write(ctx, b); err != nil || b.Len() == 0 {
			return err
		}
		return u.Commit(ctx, b)
	})
}

// folding is a transaction that folds some series.
type folding struct {
	merging
	some []foldable
}

// numbered returns the series that are still there.
func (f *folding) numbered(ctx context.Context, sql string) (lines []*line, err error) {
	var teams, users []uuid.UUID
	var numbers []int32
	for _, s := range f.some {
		teams, users, numbers = append(teams, s.team.UUID), append(users, s.user.UUID), append(numbers, s.number)
	}
	first := !f.u.Begun()
	b := f.u.Batch()
	if first {
		f.u.PlanHints(b)
	}
	b.Queue(sql, teams, users, numbers, only(users)).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var n int
			var span int16
			l := &line{found: true}
			k := &l.key
			if err := rows.Scan(&n, &k.Resource, &k.Provider, (*string)(&k.SourceType), &k.Part, &span, &l.lastAt, &l.seq, &l.segments, &l.bytes,
				&l.rewrites, &l.tail); err != nil {
				return err
			}
			l.userKey, l.number, l.span = f.some[n-1].userKey, f.some[n-1].number, series.Span(span)
			l.box = f.s.seriesOf(l.userKey, k)
			lines = append(lines, l)
		}
		return rows.Err()
	})
	return lines, f.u.Send(ctx, b)
}

// prepare reads what is to be folded of some series and computes what becomes of it. It
// returns those of which there is something.
func (f *folding) prepare(ctx context.Context, lines []*line) (some []*line, err error) {
	if len(lines) == 0 {
		return nil, nil
	}
	b := f.u.Batch()
	f.queueSegments(ctx, b, lines)
	if err := f.u.Send(ctx, b); err != nil {
		return nil, err
	}
	var ranges [][]series.Range
	for _, l := range lines {
		if !l.crowded() {
			if err := l.addTail(ctx); err != nil {
				return nil, err
			}
		}
		if len(l.pending) == 0 {
			continue // folded meanwhile
		}
		var load []series.Range
		l.taken, load = series.Reach(l.span, nil, l.pending)
		some, ranges = append(some, l), append(ranges, load)
	}
	b = f.u.Batch()
	f.queueChunks(ctx, b, some, ranges)
	if err := f.u.Send(ctx, b); err != nil {
		return nil, err
	}
	for _, l := range some {
		c, err := series.Fold(l.body, l.log(), l.span)
		if err != nil {
			return nil, err
		}
		l.change = &c
	}
	return some, nil
}

// adopt takes over what was prepared of the same series, if it is still right: others may
// only have appended.
func (l *line) adopt(was *line) bool {
	if l.rewrites != was.rewrites || slices.Contains(was.seqs, ofTail) && !bytes.Equal(l.tail, was.tail) {
		return false
	}
	l.seqs, l.sizes, l.taken, l.change = was.seqs, was.sizes, was.taken, was.change
	return true
}
