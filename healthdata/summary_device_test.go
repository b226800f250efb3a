package healthdata_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// wornBy returns an upload of band's source type that names a device; none if device is empty.
func wornBy(provider, device string) healthdata.Upload {
	up := band
	up.Provider = provider
	if device != "" {
		up.Device = &healthdata.DeviceInfo{ID: &device, Model: ptr("W")}
	}
	return up
}

// smallest has, by resource, a function that returns a summary with an id of the source, or without one.
var smallest = map[string]func(id string) healthdata.Summary{
	"activity": func(string) healthdata.Summary { return &healthdata.Activity{CalendarDate: *day("2026-03-01")} },
	"body":     func(string) healthdata.Summary { return &healthdata.Body{MeasuredAt: ago(time.Hour)} },
	"sleep": func(string) healthdata.Summary {
		return &healthdata.Sleep{BedtimeStart: ago(9 * time.Hour), BedtimeStop: ago(time.Hour)}
	},
	"sleep_cycle": func(string) healthdata.Summary {
		return &healthdata.SleepCycle{SessionStart: ago(9 * time.Hour), SessionEnd: ago(time.Hour)}
	},
	"workouts": func(id string) healthdata.Summary {
		from := 3 * time.Hour
		if id != "" {
			from = 5 * time.Hour
		}
		return &healthdata.Workout{TimeStart: ago(from), TimeEnd: ago(from - time.Hour)}
	},
	"meal": func(string) healthdata.Summary { return &healthdata.Meal{Timestamp: ago(time.Hour), Name: "Lunch"} },
	"electrocardiogram": func(string) healthdata.Summary {
		return &healthdata.Electrocardiogram{SessionStart: ago(2 * time.Hour), SessionEnd: ago(time.Hour)}
	},
	"menstrual_cycle": func(string) healthdata.Summary {
		return &healthdata.MenstrualCycle{PeriodStart: *day("2026-03-01")}
	},
	"profile": func(string) healthdata.Summary { return &healthdata.Profile{Height: ptr(int64(170))} },
}

// Two devices of a phone store, or of the team's own program, are two origins: each keeps its summaries. A cloud
// merges its devices itself, and its ids are those of the account.
func TestSummaries_ofTwoDevicesAreKeptApartUnlessACloudSendsThem(t *testing.T) {
	for _, r := range healthdata.Summaries() {
		for provider, apart := range map[string]bool{"manual": true, "acme_store": true, "acme_band": false} {
			for _, external := range []string{"", "1"} {
				t.Run(r.Slug+" of "+provider+" "+external, func(t *testing.T) {
					s := newStation(t, healthdata.Options{})
					id := func(device string) uuid.UUID {
						item := smallest[r.Slug](external)
						healthdata.HeadOf(item).ExternalID = external
						s.summaries(r.Slug, wornBy(provider, device), item)
						return healthdata.HeadOf(item).ID
					}
					one := id("watch-1")
					require.Equal(t, one, id("watch-1"), "a resend")
					ids := map[uuid.UUID]bool{one: true, id("watch-2"): true, id(""): true}
					want := 1
					if apart {
						want = 3
					}
					require.Len(t, ids, want)
					require.Len(t, s.list(r.Slug), want)
				})
			}
		}
	}
}

// The stages of a night, and the samples of a workout, belong to the summary of the device that their upload names.
func TestSummaries_partsBelongToTheSummaryOfTheirDevice(t *testing.T) {
	for _, external := range []string{"", "1"} {
		s := newStation(t, healthdata.Options{})
		for _, device := range []string{"watch-1", "watch-2", ""} {
			up := wornBy("manual", device)
			night, cycle, run := smallest["sleep"](""), smallest["sleep_cycle"](""), smallest["workouts"]("1")
			healthdata.HeadOf(night).ExternalID, healthdata.HeadOf(cycle).ExternalID, healthdata.HeadOf(run).ExternalID = external, external, "w"
			s.summaries("sleep", up, night)
			s.summaries("sleep_cycle", up, cycle)
			require.Equal(t, healthdata.HeadOf(night).ID, cycle.(*healthdata.SleepCycle).SleepID)

			s.summaries("workouts", up, run)
			up.Workout, up.Source.Sport = ptr("w"), ptr("running")
			s.samples("workout_distance", up, bucket("m", ago(5*time.Hour), time.Minute, 100))
		}
		of := map[uuid.UUID]bool{}
		for _, g := range s.page(healthdata.SampleQuery{Resource: "workout_distance", From: ago(6 * time.Hour).Time, To: ago(0).Time}).Groups {
			of[*g.Source.WorkoutID] = true
		}
		for _, w := range s.list("workouts") {
			require.True(t, of[healthdata.HeadOf(w).ID])
		}
		require.Len(t, of, 3)
	}
}

// A removal that names a device leaves the summaries of others; one that names none removes those of all devices, as
// a removal of samples does.
func TestRemoveSummaries_removesThoseOfTheNamedDeviceElseOfAll(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	send := func() {
		for _, device := range []string{"watch-1", "watch-2", ""} {
			for _, resource := range []string{"sleep", "sleep_cycle"} {
				item := smallest[resource]("1")
				healthdata.HeadOf(item).ExternalID = "1"
				s.summaries(resource, wornBy("manual", device), item)
			}
		}
	}
	remove := func(device string) int {
		n, err := s.RemoveSummaries(t.Context(), s.team, s.user, "sleep", wornBy("manual", device), []string{"1"})
		require.NoError(t, err)
		require.Len(t, s.list("sleep_cycle"), len(s.list("sleep")), "with their stages")
		return n
	}
	send()
	require.Equal(t, 1, remove("watch-1"))
	require.Equal(t, 0, remove("watch-1"))
	require.Len(t, s.list("sleep"), 2)
	send()
	require.Equal(t, 3, remove(""))
	require.Empty(t, s.list("sleep"))
}
