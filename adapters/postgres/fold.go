package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/work"
)

const (
	// foldLease is how long one fold may take before another process tries it.
	foldLease = 5 * time.Minute
	// foldIdle is how often a process looks for series to fold.
	foldIdle = 5 * time.Second
	// foldWorkers is how many series are folded at a time.
	foldWorkers = 2
)

// foldable names a series that is due to be folded.
type foldable struct {
	userKey
	number int32
}

const (
	claimFolds = `
with due as (
	select d.user_id, d.series from healthlab.series d where d.fold_due <= now()
	order by d.fold_due limit $1 for update skip locked)
update healthlab.series s set fold_due = now() + $2::interval
from due where s.user_id = due.user_id and s.series = due.series
returning s.team_id, s.user_id, s.series`

	lockNumber = `
select resource, provider, source_type, part, span, last_at, seq, segments, segment_bytes, ` + openTail + `
from healthlab.series s where user_id = $1 and series = $2 and team_id = $3
for no key update`
)

// RunFolding moves what was appended in small batches into chunks, until ctx ends. Any
// number of processes may run it on one database: each series is claimed with a lease.
// Reading is right without it, and slower; a writer folds what gets too long by itself.
func (s *Store) RunFolding(ctx context.Context) error {
	loop := work.Loop[foldable]{
		Name:    "folding",
		Claim:   s.claimFolds,
		Do:      s.fold,
		Workers: foldWorkers,
		Idle:    foldIdle,
		Log:     s.opts.Log,
	}
	return loop.Run(ctx)
}

func (s *Store) claimFolds(ctx context.Context, n int) ([]foldable, error) {
	var out []foldable
	err := s.do(ctx, allTeams, writing, func(u *unit) error {
		out = nil
		return u.alone(ctx, func(b *pgx.Batch) {
			b.Queue(claimFolds, n, foldLease).Query(func(rows pgx.Rows) error {
				var f foldable
				_, err := pgx.ForEachRow(rows, []any{&f.team.UUID, &f.user.UUID, &f.number}, func() error {
					out = append(out, f)
					return nil
				})
				return err
			})
		})
	})
	return out, err
}

// fold moves all segments of a series, and its tail, into its body.
func (s *Store) fold(ctx context.Context, f foldable) error {
	return s.do(ctx, f.team, writing, func(u *unit) error {
		l := &line{userKey: f.userKey, number: f.number, found: true}
		b := u.batch()
		b.Queue(lockNumber, f.user.UUID, f.number, f.team.UUID).QueryRow(func(row pgx.Row) error {
			k := &l.key
			var span int16
			err := row.Scan(&k.Resource, &k.Provider, (*string)(&k.SourceType), &k.Part, &span, &l.lastAt, &l.seq, &l.segments, &l.bytes, &l.tail)
			l.span = series.Span(span)
			return err
		})
		if err := u.send(ctx, b); errors.Is(err, pgx.ErrNoRows) {
			return nil // erased
		} else if err != nil {
			return err
		}
		m := &merging{u: u, lines: []*line{l}}
		b = u.batch()
		m.queueSegments(b, m.lines)
		if err := u.send(ctx, b); err != nil {
			return err
		}
		if err := l.addTail(); err != nil {
			return err
		}
		if len(l.pending) == 0 {
			return nil // folded meanwhile
		}
		var ranges []series.Range
		l.taken, ranges = series.Reach(l.span, nil, l.pending)
		b = u.batch()
		m.queueChunks(b, m.lines, [][]series.Range{ranges})
		if err := u.send(ctx, b); err != nil {
			return err
		}
		c, err := series.Fold(l.body, l.log(), l.span)
		if err != nil {
			return err
		}
		l.change = &c
		b = u.batch()
		if err := m.write(b); err != nil {
			return err
		}
		return u.commit(ctx, b)
	})
}
