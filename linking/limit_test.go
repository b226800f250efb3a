package linking_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

const allCodes = 1 << 32

// guess tries a wrong code, and tells whether anybody looked at it.
func guess(t *linking.Try, at time.Time) bool {
	t.Code = nil
	_, err := t.Redeem(at)
	return healthlab.KindOf(err) != healthlab.Exhausted
}

// One client that guesses whenever it may, for as long as a code lives, at the worst
// moment: its window began just before the code.
func TestOneClientAtTheEdge(t *testing.T) {
	most := 0
	for _, early := range []time.Duration{time.Second, 30 * time.Minute, time.Hour - time.Second, time.Hour} {
		try := &linking.Try{}
		require.True(t, guess(try, noon.Add(-early))) // opens the window
		looked := 0
		for at := noon; at.Before(noon.Add(linking.CodeLife)); at = at.Add(time.Second) {
			for range 3 {
				if guess(try, at) {
					looked++
				}
			}
		}
		most = max(most, looked)
	}
	require.Equal(t, 2*linking.WrongPerClient-1, most, "the first of them came before the code")
	require.Less(t, float64(most)/allCodes, 1e-8)
	require.Less(t, 2.0*linking.WrongPerClient/allCodes, 1e-8)
}

// All clients of the world, each with its own window.
func TestAllClientsTogetherAtTheEdge(t *testing.T) {
	code := linking.Code{Text: "skus00000000", CreatedAt: noon, ExpiresAt: noon.Add(linking.CodeLife), WrongBefore: 7}
	count, exposed := int64(7), 0
	for alive := true; alive; {
		c := code
		probe := linking.Try{Code: &c, TeamWrong: count}
		_, err := probe.Redeem(noon.Add(time.Minute))
		if alive = err == nil; alive {
			fresh := linking.Try{TeamWrong: count}
			require.True(t, guess(&fresh, noon.Add(time.Minute)))
			count = fresh.TeamWrong
			exposed++
		}
	}
	require.Equal(t, linking.Exposure, exposed)
	require.Less(t, float64(exposed)/allCodes, 1e-6)

	// The team is under attack, and a person with a new code and a new client gets in.
	fresh := code
	fresh.WrongBefore = count
	person := linking.Try{Code: &fresh, TeamWrong: count}
	got, err := person.Redeem(noon.Add(2 * time.Minute))
	require.NoError(t, err)
	require.Equal(t, noon.Add(2*time.Minute), got.UsedAt)
	require.Equal(t, count, person.TeamWrong, "a right code does not count")
}

func TestRedeemVerdicts(t *testing.T) {
	code := linking.Code{CreatedAt: noon, ExpiresAt: noon.Add(time.Hour)}
	used := code
	used.UsedAt = noon
	for _, c := range []struct {
		name  string
		code  *linking.Code
		at    time.Time
		rule  string
		wrong int
	}{
		{"unknown", nil, noon, linking.RuleCodeInvalid, 1},
		{"used", &used, noon, linking.RuleCodeConsumed, 1},
		{"at its end", &code, noon.Add(time.Hour), linking.RuleCodeExpired, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			try := linking.Try{Code: c.code}
			_, err := try.Redeem(c.at)
			var rule *healthlab.RuleError
			require.ErrorAs(t, err, &rule)
			require.Equal(t, c.rule, rule.Type)
			require.Equal(t, c.wrong, try.Wrong)
			require.EqualValues(t, c.wrong, try.TeamWrong)
		})
	}
	// Who has used up the tries learns nothing, not even from a right code.
	try := linking.Try{Code: &code, Since: noon, Wrong: linking.WrongPerClient}
	_, err := try.Redeem(noon.Add(10 * time.Minute))
	var wait *linking.TooManyTries
	require.ErrorAs(t, err, &wait)
	require.ErrorIs(t, err, healthlab.Exhausted)
	require.Equal(t, 50*time.Minute, wait.RetryAfter())
	require.Zero(t, code.UsedAt)
	_, err = try.Redeem(noon.Add(time.Hour - time.Microsecond))
	require.ErrorIs(t, err, healthlab.Exhausted)
}
