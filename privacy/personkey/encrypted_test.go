package personkey_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
)

type account struct {
	Team healthlab.TeamID
	User healthlab.UserID
	Name string
}

func TestEncrypt_hidesDocumentsAndSecretIndexValues(t *testing.T) {
	accounts := store.Table[account]{Name: "account", Unique: [2]bool{true}, Secret: [2]bool{true}, Row: func(a *account) store.Row {
		return store.Row{
			Key:   store.Key{Team: a.Team, User: a.User, ID: store.UUID(a.User.UUID)},
			Index: [2]string{a.Name, "all" + store.UUID(a.User.UUID)},
		}
	}}
	users := store.Definition{Name: store.UserTable}
	tables := []store.Definition{accounts.Definition(), users}
	engine, err := memstore.New(tables, nil)
	require.NoError(t, err)
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	keys := personkey.New(memory.NewPersonKeys(), sealer, nil)
	s := personkey.Encrypt(engine, keys, tables)
	team := healthlab.TeamID{UUID: uuid.New()}
	ctx := t.Context()

	runs := 0
	var people []healthlab.UserID
	for range 5 {
		user := healthlab.UserID{UUID: uuid.New()}
		people = append(people, user)
		require.NoError(t, s.Update(ctx, func(_ context.Context, tx store.Tx) error {
			runs++
			if _, err := store.LockUser(tx, team, user); err != nil {
				return err
			}
			return accounts.Insert(tx, &account{team, user, "planted " + user.String()})
		}))
	}
	require.Equal(t, 11, runs, "a run is repeated for the key of a new person, and once for the team's")

	byName := store.Query{Key: store.Key{Team: team}, By: store.ByFirst}
	got, err := accounts.Look(ctx, s, byName.Equal("planted "+people[2].String()))
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, people[2], got[0].Value.User)
	_, err = accounts.Look(ctx, s, byName)
	require.Error(t, err, "a secret value has no order")

	raw, err := engine.Read(ctx, store.Query{Key: store.Key{Team: team, Table: "account"}, By: store.ByID})
	require.NoError(t, err)
	for _, r := range raw[0] {
		require.NotContains(t, string(r.Doc)+r.Index[0], "planted")
	}

	// A person whose key is gone is left out, and the page is full all the same.
	require.NoError(t, keys.Delete(ctx, personkey.Ref{Team: team, User: people[1]}))
	got, err = accounts.Look(ctx, s, store.Query{Key: store.Key{Team: team}, By: store.ByID, Limit: 4})
	require.NoError(t, err)
	require.Len(t, got, 4)
	require.ErrorIs(t, s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		_, err := accounts.Get(tx, store.Key{Team: team, ID: store.UUID(people[1].UUID)}, store.Held)
		if err != nil {
			return err
		}
		if _, err := store.LockUser(tx, team, people[1]); err != nil {
			return err
		}
		return accounts.Insert(tx, &account{team, people[1], "again"})
	}), personkey.ErrErased)
}

// An Update that asks for another new key in each run ends.
func TestEncrypt_updateThatAlwaysNeedsNewKeysIsUnavailable(t *testing.T) {
	users := store.Definition{Name: store.UserTable}
	notes := store.Table[account]{Name: "account", Row: func(a *account) store.Row {
		return store.Row{Key: store.Key{Team: a.Team, ID: store.UUID(a.Team.UUID)}}
	}}
	tables := []store.Definition{notes.Definition(), users}
	engine, err := memstore.New(tables, nil)
	require.NoError(t, err)
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	s := personkey.Encrypt(engine, personkey.New(memory.NewPersonKeys(), sealer, nil), tables)
	require.ErrorIs(t, s.Update(t.Context(), func(_ context.Context, tx store.Tx) error {
		return notes.Insert(tx, &account{Team: healthlab.TeamID{UUID: uuid.New()}})
	}), healthlab.Unavailable)
}
