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

func TestData(t *testing.T) { healthdatatest.RunData(t, newDataHarness) }

func TestDataModel(t *testing.T) { healthdatatest.RunDataModel(t, newDataHarness) }

func TestEncryptedSamples(t *testing.T) { healthdatatest.RunData(t, newEncryptedSamples) }

func TestEncryptedSamplesModel(t *testing.T) { healthdatatest.RunDataModel(t, newEncryptedSamples) }
