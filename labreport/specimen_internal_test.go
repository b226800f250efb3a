package labreport

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUnitsOfTermsFitTheirProperty compares the example units of the embedded terms with
// the property of their code.
func TestUnitsOfTermsFitTheirProperty(t *testing.T) {
	for i := range Embedded().terms {
		term := &Embedded().terms[i]
		kind := propertyKind(term)
		for _, unit := range term.Units {
			if got := unitKind(unit); kind != "" && got != "other" {
				require.True(t, kindsAgree(kind, got), "%s %s: %s is no unit of %s", term.Code, term.Name, unit, term.Property)
			}
		}
	}
}
