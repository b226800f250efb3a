package healthdata

import (
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
// For one id the latest version replaces all earlier ones as a whole.
type Summary interface {
	// head returns the part that all summaries share.
	head() *Head
	// naturalKey tells summaries of one source and resource apart: the source's own
	// id, or the day or instant that makes it unique.
	naturalKey() string
	// index is what reads filter and sort by: an instant in UTC, or midnight UTC of
	// a calendar day.
	index() time.Time
	// day is the local day that ingestion bounds are compared with.
	day() healthlab.Date
	// times are its instants; the first is the one whose offset counts. A summary of
	// a day has none.
	times() []moment
	// zone is what the source said of its zone: an offset (nil for a resource without
	// one), or the name of a zone.
	zone() (offset **int, name *string)
	// complete derives what the source left out: days, durations, types.
	complete()
	// check notes what is wrong with it.
	check(p *healthlab.Problems)
}

// moment is an instant of a summary, by its published name.
type moment struct {
	name string
	at   *healthlab.Time
}

// SessionOffsets are the offsets at both ends of a session, which differ on a journey and when
// the clocks change. On the way in, one that is null is what the end's time is written with, else
// the offset of the session, else that of its zone at that time.
type SessionOffsets struct {
	// StartTimezoneOffset and EndTimezoneOffset are seconds east of UTC at the start and at
	// the end of the session; never null on output.
	StartTimezoneOffset *int `json:"start_timezone_offset" wire:"filled"`
	EndTimezoneOffset   *int `json:"end_timezone_offset" wire:"filled"`
}

func (o *SessionOffsets) offsets() *SessionOffsets { return o }

// session is a summary with a start and an end.
type session interface {
	session() (start, end *healthlab.Time)
	offsets() *SessionOffsets
}

// Head is the part that all summaries share.
type Head struct {
	// ID identifies the summary. It is derived from team, user, provider, source
	// type, resource and the source's own key (UUID version 5), so a resend has the
	// same id.
	ID uuid.UUID `json:"id" wire:"out"`
	// UserID is whose data it is.
	UserID healthlab.UserID `json:"user_id" wire:"out"`
	// Source says who recorded it.
	Source Source `json:"source" wire:"out"`
	// CreatedAt is when the summary was first stored. Service time.
	CreatedAt healthlab.Time `json:"created_at" wire:"out"`
	// UpdatedAt is when its content last changed. Service time.
	UpdatedAt healthlab.Time `json:"updated_at" wire:"out"`
	// ExternalID is the source's own id of the record. It is given on the way in,
	// as part of the identity, and not published.
	ExternalID string `json:"external_id,omitempty" wire:"in"`
	// Raw is the source's own payload. It is kept only for teams that ask for it,
	// and served by the raw reads.
	Raw json.RawMessage `json:"-"`

	assumed assumption
}

// assumption says what of a summary's place was assumed.
type assumption struct {
	offset bool
	day    bool // the calendar date follows from the offset
}

func (h *Head) head() *Head { return h }

// HeadOf returns the part of a summary that all summaries share. It is the summary's
// own, not a copy.
func HeadOf(s Summary) *Head { return s.head() }

// key returns the source's own id, or the fallback where it gave none. The app is
// part of it, so that two apps of one store do not overwrite each other's records.
func (h *Head) key(fallback string) string {
	k := fallback
	if h.ExternalID != "" {
		k = h.ExternalID
	}
	if h.Source.AppID != nil {
		k += "\x00" + *h.Source.AppID
	}
	return k
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

// SummaryID returns the id of a summary: UUID version 5 (RFC 9562) of team, user,
// provider, source type, resource and natural key.
func SummaryID(team healthlab.TeamID, user healthlab.UserID, provider string, t SourceType, resource, naturalKey string) uuid.UUID {
	b := make([]byte, 0, 32+len(provider)+len(t)+len(resource)+len(naturalKey)+4)
	b = append(b, team.UUID[:]...)
	b = append(b, user.UUID[:]...)
	for _, part := range [...]string{provider, string(t), resource, naturalKey} {
		b = append(append(b, part...), 0)
	}
	return uuid.NewSHA1(summaryNamespace, b)
}

// dayKey is the key of a resource with one summary a day: the day, whatever the
// source calls it.
func (h *Head) dayKey(d healthlab.Date) string {
	k := d.String()
	if h.Source.AppID != nil {
		k += "\x00" + *h.Source.AppID
	}
	return k
}

func sameType(a, b Summary) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }
