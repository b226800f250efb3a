package labreport_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/internal/ucum"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

func TestTypeOf_distinguishesNumbersRangesAndComments(t *testing.T) {
	for _, c := range []struct {
		in, unit string
		kind     labreport.ValueType
		out      string
	}{
		{"90", "", labreport.Numeric, "90"}, {"5.0", "", labreport.Numeric, "5.0"}, {"1e-3", "", labreport.Numeric, "1e-3"}, {"1,200", "", labreport.Numeric, "1200"},
		{".5", "", labreport.Numeric, ".5"}, {"-2.", "", labreport.Numeric, "-2."}, {"5.4%", "", labreport.Percentage, "5.4%"}, {"<1 %", "", labreport.Percentage, "<1 %"},
		{"<5", "", labreport.RangeValue, "<5"}, {">=10", "", labreport.RangeValue, ">=10"}, {"≤1e-3", "", labreport.RangeValue, "≤1e-3"}, {"3-7", "", labreport.RangeValue, "3-7"},
		{"3 to 7", "", labreport.RangeValue, "3 to 7"}, {"~12", "", labreport.RangeValue, "~12"}, {"> OR = 60", "", labreport.RangeValue, "> OR = 60"}, {"97/100", "", labreport.Ratio, "97/100"},
		{"Positive", "", labreport.Boolean, "Positive"}, {"3h", "", labreport.Duration, "3h"}, {"12 min", "", labreport.Duration, "12 min"}, {"12:30", "min", labreport.Duration, "12:30"},
		{"12:30", "", labreport.Comment, "12:30"}, {"1:80", "titer", labreport.Comment, "1:80"}, {"See  note", "", labreport.Comment, "See note"}, {"2026-01-02", "", labreport.Comment, "2026-01-02"},
		{"1,20", "", labreport.Comment, "1,20"},
	} {
		kind, out := labreport.TypeOf(c.in, c.unit)
		require.Equal(t, c.kind, kind, c.in)
		require.Equal(t, c.out, out, c.in)
	}
}

func p(v float64) *float64 { return &v }

func TestParseBounds_readsEachFormOfRange(t *testing.T) {
	for in, want := range map[string]labreport.Bounds{
		"<5":                                {High: p(5), HighOpen: true},
		"<=10.5":                            {High: p(10.5)},
		">3":                                {Low: p(3), LowOpen: true},
		"≥7.25":                             {Low: p(7.25)},
		"1-10":                              {Low: p(1), High: p(10)},
		"3.8 – 10.8":                        {Low: p(3.8), High: p(10.8)},
		"< OR = 9.9":                        {High: p(9.9)},
		"> or = 2":                          {Low: p(2)},
		"1 to 10":                           {Low: p(1), High: p(10)},
		"-5.0 - +2.0":                       {Low: p(-5), High: p(2)},
		"70-99 mg/dL":                       {Low: p(70), High: p(99)},
		"70-99 (fasting)":                   {Low: p(70), High: p(99)},
		"(3.5-5.1)":                         {Low: p(3.5), High: p(5.1)},
		"[ 3.5 - 5.1 ]":                     {Low: p(3.5), High: p(5.1)},
		"(ref. 3.8 to 10.8)":                {Low: p(3.8), High: p(10.8)},
		"Less than 200":                     {High: p(200), HighOpen: true},
		"Greater than or equal to 40":       {Low: p(40)},
		"0.00-0.20":                         {Low: p(0), High: p(0.2)},
		"3,5 - 5,1":                         {Low: p(3.5), High: p(5.1)},
		"0,270-4,200":                       {Low: p(0.27), High: p(4.2)},
		"13,5 - 17":                         {Low: p(13.5), High: p(17)},
		"<= 1,5":                            {High: p(1.5)},
		"1,000-4,800":                       {Low: p(1000), High: p(4800)},
		"150 000 - 450 000":                 {Low: p(150_000), High: p(450_000)},
		">/= 60 mL/min":                     {Low: p(60)},
		"1.5-2,5":                           {},
		"10-1":                              {},
		"Negative":                          {},
		"Male: 13.2-17.1 Female: 11.7-15.5": {},
		"20-30 years: 1.0-2.0":              {},
		"Desirable: <200 Borderline: 200-239 High: >=240": {High: p(200), HighOpen: true},
		"": {},
	} {
		require.Equal(t, want, labreport.ParseBounds(in), in)
	}
}

// Less than the limit of detection is inside a range from zero, and may be below another.
func TestInterpret_lessThanIsNormalInARangeFromZero(t *testing.T) {
	for _, c := range []struct {
		value string
		b     labreport.Bounds
		want  labreport.Interpretation
	}{
		{"<0.5", labreport.Bounds{Low: p(0), High: p(5)}, labreport.Normal},
		{"<0.5", labreport.Bounds{Low: p(0.1), High: p(5)}, labreport.Unclear},
		{"<0.5", labreport.Bounds{Low: p(0.5), High: p(5)}, labreport.Abnormal},
		{"<0.5", labreport.Bounds{Low: p(-2), High: p(2)}, labreport.Unclear},
		{"<6", labreport.Bounds{Low: p(0), High: p(5)}, labreport.Unclear},
	} {
		require.Equal(t, c.want, labreport.Interpret(labreport.RangeValue, c.value, "", "", c.b), "%s %v", c.value, c.b)
	}
}

