package cataloguetest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

//go:generate go run ../../../internal/conformance/gen overriddenLabTests=orders/catalogue.LabTestStore

func TestBrokenStores_eachFailsTheSuite(t *testing.T) {
	conformance.RunBroken(t, brokenLabTestStores)
}
