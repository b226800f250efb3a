package orderstest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

func TestBroken(t *testing.T) {
	conformance.RunBroken(t,
		conformance.Of("orders", brokenStores),
		conformance.Of("erasure", brokenErasures),
		conformance.Of("visits", brokenVisitStores),
		conformance.Of("bookings", brokenBookingBackends),
		conformance.Of("messenger", brokenMessengers),
		conformance.Of("reviews", brokenReviewStores),
	)
}