func TestRangeFlags_openValueIsAboveOnlyIfCertain(t *testing.T) {
	yes, no := true, false
	closed, open := labreport.Bounds{High: p(1100)}, labreport.Bounds{High: p(1100), HighOpen: true}
	for _, c := range []struct {
		value string
		b     labreport.Bounds
		want  *bool
	}{
		{">2000", closed, &yes}, {">500", closed, nil}, {">1100", closed, &yes}, {">=1100", closed, nil}, {"<1100", closed, &no}, {"1000-1100", closed, &no}, {"1000-1200", closed, nil},
		{">=1100", open, &yes}, {"<1100", open, &no}, {"1000-1100", open, nil}, {"1100", closed, &no}, {"1100", open, &yes}, {"~1200", closed, nil}, {"1200-1000", closed, nil}, {"5%", closed, nil},
	} {
		kind, value := labreport.TypeOf(c.value, "")
		above, below := labreport.RangeFlags(kind, value, c.b)
		require.Equal(t, c.want, above, c.value)
		require.Nil(t, below)
	}
}

// Of one number, above and below are never both true, and between the ends neither is.
func TestRangeFlags_aboveAndBelowAreNeverBothTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(-100, 100).Draw(t, "low")
		high := low + rapid.Float64Range(0, 100).Draw(t, "width")
		v := rapid.Float64Range(-300, 300).Draw(t, "value")
		_, text := labreport.TypeOf(strings.TrimSuffix(strings.TrimRight(formatFloat(v), "0"), "."), "")
		above, below := labreport.RangeFlags(labreport.Numeric, text, labreport.Bounds{Low: &low, High: &high})
		require.NotNil(t, above)
		require.NotNil(t, below)
		require.False(t, *above && *below)
	})
}

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

func TestInterpret_usesFlagExpectedTextAndRange(t *testing.T) {
	in := labreport.Bounds{Low: p(70), High: p(99)}
	for _, c := range []struct {
		value, flag, expected string
		b                     labreport.Bounds
		want                  labreport.Interpretation
	}{
		{"95", "", "", in, labreport.Normal}, {"120", "", "", in, labreport.Abnormal}, {"120", "HH", "", in, labreport.Critical}, {"95", "H", "", in, labreport.Abnormal},
		{"95", "", "", labreport.Bounds{}, labreport.Unclear}, {"95", "N", "", labreport.Bounds{}, labreport.Normal}, {"<0.3", "", "", labreport.Bounds{High: p(5), HighOpen: true}, labreport.Normal},
		{">50", "", "", in, labreport.Unclear},
		{"Non-Reactive", "", "Negative", labreport.Bounds{}, labreport.Normal}, {"Trace", "", "Negative", labreport.Bounds{}, labreport.Abnormal}, {"2+", "", "NEGATIVE", labreport.Bounds{}, labreport.Abnormal},
		{"Positive", "", "Positive", labreport.Bounds{}, labreport.Normal}, {"Positive", "", "", labreport.Bounds{}, labreport.Unclear}, {"<1:40", "", "<1:40", labreport.Bounds{}, labreport.Normal},
		{"1:160", "", "<1:40", labreport.Bounds{}, labreport.Abnormal}, {"See note", "", "Negative", labreport.Bounds{}, labreport.Unclear},
	} {
		kind, value := labreport.TypeOf(c.value, "")
		require.Equal(t, c.want, labreport.Interpret(kind, value, c.flag, c.expected, c.b), "%s %s %s", c.value, c.flag, c.expected)
	}
}

// A hyphen, dash, slash or space inside an expected word does not make it two words.
func TestInterpret_hyphenInAnExpectedWordDoesNotDivideIt(t *testing.T) {
	for negative, positive := range map[string]string{
		"non reactive": "reactive", "not detected": "detected", "not present": "present", "none seen": "seen", "non detected": "detected",
		"nicht reaktiv": "reaktiv", "nicht nachweisbar": "nachweisbar", "nicht nachgewiesen": "nachgewiesen",
		"no reactivo": "reactivo", "no detectada": "detectada", "non réactif": "reactif", "non détecté": "détecté", "non détectée": "détectée",
	} {
		for _, mark := range []string{" ", "-", "\u00ad", "\u2010", "\u2011", "\u2012", "–", "—", "−", "/", ", ", " - "} {
			for _, change := range []func(string) string{strings.ToLower, strings.ToUpper} {
				expected := change(strings.ReplaceAll(negative, " ", mark))
				for _, value := range []string{positive, strings.ToUpper(positive), "Positive"} {
					kind, value := labreport.TypeOf(value, "")
					require.Equal(t, labreport.Abnormal, labreport.Interpret(kind, value, "", expected, labreport.Bounds{}), "%s, %s", value, expected)
				}
				for _, value := range []string{expected, negative, "Negative"} {
					kind, value := labreport.TypeOf(value, "")
					require.Equal(t, labreport.Normal, labreport.Interpret(kind, value, "", expected, labreport.Bounds{}), "%s, %s", value, expected)
				}
			}
		}
	}
	for _, c := range []struct{ value, expected string }{{"Reactive", "Non-reactive"}, {"reaktiv", "nicht-reaktiv"}, {"Detected", "Not-detected"}} {
		got := rowsOf(t, "Test  Result  Units  Reference\nTSH  2.1  mIU/L  0.4 - 4.5\nHIV 1/2 Ab  "+c.value+"    "+c.expected+"\nSodium  139  mmol/L  136 - 145\n")
		require.Equal(t, labreport.Abnormal, *named(got, "HIV 1/2 Ab")[0].Interpretation, c.expected)
	}
}

