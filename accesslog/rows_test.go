package accesslog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/accesslog"
	"github.com/healthlab-dev/healthlab/accesslog/accesslogtest"
	"github.com/healthlab-dev/healthlab/adapters/memory"
)

func TestStoreOverRows(t *testing.T) {
	s, err := memory.NewEngine(accesslog.Tables(), nil)
	require.NoError(t, err)
	accesslogtest.RunStore(t, accesslog.NewStore(s, nil))
}
