package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/labreport"
)

func TestParsingJobs(t *testing.T) {
	storetest.RunParsingJobs(t, func(testing.TB) storetest.ParsingJobsHarness {
		s := memory.New(nil)
		return storetest.ParsingJobsHarness{Jobs: s.ParsingJobs(), Messages: s.WebhookLog()}
	})
}

func TestParsingJobErasure(t *testing.T) {
	storetest.RunParsingJobErasure(t, func(testing.TB) storetest.ParsingJobErasureHarness {
		s := memory.New(nil)
		return storetest.ParsingJobErasureHarness{Users: s.Users(), Jobs: s.ParsingJobs()}
	})
}

func TestBlobs(t *testing.T) {
	storetest.RunBlobs(t, func(*testing.T) labreport.BlobStore { return memory.New(nil).Blobs() })
}