func TestInterpret_rangeOfWordsHasAllItsWords(t *testing.T) {
	for _, c := range []struct {
		value, expected string
		want            labreport.Interpretation
	}{
		{"Negative", "negative - trace", labreport.Normal}, {"Trace", "Negative-Trace", labreport.Normal}, {"Positive", "negative – trace", labreport.Abnormal},
		{"2+", "Negative to trace", labreport.Abnormal}, {"Spur", "negativ bis Spur", labreport.Normal}, {"trazas", "negativo a trazas", labreport.Normal},
		{"Yellow", "Straw-Yellow", labreport.Normal}, {"Hazy", "Clear/Hazy", labreport.Normal}, {"Nonreactive", "Non-reactive, trace", labreport.Normal},
		{"Reactive", "Reactive/Non-reactive", labreport.Unclear}, {"Negative", "Positive, Negative", labreport.Unclear}, {"1+", "Negative - 2+", labreport.Unclear},
		{"Many", "Few", labreport.Unclear}, {"Many", "rare - few", labreport.Unclear}, {"Few", "rare - few", labreport.Normal}, {"Red", "Amber", labreport.Unclear}, {"Amber", "amber", labreport.Normal},
		{"+", "-", labreport.Abnormal}, {"1:80", "<1:80", labreport.Abnormal}, {">1:80", "<1:80", labreport.Abnormal}, {"Clear", "Non-smoker", labreport.Unclear},
	} {
		kind, value := labreport.TypeOf(c.value, "")
		require.Equal(t, c.want, labreport.Interpret(kind, value, "", c.expected, labreport.Bounds{}), "%s, %s", c.value, c.expected)
	}
}

// A power of ten belongs to the number, and is never dropped.
func TestNumbers_powerOfTenBelongsToTheValue(t *testing.T) {
	for _, comma := range []bool{false, true} {
		for _, number := range []string{"%s x 10^5", "%s x10^5", "%sx10^5", "%s × 10⁵", "%s×10⁵", "%s*10^5", "%s·10^5", "%s x 10**5", "> %s x 10^5", ">%sx10^5", "%sE5", "%se+05"} {
			for _, form := range []string{"HIV-1 RNA  %s  copies/mL  < 20", "HIV-1 RNA  %s copies/mL    < 20", "HIV-1 RNA: %s copies/mL (< 20)"} {
				digits, other := "4.5", "4.1  mmol/L  3.5 - 5.1"
				if comma {
					digits, other = "4,5", "4,1  mmol/L  3,5 - 5,1"
				}
				row := fmt.Sprintf(form, fmt.Sprintf(number, digits))
				text := row + "\nSodium  139  mmol/L  136 - 145\nPotassium  " + other + "\n"
				if !strings.Contains(form, ":") {
					text = "Test  Result  Units  Reference\n" + text
				}
				all := named(rowsOf(t, text), "HIV-1 RNA")
				require.Len(t, all, 1, row)
				require.Equal(t, fmt.Sprintf(number, "4.5"), all[0].Value, row)
				require.Equal(t, "copies/mL", *all[0].Units, row)
				require.Equal(t, labreport.Abnormal, *all[0].Interpretation, row)
			}
		}
	}
	for _, value := range []string{"9 x 10^0", "1.5 x 10^1", "1.5 × 10¹", "1.5·10^-2", "1 x 10⁻³", "1.9e1", "< 1.5 x 10^1"} {
		got := named(rowsOf(t, "Test  Result  Units  Reference\nSodium  139  mmol/L  136 - 145\nHIV-1 RNA  "+value+"  copies/mL  < 20\nTSH  2.1  mIU/L  0.4 - 4.5\n"), "HIV-1 RNA")[0]
		require.Equal(t, value, got.Value)
		require.Equal(t, labreport.Normal, *got.Interpretation, value)
	}
}

// A factor that is not surely read gives no number of high confidence, and no flag.
func TestNumbers_uncertainFactorGivesNoSureNumber(t *testing.T) {
	for _, row := range []string{
		"Platelets  2.5 lakh  /uL  150 - 400", "Platelets  2.5 Lakhs  /uL  1.5 - 4.5", "Platelets  250 thousand  /uL  150 - 400", "Platelets  250 Tsd  /uL  150 - 400", "Platelets  250 Tsd.  /uL  150 - 400",
		"RBC  4.5 Mio  /uL  4.0 - 5.5", "RBC  4.5 million  /uL  4.0 - 5.5", "RBC  4.5 millones  /uL  4.0 - 5.5", "HIV-1 RNA  4.5 x 105  copies/mL  < 20", "HIV-1 RNA  4.5 x 10e5  copies/mL  < 20", "HIV-1 RNA  4.5 x 10 5  copies/mL  < 20",
	} {
		cells := strings.Split(row, "  ")
		got := named(rowsOf(t, "Test  Result  Flag  Reference  Units\nSodium  139  -  136 - 145  mmol/L\n"+cells[0]+"  "+cells[1]+"  -  "+cells[3]+"  "+cells[2]+"\nTSH  2.1  -  0.4 - 4.5  mIU/L\n"), cells[0])
		require.Len(t, got, 1, row)
		require.Equal(t, cells[1], got[0].Value)
		require.Less(t, got[0].Evidence["value"].Confidence, 0.9, row)
		require.Equal(t, labreport.Unclear, *got[0].Interpretation, row)
		require.NotEqual(t, labreport.AutoMatch, *got[0].LoincMatchStatus, row)
	}
	for _, reference := range []string{"150 - 400", "150 - 400 x 10^3", "150000 - 400000"} {
		got := named(rowsOf(t, "Test  Result  Flag  Reference  Units\nSodium  139  -  136 - 145  mmol/L\nPlatelets  250 x 10^3  -  "+reference+"  /uL\nTSH  2.1  -  0.4 - 4.5  mIU/L\n"), "Platelets")[0]
		require.Equal(t, "250 x 10^3", got.Value)
		require.Equal(t, labreport.Unclear, *got.Interpretation, "%s: the range may have the power too", reference)
	}
}

