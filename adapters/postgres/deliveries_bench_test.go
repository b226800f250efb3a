package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/webhook"
)

// BenchmarkDeliveries compares the delivery of 10,000 events of 25 teams, by turns, with a loop that signs and posts as
// many bodies and stores nothing, and with the delivery beside a team whose endpoint never answers. The bars are 0.5 and
// 0.9 of the throughput.
func BenchmarkDeliveries(b *testing.B) {
	const events, senders = 10_000, 256
	in := newBenchReceiver(b)
	alone, beside := newBenchTeams(b, in), newBenchTeams(b, in)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	b.Cleanup(func() {
		hanging.CloseClientConnections()
		hanging.Close()
	})
	beside.add(b, hanging.URL)
	var took [3]time.Duration
	turns := 0
	for ; b.Loop(); turns++ {
		took[0] += alone.deliver(b, in, events/answeringTeams)
		took[1] += in.post(b, events, senders)
		took[2] += beside.deliver(b, in, events/answeringTeams)
	}
	b.ReportMetric(float64(took[1])/float64(took[0]), "of-bare")
	b.ReportMetric(float64(took[0])/float64(took[2]), "beside-hanging")
	b.ReportMetric(float64(turns*events)/took[0].Seconds(), "events/s")
}

// benchReceiver counts the requests of a turn. Those that are repeated from an earlier one do not count.
type benchReceiver struct {
	*httptest.Server
	turn, got, want atomic.Int64
	all             chan struct{}
}

func newBenchReceiver(b *testing.B) *benchReceiver {
	in := &benchReceiver{all: make(chan struct{}, 1)}
	in.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && bytes.Contains(body, in.mark()) && in.got.Add(1) == in.want.Load() {
			in.all <- struct{}{}
		}
	}))
	b.Cleanup(in.Close)
	return in
}

func (in *benchReceiver) expect(n int) {
	in.turn.Add(1)
	in.got.Store(0)
	in.want.Store(int64(n))
}

func (in *benchReceiver) mark() []byte { return fmt.Appendf(nil, `"turn-%d"`, in.turn.Load()) }

func (in *benchReceiver) body() []byte {
	// About as long as the data of a summary.
	return fmt.Appendf(nil, `{"turn":%s,"data":%q}`, in.mark(), bytes.Repeat([]byte("x"), 1400))
}

// post signs and sends n bodies, and returns the time until the last was accepted.
func (in *benchReceiver) post(b *testing.B, n, senders int) time.Duration {
	in.expect(n)
	secret, err := webhook.GenerateSecret(bytes.NewReader(make([]byte, 64)))
	require.NoError(b, err)
	client := http.Client{Transport: &http.Transport{MaxIdleConns: senders, MaxIdleConnsPerHost: senders}}
	defer client.CloseIdleConnections()
	body := in.body()
	var group sync.WaitGroup
	var next atomic.Int64
	begun := time.Now()
	for range senders {
		group.Go(func() {
			for next.Add(1) <= int64(n) {
				id, at := uuid.NewString(), time.Now()
				r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, in.URL, bytes.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				r.Header.Set("Webhook-Id", id)
				r.Header.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
				r.Header.Set("Webhook-Signature", webhook.Sign(secret, id, at, body))
				answer, err := client.Do(r)
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
		})
	}
	group.Wait()
	<-in.all
	return time.Since(begun)
}

// answeringTeams is the number of teams whose endpoint answers.
const answeringTeams = 25

// benchTeams are teams with an endpoint each, on a database of their own.
type benchTeams struct {
	teams   []healthlab.TeamID
	outbox  webhook.Outbox
	service *webhook.Service
	sender  func() *webhook.Dispatcher
}

func newBenchTeams(b *testing.B, in *benchReceiver) *benchTeams {
	server, err := pgtest.Start(b.Context(), pgtest.Durable)
	require.NoError(b, err)
	b.Cleanup(server.Remove)
	engine, err := postgres.Open(b.Context(), pgtest.Connect(b, server.URL("postgres")), stores.Tables(), nil)
	require.NoError(b, err)
	s := stores.New(engine, &stores.Options{Events: stores.Outbox})
	to := webhook.NewHTTP(&webhook.HTTPOptions{Guard: loopback()})
	t := &benchTeams{outbox: s.Outbox()}
	t.service, err = webhook.NewService(eventTypes(), s.Webhooks(), to, secretSealer(), &webhook.ServiceOptions{Guard: loopback()})
	require.NoError(b, err)
	t.sender = func() *webhook.Dispatcher {
		d, err := webhook.NewDispatcher(eventTypes(), s.Webhooks(), to, secretSealer(), &webhook.Options{Drain: time.Millisecond}) // a stop does not wait for hanging requests
		require.NoError(b, err)
		return d
	}
	for range answeringTeams {
		t.add(b, in.URL)
	}
	return t
}

func (t *benchTeams) add(b *testing.B, url string) {
	team := anyTeam()
	_, err := t.service.Create(b.Context(), team, webhook.NewEndpoint{URL: url})
	require.NoError(b, err)
	t.teams = append(t.teams, team)
}

// deliver writes n events for each team, then delivers them, and returns the time until the receiver has accepted all
// of the teams whose endpoint answers.
func (t *benchTeams) deliver(b *testing.B, in *benchReceiver, n int) time.Duration {
	in.expect(n * answeringTeams)
	for i := range t.teams {
		all := make([]healthlab.Event, n)
		for k := range all {
			id := uuid.Must(uuid.NewV7())
			all[k] = healthlab.Event{ID: id, Type: orderedType, Team: t.teams[i], Key: id.String(), At: time.Now(), Data: in.body()}
		}
		require.NoError(b, t.outbox.Append(b.Context(), all))
	}
	runtime.GC()
	ctx, stop := context.WithCancel(b.Context())
	ended, sender := make(chan error, 1), t.sender()
	begun := time.Now()
	go func() { ended <- sender.Run(ctx) }()
	<-in.all
	took := time.Since(begun)
	stop()
	require.NoError(b, <-ended)
	return took
}
