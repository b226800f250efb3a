package healthdatatest

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

// RunUsers checks the contract of healthdata.Users. newStore returns a fresh, empty store and registers its own
// cleanup on t.
func RunUsers(t *testing.T, newStore func(t testing.TB) UsersHarness) {
	run := func(name string, test func(t usersT)) {
		t.Run(name, func(t *testing.T) { test(usersT{t, newStore(t)}) })
	}
	runUsers(run)
	run("Erase/Data", eraseData)
}

// runUsers runs the cases that need no health data.
func runUsers(run func(string, func(usersT))) {
	run("Insert/EveryField", insertEveryField)
	run("Insert/Canonical", insertCanonical)
	run("Insert/LongText", insertLongText)
	run("Insert/DuplicateID", insertDuplicateID)
	run("Insert/Refused", insertRefused)
	run("ClientUserID/Taken", clientUserIDTaken)
	run("ClientUserID/ByteForByte", clientUserIDByteForByte)
	run("ClientUserID/OfAnotherTeam", clientUserIDOfAnotherTeam)
	run("ClientUserID/OfADeletedUser", clientUserIDOfADeletedUser)
	run("ClientUserID/Race", clientUserIDRace)
	run("Limit/Reached", limitReached)
	run("Limit/Race", limitRace)
	run("Get/NotFound", getNotFound)
	run("Update/EveryField", updateEveryField)
	run("Update/FixedFields", updateFixedFields)
	run("Update/ErrorOfChange", updateErrorOfChange)
	run("Update/NoLostUpdates", updateNoLostUpdates)
	run("Update/NotFound", updateNotFound)
	run("Update/Refused", updateRefused)
	run("Update/ClientUserID", updateClientUserID)
	run("Update/Restore", updateRestore)
	run("Aliasing/Insert", aliasingInsert)
	run("Aliasing/Get", aliasingGet)
	run("Aliasing/Update", aliasingUpdate)
	run("Aliasing/List", aliasingList)
	run("Events/Written", eventsWritten)
	run("Events/Seq", eventsSeq)
	run("Events/AllOrNothing", eventsAllOrNothing)
	run("Context/Ended", contextEnded)
	runUserLists(run)
	runUserLives(run)
}

func insertEveryField(t usersT) {
	u := t.insert(person(conformance.NewTeam(), "ann"))
	require.Equal(t, u, t.get(u))
}

func insertCanonical(t usersT) {
	east := time.FixedZone("east", 5*3600+1800)
	u := LiveUser(conformance.NewTeam(), "ann")
	u.CreatedOn = healthlab.Time{Time: noon.Add(789 * time.Nanosecond).In(east)}
	u.FallbackTimeZone.UpdatedAt = u.CreatedOn
	u.FallbackBirthDate = &healthdata.FallbackBirthDate{
		Value: healthlab.Date{Year: 1980, Month: 3, Day: 13}, SourceSlug: "manual", UpdatedAt: u.CreatedOn,
	}
	u.ConnectedSources = []healthdata.ConnectedSource{{CreatedOn: noon}}
	u.Connections = []healthdata.Connection{
		{Provider: "c", Status: "connected", CreatedOn: u.CreatedOn.Time},
		{Provider: "a", Status: "connected", CreatedOn: u.CreatedOn.Time, Scopes: []string{}},
		{Provider: "b", Status: "connected", CreatedOn: noon.Add(-time.Hour)},
	}
	u.Revision = 7
	t.insert(u)
	u.CreatedOn, u.FallbackTimeZone.UpdatedAt, u.FallbackBirthDate.UpdatedAt = noon, noon, noon
	u.ConnectedSources, u.Revision = nil, 1
	u.Connections = []healthdata.Connection{
		{Provider: "b", Status: "connected", CreatedOn: noon.Add(-time.Hour)},
		{Provider: "a", Status: "connected", CreatedOn: noon.Time},
		{Provider: "c", Status: "connected", CreatedOn: noon.Time},
	}
	require.Equal(t, u, t.get(u))

	none := LiveUser(u.Team, "bob")
	none.Connections = []healthdata.Connection{}
	t.insert(none)
	require.Nil(t, t.get(none).Connections, "no connections are nil")
}