// A power of ten of a unit stays in the unit.
func TestUnits_powerOfTenStaysInTheUnit(t *testing.T) {
	for _, unit := range []string{"10^3/uL", "x10^3/uL", "x 10^9/L", "10*3/uL", "x10E3/uL", "10³/µL"} {
		for _, form := range []string{"WBC  7.5  %s  4.0 - 10.0", "WBC  7.5 %s    4.0 - 10.0"} {
			got := named(rowsOf(t, "Test  Result  Units  Reference\nSodium  139  mmol/L  136 - 145\n"+fmt.Sprintf(form, unit)+"\nTSH  2.1  mIU/L  0.4 - 4.5\n"), "WBC")[0]
			require.Equal(t, "7.5", got.Value, unit)
			require.Equal(t, unit, *got.Units)
			require.Equal(t, labreport.Normal, *got.Interpretation, unit)
		}
	}
}

// The ends of ranges keep the digits that are printed.
func TestRead_rangeEndsKeepTheirPrintedDigits(t *testing.T) {
	d, reason := labreport.NewReader(nil).Read(typed(`Laborbefund  Patient: Stefan Weber  geb. 03.04.1966
Abnahme: 02.05.2025  Labor-Nr.: A1234567
Untersuchung  Ergebnis  Einheit  Referenzbereich
Kreatinin  1,12  mg/dl  0,60 - 1,30
Kalium  4,1  mmol/l  3,50 - 5,0
Thrombozyten  251  Tsd/µl  140 - 400
Base Excess  -1,5  mmol/l  -2,0 - 3,00
CRP  3,2  mg/l  < 5,0`))
	require.Empty(t, reason)
	got := map[string]string{}
	for _, r := range d.Results {
		end := func(n *json.Number) string {
			if n == nil {
				return "null"
			}
			return n.String()
		}
		got[r.TestName] = end(r.MinReferenceRange) + " " + end(r.MaxReferenceRange)
	}
	require.Equal(t, map[string]string{"Kreatinin": "0.60 1.30", "Kalium": "3.50 5.0", "Thrombozyten": "140 400", "Base Excess": "-2.0 3.00", "CRP": "null 5.0"}, got)
}

// noCatalogue does not answer.
type noCatalogue struct{}

func (noCatalogue) Find(string) ([]loinc.Found, error) { return nil, healthlab.Unavailable }
func (noCatalogue) Term(string) (*loinc.Term, error)   { return nil, healthlab.Unavailable }

// Without the catalogue a result has no codes, and all else.
func TestRead_withoutALOINCMatcherKeepsTheResults(t *testing.T) {
	r := generate("six columns", layouts["six columns"], 1)
	with, _ := labreport.NewReader(nil).Read(r.pages)
	without, reason := labreport.NewReader(noCatalogue{}).Read(r.pages)
	require.Empty(t, reason)
	require.Len(t, without.Results, len(with.Results))
	for i, res := range without.Results {
		require.Nil(t, res.LoincMatchStatus)
		require.Nil(t, res.LoincMatches)
		require.Equal(t, with.Results[i].Value, res.Value)
		require.Equal(t, with.Results[i].MinReferenceRange, res.MinReferenceRange)
	}
}

// The same words in any order are the same report.
func TestRead_orderOfWordsDoesNotMatter(t *testing.T) {
	t.Parallel()
	reader := labreport.NewReader(nil)
	r := generate("six columns", layouts["six columns"], 5)
	want, _ := reader.Read(r.pages)
	for seed := range prove.Sequential(4, 10, 200) {
		pages := []labreport.Page{r.pages[0]}
		pages[0].Words = slices.Clone(r.pages[0].Words)
		rand.New(rand.NewPCG(uint64(seed), 0)).Shuffle(len(pages[0].Words), func(i, j int) {
			pages[0].Words[i], pages[0].Words[j] = pages[0].Words[j], pages[0].Words[i]
		})
		got, _ := reader.Read(pages)
		require.Equal(t, want, got, seed)
	}
}

