package fold_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"

	"github.com/healthlab-dev/healthlab/internal/fold"
)

// Printed labels are one text in every Unicode form; letters without a decomposition stay.
func TestString_foldsEveryUnicodeFormToOneText(t *testing.T) {
	for in, want := range map[string]string{
		"Größe": "grosse", "Hématocrite": "hematocrite", "Leucócitos (%)": "leucocitos %", "Ｈｂ": "hb", "10³/µL": "103 ul", "γ-GT": "gamma gt", "Żelazo": "zelazo", "Jern, ø": "jern ø", "Płytki": "płytki", "cœur": "coeur",
	} {
		for _, form := range []norm.Form{norm.NFC, norm.NFD} {
			require.Equal(t, want, fold.String(form.String(in)), in)
		}
	}
	require.Equal(t, "Munoz", fold.Plain("Mun\u0303oz"))
}
