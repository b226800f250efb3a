package labreport_test

import (
	"encoding/csv"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

// label is a printed name of an analyte, with the codes that are right.
type label struct {
	name, unit string
	specimen   loinc.Specimen
	codes      []string
}

// labels returns the labels of testdata that no list of words of the catalogue has: their words,
// in one form and sorted, are not those of any name of any term.
func labels(t *testing.T) (out, listed []label) {
	t.Helper()
	f, err := os.Open("testdata/labels.csv")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	require.NoError(t, err)
	known := map[string]bool{}
	for _, term := range loinc.Embedded().All() {
		for _, name := range append([]string{term.Name, term.Display, strings.ReplaceAll(term.Component, ".", " ")}, term.Names...) {
			known[strings.Join(loinc.Key(name), " ")] = true
		}
	}
	for _, row := range rows[1:] {
		for _, name := range strings.Split(row[3], "|") {
			l := label{name, row[1], loinc.Specimen(row[2]), strings.Fields(row[0])}
			if known[strings.Join(loinc.Key(name), " ")] {
				listed = append(listed, l)
			} else {
				out = append(out, l)
			}
		}
	}
	return out, listed
}

// right reports whether a code is one of the label's, or differs from it in the method only.
func (l label) right(t *testing.T, code string) bool {
	t.Helper()
	if slices.Contains(l.codes, code) {
		return true
	}
	got, err := loinc.Embedded().Term(code)
	require.NoError(t, err)
	return slices.ContainsFunc(l.codes, func(c string) bool {
		want, err := loinc.Embedded().Term(c)
		return err == nil && want.Component == got.Component && want.Property == got.Property && want.Specimen() == got.Specimen() && want.Scale == got.Scale
	})
}

// match returns the best code of a row with the label.
func (l label) match(specimen loinc.Specimen) (code string, status labreport.MatchStatus) {
	got := labreport.NewReader(nil).Complete(labreport.RawReport{Rows: []labreport.RawRow{{Name: l.name, Value: "1", Unit: l.unit, Specimen: specimen}}}).Results[0]
	if len(got.LoincMatches) > 0 {
		code = got.LoincMatches[0].LoincCode
	}
	return code, *got.LoincMatchStatus
}

// A label that no list has is matched by its likeness to others. auto_match is hardly ever wrong:
// of labels in and outside the lists, and of rows of other fluids, which have no right code.
func TestLOINC_unlistedLabelsMatchBySimilarityWithFewWrongAutoMatches(t *testing.T) {
	t.Parallel()
	outside, listed := labels(t)
	require.GreaterOrEqual(t, len(outside), 400)
	step := 20 / prove.Count(2, 20)
	n, first, rows, auto, wrong := 0, 0, 0, 0, 0
	try := func(l label, specimen loinc.Specimen, isRight func(code string) bool) bool {
		code, status := l.match(specimen)
		right := code != "" && isRight(code)
		rows++
		if status == labreport.AutoMatch {
			auto++
			if !right {
				wrong++
				t.Logf("auto_match of %q (%s, %s): %s", l.name, l.unit, specimen, code)
			}
		}
		return right
	}
	for i := 0; i < len(outside); i += step {
		l := outside[i]
		n++
		if try(l, l.specimen, func(code string) bool { return l.right(t, code) }) {
			first++
		} else if testing.Verbose() {
			code, status := l.match(l.specimen)
			t.Logf("%q: %s %s", l.name, code, status)
		}
	}
	for i := 0; i < len(listed); i += step {
		l := listed[i]
		try(l, l.specimen, func(code string) bool { return l.right(t, code) })
	}
	fluids := []loinc.Specimen{"cerebrospinal_fluid", "pleural_fluid", "peritoneal_fluid", "synovial_fluid", "dialysate", loinc.Stool, loinc.Saliva}
	for i := 0; i < len(outside); i += step {
		fluid := fluids[i/step%len(fluids)]
		l := outside[i]
		if of := loinc.NamedSpecimen(l.name); of != loinc.NoSpecimen {
			continue // the row decides
		}
		try(l, fluid, func(code string) bool {
			got, err := loinc.Embedded().Term(code)
			require.NoError(t, err)
			require.Equal(t, fluid, got.Specimen(), "%s: %s", l.name, got.Name)
			return l.sameAnalyte(got)
		})
	}
	t.Logf("%d labels: top-1 %.3f; %d rows, auto_match %d, wrong %d", n, float64(first)/float64(n), rows, auto, wrong)
	require.GreaterOrEqual(t, float64(first)/float64(n), 0.65)
	require.Zero(t, wrong)
}

func (l label) sameAnalyte(got *loinc.Term) bool {
	return slices.ContainsFunc(l.codes, func(c string) bool {
		want, err := loinc.Embedded().Term(c)
		return err == nil && want.Component == got.Component && want.Property == got.Property
	})
}
