package postgres_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/webhook"
)

// The dispatchers of the fault test. A lease leaves room for what the clocks jump: it
// ends that much too early at most.
const (
	faultLease   = 5 * time.Second
	faultTimeout = 300 * time.Millisecond
	faultMargin  = 2500 * time.Millisecond
	faultBatch   = 128
	faultJump    = time.Second // of the server's clock, either way
)

const (
	faultOrdered = "test.ordered.changed"
	faultLatest  = "test.latest.changed"
)

// faultWhat says what is wrong with a child: nothing, or what the test must notice.
const faultWhat = "HEALTHLABTEST_FAULT"

const noLanes = "no lanes"

func init() { postgres.Children["dispatcher"] = dispatcherChild }

func faultTypes() *webhook.Catalogue {
	types, err := webhook.NewCatalogue([]healthlab.EventType{
		{Name: faultOrdered, Mode: healthlab.Ordered}, {Name: faultLatest, Mode: healthlab.Latest},
	}, webhook.EventTypes())
	if err != nil {
		panic(err)
	}
	return types
}

func faultSealer() healthlab.Sealer {
	s, err := healthlab.NewAESSealer("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, 32)})
	if err != nil {
		panic(err)
	}
	return s
}

// loopback is a guard that lets requests through to this machine, and no farther.
func loopback() *webhook.Guard {
	return &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
}

// dispatcherChild delivers until it is killed, or its parent is no more. Its own clock is
// wrong by up to an hour, and jumps.
func dispatcherChild(address string) {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	pool, err := pgxpool.New(context.Background(), address)
	if err != nil {
		panic(err)
	}
	s := postgres.New(pool, nil)
	wrong := rand.Int64N(int64(2*time.Hour)) - int64(time.Hour)
	var jump atomic.Int64
	go func() {
		for range time.Tick(400 * time.Millisecond) {
			jump.Store(rand.Int64N(int64(2*time.Second)) - int64(time.Second))
		}
	}()
	queue := s.Deliveries()
	if os.Getenv(faultWhat) == noLanes {
		queue = laneless{queue}
	}
	d, err := webhook.NewDispatcher(faultTypes(), queue, s.Endpoints(),
		webhook.NewHTTP(&webhook.HTTPOptions{Guard: loopback(), Timeout: faultTimeout}), faultSealer(),
		&webhook.Options{
			Now:          func() time.Time { return time.Now().Add(time.Duration(wrong + jump.Load())) },
			Schedule:     webhook.Delays(slices.Repeat([]time.Duration{50 * time.Millisecond}, 1000)...),
			Lease:        faultLease,
			Timeout:      faultTimeout,
			StartMargin:  faultMargin,
			CrashLimit:   1000,
			OutcomeBatch: faultBatch,
			Busy:         10 * time.Millisecond,
			Idle:         50 * time.Millisecond,
		})
	if err != nil {
		panic(err)
	}
	_ = d.Run(context.Background())
}

// laneless has one line of the ordering less: the one that tells routing which order a
// type wants. So everything has a lane of its own.
type laneless struct{ webhook.Deliveries }

func (q laneless) Route(ctx context.Context, modes map[string]healthlab.Mode, most int) (webhook.Routed, error) {
	for name := range modes {
		modes[name] = healthlab.Independent
	}
	return q.Deliveries.Route(ctx, modes, most)
}

// faultKey is one thing that changes. Its lock is what orders its writes.
type faultKey struct {
	mu       sync.Mutex
	name     string
	team     int
	ordered  bool
	versions int
}

// faultTeam is a team, and how its receiver behaves.
type faultTeam struct {
	id                          healthlab.TeamID
	refuses, forgets, hangs     float64 // shares of its requests
	slow                        time.Duration
	last                        map[string]int
	seen                        map[string]map[int]bool
	under                       map[string]int
	corrections, stale, repeats int
}

// fault is one run of the fault test.
type fault struct {
	t       *testing.T
	address string
	pool    *pgxpool.Pool
	s       *postgres.Store
	what    string // is wrong with the children
	keys    []*faultKey

	mu    sync.Mutex
	teams []*faultTeam
	wrong []string
	news  chan struct{}
}

func newFault(t *testing.T, what string, keys int) *fault {
	address := pgtest.URL(t)
	f := &fault{t: t, address: address, pool: pgtest.Connect(t, address), what: what, news: make(chan struct{}, 1)}
	f.s = postgres.New(f.pool, nil)
	f.teams = []*faultTeam{
		{},
		{refuses: 0.2, forgets: 0.05},
		{slow: 40 * time.Millisecond, refuses: 0.02},
		{refuses: 0.01, forgets: 0.01, hangs: 0.002},
	}
	server := httptest.NewServer(http.HandlerFunc(f.receive))
	t.Cleanup(server.Close)
	service, err := webhook.NewService(faultTypes(), f.s.Deliveries(), f.s.Endpoints(), f.s.WebhookLog(),
		webhook.NewHTTP(nil), faultSealer(), &webhook.ServiceOptions{Guard: loopback()})
	require.NoError(t, err)
	for i, to := range f.teams {
		to.id = healthlab.TeamID{UUID: uuid.New()}
		to.last, to.seen, to.under = map[string]int{}, map[string]map[int]bool{}, map[string]int{}
		_, err := service.Create(t.Context(), to.id, webhook.NewEndpoint{URL: server.URL + "/" + strconv.Itoa(i)})
		require.NoError(t, err)
	}
	for i := range keys {
		f.keys = append(f.keys, &faultKey{name: fmt.Sprint("key ", i), team: i % len(f.teams), ordered: i/len(f.teams)%2 == 0})
	}
	return f
}

func (f *fault) note(format string, args ...any) {
	if len(f.wrong) < 10 {
		f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
	}
}

// receive is the receiver: it keeps the latest version that it received, and notes
// whatever it should never see.
func (f *fault) receive(w http.ResponseWriter, r *http.Request) {
	i, _ := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
	var body struct {
		Data struct {
			Key     string
			Version int
			Ordered bool
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return // cut off: not received
	}
	to, key := f.teams[i], body.Data.Key
	if key == "" {
		return // about the endpoint
	}
	f.mu.Lock()
	chance := rand.Float64()
	receives := chance >= to.refuses
	hangs := rand.Float64() < to.hangs
	if to.under[key]++; to.under[key] > 1 {
		f.note("two messages of %s at once", key)
	}
	if receives {
		f.apply(to, key, body.Data.Version, body.Data.Ordered)
	}
	f.mu.Unlock()
	if to.slow > 0 {
		time.Sleep(rand.N(to.slow))
	}
	if hangs {
		time.Sleep(2 * faultTimeout)
	}
	if !receives || chance < to.refuses+to.forgets {
		w.WriteHeader(http.StatusInternalServerError)
	}
	f.mu.Lock()
	to.under[key]--
	f.mu.Unlock()
	select {
	case f.news <- struct{}{}:
	default:
	}
}

func (f *fault) apply(to *faultTeam, key string, version int, ordered bool) {
	last := to.last[key]
	switch {
	case version < last:
		to.stale++
		f.note("%s: version %d after %d", key, version, last)
	case ordered && version > last+1:
		f.note("%s: version %d follows %d", key, version, last)
	case version == last:
		to.repeats++
	case last > 0:
		to.corrections++
	}
	to.last[key] = version
	if to.seen[key] == nil {
		to.seen[key] = map[int]bool{}
	}
	to.seen[key][version] = true
}

// failed reports whether something wrong was seen. Then there is no need for more.
func (f *fault) failed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.wrong) > 0
}

