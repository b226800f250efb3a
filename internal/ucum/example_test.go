package ucum_test

import (
	"fmt"

	"github.com/healthlab-dev/healthlab/internal/ucum"
)

// Printed units become codes, and are converted where they measure the same.
func Example() {
	per, _ := ucum.Parse("g/l")
	deci, _ := ucum.Parse("mg/dL")
	factor, ok := per.Factor(deci)
	fmt.Println(per.UCUM, per.Kind(), factor, ok)
	_, better, ok := ucum.Repair("mgidL")
	fmt.Println(better, ok)
	// Output:
	// g/L mass 100 true
	// mg/dL true
}
