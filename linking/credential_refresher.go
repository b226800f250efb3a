package linking

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/work"
)

// CredentialRefresher provides valid secrets of connections. A caller that fetches data requests the secret,
// and the CredentialRefresher refreshes an expired one, once for all callers in all processes.
//
// Guarantees for a provider that rotates refresh tokens:
//
//   - One refresh at a time: a process takes a lease on the credential, and its calls end well before the lease
//     ends. Other callers wait for the result.
//   - A new secret is stored before it is used, together with the previous one. If a process crashes between the
//     provider's answer and the write, the old secret is exchanged again. So no connection is lost at a provider that
//     still accepts the secret before the newest one.
//   - A connection fails only if the provider explicitly refuses the stored secret and, if there is one, the previous
//     secret. After an outage the refresh is retried.
//   - A grant is refreshed by the OAuth client that obtained it, also after the team has changed its client. If the
//     team has erased that client, the connection fails as if the provider had refused it.
//   - If another process has taken the lease before a refresh ends, a temporary failure of the refresh is ignored, but
//     its new secret is stored.
//
// Safe for concurrent use; make it with [NewCredentialRefresher].
type CredentialRefresher struct {
	store      CredentialStore
	users      *healthdata.Service
	connectors *clientConnectors
	seal       healthlab.Sealer
	opts       CredentialRefresherOptions

	failures work.FailureLog

	mu       sync.Mutex
	renewals map[account]*renewal
}

// CredentialRefresherOptions configures a CredentialRefresher. The zero value, and nil, mean the defaults.
type CredentialRefresherOptions struct {
	// Ahead is the time before its expiry at which a secret is refreshed. Default 1 minute.
	Ahead time.Duration
	// Timeout bounds a call of a connector. Default 30 seconds.
	Timeout time.Duration
	// Lease is how long one process may take to renew a secret before another process may try, by the store's clock.
	// The time includes two calls of the connector and the writes. Default 2 minutes, or four times the Timeout if that
	// is longer; at least three times the Timeout.
	Lease time.Duration
	// Clients stores the OAuth clients of teams, as in [Options].
	Clients TeamClients
	// Now is the clock for the expiry of secrets and for retries. Default time.Now.
	Now func() time.Time
	// Log receives failed renewals. Default: slog.Default().
	Log *slog.Logger
}

