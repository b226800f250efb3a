package orderstest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

//go:generate go run ../../internal/conformance/gen overriddenOrders=orders.Store overriddenReviewStore=orders/exchange.ReviewStore overriddenMatchTestRuns=orders/simulation.MatchTestStore

func TestBrokenStores_eachFailsTheSuite(t *testing.T) {
	conformance.RunBroken(t,
		conformance.Of("orders", brokenStores),
		conformance.Of("erasure", brokenErasures),
		conformance.Of("visits", brokenVisitStores),
		conformance.Of("bookings", brokenBookingBackends),
		conformance.Of("labs", brokenLabs), conformance.Of("labs", scriptedLabs),
		conformance.Of("messenger", brokenMessengers),
		conformance.Of("reviews", brokenReviewStores),
	)
}
