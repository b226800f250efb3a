package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/labreport"
)

func TestParsingJobs(t *testing.T) {
	storetest.RunParsingJobs(t, func(*testing.T) labreport.Store { return memory.New(nil).ParsingJobs() })
}

func TestBlobs(t *testing.T) {
	storetest.RunBlobs(t, func(*testing.T) labreport.BlobStore { return memory.New(nil).Blobs() })
}
