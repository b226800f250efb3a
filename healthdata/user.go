package healthdata

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// User is a person whose data a team stores.
type User struct {
	// ID is the service's id of the user: UUID version 4, never used again.
	ID healthlab.UserID `json:"user_id"`
	// Team is the team of the user.
	Team healthlab.TeamID `json:"team_id"`
	// ClientUserID is the team's own name for the person, unique among the team's
	// live users, byte for byte. It must not be personal data.
	ClientUserID string `json:"client_user_id"`
	// CreatedOn is when the user was created.
	CreatedOn healthlab.Time `json:"created_on"`
	// ConnectedSources are the sources that were connected and not removed, by CreatedOn; including failed and
	// paused ones. It is never null in JSON. The Service derives it from Connections; stores ignore it.
	ConnectedSources []ConnectedSource `json:"connected_sources"`
	// FallbackTimeZone is the time zone of data whose source states none.
	FallbackTimeZone FallbackTimeZone `json:"fallback_time_zone"`
	// FallbackBirthDate is the birth date if no source states one.
	FallbackBirthDate *FallbackBirthDate `json:"fallback_birth_date,omitempty"`
	// IngestionStart and IngestionEnd are the first and the last local day of accepted data; null means
	// unbounded. A change does not affect stored data.
	IngestionStart *healthlab.Date `json:"ingestion_start"`
	IngestionEnd   *healthlab.Date `json:"ingestion_end"`

	// Connections has every source that was ever connected, one per provider.
	Connections []Connection `json:"-"`
	// Consents are the consents of the person, oldest first, including withdrawn ones.
	Consents []Consent `json:"-"`
	// DeletedAt is when the user was deleted; zero for a live user. After [Options.GracePeriod] the data is
	// erased; until then it cannot be read.
	DeletedAt time.Time `json:"-"`
	// Revision increases with every write. The store sets it, from 1.
	Revision int64 `json:"-"`
}

// Types of the healthlab.RuleError about users.
const (
	// RuleInvalidRequest: the request conflicts with the current state.
	RuleInvalidRequest = "INVALID_REQUEST"
	// RuleUserLimit: the team has the greatest number of users of a sandbox.
	RuleUserLimit = "USER_LIMIT_REACHED"
)

// ConnectedSource is a source that a user has connected. Provider is the same as Source, under its newer name.
type ConnectedSource struct {
	CreatedOn healthlab.Time `json:"created_on"`
	Source    ProviderName   `json:"source"`
	Provider  ProviderName   `json:"provider"`
}

// ProviderName is the name, slug and logo of a provider, in responses and events.
type ProviderName struct {
	Logo string `json:"logo"`
	Name string `json:"name"`
	Slug string `json:"slug"`
}

// FallbackTimeZone is the time zone of data whose source states none.
type FallbackTimeZone struct {
	// ID is an identifier of the IANA tz database.
	ID string `json:"id"`
	// SourceSlug is the origin of the value: manual for the API, default if none was given, otherwise the slug
	// of a provider.
	SourceSlug string `json:"source_slug"`
	// UpdatedAt is when the value last changed.
	UpdatedAt healthlab.Time `json:"updated_at"`
}

// FallbackBirthDate is the birth date that is used if a source states none.
type FallbackBirthDate struct {
	healthlab.Private

	Value      healthlab.Date `json:"value"`
	SourceSlug string         `json:"source_slug"`
	UpdatedAt  healthlab.Time `json:"updated_at"`
}

// Slugs for values that no provider sent.
const (
	// SlugManual is the provider of a team's own data, and the source of values that were set through the API.
	SlugManual = "manual"
	// SlugDefault is the source of a value that was not set.
	SlugDefault = "default"
)

// DefaultTimeZone is the fallback zone of a user without another one.
const DefaultTimeZone = "UTC"

const (
	// GracePeriod is the default of [Options.GracePeriod].
	GracePeriod = 7 * 24 * time.Hour
	// LateDelivery is the number of days after IngestionEnd during which late data is fetched from providers.
	LateDelivery = 7
	// SandboxUsers is how many users a team may have in a sandbox by default.
	SandboxUsers = 500
)

// Live reports whether the user has not been deleted.
func (u *User) Live() bool { return u.DeletedAt.IsZero() }

// Location returns the fallback zone, or UTC if the machine's tz database does not have it.
func (u *User) Location() *time.Location {
	loc, err := check.LoadZone(u.FallbackTimeZone.ID)
	if err != nil {
		return time.UTC
	}
	return loc
}

// FloatingZone returns the zone for a provider's clock digits without a zone: the zone of the person's profile,
// otherwise that of the most recent activity, otherwise the user's fallback zone. An empty or unknown name is
// ignored.
func (u *User) FloatingZone(profile, activity string) *time.Location {
	for _, id := range []string{profile, activity} {
		if loc, err := check.LoadZone(id); err == nil {
			return loc
		}
	}
	return u.Location()
}

