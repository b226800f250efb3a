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

// EndpointID names an endpoint. UUID version 7.
type EndpointID struct{ uuid.UUID }

// OrderScope says what an endpoint wants kept in order.
type OrderScope string

const (
	// OrderKey keeps the events of one key in order. It is the default.
	OrderKey OrderScope = "key"
	// OrderUser keeps all events of one user in order: stricter, and more waiting.
	OrderUser OrderScope = "user"
)

// Endpoint is a receiver's URL and everything that delivering to it needs. Its
// secrets and header values are sealed. It logs and prints without them, and without
// the path of its URL.
type Endpoint struct {
	healthlab.Private

	ID          EndpointID
	Team        healthlab.TeamID
	URL         string // absolute; may hold a token, so never logged whole
	Description string
	RateLimit   int      // attempts per second; 0 means unlimited
	FilterTypes []string // exact names; nil means all types
	OrderScope  OrderScope

	Disabled       bool
	DisabledReason DisabledReason // empty unless Disabled
	Health         Health

	Secrets []SealedSecret // the newest first
	Headers []SealedHeader // in the order of their names

	Revision  int64 // grows by one with every write
	CreatedAt time.Time
	UpdatedAt time.Time // of the last change by a person
}

// DisabledReason says who or what switched an endpoint off.
type DisabledReason string

const (
	// DisabledManual is a decision of the team.
	DisabledManual DisabledReason = "manual"
	// DisabledFailing is five days of nothing but failures.
	DisabledFailing DisabledReason = "failing"
	// DisabledGone is the receiver's own word: status 410.
	DisabledGone DisabledReason = "gone"
)

// SealedSecret is a signing secret as it is stored.
type SealedSecret struct {
	ID        uuid.UUID
	Sealed    healthlab.Sealed
	CreatedAt time.Time
	ExpiresAt time.Time // zero while it is the newest
}

// Active reports whether the secret signs at this instant.
func (s SealedSecret) Active(at time.Time) bool {
	return s.ExpiresAt.IsZero() || at.Before(s.ExpiresAt)
}

// SealedHeader is a custom header as it is stored.
type SealedHeader struct {
	Name   string
	Sealed healthlab.Sealed
}

// Wants reports whether the endpoint gets the event: it is enabled, of the same
// team, its filter has the type, and the event is not about the endpoint itself,
// which is so when the event's key is the endpoint's id.
func (e *Endpoint) Wants(ev healthlab.Event) bool {
	return !e.Disabled && e.Matches(ev)
}

// Matches is Wants, whether or not the endpoint is enabled.
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

// LogValue shows the endpoint's id and where it is, without path, query, secrets or
// headers.
func (e Endpoint) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", e.ID.String()),
		slog.String("team", e.Team.String()),
		slog.String("at", origin(e.URL)),
		slog.Bool("disabled", e.Disabled),
	)
}

// origin returns scheme and host of a URL, which is all of it that may be logged.
func origin(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "unreadable"
	}
	return u.Scheme + "://" + u.Host
}

func secretPlace(e *Endpoint, id fmt.Stringer) []byte {
	// A box copied to another row does not open.
	return []byte("secret " + e.Team.String() + " " + e.ID.String() + " " + id.String())
}

func headerPlace(e *Endpoint, name string) []byte {
	return []byte("header " + e.Team.String() + " " + e.ID.String() + " " + name)
}
