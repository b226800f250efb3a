package prove_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/prove"
)

func TestCount_isFullUnderHEALTHLABTEST_PROVE(t *testing.T) {
	for _, tt := range []struct {
		name, env string
		want      int
	}{
		{"unset", "", 3},
		{"one", "1", 30},
		{"anything else", "true", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("HEALTHLABTEST_PROVE", tt.env)
			require.Equal(t, tt.want, prove.Count(3, 30))
		})
	}
}

func TestCounts_dependsOnCIAndHEALTHLABTEST_PROVE(t *testing.T) {
	t.Setenv("HEALTHLABTEST_PROVE", "")
	t.Setenv("CI", "")
	require.Equal(t, 3, prove.Counts(3, 9, 30))
	t.Setenv("CI", "true")
	require.Equal(t, 9, prove.Counts(3, 9, 30))
	require.Equal(t, 3, prove.Count(3, 30))
	t.Setenv("HEALTHLABTEST_PROVE", "1")
	require.Equal(t, 30, prove.Counts(3, 9, 30))
}

func TestAll_isTrueInCIAndUnderHEALTHLABTEST_PROVE(t *testing.T) {
	for _, tt := range []struct {
		name, prove, ci string
		want            bool
	}{
		{"neither", "", "", false},
		{"make prove", "1", "", true},
		{"CI", "", "true", true},
		{"another value", "true", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("HEALTHLABTEST_PROVE", tt.prove)
			t.Setenv("CI", tt.ci)
			require.Equal(t, tt.want, prove.All())
		})
	}
}

func TestSequentialCount_raceDetectorTakesAFifthOfTheCases(t *testing.T) {
	for _, tt := range []struct {
		name, prove    string
		n, least, want int
		race           bool
	}{
		{"without the detector", "", 100, 1, 100, false},
		{"a fifth with it", "", 100, 1, 20, true},
		{"at least the least", "", 10, 5, 5, true},
		{"never more than there are", "", 3, 5, 3, true},
		{"full under make prove", "1", 100, 1, 100, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("HEALTHLABTEST_PROVE", tt.prove)
			require.Equal(t, tt.want, prove.SequentialCount(tt.n, tt.race, tt.least))
		})
	}
}

func TestStride_isLongerOnlyUnderTheRaceDetector(t *testing.T) {
	want := 1
	if prove.Race {
		want = 5
	}
	t.Setenv("HEALTHLABTEST_PROVE", "")
	require.Equal(t, want, prove.Stride(5))
	t.Setenv("HEALTHLABTEST_PROVE", "1")
	require.Equal(t, 1, prove.Stride(5))
}
