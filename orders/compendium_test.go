package orders_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// newCompendium is the service of the sandbox's catalogue, with procedure codes.
func newCompendium(t *testing.T, on bool) (*orders.Service, healthlab.TeamID) {
	book, err := sandbox.Catalogue()
	require.NoError(t, err)
	registry, err := people.NewRegistry(people.RegistryContents{Markers: []catalogue.MarkerFacts{
		{Lab: "northlab", ProviderID: "N002", CPTCodes: []string{"C2"}, Popularity: 0.9}, {Lab: "southlab", ProviderID: "S002", CPTCodes: []string{"C2"}, Popularity: 0.5},
	}})
	require.NoError(t, err)
	store := memory.New(nil)
	s, err := orders.New(store.Orders(), people.UsersFunc(func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil }), book,
		&orders.Options{Environment: healthlab.Production, Registry: registry, Settings: func(context.Context, healthlab.TeamID) (orders.Settings, error) {
			return orders.Settings{CompendiumTools: on}, nil
		}})
	require.NoError(t, err)
	return s, healthlab.TeamID{UUID: id("team")}
}

func TestCompendium_searchFindsMarkersAndTheirCrosswalk(t *testing.T) {
	s, team := newCompendium(t, true)
	found, err := s.Catalogue().SearchCompendium(t.Context(), team, catalogue.CompendiumRequest{Mode: catalogue.SearchCanonical, Query: ptr("hba1c")})
	require.NoError(t, err)
	require.Equal(t, "Hemoglobin A1c", found.SelectedCanonical.DisplayName)
	require.Equal(t, []string{"N002", "S002"}, found.SelectedCanonical.ProviderIDs, "one thing, at two labs")
	require.Equal(t, []string{"C2"}, found.SelectedCanonical.CPTCodes)
	require.Equal(t, *found.SelectedCanonical, found.CanonicalCandidates[0])
	require.LessOrEqual(t, len(found.CanonicalCandidates), 3)
	require.Empty(t, found.PerLab)
	hash := found.SelectedCanonical.LOINCSetHash

	cross, err := s.Catalogue().SearchCompendium(t.Context(), team, catalogue.CompendiumRequest{Mode: catalogue.SearchCrosswalk, LOINCSetHash: &hash})
	require.NoError(t, err)
	require.Len(t, cross.CanonicalCandidates, 1)
	require.Equal(t, "N002", *cross.PerLab["northlab"][0].ProviderID)
	require.Equal(t, catalogue.RelationExact, cross.PerLab["southlab"][0].Relation)
	require.Equal(t, []string{"EXACT_LOINC_SET"}, cross.PerLab["southlab"][0].ReasonCodes)
	cross, err = s.Catalogue().SearchCompendium(t.Context(), team, catalogue.CompendiumRequest{Mode: catalogue.SearchCrosswalk, Query: ptr("glucose"), Labs: []string{"southlab"}})
	require.NoError(t, err)
	require.NotContains(t, cross.PerLab, "northlab")
	require.Contains(t, cross.PerLab, "southlab")

	none, err := s.Catalogue().SearchCompendium(t.Context(), team, catalogue.CompendiumRequest{Mode: catalogue.SearchCrosswalk, LOINCSetHash: ptr("unknown")})
	require.NoError(t, err)
	require.Nil(t, none.SelectedCanonical)
	require.Empty(t, none.CanonicalCandidates)
	narrowed, err := s.Catalogue().SearchCompendium(t.Context(), team, catalogue.CompendiumRequest{Mode: catalogue.SearchCanonical, Query: ptr("glucose"), CPTCodes: []string{"C2"}})
	require.NoError(t, err)
	require.Nil(t, narrowed.SelectedCanonical)

	for name, req := range map[string]catalogue.CompendiumRequest{
		"mode":       {Mode: "x", Query: ptr("a")},
		"no query":   {Mode: catalogue.SearchCanonical},
		"hash":       {Mode: catalogue.SearchCanonical, Query: ptr("a"), LOINCSetHash: &hash},
		"neither":    {Mode: catalogue.SearchCrosswalk},
		"both":       {Mode: catalogue.SearchCrosswalk, Query: ptr("a"), LOINCSetHash: &hash},
		"limit":      {Mode: catalogue.SearchCanonical, Query: ptr("a"), Limit: ptr(11)},
		"limit of 0": {Mode: catalogue.SearchCrosswalk, Query: ptr("a"), Limit: ptr(0)},
	} {
		_, err := s.Catalogue().SearchCompendium(t.Context(), team, req)
		require.ErrorIs(t, err, healthlab.Invalid, name)
	}
}

