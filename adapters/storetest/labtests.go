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
	"github.com/healthlab-dev/healthlab/orders"
)

// RunLabTests runs the contract of [orders.LabTestStore]. newStore returns a fresh,
// empty one.
func RunLabTests(t *testing.T, newStore func(t testing.TB) orders.LabTestStore) {
	for name, run := range labTestCases {
		t.Run(name, func(t *testing.T) { run(t, newStore(t)) })
	}
}

// labTest is a lab test with no field at its zero value.
func labTest(team, name string) orders.TeamTest {
	return orders.TeamTest{
		ID: orders.LabTestID{UUID: uuid.NewSHA1(uuid.Nil, []byte(team+name))}, Team: orderTeam(team), Slug: "slug-" + name, Name: name, Description: "of " + name,
		Method: orders.WalkInTest, SampleType: orders.Serum, Fasting: true, Status: orders.LabTestActive, LabID: 7, MarkerIDs: []int{3, 1, 2},
		Auto: true, Price: price("39.50"), CreatedAt: orderNoon, UpdatedAt: orderNoon.Add(time.Minute),
	}
}

func price(text string) *orders.Number {
	n, err := orders.ParseNumber(text)
	if err != nil {
		panic(err)
	}
	return &n
}

var labTestCases = map[string]func(*testing.T, orders.LabTestStore){
	"RoundTrip": func(t *testing.T, s orders.LabTestStore) {
		want := labTest("a", "iron")
		in := want
		in.MarkerIDs = []int{3, 1, 2}
		in.CreatedAt = want.CreatedAt.In(time.FixedZone("", 3600)).Add(400 * time.Nanosecond)
		require.NoError(t, s.InsertLabTest(t.Context(), in))
		in.MarkerIDs[0] = 99
		got, err := s.TeamTests(t.Context(), want.Team, orders.TeamTestQuery{})
		require.NoError(t, err)
		require.Equal(t, []orders.TeamTest{want}, got)
		got[0].MarkerIDs[0] = 99
		again, err := s.TeamTests(t.Context(), want.Team, orders.TeamTestQuery{})
		require.NoError(t, err)
		require.Equal(t, []orders.TeamTest{want}, again)
	},
	"Duplicate": func(t *testing.T, s orders.LabTestStore) {
		one := labTest("a", "iron")
		require.NoError(t, s.InsertLabTest(t.Context(), one))
		require.ErrorIs(t, s.InsertLabTest(t.Context(), one), healthlab.Conflict)
		other := labTest("b", "iron")
		other.ID = one.ID
		require.ErrorIs(t, s.InsertLabTest(t.Context(), other), healthlab.Conflict)
	},
	"NULRefused": func(t *testing.T, s orders.LabTestStore) {
		want := labTest("a", "iron")
		bad := want
		bad.Description = "a\x00b"
		require.ErrorIs(t, s.InsertLabTest(t.Context(), bad), healthlab.Invalid)
		require.NoError(t, s.InsertLabTest(t.Context(), want), "nothing was written")
		_, err := s.UpdateLabTest(t.Context(), want.Team, want.ID, func(t *orders.TeamTest) error {
			t.Name = "a\x00b"
			return nil
		})
		require.ErrorIs(t, err, healthlab.Invalid)
		got, err := s.TeamTests(t.Context(), want.Team, orders.TeamTestQuery{})
		require.NoError(t, err)
		require.Equal(t, []orders.TeamTest{want}, got)
	},
	"Order": func(t *testing.T, s orders.LabTestStore) {
		third, tied, first := labTest("a", "third"), labTest("a", "tied"), labTest("a", "first")
		first.CreatedAt = orderNoon.Add(-time.Microsecond)
		for _, one := range []orders.TeamTest{third, tied, first, labTest("b", "other")} {
			require.NoError(t, s.InsertLabTest(t.Context(), one))
		}
		if tied.ID.String() > third.ID.String() {
			third, tied = tied, third
		}
		got, err := s.TeamTests(t.Context(), orderTeam("a"), orders.TeamTestQuery{})
		require.NoError(t, err)
		require.Equal(t, []orders.TeamTest{first, tied, third}, got)
		none, err := s.TeamTests(t.Context(), orderTeam("c"), orders.TeamTestQuery{})
		require.NoError(t, err)
		require.Empty(t, none)
	},
	"Asked": func(t *testing.T, s orders.LabTestStore) {
		built, made, other := labTest("a", "built"), labTest("a", "made"), labTest("b", "other")
		made.Auto, made.Price, made.CreatedAt = false, nil, orderNoon.Add(time.Hour)
		for _, one := range []orders.TeamTest{built, made, other} {
			require.NoError(t, s.InsertLabTest(t.Context(), one))
		}
		for _, c := range []struct {
			q    orders.TeamTestQuery
			want []orders.TeamTest
		}{
			{orders.TeamTestQuery{Generation: orders.GeneratedAll}, []orders.TeamTest{built, made}},
			{orders.TeamTestQuery{Generation: orders.GeneratedAuto}, []orders.TeamTest{built}},
			{orders.TeamTestQuery{Generation: orders.GeneratedManual}, []orders.TeamTest{made}},
			{orders.TeamTestQuery{IDs: []orders.LabTestID{made.ID, other.ID}}, []orders.TeamTest{made}},
			{orders.TeamTestQuery{IDs: []orders.LabTestID{made.ID, built.ID}, Generation: orders.GeneratedAuto}, []orders.TeamTest{built}},
			{orders.TeamTestQuery{IDs: []orders.LabTestID{}}, nil},
		} {
			got, err := s.TeamTests(t.Context(), orderTeam("a"), c.q)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		}
	},
	"Update": func(t *testing.T, s orders.LabTestStore) {
		want := labTest("a", "iron")
		require.NoError(t, s.InsertLabTest(t.Context(), want))
		got, err := s.UpdateLabTest(t.Context(), want.Team, want.ID, func(t *orders.TeamTest) error {
			t.Name, t.Status, t.UpdatedAt = "iron 2", orders.LabTestInactive, orderNoon.Add(time.Hour)
			t.ID, t.Team = labTest("b", "other").ID, orderTeam("b") // are not its to change
			return nil
		})
		require.NoError(t, err)
		want.Name, want.Status, want.UpdatedAt = "iron 2", orders.LabTestInactive, orderNoon.Add(time.Hour)
		require.Equal(t, want, got)
		refused := errors.New("no")
		_, err = s.UpdateLabTest(t.Context(), want.Team, want.ID, func(t *orders.TeamTest) error {
			t.Name, t.MarkerIDs[0] = "iron 3", 99
			return refused
		})
		require.ErrorIs(t, err, refused)
		nothing := func(*orders.TeamTest) error { return nil }
		_, err = s.UpdateLabTest(t.Context(), orderTeam("b"), want.ID, nothing)
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = s.UpdateLabTest(t.Context(), want.Team, labTest("a", "other").ID, nothing)
		require.ErrorIs(t, err, healthlab.NotFound)
		all, err := s.TeamTests(t.Context(), want.Team, orders.TeamTestQuery{})
		require.NoError(t, err)
		require.Equal(t, []orders.TeamTest{want}, all)
	},
	"NoLostUpdates": func(t *testing.T, s orders.LabTestStore) {
		one := labTest("a", "iron")
		require.NoError(t, s.InsertLabTest(t.Context(), one))
		var wait sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			wait.Go(func() {
				_, errs[i] = s.UpdateLabTest(t.Context(), one.Team, one.ID, func(t *orders.TeamTest) error {
					t.LabID++
					return nil
				})
			})
		}
		wait.Wait()
		require.NoError(t, errors.Join(errs...))
		got, err := s.TeamTests(t.Context(), one.Team, orders.TeamTestQuery{})
		require.NoError(t, err)
		require.Equal(t, one.LabID+16, got[0].LabID)
	},
	"Context": func(t *testing.T, s orders.LabTestStore) {
		ended, end := context.WithCancel(t.Context())
		end()
		one := labTest("a", "iron")
		require.ErrorIs(t, s.InsertLabTest(ended, one), context.Canceled)
		_, err := s.TeamTests(ended, one.Team, orders.TeamTestQuery{})
		require.ErrorIs(t, err, context.Canceled)
		_, err = s.UpdateLabTest(ended, one.Team, one.ID, func(*orders.TeamTest) error { return nil })
		require.ErrorIs(t, err, context.Canceled)
		got, err := s.TeamTests(t.Context(), one.Team, orders.TeamTestQuery{})
		require.NoError(t, err)
		require.Empty(t, got)
	},
}
