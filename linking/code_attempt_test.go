package linking_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

const allCodes = 1 << 32

func guess(t *linking.CodeAttempt, at time.Time) bool {
	t.Code = nil
	_, err := t.Redeem(at)
	return healthlab.KindOf(err) != healthlab.Exhausted
}

// One client guesses whenever it may for the whole life of a code, in the worst case: its
// window began just before the code.
func TestCodeAttempts_oneClientsGuessesAreBounded(t *testing.T) {
	most := 0
	for _, early := range []time.Duration{time.Second, 30 * time.Minute, time.Hour - time.Second, time.Hour} {
		try := &linking.CodeAttempt{}
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
	require.Equal(t, 2*linking.MaxWrongPerClient-1, most, "the first of them came before the code")
	require.Less(t, float64(most)/allCodes, 1e-8)
	require.Less(t, 2.0*linking.MaxWrongPerClient/allCodes, 1e-8)
}

// field is a team whose codes are guessed at, as a store keeps it.
type field struct {
	wrong, first int64
	clients      map[string]*linking.CodeAttempt
}

func (f *field) code() linking.Code {
	return linking.Code{CreatedAt: noon, ExpiresAt: noon.Add(linking.CodeLife), WrongBefore: f.wrong, FirstBefore: f.first}
}

// try lets a client try a code, or one that is not there.
func (f *field) try(client string, code *linking.Code, at time.Time) error {
	x := f.clients[client]
	if x == nil {
		x = &linking.CodeAttempt{}
		f.clients[client] = x
	}
	x.Code, x.TeamWrong, x.TeamFirst = code, f.wrong, f.first
	_, err := x.Redeem(at)
	f.wrong, f.first = x.TeamWrong, x.TeamFirst
	return err
}

// would tells what a client would hear if it tried a code now.
func (f *field) would(client string, code linking.Code, at time.Time) error {
	x := linking.CodeAttempt{}
	if known := f.clients[client]; known != nil {
		x = *known
	}
	x.Code, x.TeamWrong, x.TeamFirst = &code, f.wrong, f.first
	_, err := x.Redeem(at)
	return err
}

// Many clients, each with its own window, guess for the whole life of a code. A guess is
// checked if it would have redeemed the code, had it been right.
func TestCodeAttempts_allClientsGuessesOfACodeAreBounded(t *testing.T) {
	const half = linking.MaxWrongPerCode / 2
	const good, invalid, expired = "", linking.RuleCodeInvalid, linking.RuleCodeExpired
	for _, c := range []struct {
		name    string
		clients int
		tries   int // of each client; 30 are more than it may
		looked  int
		person  string // what who has not failed hears of the code afterwards
		clumsy  string // and who has
	}{
		{"a hundred", 100, 30, 100 * linking.MaxWrongPerClient, good, good},
		{"a few more", 110, 30, 110 + half, good, invalid},
		{"as many as leave the code to people", half - 1, 30, half - 1 + half, good, invalid},
		{"one more", half, 30, linking.MaxWrongPerCode, expired, expired},
		{"one try each", half, 1, half, expired, expired},
		{"two tries each, one after the other", 2 * half, 2, half + half - 1, expired, expired},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &field{wrong: 7, first: 3, clients: map[string]*linking.CodeAttempt{}}
			require.Equal(t, invalid, ruleOf(f.try("clumsy", nil, noon)))
			code, looked, at := f.code(), 0, noon
			for n := range c.clients {
				attacker := fmt.Sprint("attacker ", n)
				at = noon.Add(time.Duration(n) * linking.CodeLife / time.Duration(c.clients))
				for range c.tries {
					right := f.would(attacker, code, at)
					wrong := f.try(attacker, nil, at)
					if right == nil {
						looked++
					} else if f.would("person", code, at) == nil {
						require.Equal(t, wrong, right, "nobody learns of a code that others can still redeem")
					}
				}
			}
			require.Equal(t, c.looked, looked)
			require.Less(t, float64(looked)/allCodes, 1e-6)
			require.Equal(t, c.person, ruleOf(f.would("person", code, at)))
			require.Equal(t, c.clumsy, ruleOf(f.would("clumsy", code, at)))

			// New codes have counts of their own.
			for _, client := range []string{"person", "clumsy"} {
				code := f.code()
				require.NoError(t, f.try(client, &code, at))
				require.Equal(t, at, code.UsedAt)
			}
		})
	}
}

// ruleOf returns the type of a broken rule.
func ruleOf(err error) string {
	var rule *healthlab.RuleError
	if errors.As(err, &rule) {
		return rule.Type
	}
	return ""
}

func TestRedeem_eachStateOfACodeHasItsError(t *testing.T) {
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
		{"used", &used, noon, linking.RuleCodeConsumed, 0},
		{"at its end", &code, noon.Add(time.Hour), linking.RuleCodeExpired, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			try := linking.CodeAttempt{Code: c.code}
			_, err := try.Redeem(c.at)
			var rule *healthlab.RuleError
			require.ErrorAs(t, err, &rule)
			require.Equal(t, c.rule, rule.Type)
			require.Equal(t, c.wrong, try.Wrong)
			require.EqualValues(t, c.wrong, try.TeamWrong)
			require.EqualValues(t, c.wrong, try.TeamFirst)
		})
	}
	// Who has used up the tries learns nothing, not even from a right code.
	try := linking.CodeAttempt{Code: &code, Since: noon, Wrong: linking.MaxWrongPerClient}
	_, err := try.Redeem(noon.Add(10 * time.Minute))
	var wait *linking.TooManyTriesError
	require.ErrorAs(t, err, &wait)
	require.ErrorIs(t, err, healthlab.Exhausted)
	require.Equal(t, 50*time.Minute, wait.RetryAfter())
	require.Zero(t, code.UsedAt)
	_, err = try.Redeem(noon.Add(time.Hour - time.Microsecond))
	require.ErrorIs(t, err, healthlab.Exhausted)
}