// newLabs is the service of a catalogue of three labs, 1 to 3.
func newLabs(t *testing.T, registry *people.Registry, markers ...catalogue.MarkerComplete) (*orders.Service, healthlab.TeamID) {
	catalogue, err := catalogue.NewStaticCatalog(catalogue.StaticCatalogContents{
		Labs: []catalogue.Lab{{ID: 1, Slug: "northlab"}, {ID: 2, Slug: "southlab"}, {ID: 3, Slug: "eastlab"}}, Markers: markers,
	})
	require.NoError(t, err)
	store := memory.New(nil)
	s, err := orders.New(store.Orders(), people.UsersFunc(func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil }), catalogue,
		&orders.Options{Environment: healthlab.Production, Registry: registry, Settings: func(context.Context, healthlab.TeamID) (orders.Settings, error) {
			return orders.Settings{CompendiumTools: true}, nil
		}})
	require.NoError(t, err)
	return s, healthlab.TeamID{UUID: id("team")}
}

// marker of a lab brings a result for each LOINC code.
func marker(id, lab int, name, code string, loinc ...string) catalogue.MarkerComplete {
	m := catalogue.MarkerComplete{Marker: catalogue.Marker{ID: id, LabID: &lab, Name: name, ProviderID: &code}}
	for _, c := range loinc {
		m.ExpectedResults = append(m.ExpectedResults, catalogue.ExpectedResult{LOINC: &catalogue.LOINC{Code: c, Name: c}})
	}
	return m
}

// A code of several labs means several things; the best match for any of them comes first.
func TestConvert_codeOfSeveralLabsGivesTheBestMatchFirst(t *testing.T) {
	s, team := newLabs(t, nil, marker(11, 1, "X", "X", "a", "b", "c"), marker(21, 2, "Y", "X", "c"),
		marker(31, 3, "P", "partly", "a", "z"), marker(32, 3, "E", "exactly", "c"), marker(33, 3, "W", "wholly", "a", "b", "c", "d"))
	got, err := s.Catalogue().Convert(t.Context(), team, catalogue.ConvertRequest{ProviderIDs: []string{"X"}, TargetLab: "eastlab"})
	require.NoError(t, err)
	require.Equal(t, []string{"exactly"}, got.ConvertedProviderIDs)
	var codes []string
	for _, k := range got.BySourceProviderID["X"].Candidates {
		codes = append(codes, *k.ProviderID)
	}
	require.Equal(t, []string{"exactly", "wholly", "partly"}, codes)
	require.Equal(t, catalogue.RelationExact, got.BySourceProviderID["X"].Candidates[0].Relation)
	found, err := s.Catalogue().SearchOrderable(t.Context(), team, catalogue.OrderableRequest{ProviderIDs: []string{"X"}, TargetLab: "eastlab"})
	require.NoError(t, err)
	require.Len(t, found["X"], 1)
	require.Equal(t, "exactly", *found["X"][0].ProviderID)
}

