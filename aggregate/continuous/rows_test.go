package continuous_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/aggregatetest"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/eventlog"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/webhook"
)

// messages is as much of a log as the suites call.
type messages struct {
	webhook.Log
	events eventlog.Log
}

func (m messages) Message(ctx context.Context, team healthlab.TeamID, event uuid.UUID) (webhook.Message, error) {
	return m.events.Message(ctx, team, event)
}

// newRows returns stores over rows in memory that are encrypted.
func newRows(t testing.TB) (aggregatetest.ContinuousHarness, aggregate.PriorityStore) {
	t.Helper()
	var tables []store.Definition
	for _, list := range [][]store.Definition{
		continuous.Tables(), aggregate.Tables(), healthdata.DataTables(true), healthdata.UserTables(), eventlog.Tables(),
	} {
		tables = append(tables, list...)
	}
	engine, err := memstore.New(tables, nil)
	require.NoError(t, err)
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	s := personkey.Encrypt(engine, personkey.New(memory.NewPersonKeys(), sealer, nil), tables)
	events := eventlog.New(s)
	c := continuous.NewStore(s, &continuous.StoreOptions{Events: events})
	return aggregatetest.ContinuousHarness{
		Store: c, Work: c, Data: healthdata.NewData(s, &healthdata.DataOptions{Events: events, Changes: c}),
		Users: healthdata.NewUsers(s, &healthdata.UserOptions{Events: events}), Messages: messages{events: events},
	}, aggregate.NewPriorityStore(s, &aggregate.PriorityStoreOptions{Changed: c.Restart})
}

func TestStore_overRowsPassesTheSuite(t *testing.T) {
	aggregatetest.RunContinuous(t, func(t testing.TB) aggregatetest.ContinuousHarness {
		h, _ := newRows(t)
		return h
	})
}

func TestPriorityStore_overRowsPassesTheSuite(t *testing.T) {
	h, priorities := newRows(t)
	aggregatetest.RunPriorityStore(t, priorities, h)
}
