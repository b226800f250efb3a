package postgres_test

import (
	"bytes"
	"context"
	"net/netip"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

// The types of events of these tests.
const (
	orderedType = "test.ordered.changed"
	latestType  = "test.latest.changed"
)

var eventTime = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func eventTypes() *webhook.Catalogue {
	types, err := webhook.NewCatalogue([]healthlab.EventType{
		{Name: orderedType, Mode: healthlab.Ordered}, {Name: latestType, Mode: healthlab.Latest},
	}, webhook.EventTypes())
	if err != nil {
		panic(err)
	}
	return types
}

func secretSealer() healthlab.Sealer {
	s, err := healthlab.NewAESSealer("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, 32)})
	if err != nil {
		panic(err)
	}
	return s
}

func loopback() *webhook.Guard {
	return &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
}

// notifierFunc is a [webhook.Notifier].
type notifierFunc func(context.Context, webhook.Notification) webhook.Result

func (f notifierFunc) Notify(ctx context.Context, n webhook.Notification) webhook.Result {
	return f(ctx, n)
}