// LogValue contains only the ids.
func (u User) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user", u.ID.String()), slog.String("team", u.Team.String()))
}

// ConnectionStatus is the state of a connection.
type ConnectionStatus string

const (
	// Connected: data arrives.
	Connected ConnectionStatus = "connected"
	// ConnectionError: the provider refuses access permanently; the person must link again.
	ConnectionError ConnectionStatus = "error"
	// Paused: the connection was paused, until the person links again. A connection to a cloud provider is also shown
	// as paused after [User.ClosesAt], when its pulls have stopped.
	Paused ConnectionStatus = "paused"
	// Deregistered: the connection was removed. The data stays.
	Deregistered ConnectionStatus = "deregistered"
)

// Connection is a user's link to one provider. There is at most one for a user and
// provider.
type Connection struct {
	// Provider is the slug of the provider.
	Provider string
	Status   ConnectionStatus
	// CreatedOn is when the source was connected, or connected again after its last removal.
	CreatedOn time.Time
	// ExternalUserID is the provider's id of the person; nil if the provider has none.
	ExternalUserID *string
	// Scopes are the grants that the person gave, by the provider's names. They are nil for a provider without
	// scopes and after the removal.
	Scopes []string
	// Demo reports whether the data is generated.
	Demo bool
	// Client is the id of the team's own OAuth client that connected the source; empty for the client of the
	// deployment.
	Client string
	// LinkedAt is when the source was last connected, even if it was connected already. Work that was planned
	// for an earlier link does not belong to this link.
	LinkedAt time.Time
	// Failure is the reason of the failure; nil unless the status is [ConnectionError].
	Failure *ConnectionFailure
	// Due is when the service next plans the pulls of the connection or closes it; zero means never. It is not part of
	// the API.
	Due time.Time
}

// Types of permanent failures of a connection. The list is open.
const (
	FailureTokenRefresh    = "token_refresh_failed"
	FailureWebhook         = "webhook_registration_failed"
	FailureUserNotFound    = "user_not_found"
	FailureDeregistered    = "deregistered_per_provider"
	FailureScopes          = "required_scopes_not_granted"
	FailureCredential      = "provider_credential_error"
	FailurePasswordExpired = "provider_password_expired"
	FailureUnknown         = "unknown"
)

// ConnectionFailure is the reason why a connection failed permanently.
type ConnectionFailure struct {
	// Type is one of the Failure constants, such as [FailureTokenRefresh]; empty is [FailureUnknown].
	Type string
	// Message and Details are texts for people. They never contain the provider's words about a person.
	Message, Details string
	// At is when the connection failed. Callers that report a failure leave it zero.
	At time.Time
}

// LogValue contains neither the external account nor the scopes.
func (c Connection) LogValue() slog.Value {
	return slog.GroupValue(slog.String("provider", c.Provider), slog.String("status", string(c.Status)))
}

// Connection returns the connection to a provider, or nil.
func (u *User) Connection(provider string) *Connection {
	for i := range u.Connections {
		if u.Connections[i].Provider == provider {
			return &u.Connections[i]
		}
	}
	return nil
}

// ClosesAt returns when pulls from the user's providers stop: [LateDelivery] days after the last day of
// ingestion. It is zero if there is no last day. Uploads are accepted at any time.
func (u *User) ClosesAt() time.Time {
	if u.IngestionEnd == nil {
		return time.Time{}
	}
	return u.IngestionEnd.AddDays(1 + LateDelivery).At(u.Location())
}

// DemoLife is how long a user with generated data exists.
const DemoLife = 7 * 24 * time.Hour

// ExpiresAt returns when a user with generated data is deleted: [DemoLife] after the first demo connection, even
// if that was removed. It is zero for all other users.
func (u *User) ExpiresAt() time.Time {
	var first time.Time
	for i := range u.Connections {
		c := &u.Connections[i]
		if !c.Demo {
			return time.Time{}
		}
		if first.IsZero() || c.CreatedOn.Before(first) {
			first = c.CreatedOn
		}
	}
	if first.IsZero() {
		return first
	}
	return first.Add(DemoLife)
}

// Closed reports whether [User.ClosesAt] is at or before an instant.
func (u *User) Closed(at time.Time) bool {
	end := u.ClosesAt()
	return !end.IsZero() && !at.Before(end)
}

// connect adds or renews a connection.
func (u *User) connect(c Connection) {
	if old := u.Connection(c.Provider); old != nil {
		if old.Status != Deregistered {
			c.CreatedOn = old.CreatedOn // the same connection works again
		}
		*old = c
		return
	}
	u.Connections = append(u.Connections, c)
}