// write commits so many changes of keys at random, until something wrong was seen. Some
// of them roll back.
func (f *fault) write(ctx context.Context, commits int) {
	for done := 0; done < commits && ctx.Err() == nil && !f.failed(); {
		k := f.keys[rand.IntN(len(f.keys))]
		k.mu.Lock()
		e := healthlab.Event{
			ID: uuid.Must(uuid.NewV7()), Type: faultLatest, Team: f.teams[k.team].id, Key: k.name, At: noon.Time,
			Data: fmt.Appendf(nil, `{"key":%q,"version":%d,"ordered":%t}`, k.name, k.versions+1, k.ordered),
		}
		if k.ordered {
			e.Type = faultOrdered
		}
		events := []healthlab.Event{e}
		bad := rand.Float64() < 0.04
		if bad {
			events = append(events, healthlab.Event{}) // not a valid event: none is written
		}
		switch err := f.s.Outbox().Append(ctx, events); {
		case err == nil:
			k.versions++
			done++
		case !bad && ctx.Err() == nil:
			f.mu.Lock()
			f.note("append: %v", err)
			f.mu.Unlock()
		}
		k.mu.Unlock()
	}
}

// dispatchers keeps two processes running, one of which it kills now and then, until ctx
// ends. It returns how many it has killed.
func (f *fault) dispatchers(ctx context.Context, calm <-chan struct{}) (killed int) {
	running := []*exec.Cmd{f.start(), f.start()}
	for {
		select {
		case <-ctx.Done():
			for _, c := range running {
				f.kill(c)
			}
			return killed
		case <-calm:
			calm = nil
		case <-time.After(500*time.Millisecond + rand.N(time.Second)):
			if calm != nil {
				i := rand.IntN(len(running))
				f.kill(running[i])
				running[i] = f.start()
				killed++
			}
		}
	}
}

