package appointment_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

func centerAt(lab int, code string, lng, lat float64, has ...appointment.PSCCapability) appointment.Center {
	return appointment.Center{LabID: lab, SiteCode: code, Location: appointment.LngLat{Lng: lng, Lat: lat}, IANATimezone: "America/Phoenix", Capabilities: has,
		Metadata: appointment.PSCMetadata{Name: "Center " + code, FirstLine: "1 Main St", City: "Mesa", State: "AZ", ZipCode: "85201"}}
}

func centerIndex(t testing.TB, centers ...appointment.Center) *appointment.CenterIndex {
	t.Helper()
	a, err := appointment.NewCenterIndex(centers)
	require.NoError(t, err)
	return a
}

func codes(list []appointment.Center) []string {
	out := []string{}
	for _, c := range list {
		out = append(out, c.SiteCode)
	}
	return out
}

// Distances that can be checked with a map: an hour of longitude on the equator, a
// degree of latitude anywhere, the way over the pole and over the date line.
func TestMiles_equalsKnownDistances(t *testing.T) {
	degree := 6371.0088 / 1.609344 * math.Pi / 180
	for _, tc := range []struct {
		name string
		a, b appointment.LngLat
		want float64
	}{
		{"nowhere", appointment.LngLat{Lng: -112, Lat: 33}, appointment.LngLat{Lng: -112, Lat: 33}, 0},
		{"along the equator", appointment.LngLat{}, appointment.LngLat{Lng: 15}, 15 * degree},
		{"along a meridian", appointment.LngLat{Lng: -70, Lat: 40}, appointment.LngLat{Lng: -70, Lat: 41}, degree},
		{"over the pole", appointment.LngLat{Lng: 0, Lat: 89}, appointment.LngLat{Lng: 180, Lat: 89}, 2 * degree},
		{"over the date line", appointment.LngLat{Lng: 179.5}, appointment.LngLat{Lng: -179.5}, degree},
		{"to the other side", appointment.LngLat{Lng: 10, Lat: 20}, appointment.LngLat{Lng: -170, Lat: -20}, 180 * degree},
		{"New York to Los Angeles", appointment.LngLat{Lng: -74.0060, Lat: 40.7128}, appointment.LngLat{Lng: -118.2437, Lat: 34.0522}, 2445.6},
	} {
		require.InDelta(t, tc.want, tc.a.Miles(tc.b), 0.1, tc.name)
	}
}

// A grid finds what looking at every center finds, anywhere on earth.
func TestCenterIndex_findsTheSameAsAFullScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		place := rapid.Custom(func(t *rapid.T) appointment.LngLat {
			return appointment.LngLat{Lng: rapid.Float64Range(-180, 180).Draw(t, "lng"), Lat: rapid.Float64Range(-90, 90).Draw(t, "lat")}
		})
		near := place.Draw(t, "near")
		var all []appointment.Center
		for i := range rapid.IntRange(0, 60).Draw(t, "centers") {
			at := place.Draw(t, "far")
			if rapid.Bool().Draw(t, "close") {
				at.Lat = math.Max(-90, math.Min(90, near.Lat+rapid.Float64Range(-2, 2).Draw(t, "dlat")))
				at.Lng = math.Remainder(near.Lng+rapid.Float64Range(-3, 3).Draw(t, "dlng"), 360)
			}
			c := centerAt(rapid.IntRange(1, 2).Draw(t, "lab"), fmt.Sprintf("S%03d", i), at.Lng, at.Lat,
				appointment.PSCCapabilities()[:rapid.IntRange(0, 3).Draw(t, "has")]...)
			c.Inactive = rapid.IntRange(0, 9).Draw(t, "inactive") == 0
			all = append(all, c)
		}
		a, err := appointment.NewCenterIndex(all)
		require.NoError(t, err)
		q := appointment.CenterQuery{LabID: 1, Near: near, Miles: rapid.SampledFrom([]float64{0, 10, 25, 100, 3000, 20000}).Draw(t, "miles"), Most: 100,
			Capabilities: appointment.PSCCapabilities()[:rapid.IntRange(0, 2).Draw(t, "wants")]}
		got, err := a.CentersNear(context.Background(), q)
		require.NoError(t, err)
		var want []appointment.Center
		for _, c := range all {
			has := !slices.ContainsFunc(q.Capabilities, func(w appointment.PSCCapability) bool { return !slices.Contains(c.Capabilities, w) })
			if c.LabID == 1 && !c.Inactive && has && (near.Miles(c.Location) <= q.Miles || near == c.Location) {
				want = append(want, c)
			}
		}
		require.Equal(t, len(want), got.Total)
		// Of places that are as far away as each other but for the last digit of a number,
		// any may be first.
		require.ElementsMatch(t, codes(want), codes(got.Centers))
		for i := 1; i < len(got.Centers); i++ {
			before, at := near.Miles(got.Centers[i-1].Location), near.Miles(got.Centers[i].Location)
			require.True(t, at-before > -1e-3, "the nearest first")
			if got.Centers[i-1].Location == got.Centers[i].Location {
				require.Less(t, got.Centers[i-1].SiteCode, got.Centers[i].SiteCode)
			}
		}
		few, err := a.CentersNear(context.Background(), appointment.CenterQuery{LabID: 1, Near: near, Miles: q.Miles, Most: 3, Capabilities: q.Capabilities})
		require.NoError(t, err)
		require.Equal(t, codes(got.Centers[:min(3, len(got.Centers))]), codes(few.Centers))
		require.Equal(t, got.Total, few.Total)
	})
}

