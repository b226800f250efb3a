package labresult_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

func interpretationOf(r labresult.Result) labresult.Interpretation {
	report := labresult.Complete(labresult.Report{Results: []labresult.Result{r}}, catalogue.LabTest{}, nil, false)
	return report.Results[0].Interpretation
}

func TestInterpretation_comparesResultTextWithItsRange(t *testing.T) {
	for name, c := range map[string]struct {
		result, bounds string
		want           labresult.Interpretation
	}{
		"inside":                      {"20", "13-150", labresult.Normal},
		"on the lower bound":          {"13", "13-150", labresult.Normal},
		"below":                       {"12.9", "13-150", labresult.Abnormal},
		"above":                       {"151", "13-150", labresult.Abnormal},
		"less than, below":            {"<5", "13-150", labresult.Abnormal},
		"less than, undecided":        {"<20", "13-150", labresult.UnknownInterpretation},
		"more than, undecided":        {">5", "13-150", labresult.UnknownInterpretation},
		"more than, above":            {">150", "13-150", labresult.Abnormal},
		"at least, undecided":         {">=150", "13-150", labresult.UnknownInterpretation},
		"interval inside":             {"20-30", "13-150", labresult.Normal},
		"interval over a bound":       {"5-20", "13-150", labresult.UnknownInterpretation},
		"without a range":             {"3", "", labresult.UnknownInterpretation},
		"range in words":              {"3", "see note", labresult.UnknownInterpretation},
		"range is one number":         {"3", "5", labresult.UnknownInterpretation},
		"swapped ends":                {"20", "150-13", labresult.UnknownInterpretation},
		"comment":                     {"see note", "13-150", labresult.UnknownInterpretation},
		"empty":                       {"", "13-150", labresult.UnknownInterpretation},
		"one bound, inside":           {"3", "<5", labresult.Normal},
		"one bound, on it, exclusive": {"5", "<5", labresult.Abnormal},
		"one bound, on it, inclusive": {"5", "<=5", labresult.Normal},
		"one bound, less than":        {"<5", "< OR = 5", labresult.Normal},
		"lower bound, more than":      {">90", ">60", labresult.Normal},
		"long dash":                   {"130", "70–99", labresult.Abnormal},
		"with the unit":               {"130", "70-99 mg/dL", labresult.Abnormal},
		"in parentheses":              {"130", "(70-99)", labresult.Abnormal},
		"in words":                    {"80", "70 to 99", labresult.Normal},
		"less than in words":          {"250", "Less than 200", labresult.Abnormal},
		"categories":                  {"190", "Desirable: <200 Borderline: 200-239 High: >=240", labresult.Normal},
		"at least, sign":              {"5", "≥60", labresult.Abnormal},
		"by sex":                      {"12", "Male: 13-17 Female: 12-15", labresult.UnknownInterpretation},
		"thousands":                   {"4200", "1,500-8,000", labresult.Normal},
		"decimal commas":              {"4.2", "3,5-5,0", labresult.Normal},
		"decimal comma of the result": {"5,2", "3,5-5,0", labresult.Abnormal},
		"comma of one or the other":   {"4.2", "3,500-5,000", labresult.UnknownInterpretation},
		"result with such a comma":    {"4,200", "3.5-5.0", labresult.UnknownInterpretation},
		"result with a sign":          {"≥ 151", "13-150", labresult.Abnormal},
		"negative range":              {"-4", "-3.0 - +3.0", labresult.Abnormal},
	} {
		t.Run(name, func(t *testing.T) {
			r := labresult.Result{Result: c.result}
			if c.bounds != "" {
				r.ReferenceRange = &c.bounds
			}
			require.Equal(t, c.want, interpretationOf(r))
		})
	}
}

func TestInterpretation_readsSignsAndWordsOfTheResult(t *testing.T) {
	bounds := "13-150"
	number, err := catalogue.ParseNumber("20")
	require.NoError(t, err)
	for result, want := range map[string]labresult.Interpretation{
		"<5": labresult.Abnormal, ">5": labresult.UnknownInterpretation, "see note": labresult.UnknownInterpretation, "151": labresult.Abnormal,
	} {
		r := labresult.Result{Type: labresult.Numeric, Result: result, Value: &number, ReferenceRange: &bounds}
		require.Equal(t, want, interpretationOf(r), result)
	}
	// A bound beside a range that cannot be read is not known to be the only one.
	words := "by age"
	require.Equal(t, labresult.UnknownInterpretation, interpretationOf(labresult.Result{Result: "3", ReferenceRange: &words, MaxRangeValue: &number}))
	require.Equal(t, labresult.UnknownInterpretation, interpretationOf(labresult.Result{Result: "3", MaxRangeValue: &number}))
	require.Equal(t, labresult.Abnormal, interpretationOf(labresult.Result{Result: "21", MaxRangeValue: &number}))
}

