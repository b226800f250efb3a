package healthdata_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

var (
	early = healthlab.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	late  = healthlab.At(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
)

func TestLearnTimeZone_keepsAZoneThatTheTeamSet(t *testing.T) {
	type zone = healthdata.FallbackTimeZone
	for _, tt := range []struct {
		name    string
		has     zone
		learns  string
		changed bool
		want    zone
	}{
		{"from the default", zone{"UTC", "default", early}, "Asia/Tokyo", true, zone{"Asia/Tokyo", "acme_ring", late}},
		{"the same as the default", zone{"UTC", "default", early}, "UTC", true, zone{"UTC", "acme_ring", early}},
		{"from another provider", zone{"Asia/Seoul", "acme_band", early}, "Asia/Tokyo", true, zone{"Asia/Tokyo", "acme_ring", late}},
		{"the same as another provider", zone{"Asia/Tokyo", "acme_band", early}, "Asia/Tokyo", false, zone{"Asia/Tokyo", "acme_band", early}},
		{"not over the team's", zone{"Asia/Seoul", "manual", early}, "Asia/Tokyo", false, zone{"Asia/Seoul", "manual", early}},
		{"unknown", zone{"UTC", "default", early}, "Mars/Olympus", false, zone{"UTC", "default", early}},
		{"empty", zone{"UTC", "default", early}, "", false, zone{"UTC", "default", early}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := healthdata.User{FallbackTimeZone: tt.has}
			require.Equal(t, tt.changed, u.LearnTimeZone(tt.learns, "acme_ring", late))
			require.Equal(t, tt.want, u.FallbackTimeZone)
		})
	}
}

func TestLearnBirthDate_keepsADateThatTheTeamSet(t *testing.T) {
	type birth = healthdata.FallbackBirthDate
	old, young := *day("1950-05-05"), *day("2026-03-04")
	for _, tt := range []struct {
		name    string
		has     *birth
		learns  healthlab.Date
		changed bool
		want    *birth
	}{
		{"from nothing", nil, young, true, &birth{Value: young, SourceSlug: "acme_ring", UpdatedAt: late}},
		{"from another provider", &birth{Value: old, SourceSlug: "acme_band", UpdatedAt: early}, young, true, &birth{Value: young, SourceSlug: "acme_ring", UpdatedAt: late}},
		{"the same", &birth{Value: old, SourceSlug: "acme_band", UpdatedAt: early}, old, false, &birth{Value: old, SourceSlug: "acme_band", UpdatedAt: early}},
		{"not over the team's", &birth{Value: old, SourceSlug: "manual", UpdatedAt: early}, young, false, &birth{Value: old, SourceSlug: "manual", UpdatedAt: early}},
		{"the future", nil, *day("2026-03-05"), false, nil},
		{"no day", nil, healthlab.Date{}, false, nil},
		{"no such day", nil, healthlab.Date{Year: 2025, Month: 2, Day: 29}, false, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := healthdata.User{FallbackTimeZone: healthdata.FallbackTimeZone{ID: "UTC"}, FallbackBirthDate: tt.has}
			require.Equal(t, tt.changed, u.LearnBirthDate(tt.learns, "acme_ring", late))
			require.Equal(t, tt.want, u.FallbackBirthDate)
		})
	}
}

func TestFloatingZone_prefersProfileThenActivityThenFallback(t *testing.T) {
	u := healthdata.User{FallbackTimeZone: healthdata.FallbackTimeZone{ID: "Asia/Tokyo"}}
	for _, tt := range []struct{ name, profile, activity, want string }{
		{"profile first", "Europe/Oslo", "Asia/Seoul", "Europe/Oslo"},
		{"then activity", "", "Asia/Seoul", "Asia/Seoul"},
		{"an unknown zone is not said", "Mars/Olympus", "Asia/Seoul", "Asia/Seoul"},
		{"then the user's", "", "", "Asia/Tokyo"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, u.FloatingZone(tt.profile, tt.activity).String())
		})
	}
	require.Equal(t, time.UTC, new(healthdata.User).FloatingZone("", ""))
}

func TestAgeOn_countsFullYearsOnTheDay(t *testing.T) {
	for _, tt := range []struct {
		name, birth, on string
		want            int
	}{
		{"the day before", "1980-03-13", "2026-03-12", 45},
		{"the birthday", "1980-03-13", "2026-03-13", 46},
		{"an earlier month", "1980-03-13", "2026-02-28", 45},
		{"born on a leap day, 28 February", "2004-02-29", "2026-02-28", 21},
		{"born on a leap day, 1 March", "2004-02-29", "2026-03-01", 22},
		{"the day of birth", "2026-03-01", "2026-03-01", 0},
		{"before birth", "2026-03-02", "2026-03-01", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, healthdata.AgeOn(*day(tt.birth), *day(tt.on)))
		})
	}
}

func TestMaxHeartRate_prefersAgeThenBirthDateThenFallback(t *testing.T) {
	fallback := &healthdata.FallbackBirthDate{Value: *day("1966-01-01")}
	for _, tt := range []struct {
		name     string
		age      *int
		birth    *healthlab.Date
		fallback *healthdata.FallbackBirthDate
		want     int
	}{
		{"age given", new(40), day("1996-01-01"), fallback, 180},
		{"birth date given", nil, day("1996-01-01"), fallback, 190},
		{"fallback", nil, nil, fallback, 160},
		{"assumed", nil, nil, nil, 190},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := healthdata.User{FallbackBirthDate: tt.fallback}
			require.Equal(t, tt.want, u.MaxHeartRate(tt.age, tt.birth, late))
		})
	}
}

func TestHeartRateZones_borderBelongsToTheHigherZone(t *testing.T) {
	// Of a maximum of 190: borders at 95, 114, 133, 152 and 171.
	bpm := []float64{0, 94.9, 95, 113.9, 114, 132.9, 133, 151.9, 152, 170.9, 171, 250}
	seconds := []float64{1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32}
	require.Equal(t, []int64{2, 4, 8, 16, 32, 64}, healthdata.HeartRateZones(bpm, seconds, 190))
	for age := range 120 {
		top := 220 - age
		for zone := 1; zone <= 5; zone++ {
			border := float64(top*(4+zone)) / 10
			got := healthdata.HeartRateZones([]float64{border}, []float64{1}, top)
			require.EqualValues(t, 1, got[zone], "the border belongs to the higher zone")
		}
	}
}

func TestUser_printsNoBirthDate(t *testing.T) {
	u := healthdata.User{FallbackBirthDate: &healthdata.FallbackBirthDate{Value: healthlab.Date{Year: 1931, Month: 7, Day: 23}}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%d"} {
		require.NotContains(t, fmt.Sprintf(verb, u), "1931", verb)
		require.NotContains(t, fmt.Sprintf(verb, *u.FallbackBirthDate), "1931", verb)
	}
}
