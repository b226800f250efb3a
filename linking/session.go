package linking

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/fsm"
)

// SessionID is the id of a link session: UUID version 7.
type SessionID struct{ uuid.UUID }

// State is the state of a link session.
type State string

// States of a session. Connected and expired are final.
const (
	// StateCreated: the token was issued and not yet used.
	StateCreated State = "created"
	// StateStarted: the person is choosing a provider or filling in a form.
	StateStarted State = "started"
	// StateAwaitingProvider: the person is at the provider's own page.
	StateAwaitingProvider State = "awaiting_provider"
	// StateAwaitingMFA: the provider requires a code.
	StateAwaitingMFA State = "awaiting_mfa"
	// StateConnected: the connection is made, and the token is used up.
	StateConnected State = "connected"
	// StateFailed: a try failed; the token still works.
	StateFailed State = "failed"
	// StateCancelled: the person closed the pages; opening them again continues the session.
	StateCancelled State = "cancelled"
	// StateExpired: the token has expired.
	StateExpired State = "expired"
)

// Trigger is an event that changes the state of a session.
type Trigger string

// Triggers of a session.
const (
	// Start: the pages open, a provider is chosen, or a try begins.
	Start Trigger = "start"
	// HandOut: the person is sent to the provider's sign-in page.
	HandOut Trigger = "hand_out"
	// AskCode: the provider requires a code.
	AskCode Trigger = "ask_code"
	// WrongCode: the code was wrong.
	WrongCode Trigger = "wrong_code"
	// Connect: the connection is made.
	Connect Trigger = "connect"
	// Fail: a try failed.
	Fail Trigger = "fail"
	// Close: the person closes the pages.
	Close Trigger = "close"
	// Expire: the token expires.
	Expire Trigger = "expire"
)

type row = fsm.Row[State, Trigger, struct{}, struct{}]

// lifecycle is the state table of a session. A try at a provider can always be replaced by a new one, so that a
// person who goes back in the browser can continue.
var lifecycle = fsm.Must(fsm.Table[State, Trigger, struct{}, struct{}]{
	Initial: StateCreated,
	Final:   []State{StateConnected, StateExpired},
	Rows: []row{
		{From: StateCreated, On: Start, To: StateStarted},
		{From: StateCreated, On: Close, To: StateCancelled},
		{From: StateCreated, On: Expire, To: StateExpired},

		{From: StateStarted, On: Start, To: StateStarted},
		{From: StateStarted, On: HandOut, To: StateAwaitingProvider},
		{From: StateStarted, On: AskCode, To: StateAwaitingMFA},
		{From: StateStarted, On: Connect, To: StateConnected},
		{From: StateStarted, On: Fail, To: StateFailed},
		{From: StateStarted, On: Close, To: StateCancelled},
		{From: StateStarted, On: Expire, To: StateExpired},

		{From: StateAwaitingProvider, On: Start, To: StateStarted},
		{From: StateAwaitingProvider, On: Connect, To: StateConnected},
		{From: StateAwaitingProvider, On: Fail, To: StateFailed},
		{From: StateAwaitingProvider, On: Close, To: StateCancelled},
		{From: StateAwaitingProvider, On: Expire, To: StateExpired},

		{From: StateAwaitingMFA, On: Start, To: StateStarted},
		{From: StateAwaitingMFA, On: WrongCode, To: StateAwaitingMFA},
		{From: StateAwaitingMFA, On: Connect, To: StateConnected},
		{From: StateAwaitingMFA, On: Fail, To: StateFailed},
		{From: StateAwaitingMFA, On: Close, To: StateCancelled},
		{From: StateAwaitingMFA, On: Expire, To: StateExpired},

		{From: StateFailed, On: Start, To: StateStarted},
		{From: StateFailed, On: Close, To: StateCancelled},
		{From: StateFailed, On: Expire, To: StateExpired},

		{From: StateCancelled, On: Start, To: StateStarted},
		{From: StateCancelled, On: Expire, To: StateExpired},
	},
})

// States returns the states, the initial one first.
func States() []State { return lifecycle.States(struct{}{}) }

// Triggers returns the triggers.
func Triggers() []Trigger {
	return []Trigger{Start, HandOut, AskCode, WrongCode, Connect, Fail, Close, Expire}
}

// Next returns the next state after a trigger, and whether the trigger is allowed.
func Next(from State, on Trigger) (State, bool) {
	return lifecycle.Next(struct{}{}, from, on, struct{}{})
}

// Diagram returns the state table as a Mermaid state diagram.
func Diagram() string { return lifecycle.Mermaid(struct{}{}) }

// maxAttempts is the greatest number of tries of one session: enough for a person, and too few to guess a
// password.
const maxAttempts = 30

// Session is one person's linking from a token to a connection.
type Session struct {
	healthlab.Private

	ID   SessionID
	Team healthlab.TeamID
	User healthlab.UserID
	// Token is the hash of the token.
	Token TokenHash
	State State
	// Options are the options of the token.
	Options NewToken
	// Provider is the slug of the last chosen provider; empty before the first choice.
	Provider string
	// Step increases with every try. The result of an older try is ignored.
	Step int
	// Pending is the sealed state of the current try: the verifier of an OAuth exchange, or the connector's
	// notes for a code. Its Box is nil if there is none.
	Pending healthlab.Sealed
	// Challenge describes how a code is sent, while a code is awaited.
	Challenge Challenge
	// LastError is the error of the last try; empty if it did not fail.
	LastError ErrorType
	// Attempts are the tries, the oldest first.
	Attempts []Attempt
	// CreatedAt and ExpiresAt are the lifetime of the session, in UTC.
	CreatedAt, ExpiresAt time.Time
	// Revision increases with every write, from 1. The store sets it.
	Revision int64
}

