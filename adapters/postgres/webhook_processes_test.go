//go:build unix

package postgres_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/webhook"
)

func init() { postgres.Children["sender"] = senderChild }

// senderName tells a sender its name, which it tells the receiver in a header, and senderKind which
// kind it is.
const (
	senderName   = "HEALTHLABTEST_SENDER"
	senderKind   = "HEALTHLABTEST_SENDER_KIND"
	senderHeader = "X-Sender"

	plainSender = "plain" // leases are as long as they are by default
	briefSender = "brief" // leases are brief
	heldSender  = "held"  // leases are brief, and it waits for a word between the first claim and the sending
	lostSender  = "lost"  // as held, and does not know how brief they are
	slowSender  = "slow"  // sends one message at a time
)

// senderLease is a brief lease. A request may be started in the first half of it.
const senderLease = 4 * time.Second

// senderChild delivers until its parent lets go.
func senderChild(address string) {
	words := make(chan string)
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			words <- lines.Text()
		}
		os.Exit(1)
	}()
	pool, err := pgxpool.New(context.Background(), address)
	if err != nil {
		panic(err)
	}
	engine, err := postgres.New(context.Background(), pool, stores.Tables(), &postgres.Options{Schema: rowSchema})
	if err != nil {
		panic(err)
	}
	s := stores.New(engine, &stores.Options{Events: stores.Outbox})
	o := &webhook.Options{
		Slots: 16, Busy: 10 * time.Millisecond, Idle: 10 * time.Millisecond, Timeout: senderLease / 4, StartMargin: senderLease / 4,
	}
	queue, what := s.Deliveries(), os.Getenv(senderKind)
	switch what {
	case plainSender:
	case slowSender:
		o.Slots, o.EndpointSlots = 1, 1
	default:
		o.Lease = senderLease
	}
	switch what {
	case lostSender:
		o.Lease = time.Hour
		fallthrough
	case heldSender:
		queue = &heldQueue{Deliveries: queue, words: words}
	}
	over := webhook.NewHTTP(&webhook.HTTPOptions{Guard: loopback(), Timeout: o.Timeout})
	d, err := webhook.NewDispatcher(eventTypes(), dispatcherStore{queue, s.Endpoints()}, notifierFunc(func(ctx context.Context, n webhook.Notification) webhook.Result {
		if n.Headers = n.Headers.Clone(); n.Headers == nil {
			n.Headers = http.Header{}
		}
		n.Headers.Set(senderHeader, os.Getenv(senderName))
		return over.Notify(ctx, n)
	}), secretSealer(), o)
	if err != nil {
		panic(err)
	}
	_ = d.Run(context.Background())
}

// heldQueue says that it has claimed, and waits for a word before it hands that over. No other call
// that writes runs meanwhile, so that a process that is stopped then holds no locks.
type heldQueue struct {
	webhook.Deliveries
	words <-chan string
	once  sync.Once
	mu    sync.Mutex
}

func (q *heldQueue) Route(ctx context.Context, modes map[string]healthlab.Mode, most int) (webhook.Routed, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.Deliveries.Route(ctx, modes, most)
}

func (q *heldQueue) Claim(ctx context.Context, c webhook.Claim) (webhook.Claimed, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c.Lease = senderLease
	got, err := q.Deliveries.Claim(ctx, c)
	if n := len(got.Deliveries); n > 0 {
		q.once.Do(func() {
			fmt.Println("claimed", n)
			<-q.words
		})
	}
	return got, err
}

// Release says that what was claimed went back, and RecordOutcomes that it was sent.
func (q *heldQueue) Release(ctx context.Context, back []webhook.Released) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.Deliveries.Release(ctx, back)
	for range back {
		fmt.Println("released")
	}
	return err
}

func (q *heldQueue) RecordOutcomes(ctx context.Context, o []webhook.Outcome) (webhook.RecordedOutcomes, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	recorded, err := q.Deliveries.RecordOutcomes(ctx, o)
	fmt.Println("sent", len(o))
	return recorded, err
}

// sender is a process that delivers.
type sender struct {
	*exec.Cmd
	say   io.Writer
	hears *bufio.Scanner
}

// sent is what the receiver got.
type sent struct {
	from, id, key string
	version       int
}

