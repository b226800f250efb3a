package httpapi

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// Limits protect one process. Several processes have these limits each.
type Limits struct {
	// Timeout is the deadline of a request, database included; after it the answer is 503.
	// Default 2 minutes, which is longer than the longest wait that a caller can ask for.
	Timeout time.Duration
	// Memory bounds what bodies that are being read and decoded may take together, in bytes.
	// A large body waits for its share, for at most ten seconds; then the answer is 429.
	// Default 1 GiB.
	Memory int64
	// TeamRate is how many requests a second one team may make, and TeamBurst how many at
	// once. Zero is no limit.
	TeamRate  float64
	TeamBurst int
	// AddressRate and AddressBurst are the same for callers without a key, by
	// [Config.ClientAddress]: the link API, apps that sign in, and calls with a wrong key.
	AddressRate  float64
	AddressBurst int
	// Now is the clock of the rates. Default time.Now.
	Now func() time.Time
}

// Limits of a large body.
const (
	// decodedSize is how many times its size a body takes while it is decoded, measured with
	// uploads of samples.
	decodedSize = 10
	// smallBody is the size up to which a body needs no share of the memory.
	smallBody = 64 << 10
	// memoryWait is how long a body waits for its share.
	memoryWait = 10 * time.Second
)

func (l *Limits) defaults() {
	if l.Timeout <= 0 {
		l.Timeout = 2 * time.Minute
	}
	if l.Memory <= 0 {
		l.Memory = 1 << 30
	}
	if l.Now == nil {
		l.Now = time.Now
	}
}

// gate enforces Limits.
type gate struct {
	limits    Limits
	memory    *semaphore.Weighted
	teams     limiters
	addresses limiters
}

func newGate(l Limits) *gate {
	return &gate{
		limits: l, memory: semaphore.NewWeighted(l.Memory),
		teams: limiters{rate: l.TeamRate, burst: l.TeamBurst, now: l.Now}, addresses: limiters{rate: l.AddressRate, burst: l.AddressBurst, now: l.Now},
	}
}

// share waits for the memory that the body of a request needs. release gives it back.
func (g *gate) share(r *http.Request, limit int64) (release func(), err error) {
	size := r.ContentLength
	if size < 0 || size > limit {
		size = limit
	}
	if r.Body == nil || size <= smallBody {
		return func() {}, nil
	}
	weight := min(size*decodedSize, g.limits.Memory)
	ctx, stop := context.WithTimeout(r.Context(), memoryWait)
	defer stop()
	if err := g.memory.Acquire(ctx, weight); err != nil {
		return nil, tooMany("too many large bodies are being read; try again", time.Second)
	}
	return func() { g.memory.Release(weight) }, nil
}

// tooMany is a 429.
func tooMany(msg string, wait time.Duration) *wire.Fault {
	return &wire.Fault{Status: http.StatusTooManyRequests, Type: "TOO_MANY_REQUESTS", Msg: msg, Header: http.Header{
		"Retry-After": {strconv.Itoa(int(math.Ceil(wait.Seconds())))},
	}}
}

// limiters are token buckets by name.
type limiters struct {
	rate  float64
	burst int
	now   func() time.Time

	mu   sync.Mutex
	list map[string]*limiter
}

type limiter struct {
	*rate.Limiter
	used time.Time
}

// mostLimiters is how many names are kept before those that were not seen for a minute go.
const mostLimiters = 10_000

// allow counts a request under a name, and tells the caller about the limit.
func (l *limiters) allow(w http.ResponseWriter, name string) error {
	if l.rate <= 0 {
		return nil
	}
	now := l.now()
	burst := max(l.burst, int(math.Ceil(l.rate)), 1)
	l.mu.Lock()
	one := l.list[name]
	if one == nil {
		l.sweep(now)
		one = &limiter{Limiter: rate.NewLimiter(rate.Limit(l.rate), burst)}
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
	h.Set("RateLimit-Reset", strconv.Itoa(int(math.Ceil(float64(burst-left)/l.rate))))
	if wait > 0 {
		return tooMany("too many requests; wait as long as Retry-After says", wait)
	}
	return nil
}

// sweep forgets names that were not seen for a while, if there are many.
func (l *limiters) sweep(now time.Time) {
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
