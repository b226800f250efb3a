package linking

import (
	"time"

	"github.com/healthlab-dev/healthlab"
)

// The limits of guessing. The comment of the package has the sums.
const (
	// MaxWrongPerClient is how many wrong tries one client has in a window of
	// [GuessWindow].
	MaxWrongPerClient = 20
	// GuessWindow is the length of a client's window. It begins with a wrong try.
	GuessWindow = time.Hour
	// MaxWrongPerCode is the number of wrong tries at its team's codes, by all clients together, that
	// are checked in the life of a code. One half is for clients without a wrong try in their
	// window; when it is used up, the code expires. The other half is for the other clients.
	MaxWrongPerCode = 4000
)

// CodeAttempt is what is known when a client tries a code: a store reads it, lets the rule edit
// it, and writes it back.
type CodeAttempt struct {
	// Code is the team's code with the text that was tried, or any team's if the client
	// names no team; nil if there is none.
	Code *Code
	// Since is when the client's window began, and Wrong how many wrong tries it has
	// in it; both zero for a client that is new.
	Since time.Time
	Wrong int
	// TeamWrong is how many wrong tries the team has ever seen, and TeamFirst how many of
	// them were the first in their client's window.
	TeamWrong, TeamFirst int64
}

// TooManyTriesError says that a client has to wait. It unwraps to healthlab.Exhausted.
type TooManyTriesError struct{ After time.Duration }

// Error says the rule.
func (e *TooManyTriesError) Error() string { return RuleTooManyTries + ": too many wrong codes; wait" }

// Unwrap returns healthlab.Exhausted.
func (e *TooManyTriesError) Unwrap() error { return healthlab.Exhausted }

// RetryAfter says how long to wait.
func (e *TooManyTriesError) RetryAfter() time.Duration { return e.After }

// Redeem decides a try and records the result in t: the code is used, or the wrong try is
// counted. It changes nothing but t. If the client has used up its wrong tries, Redeem does not
// check the code, so the client cannot learn that it is right. All other clients can redeem a
// code that is new enough, whatever other clients have tried. A code that was used or has expired
// is no wrong try: its sender knows it.
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
		t.wrong(at)
		return Code{}, errCode()
	case !c.UsedAt.IsZero(): // its sender guesses nothing, so it is no wrong try of the address
		return Code{}, rule(RuleCodeConsumed, "the code was used; create a new one")
	case !at.Before(c.ExpiresAt):
		return Code{}, rule(RuleCodeExpired, "the code has expired; create a new one")
	case t.TeamFirst-c.FirstBefore >= MaxWrongPerCode/2:
		t.wrong(at)
		return Code{}, rule(RuleCodeExpired, "the code has expired; create a new one")
	case t.Wrong > 0 && t.TeamWrong-t.TeamFirst-(c.WrongBefore-c.FirstBefore) >= MaxWrongPerCode/2:
		// The code is good for others. Who learnt that it exists would come back as one.
		t.wrong(at)
		return Code{}, errCode()
	}
	c.UsedAt = at
	return *c, nil
}

func (t *CodeAttempt) wrong(at time.Time) {
	if t.Wrong == 0 {
		t.Since = at
		t.TeamFirst++
	}
	t.Wrong++
	t.TeamWrong++
}
