package labhistory_test

import (
	"fmt"

	"github.com/healthlab-dev/healthlab/aggregate/labhistory"
)

// Two laboratories report glucose under codes and in units of their own.
func Example() {
	for _, r := range []struct {
		code, unit string
		value      float64
	}{{"2345-7", "mg/dL", 95}, {"14749-6", "mmol/L", 5.4}, {"2345-7", "mm/h", 12}} {
		unit, _ := labhistory.UnitOf(r.code)
		v, ok := labhistory.Convert(r.code, r.value, r.unit)
		fmt.Printf("%.2f %s %t\n", v, unit, ok)
	}
	// Output:
	// 5.27 mmol/L true
	// 5.40 mmol/L true
	// 0.00 mmol/L false
}
