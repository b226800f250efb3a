package orders_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/orders"
)

// newCompendium is the service of the sandbox's catalogue, with procedure codes.
func newCompendium(t *testing.T, on bool) (*orders.Service, healthlab.TeamID) {
	book, err := sandbox.Catalogue()
	require.NoError(t, err)
	registry, err := orders.NewRegistry(orders.RegistryContents{Markers: []orders.MarkerFacts{
		{Lab: "northlab", ProviderID: "N002", CPTCodes: []string{"C2"}, Popularity: 0.9}, {Lab: "southlab", ProviderID: "S002", CPTCodes: []string{"C2"}, Popularity: 0.5},
	}})
	require.NoError(t, err)
	store := memory.New(nil)
	s, err := orders.New(store.Orders(), orders.UsersFunc(func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil }), book,
		sandbox.NewLab(nil), &orders.Options{Registry: registry, Settings: func(context.Context, healthlab.TeamID) (orders.Settings, error) {
			return orders.Settings{CompendiumTools: on}, nil
		}})
	require.NoError(t, err)
	return s, healthlab.TeamID{UUID: id("team")}
}

func TestCompendium(t *testing.T) {
	s, team := newCompendium(t, true)
	found, err := s.SearchCompendium(t.Context(), team, orders.CompendiumRequest{Mode: orders.SearchCanonical, Query: ptr("hba1c")})
	require.NoError(t, err)
	require.Equal(t, "Hemoglobin A1c", found.SelectedCanonical.DisplayName)
	require.Equal(t, []string{"N002", "S002"}, found.SelectedCanonical.ProviderIDs, "one thing, at two labs")
	require.Equal(t, []string{"C2"}, found.SelectedCanonical.CPTCodes)
	require.Equal(t, *found.SelectedCanonical, found.CanonicalCandidates[0])
	require.LessOrEqual(t, len(found.CanonicalCandidates), 3)
	require.Empty(t, found.PerLab)
	hash := found.SelectedCanonical.LOINCSetHash

	cross, err := s.SearchCompendium(t.Context(), team, orders.CompendiumRequest{Mode: orders.SearchCrosswalk, LOINCSetHash: &hash})
	require.NoError(t, err)
	require.Len(t, cross.CanonicalCandidates, 1)
	require.Equal(t, "N002", *cross.PerLab["northlab"][0].ProviderID)
	require.Equal(t, orders.RelationExact, cross.PerLab["southlab"][0].Relation)
	require.Equal(t, []string{"EXACT_LOINC_SET"}, cross.PerLab["southlab"][0].ReasonCodes)
	cross, err = s.SearchCompendium(t.Context(), team, orders.CompendiumRequest{Mode: orders.SearchCrosswalk, Query: ptr("glucose"), Labs: []string{"southlab"}})
	require.NoError(t, err)
	require.NotContains(t, cross.PerLab, "northlab")
	require.Contains(t, cross.PerLab, "southlab")

	none, err := s.SearchCompendium(t.Context(), team, orders.CompendiumRequest{Mode: orders.SearchCrosswalk, LOINCSetHash: ptr("unknown")})
	require.NoError(t, err)
	require.Nil(t, none.SelectedCanonical)
	require.Empty(t, none.CanonicalCandidates)
	narrowed, err := s.SearchCompendium(t.Context(), team, orders.CompendiumRequest{Mode: orders.SearchCanonical, Query: ptr("glucose"), CPTCodes: []string{"C2"}})
	require.NoError(t, err)
	require.Nil(t, narrowed.SelectedCanonical)

	for name, req := range map[string]orders.CompendiumRequest{
		"mode":       {Mode: "x", Query: ptr("a")},
		"no query":   {Mode: orders.SearchCanonical},
		"hash":       {Mode: orders.SearchCanonical, Query: ptr("a"), LOINCSetHash: &hash},
		"neither":    {Mode: orders.SearchCrosswalk},
		"both":       {Mode: orders.SearchCrosswalk, Query: ptr("a"), LOINCSetHash: &hash},
		"limit":      {Mode: orders.SearchCanonical, Query: ptr("a"), Limit: ptr(11)},
		"limit of 0": {Mode: orders.SearchCrosswalk, Query: ptr("a"), Limit: ptr(0)},
	} {
		_, err := s.SearchCompendium(t.Context(), team, req)
		require.ErrorIs(t, err, healthlab.Invalid, name)
	}
}

