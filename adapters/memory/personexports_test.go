package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/privacy/personexport/personexporttest"
)

func TestPersonExports_passTheirStoreSuite(t *testing.T) {
	personexporttest.RunStore(t, func(testing.TB) personexporttest.StoreHarness {
		s, setClock := clockedStore()
		return personexporttest.StoreHarness{Exports: s.PersonExports(), Users: s.Users(), SetClock: setClock}
	})
}
