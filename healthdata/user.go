package healthdata

import (
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// User is a person whose data a team keeps.
type User struct {
	// ID is ours; UUID version 4, never used again.
	ID healthlab.UserID `json:"user_id"`
	// Team is whose user it is.
	Team healthlab.TeamID `json:"team_id"`
	// ClientUserID is the team's own name for the person, unique among the team's
	// live users, byte for byte. It must not be personal data.
	ClientUserID string `json:"client_user_id"`
	// CreatedOn is when the user was created.
	CreatedOn healthlab.Time `json:"created_on"`
	// ConnectedSources are the sources that were connected and not removed, by
	// CreatedOn; those that failed or are paused are among them. Never nil on the wire.
	// A store leaves it alone: the Service derives it from Connections.
	ConnectedSources []ConnectedSource `json:"connected_sources"`
	// FallbackTimeZone is the zone for sources that know of none.
	FallbackTimeZone FallbackTimeZone `json:"fallback_time_zone"`
	// FallbackBirthDate is the birth date for sources that know of none.
	FallbackBirthDate *FallbackBirthDate `json:"fallback_birth_date,omitempty"`
	// IngestionStart and IngestionEnd are the first and last local day whose data is
	// kept; null means unbounded. Changing them touches nothing that is stored.
	IngestionStart *healthlab.Date `json:"ingestion_start"`
	IngestionEnd   *healthlab.Date `json:"ingestion_end"`

	// Connections holds every source that was ever connected, one per provider.
	Connections []Connection `json:"-"`
	// Consents are those that the person gave, oldest first, withdrawn ones among them.
	Consents []Consent `json:"-"`
	// DeletedAt is when the user was deleted; zero for a live one. The data is kept
	// for [Options.GracePeriod] after it, unreadable, and then erased.
	DeletedAt time.Time `json:"-"`
	// Revision grows with every write. A store sets it, from 1.
	Revision int64 `json:"-"`
}

// ConnectedSource is a source that a user has connected. Provider says the same as
// Source, under its newer name.
type ConnectedSource struct {
	CreatedOn healthlab.Time `json:"created_on"`
	Source    ProviderName   `json:"source"`
	Provider  ProviderName   `json:"provider"`
}

// ProviderName is how a provider appears beside data.
type ProviderName struct {
	Logo string `json:"logo"`
	Name string `json:"name"`
	Slug string `json:"slug"`
}

// FallbackTimeZone is the zone that is used where a source gives none.
type FallbackTimeZone struct {
	// ID is an identifier of the IANA tz database.
	ID string `json:"id"`
	// SourceSlug says where the value came from: manual for the API, default when
	// none was given, else a provider.
	SourceSlug string `json:"source_slug"`
	// UpdatedAt changes only when the value does.
	UpdatedAt healthlab.Time `json:"updated_at"`
}

// FallbackBirthDate is the birth date that is used where a source gives none.
type FallbackBirthDate struct {
	Value      healthlab.Date `json:"value"`
	SourceSlug string         `json:"source_slug"`
	UpdatedAt  healthlab.Time `json:"updated_at"`
}

// Slugs of values that no provider gave.
const (
	// SlugManual is the provider of a team's own data, and the source of what was
	// set through the API.
	SlugManual = "manual"
	// SlugDefault is the source of a value that was not set.
	SlugDefault = "default"
)

// DefaultTimeZone is the fallback zone of a user for whom none was given.
const DefaultTimeZone = "UTC"

const (
	// GracePeriod is the default of [Options.GracePeriod].
	GracePeriod = 7 * 24 * time.Hour
	// LateDelivery is for how many days after IngestionEnd data of the days before
	// is still taken.
	LateDelivery = 7
	// SandboxUsers is how many users a team may have in a sandbox by default.
	SandboxUsers = 500
)

// Live reports whether the user has not been deleted.
func (u *User) Live() bool { return u.DeletedAt.IsZero() }

// Location returns the fallback zone; UTC where the tz database of this machine does
// not know it.
func (u *User) Location() *time.Location {
	loc, err := check.LoadZone(u.FallbackTimeZone.ID)
	if err != nil {
		return time.UTC
	}
	return loc
}

// LogValue shows the ids and nothing else.
func (u User) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user", u.ID.String()), slog.String("team", u.Team.String()))
}

