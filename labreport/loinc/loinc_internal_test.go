package loinc

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/ucum"
)

// TestTerms_unitsFitTheirProperty compares the example units of the embedded terms with
// the property of their code.
func TestTerms_unitsFitTheirProperty(t *testing.T) {
	for i := range Embedded().terms {
		term := &Embedded().terms[i]
		kind := term.Kind()
		for _, unit := range term.Units {
			of, err := ucum.FromCode(unit)
			require.NoError(t, err, "%s: %s", term.Code, unit)
			if got := of.Kind(); kind != "" && got != "other" {
				require.True(t, kindsAgree(kind, got), "%s %s: %s is no unit of %s", term.Code, term.Name, unit, term.Property)
			}
		}
	}
}

func TestValidCode_checksTheCheckDigit(t *testing.T) {
	for code, want := range map[string]bool{"2345-7": true, "4548-4": true, "2345-6": false, "": false, "2345": false, "-7": false, "23a5-7": false, "98979-8": true} {
		require.Equal(t, want, ValidCode(code), code)
	}
}

func TestEmbedded_findsNamesInEachLanguage(t *testing.T) {
	require.Greater(t, Embedded().Terms(), 1100)
	require.Contains(t, License, "LOINC")
	for _, name := range []string{"Glucosa", "Hämoglobin", "T4,Free(Direct)", "Free T4", "GPT (ALAT)", "Créatinine", "WBC Count"} {
		found, err := Embedded().Find(name)
		require.NoError(t, err)
		require.NotEmpty(t, found, name)
		require.Greater(t, found[0].Likeness, 0.9, name)
	}
	found, err := Embedded().Find("Copper pipe")
	require.NoError(t, err)
	require.Empty(t, found)
}

// A small file in the form that LOINC publishes.
const published = `"LOINC_NUM","COMPONENT","PROPERTY","TIME_ASPCT","SYSTEM","SCALE_TYP","METHOD_TYP","CLASS","STATUS","CLASSTYPE","SHORTNAME","EXAMPLE_UCUM_UNITS","LONG_COMMON_NAME","COMMON_TEST_RANK","DisplayName"
"2345-7","Glucose","MCnc","Pt","Ser/Plas","Qn","","CHEM","ACTIVE","1","Glucose SerPl-mCnc","mg/dL","Glucose [Mass/volume] in Serum or Plasma","4","Glucose"
"5792-7","Glucose","MCnc","Pt","Urine","Qn","Test strip","UA","ACTIVE","1","Glucose Ur Strip-mCnc","mg/dL","Glucose [Mass/volume] in Urine by Test strip","96","Glucose, urine"
"8480-6","Intravascular systolic","Pres","Pt","Arterial system","Qn","","BP.ATOM","ACTIVE","2","BP sys","mm[Hg]","Systolic blood pressure","1",""
"2947-0","Sodium","SCnc","Pt","Bld","Qn","","CHEM","DEPRECATED","1","Sodium Bld-sCnc","mmol/L","Sodium [Moles/volume] in Blood","0",""
`

func TestLoad_readsThePublishedTableAndRefusesBadRows(t *testing.T) {
	terms, err := Load(strings.NewReader(published))
	require.NoError(t, err)
	require.Len(t, terms, 2, "a clinical and a deprecated term are left out")
	table, err := NewTable(terms)
	require.NoError(t, err)
	mass, _ := ucum.Parse("mg/dl")
	best, err := Rank(table, Question{Name: "Glukose", Unit: mass, UnitText: "mg/dl", Specimen: Blood, Scale: "Qn"})
	require.NoError(t, err)
	require.Equal(t, "2345-7", best[0].Term.Code, "a published term has the embedded names")

	for _, bad := range []string{"", "a,b\n1,2\n", strings.SplitN(published, "\n", 2)[0] + "\n"} {
		_, err := Load(strings.NewReader(bad))
		require.ErrorIs(t, err, healthlab.Invalid)
	}
	terms[0].Code = "2345-6"
	_, err = NewTable(terms)
	require.ErrorIs(t, err, healthlab.Invalid)
}
