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
func TestPointLostInValueAndRange(t *testing.T) {
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
func TestSheetOfLostPoints(t *testing.T) {
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
