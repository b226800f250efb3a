package nats_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/operations/nats"
	"github.com/healthlab-dev/healthlab/webhook"
)

// start runs a real server on loopback and returns it.
func start(t testing.TB, dir string, port int) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true, MaxPayload: 64 << 10,
	})
	require.NoError(t, err)
	s.Start()
	require.True(t, s.ReadyForConnections(20*time.Second))
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

func connect(t testing.TB, s *server.Server) jetstream.JetStream {
	t.Helper()
	nc, err := natsgo.Connect(s.ClientURL(), natsgo.MaxReconnects(-1), natsgo.ReconnectWait(10*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}

func stream(t testing.TB, js jetstream.JetStream, c jetstream.StreamConfig) jetstream.Stream {
	t.Helper()
	s, err := js.CreateOrUpdateStream(t.Context(), c)
	require.NoError(t, err)
	return s
}

var (
	team = healthlab.TeamID{UUID: uuid.MustParse("11111111-1111-4111-8111-111111111111")}
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

func notification(t testing.TB, body string) webhook.Notification {
	t.Helper()
	secret, err := webhook.GenerateSecret(bytes.NewReader(bytes.Repeat([]byte("k"), 64)))
	require.NoError(t, err)
	return webhook.Notification{
		URL: "nats://lab.events", Team: team, Type: "daily.data.sleep.created", ID: "msg_1", At: noon,
		Headers: http.Header{"X-Ward": {"seven"}}, Secrets: []webhook.Secret{secret}, Body: []byte(body),
	}
}

func next(t testing.TB, s jetstream.Stream) jetstream.Msg {
	t.Helper()
	c, err := s.CreateOrUpdateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "reader", AckPolicy: jetstream.AckExplicitPolicy})
	require.NoError(t, err)
	msg, err := c.Next(jetstream.FetchMaxWait(10 * time.Second))
	require.NoError(t, err)
	require.NoError(t, msg.Ack())
	return msg
}

// What comes out of the stream verifies with the secret of the endpoint, small or
// compressed.
func TestMessage_verifiesWithTheEndpointsSecret(t *testing.T) {
	js := connect(t, start(t, t.TempDir(), server.RANDOM_PORT))
	s := stream(t, js, jetstream.StreamConfig{Name: "events", Subjects: []string{"lab.events.>"}})
	to := nats.New(js, nil)
	for name, body := range map[string]string{
		"small": `{"event_type":"daily.data.sleep.created"}`,
		"large": `{"data":"` + strings.Repeat("ab", 1000) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			n := notification(t, body)
			require.Equal(t, webhook.ClassOK, to.Notify(t.Context(), n).Class)
			msg := next(t, s)
			require.Equal(t, "lab.events."+team.String()+".daily.data.sleep.created", msg.Subject())
			require.Equal(t, len(body) >= 1024, len(msg.Data()) < len(body))
			got, h, err := nats.Read(msg, len(body))
			require.NoError(t, err)
			require.Equal(t, body, string(got))
			require.NoError(t, webhook.Verifier{}.Verify(got, h, noon, n.Secrets...))
			require.Equal(t, "seven", h.Get("X-Ward"))
			require.Equal(t, n.Type, h.Get(nats.HeaderType))
			require.Equal(t, team.String(), h.Get(nats.HeaderTeam))
			require.Equal(t, n.ID, h.Get(nats.HeaderKey))
			_, _, err = nats.Read(msg, len(body)-1)
			require.ErrorIs(t, err, healthlab.Invalid)
		})
	}
}

// A publication that a stream has not acknowledged is never taken for delivered.
func TestNotify_unacknowledgedPublicationIsNotDelivered(t *testing.T) {
	srv := start(t, t.TempDir(), server.RANDOM_PORT)
	js := connect(t, srv)
	to := nats.New(js, nil)
	send := func(url, body string) webhook.Class {
		n := notification(t, body)
		n.URL = url
		return to.Notify(t.Context(), n).Class
	}
	require.Equal(t, webhook.ClassRefused, send("nats://nowhere", "{}"), "no stream has the subject")

	stream(t, js, jetstream.StreamConfig{Name: "full", Subjects: []string{"full.>"}, MaxMsgs: 1, Discard: jetstream.DiscardNew})
	require.Equal(t, webhook.ClassOK, send("nats://full", "{}"))
	require.Equal(t, webhook.ClassThrottled, send("nats://full", "{}"), "the stream is full")

	noise := make([]byte, 128<<10)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	require.Equal(t, webhook.ClassRefused, send("nats://full", string(noise)), "larger than the server takes")

	// A subscriber receives the messages and never acknowledges them.
	_, err := js.Conn().Subscribe("mute.>", func(*natsgo.Msg) {})
	require.NoError(t, err)
	require.NoError(t, js.Conn().Flush())
	impatient := nats.New(js, &nats.Options{Timeout: 20 * time.Millisecond})
	n := notification(t, "{}")
	n.URL = "nats://mute"
	require.Equal(t, webhook.ClassTimeout, impatient.Notify(t.Context(), n).Class)

	gone := make(chan struct{})
	js.Conn().SetDisconnectErrHandler(func(*natsgo.Conn, error) { close(gone) })
	srv.Shutdown()
	<-gone
	require.Equal(t, webhook.ClassConnect, send("nats://full", "{}"))
}

