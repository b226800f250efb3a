package labreport_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/labreport"
)

// decimalRows are rows of numbers with a decimal point.
var decimalRows = [][4]string{
	{"Potassium", "4.6", "mmol/L", "3.5 - 5.3"}, {"Albumin", "4.1", "g/dL", "3.6 - 5.1"}, {"Calcium", "9.1", "mg/dL", "8.6 - 10.3"},
	{"Creatinine", "0.9", "mg/dL", "0.6 - 1.3"}, {"Uric Acid", "5.6", "mg/dL", "4.0 - 8.0"}, {"Magnesium", "2.1", "mg/dL", "1.5 - 2.5"},
}

// withoutPoint returns a row as it is read without its decimal points.
func withoutPoint(c [4]string) [4]string {
	drop := func(s string) string {
		fields := strings.Fields(strings.ReplaceAll(s, ".", ""))
		for i, f := range fields {
			if f != "-" {
				fields[i] = strings.TrimLeft(f, "0")
			}
		}
		return strings.Join(fields, " ")
	}
	c[1], c[3] = drop(c[1]), drop(c[3])
	return c
}

func rowText(c [4]string) string { return fmt.Sprintf("%s  %s  %s  %s\n", c[0], c[1], c[2], c[3]) }

// A row of a picture whose value and range both lost their point is not sure; both readings are
// offered and no flag is computed.
func TestNumbers_lostDecimalPointInValueAndRangeHasLowConfidence(t *testing.T) {
	const others = "Glucose  95  mg/dL  70 - 99\nMCV  90  fL  80 - 100\nSodium  140  mmol/L  135 - 146\nChloride  101  mmol/L  98 - 107\nBUN  15  mg/dL  7 - 25\n"
	for _, c := range decimalRows {
		t.Run(c[0], func(t *testing.T) {
			s := withoutPoint(c)
			all := readAsPicture(t, others+rowText(s))
			got := named(all, c[0])[0]
			require.Equal(t, s[1], got.Value)
			require.Equal(t, []string{c[1]}, got.Evidence["value"].Alternatives)
			require.Equal(t, []string{c[3]}, got.Evidence["reference_range"].Alternatives)
			require.Less(t, got.Evidence["value"].Confidence, 0.5)
			require.Less(t, got.Evidence["reference_range"].Confidence, 0.5)
			require.Equal(t, labreport.Unclear, *got.Interpretation)
			require.NotEqual(t, labreport.AutoMatch, *got.LoincMatchStatus)
			require.Greater(t, named(all, "Glucose")[0].Evidence["value"].Confidence, 0.5, "one row decides no sheet")

			right := named(readAsPicture(t, others+rowText(c)), c[0])[0]
			require.Empty(t, right.Evidence["value"].Alternatives)
			require.Greater(t, right.Evidence["value"].Confidence, 0.5)
			for _, r := range rowsOf(t, others+rowText(s)) {
				require.Empty(t, r.Evidence["value"].Alternatives, "a text layer loses no point")
			}
		})
	}
}

// Many shifted rows make every number of the sheet unsure, whatever its own range says.
func TestNumbers_manyShiftedRowsLowerTheConfidenceOfTheSheet(t *testing.T) {
	text := "Glucose  95  mg/dL  70 - 99\nSodium  140  mmol/L  135 - 146\nFerritin  40  ng/mL  15 - 150\n"
	for _, c := range decimalRows {
		text += rowText(withoutPoint(c))
	}
	for _, r := range readAsPicture(t, text) {
		require.Less(t, r.Evidence["value"].Confidence, 0.5, r.TestName)
		require.Less(t, r.Evidence["reference_range"].Confidence, 0.5, r.TestName)
		require.Equal(t, labreport.Unclear, *r.Interpretation, r.TestName)
	}
	text = "Glucose  95  mg/dL  70 - 99\n"
	for _, c := range decimalRows {
		text += rowText(c)
	}
	for _, r := range readAsPicture(t, text) {
		require.Greater(t, r.Evidence["value"].Confidence, 0.5, r.TestName)
	}
}

// Names beside the values of the lines below are not sure, whatever else their rows say.
func TestPicture_namesShiftedAgainstTheirValuesHaveLowConfidence(t *testing.T) {
	names := []string{"Glucose", "Hematocrit", "MCV", "MCH", "RDW", "Sodium", "Cholesterol"}
	values := []string{"95  mg/dL  70 - 99", "43.1  %  38.5 - 50.0", "90.1  fL  80.0 - 100.0", "29.9  pg  27.0 - 33.0", "12.9  %  11.0 - 15.0", "140  mmol/L  135 - 146", "184  mg/dL  < 200"}
	page := func(below int) (text string) {
		text = "Triglycerides  68  mg/dL  < 150\nHDL Cholesterol  50  mg/dL  > 40\nUrea  30  mg/dL  15 - 45\n"
		for i, name := range names[:len(names)-below] {
			text += name + "  " + values[i+below] + "\n"
		}
		return text
	}
	for _, r := range readAsPicture(t, page(0)) {
		require.Greater(t, r.Evidence["value"].Confidence, 0.5, r.TestName)
	}
	for _, r := range readAsPicture(t, page(1)) {
		for field, got := range r.Evidence {
			require.Less(t, got.Confidence, 0.5, "%s of %s", field, r.TestName)
		}
	}
}

