package orders_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// bigBook is the catalogue of the example: an invented lab with 170 markers.
func bigBook(t testing.TB) *catalogue.StaticCatalog {
	t.Helper()
	f, err := os.Open("../examples/server/lab.json")
	require.NoError(t, err)
	defer f.Close()
	b, err := catalogue.ReadStaticCatalog(f)
	require.NoError(t, err)
	return b
}

func found(t testing.TB, b *catalogue.StaticCatalog, q catalogue.MarkerQuery) []string {
	t.Helper()
	page, err := b.FindMarkers(t.Context(), q)
	require.NoError(t, err)
	names := []string{}
	for _, m := range page.Markers {
		names = append(names, m.Name)
	}
	return names
}

// What people type, and what they mean.
func TestMarkerSearch_understandsAbbreviationsAndEverydayWords(t *testing.T) {
	b := bigBook(t)
	for _, row := range []struct{ typed, first string }{
		{"Creatinine", "Creatinine"},
		{"creatinin", "Creatinine"},
		{"cretinine", "Creatinine"},
		{"craetinine", "Creatinine"},
		{"kreatinine", "Creatinine"},
		{"NL1003", "Potassium"},
		{"2823-3", "Potassium"},
		{"TSH", "Thyrotropin"},
		{"thyrotropine", "Thyrotropin"},
		{"hba1c", "Hemoglobin A1c"},
		{"haemoglobin a1c", "Hemoglobin A1c"},
		{"hemoglbin a1c", "Hemoglobin A1c"},
		{"ALT", "Alanine aminotransferase"},
		{"sgot", "Aspartate aminotransferase"},
		{"aminotransferase alanine", "Alanine aminotransferase"},
		{"BUN", "Urea nitrogen"},
		{"psa", "Prostate specific Ag"},
		{"wbc", "Leukocytes"},
		{"feritin", "Ferritin"},
		{"potasium", "Potassium"},
	} {
		names := found(t, b, catalogue.MarkerQuery{Name: row.typed})
		require.NotEmpty(t, names, row.typed)
		require.Contains(t, names[0], row.first, "%s found %v", row.typed, names)
	}
	require.Empty(t, found(t, b, catalogue.MarkerQuery{Name: "zzzzqqq"}))
	require.Empty(t, found(t, b, catalogue.MarkerQuery{Name: "-.,"}))
}

// One letter that is missing, doubled or swapped in a word of six or more does not hide
// a marker.
func TestMarkerSearch_findsWordsWithOneTypingError(t *testing.T) {
	b := bigBook(t)
	all, err := b.FindMarkers(t.Context(), catalogue.MarkerQuery{Size: 100})
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(all.Markers).Draw(t, "marker")
		words := strings.Fields(strings.ToLower(m.Name))
		i := slices.IndexFunc(words, func(w string) bool {
			return len(w) >= 6 && strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") == ""
		})
		if i < 0 {
			return
		}
		w := []byte(words[i])
		at := rapid.IntRange(1, len(w)-2).Draw(t, "at")
		switch rapid.IntRange(0, 2).Draw(t, "error") {
		case 0:
			w = slices.Delete(w, at, at+1)
		case 1:
			w = slices.Insert(w, at, w[at])
		default:
			w[at], w[at+1] = w[at+1], w[at]
		}
		page, err := b.FindMarkers(t.Context(), catalogue.MarkerQuery{Name: string(w), Size: 100})
		if err != nil || !slices.ContainsFunc(page.Markers, func(have catalogue.MarkerComplete) bool { return have.ID == m.ID }) {
			t.Fatalf("%s does not find %s", w, m.Name)
		}
	})
}

