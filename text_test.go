package healthlab_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"

	"github.com/healthlab-dev/healthlab"
)

func TestFoldText_removesCaseAndAccents(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "MUÑOZ": "munoz", "Mun\u0303oz": "munoz", "José": "jose", "Straße": "strasse", "STRASSE": "strasse", "Søren": "søren", "ŁUKASZ": "łukasz",
		"ﬁrst": "first", "Ⅳ": "iv", "ΣΊΣΥΦΟΣ": "σισυφοσ", "İpek": "ipek", "O’Brien": "o’brien", "한글": "한글", "Ａｎａ": "ana",
	} {
		require.Equal(t, want, healthlab.FoldText(in), in)
	}
}

// A folded text folds to itself, and the forms of one text fold alike.
func FuzzFoldText(f *testing.F) {
	for _, s := range []string{"Muñoz", "Straße", "İ", "ΐ", "한글", "\u0345a", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		folded := healthlab.FoldText(s)
		require.Equal(t, folded, healthlab.FoldText(folded))
		require.Equal(t, folded, healthlab.FoldText(norm.NFC.String(s)))
		require.Equal(t, folded, healthlab.FoldText(norm.NFD.String(s)))
	})
}
