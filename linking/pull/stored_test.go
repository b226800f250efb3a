package pull

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
)

// Counts of a day add up, in whatever order days come; the newest days stay.
func TestAddDay_addsCountsAndKeepsTheNewestDays(t *testing.T) {
	first := healthlab.Date{Year: 2026, Month: 3, Day: 20}
	var list []DayCount
	for _, after := range []int{3, 0, 3, 1} {
		list = addDay(list, DayCount{first.AddDays(after), 5})
	}
	require.Equal(t, []DayCount{{first, 5}, {first.AddDays(1), 5}, {first.AddDays(3), 10}}, list)
	before := addDay(list, DayCount{first, 1})
	require.EqualValues(t, 5, list[0].New, "a list is not changed")
	require.EqualValues(t, 6, before[0].New)
	for after := range 2 * StoredDays {
		list = addDay(list, DayCount{first.AddDays(after), 1})
	}
	require.Len(t, list, StoredDays)
	require.Equal(t, first.AddDays(2*StoredDays-1), list[StoredDays-1].Day)
}
