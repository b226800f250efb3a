package rest_test

import (
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// A connector is a table of kinds, each with a function that reads one item.
func Example() {
	type reading struct {
		At  rest.Instant `json:"at"`
		BPM *float64     `json:"bpm"`
	}
	d := &rest.Definition{BaseURL: "https://api.fjord.example", Collections: []rest.Collection{{
		Name: "pulse", Path: "/v1/pulse", Items: "data", Pages: rest.Cursor("cursor", "next"), Resources: []string{"heartrate"},
		Range: rest.Range{From: "from", To: "to", Max: 30 * rest.Day},
		Read: rest.Each(func(r *reading, out *rest.Batch) {
			out.Sample("heartrate", healthdata.SourceRing, healthdata.Sample{
				Timestamp: healthlab.At(r.At.Time.Time), TimezoneOffset: r.At.Offset, Unit: "bpm", Value: rest.Number(r.BPM),
			})
		}),
	}}}
	data, err := d.Read("pulse", []byte(`{"data": [{"at": "2026-03-04T12:00:00+01:00", "bpm": 61}, {"at": 7}]}`))
	fmt.Println(err)
	fmt.Print(data)
	// Output:
	// <nil>
	// heartrate from ring
	//   sample {"timestamp":"2026-03-04T11:00:00+00:00","timezone_offset":3600,"unit":"bpm","value":61}
	// heartrate from unknown
	//   unread [at]: shape: the item must have the form that the provider documents
}