// Attempt is one try to sign in at a provider.
type Attempt struct {
	At       time.Time
	Provider string
	// Error is the error of the try; empty if it is running or did not fail.
	Error ErrorType
	// Until is when a sign-in at the provider, which is running, ends at the latest; zero if none is running.
	Until time.Time `json:",omitzero"`
}

// errSigningIn reports that another try of the session signs in at the provider.
var errSigningIn = errors.New("another try signs in at the provider")

// LogValue contains ids and the state.
func (s Session) LogValue() slog.Value {
	return slog.GroupValue(slog.String("session", s.ID.String()), slog.String("team", s.Team.String()),
		slog.String("user", s.User.String()), slog.String("state", string(s.State)), slog.String("provider", s.Provider))
}

// usable returns the [*Error] that says why the session's token no longer works, or nil if it works.
func (s *Session) usable(at time.Time) error {
	switch {
	case s.State == StateConnected:
		return fail(TokenConsumed)
	case s.State == StateExpired, !at.Before(s.ExpiresAt):
		return fail(TokenExpired)
	}
	return nil
}

// fire applies a trigger to the session's state. It returns a [TokenNotValidated] error if the state does not allow the
// trigger.
func (s *Session) fire(t Trigger) error {
	to, ok := Next(s.State, t)
	if !ok {
		return fail(TokenNotValidated)
	}
	s.State = to
	return nil
}

func (s *Session) clearPending() { s.Pending, s.Challenge = healthlab.Sealed{}, Challenge{} }

// begin starts a try at a provider, in place of a running one.
func (s *Session) begin(provider string, at time.Time) error {
	if err := s.usable(at); err != nil {
		return err
	}
	if len(s.Attempts) >= maxAttempts {
		return &healthlab.RuleError{Kind: healthlab.Exhausted, Type: RuleTooManyTries, Msg: "too many tries with this link token; create a new one"}
	}
	if err := s.fire(Start); err != nil {
		return err
	}
	s.clearPending()
	s.Provider, s.LastError = provider, ""
	s.Step++
	s.Attempts = append(s.Attempts, Attempt{At: at, Provider: provider})
	return nil
}

// signIn records that the newest try signs in at its provider, for at most the time limit. It returns errSigningIn if an
// older try still does, because a provider may end the grants of a person's earlier sign-ins.
func (s *Session) signIn(at time.Time, limit time.Duration) error {
	last := &s.Attempts[len(s.Attempts)-1]
	for _, a := range s.Attempts[:len(s.Attempts)-1] {
		if a.Provider == last.Provider && at.Before(a.Until) {
			return errSigningIn
		}
	}
	last.Until = at.Add(limit)
	return nil
}

// recordFailure records that the try with the number step failed with the error t. If a newer try has begun, or the
// person has closed the pages, the session's state does not change.
func (s *Session) recordFailure(step int, t ErrorType) error {
	if step < 1 || step > len(s.Attempts) {
		return fail(TokenNotValidated)
	}
	s.Attempts[step-1].Error, s.Attempts[step-1].Until = t, time.Time{}
	if s.Step != step {
		return nil
	}
	on := Fail
	if t == IncorrectMFACode {
		on = WrongCode
	}
	if to, ok := Next(s.State, on); ok {
		s.State, s.LastError = to, t
		if on == Fail {
			s.clearPending()
		}
	}
	return nil
}

// recordConnection ends the session with a connection to provider. The first try that succeeds counts, even if a newer
// one has begun or failed. After the person has closed the pages, no try counts.
func (s *Session) recordConnection(provider string, at time.Time) error {
	if err := s.usable(at); err != nil {
		return err
	}
	if s.State == StateFailed {
		if err := s.fire(Start); err != nil {
			return err
		}
	}
	if err := s.fire(Connect); err != nil {
		return err
	}
	s.clearPending()
	s.Provider, s.LastError = provider, ""
	return nil
}

func stepPlace(s *Session, step int) []byte {
	return fmt.Appendf(nil, "link step %s %s %d", s.Team, s.ID, step)
}

func grantPlace(team healthlab.TeamID, user healthlab.UserID, provider string) []byte {
	return fmt.Appendf(nil, "grant %s %s %s", team, user, provider)
}

// location returns the redirect URL of the session with the outcome; empty if there is none, or if the rules do not
// allow it.
func (s *Session) location(rules RedirectRules, o Outcome) string {
	target := s.Options.RedirectURL
	if target == "" || !rules.Allows(target) {
		return ""
	}
	return o.Redirect(target)
}

func (s *Session) permits(provider string) error {
	if s.Options.Provider != "" && s.Options.Provider != provider {
		return rule(RuleInvalidProvider, "the link token is for another provider; create one for this provider, or for all")
	}
	return nil
}
