package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
)

func newDataHarness(testing.TB) healthdatatest.DataHarness {
	s := newStore()
	return healthdatatest.DataHarness{Data: s.Data(), Users: s.Users(), Messages: s.WebhookLog()}
}

func TestData(t *testing.T) { healthdatatest.RunData(t, newDataHarness) }

func TestDataModel(t *testing.T) { healthdatatest.RunDataModel(t, newDataHarness) }
