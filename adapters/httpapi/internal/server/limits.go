package server

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// Sizes that decide about the memory share of a request body.
const (
	// sampleCost is the memory of an upload of samples as a multiple of the body size, including memory that the
	// garbage collector has not yet freed.
	sampleCost = 16
	// smallBody is the largest body, in bytes, that does not count towards [BodyMemory].
	smallBody = 64 << 10
)

// BodyMemory limits the memory of request bodies that are being read and decoded. Safe for concurrent use.
type BodyMemory struct {
	turn  chan struct{} // held while a body takes its shares; two bodies with a part each could deadlock
	taken chan struct{} // holds an element for each share in use
	wait  time.Duration // longest wait for shares
}

// memoryShare is the number of bytes of a share.
const memoryShare = 1 << 20

// NewBodyMemory returns a limit of total bytes, rounded up to shares of 1 MiB. A body waits at most wait for its
// shares.
func NewBodyMemory(total int64, wait time.Duration) *BodyMemory {
	return &BodyMemory{turn: make(chan struct{}, 1), taken: make(chan struct{}, shares(total)), wait: wait}
}

func shares(bytes int64) int { return int((bytes + memoryShare - 1) / memoryShare) }

// acquire waits for n shares, or until ctx ends.
func (m *BodyMemory) acquire(ctx context.Context, n int) error {
	select {
	case m.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-m.turn }()
	for i := range n {
		select {
		case m.taken <- struct{}{}:
		case <-ctx.Done():
			m.release(i)
			return ctx.Err()
		}
	}
	return nil
}

func (m *BodyMemory) release(n int) {
	for range n {
		<-m.taken
	}
}

// Share waits until the body of a request fits into the memory. limit is the largest body, in bytes, and cost the
// memory as a multiple of the body size ([Operation].BodyCost). The caller must call release. The error is answered
// with 429.
func (m *BodyMemory) Share(r *http.Request, limit, cost int64) (release func(), err error) {
	size := r.ContentLength
	if size < 0 || size > limit {
		size = limit
	}
	if r.Body == nil || size <= smallBody {
		return func() {}, nil
	}
	n := min(shares(size*cmp.Or(cost, sampleCost)), cap(m.taken))
	ctx, stop := context.WithTimeout(r.Context(), m.wait)
	defer stop()
	if err := m.acquire(ctx, n); err != nil {
		return nil, tooMany("too many large bodies are being read; try again", time.Second)
	}
	return func() { m.release(n) }, nil
}

// Measure reads the beginning of a body of unknown length, and sets the length if the body is small. The whole body can
// still be read.
func Measure(r *http.Request) {
	start, err := io.ReadAll(io.LimitReader(r.Body, smallBody+1))
	rest := io.Reader(r.Body)
	if err != nil {
		rest = failed{err}
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), rest), r.Body}
	if len(start) <= smallBody && err == nil {
		r.ContentLength = int64(len(start))
	}
}

// failed is a reader that always returns err.
type failed struct{ err error }

// Read returns the error err.
func (f failed) Read([]byte) (int, error) { return 0, f.err }

func tooMany(msg string, wait time.Duration) *wire.Fault {
	return &wire.Fault{Status: http.StatusTooManyRequests, Type: "TOO_MANY_REQUESTS", Msg: msg, Header: http.Header{
		"Retry-After": {strconv.Itoa(int(math.Ceil(wait.Seconds())))},
	}}
}

// Network returns the address of a caller. Of IPv6 it returns the first 64 bits, because one subscriber has all
// addresses below them.
func Network(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		return netip.PrefixFrom(addr, 64).Masked().String()
	}
	return addr.String()
}

// RateLimits limits requests with a token bucket for each name, such as a team or an address. Rate is the number of
// requests per second, and Burst the number at once. A Rate of zero means no limit. Safe for concurrent use.
type RateLimits struct {
	Rate  float64
	Burst int
	Now   func() time.Time

	mu   sync.Mutex
	list map[string]*limiter
}

type limiter struct {
	*rate.Limiter
	used time.Time
}

// mostLimiters is the number of names at which names that were unused for a minute are deleted.
const mostLimiters = 10_000

// Allow counts a request under a name, and sets the rate limit headers of the answer. The error is answered with 429.
func (l *RateLimits) Allow(w http.ResponseWriter, name string) error {
	if l.Rate <= 0 {
		return nil
	}
	now := l.Now()
	burst := max(l.Burst, int(math.Ceil(l.Rate)), 1)
	l.mu.Lock()
	one := l.list[name]
	if one == nil {
		l.sweep(now)
		one = &limiter{Limiter: rate.NewLimiter(rate.Limit(l.Rate), burst)}
		l.list[name] = one
	}
	one.used = now
	l.mu.Unlock()
	slot := one.ReserveN(now, 1)
	wait := slot.DelayFrom(now)
	if wait > 0 {
		slot.CancelAt(now)
	}
	left := max(0, int(one.TokensAt(now)))
	h := w.Header()
	h.Set("RateLimit-Limit", strconv.Itoa(burst))
	h.Set("RateLimit-Remaining", strconv.Itoa(left))
	h.Set("RateLimit-Reset", strconv.Itoa(int(math.Ceil(float64(burst-left)/l.Rate))))
	if wait > 0 {
		return tooMany("too many requests; wait as long as Retry-After says", wait)
	}
	return nil
}

// sweep deletes names that were unused for a minute, if there are mostLimiters or more.
func (l *RateLimits) sweep(now time.Time) {
	if l.list == nil {
		l.list = map[string]*limiter{}
	}
	if len(l.list) < mostLimiters {
		return
	}
	for name, one := range l.list {
		if now.Sub(one.used) > time.Minute {
			delete(l.list, name)
		}
	}
}
