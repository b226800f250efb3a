package healthdata_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/eventlog"
	"github.com/healthlab-dev/healthlab/personkey"
)

// TestUsersOverRows runs the contract of Users on rows that are encrypted with keys of persons.
func TestUsersOverRows(t *testing.T) {
	healthdatatest.RunUsersAlone(t, func(t testing.TB) healthdatatest.UsersAloneHarness {
		tables := append(healthdata.UserTables(), eventlog.Tables()...)
		engine, err := memory.NewEngine(tables, nil)
		require.NoError(t, err)
		sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
		require.NoError(t, err)
		s := personkey.Encrypt(engine, personkey.New(memory.NewPersonKeys(), sealer, nil), tables)
		events := eventlog.New(s)
		return healthdatatest.UsersAloneHarness{Users: healthdata.NewUsers(s, &healthdata.UserOptions{Events: events}), Messages: events}
	})
}
