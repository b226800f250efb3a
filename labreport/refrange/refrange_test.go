package refrange_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/labreport/refrange"
)

func Example() {
	r, _ := refrange.Parse("Ref: 70 – 99 mg/dL")
	fmt.Println(r.Low, r.High)
	r, _ = refrange.ParseBeside("0,270-4,200", "2.5")
	fmt.Println(r.Low, r.High)
	r, _ = refrange.Value("≥ 60")
	fmt.Println(r.Low, r.LowOpen, r.High)
	// Output:
	// 70 99
	// 0.270 4.200
	// 60 false
}

// forms are ranges as they are printed; L and H stand for the ends.
var forms = []struct {
	text              string
	low, high         bool
	lowOpen, highOpen bool
}{
	{"L-H", true, true, false, false}, {"L - H", true, true, false, false}, {"L–H", true, true, false, false}, {"L — H", true, true, false, false},
	{"L−H", true, true, false, false}, {"L‑H", true, true, false, false}, {"L--H", true, true, false, false}, {"L~H", true, true, false, false}, {"L_H", true, true, false, false}, {"L～H", true, true, false, false},
	{"L..H", true, true, false, false}, {"L to H", true, true, false, false}, {"L bis H", true, true, false, false}, {"L a H", true, true, false, false},
	{"L à H", true, true, false, false}, {"L hasta H", true, true, false, false}, {"between L and H", true, true, false, false},
	{"zwischen L und H", true, true, false, false}, {"entre L y H", true, true, false, false}, {"entre L et H", true, true, false, false}, {"von L bis H", true, true, false, false},
	{"<H", false, true, false, true}, {"< H", false, true, false, true}, {"<=H", false, true, false, false}, {"=<H", false, true, false, false}, {"≤ H", false, true, false, false},
	{"< OR = H", false, true, false, false}, {"< or = H", false, true, false, false}, {"less than H", false, true, false, true}, {"less than or equal to H", false, true, false, false},
	{"up to H", false, true, false, false}, {"bis H", false, true, false, false}, {"hasta H", false, true, false, false}, {"menor de H", false, true, false, true}, {"unter H", false, true, false, true},
	{"inférieur à H", false, true, false, true}, {"max. H", false, true, false, false}, {"below H", false, true, false, true},
	{">L", true, false, true, false}, {"> L", true, false, true, false}, {">=L", true, false, false, false}, {"=>L", true, false, false, false}, {"≥L", true, false, false, false},
	{"> OR = L", true, false, false, false}, {"greater than L", true, false, true, false}, {"greater than or equal to L", true, false, false, false},
	{"upto H", false, true, false, false}, {"not more than H", false, true, false, false}, {"no greater than H", false, true, false, false}, {"jusqu’à H", false, true, false, false},
	{"</=H", false, true, false, false}, {"< / = H", false, true, false, false}, {"H or less", false, true, false, false}, {"H or lower", false, true, false, false}, {"H and below", false, true, false, false},
	{">/=L", true, false, false, false}, {">/= L", true, false, false, false}, {"> ó = L", true, false, false, false}, {"L or more", true, false, false, false}, {"L OR GREATER", true, false, false, false},
	{"L and above", true, false, false, false}, {"not less than L", true, false, false, false}, {"no lower than L", true, false, false, false}, {"u\u0308ber L", true, false, true, false},
	{"L thru H", true, true, false, false}, {"L through H", true, true, false, false}, {"L\u00adH", true, true, false, false}, {"L - <H", true, true, false, true}, {"L to <=H", true, true, false, false},
	{">L - H", true, true, true, false}, {">L <H", true, true, true, true}, {">=L and <H", true, true, false, true}, {"≥L-≤H", true, true, false, false},
	{"at least L", true, false, false, false}, {"mindestens L", true, false, false, false}, {"über L", true, false, true, false}, {"mayor de L", true, false, true, false}, {"above L", true, false, true, false},
}