func TestMarkerSearch_appliesEachFilter(t *testing.T) {
	two, yes, no := 2, true, false
	code := "P1"
	b, err := catalogue.NewStaticCatalog(catalogue.StaticCatalogContents{
		Labs: []catalogue.Lab{{ID: 2, Slug: "south"}, {ID: 1, Slug: "north"}},
		Markers: []catalogue.MarkerComplete{
			{Marker: catalogue.Marker{ID: 3, Name: "Iron", LabID: &two, ALaCarteEnabled: true, IsOrderable: &yes}},
			{Marker: catalogue.Marker{ID: 1, Name: "Ferritin", LabID: ptr(1), ProviderID: &code}},
			{Marker: catalogue.Marker{ID: 2, Name: "Iron binding", LabID: ptr(1), IsOrderable: &no}},
			{Marker: catalogue.Marker{ID: 4, Name: "IRON, total", LabID: ptr(1), ALaCarteEnabled: true}},
		},
	})
	require.NoError(t, err)
	for name, row := range map[string]struct {
		q    catalogue.MarkerQuery
		want []string
	}{
		"no reflex markers":      {catalogue.MarkerQuery{}, []string{"Ferritin", "Iron", "IRON, total"}},
		"reflex markers":         {catalogue.MarkerQuery{Reflex: true, Name: "binding"}, []string{"Iron binding"}},
		"part of a name":         {catalogue.MarkerQuery{Name: " iron "}, []string{"Iron", "IRON, total"}},
		"code":                   {catalogue.MarkerQuery{Name: "p1"}, []string{"Ferritin"}},
		"labs":                   {catalogue.MarkerQuery{Labs: []int{2, 9}}, []string{"Iron"}},
		"slug over labs":         {catalogue.MarkerQuery{Labs: []int{2}, LabSlug: "north"}, []string{"Ferritin", "IRON, total"}},
		"unknown slug":           {catalogue.MarkerQuery{LabSlug: "west"}, []string{}},
		"on their own":           {catalogue.MarkerQuery{ALaCarte: &yes}, []string{"Iron", "IRON, total"}},
		"not on their own":       {catalogue.MarkerQuery{ALaCarte: &no}, []string{"Ferritin"}},
		"ids":                    {catalogue.MarkerQuery{IDs: []int{4, 1, 2}}, []string{"Ferritin", "IRON, total"}},
		"no ids":                 {catalogue.MarkerQuery{IDs: []int{}}, []string{}},
		"second page":            {catalogue.MarkerQuery{Page: 2, Size: 2}, []string{"IRON, total"}},
		"past the end":           {catalogue.MarkerQuery{Page: 1 << 40, Size: 2}, []string{}},
		"close, but another lab": {catalogue.MarkerQuery{Name: "feritin", LabSlug: "south"}, []string{}},
	} {
		require.Equal(t, row.want, found(t, b, row.q), name)
	}
	said, err := b.Markers(t.Context(), []int{1, 2, 3}, nil)
	require.NoError(t, err)
	for i, want := range []bool{true, false, true} {
		require.Equal(t, &want, said[i].IsOrderable, "what says nothing can be ordered")
	}
	page, err := b.FindMarkers(t.Context(), catalogue.MarkerQuery{Page: 9, Size: 1})
	require.NoError(t, err)
	require.Equal(t, 3, page.Total)
	_, err = b.FindMarkers(t.Context(), catalogue.MarkerQuery{Page: -1, Size: 101})
	require.ErrorIs(t, err, healthlab.Invalid)
}