func insertLongText(t usersT) {
	u := person(conformance.NewTeam(), strings.Repeat("🦊", 256))
	u.Connections[0].ExternalUserID = new(strings.Repeat("x", 10_000))
	t.insert(u)
	require.Equal(t, u, t.get(u))
	require.Equal(t, []string{u.ClientUserID}, t.names(healthdata.UserQuery{Team: u.Team, ClientUserID: u.ClientUserID}))
}

func insertDuplicateID(t usersT) {
	u := t.add(conformance.NewTeam(), "ann")
	for _, team := range []healthlab.TeamID{u.Team, conformance.NewTeam()} {
		again := LiveUser(team, "bob")
		again.ID = u.ID
		require.ErrorIs(t, t.Users.Insert(t.Context(), again, 0), healthlab.Conflict)
		require.Empty(t, t.names(healthdata.UserQuery{Team: team, ClientUserID: "bob"}))
	}
	require.Equal(t, u, t.get(u))
}

// refusals are changes that make a user invalid for every store, by the reason.
var refusals = map[string]func(*healthdata.User){
	"NUL in the client user id": func(u *healthdata.User) { u.ClientUserID = "a\x00b" },
	"NUL in the zone":           func(u *healthdata.User) { u.FallbackTimeZone.ID = "U\x00TC" },
	"NUL in the zone's source":  func(u *healthdata.User) { u.FallbackTimeZone.SourceSlug = "\x00" },
	"NUL in the date's source":  func(u *healthdata.User) { u.FallbackBirthDate.SourceSlug = "\x00" },
	"NUL in a provider":         func(u *healthdata.User) { u.Connections[0].Provider = "\x00" },
	"NUL in a status":           func(u *healthdata.User) { u.Connections[0].Status = "\x00" },
	"NUL in an external id":     func(u *healthdata.User) { u.Connections[0].ExternalUserID = new("\x00") },
	"NUL in a scope":            func(u *healthdata.User) { u.Connections[0].Scopes[1] = "\x00" },
	"not UTF-8":                 func(u *healthdata.User) { u.ClientUserID = "a\xff" },
	"one provider twice":        func(u *healthdata.User) { u.Connections[1].Provider = u.Connections[0].Provider },
}

func insertRefused(t usersT) {
	all := maps.Clone(refusals)
	all["no id"] = func(u *healthdata.User) { u.ID = healthlab.UserID{} }
	all["no team"] = func(u *healthdata.User) { u.Team = healthlab.TeamID{} }
	all["deleted"] = func(u *healthdata.User) { u.DeletedAt = noon.Time }
	for what, spoil := range conformance.Sorted(all) {
		t.Run(what, func(sub *testing.T) {
			t := t.on(sub)
			u := person(conformance.NewTeam(), "ann")
			spoil(&u)
			require.ErrorIs(t, t.Users.Insert(t.Context(), u, 0), healthlab.Invalid)
			require.Zero(t, t.list(healthdata.UserQuery{Team: u.Team}).Total)
		})
	}
}

// helper has the methods that testing.T and rapid.T share.
type helper interface {
	require.TestingT
	Helper()
}

// requireTaken requires that err is the ClientUserIDError that names the user by.
func requireTaken(t helper, by healthdata.User, err error) {
	t.Helper()
	var taken *healthdata.ClientUserIDError
	require.ErrorAs(t, err, &taken)
	require.Equal(t, healthdata.ClientUserIDError{User: by.ID, CreatedOn: by.CreatedOn}, *taken)
	require.ErrorIs(t, err, healthlab.Conflict)
}

