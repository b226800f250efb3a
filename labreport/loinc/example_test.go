package loinc_test

import (
	"fmt"

	"github.com/healthlab-dev/healthlab/internal/ucum"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

// The unit decides between the terms of a name; a row of another fluid has no term of blood.
func Example() {
	unit, _ := ucum.Parse("mg/dl")
	q := loinc.Question{Name: "Glukose", Unit: unit, UnitText: "mg/dl", Scale: "Qn", Specimen: loinc.Blood}
	candidates, err := loinc.Rank(loinc.Embedded(), q)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(candidates[0].Term.Code, candidates[0].Term.Name, loinc.Certain(candidates, q))
	q.Name = "Glukose im Pleurapunktat"
	candidates, _ = loinc.Rank(loinc.Embedded(), q)
	fmt.Println(loinc.Certain(candidates, q))
	// Output:
	// 2345-7 Glucose [Mass/volume] in Serum or Plasma true
	// false
}