// senders are processes that deliver from one database to one receiver.
type senders struct {
	t       *testing.T
	address string
	s       *stores.Stores
	teams   []healthlab.TeamID
	slow    time.Duration // the receiver

	mu   sync.Mutex
	got  []sent
	news chan struct{}
}

func newSenders(t *testing.T, teams int) *senders {
	address := pgtest.URL(t)
	f := &senders{t: t, address: address, s: storesOn(t, pgtest.Connect(t, address), nil, nil), news: make(chan struct{}, 1)}
	server := httptest.NewServer(http.HandlerFunc(f.receive))
	t.Cleanup(server.Close)
	service, err := webhook.NewService(eventTypes(), f.s.Webhooks(),
		webhook.NewHTTP(nil), secretSealer(), &webhook.ServiceOptions{Guard: loopback()})
	require.NoError(t, err)
	for range teams {
		team := healthlab.TeamID{UUID: uuid.New()}
		_, err := service.Create(t.Context(), team, webhook.NewEndpoint{URL: server.URL})
		require.NoError(t, err)
		f.teams = append(f.teams, team)
	}
	return f
}

func (f *senders) receive(_ http.ResponseWriter, r *http.Request) {
	var body struct {
		Data struct {
			Key     string
			Version int
		}
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil || body.Data.Key == "" {
		return
	}
	<-time.After(f.slow)
	f.mu.Lock()
	f.got = append(f.got, sent{r.Header.Get(senderHeader), r.Header.Get("Webhook-Id"), body.Data.Key, body.Data.Version})
	f.mu.Unlock()
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// until waits until something holds of what the receiver has got, and returns that.
func (f *senders) until(holds func(got []sent) bool) []sent {
	f.t.Helper()
	for {
		f.mu.Lock()
		got := f.got[:len(f.got):len(f.got)]
		f.mu.Unlock()
		if holds(got) {
			return got
		}
		select {
		case <-f.news:
		case <-f.t.Context().Done():
			require.NoError(f.t, f.t.Context().Err())
		}
	}
}

func (f *senders) await(n int) []sent {
	f.t.Helper()
	return f.until(func(got []sent) bool { return len(got) >= n })
}

func (f *senders) event(n int, of, key string, version int) healthlab.Event {
	return healthlab.Event{
		ID: uuid.Must(uuid.NewV7()), Type: of, Team: f.teams[n%len(f.teams)], Key: key, At: eventTime,
		Data: fmt.Appendf(nil, `{"key":%q,"version":%d}`, key, version),
	}
}

// start starts a process. It ends with the test.
func (f *senders) start(name, what string) *sender {
	f.t.Helper()
	c := &sender{Cmd: exec.Command(os.Args[0])}
	c.Env = append(os.Environ(), postgres.Child+"=sender", postgres.ChildAddress+"="+f.address, senderName+"="+name, senderKind+"="+what)
	c.Stderr = os.Stderr
	var err error
	c.say, err = c.StdinPipe()
	require.NoError(f.t, err)
	out, err := c.StdoutPipe()
	require.NoError(f.t, err)
	c.hears = bufio.NewScanner(out)
	require.NoError(f.t, c.Start())
	f.t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

// hear waits for a line of a process that begins with a word, and returns the number
// behind it.
func (f *senders) hear(c *sender, word string) (n int) {
	f.t.Helper()
	require.True(f.t, c.hears.Scan(), "it ended")
	got, number, _ := strings.Cut(c.hears.Text(), " ")
	require.Equal(f.t, word, got)
	n, _ = strconv.Atoi(number)
	return n
}

// share lets two processes deliver to a receiver, and returns which part the first of
// them sent of so many messages. Nothing comes twice.
func (f *senders) share(n int) float64 {
	f.t.Helper()
	have := 0
	for up := map[string]bool{}; len(up) < 2; have++ { // both are at work
		require.NoError(f.t, f.s.Outbox().Append(f.t.Context(), []healthlab.Event{f.event(have, orderedType, fmt.Sprint("first ", have), 1)}))
		up[f.await(have + 1)[have].from] = true
	}
	for first := 0; first < n; first += 500 {
		var batch []healthlab.Event
		for i := first; i < min(first+500, n); i++ {
			batch = append(batch, f.event(i, orderedType, fmt.Sprint("key ", i), 1))
		}
		require.NoError(f.t, f.s.Outbox().Append(f.t.Context(), batch))
	}
	got := f.await(have + n)
	by, ids := map[string]int{}, map[string]bool{}
	for _, m := range got[have:] {
		by[m.from]++
	}
	for _, m := range got {
		ids[m.id] = true
	}
	require.Len(f.t, ids, len(got), "nothing twice")
	f.t.Logf("%d messages: %v", n, by)
	return float64(by["one"]) / float64(n)
}

// Two processes on one database share the work: neither has more than 85 percent of it,
// and no message is sent by both.
func TestDispatchers_twoProcessesShareTheWork(t *testing.T) {
	t.Parallel()
	f := newSenders(t, 4)
	f.slow = 5 * time.Millisecond
	f.start("one", plainSender)
	f.start("two", plainSender)
	part := f.share(prove.Count(1000, 10_000))
	require.GreaterOrEqual(t, part, 0.15)
	require.LessOrEqual(t, part, 0.85)
}

// The same test notices when one of them does little.
func TestDispatchers_slowProcessGetsASmallShare(t *testing.T) {
	t.Parallel()
	f := newSenders(t, 4)
	f.slow = 25 * time.Millisecond
	f.start("one", slowSender)
	f.start("two", plainSender)
	require.Less(t, f.share(500), 0.15)
}

// suspend stops a process that waits for a word.
func (f *senders) suspend(c *sender) {
	f.t.Helper()
	require.NoError(f.t, c.Process.Signal(syscall.SIGSTOP))
	var state syscall.WaitStatus // it is told, and stops a moment later
	_, err := syscall.Wait4(c.Process.Pid, &state, syscall.WUNTRACED, nil)
	require.NoError(f.t, err)
	require.True(f.t, state.Stopped())
}

// stop stops a process of a sort that has claimed an old version and not sent it, for
// longer than its lease, and returns what the receiver got while newer ones came.
func (f *senders) stop(what string) []sent {
	f.t.Helper()
	write := func(version int) {
		require.NoError(f.t, f.s.Outbox().Append(f.t.Context(), []healthlab.Event{
			f.event(0, latestType, "latest", version), f.event(0, orderedType, "ordered", version),
		}))
	}
	write(1)
	stopped := f.start("stopped", what)
	claimed := f.hear(stopped, "claimed")
	require.Equal(f.t, 2, claimed)
	f.suspend(stopped)
	_, err := io.WriteString(stopped.say, "go on\n") // which it cannot read yet
	require.NoError(f.t, err)
	write(2)
	f.start("other", briefSender)
	f.until(func(got []sent) bool { // both have their new version
		newest := map[string]bool{}
		for _, m := range got {
			newest[m.key] = newest[m.key] || m.version == 2
		}
		return newest["latest"] && newest["ordered"]
	})
	require.NoError(f.t, stopped.Process.Signal(syscall.SIGCONT))
	if what == lostSender { // it sends what it has
		return f.until(func(got []sent) bool {
			return slices.ContainsFunc(got, func(m sent) bool { return m.from == "stopped" })
		})
	}
	for range claimed {
		f.hear(stopped, "released")
	}
	return f.await(0)
}

// late reports whether an older version came after a newer one.
func late(got []sent) bool {
	last := map[string]int{}
	for _, m := range got {
		if m.version < last[m.key] {
			return true
		}
		last[m.key] = m.version
	}
	return false
}

// A process is stopped, as a machine that is suspended is, between its claim and its
// request, until its lease is over and another process has sent what is newer. When it
// goes on it sends nothing: the old version never comes after the new one.
func TestDispatchers_resumedProcessSendsNothingAfterItsLease(t *testing.T) {
	t.Parallel()
	got := newSenders(t, 1).stop(heldSender)
	require.False(t, late(got))
	for _, m := range got {
		require.Equal(t, "other", m.from)
	}
}

// The same test notices a process that does not know how long its lease was.
func TestDispatchers_processIgnoringItsLeaseIsDetected(t *testing.T) {
	t.Parallel()
	require.True(t, late(newSenders(t, 1).stop(lostSender)))
}
