package nats_test

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/operations/nats"
	"github.com/healthlab-dev/healthlab/webhook/webhooktest"
)

func TestNotifier_passesTheNotifierSuite(t *testing.T) {
	webhooktest.RunNotifier(t, func(t testing.TB) webhooktest.NotifierHarness {
		js := connect(t, start(t, t.TempDir(), server.RANDOM_PORT))
		events := stream(t, js, jetstream.StreamConfig{Name: "events", Subjects: []string{"lab.events.>"}})
		stream(t, js, jetstream.StreamConfig{Name: "full", Subjects: []string{"full.>"}, MaxMsgSize: 1})
		_, err := js.Conn().Subscribe("mute.>", func(*natsgo.Msg) {}) // takes messages and never answers
		require.NoError(t, err)
		require.NoError(t, js.Conn().Flush())
		return webhooktest.NotifierHarness{
			Notifier: nats.New(js, nil), URL: "nats://lab.events", Unreachable: "nats://nowhere",
			Silent: "nats://mute", Refusing: "nats://full",
			Refused: func(testing.TB) int { return 0 }, // the stream keeps none
			Received: func(t testing.TB) []webhooktest.Message {
				info, err := events.Info(t.Context())
				require.NoError(t, err)
				var out []webhooktest.Message
				for range info.State.Msgs {
					body, header, err := nats.Read(next(t, events), 1<<20)
					require.NoError(t, err)
					out = append(out, webhooktest.Message{Header: header, Body: body})
				}
				return out
			},
		}
	})
}
