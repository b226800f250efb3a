package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
)

func TestAccessLog(t *testing.T) { storetest.RunAccessLog(t, memory.New(nil).AccessLog()) }