func clientUserIDTaken(t usersT) {
	u := t.add(conformance.NewTeam(), "ann")
	other := LiveUser(u.Team, "ann")
	requireTaken(t, u, t.Users.Insert(t.Context(), other, 0))
	require.Equal(t, 1, t.list(healthdata.UserQuery{Team: u.Team}).Total)
	requireTaken(t, u, t.Users.Insert(t.Context(), other, 1)) // a taken id is reported before the limit
}

func clientUserIDByteForByte(t usersT) {
	team := conformance.NewTeam()
	all := []string{"ann", "Ann", "ánn", "a\u0301nn", "ann ", "ann\u200b", "ａnn", "a%", "a_", `a\`, "'", "1", "01"}
	for _, name := range all {
		t.add(team, name)
	}
	for _, name := range all {
		require.Equal(t, []string{name}, t.names(healthdata.UserQuery{Team: team, ClientUserID: name}))
	}
}

func clientUserIDOfAnotherTeam(t usersT) {
	a, b := t.add(conformance.NewTeam(), "ann"), t.add(conformance.NewTeam(), "ann")
	require.Equal(t, a, t.get(a))
	require.Equal(t, b, t.get(b))
}

func clientUserIDOfADeletedUser(t usersT) {
	old := t.add(conformance.NewTeam(), "ann")
	t.remove(old, noon.Time)
	fresh := t.add(old.Team, "ann")
	page := t.list(healthdata.UserQuery{Team: old.Team, ClientUserID: "ann"})
	require.Equal(t, []healthdata.User{fresh}, page.Users)
	requireTaken(t, fresh, t.Users.Insert(t.Context(), LiveUser(old.Team, "ann"), 0))
}

func clientUserIDRace(t usersT) {
	team := conformance.NewTeam()
	errs := conformance.Together(16, func(int) error { return t.Users.Insert(t.Context(), LiveUser(team, "ann"), 0) })
	page := t.list(healthdata.UserQuery{Team: team})
	require.Equal(t, 1, page.Total)
	for _, err := range errs {
		if err != nil && !errors.Is(err, healthlab.Unavailable) {
			requireTaken(t, page.Users[0], err)
		}
	}
}

func limitReached(t usersT) {
	team := conformance.NewTeam()
	for _, name := range []string{"ann", "bob"} {
		require.NoError(t, t.Users.Insert(t.Context(), LiveUser(team, name), 2))
	}
	carl := LiveUser(team, "carl")
	require.ErrorIs(t, t.Users.Insert(t.Context(), carl, 2), healthlab.Exhausted)
	require.Equal(t, []string{"ann", "bob"}, sorted(t.names(healthdata.UserQuery{Team: team})))

	require.NoError(t, t.Users.Insert(t.Context(), LiveUser(conformance.NewTeam(), "carl"), 2), "another team's users do not count")
	t.remove(t.list(healthdata.UserQuery{Team: team}).Users[0], noon.Time)
	require.NoError(t, t.Users.Insert(t.Context(), carl, 2), "deleted users do not count")
	require.NoError(t, t.Users.Insert(t.Context(), LiveUser(team, "dora"), 0), "zero is no limit")
}

func limitRace(t usersT) {
	team := conformance.NewTeam()
	errs := conformance.Together(16, func(i int) error {
		return t.Users.Insert(t.Context(), LiveUser(team, string(rune('a'+i))), 5)
	})
	added := 0
	for _, err := range errs {
		switch {
		case err == nil:
			added++
		case !errors.Is(err, healthlab.Unavailable):
			require.ErrorIs(t, err, healthlab.Exhausted)
		}
	}
	require.LessOrEqual(t, added, 5)
	require.Equal(t, added, t.list(healthdata.UserQuery{Team: team}).Total)
}

func getNotFound(t usersT) {
	u := t.add(conformance.NewTeam(), "ann")
	for what, ref := range conformance.Sorted(map[string]healthdata.UserRef{
		"another user": {Team: u.Team, User: conformance.NewUser()},
		"another team": {Team: conformance.NewTeam(), User: u.ID},
	}) {
		t.Run(what, func(sub *testing.T) {
			t := t.on(sub)
			_, err := t.Users.Get(t.Context(), ref.Team, ref.User)
			require.ErrorIs(t, err, healthlab.NotFound)
		})
	}
}

func updateEveryField(t usersT) {
	u := t.add(conformance.NewTeam(), "ann")
	want := person(u.Team, "bob")
	want.ID, want.DeletedAt, want.Revision = u.ID, noon.Add(time.Hour), 2
	set := func(to *healthdata.User) { *to = want }
	require.Equal(t, want, t.update(u, set))
	require.Equal(t, want, t.get(u))

	back := LiveUser(u.Team, "ann")
	back.ID, back.Revision = u.ID, 3
	require.Equal(t, back, t.update(u, func(to *healthdata.User) { *to = back }))
	require.Equal(t, back, t.get(u))
}

func updateFixedFields(t usersT) {
	u := t.add(conformance.NewTeam(), "ann")
	got := t.update(u, func(u *healthdata.User) {
		u.ID, u.Team, u.CreatedOn, u.Revision = conformance.NewUser(), conformance.NewTeam(), healthlab.At(noon.Add(time.Hour)), 99
		u.ConnectedSources = []healthdata.ConnectedSource{{CreatedOn: noon}}
	})
	u.Revision = 2
	require.Equal(t, u, got)
	require.Equal(t, u, t.get(u))
}

func updateErrorOfChange(t usersT) {
	u := t.insert(person(conformance.NewTeam(), "ann"))
	e := Event(u, "k", 1)
	_, err := t.Users.Update(t.Context(), u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.ClientUserID, u.FallbackBirthDate.SourceSlug = "bob", "other"
		return []healthlab.Event{e}, conformance.ErrRefused
	})
	require.ErrorIs(t, err, conformance.ErrRefused)
	require.Equal(t, u, t.get(u))
	t.unwritten(e)
}

func updateNoLostUpdates(t usersT) {
	u := t.add(conformance.NewTeam(), "ann")
	const n = 16
	for _, err := range conformance.Together(n, func(i int) error {
		_, err := t.Users.Update(t.Context(), u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
			u.Connections = append(u.Connections, healthdata.Connection{
				Provider: string(rune('a' + i)), Status: healthdata.Connected, CreatedOn: noon.Time,
			})
			return []healthlab.Event{Event(*u, "k", i)}, nil
		})
		return err
	}) {
		require.NoError(t, err)
	}
	got := t.get(u)
	require.Len(t, got.Connections, n)
	require.EqualValues(t, 1+n, got.Revision)
}

func updateNotFound(t usersT) {
	u := t.add(conformance.NewTeam(), "ann")
	for what, ref := range conformance.Sorted(map[string]healthdata.UserRef{
		"another user": {Team: u.Team, User: conformance.NewUser()},
		"another team": {Team: conformance.NewTeam(), User: u.ID},
	}) {
		t.Run(what, func(sub *testing.T) {
			t := t.on(sub)
			_, err := t.Users.Update(t.Context(), ref.Team, ref.User, func(u *healthdata.User) ([]healthlab.Event, error) {
				u.ClientUserID = "bob"
				return nil, nil
			})
			require.ErrorIs(t, err, healthlab.NotFound)
		})
	}
	require.Equal(t, u, t.get(u))
}

func updateRefused(t usersT) {
	u := t.insert(person(conformance.NewTeam(), "ann"))
	for what, spoil := range conformance.Sorted(refusals) {
		t.Run(what, func(sub *testing.T) {
			t := t.on(sub)
			_, err := t.tryUpdate(u, spoil)
			require.ErrorIs(t, err, healthlab.Invalid)
		})
	}
	require.Equal(t, u, t.get(u))
}

func updateClientUserID(t usersT) {
	team := conformance.NewTeam()
	ann, bob := t.add(team, "ann"), t.add(team, "bob")
	rename := func(to string) func(*healthdata.User) {
		return func(u *healthdata.User) { u.ClientUserID = to }
	}
	_, err := t.tryUpdate(ann, rename("bob"))
	requireTaken(t, bob, err)
	require.Equal(t, ann, t.get(ann))

	t.update(ann, rename("ann")) // the user's own id is not taken
	t.update(ann, rename("carl"))
	requireTaken(t, ann, t.Users.Insert(t.Context(), LiveUser(team, "carl"), 0))
	t.update(bob, rename("ann")) // the id is free again
}

func updateRestore(t usersT) {
	old := t.add(conformance.NewTeam(), "ann")
	t.remove(old, noon.Time)
	fresh := t.add(old.Team, "ann")
	restore := func(u *healthdata.User) { u.DeletedAt = time.Time{} }

	t.update(old, func(u *healthdata.User) { u.FallbackTimeZone.ID = "Asia/Tokyo" }) // the user is still deleted
	_, err := t.tryUpdate(old, restore)
	requireTaken(t, fresh, err)
	require.False(t, t.get(old).DeletedAt.IsZero())

	t.remove(fresh, noon.Time)
	got := t.update(old, restore)
	require.True(t, got.Live())
	require.Equal(t, []healthdata.User{got}, t.list(healthdata.UserQuery{Team: old.Team}).Users)
	_, err = t.tryUpdate(fresh, restore)
	requireTaken(t, got, err)
}

// overwriteFields overwrites values that a user points to: in the birth date, the ingestion days and the connections.
func overwriteFields(u *healthdata.User) {
	u.FallbackBirthDate.SourceSlug = "scribbled"
	*u.IngestionStart, *u.IngestionEnd = healthlab.Date{}, healthlab.Date{}
	*u.Connections[0].ExternalUserID = "scribbled"
	u.Connections[0].Scopes[0] = "scribbled"
	u.Connections[1].Provider = "scribbled"
}

func (t usersT) unscribbled(u healthdata.User, revision int64) {
	t.Helper()
	want := person(u.Team, u.ClientUserID)
	want.ID, want.Revision = u.ID, revision
	require.Equal(t, want, t.get(u))
}

func aliasingInsert(t usersT) {
	u := t.insert(person(conformance.NewTeam(), "ann"))
	overwriteFields(&u)
	t.unscribbled(u, 1)
}

func aliasingGet(t usersT) {
	u := t.get(t.insert(person(conformance.NewTeam(), "ann")))
	overwriteFields(&u)
	t.unscribbled(u, 1)
}

func aliasingUpdate(t usersT) {
	u := t.insert(person(conformance.NewTeam(), "ann"))
	var kept *healthdata.User
	got := t.update(u, func(u *healthdata.User) { kept = u })
	overwriteFields(&got)
	t.unscribbled(u, 2)
	overwriteFields(kept)
	t.unscribbled(u, 2)
	_, err := t.Users.Update(t.Context(), u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
		overwriteFields(u)
		return nil, conformance.ErrRefused
	})
	require.ErrorIs(t, err, conformance.ErrRefused)
	t.unscribbled(u, 2)
}

func aliasingList(t usersT) {
	u := t.insert(person(conformance.NewTeam(), "ann"))
	page := t.list(healthdata.UserQuery{Team: u.Team})
	overwriteFields(&page.Users[0])
	t.unscribbled(u, 1)
}

func eventsWritten(t usersT) {
	u := t.add(conformance.NewTeam(), "ann")
	e := Event(u, "k", 1)
	e.At = noon.Add(999 * time.Nanosecond).In(time.FixedZone("west", -3600))
	_, err := t.Users.Update(t.Context(), u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.ClientUserID = "bob"
		return []healthlab.Event{e}, nil
	})
	require.NoError(t, err)
	m := t.written(e)
	require.Equal(t, e.Type, m.Type)
	require.Equal(t, u.ID, m.User)
	require.Equal(t, "k", m.Key)
	require.Equal(t, noon.Time, m.At)
	require.Contains(t, string(m.Body), `"data":{"n":1}`)
	require.Contains(t, string(m.Body), `"client_user_id":"bob"`, "the envelope names the user as it is now")

	_, err = t.Messages.Message(t.Context(), conformance.NewTeam(), e.ID)
	require.ErrorIs(t, err, healthlab.NotFound, "another team's event")
}

func eventsSeq(t usersT) {
	a, b := t.add(conformance.NewTeam(), "ann"), t.add(conformance.NewTeam(), "ann")
	write := func(u healthdata.User, keys ...string) (seqs []int64) {
		var events []healthlab.Event
		for i, k := range keys {
			events = append(events, Event(u, k, i))
		}
		_, err := t.Users.Update(t.Context(), u.Team, u.ID, func(*healthdata.User) ([]healthlab.Event, error) {
			return events, nil
		})
		require.NoError(t, err)
		for _, e := range events {
			seqs = append(seqs, t.written(e).Seq)
		}
		return seqs
	}
	require.Equal(t, []int64{1, 2, 1}, write(a, "k", "k", "l"))
	require.Equal(t, []int64{3, 2}, write(a, "k", "l"))
	require.Equal(t, []int64{1}, write(b, "k"), "keys belong to a team")
}

func eventsAllOrNothing(t usersT) {
	u := t.add(conformance.NewTeam(), "ann")
	first, second := Event(u, "k", 1), Event(u, "k", 2)
	write := func(name string, events ...healthlab.Event) error {
		_, err := t.Users.Update(t.Context(), u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
			u.ClientUserID = name
			return events, nil
		})
		return err
	}
	require.NoError(t, write("bob", first))
	require.ErrorIs(t, write("carl", second, first), healthlab.Conflict, "an id is written once")
	t.unwritten(second)
	got := t.get(u)
	require.Equal(t, "bob", got.ClientUserID)
	require.EqualValues(t, 2, got.Revision)
	require.NoError(t, write("bob", second))
	require.EqualValues(t, 2, t.written(second).Seq, "what was not written took no number")
	t.add(u.Team, "carl") // no user has that client user id
}

func contextEnded(t usersT) {
	u := t.add(conformance.NewTeam(), "ann")
	gone := t.remove(t.add(u.Team, "bob"), noon.Time)
	ctx := conformance.Ended(t.T)
	for what, call := range conformance.Sorted(map[string]func() error{
		"Insert": func() error { return t.Users.Insert(ctx, LiveUser(u.Team, "carl"), 0) },
		"Get": func() error {
			_, err := t.Users.Get(ctx, u.Team, u.ID)
			return err
		},
		"Update": func() error {
			_, err := t.Users.Update(ctx, u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
				u.ClientUserID = "dora"
				return nil, nil
			})
			return err
		},
		"List": func() error {
			_, err := t.Users.List(ctx, healthdata.UserQuery{Team: u.Team})
			return err
		},
		"Metrics": func() error {
			_, err := t.Users.Metrics(ctx, u.Team)
			return err
		},
		"ClaimErasures": func() error {
			_, err := t.Users.ClaimErasures(ctx, noon.Time, 1, time.Hour)
			return err
		},
		"Erase": func() error { return t.Users.Erase(ctx, gone.Team, gone.ID) },
	}) {
		t.Run(what, func(sub *testing.T) {
			require.ErrorIs(sub, call(), context.Canceled)
		})
	}
	require.Equal(t, []string{"ann"}, t.names(healthdata.UserQuery{Team: u.Team}))
	require.Equal(t, gone, t.get(gone))
	refs, err := t.Users.ClaimErasures(t.Context(), noon.Time, 1, time.Hour)
	require.NoError(t, err)
	require.Len(t, refs, 1, "the ended claim leased nothing")
}
