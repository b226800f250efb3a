// Package extras generates the parts of the contract that follow from the code: events, bounds of values, the tables of
// queries and the types of errors. It is separate from package openapi, so that a program that serves the contract does
// not link the domain packages: command gen writes the served file.
package extras

import (
	"embed"
	"encoding/json"
	"strings"

	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// errorTypeList contains every error_type of the API, one per line, sorted. Each is followed by the directories of the
// packages that return it: httpapi, or a domain. A test compares the list with the source.
//
//go:embed error_types.txt
var errorTypeList embed.FS

// valueBound is the range of the values of one field of a resource.
type valueBound struct {
	Minimum float64 `json:"minimum"`
	Maximum float64 `json:"maximum"`
	Unit    string  `json:"unit"`
}

// intervalBound limits the time between the start and the end of an item.
type intervalBound struct {
	Start    string `json:"start"`
	End      string `json:"end"`
	Required bool   `json:"required"`
	// Positive requires the end to be after the start.
	Positive bool    `json:"positive"`
	Longest  float64 `json:"longest_second"`
}

// Make returns the members of the contract that are generated from Go code, as one JSON object.
func Make() ([]byte, error) {
	bounds := map[string]map[string]valueBound{}
	intervals := map[string]intervalBound{}
	for _, r := range healthdata.Resources() {
		if b, ok := r.IntervalBounds(); ok {
			intervals[r.Slug] = intervalBound{b.Start, b.End, b.Required, b.Positive, b.Longest.Seconds()}
		}
		fields := map[string]valueBound{}
		if b, ok := r.Bounds(); ok {
			fields["value"] = valueBound{b.Low, b.High, b.Unit}
		}
		for name, b := range r.PartBounds() {
			fields[name] = valueBound{b.Low, b.High, b.Unit}
		}
		if len(fields) > 0 {
			bounds[r.Slug] = fields
		}
	}
	list, err := errorTypeList.ReadFile("error_types.txt")
	if err != nil {
		return nil, err
	}
	var types []string
	for line := range strings.Lines(string(list)) {
		types = append(types, strings.Fields(line)[0])
	}
	out := []byte{'{'}
	for i, extra := range []struct {
		name string
		v    any
	}{
		{"webhooks", eventWebhooks()},
		{"x-value-bounds", bounds},
		{"x-interval-bounds", intervals},
		{"x-query-schema", aggregate.Describe()},
		{"x-error-types", types},
	} {
		b, err := json.Marshal(extra.v)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, `"`+extra.name+`":`...), b...), '\n')
	}
	return append(out, '}', '\n'), nil
}
