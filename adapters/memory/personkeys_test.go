package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/personkey"
)

func TestPersonKeys(t *testing.T) {
	storetest.RunPersonKeys(t, func(testing.TB) personkey.Store { return memory.NewPersonKeys() })
}