func TestCenterIndex_findsCentersByCodeOnceEach(t *testing.T) {
	via := appointment.PSCSchedulingViaService
	closed := centerAt(1, "C", -112, 33, via)
	closed.Inactive = true
	a := centerIndex(t, centerAt(1, "D", -112, 33, via), closed, centerAt(1, "a", -112, 33, via), centerAt(1, "B", -112, 33), centerAt(2, "A", -112, 33, via))
	got, err := a.CentersAt(t.Context(), 1, []string{"a", "D", "A", "C", "D"})
	require.NoError(t, err)
	require.Equal(t, []string{"C", "D", "a"}, codes(got), "byte for byte, each once")
	for _, tc := range []struct {
		after string
		n     int
		want  []string
	}{{"", 10, []string{"D", "a"}}, {"", 1, []string{"D"}}, {"D", 10, []string{"a"}}, {"C", 10, []string{"D", "a"}}, {"a", 10, []string{}}, {"", 0, []string{}}} {
		got, err := a.NextCenters(t.Context(), 1, via, tc.after, tc.n)
		require.NoError(t, err)
		require.Equal(t, tc.want, codes(got), tc)
	}
	got, err = a.NextCenters(t.Context(), 9, via, "", 10)
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestCenterIndex_copiesItsInput(t *testing.T) {
	c := centerAt(1, "A", -112, 33, appointment.PSCStat)
	c.Metadata.Hours, c.Metadata.Website = []byte(`{"mon":"7-12"}`), ptr("1")
	a := centerIndex(t, c)
	spoil := func(c appointment.Center) {
		c.Capabilities[0], c.Metadata.Hours[0], *c.Metadata.Website = "x", 'x', "2"
	}
	spoil(c)
	for range 2 {
		got, err := a.CentersAt(t.Context(), 1, []string{"A"})
		require.NoError(t, err)
		require.Equal(t, []appointment.PSCCapability{appointment.PSCStat}, got[0].Capabilities)
		require.JSONEq(t, `{"mon":"7-12"}`, string(got[0].Metadata.Hours))
		require.Equal(t, "1", *got[0].Metadata.Website)
		spoil(got[0])
	}
}

const centersCSV = "\ufefflab_id,site_code,name,first_line,second_line,city,state,zip_code,phone_number,hours,lng,lat,iana_timezone,capabilities,active\n" +
	`1,MESA-1,Mesa East,7 Elm Rd,Suite 2,Mesa,AZ,85201,,"{""mon"":""7-12""}",-111.83,33.42,America/Phoenix,stat appointment_scheduling_via_service,` + "\n" +
	"1,MESA-2,Mesa West,9 Elm Rd,,Mesa,AZ,85201-1234,+15550100,,-111.9,33.4,America/Phoenix,,false\n"

func TestReadCentersCSV_readsEveryColumn(t *testing.T) {
	got, err := appointment.ReadCentersCSV(strings.NewReader(centersCSV))
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, appointment.Center{LabID: 1, SiteCode: "MESA-1", Location: appointment.LngLat{Lng: -111.83, Lat: 33.42}, IANATimezone: "America/Phoenix",
		Capabilities: []appointment.PSCCapability{appointment.PSCStat, appointment.PSCSchedulingViaService},
		Metadata: appointment.PSCMetadata{Name: "Mesa East", FirstLine: "7 Elm Rd", SecondLine: "Suite 2", City: "Mesa", State: "AZ", ZipCode: "85201",
			Hours: []byte(`{"mon":"7-12"}`)}}, got[0])
	require.True(t, got[1].Inactive)
	_, err = appointment.ReadCenterIndex(strings.NewReader(centersCSV))
	require.NoError(t, err)
}

