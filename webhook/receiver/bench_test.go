package receiver_test

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

// BenchmarkReceive handles one message, from its bytes to the host's function and the mark.
func BenchmarkReceive(b *testing.B) {
	batch := healthdata.Batch{UserID: ann, Source: healthdata.Source{Provider: "acme_band"}}
	for i := range 1000 {
		batch.Data = append(batch.Data, healthdata.Sample{
			Timestamp: healthlab.At(time.Date(2026, 3, 1, 7, 0, i, 0, time.UTC)), Unit: "bpm", Value: healthdata.Number(float64(60 + i%9)),
		})
	}
	for name, body := range map[string][]byte{
		"sleep":        render(b, sleepCreated, sleepAt(1), 0),
		"samples=1000": render(b, "daily.data.heartrate.created", batch, 0),
	} {
		b.Run(name, func(b *testing.B) {
			d := newFixture(b, receiver.Options{})
			receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.Sleep) error { return nil })
			receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.Batch) error { return nil })
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			n := 0
			for b.Loop() {
				n++
				h := http.Header{}
				webhook.SetSignature(h, "msg_"+strconv.Itoa(n), d.now, body, d.secret)
				o, err := d.Receive(b.Context(), body, h)
				require.NoError(b, err)
				require.Equal(b, receiver.Applied, o)
			}
		})
	}
}
