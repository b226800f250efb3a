package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
)

func newDataHarness(testing.TB) storetest.DataHarness {
	s := memory.New(nil)
	return storetest.DataHarness{Data: s.Data(), Users: s.Users(), Messages: s.WebhookLog()}
}

func TestData(t *testing.T) { storetest.RunData(t, newDataHarness) }

func TestDataModel(t *testing.T) { storetest.RunDataModel(t, newDataHarness) }