// start starts a process that delivers.
func (f *fault) start() *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), postgres.Child+"=dispatcher", postgres.ChildAddress+"="+f.address, faultWhat+"="+f.what)
	c.Stderr = os.Stderr
	_, err := c.StdinPipe() // its end is that of the child
	require.NoError(f.t, err)
	require.NoError(f.t, c.Start())
	return c
}

func (f *fault) kill(c *exec.Cmd) {
	require.NoError(f.t, c.Process.Kill())
	require.Error(f.t, c.Wait(), "it was killed")
}

// jumps lets the server's clock jump, until ctx ends.
func (f *fault) jumps(ctx context.Context) {
	clock := &serverClock{t: f.t, pool: f.pool}
	for ctx.Err() == nil {
		to := rand.N(2*faultJump) - faultJump
		clock.advance(to - clock.ahead)
		select {
		case <-ctx.Done():
		case <-time.After(700 * time.Millisecond):
		}
	}
}

// burn writes so many events, and waits until the receivers have all they should or have
// seen something wrong. It returns what was wrong.
func (f *fault) burn(events int) []string {
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Duration(prove.Count(2, 20))*time.Minute)
	defer cancel()
	running, stop := context.WithCancel(ctx)
	calm := make(chan struct{})
	killed := 0
	var others, writers sync.WaitGroup
	others.Go(func() { killed = f.dispatchers(running, calm) })
	others.Go(func() { f.jumps(running) })
	const hands = 8
	for range hands {
		writers.Go(func() { f.write(ctx, events/hands) })
	}
	writers.Wait()
	close(calm)
	f.await(ctx)
	stop()
	others.Wait()

	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.wrong) > 0 {
		return f.wrong
	}
	f.count(killed)
	return f.wrong
}

