package nearest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/nearest"
)

func TestNames_returnsTheNearestFirst(t *testing.T) {
	known := []string{"steps", "heartrate", "hrv", "sleep"}
	require.Equal(t, []string{"heartrate"}, nearest.Names("hartrate", known, 1))
	require.Equal(t, []string{"steps", "sleep"}, nearest.Names("step", known, 2))
	require.Equal(t, []string{"hrv", "steps", "sleep", "heartrate"}, nearest.Names("", known, 9), "ties keep their order")
}

func TestEdits_countsTheEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"same", "same", 0}, {"", "abc", 3}, {"ab", "ba", 2}} {
		require.Equal(t, c.want, nearest.Edits(c.a, c.b), "%s %s", c.a, c.b)
		require.Equal(t, c.want, nearest.Edits(c.b, c.a), "%s %s", c.b, c.a)
	}
}

func TestAllowed_listsAllOrTheNearestValues(t *testing.T) {
	require.Equal(t, "must be one of key, user", nearest.Allowed("team", []string{"key", "user"}, "GET /v2/x"))
	require.Equal(t, "must be one of those that GET /v2/x lists, which are none", nearest.Allowed("team", []string(nil), "GET /v2/x"))
	var many []string
	for i := range nearest.Long + 1 {
		many = append(many, "value_"+string(rune('a'+i)))
	}
	require.Equal(t, "must be one of 21 values, such as value_c, value_a or value_b; GET /v2/x lists all", nearest.Allowed("valuec", many, "GET /v2/x"))
	require.NotContains(t, nearest.Allowed("valuec", many, "GET /v2/x"), "valuec,")
}
