package appointmenttest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

//go:generate go run ../../../internal/conformance/gen brokenCache=orders/appointment.SlotCache

func TestBrokenStores_eachFailsTheSuite(t *testing.T) {
	conformance.RunBroken(t,
		conformance.Of("slot cache", brokenSlotCaches),
		conformance.Of("centers", brokenCenterLists),
	)
}
