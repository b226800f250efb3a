package labreport_test

import (
	"fmt"
	"strings"

	"github.com/healthlab-dev/healthlab/labreport"
)

// A page of words, as an extractor hands it over, becomes results with codes; every
// field says where on the page it was read.
func Example() {
	lines := []string{
		"Northfield Clinical Laboratory",
		"Patient: Ada Hartley   DOB: 02 Apr 1988   Sex: Female",
		"Collected: 01 Feb 2026   Reported: 03 Feb 2026   Specimen: S-1001",
		"Ferritin 18 ng/mL 30-400 L",
		"Glucose 91 mg/dL 70-99",
		"Hemoglobin A1c 5.4 % <5.7",
	}
	page := labreport.Page{Number: 1, Width: 600, Height: 800}
	for i, line := range lines {
		x := 0.08
		for _, word := range strings.Split(line, " ") {
			w := 0.012 * float64(len(word))
			if word != "" {
				page.Words = append(page.Words, labreport.Word{Text: word, Confidence: 1, Box: labreport.Box{X: x, Y: 0.1 + 0.02*float64(i), Width: w, Height: 0.015}})
			}
			x += w + 0.006
		}
	}

	data, reason := labreport.NewReader(nil).Read([]labreport.Page{page})
	if reason != "" {
		fmt.Println("no results:", reason)
		return
	}
	fmt.Println(*data.Metadata.PatientFirstName, *data.Metadata.PatientLastName, *data.Metadata.DOB, data.Metadata.Gender)
	for _, r := range data.Results {
		where := r.Evidence["value"]
		fmt.Printf("%s = %s %s, %s, %s (page %d, %.2f from the top)\n", r.TestName, r.Value, *r.Units, *r.Interpretation, r.LoincMatches[0].LoincCode, where.Page, where.Box.Y)
	}
	// Output:
	// Ada Hartley 1988-04-02 female
	// Ferritin = 18 ng/mL, abnormal, 2276-4 (page 1, 0.16 from the top)
	// Glucose = 91 mg/dL, normal, 2345-7 (page 1, 0.18 from the top)
	// Hemoglobin A1c = 5.4 %, normal, 4548-4 (page 1, 0.20 from the top)
}
