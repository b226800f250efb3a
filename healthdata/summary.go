package healthdata

import (
	"cmp"
	"encoding/json"
	"reflect"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Summary is an object of health data with an identity: one of [Activity], [Sleep],
// [SleepCycle], [Body], [Workout], [Profile], [Meal], [MenstrualCycle] and
// [Electrocardiogram], as pointers. The set is closed.
//
// For one id the latest version replaces all earlier ones as a whole. One that is [Head].Partial is merged with the
// stored version first.
type Summary interface {
	// head returns the part that all summaries share.
	head() *Head
	// naturalKey identifies a summary in its source, app, device and resource: the source's own id, or the unique day
	// or instant.
	naturalKey() string
	// index returns the time by which reads filter and sort: an instant in UTC, or midnight UTC of a day.
	index() time.Time
	// day returns the local day that is compared with the ingestion window.
	day() healthlab.Date
	// times returns the instants of the summary. The first one decides the offset. A summary of a day has none.
	times() []moment
	// zone returns the source's statement about its zone: an offset (nil for a resource without an offset), or
	// the name of a zone.
	zone() (offset **int, name *string)
	// complete derives missing fields: days, durations, types.
	complete()
	// check reports the invalid fields of the summary.
	check(p *healthlab.Problems)
}

// moment is an instant of a summary with its JSON name.
type moment struct {
	name string
	at   *healthlab.Time
}

// SessionOffsets are the UTC offsets at the start and at the end of a session. They differ after a flight and
// when the clocks change. If an upload has null, the offset is the one written in the start or end time,
// otherwise that of the session, otherwise that of the zone at that time.
type SessionOffsets struct {
	// StartTimezoneOffset and EndTimezoneOffset are seconds east of UTC at the start and at
	// the end of the session; never null on output.
	StartTimezoneOffset *int `json:"start_timezone_offset" wire:"filled,tolerant"`
	EndTimezoneOffset   *int `json:"end_timezone_offset" wire:"filled,tolerant"`
}

func (o *SessionOffsets) offsets() *SessionOffsets { return o }

// session is a summary with a start and an end.
type session interface {
	session() (start, end *healthlab.Time)
	offsets() *SessionOffsets
}

// Head is the part that all summaries share.
type Head struct {
	// ID identifies the summary. It is derived from team, user, provider, source type, resource, app and the source's
	// own key (UUID version 5), so a resend has the same id. For on-device stores and the team's own data it is derived
	// from the device too, if the upload names one.
	ID uuid.UUID `json:"id" wire:"out"`
	// UserID is the user to whom the summary belongs.
	UserID healthlab.UserID `json:"user_id" wire:"out"`
	// Source is the source that recorded the summary.
	Source Source `json:"source" wire:"out"`
	// CreatedAt is when the summary was first stored, by the service's clock.
	CreatedAt healthlab.Time `json:"created_at" wire:"out"`
	// UpdatedAt is when the content of the summary last changed, by the service's clock.
	UpdatedAt healthlab.Time `json:"updated_at" wire:"out"`
	// ExternalID is the source's own id of the record. Uploads have it, and it is part of the identity; it is
	// not published.
	ExternalID string `json:"external_id,omitempty" wire:"in"`
	// Raw is the source's own payload. It is stored only if [TeamSettings].ProviderRawData is set.
	// [Service.RawSummaries] returns it.
	Raw json.RawMessage `json:"-"`
	// Partial states that the source knows more than this summary has, such as a file with a part of the day or of the
	// columns. The service merges a Partial Sleep or Activity with the stored version, and then replaces that: fields
	// that are null keep their stored values. Totals of an Activity are running totals: the greater value counts, and
	// the version with greater totals gives the values that do not add up. The least and the greatest heart rate of
	// both versions count, and the mean is null if it differs.
	Partial bool `json:"-"`

	assumed  assumption
	replaces []byte // the stored version with which the summary was merged, as in [Record].Replaces
}

// assumption records which parts of a summary's local time come from the fallback zone.
type assumption struct {
	offset bool
	day    bool // the calendar date follows from the offset
}

func (h *Head) head() *Head { return h }

// HeadOf returns the part that all summaries share. It is not a copy.
func HeadOf(s Summary) *Head { return s.head() }

func (h *Head) key(fallback string) string { return cmp.Or(h.ExternalID, fallback) }

// recordKey returns the natural key of a summary, with the app and the device that recorded it: those of one source do
// not overwrite each other's records. A cloud merges its devices itself, so for its records the device is left out.
func (s *Source) recordKey(p *Provider, natural string) string {
	if s.AppID != nil {
		natural += "\x00" + *s.AppID
	}
	if s.DeviceID != nil && p.collectsDevices() {
		natural += "\x00\x00" + s.DeviceID.String() // no app has NUL in its id
	}
	return natural
}

func instantKey(t healthlab.Time) string { return t.String() }

func midnight(d healthlab.Date) healthlab.Time { return healthlab.Time{Time: d.At(time.UTC)} }

// localDay returns the day on which an instant falls under an offset.
func localDay(t healthlab.Time, offset *int) healthlab.Date {
	seconds := 0
	if offset != nil {
		seconds = *offset
	}
	return healthlab.DateOf(t.UTC().Add(time.Duration(seconds) * time.Second))
}

// summaryNamespace is the name space of the UUIDs of summaries.
var summaryNamespace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("healthlab:summary"))

// SummaryID returns the id of a summary: UUID version 5 (RFC 9562) of team, user, provider, source type, resource and
// natural key with the app and the device.
func SummaryID(team healthlab.TeamID, user healthlab.UserID, provider string, t SourceType, resource, naturalKey string) uuid.UUID {
	b := make([]byte, 0, 32+len(provider)+len(t)+len(resource)+len(naturalKey)+4)
	b = append(b, team.UUID[:]...)
	b = append(b, user.UUID[:]...)
	for _, part := range [...]string{provider, string(t), resource, naturalKey} {
		b = append(append(b, part...), 0)
	}
	return uuid.NewSHA1(summaryNamespace, b)
}

func sameType(a, b Summary) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }
