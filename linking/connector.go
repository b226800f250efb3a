package linking

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// ProviderConnector implements sign-ins and pulls at one provider. The auth_type of the provider decides which
// flow is set: OAuth for oauth and team_oauth, Password for password, Email for email; the others are nil.
//
// What all flows have in common: methods are safe for concurrent use, keep nothing of a person between calls,
// and end when their context does; the Service gives them a deadline. The Service never repeats a call whose
// answer was lost; the person may try again. A person's mistake is a [*Error] of a type that the method names;
// any other error means that the provider is down or its answer is invalid, and becomes [ProviderAPIError].
// Errors must not contain request data.
type ProviderConnector struct {
	OAuth    OAuthFlow
	Password PasswordFlow
	Email    EmailFlow
	// Revoker ends grants. Nil if the provider cannot revoke them.
	Revoker Revoker
	// Refresher renews secrets. Nil if the secrets do not expire.
	Refresher Refresher
	// TokenCodec reads and writes the tokens in secrets. Nil if connections cannot be moved to another service.
	TokenCodec TokenCodec
	// Puller fetches data. Nil if the provider pushes data itself.
	Puller Puller
	// Together lists sets of resources that one request of the Puller can return, for [PullRequest].With. A
	// resource is in at most one set. Nil: each resource is requested separately.
	Together [][]string
	// Listener reads messages of the provider. Nil if the provider sends none.
	Listener Listener
	// ForClient returns the connector for another OAuth client, which a team has registered at the provider; nil
	// if only the deployment's client is supported. It must be pure. Puller and TokenCodec of its result are
	// never called, because those of the deployment work for the grants of every client. It returns Invalid with
	// the fields client_id, client_secret and details if the client is invalid.
	ForClient func(OAuthClient) (ProviderConnector, error)
	// ClientListener reports whether the result of ForClient has a Listener.
	ClientListener bool
	// Setup lists the steps that a team must take at the provider for an OAuth client of its own, besides those for the
	// redirect URL and the webhook URL.
	Setup []SetupStep
	// Minimum are the scopes that every person must grant, in addition to those of a team.
	Minimum []string
}

// OAuthFlow signs in by the authorization code flow with PKCE (RFC 6749 section 4.1, RFC
// 7636).
type OAuthFlow interface {
	// Authorize returns the URL of the provider's sign-in page. It may be called several times.
	Authorize(ctx context.Context, r AuthorizeRequest) (string, error)
	// Exchange exchanges a code for a grant. A code works once: a second call fails. It returns
	// [ProviderCredentialError] if the provider refuses the code.
	Exchange(ctx context.Context, r ExchangeRequest) (Grant, error)
}

// AuthorizeRequest has the parameters of the sign-in page's URL.
type AuthorizeRequest struct {
	healthlab.Private

	// State is returned unchanged with the callback.
	State string
	// RedirectURL is the callback URL to which the provider sends the person back.
	RedirectURL string
	// Challenge is the S256 challenge of PKCE.
	Challenge string
	// Scopes are the requested scopes; empty for a provider without scopes.
	Scopes []string
}

// ExchangeRequest has the code and its parameters.
type ExchangeRequest struct {
	healthlab.Private

	Code string
	// RedirectURL is that of the AuthorizeRequest.
	RedirectURL string
	// Verifier is the PKCE verifier of the Challenge.
	Verifier string
	// Scopes are the requested scopes.
	Scopes []string
}

// PasswordFlow signs in with a name and a password.
type PasswordFlow interface {
	// SignIn signs in. The response has a Grant, or a Challenge if the provider requires a code first. Its
	// errors are [ProviderCredentialError], [ProviderPasswordExpired] and [UnsupportedRegion].
	SignIn(ctx context.Context, r PasswordRequest) (PasswordResponse, error)
	// CompleteMFA sends the code of a challenge. It may be called again after a wrong code. Its errors are
	// [IncorrectMFACode], and [ProviderCredentialError] if the provider ended the challenge.
	CompleteMFA(ctx context.Context, r MFARequest) (Grant, error)
}

// PasswordRequest has the fields of the sign-in form.
type PasswordRequest struct {
	healthlab.Private

	Username, Password string
	// Region is one of the regions in the provider's record; empty if the record has none.
	Region string
}

// PasswordResponse is the result of a sign-in with a password.
type PasswordResponse struct {
	healthlab.Private

	Grant Grant
	// Challenge is set if the provider requires a code first.
	Challenge *Challenge
	// Notes are data of the connector for CompleteMFA. The Service stores them sealed.
	Notes []byte
}

// Challenge describes how a code is sent to the person.
type Challenge struct {
	healthlab.Private

	// Method is sms or email; later versions may add values.
	Method string
	// Hint is a hint for the person, such as the last digits of the phone number.
	Hint string
}

// MFARequest has the code that a person entered.
type MFARequest struct {
	healthlab.Private

	Code string
	// Notes are those of the PasswordResponse.
	Notes []byte
}

