package labreport

import "github.com/healthlab-dev/healthlab/labreport/refrange"

// ParseBounds returns the bounds of a printed reference range, whose commas may be decimal.
func ParseBounds(s string) Bounds {
	r, _ := refrange.ParseBeside(s, "")
	return boundsOf(r)
}
