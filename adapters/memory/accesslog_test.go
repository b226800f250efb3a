package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/accesslog/accesslogtest"
)

func TestAccessLog(t *testing.T) { accesslogtest.RunStore(t, newStore().AccessLog()) }
