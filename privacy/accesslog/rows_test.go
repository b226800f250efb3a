package accesslog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
	"github.com/healthlab-dev/healthlab/privacy/accesslog/accesslogtest"
)

func TestStore_overRowsPassesTheSuite(t *testing.T) {
	s, err := memstore.New(accesslog.Tables(), nil)
	require.NoError(t, err)
	accesslogtest.RunStore(t, accesslog.NewStore(s, nil))
}
