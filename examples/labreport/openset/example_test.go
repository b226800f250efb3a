package openset_test

import (
	"fmt"

	"github.com/healthlab-dev/healthlab/examples/labreport/openset"
	"github.com/healthlab-dev/healthlab/labreport"
)

// A reader that finds nothing.
func Example() {
	var score openset.Score
	for _, sheet := range openset.Sheets() {
		score.Add(sheet, labreport.Data{})
	}
	fmt.Println(score.Pages, score.Want, score.F1())
	// Output: 23 422 0
}