// A unit that a reader of pictures took for another is mended where the analyte has just
// that one, and no print is ever mended.
func TestUnits_misreadUnitOfAPictureIsRepaired(t *testing.T) {
	rows := [][3]string{ // a name, the unit as it was read, and what it is
		{"GPT (ALAT)", "U", "U/L"},
		{"Gamma-GT", "u", "U/L"},
		{"Alkalische Phosphatase", "UN", "U/L"},
		{"GOT (ASAT)", "UL", "U/L"},
		{"Thrombozyten", "1043/uL", "x10^3/uL"},
		{"Leukozyten", "10X3/uL", "x10^3/uL"},
		{"Lymphozyten absolut", "/pL", "/uL"},
		{"Erythrozyten", "/pl", "/pl"}, // has it
		{"Albumin", "u", "u"},          // has nothing like it
	}
	page := labreport.Page{Number: 1, Width: 612, Height: 792}
	put := func(row int, x float64, text string) {
		for _, w := range strings.Fields(text) {
			wide := 0.009 * float64(len(w))
			page.Words = append(page.Words, labreport.Word{Text: w, Confidence: 0.9, Box: labreport.Box{X: x, Y: 0.1 + 0.03*float64(row), Width: wide, Height: 0.012}})
			x += wide + 0.006
		}
	}
	for i, h := range []string{"Analyse", "Ergebnis", "Einheit", "Referenzbereich"} {
		put(0, 0.05+0.25*float64(i), h)
	}
	for i, r := range rows {
		put(i+1, 0.05, r[0])
		put(i+1, 0.30, "35")
		put(i+1, 0.55, r[1])
		put(i+1, 0.80, "10 - 50")
	}
	for _, image := range []bool{true, false} {
		page.Image = image
		d, _ := labreport.NewReader(nil).Read([]labreport.Page{page})
		got := map[string]string{}
		for _, r := range d.Results {
			if r.Units != nil {
				got[r.TestName] = *r.Units
			}
		}
		for _, r := range rows {
			if image {
				require.Equal(t, r[2], got[r[0]], r[0])
			} else if u := got[r[0]]; u != "" {
				require.Equal(t, r[1], u, r[0])
			}
		}
	}
}

// Whatever an extractor hands over, the reader answers, and its boxes lie on the page.
func FuzzRead(f *testing.F) {
	f.Add("Glucose 95 mg/dL 70-99", 0.1, 0.1, 0.05, 0.01)
	f.Add("Patient: A B DOB: 01/02/2003", -1.0, 5.0, 1e300, 1e-300)
	reader := labreport.NewReader(nil)
	f.Fuzz(func(t *testing.T, text string, x, y, w, h float64) {
		page := labreport.Page{Number: 1, Width: 612, Height: 792}
		for i, word := range strings.Fields(text) {
			if i > 60 {
				break
			}
			page.Words = append(page.Words, labreport.Word{Text: word, Confidence: 1, Box: labreport.Box{X: x + float64(i)*w*1.2, Y: y, Width: w, Height: h}})
		}
		base := generate("inline", layouts["inline"], 1).pages[0]
		page.Words = append(page.Words, base.Words...)
		d, _ := reader.Read([]labreport.Page{page})
		for _, r := range d.Results {
			require.NotEmpty(t, r.TestName)
			require.NotEmpty(t, r.Value)
			for _, e := range r.Evidence {
				require.True(t, e.Box.X >= 0 && e.Box.Y >= 0 && e.Box.X+e.Box.Width <= 1.0001 && e.Box.Y+e.Box.Height <= 1.0001)
				require.True(t, e.Confidence > 0 && e.Confidence < 1)
			}
		}
	})
}

func FuzzParseBounds(f *testing.F) {
	for _, s := range []string{"1-10", "< OR = 9", "Male: 1-2", "((((", "1e999-2e999", "Desirable: <200"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := labreport.ParseBounds(s)
		if b.Low != nil && b.High != nil {
			require.LessOrEqual(t, *b.Low, *b.High)
		}
		ucum.Parse(s)
		labreport.TypeOf(s, s)
	})
}

// A report with more words than thirty pages of dense print is refused before it is read.
func TestRead_tooManyWordsAreRefused(t *testing.T) {
	page := labreport.Page{Number: 1, Width: 600, Height: 800}
	for i, line := range []string{
		"Northfield Clinical Laboratory", "Patient: Ada Hartley DOB: 02 Apr 1988 Sex: Female", "Collected: 01 Feb 2026 Specimen: S-1001",
		"Ferritin 18 ng/mL 30-400 L", "Glucose 91 mg/dL 70-99", "Hemoglobin A1c 5.4 % <5.7",
	} {
		x := 0.08
		for _, word := range strings.Split(line, " ") {
			w := 0.012 * float64(len(word))
			page.Words = append(page.Words, labreport.Word{Text: word, Confidence: 1, Box: labreport.Box{X: x, Y: 0.1 + 0.02*float64(i), Width: w, Height: 0.015}})
			x += w + 0.006
		}
	}
	read := labreport.NewReader(nil)
	data, reason := read.Read([]labreport.Page{page})
	require.Empty(t, reason)
	require.Len(t, data.Results, 3)
	more := labreport.Page{Number: 2, Words: make([]labreport.Word, 1000*labreport.MaxPages)}
	_, reason = read.Read([]labreport.Page{page, more})
	require.Equal(t, labreport.InvalidInput, reason)
}

