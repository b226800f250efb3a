package aggregate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The engine's list of buckets has a time where it belongs, around the changes of the clocks in
// zones with half hours, changes at midnight and days that were left out.
func TestBuckets_containTheRightTimesAroundClockChanges(t *testing.T) {
	for _, zone := range []string{"Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Apia", "America/Sao_Paulo", "Africa/Monrovia", "Europe/Berlin"} {
		loc, err := time.LoadLocation(zone)
		require.NoError(t, err)
		for at := time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2038; {
			_, next := at.In(loc).ZoneBounds()
			if next.IsZero() {
				break
			}
			for _, d := range []time.Duration{-25 * time.Hour, -time.Hour, -time.Second, 0, time.Second, 29 * time.Minute, time.Hour, 24 * time.Hour} {
				instant := next.Add(d)
				_, offset := instant.In(loc).Zone()
				for _, unit := range units[1:] { // minutes are millions of buckets
					p := Period{Unit: Unit(unit), Value: 1}
					wall := instant.UnixMicro() + int64(offset)*second
					requireBucket(t, p, wall, p.truncate(wall))
				}
			}
			at = next
		}
	}
}

func requireBucket(t *testing.T, p Period, wall, start int64) {
	w := window{wall - 3*day, wall + 3*day}
	edges, starts, _ := p.edges(nil, nil, w, 1<<13)
	require.Equal(t, start, starts[bucketOf(edges, wall)])
}
