package cataloguetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// RunLabTestStore runs the contract tests of [catalogue.LabTestStore]. newStore returns a new, empty store for each
// case.
func RunLabTestStore(t *testing.T, newStore func(t testing.TB) catalogue.LabTestStore) {
	for name, run := range conformance.Sorted(labTestCases) {
		t.Run(name, func(t *testing.T) { run(t, newStore(t)) })
	}
}

// labTest returns a lab test in which every field is set.
func labTest(team, name string) catalogue.TeamTest {
	return catalogue.TeamTest{
		ID: catalogue.LabTestID{UUID: uuid.NewSHA1(uuid.Nil, []byte(team+name))}, Team: conformance.Team(team), Slug: "slug-" + name, Name: name, Description: "of " + name,
		Method: catalogue.WalkInTest, SampleType: catalogue.Serum, Fasting: true, Status: catalogue.LabTestActive, LabID: 7, MarkerIDs: []int{3, 1, 2},
		Auto: true, Price: price("39.50"), CreatedAt: noon, UpdatedAt: noon.Add(time.Minute),
	}
}

func price(text string) *catalogue.Number {
	n, err := catalogue.ParseNumber(text)
	if err != nil {
		panic(err)
	}
	return &n
}

var labTestCases = map[string]func(*testing.T, catalogue.LabTestStore){
	"RoundTrip": func(t *testing.T, s catalogue.LabTestStore) {
		want := labTest("a", "iron")
		in := want
		in.MarkerIDs = []int{3, 1, 2}
		in.CreatedAt = want.CreatedAt.In(time.FixedZone("", 3600)).Add(400 * time.Nanosecond)
		require.NoError(t, s.InsertLabTest(t.Context(), in))
		in.MarkerIDs[0] = 99
		got, err := s.TeamTests(t.Context(), want.Team, catalogue.TeamTestQuery{})
		require.NoError(t, err)
		require.Equal(t, []catalogue.TeamTest{want}, got)
		got[0].MarkerIDs[0] = 99
		again, err := s.TeamTests(t.Context(), want.Team, catalogue.TeamTestQuery{})
		require.NoError(t, err)
		require.Equal(t, []catalogue.TeamTest{want}, again)
	},
	"Duplicate": func(t *testing.T, s catalogue.LabTestStore) {
		one := labTest("a", "iron")
		require.NoError(t, s.InsertLabTest(t.Context(), one))
		require.ErrorIs(t, s.InsertLabTest(t.Context(), one), healthlab.Conflict)
		other := labTest("b", "iron")
		other.ID = one.ID
		require.ErrorIs(t, s.InsertLabTest(t.Context(), other), healthlab.Conflict)
	},
	"NULRefused": func(t *testing.T, s catalogue.LabTestStore) {
		want := labTest("a", "iron")
		bad := want
		bad.Description = "a\x00b"
		require.ErrorIs(t, s.InsertLabTest(t.Context(), bad), healthlab.Invalid)
		require.NoError(t, s.InsertLabTest(t.Context(), want), "nothing was written")
		_, err := s.UpdateLabTest(t.Context(), want.Team, want.ID, func(t *catalogue.TeamTest) error {
			t.Name = "a\x00b"
			return nil
		})
		require.ErrorIs(t, err, healthlab.Invalid)
		got, err := s.TeamTests(t.Context(), want.Team, catalogue.TeamTestQuery{})
		require.NoError(t, err)
		require.Equal(t, []catalogue.TeamTest{want}, got)
	},
	"Order": func(t *testing.T, s catalogue.LabTestStore) {
		third, tied, first := labTest("a", "third"), labTest("a", "tied"), labTest("a", "first")
		first.CreatedAt = noon.Add(-time.Microsecond)
		for _, one := range []catalogue.TeamTest{third, tied, first, labTest("b", "other")} {
			require.NoError(t, s.InsertLabTest(t.Context(), one))
		}
		if tied.ID.String() > third.ID.String() {
			third, tied = tied, third
		}
		got, err := s.TeamTests(t.Context(), conformance.Team("a"), catalogue.TeamTestQuery{})
		require.NoError(t, err)
		require.Equal(t, []catalogue.TeamTest{first, tied, third}, got)
		none, err := s.TeamTests(t.Context(), conformance.Team("c"), catalogue.TeamTestQuery{})
		require.NoError(t, err)
		require.Empty(t, none)
	},
	"Asked": func(t *testing.T, s catalogue.LabTestStore) {
		built, made, other := labTest("a", "built"), labTest("a", "made"), labTest("b", "other")
		made.Auto, made.Price, made.CreatedAt = false, nil, noon.Add(time.Hour)
		for _, one := range []catalogue.TeamTest{built, made, other} {
			require.NoError(t, s.InsertLabTest(t.Context(), one))
		}
		for name, c := range conformance.Sorted(map[string]struct {
			q    catalogue.TeamTestQuery
			want []catalogue.TeamTest
		}{
			"all":                    {catalogue.TeamTestQuery{Generation: catalogue.GeneratedAll}, []catalogue.TeamTest{built, made}},
			"automatic":              {catalogue.TeamTestQuery{Generation: catalogue.GeneratedAuto}, []catalogue.TeamTest{built}},
			"manual":                 {catalogue.TeamTestQuery{Generation: catalogue.GeneratedManual}, []catalogue.TeamTest{made}},
			"ids, one of a stranger": {catalogue.TeamTestQuery{IDs: []catalogue.LabTestID{made.ID, other.ID}}, []catalogue.TeamTest{made}},
			"ids, automatic":         {catalogue.TeamTestQuery{IDs: []catalogue.LabTestID{made.ID, built.ID}, Generation: catalogue.GeneratedAuto}, []catalogue.TeamTest{built}},
			"no ids":                 {catalogue.TeamTestQuery{IDs: []catalogue.LabTestID{}}, nil},
		}) {
			t.Run(name, func(t *testing.T) {
				got, err := s.TeamTests(t.Context(), conformance.Team("a"), c.q)
				require.NoError(t, err)
				require.Equal(t, c.want, got)
			})
		}
	},
	"Update": func(t *testing.T, s catalogue.LabTestStore) {
		want := labTest("a", "iron")
		require.NoError(t, s.InsertLabTest(t.Context(), want))
		got, err := s.UpdateLabTest(t.Context(), want.Team, want.ID, func(t *catalogue.TeamTest) error {
			t.Name, t.Status, t.UpdatedAt = "iron 2", catalogue.LabTestInactive, noon.Add(time.Hour)
			t.ID, t.Team = labTest("b", "other").ID, conformance.Team("b") // the store must ignore these changes
			return nil
		})
		require.NoError(t, err)
		want.Name, want.Status, want.UpdatedAt = "iron 2", catalogue.LabTestInactive, noon.Add(time.Hour)
		require.Equal(t, want, got)
		refused := errors.New("no")
		_, err = s.UpdateLabTest(t.Context(), want.Team, want.ID, func(t *catalogue.TeamTest) error {
			t.Name, t.MarkerIDs[0] = "iron 3", 99
			return refused
		})
		require.ErrorIs(t, err, refused)
		nothing := func(*catalogue.TeamTest) error { return nil }
		_, err = s.UpdateLabTest(t.Context(), conformance.Team("b"), want.ID, nothing)
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = s.UpdateLabTest(t.Context(), want.Team, labTest("a", "other").ID, nothing)
		require.ErrorIs(t, err, healthlab.NotFound)
		all, err := s.TeamTests(t.Context(), want.Team, catalogue.TeamTestQuery{})
		require.NoError(t, err)
		require.Equal(t, []catalogue.TeamTest{want}, all)
	},
	"NoLostUpdates": func(t *testing.T, s catalogue.LabTestStore) {
		one := labTest("a", "iron")
		require.NoError(t, s.InsertLabTest(t.Context(), one))
		var wait sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			wait.Go(func() {
				_, errs[i] = s.UpdateLabTest(t.Context(), one.Team, one.ID, func(t *catalogue.TeamTest) error {
					t.LabID++
					return nil
				})
			})
		}
		wait.Wait()
		require.NoError(t, errors.Join(errs...))
		got, err := s.TeamTests(t.Context(), one.Team, catalogue.TeamTestQuery{})
		require.NoError(t, err)
		require.Equal(t, one.LabID+16, got[0].LabID)
	},
	"Context": func(t *testing.T, s catalogue.LabTestStore) {
		ended, end := context.WithCancel(t.Context())
		end()
		one := labTest("a", "iron")
		require.ErrorIs(t, s.InsertLabTest(ended, one), context.Canceled)
		_, err := s.TeamTests(ended, one.Team, catalogue.TeamTestQuery{})
		require.ErrorIs(t, err, context.Canceled)
		_, err = s.UpdateLabTest(ended, one.Team, one.ID, func(*catalogue.TeamTest) error { return nil })
		require.ErrorIs(t, err, context.Canceled)
		got, err := s.TeamTests(t.Context(), one.Team, catalogue.TeamTestQuery{})
		require.NoError(t, err)
		require.Empty(t, got)
	},
}

// noon is the time of creation of most lab tests in these tests.
var noon = time.Date(2026, 3, 2, 12, 0, 0, 123456000, time.UTC)
