package linking

import (
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Limits against guessing link codes. The package comment explains the numbers.
const (
	// MaxWrongPerClient is the number of wrong tries that one client may make in a window of [GuessWindow].
	MaxWrongPerClient = 20
	// GuessWindow is the length of a client's window, in which its wrong tries are counted. A window begins with a
	// wrong try.
	GuessWindow = time.Hour
	// MaxWrongPerCode is the number of wrong tries at a team's codes, by all clients together, that are checked
	// during the life of one code. One half is for clients without a wrong try in their window; when it is used
	// up, the code expires. The other half is for the other clients.
	MaxWrongPerCode = 4000
)

// CodeAttempt is the state for deciding one try at a link code. A store reads it, calls Redeem and writes it
// back.
type CodeAttempt struct {
	// Code is the code whose text was tried: a code of the team or, if the client names no team, of any team. Nil if no
	// such code exists.
	Code *Code
	// Since is when the client's window began, and Wrong the number of wrong tries in it. Both are zero for a
	// new client.
	Since time.Time
	Wrong int
	// TeamWrong is the total number of wrong tries at the team's codes, and TeamFirst how many of them were the
	// first in their client's window.
	TeamWrong, TeamFirst int64
}

// TooManyTriesError reports that a client must wait. It unwraps to healthlab.Exhausted.
type TooManyTriesError struct{ After time.Duration }

// Error returns the text of the error.
func (e *TooManyTriesError) Error() string { return RuleTooManyTries + ": too many wrong codes; wait" }

// Unwrap returns healthlab.Exhausted.
func (e *TooManyTriesError) Unwrap() error { return healthlab.Exhausted }

// RetryAfter returns how long the client must wait.
func (e *TooManyTriesError) RetryAfter() time.Duration { return e.After }

// Redeem decides a try and records the result in t: the code is used, or the wrong try is counted. It changes
// nothing but t. If the client has used up its wrong tries, Redeem does not check the code, so that the client
// learns nothing. All other clients can redeem a recent code, however often other clients have guessed. A used
// or expired code does not count as a wrong try, because its sender did not guess.
//
// Errors: [*TooManyTriesError]; a [*healthlab.RuleError] of type [RuleCodeInvalid],
// [RuleCodeExpired] or [RuleCodeConsumed].
func (t *CodeAttempt) Redeem(at time.Time) (Code, error) {
	if !at.Before(t.Since.Add(GuessWindow)) {
		t.Since, t.Wrong = time.Time{}, 0
	}
	if t.Wrong >= MaxWrongPerClient {
		return Code{}, &TooManyTriesError{After: t.Since.Add(GuessWindow).Sub(at)}
	}
	c := t.Code
	switch {
	case c == nil:
		t.countWrong(at)
		return Code{}, errCode()
	case !c.UsedAt.IsZero(): // the sender did not guess, so the try does not count
		return Code{}, rule(RuleCodeConsumed, "the link code was used before; create a new one")
	case !at.Before(c.ExpiresAt):
		return Code{}, rule(RuleCodeExpired, "the link code has expired; create a new one")
	case t.TeamFirst-c.FirstBefore >= MaxWrongPerCode/2:
		t.countWrong(at)
		return Code{}, rule(RuleCodeExpired, "the link code has expired; create a new one")
	case t.Wrong > 0 && t.TeamWrong-t.TeamFirst-(c.WrongBefore-c.FirstBefore) >= MaxWrongPerCode/2:
		// Other clients can still redeem the code. Counting the try hides from this client that the code exists.
		t.countWrong(at)
		return Code{}, errCode()
	}
	c.UsedAt = at
	return *c, nil
}

func (t *CodeAttempt) countWrong(at time.Time) {
	if t.Wrong == 0 {
		t.Since = at
		t.TeamFirst++
	}
	t.Wrong++
	t.TeamWrong++
}