// NewCredentialRefresher returns a CredentialRefresher. It returns Invalid if an argument is missing, or if the Lease
// is shorter than three times the Timeout. It starts no goroutine.
func NewCredentialRefresher(store CredentialStore, users *healthdata.Service, connectors map[string]ProviderConnector, seal healthlab.Sealer, opts *CredentialRefresherOptions) (*CredentialRefresher, error) {
	if store == nil || users == nil || seal == nil {
		return nil, fmt.Errorf("%w: linking.NewCredentialRefresher: store, users and seal must not be nil", healthlab.Invalid)
	}
	k := &CredentialRefresher{store: store, users: users, seal: seal, renewals: map[account]*renewal{}}
	if opts != nil {
		k.opts = *opts
	}
	o := &k.opts
	if o.Ahead <= 0 {
		o.Ahead = time.Minute
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Lease <= 0 {
		o.Lease = max(2*time.Minute, 4*o.Timeout)
	}
	if o.Lease < 3*o.Timeout {
		return nil, fmt.Errorf("%w: CredentialRefresherOptions.Lease is %v; it must be at least three times Timeout (%v)", healthlab.Invalid, o.Lease, o.Timeout)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	k.connectors = newClientConnectors(connectors, o.Clients, seal)
	return k, nil
}

// GrantSecret is a decrypted secret for a connector.
type GrantSecret struct {
	healthlab.Private

	Secret []byte
	// Grant and Version identify the secret.
	Grant   uuid.UUID
	Version int64
}

// RetryLaterError reports that a secret could not be renewed now. It unwraps to healthlab.Unavailable.
type RetryLaterError struct{ Wait time.Duration }

// Error returns a text about the failed refresh.
func (*RetryLaterError) Error() string { return "the provider does not renew the grant now" }

// Unwrap returns healthlab.Unavailable.
func (*RetryLaterError) Unwrap() error { return healthlab.Unavailable }

// RetryAfter returns the time after which a retry is useful.
func (e *RetryLaterError) RetryAfter() time.Duration { return e.Wait }

// account identifies a connection by its team, user and provider.
type account struct {
	team     healthlab.TeamID
	user     healthlab.UserID
	provider string
}

// Secret returns the secret of a connection, and renews it first if it has expired. It returns NotFound if there
// is no working connection, a [*GrantError] if the provider has just ended the grant, or a [*RetryLaterError].
func (k *CredentialRefresher) Secret(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) (GrantSecret, error) {
	a, err := k.secret(ctx, account{team, user, provider}, nil)
	if err != nil {
		return GrantSecret{}, fmt.Errorf("secret: %w", err)
	}
	return a, nil
}

// Renew renews a secret that the provider refused before its expiry. If the secret was renewed meanwhile, it
// returns the newer one. Otherwise it is like [CredentialRefresher.Secret].
func (k *CredentialRefresher) Renew(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string, refused GrantSecret) (GrantSecret, error) {
	a, err := k.secret(ctx, account{team, user, provider}, &refused)
	if err != nil {
		return GrantSecret{}, fmt.Errorf("renew secret: %w", err)
	}
	return a, nil
}

func (k *CredentialRefresher) secret(ctx context.Context, who account, refused *GrantSecret) (GrantSecret, error) {
	var waited *Credential // the credential at the start of a renewal
	for {
		c, err := k.store.Credential(ctx, who.team, who.user, who.provider)
		if err != nil {
			return GrantSecret{}, err
		}
		stale := refused != nil && refused.Grant == c.ID && refused.Version == c.Version
		now := k.now()
		// A secret that was just renewed is used even if it expires soon: another renewal would not help.
		renewed := waited != nil && (c.ID != waited.ID || c.Version != waited.Version)
		if renewed && !stale || k.isFresh(&c, stale, now) {
			return k.open(ctx, &c)
		}
		if c.RetryAt.After(now) {
			if !stale && c.ExpiresAt.After(now) {
				return k.open(ctx, &c) // the secret is still valid
			}
			return GrantSecret{}, &RetryLaterError{c.RetryAt.Sub(now)}
		}
		// A call during a renewal in this process waits for it.
		waited = &c
		if err := k.renewOnce(ctx, who, func(ctx context.Context) error { return k.renew(ctx, who, c) }); err != nil {
			return GrantSecret{}, err
		}
	}
}

func (k *CredentialRefresher) isFresh(c *Credential, stale bool, now time.Time) bool {
	if k.connectors.byProvider[c.Provider].Refresher == nil {
		return !stale
	}
	return !stale && (c.ExpiresAt.IsZero() || c.ExpiresAt.After(now.Add(k.opts.Ahead)))
}

func (k *CredentialRefresher) now() time.Time { return healthlab.At(k.opts.Now()).Time }

func (k *CredentialRefresher) open(ctx context.Context, c *Credential) (GrantSecret, error) {
	secret, err := k.seal.Open(ctx, c.Secret, grantPlace(c.Team, c.User, c.Provider))
	if err != nil {
		return GrantSecret{}, err
	}
	return GrantSecret{Secret: secret, Grant: c.ID, Version: c.Version}, nil
}

// renewal is a refresh that runs in this process. done is closed when it ends.
type renewal struct {
	done chan struct{}
	err  error
}

// renewOnce calls renew or, if a renewal of this connection already runs in this process, waits for its result. A
// started renewal continues after ctx ends, because a new secret must not be lost.
func (k *CredentialRefresher) renewOnce(ctx context.Context, who account, renew func(context.Context) error) error {
	k.mu.Lock()
	f := k.renewals[who]
	if f == nil {
		f = &renewal{done: make(chan struct{})}
		k.renewals[who] = f
		go func() {
			defer func() {
				if r := recover(); r != nil {
					f.err = errors.New("panic in a connector")
				}
				k.mu.Lock()
				delete(k.renewals, who)
				k.mu.Unlock()
				close(f.done)
			}()
			f.err = renew(context.WithoutCancel(ctx))
		}()
	}
	k.mu.Unlock()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errMoved reports that another process has changed the credential since it was read.
var errMoved = errors.New("another process has refreshed the credential")

// errBusy reports that another process has the lease of the credential.
var errBusy = errors.New("another process is refreshing the credential")

// intervals at which the state of a renewal in another process is checked.
const (
	firstPause = 10 * time.Millisecond
	maxPause   = 250 * time.Millisecond
)

// renew renews the credential seen, or waits for a renewal by another process. If it returns nil, the caller must read
// the credential again.
func (k *CredentialRefresher) renew(ctx context.Context, who account, seen Credential) error {
	if k.connectors.byProvider[who.provider].Refresher == nil {
		return k.endGrant(ctx, who, seen, &GrantError{Type: healthdata.FailureCredential})
	}
	for wait := firstPause; ; wait = min(2*wait, maxPause) {
		c, err := k.claim(ctx, who, seen)
		switch {
		case errors.Is(err, errMoved):
			return nil
		case errors.Is(err, errBusy):
			if err := pause(ctx, wait); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		return k.exchange(ctx, who, c)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// claim takes the lease of a credential. It returns errMoved if the stored credential differs from seen or must not be
// retried yet, errBusy if another process has the lease, and healthlab.NotFound if the connection does not work.
func (k *CredentialRefresher) claim(ctx context.Context, who account, seen Credential) (Credential, error) {
	now := k.now()
	return k.store.UpdateCredential(ctx, who.team, who.user, who.provider, func(c *Credential, u *healthdata.User) ([]healthlab.Event, error) {
		switch {
		case c.ID != seen.ID || c.Version != seen.Version || c.RetryAt.After(now):
			return nil, errMoved
		case !connectionWorks(u, who.provider):
			return nil, healthlab.NotFound
		case c.Lease.After(c.StoreTime):
			return nil, errBusy
		}
		c.Lease = c.StoreTime.Add(k.opts.Lease)
		return nil, nil
	})
}

func connectionWorks(u *healthdata.User, provider string) bool {
	c := u.Connection(provider)
	return u.Live() && c != nil && c.Status == healthdata.Connected
}

// exchange calls the provider with the secret of c, also with the previous secret if the provider refuses it, and
// stores the result. The caller has the lease.
func (k *CredentialRefresher) exchange(ctx context.Context, who account, c Credential) error {
	answer, err := k.callRefresher(ctx, &c, c.Secret)
	var over *GrantError
	if errors.As(err, &over) && c.Previous.Box != nil {
		// A provider that was restored from a backup, or a replica that does not know the last rotation, accepts
		// the previous secret.
		var second error
		if answer, second = k.callRefresher(ctx, &c, c.Previous); !errors.As(second, &over) {
			err = second
		}
	}
	if errors.As(err, &over) {
		return k.endGrant(ctx, who, c, over)
	}
	if err != nil {
		return k.recordRetry(ctx, who, c, err)
	}
	return k.storeRenewal(ctx, who, c, answer)
}

// callRefresher decrypts the secret in box and passes it to the Refresher of the connector for the credential's client.
func (k *CredentialRefresher) callRefresher(ctx context.Context, c *Credential, box healthlab.Sealed) (Renewal, error) {
	secret, err := k.seal.Open(ctx, box, grantPlace(c.Team, c.User, c.Provider))
	if err != nil {
		return Renewal{}, err
	}
	conn, err := k.connectors.forClient(ctx, c.Team, c.Provider, c.Client)
	if errors.Is(err, healthlab.NotFound) { // the team has erased the client
		return Renewal{}, &GrantError{Type: healthdata.FailureCredential}
	}
	if err != nil {
		return Renewal{}, err
	}
	if conn.Refresher == nil {
		return Renewal{}, fmt.Errorf("%w: the connector cannot refresh credentials of this OAuth client", healthlab.Unavailable)
	}
	ctx, stop := context.WithTimeout(ctx, k.opts.Timeout)
	defer stop()
	answer, err := conn.Refresher.Refresh(ctx, secret)
	if err == nil && (len(answer.Secret) == 0 || len(answer.Secret) > maxSecret) {
		err = fmt.Errorf("the connector must return a secret of 1 to %d bytes", maxSecret)
	}
	return answer, err
}

// storeRenewal stores a new secret. The provider may no longer accept the old secret, so the new one is stored even if
// the lease has ended, as long as the grant is the same. If the store is unavailable, the write is retried for the
// length of a lease.
func (k *CredentialRefresher) storeRenewal(ctx context.Context, who account, c Credential, answer Renewal) error {
	box, err := k.seal.Seal(ctx, answer.Secret, grantPlace(who.team, who.user, who.provider))
	if err != nil {
		return err
	}
	store := func() error {
		_, err := k.store.UpdateCredential(ctx, who.team, who.user, who.provider, func(now *Credential, _ *healthdata.User) ([]healthlab.Event, error) {
			if now.ID != c.ID {
				return nil, errMoved
			}
			now.Previous, now.Secret, now.ExpiresAt = now.Secret, box, answer.ExpiresAt
			now.Version++
			now.Lease, now.RetryAt, now.Failures = time.Time{}, time.Time{}, 0
			return nil, nil
		})
		return err
	}
	wait, began := maxPause, k.opts.Now()
	for err = store(); errors.Is(err, healthlab.Unavailable) && k.opts.Now().Sub(began) < k.opts.Lease; err = store() {
		if err := pause(ctx, wait); err != nil {
			return err
		}
		wait *= 2
	}
	if errors.Is(err, errMoved) {
		return nil
	}
	return err
}

// recordRetry stores when the next renewal may be tried after a failed one, and returns a [*RetryLaterError]. It
// returns nil if the credential was changed meanwhile.
func (k *CredentialRefresher) recordRetry(ctx context.Context, who account, c Credential, cause error) error {
	now := k.now()
	wait := backoff(c.Failures)
	var hint interface{ RetryAfter() time.Duration }
	if errors.As(cause, &hint) && hint.RetryAfter() > 0 {
		wait = min(hint.RetryAfter(), maxRetry)
	}
	k.failures.Log(ctx, k.opts.Log, now, who.provider, "grant not renewed", withCause(cause), "user", who.user, "provider", who.provider, "failures", c.Failures+1)
	_, err := k.store.UpdateCredential(ctx, who.team, who.user, who.provider, func(now1 *Credential, _ *healthdata.User) ([]healthlab.Event, error) {
		if now1.ID != c.ID || now1.Version != c.Version || !now1.Lease.Equal(c.Lease) {
			return nil, errMoved
		}
		now1.Lease, now1.Failures, now1.RetryAt = time.Time{}, now1.Failures+1, now.Add(wait)
		return nil, nil
	})
	if errors.Is(err, errMoved) {
		return nil
	}
	if err != nil {
		return err
	}
	return &RetryLaterError{wait}
}

const (
	firstRetry = 5 * time.Second
	maxRetry   = 15 * time.Minute
)

func backoff(failures int) time.Duration { return min(firstRetry<<min(failures, 10), maxRetry) }

// endGrant sets the connection to failed, because the provider refuses the grant permanently, and returns over. It
// returns nil and changes nothing if a newer secret is stored.
func (k *CredentialRefresher) endGrant(ctx context.Context, who account, c Credential, over *GrantError) error {
	fails, err := k.users.Connections().Failing(who.provider, healthdata.ConnectionFailure{
		Type: over.failure(), Message: "the provider no longer accepts this connection; the user has to link it again",
	})
	if err != nil {
		return err
	}
	_, err = k.store.UpdateCredential(ctx, who.team, who.user, who.provider, func(now *Credential, u *healthdata.User) ([]healthlab.Event, error) {
		if now.ID != c.ID || now.Version != c.Version {
			return nil, errMoved
		}
		now.Lease = time.Time{}
		return fails(u)
	})
	if errors.Is(err, errMoved) {
		return nil
	}
	if err != nil {
		return err
	}
	return over
}

// Fail sets a connection to failed, because the provider refused its secret permanently during a pull. It stays failed
// until the person links again. Fail does nothing if the secret was replaced meanwhile, or if the connection is paused
// or has failed. It returns NotFound if the user has no connection to the provider.
func (k *CredentialRefresher) Fail(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string, refused GrantSecret, why *GrantError) error {
	err := k.endGrant(ctx, account{team, user, provider}, Credential{ID: refused.Grant, Version: refused.Version}, why)
	var over *GrantError
	if errors.As(err, &over) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("fail connection: %w", err)
	}
	return nil
}

// Unlink sets a connection to failed with the reason deregistered, because the person ended the grant at the provider.
// It does nothing if the connection is paused or has failed. It returns NotFound if the user has no connection to the
// provider.
func (k *CredentialRefresher) Unlink(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) error {
	c, err := k.store.Credential(ctx, team, user, provider)
	if err != nil {
		return fmt.Errorf("unlink: %w", err)
	}
	return k.Fail(ctx, team, user, provider, GrantSecret{Grant: c.ID, Version: c.Version}, &GrantError{Type: healthdata.FailureDeregistered})
}
