package nats_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/operations/nats"
	"github.com/healthlab-dev/healthlab/webhook"
)

// A message goes into a stream, and comes out as it was signed. In a service a
// webhook.Dispatcher calls Notify; a consumer of the stream does what stands after it.
func Example() {
	ctx := context.Background()
	js, stop := broker()
	defer stop()
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "events", Subjects: []string{"healthlab.events.>"}})
	check(err)
	secret, err := webhook.GenerateSecret(strings.NewReader(strings.Repeat("an example's secret ", 4)))
	check(err)

	send := webhook.ByScheme{nats.Scheme: nats.New(js, nil)}
	result := send.Notify(ctx, webhook.Notification{
		URL:  "nats://healthlab.events",
		Team: healthlab.TeamID{UUID: uuid.MustParse("22222222-2222-4222-8222-222222222222")},
		Type: "labtest.order.updated",
		ID:   "msg_2hG4", At: time.Now(), Headers: http.Header{}, Secrets: []webhook.Secret{secret},
		Body: []byte(`{"event_type":"labtest.order.updated"}`),
	})
	fmt.Println(result.Class)

	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{AckPolicy: jetstream.AckExplicitPolicy})
	check(err)
	msg, err := consumer.Next()
	check(err)
	body, header, err := nats.Read(msg, 1<<20)
	check(err)
	check(webhook.VerifyArchived(body, header, secret))
	fmt.Println(msg.Subject())
	fmt.Println(string(body))
	check(msg.Ack())
	// Output:
	// ok
	// healthlab.events.22222222-2222-4222-8222-222222222222.labtest.order.updated
	// {"event_type":"labtest.order.updated"}
}

// broker starts a server for the example.
func broker() (js jetstream.JetStream, stop func()) {
	dir, err := os.MkdirTemp("", "stream")
	check(err)
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true,
	})
	check(err)
	s.Start()
	s.ReadyForConnections(20 * time.Second)
	nc, err := natsgo.Connect(s.ClientURL())
	check(err)
	js, err = jetstream.New(nc)
	check(err)
	return js, func() {
		nc.Close()
		s.Shutdown()
		s.WaitForShutdown()
		check(os.RemoveAll(dir))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