// EmailFlow connects an e-mail address that the provider knows.
type EmailFlow interface {
	// SignInByEmail connects an address. Its errors are [ProviderCredentialError] if the provider does not know
	// the address, and [UnsupportedRegion].
	SignInByEmail(ctx context.Context, r EmailRequest) (Grant, error)
}

// EmailRequest has the fields of the e-mail form.
type EmailRequest struct {
	healthlab.Private

	Email string
	// Region is one of the regions in the provider's record; empty if the record has none.
	Region string
	// Practice is the only practice whose patients the team may connect, compared without regard to case; empty for any. A
	// provider without practices ignores it.
	Practice string
}

// Revoker ends grants at a provider.
type Revoker interface {
	// Revoke ends a grant. It succeeds if the grant has already ended.
	Revoke(ctx context.Context, secret []byte) error
}

// Refresher renews the secrets of grants.
type Refresher interface {
	// Refresh exchanges a secret for a new one. A [CredentialRefresher] makes only one call at a time for a grant, over
	// all processes, and stores the new secret before anyone uses it. If an answer is lost, it calls Refresh again with
	// the same secret. If a provider with rotating secrets refuses that secret, it tries the previous one.
	//
	// A [*GrantError] means that the grant has ended; return it only for an explicit answer such as invalid_grant. Any
	// other error, such as status 5xx, a timeout or an unreadable answer, means a later retry. If the error has a
	// method RetryAfter() time.Duration, the retry waits for that time, but at most 15 minutes.
	Refresh(ctx context.Context, secret []byte) (Renewal, error)
}

// TokenCodec extracts the OAuth tokens from a connector's secret and makes a secret from tokens, so that
// connections can be moved between services. Both methods are pure.
type TokenCodec interface {
	// Encode makes a secret. It returns Invalid if the connector cannot use the tokens.
	Encode(t Tokens) ([]byte, error)
	// Decode reads a secret of this connector.
	Decode(secret []byte) (Tokens, error)
}

// Tokens are OAuth 2 tokens, or the token and its secret of OAuth 1.
type Tokens struct {
	healthlab.Private

	Access, Refresh string
}

// Renewal is a refreshed secret.
type Renewal struct {
	healthlab.Private

	Secret []byte
	// ExpiresAt is when the secret expires; zero if it is not known.
	ExpiresAt time.Time
}

// GrantError reports that a provider refuses access permanently: the person must link again.
type GrantError struct {
	// Type is one of the names healthdata.Failure…; empty means healthdata.FailureTokenRefresh.
	Type string
}

// Error returns a text with the type of the failure.
func (e *GrantError) Error() string { return "the provider refuses the grant: " + e.failure() }

// Unwrap returns healthlab.Forbidden.
func (*GrantError) Unwrap() error { return healthlab.Forbidden }

func (e *GrantError) failure() string {
	if e.Type == "" {
		return healthdata.FailureTokenRefresh
	}
	return e.Type
}

// Grant is the result of a sign-in at a provider.
type Grant struct {
	healthlab.Private

	// ExternalUserID is the provider's own name for the person; empty if the provider has none.
	ExternalUserID string
	// Scopes are the granted scopes; nil if the provider does not state them, which means all requested scopes.
	Scopes []string
	// Practice is the practice that shares the person's data; empty if the provider has no practices.
	Practice string
	// Client is the id of the team's own OAuth client; empty for that of the deployment. Connectors leave it
	// empty.
	Client string
	// Secret is what the connector needs to fetch data: tokens or a password. It is sealed before it is stored,
	// and only the connector reads it.
	Secret []byte
	// ExpiresAt is when the secret expires; zero if it does not expire, or if the time is not known.
	ExpiresAt time.Time
}

// OAuthClient is an application's registration at a provider.
type OAuthClient struct {
	healthlab.Private

	// ID is the client id. Secret is empty if the provider has no client secrets.
	ID, Secret string
	// Details are further fields of the registration, by names of the connector.
	Details map[string]string
}

// SetupStep is a step that a team must take at the provider for an OAuth client of its own.
type SetupStep struct {
	// Type is [SetupRedirect], [SetupWebhook], [SetupPrincipal] or, in later versions, another name.
	Type string
	// Key is the name of the setting at the provider, and Value the value to enter.
	Key, Value string
	// Description is an instruction for a person.
	Description string
}

// Types of setup steps.
const (
	// SetupRedirect: a callback URL that the provider must allow.
	SetupRedirect = "redirect_uri"
	// SetupWebhook: a URL to which the provider sends its messages.
	SetupWebhook = "webhook_uri"
	// SetupPrincipal: a cloud account of the service that needs access at the provider.
	SetupPrincipal = "iam_principal"
)

// maxSecret is the greatest length of a stored secret, in bytes.
const maxSecret = 64 << 10