// readAsPicture reads a printed report as if its words came from a picture.
func readAsPicture(t *testing.T, text string) []labreport.Result {
	t.Helper()
	pages := printed("Test Laboratory\nPatient: Ann Doe  DOB: 01/02/1980  Sex: F\nCollected: 03/04/2026  Reported: 03/05/2026\nSpecimen: Serum\n\nTest  Result  Units  Reference\n" + text)
	for i := range pages {
		pages[i].Image = true
	}
	d, reason := labreport.NewReader(nil).Read(pages)
	require.Empty(t, reason)
	return d.Results
}

// Letters that a reader of pictures confuses are resolved against the units of the analyte,
// and a text layer stays as it is printed. A unit of another analyte needs review.
func TestUnits_confusedLettersAreResolvedByTheAnalyte(t *testing.T) {
	const others = "Glucose  95  mg/dL  70 - 99\nTSH  2.1  mIU/L  0.4 - 4.5\nMCV  90  fL  80 - 100\nFerritin  40  ng/mL  38 - 380\n"
	for _, c := range []struct{ name, printed, want string }{
		{"Creatinine", "pmol/L", "umol/L"}, {"Creatinine", "vmol/L", "umol/L"}, {"Iron", "pg/dL", "ug/dL"}, {"AST", "UlL", "U/L"}, {"AST", "Ull", "U/L"},
		{"Sodium", "mrnol/L", "mmol/L"}, {"Albumin", "q/dL", "g/dL"}, {"Vitamin B12", "pq/mL", "pg/mL"}, {"Insulin", "ulU/mL", "m[IU]/L"},
	} {
		row := c.name + "  12.3  " + c.printed + "  10 - 20\n"
		read := readAsPicture(t, others+row)
		last := read[len(read)-1]
		require.Equal(t, c.name, last.TestName)
		require.NotNil(t, last.Units, c.printed)
		u, _ := ucum.Parse(*last.Units)
		require.Equal(t, c.want, u.UCUM, c.printed)
		require.Less(t, last.Evidence["units"].Confidence, 0.85, c.printed)
		require.NotEqual(t, labreport.AutoMatch, *last.LoincMatchStatus)
	}
	for _, c := range []struct{ name, unit string }{{"Creatinine", "pmol/L"}, {"Creatinine", "mg/24h"}, {"Sodium", "mg/24 h"}, {"Iron", "pg/dL"}, {"Ferritin", "%"}} {
		read := rowsOf(t, "Specimen: Serum\nTest  Result  Units  Reference\n"+others+c.name+"  12.3  "+c.unit+"  10 - 20\n")
		last := read[len(read)-1]
		require.Equal(t, c.unit, *last.Units)
		require.Less(t, last.Evidence["units"].Confidence, 0.6, "%s %s", c.name, c.unit)
		require.NotEqual(t, labreport.AutoMatch, *last.LoincMatchStatus, "%s %s", c.name, c.unit)
	}
}

// A number of a picture that lost its decimal point needs review, with both readings
// offered. A number that the range can hold is left alone.
func TestNumbers_lostDecimalPointOfAPictureNeedsReview(t *testing.T) {
	const others = "Glucose  95  mg/dL  70 - 99\nMCV  90  fL  80 - 100\nAlbumin  4.1  g/dL  3.6 - 5.1\nSodium  140  mmol/L  135 - 146\n"
	for _, c := range []struct{ name, value, unit, reference, other string }{
		{"Potassium", "41", "mmol/L", "3.5 - 5.1", "4.1"}, {"TSH", "213", "mIU/L", "0.40 - 4.50", "2.13"}, {"CRP", "42", "mg/L", "< 5.0", "4.2"}, {"Folate", "67", "ng/mL", "> 5.4", "6.7"},
		{"Creatinine", "092", "mg/dL", "0.60 - 1.30", "0.92"}, {"Creatinine", "045", "mg/dL", "", "0.45"}, {"WBC", "45", "K/uL", "4 - 10", "4.5"}, {"Uric Acid", "76", "mg/dL", "< 8.0", "7.6"},
		{"Sodium", "150", "mmol/L", "135 - 146", ""}, {"ALT", "78", "U/L", "9 - 46", ""}, {"Vitamin D, 25-Hydroxy", "31", "ng/mL", "> 30", ""}, {"Ferritin", "4", "ng/mL", "38 - 380", ""}, {"Potassium", "4", "mmol/L", "3.5 - 5.1", ""},
	} {
		read := readAsPicture(t, others+c.name+"  "+c.value+"  "+c.unit+"  "+c.reference+"\n")
		last := read[len(read)-1]
		require.Equal(t, c.value, last.Value, c.name)
		got := last.Evidence["value"]
		if c.other == "" {
			require.Empty(t, got.Alternatives, "%s %s", c.name, c.value)
			continue
		}
		require.Equal(t, []string{c.other}, got.Alternatives, "%s %s", c.name, c.value)
		require.LessOrEqual(t, got.Confidence, 0.4)
		require.NotEqual(t, labreport.AutoMatch, *last.LoincMatchStatus)
		printed := rowsOf(t, others+c.name+"  "+c.value+"  "+c.unit+"  "+c.reference+"\n")
		for _, r := range printed {
			require.Empty(t, r.Evidence["value"].Alternatives, "a text layer loses no point")
		}
	}
}

