package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
)

func TestTeams(t *testing.T) { storetest.RunTeams(t, memory.New(nil).Teams()) }
