package appointmenttest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

// RunCenters runs the contract tests of [appointment.Centers]. newCenters returns an implementation with
// exactly these centers.
func RunCenters(t *testing.T, newCenters func(t testing.TB, centers []appointment.Center) appointment.Centers) {
	for name, run := range conformance.Sorted(centerCases) {
		t.Run(name, func(t *testing.T) {
			run(t, func(list ...appointment.Center) appointment.Centers { return newCenters(t, list) })
		})
	}
}

func place(lab int, code string, lng, lat float64, has ...appointment.PSCCapability) appointment.Center {
	return appointment.Center{LabID: lab, SiteCode: code, Location: appointment.LngLat{Lng: lng, Lat: lat}, IANATimezone: "America/Phoenix",
		Capabilities: append([]appointment.PSCCapability{}, has...),
		Metadata: appointment.PSCMetadata{Name: "Center " + code, FirstLine: "1 Main St", SecondLine: "b", City: "Mesa", State: "AZ", ZipCode: "85201",
			PhoneNumber: "1", FaxNumber: "2", Website: new("https://c.example.com"), Hours: []byte(`{"mon":"7-12"}`)}}
}

func sites(list []appointment.Center) []string {
	out := []string{}
	for _, c := range list {
		out = append(out, c.SiteCode)
	}
	return out
}

var centerCases = map[string]func(*testing.T, func(...appointment.Center) appointment.Centers){
	"Near/RoundTrip": func(t *testing.T, with func(...appointment.Center) appointment.Centers) {
		want := place(1, "A", -112, 33, appointment.PSCStat)
		bare := want
		bare.SiteCode, bare.Metadata = "B", appointment.PSCMetadata{Name: "n", FirstLine: "f", City: "c", State: "s", ZipCode: "85201"}
		c := with(want, bare)
		near, err := c.CentersNear(t.Context(), appointment.CenterQuery{LabID: 1, Near: want.Location, Miles: 10, Most: 5})
		require.NoError(t, err)
		require.Equal(t, conformance.JSON(t, []appointment.Center{want, bare}), conformance.JSON(t, near.Centers), "ties by site code")
		at, err := c.CentersAt(t.Context(), 1, []string{"A"})
		require.NoError(t, err)
		require.Equal(t, conformance.JSON(t, []appointment.Center{want}), conformance.JSON(t, at))
	},
	"Near/LikeTheIndex": func(t *testing.T, with func(...appointment.Center) appointment.Centers) {
		var all []appointment.Center
		for i := range 400 {
			c := place(1+i%2, fmt.Sprintf("S%03d", i), -112+float64(i*7919%997)/250-2, 33+float64(i*104729%991)/300-1.6, appointment.PSCCapabilities()[:i%4]...)
			c.Inactive = i%11 == 0
			all = append(all, c)
		}
		model, err := appointment.NewCenterIndex(all)
		require.NoError(t, err)
		c := with(all...)
		rapid.Check(t, func(rt *rapid.T) {
			q := appointment.CenterQuery{LabID: rapid.IntRange(1, 3).Draw(rt, "lab"), Miles: rapid.SampledFrom([]float64{0, 10, 25, 50, 100, 400}).Draw(rt, "miles"),
				Near:         appointment.LngLat{Lng: rapid.Float64Range(-116, -108).Draw(rt, "lng"), Lat: rapid.Float64Range(30, 37).Draw(rt, "lat")},
				Capabilities: appointment.PSCCapabilities()[:rapid.IntRange(0, 2).Draw(rt, "wants")], Most: rapid.SampledFrom([]int{0, 1, 30}).Draw(rt, "most")}
			want, err := model.CentersNear(t.Context(), q)
			require.NoError(rt, err)
			got, err := c.CentersNear(t.Context(), q)
			require.NoError(rt, err)
			require.Equal(rt, sites(want.Centers), sites(got.Centers))
			require.Equal(rt, want.Total, got.Total)
			require.Equal(rt, append([]appointment.PSCCapability{}, want.Capabilities...), append([]appointment.PSCCapability{}, got.Capabilities...))
			after := fmt.Sprintf("S%03d", rapid.IntRange(0, 400).Draw(rt, "after"))
			n := rapid.IntRange(0, 5).Draw(rt, "n")
			next, err := model.NextCenters(t.Context(), q.LabID, appointment.PSCStat, after, n)
			require.NoError(rt, err)
			more, err := c.NextCenters(t.Context(), q.LabID, appointment.PSCStat, after, n)
			require.NoError(rt, err)
			require.Equal(rt, sites(next), sites(more))
		})
	},
	"At": func(t *testing.T, with func(...appointment.Center) appointment.Centers) {
		closed := place(1, "C", -112, 33)
		closed.Inactive = true
		c := with(place(1, "b", -112, 33), closed, place(1, "A", -112, 33), place(2, "D", -112, 33))
		got, err := c.CentersAt(t.Context(), 1, []string{"b", "A", "C", "A", "D", "a"})
		require.NoError(t, err)
		require.Equal(t, []string{"A", "C", "b"}, sites(got), "inactive ones included, by code, byte for byte")
		require.True(t, got[1].Inactive)
		got, err = c.CentersAt(t.Context(), 1, nil)
		require.NoError(t, err)
		require.Empty(t, got)
	},
}
