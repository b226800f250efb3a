package fileimport_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// A night that two files have is one night with the values of both, in any order, under any names, and however often
// the files come.
func TestWHOOPExport_filesOfANightAreMerged(t *testing.T) {
	cycles, sleeps := testdata(t, "whoop", "physiological_cycles.csv"), testdata(t, "whoop", "sleeps.csv")
	want := newIngestion(t)
	want.take(t, whoopArchive(t))
	nights := stored[*healthdata.Sleep](t, want, "sleep")
	require.Len(t, nights, 5)
	require.Equal(t, []any{int64(81), int64(51), 68.0, 33.42}, []any{*nights[4].RecoveryReadinessScore, *nights[4].HRResting, *nights[4].AverageHRV, *nights[4].SkinTemperature})
	for name, files := range map[string][][]byte{
		"cycles first":      {[]byte(cycles), []byte(sleeps)},
		"sleeps first":      {[]byte(sleeps), []byte(cycles)},
		"second download":   {archive(t, "physiological_cycles (1).csv", cycles, "sleeps (1).csv", sleeps)},
		"capitals":          {archive(t, "Physiological_cycles.csv", cycles, "Sleeps.csv", sleeps)},
		"sleeps sort first": {archive(t, "a.csv", sleeps, "b.csv", cycles)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newIngestion(t)
			for _, file := range files {
				s.take(t, file)
			}
			got := stored[*healthdata.Sleep](t, s, "sleep")
			require.Len(t, got, len(nights))
			for i := range got {
				got[i].Head = nights[i].Head
			}
			require.Equal(t, nights, got)
			for _, file := range files {
				counts, _ := s.take(t, file)
				require.Zero(t, counts.New+counts.Changed)
			}
		})
	}
}
