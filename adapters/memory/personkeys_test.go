package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/personkey"
	"github.com/healthlab-dev/healthlab/personkey/personkeytest"
)

func TestPersonKeys(t *testing.T) {
	personkeytest.RunStore(t, func(testing.TB) personkey.Store { return memory.NewPersonKeys() })
}