// Lines that say what a value means, older results, ages and footnotes are no results.
func TestRows_guidanceOlderResultsAndFootnotesAreNoResults(t *testing.T) {
	const rows = "Test  Result  Units  Reference\nVitamin D, 25-Hydroxy  22  ng/mL  30 - 100\n%sFerritin  40  ng/mL  38 - 380\nTSH  2.1  mIU/L  0.40 - 4.50\n"
	for _, text := range []string{
		"Optimal > or = 30 ng/mL", "Deficiency: <20 ng/mL", "Insufficiency: 20 - 29 ng/mL", "Low risk: <1.0 mg/L", "High risk: >3.0 mg/L", "Average risk: 1.0 - 3.0 mg/L",
		"18 - 50 years: 30 - 100 ng/mL", "> 50 years: 30 - 100 ng/mL", "Previous: 18 ng/mL (12.03.2024)", "Prior result: 18 ng/mL", "Collection time 08:15", "Target for adults: <7.0 %",
		"Mangel: < 20 ng/ml", "Vorwert: 18 ng/ml", "Zielwert bei Diabetes: < 7 %", "> 50 Jahre: 30 - 100 ng/ml", "Deficiencia: < 20 ng/mL", "Riesgo alto: > 3 mg/L", "18 - 50 años: 30 - 100 ng/mL",
		"Carence : < 20 ng/mL", "Risque élevé : > 3 mg/L", "18 - 50 ans: 30 - 100 ng/mL", "Limite de détection 0.5 mg/L", "(1) Verified by repeat analysis, 2 runs",
	} {
		for _, indent := range []string{text, "Optimal > or = 30 ng/mL\n" + text} {
			got := rowsOf(t, fmt.Sprintf(rows, indent+"\n"))
			require.Len(t, got, 3, text)
			require.Equal(t, "22", got[0].Value, text)
			require.Equal(t, "Vitamin D, 25-Hydroxy", got[0].TestName, text)
			require.Equal(t, "40", got[1].Value, text)
		}
	}
}

// Names that wrap are joined with their second line, whatever word ends the first one.
func TestRows_wrappedNameIsJoined(t *testing.T) {
	for first, second := range map[string]string{"Cholesterol,": "Total", "HDL": "Cholesterol", "Non-HDL": "Cholesterol", "Vitamin": "B12", "Iron,": "Total", "Hemoglobin": "A1c", "AST": "(SGOT)", "Fibrinogen": "(mg/dL)"} {
		got := rowsOf(t, "Test  Result  Units  Reference\n"+first+"  40  mg/dL  30 - 100\n"+second+"\nFerritin  47  ng/mL  38 - 380\nTSH  2.1  mIU/L  0.40 - 4.50\n")
		require.Len(t, got, 3, first)
		if second[0] == '(' && second != "(SGOT)" {
			second = ""
		}
		require.Equal(t, strings.TrimSpace(first+" "+second), got[0].TestName)
		require.Equal(t, "40", got[0].Value)
		require.Equal(t, "Ferritin", got[1].TestName)
	}
}

// The mark of a list is no flag.
func TestFlags_listMarkerIsNoFlag(t *testing.T) {
	got := rowsOf(t, "- Potassium: 4.5 mmol/L [3.5 - 5.3]\n- Sodium: 139 mmol/L (135 - 146)\n- Ferritin: 199 ng/mL (38 - 380)\n- TSH: 7.1 mIU/L (0.4 - 4.5)\n")
	require.Len(t, got, 4)
	for i, want := range []labreport.Interpretation{labreport.Normal, labreport.Normal, labreport.Normal, labreport.Abnormal} {
		require.Equal(t, want, *got[i].Interpretation, got[i].TestName)
	}
}

// A word of a name that was not read makes the name, and so the code, unsure.
func TestLOINC_nameWithAnUnrecognizedWordNeedsReview(t *testing.T) {
	const others = "Lipid Panel\nTest  Result  Units  Reference\nCholesterol, Total  180  mg/dL  < 200\nTriglycerides  90  mg/dL  < 150\nTSH  2.1  mIU/L  0.4 - 4.5\n"
	for name, auto := range map[string]bool{"Bilirubin": true, "Bilirubin d1rcct": false} {
		read := rowsOf(t, others+name+"  0.2  mg/dL  0.2 - 1.2\n")
		require.Equal(t, auto, *read[len(read)-1].LoincMatchStatus == labreport.AutoMatch, name)
	}
}

