package postgres_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/internal/eventlog"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/webhook"
)

// rowStore is an empty, encrypted store with users, events and other tables.
type rowStore struct {
	store.Store
	log      eventlog.Log
	setClock func(time.Time) // nil unless the clock stands still
}

func newRowStore(t testing.TB, tables ...[]store.Definition) rowStore {
	t.Helper()
	s := rowsAt(t, nil, tables...)
	return rowStore{Store: s, log: eventlog.New(s)}
}

func stoppedRowStore(t testing.TB, tables ...[]store.Definition) rowStore {
	t.Helper()
	clock := conformance.NewClock(time.Now())
	s := rowsAt(t, clock.Now, tables...)
	return rowStore{s, eventlog.New(s), clock.Set}
}

func rowsAt(t testing.TB, now func() time.Time, tables ...[]store.Definition) store.Store {
	t.Helper()
	return rowsOn(t, pgtest.Pool(t), postgres.Options{Now: now}, tables...)
}

func restrictedRowStore(t testing.TB, tables ...[]store.Definition) rowStore {
	t.Helper()
	noCluster(t)
	s := rowsOn(t, poolWith(t, pgtest.URL(t), asRestricted), postgres.Options{RowSecurity: true}, tables...)
	return rowStore{Store: s, log: eventlog.New(s)}
}

func rowsOn(t testing.TB, pool *pgxpool.Pool, opts postgres.Options, tables ...[]store.Definition) store.Store {
	t.Helper()
	all := slices.Concat(append(tables, healthdata.UserTables(), eventlog.Tables())...)
	return personkey.Encrypt(openEngine(t, pool, all, opts), rowKeys(t), all)
}

// rowKeys returns keys of persons, kept in memory.
func rowKeys(t testing.TB) *personkey.Keys {
	t.Helper()
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	kept, err := memstore.New(personkey.Tables(), nil)
	require.NoError(t, err)
	return personkey.New(personkey.NewStore(kept), sealer, nil)
}

func (s rowStore) users(onErase ...healthdata.UserHook) healthdata.Users {
	return healthdata.NewUsers(s, &healthdata.UserOptions{Events: s.log, OnErase: onErase})
}

// loggedMessages shows events. It has no other method of webhook.Log.
type loggedMessages struct {
	webhook.Log
	events eventlog.Log
}

func (m loggedMessages) Message(ctx context.Context, team healthlab.TeamID, event uuid.UUID) (webhook.Message, error) {
	return m.events.Message(ctx, team, event)
}

func (s rowStore) messages() webhook.Log { return loggedMessages{events: s.log} }

// storesOn returns the stores of a service over a database of [pgtest.URL], with the outbox.
func storesOn(t testing.TB, pool *pgxpool.Pool, now func() time.Time, opts *stores.Options) *stores.Stores {
	t.Helper()
	all := stores.Options{}
	if opts != nil {
		all = *opts
	}
	all.Events = stores.Outbox
	return stores.New(openEngine(t, pool, stores.Tables(), postgres.Options{Now: now}), &all)
}
