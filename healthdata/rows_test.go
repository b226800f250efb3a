package healthdata_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/eventlog"
	"github.com/healthlab-dev/healthlab/personkey"
	"github.com/healthlab-dev/healthlab/store"
)

// userRow is what these tests keep of a user.
type userRow struct {
	ID        healthlab.UserID
	Team      healthlab.TeamID
	Name      string
	CreatedOn healthlab.Time
	DeletedAt time.Time
}

var userRows = store.Table[userRow]{Name: store.UserTable, Row: func(u *userRow) store.Row {
	return store.Row{Key: store.UserKey(u.Team, u.ID), Index: store.UserIndex(u.ID, u.Name, u.CreatedOn.Time, u.DeletedAt)}
}}

// rowUsers is as much of Users as the suites of data call.
type rowUsers struct {
	healthdata.Users
	s store.Store
}

func (r rowUsers) Insert(ctx context.Context, u healthdata.User, _ int) error {
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		return userRows.Insert(tx, &userRow{ID: u.ID, Team: u.Team, Name: u.ClientUserID, CreatedOn: u.CreatedOn})
	})
}

func (r rowUsers) Update(ctx context.Context, team healthlab.TeamID, id healthlab.UserID,
	change func(*healthdata.User) ([]healthlab.Event, error),
) (u healthdata.User, err error) {
	return u, r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		row, err := userRows.Get(tx, store.UserKey(team, id), store.Held)
		if err != nil {
			return err
		}
		if _, err := change(&u); err != nil {
			return err
		}
		row.Value.DeletedAt = u.DeletedAt
		return userRows.Put(tx, row)
	})
}

// newRows returns a store in memory that encrypts, with the tables of data.
func newRows(t testing.TB, encryptSamples bool) store.Store {
	t.Helper()
	tables := append(healthdata.Tables(encryptSamples), userRows.Definition())
	tables = append(tables, eventlog.Tables()...)
	engine, err := memory.NewEngine(tables, nil)
	require.NoError(t, err)
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	return personkey.Encrypt(engine, personkey.New(memory.NewPersonKeys(), sealer, nil), tables)
}

func dataOfRows(s store.Store) healthdatatest.DataHarness {
	events := eventlog.New(s)
	return healthdatatest.DataHarness{
		Data: healthdata.NewData(s, &healthdata.DataOptions{Events: events}), Users: rowUsers{s: s}, Messages: events,
	}
}

func TestData_overRows(t *testing.T) {
	for name, encrypt := range map[string]bool{"clear": false, "encrypted": true} {
		newStore := func(t testing.TB) healthdatatest.DataHarness { return dataOfRows(newRows(t, encrypt)) }
		t.Run(name, func(t *testing.T) { healthdatatest.RunData(t, newStore) })
		t.Run(name+" model", func(t *testing.T) { healthdatatest.RunDataModel(t, newStore) })
	}
}