func TestStaticCatalog_returnsCopiesOfMarkers(t *testing.T) {
	b := bigBook(t)
	q := catalogue.MarkerQuery{IDs: []int{4}} // with questions
	before, err := b.FindMarkers(t.Context(), q)
	require.NoError(t, err)
	got, err := b.FindMarkers(t.Context(), q)
	require.NoError(t, err)
	m := &got.Markers[0]
	m.Name, *m.LabID, *m.ProviderID, *m.Type, *m.Unit = "edited", -1, "edited", "edited", "edited"
	*m.IsOrderable, *m.CommonTATDays, *m.WorstCaseTATDays = false, -1, -1
	m.AOE.Questions[0].Code, m.AOE.Questions[0].Answers[0].Code = "edited", "edited"
	r := &m.ExpectedResults[0]
	r.Name, *r.LabID, *r.ProviderID, r.LOINC.Code, *r.LOINC.Unit = "edited", -1, "edited", "edited", "edited"
	after, err := b.FindMarkers(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestLabTests_pagesAreCompleteForEachFilterAndOrder(t *testing.T) {
	b := bigBook(t)
	list := func(q catalogue.LabTestQuery) []string {
		t.Helper()
		var names []string
		for {
			page, err := b.FindLabTests(t.Context(), q)
			require.NoError(t, err)
			if q.Limit > 0 {
				require.LessOrEqual(t, len(page.Tests), q.Limit)
			}
			for _, test := range page.Tests {
				names = append(names, test.Slug)
			}
			if page.Next == "" {
				return names
			}
			q.Cursor = page.Next
		}
	}
	all := list(catalogue.LabTestQuery{})
	require.Len(t, all, 8)
	for _, q := range []catalogue.LabTestQuery{
		{}, {Direction: catalogue.Descending}, {Sort: catalogue.SortTestsByPrice}, {Sort: catalogue.SortTestsByPrice, Direction: catalogue.Descending},
	} {
		whole := list(q)
		for q.Limit = 1; q.Limit <= 9; q.Limit++ {
			require.Equal(t, whole, list(q))
		}
	}
	require.Equal(t, []string{"heart-health-kit", "metabolic-kit", "thyroid-kit"}, list(catalogue.LabTestQuery{Method: catalogue.Testkit}))
	require.Equal(t, []string{"full-check-visit"}, list(catalogue.LabTestQuery{MarkerIDs: []int{31, 22}}))
	require.Equal(t, []string{"metabolic-kit", "metabolic-walk-in"}, list(catalogue.LabTestQuery{Name: "METABOLIC"}))
	require.Equal(t, "blood-count-walk-in", list(catalogue.LabTestQuery{Sort: catalogue.SortTestsByPrice})[0])
	require.Len(t, list(catalogue.LabTestQuery{ProviderIDs: []string{"NL1001"}, Status: catalogue.LabTestActive}), 4)
	require.Empty(t, list(catalogue.LabTestQuery{Status: catalogue.LabTestInactive}))
	require.Empty(t, list(catalogue.LabTestQuery{LabSlug: "west"}))
	require.Empty(t, list(catalogue.LabTestQuery{Generation: catalogue.GeneratedAuto}))
	require.Len(t, list(catalogue.LabTestQuery{Generation: catalogue.GeneratedAll}), 8)
	for _, cursor := range []string{"x", "AAAA", "AAAAAAAAAAAAAAAAAAAAAA", "5ab0c1d2-0000-4000-8000-000000000001"} {
		_, err := b.FindLabTests(t.Context(), catalogue.LabTestQuery{Cursor: cursor})
		require.ErrorIs(t, err, healthlab.Invalid, cursor)
	}
	_, err := b.FindLabTests(t.Context(), catalogue.LabTestQuery{Sort: "x", Direction: "x", Status: "x", Method: "x", Generation: "x", Limit: -1})
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 6)
}

// The search looks at 10,000 markers of a made-up language.
func BenchmarkSearch(b *testing.B) {
	syllables := strings.Fields("al be cor di es fer glo hem in ka lip mag nor oxi phos qui ret sod trans uro vit xan yl zin")
	word := func(n int) string {
		return syllables[n%24] + syllables[n/24%24] + syllables[n/576%24]
	}
	contents := catalogue.StaticCatalogContents{Labs: []catalogue.Lab{{ID: 1, Slug: "north"}}}
	for i := range 10_000 {
		contents.Markers = append(contents.Markers, catalogue.MarkerComplete{Marker: catalogue.Marker{
			ID: i + 1, Name: word(i*7919) + " " + word(i*104729+i/24) + " antibody", Slug: fmt.Sprint("m", i),
			LabID: ptr(1), ProviderID: ptr(fmt.Sprint("N", i)),
		}})
	}
	book, err := catalogue.NewStaticCatalog(contents)
	require.NoError(b, err)
	for _, typed := range []string{contents.Markers[5000].Name, "ferhemglo", "ferhmeglo antibdoy", "N5000", "antibody"} {
		b.Run(strings.ReplaceAll(typed, " ", "_"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := book.FindMarkers(b.Context(), catalogue.MarkerQuery{Name: typed})
				require.NoError(b, err)
			}
		})
	}
}
