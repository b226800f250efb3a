package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/outbox"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/personkey"
)

const (
	// maxSegments and maxSegmentBytes are when the writer that comes next folds the
	// segments of a series. RunFolding is due at half of either.
	maxSegments     = 64
	maxSegmentBytes = 48 << 10
	// wholeChunk is how many samples make a chunk of their own where they come after
	// all others; fewer become a segment.
	wholeChunk = 1000
	// grouped is how many samples a write may have to be gathered with others. A
	// larger one is a transaction of its own.
	grouped = 4096
)

// userKey names a user.
type userKey struct {
	team healthlab.TeamID
	user healthlab.UserID
}

func (k userKey) ref() healthdata.UserRef { return healthdata.UserRef{Team: k.team, User: k.user} }

// owner is whose key encrypts what is the user's.
func (k userKey) owner() personkey.Ref { return personkey.Ref{Team: k.team, User: k.user} }

// request is one call of MergeSamples.
type request struct {
	userKey
	parts  []part
	trace  string
	events func([]series.Outcome) ([]healthlab.Event, error)

	// For requests that are gathered. mu guards what follows, and is held while
	// another goroutine reads the caller's samples.
	mu       sync.Mutex
	left     bool // the caller has gone
	leave    func()
	done     chan struct{}
	err      error
	panicked any
}

// part is a batch, with what is asked of it more than once.
type part struct {
	healthdata.SampleBatch
	start, stop int64
	n           int
	cells       []series.Range
}

func newRequest(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, batches []healthdata.SampleBatch,
	events func([]series.Outcome) ([]healthlab.Event, error),
) *request {
	r := &request{userKey: userKey{team, user}, trace: healthlab.TraceOf(ctx), events: events, parts: make([]part, len(batches))}
	for i, b := range batches {
		n := b.Samples.Len()
		r.parts[i] = part{SampleBatch: b, start: b.Samples.Time[0], stop: b.Samples.Time[n-1], n: n, cells: b.Span.Cells(b.Samples)}
	}
	return r
}

func (r *request) samples() (n int) {
	for i := range r.parts {
		n += r.parts[i].n
	}
	return n
}

// tell asks for the events of what became of the parts.
func (r *request) tell(outcomes []series.Outcome) ([]healthlab.Event, error) {
	if r.events == nil {
		return nil, nil
	}
	out, err := r.events(outcomes)
	if err != nil {
		return nil, db.Answer(err)
	}
	for i := range out {
		out[i].Trace = cmp.Or(out[i].Trace, r.trace)
	}
	return out, nil
}

// allNew is the outcome of n new samples.
func allNew(n int) series.Outcome {
	states := make([]series.State, n)
	for i := range states {
		states[i] = series.New
	}
	return series.Outcome{New: n, States: states}
}

// MergeSamples writes small batches of concurrent callers together, and returns after
// the commit of what it wrote.
func (d data) MergeSamples(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, batches []healthdata.SampleBatch,
	events func([]series.Outcome) ([]healthlab.Event, error),
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := healthdata.CheckBatches(batches); err != nil {
		return err
	}
	r := newRequest(ctx, team, user, batches, events)
	if d.s.db.Pool == nil || r.samples() > grouped {
		return d.s.mergeOne(ctx, r)
	}
	if _, err := d.s.isSpread(ctx); err != nil {
		return err
	}
	return d.s.writes.do(ctx, d.s, r)
}

// mergeOne writes one request by itself.
func (s *Store) mergeOne(ctx context.Context, r *request) error {
	if len(r.parts) == 1 {
		if done, err := s.appendOne(ctx, r); done || err != nil {
			return err
		}
	}
	return s.mergeAll(ctx, []*request{r})
}

const (
	appendBody = `
update healthlab.series s set last_at = $8
where s.user_id = $2 and s.resource = $3 and s.provider = $4 and s.source_type = $5 and s.part = $6 and s.team_id = $1 and s.last_at < $7
returning s.series, s.direct`

	selectLiveName = `select client_user_id from healthlab.users where team_id = $1 and user_id = $2 and deleted_at is null`
)

// args are the key and the times of a part, as the arguments of a statement.
func (r *request) args(p *part) []any {
	k := &p.Key
	return []any{r.team.UUID, r.user.UUID, k.Resource, k.Provider, string(k.SourceType), k.Part, p.start, p.stop}
}

// appendChunks writes a request of one large batch as [Store.appendOne] does.
func (s *Store) appendChunks(ctx context.Context, r *request) (done bool, err error) {
	p := &r.parts[0]
	change, err := series.Apply(nil, nil, p.Samples, p.Span)
	if err != nil {
		return false, fmt.Errorf("batch 0: %w", err)
	}
	events, err := r.tell([]series.Outcome{allNew(p.n)})
	if err != nil {
		// It may not be so; the outcome that is decides.
		return false, nil //nolint:nilerr // asked again by mergeAll
	}
	if err := s.loadKeys(ctx, []*request{r}); err != nil {
		return false, err
	}
	err = s.db.Do(ctx, r.team, db.Writing, func(u *db.Tx) error {
		done = false
		var number int32
		var direct bool
		var name string
		b := u.Batch()
		b.Queue(appendBody, r.args(p)...).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&number, &direct}, func() error {
				done = true
				return nil
			})
			return err
		})
		b.Queue(selectLiveName, r.team.UUID, r.user.UUID).QueryRow(func(row pgx.Row) error { return row.Scan(&name) })
		if err := u.Send(ctx, b); errors.Is(err, pgx.ErrNoRows) {
			return noLiveUser()
		} else if err != nil || !done {
			return err
		}
		b = u.Batch()
		var rows chunkRows
		box := s.seriesOf(r.userKey, &p.Key)
		for i := range change.Put {
			if err := rows.add(ctx, box, r.userKey, number, &change.Put[i]); err != nil {
				return err
			}
		}
		rows.queue(b)
		if !direct {
			var news touched
			news.add(r.userKey, p.Key.Resource, p.start, p.stop)
			news.queue(b)
		}
		if err := s.messages.Emit(ctx, u, b, events, outbox.Names{r.ref(): name}); err != nil {
			return err
		}
		return u.Commit(ctx, b)
	})
	return done && err == nil, err
}

// hold runs a look at the caller's samples, unless the caller has gone. A panic of its
// closure is kept for it.
func (r *request) hold(look func() error) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left {
		return context.Canceled
	}
	if r.done != nil {
		defer func() {
			if r.panicked = recover(); r.panicked != nil {
				err = errors.New("a closure panicked")
			}
		}()
	}
	return look()
}

// answer ends a request that was gathered.
func (r *request) answer(err error) {
	r.err = err
	close(r.done)
}
