package healthdata_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/internal/eventlog"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
)

// TestUsers_overEncryptedRowsPassTheSuite runs the contract of Users on rows that are encrypted with keys of persons.
func TestUsers_overEncryptedRowsPassTheSuite(t *testing.T) {
	healthdatatest.RunUsersAlone(t, func(t testing.TB) healthdatatest.UsersAloneHarness {
		tables := append(healthdata.UserTables(), eventlog.Tables()...)
		engine, err := memstore.New(tables, nil)
		require.NoError(t, err)
		sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
		require.NoError(t, err)
		s := personkey.Encrypt(engine, personkey.New(memory.NewPersonKeys(), sealer, nil), tables)
		events := eventlog.New(s)
		return healthdatatest.UsersAloneHarness{Users: healthdata.NewUsers(s, &healthdata.UserOptions{Events: events}), Messages: events}
	})
}

// An erasure that was stopped after the key of the person was deleted is claimed when its lease is
// over, and ends.
func TestUsers_interruptedErasureCompletesAfterTheKeyIsDeleted(t *testing.T) {
	tables := append(healthdata.UserTables(), eventlog.Tables()...)
	clock := conformance.NewClock(time.Now())
	engine, err := memstore.New(tables, &memstore.Options{Now: clock.Now})
	require.NoError(t, err)
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	keys := personkey.New(memory.NewPersonKeys(), sealer, nil)
	s := personkey.Encrypt(engine, keys, tables)
	users := healthdata.NewUsers(s, nil)
	start := time.Now()
	ref := healthdata.UserRef{Team: conformance.Team("a"), User: conformance.User("ann")}
	require.NoError(t, users.Insert(t.Context(), healthdata.User{
		ID: ref.User, Team: ref.Team, ClientUserID: "ann", CreatedOn: healthlab.At(start),
	}, 0))
	_, err = users.Update(t.Context(), ref.Team, ref.User, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.DeletedAt = start
		return nil, nil
	})
	require.NoError(t, err)
	claim := func(want ...healthdata.UserRef) {
		t.Helper()
		got, err := users.ClaimErasures(t.Context(), start.Add(time.Hour), 10, time.Minute)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	claim(ref)
	require.NoError(t, keys.Delete(t.Context(), personkey.Ref{Team: ref.Team, User: ref.User}))
	claim()
	clock.Set(start.Add(2 * time.Minute))
	claim(ref)
	require.NoError(t, users.Erase(t.Context(), ref.Team, ref.User))
	clock.Set(start.Add(4 * time.Minute))
	claim()
	got, err := engine.Read(t.Context(), store.Query{Key: store.Key{User: ref.User}, By: store.ByUser})
	require.NoError(t, err)
	require.Empty(t, got[0])
}

func TestErase_completesForAUserWhoseKeyIsDeleted(t *testing.T) {
	tables := append(healthdata.UserTables(), personkey.Tables()...)
	engine, err := memstore.New(tables, nil)
	require.NoError(t, err)
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	keys := personkey.New(memory.NewPersonKeys(), sealer, nil)
	providers, err := healthdata.NewProviders(nil)
	require.NoError(t, err)
	down := true
	s, err := healthdata.New(healthdata.NewUsers(personkey.Encrypt(engine, keys, tables), nil), memory.New(nil).Data(), providers, &healthdata.Options{
		Environment: healthlab.Sandbox,
		Forget: []func(context.Context, healthlab.TeamID, healthlab.UserID) error{
			func(context.Context, healthlab.TeamID, healthlab.UserID) error {
				if down {
					return healthlab.Unavailable
				}
				return nil
			},
		},
	})
	require.NoError(t, err)
	u, err := s.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "ann"})
	require.NoError(t, err)
	require.NoError(t, keys.Delete(t.Context(), personkey.Ref{Team: team, User: u.ID}))
	for range 2 {
		require.ErrorIs(t, s.Deletions().Erase(t.Context(), team, u.ID), healthlab.Unavailable, "the files cannot be deleted")
	}
	down = false
	require.NoError(t, s.Deletions().Erase(t.Context(), team, u.ID))
	left, err := engine.Read(t.Context(), store.Query{Key: store.Key{User: u.ID}, By: store.ByUser})
	require.NoError(t, err)
	require.Empty(t, left[0])
}

// An erasure deletes what is kept of a user whom the host keeps elsewhere, and ends beside any number of
// rows under the same user id in another team, which stay.
func TestUsers_erasureOfAnExternalUserLeavesOtherTeams(t *testing.T) {
	notes := store.Table[store.Key]{Name: "note", Clear: true, Row: func(k *store.Key) store.Row { return store.Row{Key: *k} }, Encode: func(*store.Key) ([]byte, error) { return []byte{}, nil }}
	engine, err := memstore.New(append(healthdata.UserTables(), notes.Definition()), nil)
	require.NoError(t, err)
	team, other, user := conformance.Team("a"), conformance.Team("b"), conformance.User("ann")
	for _, of := range []healthlab.TeamID{team, other} {
		require.NoError(t, engine.Update(t.Context(), func(_ context.Context, tx store.Tx) error {
			if _, err := store.LockUser(tx, of, user); err != nil {
				return err
			}
			for i := range int64(2500) {
				if err := notes.Insert(tx, &store.Key{Team: of, User: user, ID: store.Int(i)}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	count := func(of healthlab.TeamID) int {
		rows, err := engine.Read(t.Context(), store.Query{Key: store.Key{Table: notes.Name, Team: of}, By: store.ByID})
		require.NoError(t, err)
		return len(rows[0])
	}
	require.ErrorIs(t, healthdata.NewUsers(engine, nil).Erase(t.Context(), other, user), healthlab.NotFound)
	users := healthdata.NewUsers(engine, &healthdata.UserOptions{UsersElsewhere: true})
	require.NoError(t, users.Erase(t.Context(), other, user))
	require.Equal(t, []int{2500, 0}, []int{count(team), count(other)})
	require.NoError(t, users.Erase(t.Context(), team, user))
	require.Zero(t, count(team))
	require.NoError(t, users.Erase(t.Context(), team, user), "nothing is left to erase")
}