// What is wrong is told by line and column, all of it, and never with the value.
func TestReadCentersCSV_reportsEveryErrorByLineAndColumn(t *testing.T) {
	_, err := appointment.ReadCentersCSV(strings.NewReader(""))
	require.ErrorIs(t, err, healthlab.Invalid)
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"unknown column", "lab_id,colour\n", []string{"line[1].column[2]"}},
		{"column twice", "lng,lng\n", []string{"line[1].column[2]"}},
		{"cells", "lab_id,hours,lng,lat,capabilities,active\nMARK,{MARK,-181,91,MARK,MARK\n",
			[]string{"line[2].lab_id", "line[2].hours", "line[2].lng", "line[2].lat", "line[2].capabilities", "line[2].active"}},
		{"no place", "lab_id,lng\n1,5\n", []string{"line[2].lng and lat"}},
		{"not a number", "lng,lat\nNaN,1\n", []string{"line[2].lng"}},
		{"torn line", "lng,lat\n1\n", []string{"line[2]"}},
	} {
		_, err := appointment.ReadCentersCSV(strings.NewReader(tc.text))
		var invalid *healthlab.InvalidError
		require.ErrorAs(t, err, &invalid, tc.name)
		var got []string
		for _, p := range invalid.Problems {
			got = append(got, strings.SplitN(p.String(), ":", 2)[0])
		}
		require.Equal(t, tc.want, got, tc.name)
		require.NotContains(t, err.Error(), "MARK")
	}
}

func TestNewCenterIndex_reportsEveryInvalidField(t *testing.T) {
	bad := centerAt(0, "", 200, math.NaN())
	bad.IANATimezone, bad.Metadata = "Nowhere/City", appointment.PSCMetadata{Hours: []byte("{")}
	local := centerAt(1, "L", 0, 0)
	local.IANATimezone = "Local"
	_, err := appointment.NewCenterIndex([]appointment.Center{centerAt(1, "A", 0, 0), centerAt(2, "A", 0, 0), centerAt(1, "A", 0, 0), bad, local})
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	var got []string
	for _, p := range invalid.Problems {
		got = append(got, strings.SplitN(p.String(), ":", 2)[0])
	}
	require.Equal(t, []string{"[2].site_code", "[3].lab_id", "[3].site_code", "[3].name", "[3].first_line", "[3].city", "[3].state", "[3].zip_code",
		"[3].hours", "[3].location", "[3].iana_timezone", "[4].iana_timezone"}, got)
}

// BenchmarkCentersNear looks for the 30 nearest of 20,000 centers of one lab.
func BenchmarkCentersNear(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	var all []appointment.Center
	for i := range 20_000 {
		// As people live: half of them around forty cities.
		at := appointment.LngLat{Lng: -124 + 57*r.Float64(), Lat: 25 + 24*r.Float64()}
		if i%2 == 0 {
			city := rand.New(rand.NewPCG(uint64(i%80), 3))
			at = appointment.LngLat{Lng: -120 + 50*city.Float64() + r.NormFloat64()/3, Lat: 28 + 18*city.Float64() + r.NormFloat64()/3}
		}
		all = append(all, centerAt(1, fmt.Sprintf("S%05d", i), at.Lng, at.Lat, appointment.PSCCapabilities()[:i%4]...))
	}
	a := centerIndex(b, all...)
	for _, miles := range appointment.Radii() {
		b.Run(fmt.Sprintf("n=20k/miles=%d", miles), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				near, err := a.CentersNear(context.Background(), appointment.CenterQuery{LabID: 1, Near: all[i*7919%len(all)].Location, Miles: float64(miles), Most: 30})
				if err != nil || near.Total == 0 {
					b.Fatal(err)
				}
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }
