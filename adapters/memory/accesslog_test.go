package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/accesslog/accesslogtest"
	"github.com/healthlab-dev/healthlab/adapters/memory"
)

func TestAccessLog(t *testing.T) { accesslogtest.RunStore(t, memory.New(nil).AccessLog()) }
