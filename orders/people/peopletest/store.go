package peopletest

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
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// StoreHarness is a fresh, empty store of persons and users.
type StoreHarness struct {
	Persons people.Store
	Users   healthdata.Users
}

// RunStore runs the contract tests of [people.Store]. newStore returns a new, empty store for each case and registers
// its own cleanup on t.
func RunStore(t *testing.T, newStore func(t testing.TB) StoreHarness) {
	for name, run := range conformance.Sorted(personCases) {
		t.Run(name, func(t *testing.T) { run(t, newStore(t)) })
	}
}

func postal(line string) people.Address {
	return people.Address{FirstLine: line, SecondLine: new("b"), City: "Mesa", State: "AZ", Zip: "85201", Country: "US"}
}

func guarantor() *people.GuarantorDetails {
	return &people.GuarantorDetails{FirstName: "Bo", LastName: "Roe", Address: postal("7 Elm Rd"), PhoneNumber: "+15550102",
		HouseholdIncome: new(50000), HouseholdSize: new(3), Email: new("bo@example.com")}
}

var birthday = healthlab.Date{Year: 1984, Month: 5, Day: 9}

// userInfo returns demographics in which every field is set.
func userInfo(first string) people.UserInfo {
	return people.UserInfo{
		FirstName: first, LastName: "Roe", Email: "ana@example.com", PhoneNumber: "+15550101", Gender: "Female", DOB: birthday,
		Address: people.UserAddress{FirstLine: "7 Elm Rd", SecondLine: new("b"), City: "Mesa", State: "AZ", Zip: "85201", ZipCode: "85201",
			Country: "US", AccessNotes: new("side gate")},
		MedicalProxy: guarantor(), Race: new(people.Race("other")), Ethnicity: new(people.Ethnicity("other")),
		SexualOrientation: new(people.SexualOrientation("other")), GenderIdentity: new(people.GenderIdentity("other")),
	}
}

// coverage returns an insurance record in which every field is set, except ValidUntil and the access notes of
// addresses.
func coverage(team, user, name string, at time.Time) people.Coverage {
	return people.Coverage{
		ID: conformance.Named("coverage " + name), Team: conformance.Team(team), User: conformance.User(user), ValidFrom: at,
		Record: people.InsuranceRecord{
			MemberID: name, PayorCode: "P1", Relationship: people.RelationSpouse, GroupID: new("G"), Guarantor: guarantor(), IsPrimary: true,
			Insured: people.PersonDetails{FirstName: "Ana", LastName: "Roe", Gender: people.Female, DOB: birthday, Email: "ana@example.com",
				PhoneNumber: "+15550101", Address: postal("7 Elm Rd")},
			Company: people.CompanyDetails{Name: "Payor", Address: postal("1 Main St")},
		},
	}
}

func storedPayor(team, code string, at time.Time) people.StoredPayor {
	return people.StoredPayor{
		Payor: people.Payor{PayorCode: code, Name: "Payor", Aliases: []string{"P"}, OrgAddress: postal("1 Main St"), Source: people.TeamPayor},
		Team:  conformance.Team(team), ClearingHouse: "house_a", ProviderPayorID: "77", CreatedAt: at,
	}
}

func (h StoreHarness) latest(t *testing.T, team, user string, primary bool) (people.Coverage, error) {
	t.Helper()
	return h.Persons.CoverageAt(t.Context(), conformance.Team(team), conformance.User(user), primary, time.Time{})
}

// addCoverages stores demographics of a user, and an insurance record for each name. The records start a minute apart.
func (h StoreHarness) addCoverages(t *testing.T, team, user string, names ...string) {
	t.Helper()
	require.NoError(t, h.Persons.PutUserInfo(t.Context(), conformance.Team(team), conformance.User(user), userInfo("Ana")))
	for i, name := range names {
		require.NoError(t, h.Persons.AddCoverage(t.Context(), coverage(team, user, name, noon.Add(time.Duration(i)*time.Minute))))
	}
}

