package organisationtest

import (
	"context"
	"crypto/sha256"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking"
)

// StoreHarness is a store for the suite of organisations.
type StoreHarness struct {
	// Organisations is the tested interface.
	Organisations organisation.Store
	// Users, Choices and Clients are other interfaces of the same store with data of teams.
	Users   healthdata.Users
	Choices teamsettings.Store
	Clients linking.TeamClients
}

// RunStore checks the contract of [organisation.Store]. All cases share one store, and each has its own
// organisations.
func RunStore(t *testing.T, h StoreHarness) {
	for name, run := range conformance.Sorted(organisationCases) {
		t.Run(name, func(t *testing.T) { run(orgT{t, h}) })
	}
}

// orgT is one subtest.
type orgT struct {
	*testing.T
	StoreHarness
}

func orgTeamOf(org uuid.UUID, name string) organisation.Team {
	return organisation.Team{
		ID: conformance.NewTeam(), Org: org, Name: name, IntegrationID: "crm räv " + name, CreatedAt: noon, UpdatedAt: noon.Add(time.Minute),
	}
}

func (t orgT) add(team organisation.Team) organisation.Team {
	t.Helper()
	require.NoError(t, t.Organisations.InsertTeam(t.Context(), team))
	return team
}

func (t orgT) teams(q organisation.Query) []organisation.Team {
	t.Helper()
	list, err := t.Organisations.Teams(t.Context(), q)
	require.NoError(t, err)
	return list
}

