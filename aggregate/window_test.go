package aggregate

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
)

func wall(s string) int64 {
	t, err := time.Parse("2006-01-02T15:04", s)
	if err != nil {
		panic(err)
	}
	return t.UnixMicro()
}

func TestTimeframe_endsWithTheAnchorDay(t *testing.T) {
	rows := []struct {
		anchor   string
		past     Period
		from, to string
	}{
		{"2026-03-31", Days(7), "2026-03-25T00:00", "2026-04-01T00:00"},
		{"2026-03-31", Months(1), "2026-03-01T00:00", "2026-04-01T00:00"},
		{"2026-03-30", Months(1), "2026-02-28T00:00", "2026-03-31T00:00"},
		{"2026-03-31", Minutes(90), "2026-03-31T22:30", "2026-04-01T00:00"},
		{"2024-02-29", Years(1), "2023-03-01T00:00", "2024-03-01T00:00"},
		{"2024-02-28", Years(1), "2023-02-28T00:00", "2024-02-29T00:00"},
		{"2026-03-31", Weeks(2), "2026-03-18T00:00", "2026-04-01T00:00"},
		{"2026-01-15", Months(14), "2024-11-16T00:00", "2026-01-16T00:00"},
		{"2026-03-31", Period{Unit: Hour}, "2026-03-31T23:00", "2026-04-01T00:00"},
	}
	for _, r := range rows {
		anchor, err := healthlab.ParseDate(r.anchor)
		require.NoError(t, err)
		got := Timeframe{anchor, r.past}.bounds()
		require.Equal(t, window{wall(r.from), wall(r.to)}, got, "%s past %v", r.anchor, r.past)
	}
}

func TestPeriod_truncatesAndAdvancesByEachUnit(t *testing.T) {
	rows := []struct {
		p               Period
		at, start, next string
	}{
		{Minutes(1), "2026-03-01T10:17", "2026-03-01T10:17", "2026-03-01T10:18"},
		{Minutes(15), "2026-03-01T10:17", "2026-03-01T10:15", "2026-03-01T10:30"},
		{Hours(5), "1970-01-01T04:59", "1970-01-01T00:00", "1970-01-01T05:00"},
		{Hours(5), "1969-12-31T23:59", "1969-12-31T19:00", "1970-01-01T00:00"},
		{Days(1), "2026-03-01T23:59", "2026-03-01T00:00", "2026-03-02T00:00"},
		{Days(3), "1969-12-31T00:00", "1969-12-29T00:00", "1970-01-01T00:00"},
		{Weeks(1), "2026-03-01T12:00", "2026-02-23T00:00", "2026-03-02T00:00"},
		{Weeks(1), "1970-01-01T12:00", "1969-12-29T00:00", "1970-01-05T00:00"},
		{Weeks(2), "1970-01-04T12:00", "1969-12-22T00:00", "1970-01-05T00:00"},
		{Months(1), "2026-02-28T12:00", "2026-02-01T00:00", "2026-03-01T00:00"},
		{Months(3), "2026-05-31T12:00", "2026-04-01T00:00", "2026-07-01T00:00"},
		{Months(5), "1969-07-31T12:00", "1969-03-01T00:00", "1969-08-01T00:00"},
		{Years(1), "2026-05-31T12:00", "2026-01-01T00:00", "2027-01-01T00:00"},
		{Years(10), "1969-05-31T12:00", "1960-01-01T00:00", "1970-01-01T00:00"},
	}
	for _, r := range rows {
		start := r.p.truncate(wall(r.at))
		require.Equal(t, wall(r.start), start, "start of %v at %s", r.p, r.at)
		require.Equal(t, wall(r.next), r.p.next(start), "end of %v at %s", r.p, r.at)
	}
}

// The edges of a window are those that truncate and next give, cut to it, however it
// is cut into slabs.
func TestEdges_doNotDependOnHowTheWindowIsCut(t *testing.T) {
	w := window{wall("2025-12-30T10:10"), wall("2026-03-02T00:00")}
	for _, p := range []Period{Minutes(7), Hours(5), Days(1), Weeks(2), Months(1), Years(3)} {
		for _, limit := range []int{1, 3, 1 << 20} {
			var edges, starts []int64
			for rest := w; rest.from < rest.to; {
				var e, s []int64
				e, s, rest = p.edges(nil, nil, rest, limit)
				require.Equal(t, e[len(e)-1], rest.from, "the next slab begins where this one ends")
				require.Len(t, e, len(s)+1)
				require.True(t, slices.IsSorted(e))
				for i := range s {
					require.Equal(t, p.truncate(e[i]), s[i])
					require.Equal(t, min(p.next(s[i]), w.to), e[i+1])
				}
				edges, starts = append(edges, e...), append(starts, s...)
			}
			require.Equal(t, w.from, edges[0])
			require.Equal(t, w.to, edges[len(edges)-1])
			require.Len(t, slices.Compact(starts), len(starts))
		}
	}
}

