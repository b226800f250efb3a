package labresult_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// spellings has lists of spellings; the spellings of one list mean the same unit, and those of two lists never do.
var spellings = [][]string{
	{"mg/dL", "mg/dl", "MG/DL", "mg/100 mL"},
	{"mmol/L", "mmol/l", "MMOL/L"},
	{"umol/L", "µmol/L", "umol/l", "μmol/l"},
	{"10*3/uL", "K/uL", "x10^9/L", "10*9/L", "Tsd./µl", "x10(3)/uL"},
	{"/uL", "cells/uL"},
	{"g/L", "mg/mL"},
	{"U/L", "units/L"},
	{"ng/mL"},
	{"ng/mL FEU", "ng/mL (FEU)"},
	{"%"},
}

// withRange returns a result in unit, completed with the range.
func withRange(result, unit, printed string) labresult.Result {
	r := labresult.Result{Result: result, ReferenceRange: &printed}
	if unit != "" {
		r.Unit = &unit
	}
	return labresult.Complete(labresult.Report{Results: []labresult.Result{r}}, catalogue.LabTest{}, nil, false).Results[0]
}

// bounds returns the interpretation of a result, its limits and its flags, as text.
func bounds(r labresult.Result) string {
	text := func(v fmt.Stringer, none bool) string {
		if none {
			return "none"
		}
		return v.String()
	}
	return fmt.Sprint(r.Interpretation, " ", text(r.MinRangeValue, r.MinRangeValue == nil), " ", text(r.MaxRangeValue, r.MaxRangeValue == nil), " ",
		r.IsAboveMaxRange != nil || r.IsBelowMinRange != nil)
}

func TestCompare_rangeInAnotherUnitGivesNoLimits(t *testing.T) {
	for i, own := range spellings {
		for j, other := range spellings {
			for _, unit := range own {
				for _, of := range other {
					for _, form := range []string{"3-5 %s", "(3-5) %s", "[3-5 %s]", "3 - 5 (%s)", "Ref: 3-5%s", "3 %[1]s - 5 %[1]s", "3,0-5,0 %s", "3-5 %s (fasting)", "between 3 and 5 %s", "3 to 5 (in %s)"} {
						printed := fmt.Sprintf(form, of)
						r := withRange("4", unit, printed)
						if i != j {
							require.Equal(t, "unknown none none false", bounds(r), "%s beside %s", printed, unit)
						} else if r.MinRangeValue != nil { // not every form is read with every unit
							require.Equal(t, labresult.Normal, r.Interpretation, "%s beside %s", printed, unit)
						}
					}
					printed := "3-5 " + of
					if i == j {
						require.Equal(t, "normal 3 5 true", bounds(withRange("4", unit, printed)), "%s beside %s", printed, unit)
						require.Equal(t, "abnormal 3 5 true", bounds(withRange("6", unit, printed)), "%s beside %s", printed, unit)
					}
				}
			}
		}
	}
}

func TestCompare_rangeInTwoUnitsIsReadInTheUnitOfTheResult(t *testing.T) {
	for _, own := range spellings[:2] {
		for _, unit := range own {
			for _, form := range []string{"2.1-2.6 %[2]s (8.5-10.5 %[1]s)", "8.5-10.5 %[1]s (2.1-2.6 %[2]s)", "2.1-2.6 %[2]s [8.5-10.5 %[1]s]", "2.1-2.6 (8.5-10.5 %[1]s)", "8.5-10.5 (2.1-2.6 %[2]s)",
				"2.1-2.6 %[2]s / 8.5-10.5 %[1]s", "2.1-2.6 %[2]s; 8.5-10.5 %[1]s", "2.1-2.6 %[2]s\n8.5-10.5 %[1]s", "2,1-2,6 %[2]s (8,5-10,5 %[1]s)"} {
				printed := fmt.Sprintf(form, unit, "umol/L")
				require.Equal(t, "normal 8.5 10.5 true", bounds(withRange("9.5", unit, printed)), "%s beside %s", printed, unit)
				require.Equal(t, "unknown none none false", bounds(withRange("9.5", "", fmt.Sprintf("2.1-2.6 %[2]s (8.5-10.5 %[1]s)", unit, "umol/L"))), printed)
			}
		}
	}
	for printed, want := range map[string]string{
		// The result is in mg/dL.
		"2.1-2.6 mmol/L (8.5-10.5 ug/L)":                        "unknown none none false",
		"8.5-10.5 mg/dL; 8.0-11 mg/dL; 1-2 mmol/L":              "unknown none none false",
		"2.1-2.6 mmol/L; newborns up to 2.7; 8.5-10.5 mg/dL":    "unknown none none false",
		"2.1-2.6 mmol/L (newborns 8.5-10.5 mg/dL)":              "unknown none none false",
		"Desirable: <5.2 mmol/L Borderline: 5.2-6.2 High: >6.2": "unknown none none false",
		"Desirable: <5.2 Borderline: 5.2-6.2 High: >6.2 mmol/L": "unknown none none false",
		"Desirable: <20 mg/dL Borderline: 20-23 High: >=24":     "normal none 20 true",
		"Desirable: <20 Borderline: 20-23 High: >=24 mg/dL":     "normal none 20 true",
		"Desirable: <5.2 mmol/L (<20 mg/dL)":                    "normal none 20 true",
		"8.5-10.5 (calc)":                                       "normal 8.5 10.5 true",
		"8.5-10.5 (adults)":                                     "normal 8.5 10.5 true",
		"8.5-10.5 years":                                        "unknown none none false",
		"Adults 18-60 years: 8.5-10.5 mg/dL":                    "unknown none none false",
	} {
		require.Equal(t, want, bounds(withRange("9.5", "mg/dL", printed)), printed)
	}
	// A unit of the result that is not known equals its own text only.
	require.Equal(t, "unknown none none false", bounds(withRange("9.5", "zorks", "8.5-10.5 mg/dL")))
	require.Equal(t, "normal 8.5 10.5 true", bounds(withRange("9.5", "zorks", "8.5-10.5")))
	require.Equal(t, "normal 8.5 10.5 true", bounds(withRange("9.5", "", "8.5-10.5 mg/dL")))
}
