package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
)

func dataOf(s *memory.Store) healthdatatest.DataHarness {
	return healthdatatest.DataHarness{Data: s.Data(), Users: s.Users(), Messages: s.WebhookLog()}
}

func newDataHarness(testing.TB) healthdatatest.DataHarness { return dataOf(newStore()) }

func newEncryptedSamples(testing.TB) healthdatatest.DataHarness { return dataOf(newSampleStore()) }

func TestData_passesItsStoreSuite(t *testing.T) { healthdatatest.RunData(t, newDataHarness) }

func TestData_passesItsModelTest(t *testing.T) { healthdatatest.RunDataModel(t, newDataHarness) }

func TestEncryptedSamples_passTheDataSuite(t *testing.T) {
	healthdatatest.RunData(t, newEncryptedSamples)
}

func TestEncryptedSamples_passTheDataModelTest(t *testing.T) {
	healthdatatest.RunDataModel(t, newEncryptedSamples)
}
