package linking

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Store stores link codes, link sessions and the credentials of connections. One adapter implements Store and
// healthdata.Users, so that one transaction can write the user too.
//
// All methods are safe for concurrent use and atomic: either everything a call writes is there, or nothing is. A call
// whose context has already ended writes nothing and returns the context's error. Arguments and results are copies.
// Text that is not UTF-8 or has a NUL is healthlab.Invalid. Times are kept in UTC to the microsecond. An item that the
// team does not have is healthlab.NotFound, even if another team has it.
//
// A change may run more than once, so it is pure: no I/O, no clock, no calls to a store. Its error is returned
// unchanged, and nothing is written. Concurrent changes of one code, session, credential or user behave as if they ran
// one after another.
//
// Erasing a user deletes the user's codes, sessions and credentials. A code or session may be deleted a day after it
// expired.
type Store interface {
	// InsertCode adds a code, with WrongBefore and FirstBefore set to the team's current counts. It returns Conflict if
	// a code of any team, used or not, has this text and has not expired at c.CreatedAt. An expired code with this text
	// is replaced. It returns Invalid without team, user or text.
	InsertCode(ctx context.Context, c Code) error

	// TryCode reads the state of a try at the code with this text, lets change edit it, and writes it back: the code's
	// UsedAt, the client's window and the team's counts. client is a keyed hash. The window of a client is stored for
	// each team, for at least GuessWindow. A zero team means that the client names no team: the code may be of any
	// team, and the wrong tries of all such clients are counted together.
	TryCode(ctx context.Context, team healthlab.TeamID, client [32]byte, text string, change func(*CodeAttempt)) error

	// InsertSession adds a session with Revision 1. It returns Conflict if its id is taken, and Invalid without id,
	// team or user.
	InsertSession(ctx context.Context, s Session) error

	// Session returns a session. It returns NotFound if the team has no session with this id.
	Session(ctx context.Context, team healthlab.TeamID, id SessionID) (Session, error)

	// UpdateSession lets change edit a session and writes it back with the next revision. ID, Team, User, Token,
	// CreatedAt, ExpiresAt and Revision cannot be changed.
	UpdateSession(ctx context.Context, team healthlab.TeamID, id SessionID, change func(*Session) error) (Session, error)

	// Complete lets c.Change edit a session and its user together, as UpdateSession and healthdata.Users.Update do, and
	// writes both with the events and the credential. It returns NotFound if there is no session or no user, live or
	// deleted. If another live user has the account, it returns an [*AccountTakenError] after Change succeeded, and
	// writes nothing. Of two concurrent calls for one account, at most one succeeds.
	Complete(ctx context.Context, c Completion) (Session, error)

	// Credential returns the credential of a user's connection. It returns NotFound if there is none, or if the
	// user has no connection to the provider that is not Deregistered.
	Credential(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) (Credential, error)

	// Disconnect lets change edit a user and writes the user and the events, as healthdata.Users.Update does. In the
	// same step it deletes the credential of the provider. It returns the deleted credential; the zero value if there
	// was none.
	Disconnect(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string,
		change func(*healthdata.User) ([]healthlab.Event, error)) (Credential, error)
}

// Completion is a successful link.
type Completion struct {
	Team    healthlab.TeamID
	Session SessionID
	// Credential replaces the credential of the user and provider. If its Secret has no Box, that credential is
	// deleted. Its User is that of the session.
	Credential Credential
	// Sole is the external id that no other live user of the team may have at the provider, in a connection that
	// is not Deregistered, byte for byte. Nil skips the check.
	Sole *string
	// Change edits the session and the user, and returns the events.
	Change func(*Session, *healthdata.User) ([]healthlab.Event, error)
}

// AccountTakenError reports that another user has connected this account. It unwraps to healthlab.Conflict.
type AccountTakenError struct{}

// Error returns the text of the error.
func (*AccountTakenError) Error() string {
	return "another user of the team has connected this account"
}

// Unwrap returns healthlab.Conflict.
func (*AccountTakenError) Unwrap() error { return healthlab.Conflict }

// CredentialStore is the part of a store that a [CredentialRefresher] works with. The rules of [Store] about all
// methods apply here too. Both use the same credentials.
type CredentialStore interface {
	// Credential is the same method as in [Store].
	Credential(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) (Credential, error)

	// UpdateCredential lets change edit a credential and its user, and writes the credential back. If change returns
	// events, the events and the user are written in the same step, as healthdata.Users.Update does; otherwise changes
	// of the user are discarded. ID, Team, User, Provider and CreatedAt cannot be changed. StoreTime is set while
	// change runs. change may run more than once, so it must be pure. It returns NotFound in the same cases as
	// Credential.
	UpdateCredential(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string,
		change func(*Credential, *healthdata.User) ([]healthlab.Event, error)) (Credential, error)
}

// Credential is the sealed secret that a connection needs to fetch data.
type Credential struct {
	// ID is the id of the grant. Every sign-in makes a new grant; a refresh keeps it.
	ID       uuid.UUID
	Team     healthlab.TeamID
	User     healthlab.UserID
	Provider string
	// Client is the id of the team's own OAuth client of the grant; empty for the deployment's client. Stores read it
	// from the connection; it is not a part of the stored credential.
	Client string
	Secret healthlab.Sealed
	// ExpiresAt is when the secret expires; zero if it is not known.
	ExpiresAt time.Time
	CreatedAt time.Time

	// Version is the number of renewals of the secret.
	Version int64
	// Previous is the secret before the last renewal. Its Box is nil if there was none.
	Previous healthlab.Sealed
	// Lease is when the lease of the renewing process ends, by the store's clock; zero if there is none.
	Lease time.Time
	// StoreTime is the store's clock in UTC while the change of an UpdateCredential runs; zero otherwise. The change
	// compares Lease with StoreTime, and sets a new Lease relative to it. It is not stored.
	StoreTime time.Time
	// Failures is the number of failed renewals in a row. RetryAt is when the next one may be tried, by the
	// clock of the failing process; zero means at once.
	Failures int
	RetryAt  time.Time
}

// LogValue logs the ids of the credential and not the secret.
func (c Credential) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user", c.User.String()), slog.String("provider", c.Provider))
}
