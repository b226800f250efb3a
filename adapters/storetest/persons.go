package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// PersonsHarness is a fresh, empty store that keeps persons and users.
type PersonsHarness struct {
	Persons people.Store
	Users   healthdata.Users
}

// RunPersons runs the contract of [people.Store]. newStore returns a fresh, empty
// store and registers its own cleanup on t.
func RunPersons(t *testing.T, newStore func(t testing.TB) PersonsHarness) {
	for name, run := range personCases {
		t.Run(name, func(t *testing.T) { run(t, newStore(t)) })
	}
}

func postal(line string) people.Address {
	return people.Address{FirstLine: line, SecondLine: ptr("b"), City: "Mesa", State: "AZ", Zip: "85201", Country: "US"}
}

func guarantor() *people.GuarantorDetails {
	return &people.GuarantorDetails{FirstName: "Bo", LastName: "Roe", Address: postal("7 Elm Rd"), PhoneNumber: "+15550102",
		HouseholdIncome: ptr(50000), HouseholdSize: ptr(3), Email: ptr("bo@example.com")}
}

var birthday = healthlab.Date{Year: 1984, Month: 5, Day: 9}

// userInfo has no field at its zero value.
func userInfo(first string) people.UserInfo {
	return people.UserInfo{
		FirstName: first, LastName: "Roe", Email: "ana@example.com", PhoneNumber: "+15550101", Gender: "Female", DOB: birthday,
		Address: people.UserAddress{FirstLine: "7 Elm Rd", SecondLine: ptr("b"), City: "Mesa", State: "AZ", Zip: "85201", ZipCode: "85201",
			Country: "US", AccessNotes: ptr("side gate")},
		MedicalProxy: guarantor(), Race: ptr(people.Race("other")), Ethnicity: ptr(people.Ethnicity("other")),
		SexualOrientation: ptr(people.SexualOrientation("other")), GenderIdentity: ptr(people.GenderIdentity("other")),
	}
}

// coverage has no field at its zero value, but that it has not ended.
func coverage(team, user, name string, at time.Time) people.Coverage {
	return people.Coverage{
		ID: named("coverage " + name), Team: orderTeam(team), User: orderUser(user), ValidFrom: at,
		Record: people.InsuranceRecord{
			MemberID: name, PayorCode: "P1", Relationship: people.RelationSpouse, GroupID: ptr("G"), Guarantor: guarantor(), IsPrimary: true,
			Insured: people.PersonDetails{FirstName: "Ana", LastName: "Roe", Gender: people.Female, DOB: birthday, Email: "ana@example.com",
				PhoneNumber: "+15550101", Address: postal("7 Elm Rd")},
			Company: people.CompanyDetails{Name: "Payor", Address: postal("1 Main St")},
		},
	}
}

func keptPayor(team, code string, at time.Time) people.KeptPayor {
	return people.KeptPayor{
		Payor: people.Payor{PayorCode: code, Name: "Payor", Aliases: []string{"P"}, OrgAddress: postal("1 Main St"), Source: people.TeamPayor},
		Team:  orderTeam(team), ClearingHouse: "house_a", ProviderPayorID: "77", CreatedAt: at,
	}
}

// latest reads the record that has not ended.
func (h PersonsHarness) latest(t *testing.T, team, user string, primary bool) (people.Coverage, error) {
	t.Helper()
	return h.Persons.CoverageAt(t.Context(), orderTeam(team), orderUser(user), primary, time.Time{})
}

// insured adds demographics of a user and records that begin at times, a minute apart.
func (h PersonsHarness) insured(t *testing.T, team, user string, names ...string) {
	t.Helper()
	require.NoError(t, h.Persons.PutUserInfo(t.Context(), orderTeam(team), orderUser(user), userInfo("Ana")))
	for i, name := range names {
		require.NoError(t, h.Persons.AddCoverage(t.Context(), coverage(team, user, name, orderNoon.Add(time.Duration(i)*time.Minute))))
	}
}

