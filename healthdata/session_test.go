package healthdata_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// told returns the events since the last call as type and id.
func (s *station) told() (out [][2]string) {
	for _, e := range s.events() {
		var data struct {
			ID string `json:"id"`
		}
		require.NoError(s.T, json.Unmarshal(e.Data, &data))
		out = append(out, [2]string{e.EventType, data.ID})
	}
	return out
}

func sleepFor(id string, from, to time.Duration) *healthdata.Sleep {
	start, stop := ago(from), ago(to)
	return &healthdata.Sleep{Head: healthdata.Head{ExternalID: id}, BedtimeStart: start, BedtimeStop: stop, Type: healthdata.SleepLong}
}

// A night that grows is one night: the longest form of it is listed, and the shorter ones are withdrawn.
func TestSessions_onlyTheLongestFormOfAGrowingNightIsListed(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	const created, deleted = "daily.data.sleep.created", "daily.data.sleep.deleted"
	first, second, late, nap := sleepFor("1", 10*time.Hour, 9*time.Hour), sleepFor("2", 10*time.Hour, 4*time.Hour), sleepFor("3", 5*time.Hour, 4*time.Hour), sleepFor("4", 3*time.Hour, 2*time.Hour)
	s.summaries("sleep", band, first)
	require.Equal(t, [][2]string{{created, first.ID.String()}}, s.told())
	s.summaries("sleep", band, second)
	require.Equal(t, [][2]string{{created, second.ID.String()}, {deleted, first.ID.String()}}, s.told())
	s.summaries("sleep", band, late, nap)
	require.Equal(t, [][2]string{{created, nap.ID.String()}}, s.told(), "what is covered is not announced")
	require.Equal(t, []string{second.ID.String(), nap.ID.String()}, s.nights())
	s.summaries("sleep", band, sleepFor("1", 10*time.Hour, 9*time.Hour))
	require.Empty(t, s.told(), "the same again changes nothing")

	other := band
	other.Source.AppID = ptr("com.acme.b")
	theirs := sleepFor("1", 10*time.Hour, 5*time.Hour)
	s.summaries("sleep", other, theirs)
	require.Equal(t, [][2]string{{created, theirs.ID.String()}}, s.told(), "each app has its own sessions")

	_, err := s.RemoveSummaries(t.Context(), s.team, s.user, "sleep", band, []string{"2"})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{first.ID.String(), late.ID.String(), nap.ID.String(), theirs.ID.String()}, s.nights(),
		"what the removed session covered counts")
	events := s.told()
	require.Equal(t, [2]string{deleted, second.ID.String()}, events[0])
	require.ElementsMatch(t, [][2]string{{created, first.ID.String()}, {created, late.ID.String()}}, events[1:])
}

func (s *station) nights() (out []string) {
	for _, v := range s.list("sleep") {
		out = append(out, healthdata.HeadOf(v).ID.String())
	}
	return out
}

// A session that shrinks, or moves away, no longer covers another one.
func TestSessions_shortenedWorkoutNoLongerHidesAnother(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	ride := func(id string, from, to time.Duration) *healthdata.Workout {
		return &healthdata.Workout{Head: healthdata.Head{ExternalID: id}, TimeStart: ago(from), TimeEnd: ago(to), Sport: healthdata.Sport{Slug: "cycling", Name: "Cycling"}}
	}
	long, short := ride("a", 5*time.Hour, 3*time.Hour), ride("b", 5*time.Hour, 4*time.Hour)
	s.summaries("workouts", band, long, short)
	require.Equal(t, [][2]string{{"daily.data.workouts.created", long.ID.String()}}, s.told())
	s.summaries("workouts", band, ride("a", 4*time.Hour, 3*time.Hour))
	require.Equal(t, [][2]string{{"daily.data.workouts.created", long.ID.String()}, {"daily.data.workouts.created", short.ID.String()}}, s.told())
	require.Len(t, s.list("workouts"), 2)
}

// Of two origins that have a sample at one time readers see the one that was received last, and each is
// stored by itself.
func TestSamples_ofTwoAppsAtOneTimeReadAsTheLatestReceived(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	from := func(app string) healthdata.Upload {
		up := band
		up.Source.AppID = &app
		return up
	}
	at := ago(3 * time.Hour)
	send := func(app string, v float64) healthdata.Counts {
		return s.samples("heartrate", from(app), healthdata.Sample{Timestamp: at, Unit: "bpm", Value: healthdata.Number(v)})
	}
	seen := func(want float64) {
		t.Helper()
		got := s.read("heartrate")
		require.Len(t, got, 1)
		require.Equal(t, want, got[0].Value.Number)
		page := s.page(healthdata.SampleQuery{Resource: "heartrate"})
		require.Len(t, page.Groups, 1)
	}
	require.Equal(t, healthdata.Counts{New: 1}, send("a", 60))
	seen(60)
	require.Equal(t, healthdata.Counts{Changed: 1}, send("b", 70), "for readers it replaces the other one")
	seen(70)
	require.Equal(t, healthdata.Counts{Same: 1}, send("a", 60))
	seen(70)
	require.Equal(t, healthdata.Counts{Changed: 1}, send("a", 61))
	seen(61)
	require.Equal(t, healthdata.Counts{Same: 1}, send("a", 61))
	require.Equal(t, healthdata.Counts{Same: 1}, send("b", 70))
	seen(61)
	n, err := s.RemoveSamples(t.Context(), s.team, s.user, "heartrate", from("a"), "", []healthlab.Time{at})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	seen(70)
	require.Equal(t, "daily.data.heartrate.created", s.lastType(), "readers see the other one")
	send("a", 62)
	send("b", 71)
	s.events()
	n, err = s.RemoveSamples(t.Context(), s.team, s.user, "heartrate", from("a"), "", []healthlab.Time{at})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Empty(t, s.events(), "readers did not see it")
	_, err = s.RemoveSamples(t.Context(), s.team, s.user, "heartrate", band, "", []healthlab.Time{at})
	require.NoError(t, err)
	require.Equal(t, "daily.data.heartrate.deleted", s.lastType())
}

func (s *station) lastType() string {
	events := s.events()
	require.NotEmpty(s.T, events)
	return events[len(events)-1].EventType
}