// A marker without a LOINC code is matched by its name. Names are not compared if both labs
// give codes.
func TestConvert_matchesMarkersWithoutLOINCByName(t *testing.T) {
	named := func(m catalogue.MarkerComplete, result string) catalogue.MarkerComplete {
		m.ExpectedResults = []catalogue.ExpectedResult{{Name: result}}
		return m
	}
	s, team := newLabs(t, nil, marker(11, 1, "Vitamin D, 25-Hydroxy", "N1", "a"), marker(12, 1, "Complete Blood Count", "N2"), named(marker(13, 1, "Iron studies", "N3"), "Ferritin"),
		marker(14, 1, "!", "N4"),
		marker(31, 3, "25-hydroxy vitamin D", "E1"), marker(32, 3, "Vitamin D 25 hydroxy", "E2", "a", "b"), marker(33, 3, "Vitamin D, 25-Hydroxy", "E3", "z"),
		marker(34, 3, "CBC", "E4", "c"), marker(35, 3, "ferritin", "E5", "f"), marker(36, 3, "Chloride Blood Capillary", "E6", "g"), marker(37, 3, "?", "E7"))
	got, err := s.Catalogue().Convert(t.Context(), team, catalogue.ConvertRequest{ProviderIDs: []string{"N1", "N2", "N3", "N4"}, TargetLab: "eastlab", Limit: ptr(20)})
	require.NoError(t, err)
	type candidate struct {
		code     string
		relation catalogue.CompendiumRelation
		reason   string
	}
	found := map[string][]candidate{}
	for source, of := range got.BySourceProviderID {
		for _, k := range of.Candidates {
			require.Positive(t, k.Confidence)
			require.Len(t, k.ReasonCodes, 1)
			found[source] = append(found[source], candidate{*k.ProviderID, k.Relation, k.ReasonCodes[0]})
		}
	}
	require.Equal(t, map[string][]candidate{
		"N1": {{"E2", catalogue.RelationSuperset, "SUPERSET"}, {"E1", catalogue.RelationSuggested, "NAME_MATCH"}},
		"N2": {{"E4", catalogue.RelationSuggested, "SYNONYM_MATCH"}},
		"N3": {{"E5", catalogue.RelationSuggested, "SYNONYM_MATCH"}},
	}, found)
	require.Equal(t, []string{"N4"}, got.UnresolvedProviderIDs)

	// Every name of a set counts.
	s, team = newLabs(t, nil, marker(11, 1, "Sodium", "N1", "a"), marker(21, 2, "Natrium", "S1", "a"), marker(31, 3, "natrium", "E1"))
	related, err := s.Catalogue().SearchCompendium(t.Context(), team, catalogue.CompendiumRequest{Mode: catalogue.SearchCrosswalk, Query: ptr("E1")})
	require.NoError(t, err)
	require.Equal(t, []string{"E1"}, related.SelectedCanonical.ProviderIDs)
	require.Len(t, related.Related, 1)
	require.Equal(t, []string{"N1", "S1"}, related.Related[0].Canonical.ProviderIDs)
	require.Equal(t, []string{"NAME_MATCH"}, related.Related[0].ReasonCodes)
}

func TestCrosswalk_suggestsMarkersOfTheSameName(t *testing.T) {
	iron := marker(13, 1, "Iron studies", "N3")
	iron.ExpectedResults = []catalogue.ExpectedResult{{Name: "Ferritin"}}
	s, team := newLabs(t, nil, iron, marker(35, 3, "ferritin", "E5", "f"))
	cross, err := s.Catalogue().SearchCompendium(t.Context(), team, catalogue.CompendiumRequest{Mode: catalogue.SearchCrosswalk, Query: ptr("ferritin")})
	require.NoError(t, err)
	require.Equal(t, "N3", *cross.PerLab["northlab"][0].ProviderID)
	require.Equal(t, []string{"SYNONYM_MATCH"}, cross.PerLab["northlab"][0].ReasonCodes)
	require.Equal(t, catalogue.RelationSuggested, cross.Related[0].Relation)
	require.Equal(t, []string{"N3"}, cross.Related[0].Canonical.ProviderIDs)
}

