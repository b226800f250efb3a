package postgres_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/webhook/webhooktest"
)

func TestEventBodies(t *testing.T) {
	t.Parallel()
	webhooktest.RunBodies(t, webhookStores(t))
}
