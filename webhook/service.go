package webhook

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

const (
	maxEndpoints     = 50 // largest number of endpoints of a team
	defaultGrace     = 24 * time.Hour
	defaultPerMinute = 60
	maxSecrets       = 5
	maxDescription   = 500
	maxFilterTypes   = 500
)

// ServiceOptions configures a Service. The zero value, and nil, mean the defaults.
type ServiceOptions struct {
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids of endpoints and secrets. Default UUID version 7.
	NewID func() uuid.UUID
	// Random is the source of generated secrets. Default crypto/rand.Reader.
	Random io.Reader
	// Guard checks URLs; use the Guard of the Notifier. Default: the zero Guard.
	Guard *Guard
	// Grace is how long the old secret still signs after a rotation. Default 24 h.
	Grace time.Duration
	// PerMinute is how many registrations, changes of a URL, test sends and replays a team may make per minute
	// in this process. Default 60.
	PerMinute int
	// Envelope configures the bodies of test messages. Use the Envelope of the [StoreOptions].
	Envelope Envelope
	// Audit is called whenever a secret or a stored message is read. Default: none.
	Audit func(ctx context.Context, a AuditedAccess)
	// Log receives failures, without any payload. Default: slog.Default().
	Log *slog.Logger
}

// AuditedAccess is one read of a secret or a message.
type AuditedAccess struct {
	Team     healthlab.TeamID
	Endpoint EndpointID // zero for a message
	Event    uuid.UUID  // zero for a secret
	What     string     // "secret" or "message"
	At       time.Time
}

// Service manages endpoints with their secrets and headers, and resends messages. A [Dispatcher] delivers, in
// this process or in another one. Safe for concurrent use.
type Service struct {
	types      *Catalogue
	deliveries Deliveries
	endpoints  Endpoints
	log        Log
	notifier   Notifier
	seal       healthlab.Sealer
	opts       ServiceOptions
	allowance  *allowance
}

// NewService returns a Service. Everything except opts is required; it returns Invalid if an argument is
// missing. n sends the test messages.
func NewService(types *Catalogue, store ServiceStore, n Notifier, seal healthlab.Sealer, opts *ServiceOptions) (*Service, error) {
	if types == nil || store == nil || n == nil || seal == nil {
		return nil, fmt.Errorf("%w: webhook.NewService: the event types, the store, the notifier and the sealer are required%s", healthlab.Invalid, outboxHint(store == nil))
	}
	o := ServiceOptions{}
	if opts != nil {
		o = *opts
	}
	set(&o.Grace, defaultGrace)
	set(&o.PerMinute, defaultPerMinute)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() uuid.UUID { return uuid.Must(uuid.NewV7()) }
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Guard == nil {
		o.Guard = &Guard{}
	}
	if o.Audit == nil {
		o.Audit = func(context.Context, AuditedAccess) {}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Service{
		types: types, deliveries: store, endpoints: store, log: store, notifier: n, seal: seal, opts: o,
		allowance: newAllowance(o.PerMinute),
	}, nil
}

func (s *Service) clock() time.Time { return s.opts.Now().UTC().Truncate(time.Microsecond) }

// RuleEndpointLimit is the type of the RuleError that [Service.Create] returns if the team has 50 endpoints.
const RuleEndpointLimit = "WEBHOOK_LIMIT_REACHED"

// RateLimitError reports that a team has used its calls of the current minute. It unwraps to
// healthlab.Exhausted.
type RateLimitError struct{ Wait time.Duration }

// Error returns the text of the error.
func (e *RateLimitError) Error() string { return "too many requests about webhooks in a minute" }

// Unwrap returns healthlab.Exhausted.
func (e *RateLimitError) Unwrap() error { return healthlab.Exhausted }

// RetryAfter returns the time until the team may call again.
func (e *RateLimitError) RetryAfter() time.Duration { return e.Wait }

func (s *Service) allow(team healthlab.TeamID) error {
	if now := s.opts.Now(); !s.allowance.take(team, now) {
		return &RateLimitError{Wait: now.Truncate(allowanceOf).Add(allowanceOf).Sub(now)}
	}
	return nil
}