func TestDatePart_ofEachUnitIsRead(t *testing.T) {
	rows := []struct {
		part Part
		at   string
		want int64
	}{
		{MinuteOfHour, "2026-03-01T10:17", 17},
		{MinuteOfHour, "1969-12-31T23:59", 59},
		{HourOfDay, "2026-03-01T10:17", 10},
		{HourOfDay, "1969-12-31T23:59", 23},
		{DayOfMonth, "2026-02-28T10:17", 28},
		{ISOWeek, "2027-01-01T00:00", 53},
		{WeekOfYear, "2026-01-01T00:00", 1},
		{MonthOfYear, "2026-03-01T10:17", 3},
		{CalendarYear, "2026-03-01T10:17", 2026},
		{Weekday, "2026-03-01T10:17", 7},
		{Weekday, "2026-03-02T10:17", 1},
		{DayOfYear, "2024-12-31T10:17", 366},
	}
	for _, r := range rows {
		got, until := r.part.of(wall(r.at))
		require.Equal(t, r.want, got, "%s of %s", r.part, r.at)
		again, _ := r.part.of(until - 1)
		require.Equal(t, got, again)
	}
}

func TestIntervals_meetOnlyIfTheyOverlap(t *testing.T) {
	var taken intervals
	taken.add([]interval{{10, 20}, {40, 50}, {15, 17}, {30, 30}})
	rows := []struct {
		name string
		v    interval
		want bool
	}{
		{"before", interval{0, 10}, false},
		{"over the start", interval{0, 11}, true},
		{"inside", interval{18, 19}, true},
		{"at the end", interval{20, 30}, false},
		{"over a point", interval{25, 31}, true},
		{"from a point on", interval{30, 35}, true},
		{"over all", interval{0, 100}, true},
		{"a point at a start", interval{10, 10}, true},
		{"a point at an end", interval{20, 20}, false},
		{"a point on a point", interval{30, 30}, false},
		{"behind", interval{50, 60}, false},
	}
	for _, r := range rows {
		require.Equal(t, r.want, taken.overlaps(r.v), r.name)
	}
}

func TestSourceOrder_isOverridePriorityTypeThenName(t *testing.T) {
	o := newOrder([]string{"p9", "p8", "p9"}, []Priority{
		{"p1", "", 1}, {"p2", "", 5}, {"p1", "sleep", 9}, {"p3", "activity", 99},
	}, "sleep")
	want := []Source{
		{"p9", "unknown"}, // an override beats the type
		{"p8", "lab"},
		{"p4", "lab"},
		{"p4", "insulin_pump"},
		{"p1", "watch"}, // the number for sleep, not the general one
		{"p2", "watch"},
		{"p3", "watch"}, // a number for something else counts nothing; the slug decides
		{"p4", "watch"},
		{"p4", "earphone"},
		{"p4", "multiple_sources"},
		{"p4", "brain_cap"}, // types that are not known, by their name
		{"p4", "sock"},
		{"p4", "unknown"},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	require.Equal(t, want, o.sort(got))
	_, rule := o.compare(want[1], want[2])
	require.Equal(t, "override", rule)
	_, rule = o.compare(want[4], want[5])
	require.Equal(t, "team_priority", rule)
	_, rule = o.compare(want[6], want[7])
	require.Equal(t, "provider", rule)
	_, rule = o.compare(want[7], want[8])
	require.Equal(t, "source_type", rule)
}

func TestJSON_floatsAreWrittenInTheirShortestForm(t *testing.T) {
	rows := map[float64]string{
		0: "0", 1: "1", -3: "-3", 97.5: "97.5", 0.1: "0.1", 1e21: "1e+21", 1e20: "100000000000000000000",
		1e-7: "1e-07", 123456789012345680: "123456789012345680", 1.0 / 3: "0.3333333333333333",
	}
	for v, want := range rows {
		require.Equal(t, want, string(appendFloat(nil, v)))
	}
	minus := 0.0
	require.Equal(t, "0", string(appendFloat(nil, -minus)))
	require.Equal(t, "2026-03-01T10:17:00.000250", string(appendWall(nil, wall("2026-03-01T10:17")+250)))
	require.Equal(t, "1969-12-31T23:59:59.999999", string(appendWall(nil, -1)))
}
