package linking

import (
	"errors"
	"fmt"

	"github.com/healthlab-dev/healthlab"
)

// ErrorType is a kind of failure that a person sees while linking. The list is open.
type ErrorType string

// The link error types.
const (
	// InvalidToken: the token is malformed or forged, or its user no longer exists.
	InvalidToken ErrorType = "invalid_token"
	// TokenExpired: the lifetime of the token has ended.
	TokenExpired ErrorType = "token_expired"
	// TokenNotValidated: a call came in the wrong state of the session, or the callback came in another browser.
	TokenNotValidated ErrorType = "token_not_validated"
	// TokenConsumed: the token has made a connection, and cannot be used again.
	TokenConsumed ErrorType = "token_consumed"
	// ProviderCredentialError: the provider refused the sign-in.
	ProviderCredentialError ErrorType = "provider_credential_error"
	// ProviderPasswordExpired: the provider requires a new password first.
	ProviderPasswordExpired ErrorType = "provider_password_expired"
	// ProviderAPIError: the provider is down or too slow, or its answer is invalid.
	ProviderAPIError ErrorType = "provider_api_error"
	// UnsupportedRegion: the provider does not serve the region.
	UnsupportedRegion ErrorType = "unsupported_region"
	// DuplicateConnection: another user of the team has connected this account.
	DuplicateConnection ErrorType = "duplicate_connection"
	// RequiredScopesNotGranted: the person did not grant a required scope.
	RequiredScopesNotGranted ErrorType = "required_scopes_not_granted"
	// IncorrectMFACode: the code was wrong; it can be entered again.
	IncorrectMFACode ErrorType = "incorrect_mfa_code"
	// UserCancelled: the person closed the link pages.
	UserCancelled ErrorType = "user_cancelled"
)

// errorTypes lists the types with the text for the person and the error kind for callers of
// the Service.
var errorTypes = []struct {
	name ErrorType
	kind healthlab.ErrorKind
	text string
}{
	{InvalidToken, healthlab.Unauthenticated, "the link token is not valid; create a new one"},
	{TokenExpired, healthlab.Unauthenticated, "the link token has expired; create a new one"},
	{TokenNotValidated, healthlab.Precondition, "the link session is not in the state for this step, or another browser began it; start again with the choice of a provider"},
	{TokenConsumed, healthlab.Unauthenticated, "a connection was made with this link token; create a new one"},
	{ProviderCredentialError, healthlab.Precondition, "the provider refused the sign-in, or access was denied; check the credentials and try again"},
	{ProviderPasswordExpired, healthlab.Precondition, "the provider asks for a new password; change it there, then link again"},
	{ProviderAPIError, healthlab.Unavailable, "the provider did not respond, or its response was invalid; try again later"},
	{UnsupportedRegion, healthlab.Precondition, "the provider does not serve this region; choose one of the regions that it lists"},
	{DuplicateConnection, healthlab.Precondition, "another user of the team has connected this account; disconnect it there first, or use another account"},
	{RequiredScopesNotGranted, healthlab.Precondition, "a required scope was not granted; link again and grant all required scopes"},
	{IncorrectMFACode, healthlab.Precondition, "the code is wrong; enter it again"},
	{UserCancelled, healthlab.Precondition, "the person closed the link pages"},
}

// ErrorTypes returns the link error types.
func ErrorTypes() []ErrorType {
	out := make([]ErrorType, len(errorTypes))
	for i, e := range errorTypes {
		out[i] = e.name
	}
	return out
}

// Text returns a text for people, without any value. Programs must use the type.
func (t ErrorType) Text() string {
	for _, e := range errorTypes {
		if e.name == t {
			return e.text
		}
	}
	return "something went wrong; try again"
}

// Error is a link error. It unwraps to an error kind: mostly healthlab.Unauthenticated for a token,
// healthlab.Unavailable for a provider that is down, otherwise healthlab.Precondition.
type Error struct {
	Type ErrorType
	// Cause is only for logs and may be nil. It is not unwrapped, because its kind would mislead callers.
	Cause error
}

// Error returns the type and its text.
func (e *Error) Error() string { return string(e.Type) + ": " + e.Type.Text() }

// Unwrap returns the error kind of the type.
func (e *Error) Unwrap() error {
	for _, t := range errorTypes {
		if t.name == e.Type {
			return t.kind
		}
	}
	return healthlab.Precondition
}

// withCause returns err with the Cause of its [*Error] added to the text, for logs.
func withCause(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Cause != nil {
		return fmt.Errorf("%w: %w", err, withCause(e.Cause))
	}
	return err
}

func fail(t ErrorType) error { return &Error{Type: t} }

// typeOf returns the type of the [*Error] in the chain of err, and whether there is one.
func typeOf(err error) (ErrorType, bool) {
	var e *Error
	if errors.As(err, &e) {
		return e.Type, true
	}
	return "", false
}

// Types of the healthlab.RuleError of this package.
const (
	// RuleMissingLinkToken: no link token was sent.
	RuleMissingLinkToken = "MISSING_LINK_TOKEN"
	// RuleInvalidProvider: the provider is unknown, or the called method cannot link it.
	RuleInvalidProvider = "INVALID_PROVIDER"
	// RuleInvalidUserID: the team has no such user.
	RuleInvalidUserID = "INVALID_USER_ID"
	// RuleCodeInvalid, RuleCodeExpired and RuleCodeConsumed are the reasons why a link code does not work.
	RuleCodeInvalid  = "CODE_INVALID"
	RuleCodeExpired  = "CODE_EXPIRED"
	RuleCodeConsumed = "CODE_CONSUMED"
	// RuleTooManyTries: too many tries with one link token, or by one client with link codes.
	RuleTooManyTries = "TOO_MANY_TRIES"
)

func rule(name, msg string) error { return &healthlab.RuleError{Type: name, Msg: msg} }

func errProvider() error {
	return rule(RuleInvalidProvider, "provider: must be a provider whose auth_type fits this way of linking; GET /v2/providers lists them")
}

func errCode() error {
	// An unknown code and a code that this client may not learn about have the same error.
	return rule(RuleCodeInvalid, "unknown link code; check its spelling, or create a new one")
}

func errUser() error { return rule(RuleInvalidUserID, "user_id: must be the id of a user of the team") }

// ErrorTypeOf returns the link error type that a person sees for an error. It returns false if the error has none,
// because the person cannot solve the problem.
func ErrorTypeOf(err error) (ErrorType, bool) {
	var r *healthlab.RuleError
	if errors.As(err, &r) && (r.Type == RuleMissingLinkToken || r.Type == RuleInvalidUserID) {
		return InvalidToken, true
	}
	return typeOf(err)
}