var personCases = map[string]func(*testing.T, PersonsHarness){
	"Info/RoundTrip": func(t *testing.T, h PersonsHarness) {
		in := userInfo("Ana")
		require.NoError(t, h.Persons.PutUserInfo(t.Context(), orderTeam("a"), orderUser("ana"), in))
		*in.Address.AccessNotes = "changed"
		got, err := h.Persons.UserInfo(t.Context(), orderTeam("a"), orderUser("ana"))
		require.NoError(t, err)
		require.Equal(t, userInfo("Ana"), got)
		*got.Address.AccessNotes = "changed"
		require.NoError(t, h.Persons.PutUserInfo(t.Context(), orderTeam("a"), orderUser("ana"), userInfo("Eva")))
		got, err = h.Persons.UserInfo(t.Context(), orderTeam("a"), orderUser("ana"))
		require.NoError(t, err)
		require.Equal(t, userInfo("Eva"), got)
	},
	"Info/OtherTeam": func(t *testing.T, h PersonsHarness) {
		require.NoError(t, h.Persons.PutUserInfo(t.Context(), orderTeam("a"), orderUser("ana"), userInfo("Ana")))
		for _, of := range []struct{ team, user string }{{"b", "ana"}, {"a", "bo"}} {
			_, err := h.Persons.UserInfo(t.Context(), orderTeam(of.team), orderUser(of.user))
			require.ErrorIs(t, err, healthlab.NotFound)
		}
	},
	"Info/Text": func(t *testing.T, h PersonsHarness) {
		require.ErrorIs(t, h.Persons.PutUserInfo(t.Context(), orderTeam("a"), orderUser("ana"), userInfo("A\x00")), healthlab.Invalid)
		require.ErrorIs(t, h.Persons.PutUserInfo(t.Context(), orderTeam("a"), orderUser("ana"), userInfo("A\xff")), healthlab.Invalid)
		h.insured(t, "a", "ana")
		require.ErrorIs(t, h.Persons.AddCoverage(t.Context(), coverage("a", "ana", "A\x00", orderNoon)), healthlab.Invalid)
		require.ErrorIs(t, h.Persons.AddPayor(t.Context(), keptPayor("a", "A\x00", orderNoon)), healthlab.Invalid)
	},
	"Coverage/RoundTrip": func(t *testing.T, h PersonsHarness) {
		h.insured(t, "a", "ana")
		in := coverage("a", "ana", "1", orderNoon.In(time.FixedZone("", 3600)).Add(300*time.Nanosecond))
		require.NoError(t, h.Persons.AddCoverage(t.Context(), in))
		in.Record.GroupID = ptr("changed")
		want := coverage("a", "ana", "1", orderNoon)
		got, err := h.latest(t, "a", "ana", true)
		require.NoError(t, err)
		require.Equal(t, want, got)
		got, err = h.Persons.Coverage(t.Context(), want.Team, want.ID)
		require.NoError(t, err)
		require.Equal(t, want, got)
	},
	"Coverage/NeedsDemographics": func(t *testing.T, h PersonsHarness) {
		require.ErrorIs(t, h.Persons.AddCoverage(t.Context(), coverage("a", "ana", "1", orderNoon)), healthlab.NotFound)
		h.insured(t, "b", "ana")
		require.ErrorIs(t, h.Persons.AddCoverage(t.Context(), coverage("a", "ana", "1", orderNoon)), healthlab.NotFound)
		_, err := h.latest(t, "a", "ana", true)
		require.ErrorIs(t, err, healthlab.NotFound)
	},
	"Coverage/Duplicate": func(t *testing.T, h PersonsHarness) {
		h.insured(t, "a", "ana", "1")
		h.insured(t, "b", "bo")
		require.ErrorIs(t, h.Persons.AddCoverage(t.Context(), coverage("a", "ana", "1", orderNoon)), healthlab.Conflict)
		require.ErrorIs(t, h.Persons.AddCoverage(t.Context(), coverage("b", "bo", "1", orderNoon)), healthlab.Conflict)
		got, err := h.latest(t, "a", "ana", true)
		require.NoError(t, err)
		require.Zero(t, got.ValidUntil)
	},
	"Coverage/OtherTeam": func(t *testing.T, h PersonsHarness) {
		h.insured(t, "a", "ana", "1")
		_, err := h.Persons.Coverage(t.Context(), orderTeam("b"), named("coverage 1"))
		require.ErrorIs(t, err, healthlab.NotFound)
		for _, of := range []struct{ team, user string }{{"b", "ana"}, {"a", "bo"}} {
			_, err := h.latest(t, of.team, of.user, true)
			require.ErrorIs(t, err, healthlab.NotFound)
		}
	},
	"Coverage/Validity": func(t *testing.T, h PersonsHarness) {
		h.insured(t, "a", "ana", "1", "2", "3")
		second := coverage("a", "ana", "second", orderNoon)
		second.Record.IsPrimary = false
		require.NoError(t, h.Persons.AddCoverage(t.Context(), second))
		at := func(primary bool, after time.Duration) string {
			c, err := h.Persons.CoverageAt(t.Context(), orderTeam("a"), orderUser("ana"), primary, orderNoon.Add(after))
			if errors.Is(err, healthlab.NotFound) {
				return ""
			}
			require.NoError(t, err)
			return c.Record.MemberID
		}
		require.Empty(t, at(true, -time.Microsecond))
		require.Equal(t, "1", at(true, 0))
		require.Equal(t, "1", at(true, time.Minute-time.Microsecond))
		require.Equal(t, "2", at(true, time.Minute))
		require.Equal(t, "3", at(true, time.Hour))
		require.Equal(t, "second", at(false, time.Hour))
		got, err := h.Persons.Coverage(t.Context(), orderTeam("a"), named("coverage 1"))
		require.NoError(t, err)
		require.Equal(t, orderNoon.Add(time.Minute), got.ValidUntil)
	},
	"Coverage/LaterCallWins": func(t *testing.T, h PersonsHarness) {
		h.insured(t, "a", "ana", "1")
		require.NoError(t, h.Persons.AddCoverage(t.Context(), coverage("a", "ana", "2", orderNoon.Add(-time.Hour)))) // a slow clock
		got, err := h.latest(t, "a", "ana", true)
		require.NoError(t, err)
		require.Equal(t, "2", got.Record.MemberID)
		require.Equal(t, orderNoon.Add(time.Microsecond), got.ValidFrom)
		first, err := h.Persons.Coverage(t.Context(), orderTeam("a"), named("coverage 1"))
		require.NoError(t, err)
		require.Equal(t, got.ValidFrom, first.ValidUntil)
	},
	"Coverage/Together": func(t *testing.T, h PersonsHarness) {
		h.insured(t, "a", "ana")
		var all sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			all.Go(func() {
				errs[i] = h.Persons.AddCoverage(t.Context(), coverage("a", "ana", string(rune('a'+i)), orderNoon))
			})
		}
		all.Wait()
		require.NoError(t, errors.Join(errs...))
		open, ends := 0, map[time.Time]bool{}
		for i := range errs {
			c, err := h.Persons.Coverage(t.Context(), orderTeam("a"), named("coverage "+string(rune('a'+i))))
			require.NoError(t, err)
			if c.ValidUntil.IsZero() {
				open++
			}
			require.False(t, ends[c.ValidUntil])
			ends[c.ValidUntil] = true
		}
		require.Equal(t, 1, open)
	},
	"Payors/RoundTrip": func(t *testing.T, h PersonsHarness) {
		later := keptPayor("a", "2", orderNoon.Add(time.Second))
		for _, p := range []people.KeptPayor{later, keptPayor("a", "3", orderNoon), keptPayor("a", "1", orderNoon), keptPayor("b", "1", orderNoon)} {
			in := p
			in.CreatedAt = p.CreatedAt.Add(300 * time.Nanosecond)
			require.NoError(t, h.Persons.AddPayor(t.Context(), in))
		}
		got, err := h.Persons.Payors(t.Context(), orderTeam("a"))
		require.NoError(t, err)
		require.Equal(t, []people.KeptPayor{keptPayor("a", "1", orderNoon), keptPayor("a", "3", orderNoon), later}, got)
		none, err := h.Persons.Payors(t.Context(), orderTeam("c"))
		require.NoError(t, err)
		require.Empty(t, none)
		require.ErrorIs(t, h.Persons.AddPayor(t.Context(), keptPayor("a", "1", orderNoon)), healthlab.Conflict)
	},
	"Erase": func(t *testing.T, h PersonsHarness) {
		h.insured(t, "a", "ana", "1")
		h.insured(t, "a", "bo", "2")
		h.insured(t, "b", "ana", "3")
		OrderErasureHarness{Users: h.Users}.remove(t, orderTeam("a"), orderUser("ana"))
		_, err := h.Persons.UserInfo(t.Context(), orderTeam("a"), orderUser("ana"))
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = h.Persons.Coverage(t.Context(), orderTeam("a"), named("coverage 1"))
		require.ErrorIs(t, err, healthlab.NotFound)
		for _, of := range []struct{ team, user string }{{"a", "bo"}, {"b", "ana"}} {
			_, err := h.latest(t, of.team, of.user, true)
			require.NoError(t, err)
			_, err = h.Persons.UserInfo(t.Context(), orderTeam(of.team), orderUser(of.user))
			require.NoError(t, err)
		}
	},
	"Delete": func(t *testing.T, h PersonsHarness) {
		h.insured(t, "a", "ana", "1")
		team, ana := orderTeam("a"), orderUser("ana")
		found := func() []error {
			_, info := h.Persons.UserInfo(t.Context(), team, ana)
			_, byID := h.Persons.Coverage(t.Context(), team, named("coverage 1"))
			_, latest := h.latest(t, "a", "ana", true)
			return []error{info, byID, latest}
		}
		users := OrderErasureHarness{Users: h.Users}
		users.add(t, team, ana)
		users.delete(t, team, ana)
		for _, err := range found() {
			require.ErrorIs(t, err, healthlab.NotFound)
		}
		users.restore(t, team, ana)
		for _, err := range found() {
			require.NoError(t, err)
		}
	},
	"ContextEnded": func(t *testing.T, h PersonsHarness) {
		h.insured(t, "a", "ana")
		ended, end := context.WithCancel(t.Context())
		end()
		require.ErrorIs(t, h.Persons.PutUserInfo(ended, orderTeam("a"), orderUser("ana"), userInfo("Eva")), context.Canceled)
		require.ErrorIs(t, h.Persons.AddCoverage(ended, coverage("a", "ana", "1", orderNoon)), context.Canceled)
		require.ErrorIs(t, h.Persons.AddPayor(ended, keptPayor("a", "1", orderNoon)), context.Canceled)
		_, err := h.Persons.UserInfo(ended, orderTeam("a"), orderUser("ana"))
		require.ErrorIs(t, err, context.Canceled)
		_, err = h.Persons.Coverage(ended, orderTeam("a"), uuid.Nil)
		require.ErrorIs(t, err, context.Canceled)
		_, err = h.Persons.Payors(ended, orderTeam("a"))
		require.ErrorIs(t, err, context.Canceled)
		got, err := h.Persons.UserInfo(t.Context(), orderTeam("a"), orderUser("ana"))
		require.NoError(t, err)
		require.Equal(t, "Ana", got.FirstName)
		_, err = h.latest(t, "a", "ana", true)
		require.ErrorIs(t, err, healthlab.NotFound)
	},
}