// A code of several labs means several things; the best match for any of them comes first.
func TestConvertCodeOfSeveralLabs(t *testing.T) {
	marker := func(id, lab int, code string, loinc ...string) orders.MarkerComplete {
		m := orders.MarkerComplete{Marker: orders.Marker{ID: id, LabID: &lab, Name: code, ProviderID: &code}}
		for _, c := range loinc {
			m.ExpectedResults = append(m.ExpectedResults, orders.ExpectedResult{LOINC: &orders.LOINC{Code: c, Name: c}})
		}
		return m
	}
	catalogue, err := orders.NewBook(orders.BookContents{
		Labs: []orders.Lab{{ID: 1, Slug: "northlab"}, {ID: 2, Slug: "southlab"}, {ID: 3, Slug: "eastlab"}},
		Markers: []orders.MarkerComplete{
			marker(11, 1, "X", "a", "b", "c"), marker(21, 2, "X", "c"),
			marker(31, 3, "partly", "a", "z"), marker(32, 3, "exactly", "c"), marker(33, 3, "wholly", "a", "b", "c", "d"),
		},
	})
	require.NoError(t, err)
	s, err := orders.New(memory.New(nil).Orders(), orders.UsersFunc(func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil }), catalogue,
		sandbox.NewLab(nil), &orders.Options{Settings: func(context.Context, healthlab.TeamID) (orders.Settings, error) {
			return orders.Settings{CompendiumTools: true}, nil
		}})
	require.NoError(t, err)
	team := healthlab.TeamID{UUID: id("team")}
	got, err := s.Convert(t.Context(), team, orders.ConvertRequest{ProviderIDs: []string{"X"}, TargetLab: "eastlab"})
	require.NoError(t, err)
	require.Equal(t, []string{"exactly"}, got.ConvertedProviderIDs)
	var codes []string
	for _, k := range got.BySourceProviderID["X"].Candidates {
		codes = append(codes, *k.ProviderID)
	}
	require.Equal(t, []string{"exactly", "wholly", "partly"}, codes)
	require.Equal(t, orders.RelationExact, got.BySourceProviderID["X"].Candidates[0].Relation)
	found, err := s.SearchOrderable(t.Context(), team, orders.OrderableRequest{ProviderIDs: []string{"X"}, TargetLab: "eastlab"})
	require.NoError(t, err)
	require.Len(t, found["X"], 1)
	require.Equal(t, "exactly", *found["X"][0].ProviderID)
}

func TestConvert(t *testing.T) {
	s, team := newCompendium(t, true)
	got, err := s.Convert(t.Context(), team, orders.ConvertRequest{ProviderIDs: []string{"N002", "N007", "nothing"}, TargetLab: "southlab"})
	require.NoError(t, err)
	require.Equal(t, "S002", got.ConvertedProviderIDs[0])
	require.Contains(t, got.UnresolvedProviderIDs, "nothing")
	require.Equal(t, "N002", got.BySourceProviderID["N002"].SourceProviderID)
	page, err := s.LabTests(t.Context(), nil, orders.LabTestQuery{Team: team, Limit: 1})
	require.NoError(t, err)
	test := page.Tests[0]
	got, err = s.Convert(t.Context(), team, orders.ConvertRequest{LabTestID: &test.ID, TargetLab: "southlab"})
	require.NoError(t, err)
	require.Equal(t, test.Lab.ID, *got.SourceLabID)
	require.Len(t, got.SourceProviderIDs, len(test.Markers))
	require.Len(t, got.BySourceProviderID, len(test.Markers))

	orderable, err := s.SearchOrderable(t.Context(), team, orders.OrderableRequest{ProviderIDs: []string{"N002", "nothing"}, TargetLab: "southlab"})
	require.NoError(t, err)
	require.Len(t, orderable["N002"], 1)
	require.Empty(t, orderable["nothing"])

	for name, req := range map[string]orders.ConvertRequest{
		"neither": {TargetLab: "southlab"}, "both": {LabTestID: &test.ID, ProviderIDs: []string{"N002"}, TargetLab: "southlab"},
		"lab": {ProviderIDs: []string{"N002"}, TargetLab: "x"}, "limit": {ProviderIDs: []string{"N002"}, TargetLab: "southlab", Limit: ptr(21)},
	} {
		_, err := s.Convert(t.Context(), team, req)
		require.ErrorIs(t, err, healthlab.Invalid, name)
	}
	_, err = s.SearchOrderable(t.Context(), team, orders.OrderableRequest{ProviderIDs: make([]string, 101), TargetLab: "southlab"})
	require.ErrorIs(t, err, healthlab.Invalid)
	off, team := newCompendium(t, false)
	_, err = off.Convert(t.Context(), team, orders.ConvertRequest{ProviderIDs: []string{"N002"}, TargetLab: "southlab"})
	requireRule(t, err, orders.FeatureNotEnabled, healthlab.Forbidden)
}
