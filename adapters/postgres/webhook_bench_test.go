package postgres_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
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
	"github.com/healthlab-dev/healthlab/webhook"
)

const (
	deliverEvents    = 10_000
	deliverEndpoints = 25
	deliverSlots     = 256 // about half of them are recorded, and claimed again, at a time
)

// deliverData is 1.5 kB, as a summary is.
var deliverData = []byte(`{"text":"` + strings.Repeat("x", 1400) + `"}`)

// counter is a receiver that counts, and calls done when it has as many as it should.
// What comes to /hang is never answered. The caller closes it.
func counter(want int64, done func()) (server *httptest.Server, end func()) {
	var n atomic.Int64
	server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/hang" {
			<-r.Context().Done()
			return
		}
		if n.Add(1) == want {
			done()
		}
	}))
	return server, func() {
		server.CloseClientConnections()
		server.Close()
	}
}

// BenchmarkDeliver measures how fast what was written is routed, claimed, signed, sent
// and recorded, and beside it how fast the same bodies are signed and posted without any
// of that: the reference. Each alone is for profiles; what compares them is turns, in
// which what the machine does meanwhile is the same for all. There of-post is how many
// messages a second are delivered for each that is posted, and of-alone how many beside
// an endpoint that hangs for each without one.
func BenchmarkDeliver(b *testing.B) {
	ways := []struct {
		name, metric string
		run          func(*testing.B, *pgxpool.Pool)
	}{
		{"post", "posted/s", func(b *testing.B, _ *pgxpool.Pool) { postAll(b) }},
		{"backlog", "delivered/s", func(b *testing.B, pool *pgxpool.Pool) { deliver(b, pool, false) }},
		{"backlog beside one that hangs", "beside/s", func(b *testing.B, pool *pgxpool.Pool) { deliver(b, pool, true) }},
	}
	for _, way := range ways {
		b.Run(way.name, func(b *testing.B) {
			pool := durable(b)
			for b.Loop() {
				way.run(b, pool)
			}
			b.ReportMetric(float64(deliverEvents*b.N)/b.Elapsed().Seconds(), way.metric)
		})
	}
	b.Run("turns", func(b *testing.B) {
		pool := durable(b)
		took := make([]time.Duration, len(ways))
		for turn := 0; b.Loop(); turn++ {
			for i := range ways {
				i = (i + turn) % len(ways)
				before := b.Elapsed()
				ways[i].run(b, pool)
				took[i] += b.Elapsed() - before
			}
		}
		for i, way := range ways {
			b.ReportMetric(float64(deliverEvents*b.N)/took[i].Seconds(), way.metric)
		}
		b.ReportMetric(float64(took[0])/float64(took[1]), "of-post")
		b.ReportMetric(float64(took[1])/float64(took[2]), "of-alone")
	})
}

// postAll posts the bodies, and waits until all have come.
func postAll(b *testing.B) {
	b.StopTimer()
	defer b.StartTimer()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server, end := counter(deliverEvents, cancel)
	defer end()
	runtime.GC() // what was made before is not paid for here
	b.StartTimer()
	post(b, server.URL)
	<-ctx.Done()
	b.StopTimer()
}

// post sends the bodies by plain HTTP, each signed.
func post(b *testing.B, url string) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConns: deliverSlots, MaxIdleConnsPerHost: deliverSlots}}
	defer client.CloseIdleConnections()
	secret := bytes.Repeat([]byte{7}, 32)
	var all sync.WaitGroup
	for range deliverSlots {
		all.Go(func() {
			for range deliverEvents / deliverSlots {
				one(b, client, url, secret)
			}
		})
	}
	all.Wait()
	for range deliverEvents % deliverSlots {
		one(b, client, url, secret)
	}
}

func one(b *testing.B, client *http.Client, url string, secret []byte) {
	id, at := uuid.NewString(), fmt.Sprint(time.Now().Unix())
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.", id, at)
	mac.Write(deliverData)
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, bytes.NewReader(deliverData))
	if err != nil {
		b.Error(err)
		return
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", at)
	r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	resp, err := client.Do(r)
	if err != nil {
		b.Error(err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

// deliver writes events, which is not measured, and has them delivered, which is.
func deliver(b *testing.B, pool *pgxpool.Pool, hanging bool) {
	b.StopTimer()
	defer b.StartTimer()
	s := postgres.New(pool, nil)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	finished := make(chan struct{})
	server, end := counter(deliverEvents, func() { close(finished) })
	defer end()
	notifier := webhook.NewHTTP(&webhook.HTTPOptions{Guard: loopback()})
	defer notifier.Close()
	service, err := webhook.NewService(faultTypes(), s.Deliveries(), s.Endpoints(), s.WebhookLog(), notifier, faultSealer(),
		&webhook.ServiceOptions{Guard: loopback()})
	require.NoError(b, err)
	team := func(path string, events int) {
		id := healthlab.TeamID{UUID: uuid.New()}
		_, err := service.Create(ctx, id, webhook.NewEndpoint{URL: server.URL + path})
		require.NoError(b, err)
		var batch []healthlab.Event
		for i := range events {
			batch = append(batch, healthlab.Event{
				ID: uuid.Must(uuid.NewV7()), Type: faultOrdered, Team: id, Key: fmt.Sprint("key ", i%(events*9/10)), At: noon.Time, Data: deliverData,
			})
		}
		require.NoError(b, s.Outbox().Append(ctx, batch))
	}
	for range deliverEndpoints {
		team("/", deliverEvents/deliverEndpoints)
	}
	if hanging {
		team("/hang", deliverEvents/deliverEndpoints)
	}
	d, err := webhook.NewDispatcher(faultTypes(), s.Deliveries(), s.Endpoints(), notifier, faultSealer(),
		&webhook.Options{Slots: deliverSlots, Drain: time.Millisecond})
	require.NoError(b, err)
	running, stop := context.WithCancel(ctx)
	ended := make(chan error)
	runtime.GC()
	b.StartTimer()
	go func() { ended <- d.Run(running) }()
	select {
	case <-finished:
	case <-ctx.Done():
		b.Error("not delivered within a minute")
	}
	b.StopTimer()
	stop()
	require.NoError(b, <-ended)
	_, err = pool.Exec(context.Background(), `truncate healthlab.webhook_delivery, healthlab.webhook_pending`)
	require.NoError(b, err)
}