// count notes what is missing at the end, and says what there was.
func (f *fault) count(killed int) {
	written, received, repeats, corrections := 0, 0, 0, 0
	for _, k := range f.keys {
		to := f.teams[k.team]
		written += k.versions
		received += len(to.seen[k.name])
		if to.last[k.name] != k.versions {
			f.note("%s: the newest is %d, received %d", k.name, k.versions, to.last[k.name])
		}
		if k.ordered && len(to.seen[k.name]) != k.versions {
			f.note("%s: %d of %d received", k.name, len(to.seen[k.name]), k.versions)
		}
	}
	for _, to := range f.teams {
		repeats += to.repeats
		corrections += to.corrections
	}
	f.t.Logf("%d events, %d processes killed, %d versions received, %d corrections, %d repeats", written, killed, received, corrections, repeats)
	if killed == 0 || repeats == 0 || corrections == 0 {
		f.note("%d killed, %d repeats, %d corrections: nothing was tried", killed, repeats, corrections)
	}
	for what, sql := range map[string]string{
		"not routed":         `select count(*) from healthlab.webhook_pending`,
		"a failure for good": `select count(*) from healthlab.webhook_attempt where state = 'failed'`,
		"a lane without a head": `select count(*) from healthlab.webhook_delivery w where not head and not exists (
			select from healthlab.webhook_delivery h where h.endpoint_id = w.endpoint_id and h.lane = w.lane and h.head)`,
	} {
		var n int
		require.NoError(f.t, f.pool.QueryRow(f.t.Context(), sql).Scan(&n))
		if n > 0 {
			f.note("%d: %s", n, what)
		}
	}
}

// await waits until every key has its newest version, something is wrong, or ctx ends.
func (f *fault) await(ctx context.Context) {
	for ctx.Err() == nil {
		f.mu.Lock()
		missing := 0
		for _, k := range f.keys {
			to := f.teams[k.team]
			if to.last[k.name] != k.versions {
				missing++
			}
		}
		wrong := len(f.wrong)
		f.mu.Unlock()
		if missing == 0 || wrong > 0 {
			return
		}
		select {
		case <-f.news:
		case <-ctx.Done():
		}
	}
}

// Two processes deliver, are killed at random, and have clocks that are wrong and jump,
// as the server's does; receivers fail, hang, and are slow. Nothing is lost, nothing
// comes in the wrong order, and each correction arrives.
func TestDispatchersUnderFire(t *testing.T) {
	t.Parallel()
	events := prove.Counts(2000, 10_000, 100_000)
	require.Empty(t, newFault(t, "", events/5).burn(events))
}

// The same test notices when one line of the ordering is left out.
func TestDispatchersUnderFireWithoutLanes(t *testing.T) {
	t.Parallel()
	require.NotEmpty(t, newFault(t, noLanes, 200).burn(10_000))
}

// received returns how many versions the receivers have.
func (f *fault) received() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, to := range f.teams {
		for _, versions := range to.seen {
			n += len(versions)
		}
	}
	return n
}

// A process that delivers is killed three times in the middle of it. Nothing is lost, and
// nothing comes twice but what it had under way: as much as it has slots, and what had
// been answered and was not recorded, which is a batch at most.
func TestDispatcherKilledThreeTimes(t *testing.T) {
	t.Parallel()
	const kills, slots = 3, 256
	events := prove.Counts(1000, 2000, 20_000)
	f := newFault(t, "", events)
	for _, to := range f.teams {
		to.refuses, to.forgets, to.hangs, to.slow = 0, 0, 0, time.Millisecond
	}
	for _, k := range f.keys {
		k.ordered, k.versions = true, 1
	}
	for some := range slices.Chunk(f.keys, 500) {
		var batch []healthlab.Event
		for _, k := range some {
			batch = append(batch, healthlab.Event{
				ID: uuid.Must(uuid.NewV7()), Type: faultOrdered, Team: f.teams[k.team].id, Key: k.name, At: noon.Time,
				Data: fmt.Appendf(nil, `{"key":%q,"version":1,"ordered":true}`, k.name),
			})
		}
		require.NoError(t, f.s.Outbox().Append(t.Context(), batch))
	}
	c := f.start()
	for i := range kills {
		for f.received() < events*(i+1)/(kills+1) {
			<-f.news
		}
		f.kill(c)
		c = f.start()
	}
	f.await(t.Context())
	f.kill(c)
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Empty(t, f.wrong)
	repeats := 0
	for _, to := range f.teams {
		repeats += to.repeats
	}
	require.LessOrEqual(t, repeats, kills*(slots+faultBatch))
	t.Logf("%d messages, %d of them twice", events, repeats)
}
