package pull_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
)

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

func sealer(t *testing.T) healthlab.Sealer {
	t.Helper()
	s, err := healthlab.NewAESSealer("k", map[string][]byte{"k": make([]byte, 32)})
	require.NoError(t, err)
	return s
}
