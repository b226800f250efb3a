package linking

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// ProviderConnector is how to sign in at one provider. A provider has the flow that
// its auth_type asks for: OAuth for oauth and team_oauth, Password for password, Email
// for email; the others are nil.
//
// What all flows have in common: methods are safe for concurrent use, keep nothing of a
// person between calls, and end when their context does; the Service gives them a
// deadline. A call whose answer was lost may be made again by a person's new try, never
// by the Service itself. A person's mistake is a [*Error] of a type that the method
// names; any other error, whatever its kind, means that the provider is down or answers
// nonsense, and becomes [ProviderAPIError]. Errors never hold what was sent.
type ProviderConnector struct {
	OAuth    OAuthFlow
	Password PasswordFlow
	Email    EmailFlow
	// Revoker ends grants. Nil if the provider has no call for that.
	Revoker Revoker
	// Refresher renews secrets. Nil if they do not end.
	Refresher Refresher
	// TokenCodec reads and writes the tokens in secrets. Nil if they cannot move.
	TokenCodec TokenCodec
	// Puller fetches data. Nil if the provider sends it by itself.
	Puller Puller
	// Together lists sets of resources that one request of the Puller can bring, for
	// [PullRequest].With. A resource is in one set at most. Nil: each is asked for by itself.
	Together [][]string
	// Listener reads what the provider sends by itself. Nil if it sends nothing.
	Listener Listener
	// ForClient returns the same provider as it knows another client of the kind OAuthClient, for
	// teams that have registered one themselves; nil if there is only the deployment's. It
	// is pure, and all of what it returns is for that client, but Puller and TokenCodec, which
	// are never called: data is asked for, and tokens are moved, by those of the deployment,
	// whose client a grant is does not matter for that. Invalid, by the names client_id,
	// client_secret and details, if the client is not one that the provider knows.
	ForClient func(OAuthClient) (ProviderConnector, error)
	// ClientListener says that what ForClient returns has a Listener.
	ClientListener bool
	// Setup lists what the owner of another client has to set up at the provider, besides
	// the addresses to come back to and of the Listener.
	Setup []SetupStep
	// Minimum are the scopes without which nothing works: every person must grant them,
	// whatever a team asks for.
	Minimum []string
}

// OAuthFlow signs in by the authorization code flow with PKCE (RFC 6749 section 4.1, RFC
// 7636).
type OAuthFlow interface {
	// Authorize returns the URL of the provider's sign-in page. It makes no promise to
	// the provider: calling it again is free.
	Authorize(ctx context.Context, r AuthorizeRequest) (string, error)
	// Exchange turns a code into a grant. A code works once: a second call with it
	// fails. [ProviderCredentialError] if the provider refuses the code.
	Exchange(ctx context.Context, r ExchangeRequest) (Grant, error)
}

// AuthorizeRequest has the values for the address of the sign-in page.
type AuthorizeRequest struct {
	healthlab.Private

	// State comes back with the callback, unchanged.
	State string
	// RedirectURL is where the provider sends the person back to: the callback.
	RedirectURL string
	// Challenge is the S256 challenge of PKCE.
	Challenge string
	// Scopes are asked for; empty where the provider has none.
	Scopes []string
}

// ExchangeRequest is what a code is exchanged with.
type ExchangeRequest struct {
	healthlab.Private

	Code string
	// RedirectURL is the one of the AuthorizeRequest.
	RedirectURL string
	// Verifier belongs to its Challenge.
	Verifier string
	// Scopes are those that were asked for.
	Scopes []string
}

// PasswordFlow signs in with a name and a password.
type PasswordFlow interface {
	// SignIn signs in. The answer has a Grant, or a Challenge when the provider wants a
	// code first. [ProviderCredentialError], [ProviderPasswordExpired],
	// [UnsupportedRegion].
	SignIn(ctx context.Context, r PasswordRequest) (PasswordResponse, error)
	// CompleteMFA answers a challenge. It may be called again after a wrong code.
	// [IncorrectMFACode]; [ProviderCredentialError] if the provider gave up on it.
	CompleteMFA(ctx context.Context, r MFARequest) (Grant, error)
}

// PasswordRequest is what a person filled in.
type PasswordRequest struct {
	healthlab.Private

	Username, Password string
	// Region is one that the provider's record lists; empty if it lists none.
	Region string
}

// PasswordResponse is the answer to a password.
type PasswordResponse struct {
	healthlab.Private

	Grant Grant
	// Challenge is set when the provider wants a code first.
	Challenge *Challenge
	// Notes are the connector's own, to go on with the challenge. They are sealed
	// while they wait.
	Notes []byte
}

// Challenge says how a code reaches the person.
type Challenge struct {
	healthlab.Private

	// Method is sms or email (open).
	Method string
	// Hint helps the person, such as the last digits of a number.
	Hint string
}

