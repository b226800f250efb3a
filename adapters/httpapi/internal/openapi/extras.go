package openapi

import (
	"bytes"
	"embed"
	"encoding/json"
	"strings"

	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// errorTypeList has every error_type that answers may have, a line each, sorted. A test
// compares it with the source.
//
//go:embed error_types.txt
var errorTypeList embed.FS

// valueBound is what a field of a resource may be.
type valueBound struct {
	Minimum float64 `json:"minimum"`
	Maximum float64 `json:"maximum"`
	Unit    string  `json:"unit"`
}

// intervalBound is how far apart the start and the end of an item may be.
type intervalBound struct {
	Start    string `json:"start"`
	End      string `json:"end"`
	Required bool   `json:"required"`
	// Positive says that the end is after the start.
	Positive bool    `json:"positive"`
	Longest  float64 `json:"longest_second"`
}

// WithExtras adds to a joined contract what the code knows: the events, the bounds of values and
// intervals, the names of queries, and the types of errors.
func WithExtras(doc []byte) []byte {
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
		panic("openapi: " + err.Error()) // it is part of the program
	}
	out := bytes.TrimSuffix(bytes.TrimSpace(doc), []byte{'}'})
	for _, extra := range []struct {
		name string
		v    any
	}{
		{"webhooks", eventWebhooks()},
		{"x-value-bounds", bounds},
		{"x-interval-bounds", intervals},
		{"x-query-schema", aggregate.Describe()},
		{"x-error-types", strings.Fields(string(list))},
	} {
		b, err := json.Marshal(extra.v)
		if err != nil {
			panic("openapi: " + err.Error())
		}
		out = append(append(append(out, `,"`+extra.name+`":`...), b...), '\n')
	}
	return append(out, '}')
}