// ConnectionStatus says whether a connection works.
type ConnectionStatus string

const (
	// Connected: data flows.
	Connected ConnectionStatus = "connected"
	// ConnectionError: the source refuses us for good; the person must link again.
	ConnectionError ConnectionStatus = "error"
	// Paused: closed by the end of ingestion, or in bulk.
	Paused ConnectionStatus = "paused"
	// Deregistered: removed. The data stays.
	Deregistered ConnectionStatus = "deregistered"
)

// Connection is a user's link to one provider. There is at most one for a user and
// provider.
type Connection struct {
	// Provider is the slug.
	Provider string
	Status   ConnectionStatus
	// CreatedOn is when it was connected, after it was removed the last time.
	CreatedOn time.Time
	// ExternalUserID is the provider's own name for the person; nil where it has
	// none.
	ExternalUserID *string
	// Scopes are the grants that the person gave, in the provider's words; nil where
	// it has none, and after removal.
	Scopes []string
	// Demo says that its data is generated.
	Demo bool
	// Client is the id of the team's own client at the provider by which it was connected;
	// empty if that was the deployment's.
	Client string
	// LinkedAt is when it was connected last, also while it worked already: what was
	// planned for an earlier link is not this one's.
	LinkedAt time.Time
	// Failure is why it failed; nil unless the status is [ConnectionError].
	Failure *ConnectionFailure
	// Due is when the service has to look at the connection next, to plan its pulls or
	// to close it; zero means never. It is internal.
	Due time.Time
}

// LogValue shows neither whose account it is nor what was granted.
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

// ClosesAt is when the user's connections are closed: the late-delivery window after the
// last day of ingestion is over. Zero if there is no last day.
func (u *User) ClosesAt() time.Time {
	if u.IngestionEnd == nil {
		return time.Time{}
	}
	return u.IngestionEnd.AddDays(1 + LateDelivery).At(u.Location())
}

// DemoLife is how long a user whose data is made up lives.
const DemoLife = 7 * 24 * time.Hour

// ExpiresAt is when a user whose data is made up is to be deleted: [DemoLife] after the
// first of its demo connections, removed ones included. Zero for all others.
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

// Closed reports whether that was before an instant, or is then.
func (u *User) Closed(at time.Time) bool {
	end := u.ClosesAt()
	return !end.IsZero() && !at.Before(end)
}

// connect makes or renews a connection.
func (u *User) connect(c Connection) {
	if old := u.Connection(c.Provider); old != nil {
		if old.Status != Deregistered {
			c.CreatedOn = old.CreatedOn // it is the same connection, repaired
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
	// phoneLike matches a number that is written as a phone number: with tel:, a plus, 00
	// and separators, or as (217) 555-0100. Digits alone are an id.
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

// checkClientUserID notes what is wrong with a client user id.
func checkClientUserID(p *healthlab.Problems, s string) {
	const name = "client_user_id"
	plain := s
	if decoded, err := url.PathUnescape(s); err == nil {
		plain = strings.TrimSpace(decoded) // ann%40example.com
	}
	switch {
	case !utf8.ValidString(s):
		p.Add("encoding", "text is UTF-8", name)
	case s == "":
		p.Add("too_short", "at least 1 character", name)
	case utf8.RuneCountInString(s) > maxClientUserID:
		p.Add("too_long", "at most 256 characters", name)
	case strings.TrimSpace(s) != s:
		p.Add("white_space", "no white space at the ends", name)
	case strings.ContainsFunc(s, unicode.IsControl):
		p.Add("control_character", "no control characters", name)
	case emailLike.MatchString(plain):
		p.Add("personal_data", "must not contain an e-mail address; send an id of your own", name)
	case isPhone(plain):
		p.Add("personal_data", "must not be a phone number; send an id of your own", name)
	}
}

// keeps reports whether data of a local day is inside the user's ingestion bounds. No
// day at all is inside.
func (u *User) keeps(day healthlab.Date) bool {
	if day.IsZero() {
		return true
	}
	return (u.IngestionStart == nil || !day.Before(*u.IngestionStart)) &&
		(u.IngestionEnd == nil || !day.After(*u.IngestionEnd))
}
