package healthdata

import (
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// NewUser is a new person of a team. Only ClientUserID is required.
type NewUser struct {
	// ClientUserID is the team's own name for the person: 1 to 256 characters,
	// without white space at the ends or control characters, and no e-mail address
	// or phone number.
	ClientUserID string
	// FallbackTimeZone is an identifier of the IANA tz database; nil means
	// [DefaultTimeZone].
	FallbackTimeZone *string
	// FallbackBirthDate must not be in the future. Nil means unknown.
	FallbackBirthDate *healthlab.Date
	// IngestionStart and IngestionEnd are the first and the last local day of accepted data; nil means
	// unbounded.
	IngestionStart, IngestionEnd *healthlab.Date
}

// UserPatch lists the changes of a user. The zero value changes nothing.
type UserPatch struct {
	// ClientUserID is the new client user id; nil keeps the old one.
	ClientUserID *string
	// FallbackTimeZone is reset to [DefaultTimeZone] if it is cleared.
	FallbackTimeZone  Edit[string]
	FallbackBirthDate Edit[healthlab.Date]
	IngestionStart    Edit[healthlab.Date]
	IngestionEnd      Edit[healthlab.Date]
}

// Edit is a change of a value. The zero value keeps the value; [SetTo] and [Cleared] return other edits.
type Edit[T any] struct {
	touched bool
	value   *T
}

// SetTo replaces a value by v.
func SetTo[T any](v T) Edit[T] { return Edit[T]{touched: true, value: &v} }

// Cleared removes a value.
func Cleared[T any]() Edit[T] { return Edit[T]{touched: true} }

// apply changes a value; nil means that the value is absent.
func (e Edit[T]) apply(to **T) {
	if !e.touched {
		return
	}
	*to = nil
	if e.value != nil {
		v := *e.value
		*to = &v
	}
}

func (p UserPatch) empty() bool {
	return p.ClientUserID == nil && !p.FallbackTimeZone.touched && !p.FallbackBirthDate.touched &&
		!p.IngestionStart.touched && !p.IngestionEnd.touched
}

// newUser returns a user with the team's fields, or an error with every invalid field.
func newUser(team healthlab.TeamID, id healthlab.UserID, n NewUser, at healthlab.Time) (User, error) {
	u := User{
		ID: id, Team: team, CreatedOn: at,
		FallbackTimeZone: FallbackTimeZone{ID: DefaultTimeZone, SourceSlug: SlugDefault, UpdatedAt: at},
	}
	patch := UserPatch{ClientUserID: &n.ClientUserID}
	if n.FallbackTimeZone != nil {
		patch.FallbackTimeZone = SetTo(*n.FallbackTimeZone)
	}
	if n.FallbackBirthDate != nil {
		patch.FallbackBirthDate = SetTo(*n.FallbackBirthDate)
	}
	if n.IngestionStart != nil {
		patch.IngestionStart = SetTo(*n.IngestionStart)
	}
	if n.IngestionEnd != nil {
		patch.IngestionEnd = SetTo(*n.IngestionEnd)
	}
	if err := u.patch(patch, at); err != nil {
		return User{}, err
	}
	return u, nil
}

// patch changes a user, or returns an error with every invalid field. After an error the user must be discarded.
func (u *User) patch(p UserPatch, at healthlab.Time) error {
	var problems healthlab.Problems
	if p.ClientUserID != nil {
		checkClientUserID(&problems, *p.ClientUserID)
		u.ClientUserID = *p.ClientUserID
	}
	u.patchTimeZone(&problems, p.FallbackTimeZone, at)
	u.patchBirthDate(&problems, p.FallbackBirthDate, at)
	checkDate(&problems, p.IngestionStart, "ingestion_start")
	checkDate(&problems, p.IngestionEnd, "ingestion_end")
	p.IngestionStart.apply(&u.IngestionStart)
	p.IngestionEnd.apply(&u.IngestionEnd)
	if p.IngestionEnd.touched {
		for i := range u.Connections { // their closing time has changed
			if c := &u.Connections[i]; c.Status == Connected {
				c.Due = at.Time
			}
		}
	}
	if u.IngestionStart != nil && u.IngestionEnd != nil && u.IngestionStart.After(*u.IngestionEnd) {
		problems.Add("order", "must not be before ingestion_start", "ingestion_end")
	}
	return problems.Err()
}

func (u *User) patchTimeZone(problems *healthlab.Problems, e Edit[string], at healthlab.Time) {
	switch {
	case !e.touched:
	case e.value == nil:
		// No value was given, as at the creation of the user.
		u.FallbackTimeZone = FallbackTimeZone{ID: DefaultTimeZone, SourceSlug: SlugDefault, UpdatedAt: u.CreatedOn}
	default:
		if _, err := check.LoadZone(*e.value); err != nil {
			problems.Add("unknown_zone", "must be a zone of the IANA time zone database, such as Europe/Vienna or UTC", "fallback_time_zone")
			return
		}
		u.setTimeZone(*e.value, SlugManual, at)
	}
}

func (u *User) patchBirthDate(problems *healthlab.Problems, e Edit[healthlab.Date], at healthlab.Time) {
	switch {
	case !e.touched:
	case e.value == nil:
		u.FallbackBirthDate = nil
	case !validDay(*e.value):
		problems.Add("no_such_day", "must be a day of the calendar from 0001-01-01 to 9999-12-31", "fallback_birth_date")
	case e.value.After(healthlab.DateOf(at.In(u.Location()))):
		problems.Add("future", "must not be in the future", "fallback_birth_date")
	case e.value.Year < check.FirstYear:
		problems.Add("too_early", "must be 1900-01-01 or later", "fallback_birth_date")
	default:
		u.setBirthDate(*e.value, SlugManual, at)
	}
}

func checkDate(problems *healthlab.Problems, e Edit[healthlab.Date], name string) {
	if e.value != nil && !validDay(*e.value) {
		problems.Add("no_such_day", "must be a day of the calendar from 0001-01-01 to 9999-12-31", name)
	}
}

func (u *User) setTimeZone(id, slug string, at healthlab.Time) {
	z := &u.FallbackTimeZone
	if z.ID != id {
		z.UpdatedAt = at
	}
	z.ID, z.SourceSlug = id, slug
}

func (u *User) setBirthDate(day healthlab.Date, slug string, at healthlab.Time) {
	if old := u.FallbackBirthDate; old != nil && old.Value == day {
		at = old.UpdatedAt
	}
	u.FallbackBirthDate = &FallbackBirthDate{Value: day, SourceSlug: slug, UpdatedAt: at}
}

// LearnTimeZone sets the fallback zone that a provider sent, and reports whether the user changed. It does not change a
// zone that was set through the API, or a provider's zone to the same one. A zone that is not in the tz database is
// ignored.
func (u *User) LearnTimeZone(id, provider string, at healthlab.Time) bool {
	z := u.FallbackTimeZone
	if z.SourceSlug == SlugManual || z.ID == id && z.SourceSlug != SlugDefault {
		return false
	}
	if _, err := check.LoadZone(id); err != nil {
		return false
	}
	u.setTimeZone(id, provider, at)
	return true
}

// LearnBirthDate sets the birth date that a provider sent, and reports whether the user changed. It does not change a
// date that was set through the API, or a date to the same one. A day that does not exist, or is in the future in the
// user's zone, is ignored.
func (u *User) LearnBirthDate(day healthlab.Date, provider string, at healthlab.Time) bool {
	if old := u.FallbackBirthDate; old != nil && (old.SourceSlug == SlugManual || old.Value == day) {
		return false
	}
	if !validDay(day) || day.After(healthlab.DateOf(at.In(u.Location()))) {
		return false
	}
	u.setBirthDate(day, provider, at)
	return true
}

func validDay(d healthlab.Date) bool {
	return d.Year >= 1 && d.Year <= 9999 && healthlab.DateOf(d.At(time.UTC)) == d
}
