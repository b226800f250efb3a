package peopletest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

//go:generate go run ../../../internal/conformance/gen overriddenPersons=orders/people.Store

func TestBrokenStores_eachFailsTheSuite(t *testing.T) {
	conformance.RunBroken(t, brokenStores)
}