// A marker that is requested by name and procedure is found even if many other markers have
// that name.
func TestCompendium_findsAMarkerByProcedureAmongManyOfOneName(t *testing.T) {
	var markers []catalogue.MarkerComplete
	for i := range 150 {
		markers = append(markers, marker(1000+i, 1, fmt.Sprintf("Panel %03d", i), fmt.Sprintf("N%d", i), fmt.Sprintf("c%d", i)))
	}
	registry, err := people.NewRegistry(people.RegistryContents{Markers: []catalogue.MarkerFacts{
		{Lab: "northlab", ProviderID: "N3", CPTCodes: []string{"C1"}}, {Lab: "northlab", ProviderID: "N147", CPTCodes: []string{"C2"}}}})
	require.NoError(t, err)
	s, team := newLabs(t, registry, markers...)
	for cpt, want := range map[string]string{"C1": "Panel 003", "C2": "Panel 147"} {
		found, err := s.Catalogue().SearchCompendium(t.Context(), team, catalogue.CompendiumRequest{Mode: catalogue.SearchCanonical, Query: ptr("panel"), CPTCodes: []string{cpt}})
		require.NoError(t, err)
		require.NotNil(t, found.SelectedCanonical, cpt)
		require.Equal(t, want, found.SelectedCanonical.DisplayName)
	}
}

func TestConvert_returnsCodesOfTheTargetLab(t *testing.T) {
	s, team := newCompendium(t, true)
	got, err := s.Catalogue().Convert(t.Context(), team, catalogue.ConvertRequest{ProviderIDs: []string{"N002", "N007", "nothing"}, TargetLab: "southlab"})
	require.NoError(t, err)
	require.Equal(t, "S002", got.ConvertedProviderIDs[0])
	require.Contains(t, got.UnresolvedProviderIDs, "nothing")
	require.Equal(t, "N002", got.BySourceProviderID["N002"].SourceProviderID)
	page, err := s.Catalogue().LabTests(t.Context(), nil, catalogue.LabTestQuery{Team: team, Limit: 1})
	require.NoError(t, err)
	test := page.Tests[0]
	got, err = s.Catalogue().Convert(t.Context(), team, catalogue.ConvertRequest{LabTestID: &test.ID, TargetLab: "southlab"})
	require.NoError(t, err)
	require.Equal(t, test.Lab.ID, *got.SourceLabID)
	require.Len(t, got.SourceProviderIDs, len(test.Markers))
	require.Len(t, got.BySourceProviderID, len(test.Markers))

	orderable, err := s.Catalogue().SearchOrderable(t.Context(), team, catalogue.OrderableRequest{ProviderIDs: []string{"N002", "nothing"}, TargetLab: "southlab"})
	require.NoError(t, err)
	require.Len(t, orderable["N002"], 1)
	require.Empty(t, orderable["nothing"])

	for name, req := range map[string]catalogue.ConvertRequest{
		"neither": {TargetLab: "southlab"}, "both": {LabTestID: &test.ID, ProviderIDs: []string{"N002"}, TargetLab: "southlab"},
		"lab": {ProviderIDs: []string{"N002"}, TargetLab: "x"}, "limit": {ProviderIDs: []string{"N002"}, TargetLab: "southlab", Limit: ptr(21)},
	} {
		_, err := s.Catalogue().Convert(t.Context(), team, req)
		require.ErrorIs(t, err, healthlab.Invalid, name)
	}
	_, err = s.Catalogue().SearchOrderable(t.Context(), team, catalogue.OrderableRequest{ProviderIDs: make([]string, 101), TargetLab: "southlab"})
	require.ErrorIs(t, err, healthlab.Invalid)
	off, team := newCompendium(t, false)
	_, err = off.Catalogue().Convert(t.Context(), team, catalogue.ConvertRequest{ProviderIDs: []string{"N002"}, TargetLab: "southlab"})
	requireRule(t, err, catalogue.FeatureNotEnabled, healthlab.Forbidden)
}
