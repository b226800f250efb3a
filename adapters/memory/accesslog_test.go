package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/privacy/accesslog/accesslogtest"
)

func TestAccessLog_passesItsStoreSuite(t *testing.T) {
	accesslogtest.RunStore(t, newStore().AccessLog())
}