// Patterns of personal data that a client user id must not contain.
var (
	// emailLike matches an e-mail address, alone or inside other text.
	emailLike = regexp.MustCompile(`(?:^|[\s<,;:(])[^@\s<>]+@[^@\s<>]+\.[^@\s<>]+(?:[\s>,;)]|$)`)
	// phoneLike matches a number in the form of a phone number: with tel:, a plus, 00 and separators, or as
	// (217) 555-0100. Digits alone are accepted as an id.
	phoneLike     = regexp.MustCompile(`(?i)^(?:tel:)?(?:\+|00[\s./()-]*[1-9][0-9]*[\s./()-]|tel:|\([0-9]{2,5}\))[0-9\s./()-]*$`)
	nationalPhone = regexp.MustCompile(`^[0-9]{3}[ .-][0-9]{3}[ .-][0-9]{4}$`)
)

// isPhone reports whether s is written as a phone number of 7 to 15 digits (E.164).
func isPhone(s string) bool {
	if nationalPhone.MatchString(s) {
		return true
	}
	if !phoneLike.MatchString(s) {
		return false
	}
	n := 0
	for _, r := range strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(s), "tel:"), "00") {
		if r >= '0' && r <= '9' {
			n++
		}
	}
	return n >= 7 && n <= 15
}

// maxClientUserID is the longest client user id, in characters.
const maxClientUserID = 256

// checkClientUserID reports an invalid client user id.
func checkClientUserID(p *healthlab.Problems, s string) {
	const name = "client_user_id"
	plain := s
	if decoded, err := url.PathUnescape(s); err == nil {
		plain = strings.TrimSpace(decoded) // decodes ann%40example.com
	}
	switch {
	case !utf8.ValidString(s):
		p.Add("encoding", "must be UTF-8", name)
	case s == "":
		p.Add("too_short", "must have at least 1 character", name)
	case utf8.RuneCountInString(s) > maxClientUserID:
		p.Add("too_long", "must have at most 256 characters", name)
	case strings.TrimSpace(s) != s:
		p.Add("white_space", "must not begin or end with white space", name)
	case strings.ContainsFunc(s, unicode.IsControl):
		p.Add("control_character", "must not contain control characters", name)
	case emailLike.MatchString(plain):
		p.Add("personal_data", "must not contain an e-mail address; send an id of your own", name)
	case isPhone(plain):
		p.Add("personal_data", "must not be a phone number; send an id of your own", name)
	}
}

// inIngestionWindow reports whether data of a local day is inside the user's ingestion window. A zero day is inside.
func (u *User) inIngestionWindow(day healthlab.Date) bool {
	if day.IsZero() {
		return true
	}
	return (u.IngestionStart == nil || !day.Before(*u.IngestionStart)) &&
		(u.IngestionEnd == nil || !day.After(*u.IngestionEnd))
}

// Normal returns a user in its stored form: times in UTC to the microsecond, connections by creation and then by
// provider, empty lists as nil, without ConnectedSources, which are derived. The result is a copy. Two
// connections of one provider and text that [healthlab.CheckText] refuses are [healthlab.Invalid].
func (u User) Normal() (User, error) {
	u = u.Clone()
	u.ConnectedSources = nil
	u.CreatedOn = healthlab.At(u.CreatedOn.Time)
	u.FallbackTimeZone.UpdatedAt = healthlab.At(u.FallbackTimeZone.UpdatedAt.Time)
	u.DeletedAt = healthlab.At(u.DeletedAt).Time
	texts := []string{u.ClientUserID, u.FallbackTimeZone.ID, u.FallbackTimeZone.SourceSlug}
	if b := u.FallbackBirthDate; b != nil {
		b.UpdatedAt = healthlab.At(b.UpdatedAt.Time)
		texts = append(texts, b.SourceSlug)
	}
	if len(u.Consents) == 0 {
		u.Consents = nil
	}
	for _, c := range u.Consents {
		for _, at := range []*healthlab.Time{c.GrantedAt, c.WithdrawnAt} {
			if at != nil {
				*at = healthlab.At(at.Time)
			}
		}
		texts = append(texts, c.Provider, c.Version, string(c.Means))
	}
	if len(u.Connections) == 0 {
		u.Connections = nil
	}
	seen := map[string]bool{}
	for i := range u.Connections {
		c := &u.Connections[i]
		if seen[c.Provider] {
			return User{}, fmt.Errorf("%w: connections: must not have two of one provider", healthlab.Invalid)
		}
		seen[c.Provider] = true
		c.CreatedOn, c.LinkedAt, c.Due = healthlab.At(c.CreatedOn).Time, healthlab.At(c.LinkedAt).Time, healthlab.At(c.Due).Time
		if len(c.Scopes) == 0 {
			c.Scopes = nil
		}
		texts = append(append(texts, c.Client, c.Provider, string(c.Status)), c.Scopes...)
		if c.ExternalUserID != nil {
			texts = append(texts, *c.ExternalUserID)
		}
		if f := c.Failure; f != nil {
			f.At = healthlab.At(f.At).Time
			texts = append(texts, f.Type, f.Message, f.Details)
		}
	}
	slices.SortFunc(u.Connections, func(a, b Connection) int {
		return cmp.Or(a.CreatedOn.Compare(b.CreatedOn), cmp.Compare(a.Provider, b.Provider))
	})
	return u, healthlab.CheckText(texts...)
}