// frames are what stands around a range, with the unit that it states.
var frames = []struct{ text, unit string }{
	{"%s", ""}, {" %s ", ""}, {"(%s)", ""}, {"[%s]", ""}, {"[ %s ]", ""}, {"Ref: %s", ""}, {"Normal range %s", ""}, {"Referenzbereich: %s", ""}, {"%s mg/dL", "mg/dL"},
	{"%s (fasting)", ""}, {"(%s) mmol/L", "mmol/L"}, {"%s,", ""}, {"\u200f%s", ""}, {"\ufeff%s\u200b", ""}, {"%s (in mg/dL)", "mg/dL"}, {"%s mg/dL (fasting)", "mg/dL"},
	{"%s (calc)", ""}, {"%s ng/mL (FEU)", "ng/mL (FEU)"}, {"(%s K/uL)", "K/uL"},
}

// Digits of full width, and thousands in groups with a space, are digits.
func TestParse_readsFullWidthDigitsAndGroupedThousands(t *testing.T) {
	for _, c := range []struct{ text, low, high string }{
		{"３.５－５.１", "3.5", "5.1"}, {"３．５ － ５．１", "3.5", "5.1"}, {"＜５", "", "5"},
		{"150 000 - 450 000", "150000", "450000"}, {"150\u00a0000–450\u202f000 /µL", "150000", "450000"}, {"0 - 1 000", "0", "1000"}, {"< 1 000", "", "1000"}, {"800 to 1 200", "800", "1200"},
		{"≥ 1 000 000", "1000000", ""}, {"3.5-5.1*", "3.5", "5.1"}, {"5.1 or less", "", "5.1"}, {"3.5\u200b-\u200b5.1", "3.5", "5.1"},
	} {
		r, ok := refrange.Parse(c.text)
		require.True(t, ok, c.text)
		require.Equal(t, c.low+".."+c.high, r.Low+".."+r.High, c.text)
	}
	for _, text := range []string{"13 17 150", "1 200 - 400", "5 1 000", "12 345 6 - 7", "<1 00", "1 2000-3 000"} {
		r, _ := refrange.Parse(text)
		require.False(t, r.Any(), text)
	}
}

func written(form, low, high string) string {
	return strings.NewReplacer("L", low, "H", high).Replace(form)
}

func TestParse_readsEveryFormOfRange(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	number := func() (string, float64) {
		v := float64(random.IntN(100_000)) / []float64{1, 10, 100, 1000}[random.IntN(4)]
		text := strconv.FormatFloat(v, 'f', random.IntN(4), 64)
		v, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		return text, v
	}
	for range prove.Sequential(200, 200, 20_000) {
		low, l := number()
		high, h := number()
		if l > h {
			low, high = high, low
		}
		for _, f := range forms {
			frame := frames[random.IntN(len(frames))]
			text := fmt.Sprintf(frame.text, written(f.text, low, high))
			want := refrange.Range{LowOpen: f.lowOpen, HighOpen: f.highOpen, Unit: frame.unit}
			if f.low {
				want.Low = low
			}
			if f.high {
				want.High = high
			}
			r, ok := refrange.Parse(text)
			require.True(t, ok, text)
			require.Equal(t, want, r, text)
			// With decimal commas, where a number shows that they are.
			comma := strings.ReplaceAll(text, ".", ",")
			if c, _ := refrange.DecimalMarks(comma); c > 0 && !strings.ContainsAny(f.text+frame.text, ".,") {
				r, ok = refrange.ParseBeside(comma, "")
				require.True(t, ok, comma)
				require.Equal(t, want, r, comma)
			}
		}
	}
}

func TestParse_readsKnownRangesAndRefusesOthers(t *testing.T) {
	for text, want := range map[string]refrange.Range{
		"-5.0 - +2.0":           {Low: "-5.0", High: "+2.0"},
		"-5--1":                 {Low: "-5", High: "-1"},
		"1,500-8,000":           {Low: "1500", High: "8000"},
		"70 mg/dL - 99 mg/dL":   {Low: "70", High: "99", Unit: "mg/dL"},
		"Desirable: <200 mg/dL": {High: "200", HighOpen: true, Unit: "mg/dL"}, "Optimal: <5.2 (SI) High: >6.2 mmol/L": {High: "5.2", HighOpen: true, Unit: "mmol/L"},
		"Desirable: <200 Borderline: 200-239 High: >=240": {High: "200", HighOpen: true},
		// Forms of ranges without ends.
		"10-1": {}, "-1--3": {}, "Male: 13.2-17.1 Female: 11.7-15.5": {}, "20-30 years: 1.0-2.0": {},
	} {
		r, ok := refrange.Parse(text)
		require.True(t, ok, text)
		require.Equal(t, want, r, text)
	}
	for _, text := range []string{"", "Negative", "5", "see note", "70 mg/dL - 5 mmol/L", "by age", "1e999-2e999", "-", strings.Repeat("1", 400)} {
		r, ok := refrange.Parse(text)
		require.False(t, ok, text)
		require.False(t, r.Any(), text)
	}
}