// A range that lost its points beside a value that kept its own, points that moved to the left, and points
// that moved by two places: the range is not sure, and no flag is computed from it.
func TestNumbers_movedDecimalPointInValueOrRangeHasLowConfidence(t *testing.T) {
	for _, c := range []struct {
		name      string
		row       [4]string
		value     string // its alternative; empty if the value is sure
		reference string
	}{
		{"range alone", [4]string{"Potassium", "4.6", "mmol/L", "35 - 53"}, "", "3.5 - 5.3"},
		{"to the left", [4]string{"Sodium", "14.1", "mmol/L", "13.5 - 14.6"}, "141", "135 - 146"},
		{"range to the left", [4]string{"Sodium", "141", "mmol/L", "13.5 - 14.6"}, "14.1", "135 - 146"},
		{"two places", [4]string{"TSH", "214", "mIU/L", "45 - 450"}, "2.14", "0.45 - 4.50"},
		{"another unit of the dimension", [4]string{"Albumin", "410", "g/L", "360 - 510"}, "41.0", "36.0 - 51.0"},
		{"another code of the analyte", [4]string{"Creatinine", "820", "umol/L", "530 - 970"}, "82.0", "53.0 - 97.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := named(readAsPicture(t, "Glucose  95  mg/dL  70 - 99\nMCV  90  fL  80 - 100\nChloride  101  mmol/L  98 - 107\nBUN  15  mg/dL  7 - 25\nHemoglobin  14.1  g/dL  12.0 - 16.0\n"+rowText(c.row)), c.row[0])[0]
			require.Less(t, got.Evidence["reference_range"].Confidence, 0.5)
			require.Equal(t, []string{c.reference}, got.Evidence["reference_range"].Alternatives)
			require.Equal(t, labreport.Unclear, *got.Interpretation)
			if c.value == "" {
				require.Greater(t, got.Evidence["value"].Confidence, 0.5)
				return
			}
			require.Less(t, got.Evidence["value"].Confidence, 0.5)
			require.Equal(t, []string{c.value}, got.Evidence["value"].Alternatives)
		})
	}
}

// A value of a picture far from what is published for its analyte is not sure if the row has no printed range.
func TestNumbers_lostDecimalPointWithoutARangeHasLowConfidence(t *testing.T) {
	const others = "Glucose  95  mg/dL  70 - 99\nMCV  90  fL  80 - 100\nSodium  140  mmol/L  135 - 146\nChloride  101  mmol/L  98 - 107\n"
	for _, c := range append([][4]string{{"HbA1c", "7.8", "%", ""}}, decimalRows...) {
		t.Run(c[0], func(t *testing.T) {
			c[3] = ""
			got := named(readAsPicture(t, others+rowText(withoutPoint(c))), c[0])[0]
			require.Less(t, got.Evidence["value"].Confidence, 0.7)
			if len(got.Value) > 1 { // a lone digit has no place for a point
				require.Equal(t, []string{c[1]}, got.Evidence["value"].Alternatives)
				require.Less(t, got.Evidence["value"].Confidence, 0.5)
			}
			right := named(readAsPicture(t, others+rowText(c)), c[0])[0]
			require.Empty(t, right.Evidence["value"].Alternatives)
			require.Greater(t, right.Evidence["value"].Confidence, 0.5)
		})
	}
}

// A number that stands in the column of ranges, and in no column of values, is no sure value.
func TestNumbers_valueInTheColumnOfRangesHasLowConfidence(t *testing.T) {
	w := newWriter(10)
	for _, cells := range [][4]string{
		{"Test", "Result", "Units", "Reference"}, {"Glucose", "95", "mg/dL", "70 - 99"}, {"Sodium", "140", "mmol/L", "135 - 146"},
		{"Chloride", "101", "mmol/L", "98 - 107"}, {"BUN", "15", "mg/dL", "7 - 25"}, {"HDL Cholesterol", "", "mg/dL", ">=40"},
	} {
		for i, cell := range cells {
			if cell != "" {
				w.at(50+140*float64(i), cell)
			}
		}
		w.down(1.2)
	}
	w.pages[0].Image = true
	d, reason := labreport.NewReader(nil).Read(w.pages)
	require.Empty(t, reason)
	all := d.Results
	for _, got := range named(all, "HDL Cholesterol") {
		for field, at := range got.Evidence {
			require.Less(t, at.Confidence, 0.5, field)
		}
	}
	require.Greater(t, named(all, "Glucose")[0].Evidence["value"].Confidence, 0.5)
}