// Clone returns a deep copy of a user.
func (u User) Clone() User {
	u.FallbackBirthDate = clone(u.FallbackBirthDate)
	u.IngestionStart, u.IngestionEnd = clone(u.IngestionStart), clone(u.IngestionEnd)
	u.Consents = slices.Clone(u.Consents)
	for i := range u.Consents {
		c := &u.Consents[i]
		c.GrantedAt, c.WithdrawnAt = clone(c.GrantedAt), clone(c.WithdrawnAt)
	}
	u.ConnectedSources = slices.Clone(u.ConnectedSources)
	u.Connections = slices.Clone(u.Connections)
	for i := range u.Connections {
		c := &u.Connections[i]
		c.ExternalUserID, c.Scopes, c.Failure = clone(c.ExternalUserID), slices.Clone(c.Scopes), clone(c.Failure)
	}
	return u
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func storable(s string) bool {
	return utf8.ValidString(s) && !strings.Contains(s, "\x00")
}

// ConsentMeans is how a person gave a consent.
type ConsentMeans string

// The ways in which a person gives a consent.
const (
	// ConsentByLink: the person connected the provider through a link token.
	ConsentByLink ConsentMeans = "link"
	// ConsentByApp: the person agreed in an app of the team.
	ConsentByApp ConsentMeans = "app"
	// ConsentInWriting: the person signed a form.
	ConsentInWriting ConsentMeans = "written"
	// ConsentSpoken: the person agreed in a conversation that the team has recorded.
	ConsentSpoken ConsentMeans = "verbal"
	// ConsentUnknown: the provider was connected before a consent was recorded.
	ConsentUnknown ConsentMeans = "unknown"
)

// Consent records that a person agreed that data of one provider is collected for a team.
type Consent struct {
	// Provider is the slug of the provider.
	Provider string `json:"provider"`
	// Version names the text that the person agreed to; empty if the team has no such text.
	Version string       `json:"version"`
	Means   ConsentMeans `json:"means"`
	// GrantedAt is null if the consent was withdrawn without ever being recorded.
	GrantedAt *healthlab.Time `json:"granted_at"`
	// WithdrawnAt is null while the consent holds. A consent also ends when the same person
	// gives a newer one for the provider.
	WithdrawnAt *healthlab.Time `json:"withdrawn_at"`
}

// RuleConsentWithdrawn: the person has withdrawn the consent for data of this provider. A new consent is
// required before the provider is connected or its data is accepted.
const RuleConsentWithdrawn = "CONSENT_WITHDRAWN"

// maxConsents is the number of stored consents of one provider; the newest are kept.
const maxConsents = 50

// Consent returns the newest consent for a provider, or nil.
func (u *User) Consent(provider string) *Consent {
	for i := len(u.Consents) - 1; i >= 0; i-- {
		if u.Consents[i].Provider == provider {
			return &u.Consents[i]
		}
	}
	return nil
}

func (u *User) checkConsent(provider string) error {
	if c := u.Consent(provider); c != nil && c.WithdrawnAt != nil {
		return &healthlab.RuleError{Type: RuleConsentWithdrawn, Msg: "the person has withdrawn the consent for " + provider + "; record a new consent first"}
	}
	return nil
}

// grant appends a consent, and removes the oldest one of the provider beyond maxConsents.
func (u *User) grant(c Consent) {
	u.Consents = append(u.Consents, c)
	same := func(x Consent) bool { return x.Provider == c.Provider }
	n := 0
	for _, x := range u.Consents {
		if same(x) {
			n++
		}
	}
	if n > maxConsents {
		oldest := slices.IndexFunc(u.Consents, same)
		u.Consents = slices.Delete(u.Consents, oldest, oldest+1)
	}
}

// recordConsent records the consent c that a person gives by connecting a provider. It returns an error if c is nil and
// the person has withdrawn the last consent.
func (u *User) recordConsent(c *Consent, provider string, at healthlab.Time) error {
	if c == nil {
		return u.checkConsent(provider)
	}
	u.grant(Consent{Provider: provider, Version: c.Version, Means: c.Means, GrantedAt: &at})
	return nil
}
