package healthdata_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/internal/eventlog"
	"github.com/healthlab-dev/healthlab/personkey"
	"github.com/healthlab-dev/healthlab/store"
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

// An erasure that was stopped after the key of the person was deleted is claimed when its lease is
// over, and ends.
func TestUsersOverRows_erasureWithoutKey(t *testing.T) {
	tables := append(healthdata.UserTables(), eventlog.Tables()...)
	clock := conformance.NewClock(time.Now())
	engine, err := memory.NewEngine(tables, &memory.EngineOptions{Now: clock.Now})
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