// MFARequest is a code that a person entered.
type MFARequest struct {
	healthlab.Private

	Code string
	// Notes are those of the challenge.
	Notes []byte
}

// EmailFlow connects an address that is known to the provider.
type EmailFlow interface {
	// SignInByEmail connects. [ProviderCredentialError] if the address is unknown
	// there, [UnsupportedRegion].
	SignInByEmail(ctx context.Context, r EmailRequest) (Grant, error)
}

// EmailRequest is what a person filled in.
type EmailRequest struct {
	healthlab.Private

	Email string
	// Region is one that the provider's record lists; empty if it lists none.
	Region string
	// Practice is the only one whose patients the team may connect, in any case of letters;
	// empty for any. A provider without practices passes over it.
	Practice string
}

// Revoker ends grants at a provider.
type Revoker interface {
	// Revoke ends a grant. Idempotent: one that has ended is a success.
	Revoke(ctx context.Context, secret []byte) error
}

// Refresher renews the secrets of grants.
type Refresher interface {
	// Refresh exchanges a secret for a new one. A [CredentialRefresher] sees to it that one call for a
	// grant is under way at a time, over all processes, and keeps the answer before it is used.
	// A call whose answer was lost is made again with the same secret; where a provider
	// that rotates them refuses that, the one before it is tried.
	//
	// A [*GrantError] says that the grant is over, and is for an answer that says so in
	// the protocol's words, as invalid_grant does. Any other error means try later: an
	// answer of 5xx, a timeout, one that cannot be read. One with a method
	// RetryAfter() time.Duration says when.
	Refresh(ctx context.Context, secret []byte) (Renewal, error)
}

// TokenCodec takes the tokens of OAuth out of a connector's secrets, and puts them in, so that
// connections can move from one service to another. Both are pure.
type TokenCodec interface {
	// Encode makes a secret. Invalid if the connector can do nothing with the tokens.
	Encode(t Tokens) ([]byte, error)
	// Decode reads a secret of this connector.
	Decode(secret []byte) (Tokens, error)
}

// Tokens are those of OAuth 2; of OAuth 1 the token and its secret.
type Tokens struct {
	healthlab.Private

	Access, Refresh string
}

// Renewal is a new secret.
type Renewal struct {
	healthlab.Private

	Secret []byte
	// ExpiresAt is when it stops working; zero if it is not known.
	ExpiresAt time.Time
}

// GrantError says that a provider refuses us for good: the person has to link again.
type GrantError struct {
	// Type is one of the names healthdata.Failure…; empty is
	// healthdata.FailureTokenRefresh.
	Type string
}

// Error says that the provider refuses the grant, with the type of the failure.
func (e *GrantError) Error() string { return "the provider refuses the grant: " + e.failure() }

// Unwrap returns healthlab.Forbidden.
func (*GrantError) Unwrap() error { return healthlab.Forbidden }

func (e *GrantError) failure() string {
	if e.Type == "" {
		return healthdata.FailureTokenRefresh
	}
	return e.Type
}

// Grant is what a provider gave.
type Grant struct {
	healthlab.Private

	// ExternalUserID is the provider's own name for the person; empty if it has none.
	ExternalUserID string
	// Scopes are those that were granted; nil if the provider does not say, which means
	// all that were asked for.
	Scopes []string
	// Practice is the one that shares the person's data; empty if the provider has none.
	Practice string
	// Client is the id of the team's own client that it was given to, and empty for the
	// deployment's. Connectors leave it empty.
	Client string
	// Secret is what the connector needs to fetch data: tokens, a password. It is
	// sealed before it is stored, and the connector alone reads it.
	Secret []byte
	// ExpiresAt is when the secret stops working; zero if it does not, or it is not known.
	ExpiresAt time.Time
}

// OAuthClient is what a provider knows an application by.
type OAuthClient struct {
	healthlab.Private

	// ID is the client id. Secret is empty where the provider gives none.
	ID, Secret string
	// Details are what the provider wants besides, by the names that its connector knows.
	Details map[string]string
}

// SetupStep is something that the owner of a client has to set up at the provider.
type SetupStep struct {
	// Type is one of the names Setup… (open).
	Type string
	// Key names what it is at the provider, and Value is what to enter.
	Key, Value string
	// Description tells a person what to do.
	Description string
}

// Types of steps.
const (
	// SetupRedirect: an address that the provider may send people back to.
	SetupRedirect = "redirect_uri"
	// SetupWebhook: an address that the provider sends its messages to.
	SetupWebhook = "webhook_uri"
	// SetupPrincipal: an account of ours in a cloud that needs a right there.
	SetupPrincipal = "iam_principal"
)

// maxSecret is the longest secret that is kept, in bytes.
const maxSecret = 64 << 10