func TestParse_wordOfAFindingHidesNoCategory(t *testing.T) {
	for _, text := range []string{
		"Deficient < 20, Insufficient 20 - 29", "Insufficient: 20-29", "Undesirable: > 240", "Abnormal > 5, borderline 4 to 5", "Suboptimal: <40 mg/dL",
	} {
		got, _ := refrange.Parse(text)
		require.False(t, got.Any(), text)
	}
	for _, text := range []string{"Deficient < 20, Sufficient 20 - 29", "Insufficient < 20, Optimal: 20-29", "Range (normal 20-29)"} {
		got, ok := refrange.Parse(text)
		require.True(t, ok && got.Any(), text)
	}
}

func TestParseBeside_resultDecidesTheDecimalMark(t *testing.T) {
	for _, c := range []struct {
		text, result string
		want         refrange.Range
	}{
		{"3,5-5,0", "4.2", refrange.Range{Low: "3.5", High: "5.0"}},
		{"0,270-4,200", "2.5", refrange.Range{Low: "0.270", High: "4.200"}},
		{"1.200,5-3.000,0", "2000", refrange.Range{Low: "1200.5", High: "3000.0"}},
		{"1,500-8,000", "4200", refrange.Range{Low: "1500", High: "8000"}},
		{"1,500-8,000", "4.2", refrange.Range{}},
		{"1,500.0-8,000.0", "4.2", refrange.Range{Low: "1500.0", High: "8000.0"}},
		{"<1,000", "0.5", refrange.Range{}},
		{"3.5-5.0", "4,2", refrange.Range{Low: "3.5", High: "5.0"}},
	} {
		r, _ := refrange.ParseBeside(c.text, c.result)
		require.Equal(t, c.want, r, "%s in %s", c.result, c.text)
	}
}

func TestValue_readsExactAndOpenNumbers(t *testing.T) {
	for text, want := range map[string]refrange.Range{
		"5": {Low: "5", High: "5"}, "-0.5": {Low: "-0.5", High: "-0.5"}, "1,200": {Low: "1200", High: "1200"}, "<5": {High: "5", HighOpen: true}, "< or = 5": {High: "5"},
		"≥ 60": {Low: "60"}, "=>60": {Low: "60"}, "3-5": {Low: "3", High: "5"}, "3 to 5": {Low: "3", High: "5"}, ">1,100": {Low: "1100", LowOpen: true},
	} {
		r, ok := refrange.Value(text)
		require.True(t, ok, text)
		require.Equal(t, want, r, text)
	}
	for _, text := range []string{"", "positive", "5-3", "~12", "5%", "1:80", "3h", "less than 5", "1e999"} {
		_, ok := refrange.Value(text)
		require.False(t, ok, text)
	}
}

func FuzzParse(f *testing.F) {
	for _, form := range forms {
		f.Add(written(form.text, "1.5", "20"), "3")
	}
	f.Add("0,270-4,200", "1.5")
	f.Fuzz(func(t *testing.T, text, result string) {
		for _, unit := range []string{"", "mg/dL", result} {
			r, ok := refrange.ParseIn(text, result, unit)
			require.True(t, ok || !r.Any())
			require.True(t, !r.Any() || r.Unit == "" || unit == "" || refrange.SameUnit(r.Unit, unit))
		}
		for _, read := range []func() (refrange.Range, bool){
			func() (refrange.Range, bool) { return refrange.Parse(text) },
			func() (refrange.Range, bool) { return refrange.ParseBeside(text, result) },
			func() (refrange.Range, bool) { return refrange.Value(text) },
		} {
			r, ok := read()
			require.True(t, ok || !r.Any())
			if r.Low != "" && r.High != "" {
				low, err := strconv.ParseFloat(r.Low, 64)
				require.NoError(t, err)
				high, err := strconv.ParseFloat(r.High, 64)
				require.NoError(t, err)
				require.LessOrEqual(t, low, high)
			}
		}
	})
}
