package labreport

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/prove"
)

// without returns the embedded terms, none of them with a name.
func without(name string) []Term {
	same := func(other string) bool { return slices.Equal(termKey(other), termKey(name)) }
	var out []Term
	for _, t := range Embedded().terms {
		t.Names = slices.DeleteFunc(slices.Clone(t.Names), same)
		if same(t.Display) {
			t.Display = ""
		}
		if same(t.Component) {
			t.Component = ""
		}
		out = append(out, t)
	}
	return out
}

// A label that no list of words has is matched by its likeness to others. The labels are names of
// the embedded terms, each left out of the catalogue that it is looked up in.
func TestLabelsOutsideTheLists(t *testing.T) {
	type label struct {
		name string
		term Term
	}
	var labels []label
	for _, term := range Embedded().terms {
		for _, name := range term.Names {
			if len(term.Units) > 0 && systemOf(term.System) != NoSpecimen {
				labels = append(labels, label{name, term})
			}
		}
	}
	r := rand.New(rand.NewPCG(24, 7))
	r.Shuffle(len(labels), func(i, k int) { labels[i], labels[k] = labels[k], labels[i] })
	n := prove.Count(40, 400)
	first, auto, autoWrong, matched := 0, 0, 0, 0
	for _, l := range labels[:n] {
		table, err := NewTable(without(l.name))
		require.NoError(t, err)
		got := NewReader(table).Complete(RawReport{Rows: []RawRow{{Name: l.name, Value: "1", Unit: l.term.Units[0], Specimen: systemOf(l.term.System)}}}).Results[0]
		right := false
		if len(got.LoincMatches) > 0 {
			matched++
			top, err := table.Term(got.LoincMatches[0].LoincCode)
			require.NoError(t, err)
			// Terms that differ in the method only are one answer.
			right = top.Code == l.term.Code || top.Component == l.term.Component && top.Property == l.term.Property && systemOf(top.System) == systemOf(l.term.System) && top.Scale == l.term.Scale
		}
		if right {
			first++
		}
		if *got.LoincMatchStatus == AutoMatch {
			auto++
			if !right {
				autoWrong++
				t.Logf("auto_match of %q (%s): %s", l.name, l.term.Name, got.LoincMatches[0].LoincName)
			}
		}
	}
	require.LessOrEqual(t, autoWrong*200, n)
	if n == 400 {
		require.GreaterOrEqual(t, float64(first)/float64(n), 0.65)
	}
	t.Logf("%d labels: top-1 %.3f, %d with candidates, auto_match %d, wrong %d", n, float64(first)/float64(n), matched, auto, autoWrong)
}
