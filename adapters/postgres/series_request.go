package postgres

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
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

// args are the key and the times of a part, as the arguments of a statement.
func (r *request) args(p *part) []any {
	k := &p.Key
	return []any{r.team.UUID, r.user.UUID, k.Resource, k.Provider, string(k.SourceType), k.Part, p.start, p.stop}
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