// Results of two markers of one LOINC code have the names of their markers.
func TestResultNames_ofMarkersWithTheSameCodeDiffer(t *testing.T) {
	test := catalogue.LabTest{}
	expected := map[int][]catalogue.ExpectedResult{}
	for i, name := range []string{"Glucose", "Glucose (2)", "Cortisol, morning", "Cortisol, evening", "Iron"} {
		code := "code-" + strconv.Itoa(i)
		test.Markers = append(test.Markers, catalogue.Marker{ID: i, Name: name, Slug: code, ProviderID: &code})
		loinc := catalogue.LOINC{Code: strconv.Itoa(i / 2)}
		expected[i] = []catalogue.ExpectedResult{{Name: name, Slug: code, ProviderID: &code, Required: true, LOINC: &loinc}}
	}
	result := func(name, code, loinc string) labresult.Result {
		return labresult.Result{Name: name, ProviderID: &code, LOINC: &loinc, Result: "1"}
	}
	in := labresult.Report{Results: []labresult.Result{
		result("Glucose", "code-0", "0"), result("Glucose", "code-1", "0"), result("Cortisol", "code-2", "1"), result("CORT", "code-3", "1"), result("Iron", "code-4", "2"), result("Glucose", "other", "0"),
	}}
	for range 2 { // also of a report that is complete
		in = labresult.Complete(in, test, expected, true)
		var names []string
		for _, r := range in.Results {
			names = append(names, r.Name)
		}
		require.Equal(t, []string{"Glucose", "Glucose (2)", "Cortisol, morning", "CORT (Cortisol, evening)", "Iron", "Glucose"}, names)
		require.Len(t, in.Results[1].SourceMarkers, 1)
		require.Len(t, in.Results[5].SourceMarkers, 2, "the code does not tell")
		require.Empty(t, in.MissingResults)
	}
}

func TestWorst_ranksCriticalAbnormalUnknownNormal(t *testing.T) {
	const n, a, c, u = labresult.Normal, labresult.Abnormal, labresult.Critical, labresult.UnknownInterpretation
	rank := []labresult.Interpretation{n, u, a, c}
	require.Equal(t, u, labresult.Worst(nil))
	for _, x := range rank {
		for _, y := range rank {
			want := rank[max(slices.Index(rank, x), slices.Index(rank, y))]
			require.Equal(t, want, labresult.Worst([]labresult.Result{{Interpretation: x}, {Interpretation: y}}), "%s and %s", x, y)
		}
	}
	require.Equal(t, u, labresult.Worst([]labresult.Result{{Interpretation: n}, {}}))
}

// Classify writes results as their types are published.
func TestClassify_setsTheTypeAndTextOfAResult(t *testing.T) {
	for text, want := range map[string]struct {
		kind labresult.Type
		text string
	}{
		"5": {labresult.Numeric, "5"}, "+5": {labresult.Numeric, "5"}, "-0.50": {labresult.Numeric, "-0.50"}, "4,2": {labresult.Numeric, "4.2"},
		"1,200.5": {labresult.Numeric, "1200.5"}, "1.200,5": {labresult.Numeric, "1200.5"}, "1,200": {labresult.Comment, "1,200"}, "<1,200": {labresult.Comment, "<1,200"},
		"< 0,5": {labresult.Range, "<0.5"}, "≥60": {labresult.Range, ">=60"}, "< or = 5": {labresult.Range, "<=5"}, "3 to 5": {labresult.Range, "3-5"}, "3–5": {labresult.Range, "3-5"},
		"5-3": {labresult.Comment, "5-3"}, "-5 - -1": {labresult.Comment, "-5 - -1"}, "<-1": {labresult.Comment, "<-1"}, "1:80": {labresult.Comment, "1:80"}, "see note": {labresult.Comment, "see note"}, "": {labresult.Comment, ""},
	} {
		r := labresult.Result{Result: text}
		r.Classify()
		require.Equal(t, want.kind, r.Type, text)
		require.Equal(t, want.text, r.Result, text)
		if r.Type == labresult.Numeric {
			require.Equal(t, r.Result, r.Value.String(), text)
		} else {
			require.Equal(t, "-1", r.Value.String(), text)
		}
	}
}

// TestInterpretation_isNormalOnlyIfEveryPossibleValueIs compares with every value on a grid of halves that a result may stand for:
// normal only if all are inside of the range, abnormal only if none is, else unknown.
func TestInterpretation_isNormalOnlyIfEveryPossibleValueIs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	signs := []string{"", "<", "<=", ">", ">="}
	holds := func(x, n int, sign string) bool {
		return sign == "" && x == n || sign == "<" && x < n || sign == "<=" && x <= n || sign == ">" && x > n || sign == ">=" && x >= n
	}
	for range 20_000 {
		n, low, high := 2*random.IntN(20), 2*random.IntN(20), 2*random.IntN(20)
		sign, boundSign := signs[random.IntN(5)], signs[1+random.IntN(4)]
		low, high = min(low, high), max(low, high)
		bounds := boundSign + strconv.Itoa(high/2)
		within := func(x int) bool { return holds(x, high, boundSign) }
		if random.IntN(2) == 0 {
			bounds = strconv.Itoa(low/2) + "-" + strconv.Itoa(high/2)
			within = func(x int) bool { return low <= x && x <= high }
		}
		in, out := 0, 0
		for x := -10; x < 60; x++ { // halves, beyond every number
			if holds(x, n, sign) && within(x) {
				in++
			} else if holds(x, n, sign) {
				out++
			}
		}
		want := labresult.UnknownInterpretation
		if out == 0 {
			want = labresult.Normal
		} else if in == 0 {
			want = labresult.Abnormal
		}
		text := sign + strconv.Itoa(n/2)
		require.Equal(t, want, interpretationOf(labresult.Result{Result: text, ReferenceRange: &bounds}), "%s in %s", text, bounds)
	}
}
