package critical_test

import (
	"fmt"

	"github.com/healthlab-dev/healthlab/orders/critical"
)

// The ladder of a team that has chosen none.
func Example() {
	for _, step := range critical.DefaultLadder() {
		fmt.Println(step.After, step.To)
	}
	// Output:
	// 15m0s ordering_clinician
	// 30m0s clinician_on_call
	// 1h0m0s medical_director
}
