package pdftext

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// lineOf places the characters of a text in a font of ten points: each is five points wide,
// a space is as wide as space.
func lineOf(text string, x, y, space float64) (out []char) {
	for _, r := range text {
		wide := 5.0
		if r == ' ' {
			wide = space
		}
		out = append(out, char{r, x, y, x + wide, y + 10})
		x += wide
	}
	return out
}

func texts(runs []run) (out []string) {
	for _, r := range runs {
		out = append(out, r.text)
	}
	return out
}

func TestWordsOf_splitsCharactersIntoWords(t *testing.T) {
	for name, c := range map[string]struct {
		chars []char
		want  []string
	}{
		"spaces":             {lineOf("mg per dL", 0, 0, 2.8), []string{"mg", "per", "dL"}},
		"narrow spaces":      {lineOf("95 mg", 0, 0, 1.2), []string{"95", "mg"}},
		"gap without spaces": {append(lineOf("95", 0, 0, 0), lineOf("mg", 13, 0, 0)...), []string{"95", "mg"}},
		"pieces":             {append(lineOf("Gluc", 0, 0, 0), lineOf("ose", 20.5, 0, 0)...), []string{"Glucose"}},
		"later piece first":  {append(lineOf("ose", 20.5, 0, 0), lineOf("Gluc", 0, 0, 0)...), []string{"Glucose"}},
		"piece of next line": {append(lineOf("Gluc", 0, 0, 0), lineOf("ose", 20.5, 12, 0)...), []string{"Gluc", "ose"}},
		"smaller type":       {append(lineOf("10", 0, 0, 0), char{'3', 40, -4, 43, 2}), []string{"10", "3"}},
		"bold":               {append(lineOf("TSH", 0, 0, 0), lineOf("TSH", 0.3, 0, 0)...), []string{"TSH"}},
		"same in two rows":   {append(lineOf("H", 0, 0, 0), lineOf("H", 0, 12, 0)...), []string{"H", "H"}},
		"right to left":      {[]char{{'ה', 15, 0, 20, 10}, {'ר', 10, 0, 15, 10}, {'צ', 5, 0, 10, 10}, {'ל', 0, 0, 5, 10}}, []string{"הרצל"}},
		"space drawn late":   {append(append(lineOf("mg", 11.2, 0, 0), lineOf("95", 0, 0, 0)...), char{' ', 10, 0, 11.2, 10}), []string{"mg", "95"}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, texts(wordsOf(c.chars))) })
	}
}
