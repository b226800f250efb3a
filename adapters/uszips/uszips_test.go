package uszips_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/uszips"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

var _ appointment.Zips = (*uszips.Table)(nil)

func find(t testing.TB, code string) (appointment.Zip, bool) {
	t.Helper()
	zip, ok, err := uszips.Embedded().FindZip(t.Context(), code)
	require.NoError(t, err)
	return zip, ok
}

func TestFind_knownCodesHaveTheirStateAndPlace(t *testing.T) {
	for _, tc := range []struct {
		code, state string
		at          appointment.LngLat
	}{
		{"85004", "AZ", appointment.LngLat{Lng: -112.07, Lat: 33.45}}, {"54650", "WI", appointment.LngLat{Lng: -91.2, Lat: 43.9}},
		{"10001", "NY", appointment.LngLat{Lng: -73.997, Lat: 40.75}}, {"99501", "AK", appointment.LngLat{Lng: -149.88, Lat: 61.22}},
		{"96813", "HI", appointment.LngLat{Lng: -157.85, Lat: 21.31}}, {"00601", "PR", appointment.LngLat{Lng: -66.75, Lat: 18.18}},
	} {
		zip, ok := find(t, tc.code)
		require.True(t, ok, tc.code)
		require.Equal(t, tc.state, zip.State)
		require.Less(t, zip.Location.Miles(tc.at), 12.0, tc.code)
	}
}

// A post office box has no area: it is where its sorting center's codes are.
func TestFind_codeWithoutAnAreaUsesItsSortingCenter(t *testing.T) {
	phoenix, _ := find(t, "85004")
	zip, ok := find(t, "85001")
	require.True(t, ok)
	require.Equal(t, "AZ", zip.State)
	require.Less(t, zip.Location.Miles(phoenix.Location), 30.0)
	for _, code := range []string{"00000", "8500", "850041", "8500x", "", "８５００４"} {
		_, ok := find(t, code)
		require.False(t, ok, "%q", code)
	}
}

// Codes of one state lie within its borders, give or take a sorting center across one.
func TestFind_codesLieWithinTheirState(t *testing.T) {
	borders := map[string][4]float64{ // west, south, east, north
		"AZ": {-114.9, 31.2, -108.9, 37.2}, "CO": {-109.2, 36.8, -101.9, 41.2}, "FL": {-87.8, 24.4, -79.9, 31.2},
		"KS": {-102.2, 36.8, -94.4, 40.2}, "ME": {-71.2, 42.9, -66.8, 47.6}, "WA": {-124.9, 45.4, -116.8, 49.1},
		"AK": {-180, 51, 180, 72}, "HI": {-161, 18.8, -154.7, 22.4}, "PR": {-68, 17.8, -65.1, 18.6}, "TX": {-106.8, 25.7, -93.4, 36.7},
		"NV": {-120.2, 34.9, -113.9, 42.1}, "GA": {-85.8, 30.2, -80.7, 35.2}, "MN": {-97.5, 43.3, -89.4, 49.5},
	}
	seen := map[string]int{}
	for _, code := range uszips.Embedded().Codes() {
		zip, ok := find(t, code)
		require.True(t, ok)
		require.Len(t, zip.State, 2, code)
		seen[zip.State]++
		if b, ok := borders[zip.State]; ok {
			at := zip.Location
			require.True(t, at.Lng >= b[0] && at.Lat >= b[1] && at.Lng <= b[2] && at.Lat <= b[3], "%s in %s", code, zip.State)
		}
	}
	require.GreaterOrEqual(t, len(seen), 52, "fifty states, DC and Puerto Rico")
	require.Greater(t, len(uszips.Embedded().Codes()), 33_000)
	require.Empty(t, appointment.StateOfZip("99999x"))
	require.Equal(t, "AK", appointment.StateOfZip("99999"))
	require.Empty(t, appointment.StateOfZip("00001"))
}

func TestRead_refusesMalformedTables(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "no column": "GEOID\tINTPTLAT\n", "code": "GEOID\tINTPTLAT\tINTPTLONG\nSECRET\t1\t1\n",
		"latitude": "GEOID\tINTPTLAT\tINTPTLONG\n00601\t91\t1\n", "longitude": "GEOID\tINTPTLAT\tINTPTLONG\n00601\t1\tSECRET\n",
		"torn": "GEOID\tINTPTLAT\tINTPTLONG\n00601\t1\n", "not a number": "GEOID\tINTPTLAT\tINTPTLONG\n00601\tNaN\t1\n",
	} {
		_, err := uszips.Read(strings.NewReader(text))
		require.ErrorIs(t, err, healthlab.Invalid, name)
		require.NotContains(t, err.Error(), "SECRET")
	}
	table, err := uszips.Read(strings.NewReader("GEOID\tALAND\tINTPTLAT\tINTPTLONG    \n00601\t5\t 18.1\t -66.7  \n"))
	require.NoError(t, err)
	require.Equal(t, []string{"00601"}, table.Codes())
}

func TestNotices_nameTheSource(t *testing.T) { require.Contains(t, uszips.Notices, "Census Bureau") }

func Example() {
	zip, _, _ := uszips.Embedded().FindZip(context.Background(), "85004")
	fmt.Printf("%s %.1f %.1f\n", zip.State, zip.Location.Lng, zip.Location.Lat)
	// Output: AZ -112.1 33.5
}
