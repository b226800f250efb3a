package webhook

import (
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// EndpointID is the id of an endpoint: UUID version 7.
type EndpointID struct{ uuid.UUID }

// OrderScope is the set of events that an endpoint receives in order.
type OrderScope string

const (
	// OrderKey keeps the events of one key in order. It is the default.
	OrderKey OrderScope = "key"
	// OrderUser keeps all events of one user in order. Deliveries wait longer than with OrderKey.
	OrderUser OrderScope = "user"
)

// Endpoint is a receiver's URL with its secrets, headers and settings. Secrets and header values are sealed.
// Logs contain neither them nor the path of the URL.
type Endpoint struct {
	healthlab.Private

	ID          EndpointID
	Team        healthlab.TeamID
	URL         string // absolute; never logged whole, because it may contain a token
	Description string
	RateLimit   int      // attempts per second; 0 means unlimited
	FilterTypes []string // exact names; nil means all types
	OrderScope  OrderScope

	Disabled       bool
	DisabledReason DisabledReason // empty unless Disabled
	Health         Health

	Secrets []SealedSecret // newest first
	Headers []SealedHeader // sorted by name

	Revision  int64 // increases by one with every write
	CreatedAt time.Time
	UpdatedAt time.Time // time of the last change by a person
}

// DisabledReason is why an endpoint is disabled.
type DisabledReason string

const (
	// DisabledManual: the team disabled the endpoint.
	DisabledManual DisabledReason = "manual"
	// DisabledFailing: all attempts of five days failed.
	DisabledFailing DisabledReason = "failing"
	// DisabledGone: the receiver answered with status 410.
	DisabledGone DisabledReason = "gone"
)

// SealedSecret is a signing secret in its stored form.
type SealedSecret struct {
	ID        uuid.UUID
	Sealed    healthlab.Sealed
	CreatedAt time.Time
	ExpiresAt time.Time // zero for the newest secret
}

func (s SealedSecret) active(at time.Time) bool {
	return s.ExpiresAt.IsZero() || at.Before(s.ExpiresAt)
}

// SealedHeader is a custom header in its stored form.
type SealedHeader struct {
	Name   string
	Sealed healthlab.Sealed
}

func (e *Endpoint) canReceive(ev healthlab.Event) bool {
	return !e.Disabled && e.Matches(ev)
}

// Matches reports whether the endpoint, if it is enabled, receives the event: it is of the same team, subscribes to the
// type, and the event is not about the endpoint itself.
func (e *Endpoint) Matches(ev healthlab.Event) bool {
	return e.Team == ev.Team && ev.Key != e.ID.String() &&
		(e.FilterTypes == nil || slices.Contains(e.FilterTypes, ev.Type))
}

// Clone returns a copy that shares no memory with e.
func (e Endpoint) Clone() Endpoint {
	e.FilterTypes = slices.Clone(e.FilterTypes)
	e.Secrets = slices.Clone(e.Secrets)
	for i := range e.Secrets {
		e.Secrets[i].Sealed.Box = slices.Clone(e.Secrets[i].Sealed.Box)
	}
	e.Headers = slices.Clone(e.Headers)
	for i := range e.Headers {
		e.Headers[i].Sealed.Box = slices.Clone(e.Headers[i].Sealed.Box)
	}
	return e
}

// LogValue contains the endpoint's id and the scheme and host of its URL.
func (e Endpoint) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", e.ID.String()),
		slog.String("team", e.Team.String()),
		slog.String("at", origin(e.URL)),
		slog.Bool("disabled", e.Disabled),
	)
}

// origin returns the scheme and host of a URL, the only part that may be logged.
func origin(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "unreadable"
	}
	return u.Scheme + "://" + u.Host
}

func secretPlace(e *Endpoint, id fmt.Stringer) []byte {
	// The secret is sealed together with this text, so that it cannot be decrypted in the row of another endpoint.
	return []byte("secret " + e.Team.String() + " " + e.ID.String() + " " + id.String())
}

func headerPlace(e *Endpoint, name string) []byte {
	return []byte("header " + e.Team.String() + " " + e.ID.String() + " " + name)
}