// Reports in German, Spanish and French have their own labels, decimals, dates and units.
func TestRead_understandsGermanSpanishAndFrench(t *testing.T) {
	for language, c := range map[string]struct{ text, birth, collected string }{
		"de": {"Labor Musterstadt\nPatient: Weber, Anna  Geburtsdatum: 05.02.1980  Geschlecht: weiblich\nAbnahme: 03.04.2026  Befunddatum: 04.04.2026\nUntersuchung  Ergebnis  Einheit  Referenzbereich\nLeukozyten  6,7  Tsd./µl  3,8 - 10,8\nErythrozyten  4,52  Mio/µl  4,20 - 5,80\nThrombozyten  231  /nl  140 - 400\nHarnsäure  5,1  mg/dl  4,0 - 8,0\n", "1980-02-05", "2026-04-03"},
		"es": {"Laboratorio Valle Verde\nPaciente: Ana Ruiz  Fecha de nacimiento: 05/02/1980  Sexo: Mujer\nFecha de toma: 03/04/2026  Fecha de emisión: 14/04/2026\nPrueba  Resultado  Unidades  Valores de referencia\nLeucocitos  6,7  miles/mm3  3,8 - 10,8\nHematíes  4,52  mill/mm3  4,20 - 5,80\nPlaquetas  231  miles/mm3  140 - 400\nÁcido úrico  5,1  mg/dl  4,0 - 8,0\n", "1980-02-05", "2026-04-03"},
		"fr": {"Laboratoire des Tilleuls\nPatient : Anne Moreau  Date de naissance : 05/02/1980  Sexe : Féminin\nPrélevé le : 03/04/2026  Édité le : 14/04/2026\nAnalyse  Résultat  Unités  Valeurs de référence\nLeucocytes  6,7  G/L  3,8 - 10,8\nHématies  4,52  T/L  4,20 - 5,80\nPlaquettes  231  G/L  140 - 400\nAcide urique  5,1  mg/dL  4,0 - 8,0\n", "1980-02-05", "2026-04-03"},
	} {
		t.Run(language, func(t *testing.T) {
			pages := printed(c.text)
			require.Equal(t, language, labreport.NewReader(nil).Language(pages[0]))
			d, reason := labreport.NewReader(nil).Read(pages)
			require.Empty(t, reason)
			require.Len(t, d.Results, 4)
			for i, want := range []string{"6.7", "4.52", "231", "5.1"} {
				require.Equal(t, want, d.Results[i].Value)
			}
			for i, want := range []ucum.Unit{unitOf("10*9/L"), unitOf("10*12/L"), unitOf("10*9/L")} {
				n, ok := unitOf(*d.Results[i].Units).Factor(want)
				require.True(t, ok)
				require.InDelta(t, 1, n, 1e-9, *d.Results[i].Units)
			}
			require.Equal(t, c.birth, *d.Metadata.DOB)
			require.Equal(t, c.collected, *d.Metadata.DateCollected)
			require.Equal(t, "female", d.Metadata.Gender)
		})
	}
}

func unitOf(printed string) ucum.Unit {
	u, _ := ucum.Parse(printed)
	return u
}

// Headings of columns are known by the shape of their letters. A value under the heading of
// older results is doubted.
func TestHeadings_misreadLettersAreRecognizedByShape(t *testing.T) {
	const rows = "Ferritin  157  216  ng/mL  38 - 380\nIron, Total  123  103  ug/dL  50 - 180\nTSH  1.1  2.1  mIU/L  0.4 - 4.5\n"
	for heading, sure := range map[string]bool{"Resu1t": true, "ResuIt": true, "R~~~t": false} {
		pages := printed("Test Laboratory\nPatient: Ann Doe  DOB: 01/02/1980  Sex: F\nCollected: 03/04/2026\n\nTest  Previous  " + heading + "  Units  Reference\n" + rows)
		d, reason := labreport.NewReader(nil).Read(pages)
		require.Empty(t, reason)
		require.Len(t, d.Results, 3)
		for i, want := range []string{"216", "103", "2.1"} {
			right := d.Results[i].Value == want
			require.True(t, right || !sure, "%s: %s", heading, d.Results[i].Value)
			require.True(t, right || d.Results[i].Evidence["value"].Confidence < 0.5, "%s: %s", heading, d.Results[i].Value)
		}
	}
}

func TestInterpret_loneDashIsNoFlag(t *testing.T) {
	low, high := 3.5, 5.1
	for _, c := range []struct {
		value, flag string
		bounds      labreport.Bounds
		want        labreport.Interpretation
	}{
		{"4.2", "-", labreport.Bounds{}, labreport.Unclear},
		{"4.2", " - ", labreport.Bounds{Low: &low, High: &high}, labreport.Normal},
		{"5.6", "-", labreport.Bounds{Low: &low, High: &high}, labreport.Abnormal},
		{"4.2", "--", labreport.Bounds{}, labreport.Critical},
		{"4.2", "--", labreport.Bounds{Low: &low, High: &high}, labreport.Unclear},
		{"2.1", "--", labreport.Bounds{Low: &low, High: &high}, labreport.Critical},
		{"4.2", "–", labreport.Bounds{}, labreport.Unclear},
		{"4.2", "+", labreport.Bounds{}, labreport.Abnormal},
		{"4.2", "L", labreport.Bounds{}, labreport.Abnormal},
	} {
		require.Equal(t, c.want, labreport.Interpret(labreport.Numeric, c.value, c.flag, "", c.bounds), "%s %q", c.value, c.flag)
	}
}

// A letter of a picture that looks like a digit is the digit that the names of the analyte have.
func TestNames_lettersMisreadForDigitsAreCorrectedByTheAnalyte(t *testing.T) {
	const others = "Glucose  95  mg/dL  70 - 99\nSodium  140  mmol/L  135 - 146\nMCV  90  fL  80 - 100\n"
	for printed, want := range map[string]string{"HbAic": "HbA1c", "HbAlc": "HbA1c", "HBAIC": "HBA1C", "HbA1c": "HbA1c", "Hemoglobin Alc": "Hemoglobin A1c", "Albumin": "Albumin", "Bilirubin": "Bilirubin"} {
		read := readAsPicture(t, others+printed+"  5.1  %  4.0 - 5.6\n")
		require.Equal(t, want, read[len(read)-1].TestName, printed)
	}
	require.Empty(t, named(readAsPicture(t, others), "HbA1c"))
}
