package continuous_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/aggregatetest"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/eventlog"
	"github.com/healthlab-dev/healthlab/personkey"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/webhook"
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

// rowUsers is as much of Users as the suites call.
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

func (r rowUsers) Erase(ctx context.Context, _ healthlab.TeamID, id healthlab.UserID) error {
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		got, err := tx.Read(store.Query{Key: store.Key{User: id}, By: store.ByUser, Lock: store.Held})
		if err != nil {
			return err
		}
		for _, row := range got[0] {
			tx.Delete(row.Key)
		}
		return nil
	})
}

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
		continuous.Tables(), aggregate.Tables(), healthdata.Tables(true), eventlog.Tables(), {userRows.Definition()},
	} {
		tables = append(tables, list...)
	}
	engine, err := memory.NewEngine(tables, nil)
	require.NoError(t, err)
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	s := personkey.Encrypt(engine, personkey.New(memory.NewPersonKeys(), sealer, nil), tables)
	events := eventlog.New(s)
	c := continuous.NewStore(s, &continuous.StoreOptions{Events: events})
	return aggregatetest.ContinuousHarness{
		Store: c, Work: c, Data: healthdata.NewData(s, &healthdata.DataOptions{Events: events, Changes: c}), Users: rowUsers{s: s},
		Messages: messages{events: events},
	}, aggregate.NewPriorityStore(s, &aggregate.PriorityStoreOptions{Changed: c.Restart})
}

func TestContinuous_overRows(t *testing.T) {
	aggregatetest.RunContinuous(t, func(t testing.TB) aggregatetest.ContinuousHarness {
		h, _ := newRows(t)
		return h
	})
}

func TestPriorities_overRows(t *testing.T) {
	h, priorities := newRows(t)
	aggregatetest.RunPriorityStore(t, priorities, h)
}