var personCases = map[string]func(*testing.T, StoreHarness){
	"Info/RoundTrip": func(t *testing.T, h StoreHarness) {
		in := userInfo("Ana")
		require.NoError(t, h.Persons.PutUserInfo(t.Context(), conformance.Team("a"), conformance.User("ana"), in))
		*in.Address.AccessNotes = "changed"
		got, err := h.Persons.UserInfo(t.Context(), conformance.Team("a"), conformance.User("ana"))
		require.NoError(t, err)
		require.Equal(t, userInfo("Ana"), got)
		*got.Address.AccessNotes = "changed"
		require.NoError(t, h.Persons.PutUserInfo(t.Context(), conformance.Team("a"), conformance.User("ana"), userInfo("Eva")))
		got, err = h.Persons.UserInfo(t.Context(), conformance.Team("a"), conformance.User("ana"))
		require.NoError(t, err)
		require.Equal(t, userInfo("Eva"), got)
	},
	"Info/OtherTeam": func(t *testing.T, h StoreHarness) {
		require.NoError(t, h.Persons.PutUserInfo(t.Context(), conformance.Team("a"), conformance.User("ana"), userInfo("Ana")))
		for _, of := range []struct{ team, user string }{{"b", "ana"}, {"a", "bo"}} {
			_, err := h.Persons.UserInfo(t.Context(), conformance.Team(of.team), conformance.User(of.user))
			require.ErrorIs(t, err, healthlab.NotFound)
		}
	},
	"Info/Text": func(t *testing.T, h StoreHarness) {
		require.ErrorIs(t, h.Persons.PutUserInfo(t.Context(), conformance.Team("a"), conformance.User("ana"), userInfo("A\x00")), healthlab.Invalid)
		require.ErrorIs(t, h.Persons.PutUserInfo(t.Context(), conformance.Team("a"), conformance.User("ana"), userInfo("A\xff")), healthlab.Invalid)
		h.addCoverages(t, "a", "ana")
		require.ErrorIs(t, h.Persons.AddCoverage(t.Context(), coverage("a", "ana", "A\x00", noon)), healthlab.Invalid)
		require.ErrorIs(t, h.Persons.AddPayor(t.Context(), storedPayor("a", "A\x00", noon)), healthlab.Invalid)
	},
	"Coverage/RoundTrip": func(t *testing.T, h StoreHarness) {
		h.addCoverages(t, "a", "ana")
		in := coverage("a", "ana", "1", noon.In(time.FixedZone("", 3600)).Add(300*time.Nanosecond))
		require.NoError(t, h.Persons.AddCoverage(t.Context(), in))
		in.Record.GroupID = new("changed")
		want := coverage("a", "ana", "1", noon)
		got, err := h.latest(t, "a", "ana", true)
		require.NoError(t, err)
		require.Equal(t, want, got)
		got, err = h.Persons.Coverage(t.Context(), want.Team, want.ID)
		require.NoError(t, err)
		require.Equal(t, want, got)
	},
	"Coverage/BeforeDemographics": func(t *testing.T, h StoreHarness) {
		in := coverage("a", "ana", "1", noon)
		require.NoError(t, h.Persons.AddCoverage(t.Context(), in))
		got, err := h.latest(t, "a", "ana", true)
		require.NoError(t, err)
		require.Equal(t, in, got)
		require.NoError(t, h.Persons.PutUserInfo(t.Context(), conformance.Team("a"), conformance.User("ana"), userInfo("Ana")))
		got, err = h.latest(t, "a", "ana", true)
		require.NoError(t, err)
		require.Equal(t, in, got)
		_, err = h.latest(t, "b", "ana", true)
		require.ErrorIs(t, err, healthlab.NotFound)
	},
	"Coverage/Duplicate": func(t *testing.T, h StoreHarness) {
		h.addCoverages(t, "a", "ana", "1")
		h.addCoverages(t, "b", "bo")
		require.ErrorIs(t, h.Persons.AddCoverage(t.Context(), coverage("a", "ana", "1", noon)), healthlab.Conflict)
		require.ErrorIs(t, h.Persons.AddCoverage(t.Context(), coverage("b", "bo", "1", noon)), healthlab.Conflict)
		got, err := h.latest(t, "a", "ana", true)
		require.NoError(t, err)
		require.Zero(t, got.ValidUntil)
	},
	"Coverage/OtherTeam": func(t *testing.T, h StoreHarness) {
		h.addCoverages(t, "a", "ana", "1")
		_, err := h.Persons.Coverage(t.Context(), conformance.Team("b"), conformance.Named("coverage 1"))
		require.ErrorIs(t, err, healthlab.NotFound)
		for _, of := range []struct{ team, user string }{{"b", "ana"}, {"a", "bo"}} {
			_, err := h.latest(t, of.team, of.user, true)
			require.ErrorIs(t, err, healthlab.NotFound)
		}
	},
	"Coverage/Validity": func(t *testing.T, h StoreHarness) {
		h.addCoverages(t, "a", "ana", "1", "2", "3")
		second := coverage("a", "ana", "second", noon)
		second.Record.IsPrimary = false
		require.NoError(t, h.Persons.AddCoverage(t.Context(), second))
		at := func(primary bool, after time.Duration) string {
			c, err := h.Persons.CoverageAt(t.Context(), conformance.Team("a"), conformance.User("ana"), primary, noon.Add(after))
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
		got, err := h.Persons.Coverage(t.Context(), conformance.Team("a"), conformance.Named("coverage 1"))
		require.NoError(t, err)
		require.Equal(t, noon.Add(time.Minute), got.ValidUntil)
	},
	"Coverage/LaterCallWins": func(t *testing.T, h StoreHarness) {
		h.addCoverages(t, "a", "ana", "1")
		require.NoError(t, h.Persons.AddCoverage(t.Context(), coverage("a", "ana", "2", noon.Add(-time.Hour)))) // a slow clock
		got, err := h.latest(t, "a", "ana", true)
		require.NoError(t, err)
		require.Equal(t, "2", got.Record.MemberID)
		require.Equal(t, noon.Add(time.Microsecond), got.ValidFrom)
		first, err := h.Persons.Coverage(t.Context(), conformance.Team("a"), conformance.Named("coverage 1"))
		require.NoError(t, err)
		require.Equal(t, got.ValidFrom, first.ValidUntil)
	},
	"Coverage/Together": func(t *testing.T, h StoreHarness) {
		h.addCoverages(t, "a", "ana")
		var all sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			all.Go(func() {
				errs[i] = h.Persons.AddCoverage(t.Context(), coverage("a", "ana", string(rune('a'+i)), noon))
			})
		}
		all.Wait()
		require.NoError(t, errors.Join(errs...))
		open, ends := 0, map[time.Time]bool{}
		for i := range errs {
			c, err := h.Persons.Coverage(t.Context(), conformance.Team("a"), conformance.Named("coverage "+string(rune('a'+i))))
			require.NoError(t, err)
			if c.ValidUntil.IsZero() {
				open++
			}
			require.False(t, ends[c.ValidUntil])
			ends[c.ValidUntil] = true
		}
		require.Equal(t, 1, open)
	},
	"Payors/RoundTrip": func(t *testing.T, h StoreHarness) {
		later := storedPayor("a", "2", noon.Add(time.Second))
		for _, p := range []people.StoredPayor{later, storedPayor("a", "3", noon), storedPayor("a", "1", noon), storedPayor("b", "1", noon)} {
			in := p
			in.CreatedAt = p.CreatedAt.Add(300 * time.Nanosecond)
			require.NoError(t, h.Persons.AddPayor(t.Context(), in))
		}
		got, err := h.Persons.Payors(t.Context(), conformance.Team("a"))
		require.NoError(t, err)
		require.Equal(t, []people.StoredPayor{storedPayor("a", "1", noon), storedPayor("a", "3", noon), later}, got)
		none, err := h.Persons.Payors(t.Context(), conformance.Team("c"))
		require.NoError(t, err)
		require.Empty(t, none)
		require.ErrorIs(t, h.Persons.AddPayor(t.Context(), storedPayor("a", "1", noon)), healthlab.Conflict)
	},
	"Erase": func(t *testing.T, h StoreHarness) {
		h.addCoverages(t, "a", "ana", "1")
		h.addCoverages(t, "a", "bo", "2")
		h.addCoverages(t, "b", "ana", "3")
		healthdatatest.AddErasedUser(t, h.Users, conformance.Team("a"), conformance.User("ana"))
		_, err := h.Persons.UserInfo(t.Context(), conformance.Team("a"), conformance.User("ana"))
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = h.Persons.Coverage(t.Context(), conformance.Team("a"), conformance.Named("coverage 1"))
		require.ErrorIs(t, err, healthlab.NotFound)
		for _, of := range []struct{ team, user string }{{"a", "bo"}, {"b", "ana"}} {
			_, err := h.latest(t, of.team, of.user, true)
			require.NoError(t, err)
			_, err = h.Persons.UserInfo(t.Context(), conformance.Team(of.team), conformance.User(of.user))
			require.NoError(t, err)
		}
	},
	"Delete": func(t *testing.T, h StoreHarness) {
		h.addCoverages(t, "a", "ana", "1")
		team, ana := conformance.Team("a"), conformance.User("ana")
		found := func() []error {
			_, info := h.Persons.UserInfo(t.Context(), team, ana)
			_, byID := h.Persons.Coverage(t.Context(), team, conformance.Named("coverage 1"))
			_, latest := h.latest(t, "a", "ana", true)
			return []error{info, byID, latest}
		}
		healthdatatest.AddUser(t, h.Users, team, ana)
		healthdatatest.DeleteUser(t, h.Users, team, ana)
		for _, err := range found() {
			require.ErrorIs(t, err, healthlab.NotFound)
		}
		healthdatatest.RestoreUser(t, h.Users, team, ana)
		for _, err := range found() {
			require.NoError(t, err)
		}
	},
	"ContextEnded": func(t *testing.T, h StoreHarness) {
		h.addCoverages(t, "a", "ana")
		ended, end := context.WithCancel(t.Context())
		end()
		require.ErrorIs(t, h.Persons.PutUserInfo(ended, conformance.Team("a"), conformance.User("ana"), userInfo("Eva")), context.Canceled)
		require.ErrorIs(t, h.Persons.AddCoverage(ended, coverage("a", "ana", "1", noon)), context.Canceled)
		require.ErrorIs(t, h.Persons.AddPayor(ended, storedPayor("a", "1", noon)), context.Canceled)
		_, err := h.Persons.UserInfo(ended, conformance.Team("a"), conformance.User("ana"))
		require.ErrorIs(t, err, context.Canceled)
		_, err = h.Persons.Coverage(ended, conformance.Team("a"), uuid.Nil)
		require.ErrorIs(t, err, context.Canceled)
		_, err = h.Persons.Payors(ended, conformance.Team("a"))
		require.ErrorIs(t, err, context.Canceled)
		got, err := h.Persons.UserInfo(t.Context(), conformance.Team("a"), conformance.User("ana"))
		require.NoError(t, err)
		require.Equal(t, "Ana", got.FirstName)
		_, err = h.latest(t, "a", "ana", true)
		require.ErrorIs(t, err, healthlab.NotFound)
	},
}

// noon is the time of creation of most records in the tests.
var noon = time.Date(2026, 3, 2, 12, 0, 0, 123456000, time.UTC)