func (t orgT) requireTeam(want organisation.Team) {
	t.Helper()
	got, err := t.Organisations.Team(t.Context(), want.ID)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func (t orgT) update(team organisation.Team, change func(*organisation.Team)) (organisation.Team, error) {
	return t.Organisations.UpdateTeam(t.Context(), team.Org, team.ID, func(x *organisation.Team) error {
		change(x)
		return nil
	})
}

// requireTaken requires that err is the IntegrationTakenError that names the team by.
func (t orgT) requireTaken(err error, by organisation.Team) {
	t.Helper()
	var taken *organisation.IntegrationTakenError
	require.ErrorAs(t, err, &taken)
	require.Equal(t, by.ID, taken.Team)
	require.ErrorIs(t, err, healthlab.Conflict)
}

// orgKey returns a key without a zero field.
func orgKey(team organisation.Team, n byte) organisation.Key {
	id := uuid.New()
	sum := [32]byte{n, 31: 255}
	copy(sum[1:], id[:])
	return organisation.Key{
		ID: id, Team: team.ID, Label: "räv", Hint: "sk_us_…1234", Sum: sum, Scopes: organisation.Scopes{organisation.DataRead, organisation.LinkWrite},
		CreatedAt: noon.Add(time.Duration(n) * time.Second), ExpiresAt: noon.Add(time.Hour), LastUsedAt: noon.Add(time.Minute),
	}
}

func (t orgT) addKey(k organisation.Key) organisation.Key {
	t.Helper()
	require.NoError(t, t.Organisations.InsertKey(t.Context(), k, 10))
	return k
}

func (t orgT) keys(team organisation.Team) []organisation.Key {
	t.Helper()
	list, err := t.Organisations.Keys(t.Context(), team.ID)
	require.NoError(t, err)
	return list
}

func (t orgT) delete(team organisation.Team) error {
	return t.Organisations.DeleteTeam(t.Context(), team.Org, team.ID)
}

var organisationCases = map[string]func(t orgT){
	"RoundTrip": func(t orgT) {
		want := orgTeamOf(uuid.New(), "Riverside")
		given := want
		given.CreatedAt = want.CreatedAt.In(time.FixedZone("x", 3600)).Add(123 * time.Nanosecond)
		t.add(given)
		t.requireTeam(want)
		require.Equal(t, []organisation.Team{want}, t.teams(organisation.Query{Org: want.Org, N: 10}))
		bare := t.add(organisation.Team{ID: conformance.NewTeam(), Org: uuid.New(), Name: "A", CreatedAt: noon, UpdatedAt: noon})
		t.requireTeam(bare)
		got, err := t.update(want, func(x *organisation.Team) {
			*x = organisation.Team{Name: "B", UpdatedAt: noon.Add(time.Hour + time.Nanosecond)}
		})
		require.NoError(t, err)
		want.Name, want.IntegrationID, want.UpdatedAt = "B", "", noon.Add(time.Hour)
		require.Equal(t, want, got)
		t.requireTeam(want)
	},
	"List": func(t orgT) {
		org := uuid.New()
		var all []organisation.Team
		for _, name := range []string{"a", "b", "c", "d"} {
			all = append(all, t.add(orgTeamOf(org, name)))
		}
		t.add(orgTeamOf(uuid.New(), "a"))
		require.NoError(t, t.delete(all[3]))
		all = all[:3]
		slices.SortFunc(all, func(a, b organisation.Team) int { return slices.Compare(a.ID.UUID[:], b.ID.UUID[:]) })
		require.Equal(t, all, t.teams(organisation.Query{Org: org, N: 10}))
		require.Equal(t, all[:2], t.teams(organisation.Query{Org: org, N: 2}))
		require.Equal(t, all[2:], t.teams(organisation.Query{Org: org, N: 2, After: all[1].ID}))
		require.Empty(t, t.teams(organisation.Query{Org: org}))
		require.Equal(t, all[1:2], t.teams(organisation.Query{Org: org, N: 10, IntegrationID: all[1].IntegrationID}))
		require.Empty(t, t.teams(organisation.Query{Org: uuid.New(), N: 10, IntegrationID: all[1].IntegrationID}))
	},
	"IntegrationIDs": func(t orgT) {
		org := uuid.New()
		one := t.add(orgTeamOf(org, "one"))
		two := orgTeamOf(org, "two")
		two.IntegrationID = one.IntegrationID
		t.requireTaken(t.Organisations.InsertTeam(t.Context(), two), one)
		elsewhere := two
		elsewhere.Org = uuid.New()
		t.add(elsewhere)
		two = t.add(orgTeamOf(org, "two"))
		_, err := t.update(two, func(x *organisation.Team) { x.IntegrationID = one.IntegrationID })
		t.requireTaken(err, one)
		t.requireTeam(two)
		_, err = t.update(one, func(x *organisation.Team) { x.Name = "its own" })
		require.NoError(t, err)
		none, err := t.update(one, func(x *organisation.Team) { x.IntegrationID = "" })
		require.NoError(t, err)
		three := orgTeamOf(org, "three")
		three.IntegrationID = ""
		t.add(three) // two teams without an integration id
		two, err = t.update(two, func(x *organisation.Team) { x.IntegrationID = "crm räv one" })
		require.NoError(t, err)
		require.NoError(t, t.delete(two))
		_, err = t.update(none, func(x *organisation.Team) { x.IntegrationID = "crm räv one" })
		require.NoError(t, err, "that of a deleted team is free")
		wins := conformance.Successes(conformance.Together(8, func(int) error {
			x := orgTeamOf(org, "race")
			return t.Organisations.InsertTeam(t.Context(), x)
		}))
		require.Equal(t, 1, wins)
	},
	"Refused": func(t orgT) {
		good := orgTeamOf(uuid.New(), "a")
		for _, spoil := range []func(*organisation.Team){
			func(x *organisation.Team) { x.ID = healthlab.TeamID{} },
			func(x *organisation.Team) { x.Org = uuid.Nil },
			func(x *organisation.Team) { x.Name = "" },
			func(x *organisation.Team) { x.Name = "a\x00" },
			func(x *organisation.Team) { x.IntegrationID = "a\xff" },
		} {
			bad := good
			spoil(&bad)
			require.ErrorIs(t, t.Organisations.InsertTeam(t.Context(), bad), healthlab.Invalid)
		}
		t.add(good)
		again := orgTeamOf(uuid.New(), "b")
		again.ID = good.ID
		require.ErrorIs(t, t.Organisations.InsertTeam(t.Context(), again), healthlab.Conflict)
		_, err := t.Organisations.UpdateTeam(t.Context(), good.Org, good.ID, func(x *organisation.Team) error {
			x.Name = "lost"
			return conformance.ErrRefused
		})
		require.ErrorIs(t, err, conformance.ErrRefused)
		_, err = t.update(good, func(x *organisation.Team) { x.Name = "a\x00" })
		require.ErrorIs(t, err, healthlab.Invalid)
		stranger := good
		stranger.Org = uuid.New()
		_, err = t.update(stranger, func(*organisation.Team) { panic("called") })
		require.ErrorIs(t, err, healthlab.NotFound)
		require.ErrorIs(t, t.delete(stranger), healthlab.NotFound)
		_, err = t.Organisations.Team(t.Context(), conformance.NewTeam())
		require.ErrorIs(t, err, healthlab.NotFound)
		t.requireTeam(good)
	},
	"NoLostUpdates": func(t orgT) {
		team := t.add(orgTeamOf(uuid.New(), ""+"a"))
		wins := conformance.Successes(conformance.Together(8, func(int) error {
			_, err := t.update(team, func(x *organisation.Team) { x.Name += "b" })
			return err
		}))
		require.Positive(t, wins)
		got, err := t.Organisations.Team(t.Context(), team.ID)
		require.NoError(t, err)
		require.Len(t, got.Name, 1+wins)
	},
	"Delete": func(t orgT) {
		org := uuid.New()
		team, other := t.add(orgTeamOf(org, "a")), t.add(orgTeamOf(org, "b"))
		for _, x := range []organisation.Team{team, other} {
			t.addKey(orgKey(x, 1))
			_, err := t.Choices.UpdateChoices(t.Context(), x.ID, func(teamsettings.Choices) (teamsettings.Choices, error) {
				return teamsettings.Choices{Minors: new(true)}, nil
			})
			require.NoError(t, err)
			_, err = t.Clients.PutClient(t.Context(), linking.TeamClient{
				Team: x.ID, Provider: "acme_scale", ClientID: "id", Box: healthlab.Sealed{KeyID: "k", Box: []byte("box")}, CreatedAt: noon, UpdatedAt: noon,
			})
			require.NoError(t, err)
		}
		u := healthdata.User{
			ID: healthlab.UserID{UUID: uuid.New()}, Team: team.ID, ClientUserID: "ann", CreatedOn: healthlab.At(noon),
			FallbackTimeZone: healthdata.FallbackTimeZone{ID: "UTC", SourceSlug: "default", UpdatedAt: healthlab.At(noon)},
		}
		require.NoError(t, t.Users.Insert(t.Context(), u, 0))
		var full *organisation.NotEmptyError
		require.ErrorAs(t, t.delete(team), &full)
		require.Equal(t, 1, full.Users)
		require.Len(t, t.keys(team), 1)
		_, err := t.Users.Update(t.Context(), team.ID, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
			u.DeletedAt = noon
			return nil, nil
		})
		require.NoError(t, err)
		key := t.keys(team)[0]
		require.NoError(t, t.delete(team))
		require.ErrorIs(t, t.delete(team), healthlab.NotFound)
		_, err = t.Organisations.Team(t.Context(), team.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = t.update(team, func(*organisation.Team) { panic("called") })
		require.ErrorIs(t, err, healthlab.NotFound)
		require.ErrorIs(t, t.Organisations.InsertTeam(t.Context(), team), healthlab.Conflict, "its id is not given out again")
		found, err := t.Organisations.FindKeys(t.Context(), [][sha256.Size]byte{key.Sum})
		require.NoError(t, err)
		require.Empty(t, found)
		require.ErrorIs(t, t.Organisations.InsertKey(t.Context(), orgKey(team, 2), 10), healthlab.NotFound)
		left := func(x organisation.Team) (teamsettings.Choices, []linking.TeamClient, []organisation.Key) {
			c, err := t.Choices.Choices(t.Context(), x.ID)
			require.NoError(t, err)
			list, err := t.Clients.Clients(t.Context(), linking.ClientQuery{Team: x.ID})
			require.NoError(t, err)
			return c, list, t.keys(x)
		}
		choices, clients, keys := left(team)
		require.Zero(t, choices)
		require.Empty(t, clients)
		require.Empty(t, keys)
		choices, clients, keys = left(other)
		require.NotZero(t, choices)
		require.Len(t, clients, 1)
		require.Len(t, keys, 1)
	},
	"Keys": func(t orgT) {
		org := uuid.New()
		team, other := t.add(orgTeamOf(org, "a")), t.add(orgTeamOf(org, "b"))
		want := orgKey(team, 2)
		bare := orgKey(other, 9)
		bare.Scopes, bare.ExpiresAt, bare.LastUsedAt = nil, time.Time{}, time.Time{}
		t.addKey(bare)
		require.Equal(t, []organisation.Key{bare}, t.keys(other))
		require.NoError(t, t.Organisations.DeleteKey(t.Context(), other.ID, bare.ID))
		given := want
		given.CreatedAt = want.CreatedAt.In(time.FixedZone("x", 3600)).Add(123 * time.Nanosecond)
		t.addKey(given)
		first, foreign := t.addKey(orgKey(team, 1)), t.addKey(orgKey(other, 3))
		require.Equal(t, []organisation.Key{first, want}, t.keys(team))
		got, err := t.Organisations.Key(t.Context(), want.ID)
		require.NoError(t, err)
		require.Equal(t, want, got)
		found, err := t.Organisations.FindKeys(t.Context(), [][sha256.Size]byte{foreign.Sum, {1: 9}, want.Sum})
		require.NoError(t, err)
		require.Equal(t, map[[sha256.Size]byte]organisation.Key{foreign.Sum: foreign, want.Sum: want}, found)
		require.ErrorIs(t, t.Organisations.DeleteKey(t.Context(), team.ID, foreign.ID), healthlab.NotFound)
		require.NoError(t, t.Organisations.DeleteKey(t.Context(), team.ID, want.ID))
		require.ErrorIs(t, t.Organisations.DeleteKey(t.Context(), team.ID, want.ID), healthlab.NotFound)
		found, err = t.Organisations.FindKeys(t.Context(), [][sha256.Size]byte{want.Sum})
		require.NoError(t, err)
		require.Empty(t, found)
		_, err = t.Organisations.Key(t.Context(), want.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
		require.Equal(t, []organisation.Key{first}, t.keys(team))
		require.Equal(t, []organisation.Key{foreign}, t.keys(other))
	},
	"TouchKey": func(t orgT) {
		team, other := t.add(orgTeamOf(uuid.New(), "a")), t.add(orgTeamOf(uuid.New(), "b"))
		k := t.addKey(orgKey(team, 1))
		touch := func(of organisation.Team, at time.Time) {
			require.NoError(t, t.Organisations.TouchKey(t.Context(), of.ID, k.ID, at))
		}
		touch(other, noon.Add(2*time.Hour))
		touch(team, noon)
		require.Equal(t, []organisation.Key{k}, t.keys(team), "another team's, or an earlier use")
		touch(team, noon.Add(time.Hour+time.Nanosecond))
		k.LastUsedAt = noon.Add(time.Hour)
		require.Equal(t, []organisation.Key{k}, t.keys(team))
		require.NoError(t, t.Organisations.TouchKey(t.Context(), team.ID, uuid.New(), noon))
	},
	"RotateKey": func(t orgT) {
		team, other := t.add(orgTeamOf(uuid.New(), "a")), t.add(orgTeamOf(uuid.New(), "b"))
		old := orgKey(team, 1)
		old.ExpiresAt = time.Time{}
		t.addKey(old)
		next := orgKey(team, 2)
		rotate := func(id uuid.UUID, until time.Time, next organisation.Key, most int) error {
			return t.Organisations.RotateKey(t.Context(), id, until, next, most)
		}
		require.ErrorIs(t, rotate(uuid.New(), noon, next, 10), healthlab.NotFound)
		require.ErrorIs(t, rotate(old.ID, noon, orgKey(other, 2), 10), healthlab.NotFound, "another team's")
		var full *organisation.TooManyKeysError
		require.ErrorAs(t, rotate(old.ID, noon, next, 1), &full)
		same := next
		same.Sum = old.Sum
		require.ErrorIs(t, rotate(old.ID, noon, same, 10), healthlab.Conflict)
		require.Equal(t, []organisation.Key{old}, t.keys(team), "nothing is written")
		require.NoError(t, rotate(old.ID, noon.Add(2*time.Hour+time.Nanosecond), next, 10))
		old.ExpiresAt = noon.Add(2 * time.Hour)
		require.Equal(t, []organisation.Key{old, next}, t.keys(team))
		third := orgKey(team, 3)
		require.NoError(t, rotate(old.ID, noon.Add(3*time.Hour), third, 10))
		require.Equal(t, []organisation.Key{old, next, third}, t.keys(team), "the earlier expiry stays")
		require.Empty(t, t.keys(other))
	},
	"KeysRefused": func(t orgT) {
		team, other := t.add(orgTeamOf(uuid.New(), "a")), t.add(orgTeamOf(uuid.New(), "b"))
		for _, spoil := range []func(*organisation.Key){
			func(k *organisation.Key) { k.ID = uuid.Nil },
			func(k *organisation.Key) { k.Team = healthlab.TeamID{} },
			func(k *organisation.Key) { k.Sum = [32]byte{} },
			func(k *organisation.Key) { k.Label = "a\x00" },
			func(k *organisation.Key) { k.Hint = "a\xff" },
		} {
			bad := orgKey(team, 1)
			spoil(&bad)
			require.ErrorIs(t, t.Organisations.InsertKey(t.Context(), bad, 10), healthlab.Invalid)
		}
		nobody := team
		nobody.ID = conformance.NewTeam()
		require.ErrorIs(t, t.Organisations.InsertKey(t.Context(), orgKey(nobody, 1), 10), healthlab.NotFound)
		k := t.addKey(orgKey(team, 1))
		same, sameSum := orgKey(other, 2), orgKey(other, 2)
		same.ID, sameSum.Sum = k.ID, k.Sum
		require.ErrorIs(t, t.Organisations.InsertKey(t.Context(), same, 10), healthlab.Conflict)
		require.ErrorIs(t, t.Organisations.InsertKey(t.Context(), sameSum, 10), healthlab.Conflict)
		require.Empty(t, t.keys(other))
		var full *organisation.TooManyKeysError
		require.ErrorAs(t, t.Organisations.InsertKey(t.Context(), orgKey(team, 2), 1), &full)
		require.Equal(t, 1, full.Most)
		wins := conformance.Successes(conformance.Together(8, func(i int) error { return t.Organisations.InsertKey(t.Context(), orgKey(team, byte(3+i)), 4) }))
		require.Equal(t, 3, wins)
		require.Len(t, t.keys(team), 4)
	},
	"Ended": func(t orgT) {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		team := t.add(orgTeamOf(uuid.New(), "a"))
		k := t.addKey(orgKey(team, 1))
		s := t.Organisations
		second := func(_ any, err error) error { return err }
		for _, err := range []error{
			s.InsertTeam(ctx, orgTeamOf(team.Org, "b")), second(s.Team(ctx, team.ID)), second(s.Teams(ctx, organisation.Query{Org: team.Org, N: 1})),
			second(s.UpdateTeam(ctx, team.Org, team.ID, func(*organisation.Team) error { panic("called") })), s.DeleteTeam(ctx, team.Org, team.ID),
			s.InsertKey(ctx, orgKey(team, 2), 10), second(s.Keys(ctx, team.ID)), second(s.Key(ctx, k.ID)), second(s.FindKeys(ctx, [][sha256.Size]byte{k.Sum})), s.DeleteKey(ctx, team.ID, k.ID),
			s.TouchKey(ctx, team.ID, k.ID, noon.Add(time.Hour)), s.RotateKey(ctx, k.ID, noon, orgKey(team, 3), 10),
		} {
			require.ErrorIs(t, err, context.Canceled)
		}
		require.Equal(t, []organisation.Team{team}, t.teams(organisation.Query{Org: team.Org, N: 9}))
		require.Equal(t, []organisation.Key{k}, t.keys(team))
	},
}

// noon is the time of most calls. It is near the clock of the store.
var noon = time.Now().UTC().Truncate(time.Second).Add(123456 * time.Microsecond)
