package labreport_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/labreport"
)

// tally counts what was read right.
type tally struct {
	want, got, right     int
	ranges, rangeOf      int
	abnormal, abnormalOf int
	code, codeOf         int
	meta, metaOf         int
	sure, sureWrong      int
	misses               []string
}

func (t *tally) f1() float64 { return 2 * float64(t.right) / math.Max(1, float64(t.want+t.got)) }

func (t *tally) add(o tally) {
	t.want, t.got, t.right = t.want+o.want, t.got+o.got, t.right+o.right
	t.ranges, t.rangeOf = t.ranges+o.ranges, t.rangeOf+o.rangeOf
	t.abnormal, t.abnormalOf = t.abnormal+o.abnormal, t.abnormalOf+o.abnormalOf
	t.code, t.codeOf, t.meta, t.metaOf = t.code+o.code, t.codeOf+o.codeOf, t.meta+o.meta, t.metaOf+o.metaOf
	t.sure, t.sureWrong = t.sure+o.sure, t.sureWrong+o.sureWrong
	t.misses = append(t.misses, o.misses...)
}

func (t *tally) String() string {
	part := func(a, b int) float64 { return float64(a) / math.Max(1, float64(b)) }
	return fmt.Sprintf("F1 %.4f range %.4f abnormal %.4f LOINC %.4f metadata %.4f; %d of %d sure fields wrong", t.f1(), part(t.ranges, t.rangeOf),
		part(t.abnormal, t.abnormalOf), part(t.code, t.codeOf), part(t.meta, t.metaOf), t.sureWrong, t.sure)
}

// check compares what was read with what was written.
func check(r report, d labreport.Data) tally {
	var t tally
	t.want, t.got = len(r.rows), len(d.Results)
	used := make([]bool, len(d.Results))
	miss := func(format string, a ...any) { t.misses = append(t.misses, r.layout+": "+fmt.Sprintf(format, a...)) }
	sure := func(e labreport.Evidence, field string, right bool) {
		if c, ok := e[field]; ok && c.Confidence >= 0.9 {
			t.sure++
			if !right {
				t.sureWrong++
				miss("sure but wrong: %s", field)
			}
		}
	}
	for _, w := range r.rows {
		best := -1
		for i, g := range d.Results {
			if !used[i] && (same(g.TestName, w.name) || r.picture && like(g.TestName, w.name)) && (best < 0 || g.Value == w.value && d.Results[best].Value != w.value) {
				best = i
			}
		}
		if best < 0 {
			miss("missing %s = %s %s", w.name, w.value, w.unit)
			continue
		}
		used[best] = true
		g := d.Results[best]
		unit := ""
		if g.Units != nil {
			unit = *g.Units
		}
		value := g.Value == w.value || w.words && strings.EqualFold(g.Value, w.value)
		unitOK := strings.ReplaceAll(unit, " ", "") == strings.ReplaceAll(w.unit, " ", "") || r.picture && meansSame(unit, w.unit)
		if value && unitOK {
			t.right++
		} else {
			miss("%s: want %s %s, got %s %s", w.name, w.value, w.unit, g.Value, unit)
		}
		bounds := equal(g.MinReferenceRange, w.low) && equal(g.MaxReferenceRange, w.high)
		if !w.words {
			t.rangeOf++
			if bounds {
				t.ranges++
			} else if g.ReferenceRange != nil {
				miss("%s: range read as %s", w.name, *g.ReferenceRange)
			} else {
				miss("%s: no range", w.name)
			}
		}
		if w.abnormal {
			t.abnormalOf++
			if *g.Interpretation == labreport.Abnormal {
				t.abnormal++
			} else {
				miss("%s = %s is not abnormal", w.name, w.value)
			}
		}
		t.codeOf++
		if len(g.LoincMatches) > 0 && slices.Contains(w.codes, g.LoincMatches[0].LoincCode) {
			t.code++
		} else {
			miss("%s: code %v", w.name, g.LoincMatches)
		}
		sure(g.Evidence, "test_name", true)
		sure(g.Evidence, "value", value)
		sure(g.Evidence, "units", unitOK)
		sure(g.Evidence, "reference_range", bounds || w.words)
	}
	for i, g := range d.Results {
		if !used[i] {
			miss("invented %s = %s", g.TestName, g.Value)
			for _, f := range []string{"test_name", "value", "units", "reference_range"} {
				sure(g.Evidence, f, false)
			}
		}
	}
	m := d.Metadata
	for _, f := range []struct {
		name, want string
		got        *string
	}{
		{"patient_first_name", r.first, m.PatientFirstName}, {"patient_last_name", r.last, m.PatientLastName}, {"dob", r.dob, m.DOB}, {"gender", r.gender, &m.Gender},
		{"lab_name", r.lab, m.LabName}, {"date_collected", r.collected, m.DateCollected}, {"date_reported", r.reported, m.DateReported}, {"specimen_number", r.specimen, m.SpecimenNumber},
	} {
		t.metaOf++
		right := f.got != nil && strings.EqualFold(*f.got, f.want)
		if right {
			t.meta++
		} else if f.got == nil {
			miss("no %s, want %s", f.name, f.want)
		} else {
			miss("%s: want %s, got %s", f.name, f.want, *f.got)
		}
		sure(m.Evidence, f.name, right)
	}
	return t
}

func same(got, want string) bool {
	norm := func(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }
	return norm(got) == norm(want)
}

func equal(a *json.Number, b *float64) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	v, err := a.Float64()
	return err == nil && math.Abs(v-*b) < 1e-9
}

func runLayouts(t *testing.T, which map[string]func(*maker), seed uint64, each int) tally {
	t.Helper()
	reader := labreport.NewReader(nil)
	var all tally
	for _, name := range slices.Sorted(maps.Keys(which)) {
		var sum tally
		for k := range each {
			r := generate(name, which[name], seed+uint64(k))
			d, _ := reader.Read(r.pages)
			sum.add(check(r, d))
		}
		t.Logf("%-26s %s", name, sum.String())
		require.LessOrEqual(t, sum.sureWrong*100, sum.sure, name)
		require.GreaterOrEqual(t, sum.f1(), 0.95, name)
		if testing.Verbose() {
			for i, miss := range sum.misses {
				if i < 8 {
					t.Log("    ", miss)
				}
			}
		}
		all.add(sum)
	}
	t.Logf("%-26s %s", "all", all.String())
	return all
}

// The layouts that the rules were made with.
func TestLayouts_knownOnesAreReadWithFewErrors(t *testing.T) {
	t.Parallel()
	all := runLayouts(t, layouts, 1, prove.Sequential(1, 6, 60))
	require.GreaterOrEqual(t, all.f1(), 0.97)
}
