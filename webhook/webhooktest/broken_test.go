package webhooktest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

//go:generate go run ../../internal/conformance/gen brokenDeliveries=webhook.Deliveries brokenEndpoints=webhook.Endpoints brokenLog=webhook.Log

func TestBrokenStores_eachFailsTheSuite(t *testing.T) {
	conformance.RunBroken(t,
		conformance.Of("deliveries", brokenDeliveryStores),
		conformance.Of("endpoints", brokenEndpointStores),
		conformance.Of("outbox", brokenOutboxes),
	)
}