func TestRead_refusesInvalidEncodings(t *testing.T) {
	for name, m := range map[string]*natsgo.Msg{
		"encoding":  {Header: natsgo.Header{"Content-Encoding": {"br"}}},
		"not gzip":  {Header: natsgo.Header{"Content-Encoding": {"gzip"}}, Data: []byte("{}")},
		"cut short": {Header: natsgo.Header{"Content-Encoding": {"gzip"}}, Data: []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}},
	} {
		_, _, err := nats.Read(message{m}, 1<<10)
		require.ErrorIs(t, err, healthlab.Invalid, name)
	}
}

// sentEvents closes all when the stream has acknowledged want different events.
type sentEvents struct {
	webhook.Notifier
	want int
	all  chan struct{}

	mu  sync.Mutex
	ids map[string]bool
}

func (s *sentEvents) Notify(ctx context.Context, n webhook.Notification) webhook.Result {
	r := s.Notifier.Notify(ctx, n)
	if r.Class != webhook.ClassOK || n.Type != "labtest.order.updated" {
		return r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = map[string]bool{}
	}
	if !s.ids[n.ID] {
		s.ids[n.ID] = true
		if len(s.ids) == s.want {
			close(s.all)
		}
	}
	return r
}

// message is one that came from nowhere.
type message struct{ m *natsgo.Msg }

func (m message) Metadata() (*jetstream.MsgMetadata, error) { return nil, natsgo.ErrNotJSMessage }
func (m message) Data() []byte                              { return m.m.Data }
func (m message) Headers() natsgo.Header                    { return m.m.Header }
func (m message) Subject() string                           { return m.m.Subject }
func (m message) Reply() string                             { return "" }
func (m message) Ack() error                                { return nil }
func (m message) DoubleAck(context.Context) error           { return nil }
func (m message) Nak() error                                { return nil }
func (m message) NakWithDelay(time.Duration) error          { return nil }
func (m message) InProgress() error                         { return nil }
func (m message) Term() error                               { return nil }
func (m message) TermWithReason(string) error               { return nil }

// Through the whole of package webhook, while the server goes away and comes back:
// nothing is lost, and each key is in order.
func TestDispatcher_restartedServerLosesNoEvent(t *testing.T) {
	const keys, versions = 5, 60
	dir := t.TempDir()
	srv := start(t, dir, server.RANDOM_PORT)
	port := srv.Addr().(*net.TCPAddr).Port
	js := connect(t, srv)
	events := stream(t, js, jetstream.StreamConfig{Name: "events", Subjects: []string{"lab.events.>"}})

	store := memory.New(nil)
	types, err := webhook.NewCatalogue([]healthlab.EventType{
		{Name: "labtest.order.updated", Mode: healthlab.Ordered, Data: struct{}{}},
	}, webhook.EventTypes())
	require.NoError(t, err)
	seal, err := healthlab.NewAESSealer("k", map[string][]byte{"k": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	sent := &sentEvents{Notifier: nats.New(js, &nats.Options{Timeout: time.Second}), want: keys * versions, all: make(chan struct{})}
	to := webhook.ByScheme{nats.Scheme: sent}
	service, err := webhook.NewService(types, store.Webhooks(), to, seal,
		&webhook.ServiceOptions{Guard: &webhook.Guard{Brokers: []string{nats.Scheme}}})
	require.NoError(t, err)
	_, err = service.Create(t.Context(), team, webhook.NewEndpoint{URL: "nats://lab.events"})
	require.NoError(t, err)
	d, err := webhook.NewDispatcher(types, store.Webhooks(), to, seal, &webhook.Options{
		Schedule: webhook.Delays(slices.Repeat([]time.Duration{50 * time.Millisecond}, 400)...), Busy: time.Millisecond, Idle: 5 * time.Millisecond,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Run(ctx) }()
	defer func() { cancel(); require.NoError(t, <-ended) }()

	for v := range versions {
		if v == versions/3 {
			srv.Shutdown()
			srv.WaitForShutdown()
		}
		if v == versions*2/3 {
			start(t, dir, port)
		}
		for k := range keys {
			e := healthlab.Event{
				ID: uuid.Must(uuid.NewV7()), Type: "labtest.order.updated", Team: team, Key: fmt.Sprint(k), At: time.Now(),
				Data: json.RawMessage(fmt.Sprintf(`{"key":%d,"version":%d}`, k, v)),
			}
			require.NoError(t, store.Outbox().Append(t.Context(), []healthlab.Event{e}))
		}
		d.Wake()
	}
	<-sent.all // the client is connected, and the server is idle

	consumer, err := events.CreateOrUpdateConsumer(t.Context(), jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy})
	require.NoError(t, err)
	in, err := consumer.Messages()
	require.NoError(t, err)
	defer in.Stop()
	var seen [keys]int
	for got := 0; got < keys*versions; {
		msg, err := in.Next()
		require.NoError(t, err)
		body, _, err := nats.Read(msg, 1<<10)
		require.NoError(t, err)
		var m struct {
			Data struct{ Key, Version int } `json:"data"`
		}
		require.NoError(t, json.Unmarshal(body, &m))
		k, v := m.Data.Key, m.Data.Version
		require.LessOrEqual(t, v, seen[k], "a version was left out, or came too soon")
		if v == seen[k] { // a lower one is a repeat, which at least once allows
			seen[k]++
			got++
		}
	}
}
