package healthdata

import (
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// NewUser is what a team says of a person whom it adds. Only ClientUserID is
// required.
type NewUser struct {
	// ClientUserID is the team's own name for the person: 1 to 256 characters,
	// without white space at the ends or control characters, and no e-mail address
	// or phone number.
	ClientUserID string
	// FallbackTimeZone is an identifier of the IANA tz database; nil means
	// [DefaultTimeZone].
	FallbackTimeZone *string
	// FallbackBirthDate is not in the future. Nil means unknown.
	FallbackBirthDate *healthlab.Date
	// IngestionStart and IngestionEnd are the first and last local day whose data is
	// kept; nil means unbounded.
	IngestionStart, IngestionEnd *healthlab.Date
}

// UserPatch says what to change about a user. The zero value changes nothing.
type UserPatch struct {
	// ClientUserID is the new name; nil leaves it.
	ClientUserID *string
	// FallbackTimeZone cleared is [DefaultTimeZone] again.
	FallbackTimeZone  Edit[string]
	FallbackBirthDate Edit[healthlab.Date]
	IngestionStart    Edit[healthlab.Date]
	IngestionEnd      Edit[healthlab.Date]
}

// Edit says what becomes of a value. The zero value leaves it as it is; [SetTo] and
// [Cleared] make the others.
type Edit[T any] struct {
	touched bool
	value   *T
}

// SetTo replaces a value by v.
func SetTo[T any](v T) Edit[T] { return Edit[T]{touched: true, value: &v} }

// Cleared removes a value.
func Cleared[T any]() Edit[T] { return Edit[T]{touched: true} }

// apply carries the edit out on a value that nil means absent.
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

// newUser makes a user of what the team said, or says all that is wrong with it.
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

// patch carries out what a team asked for, or says all that is wrong with it and
// leaves the user in a state not to be kept.
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
		for i := range u.Connections { // they close at another time now
			if c := &u.Connections[i]; c.Status == Connected {
				c.Due = at.Time
			}
		}
	}
	if u.IngestionStart != nil && u.IngestionEnd != nil && u.IngestionStart.After(*u.IngestionEnd) {
		problems.Add("order", "ingestion does not end before it starts", "ingestion_end")
	}
	return problems.Err()
}

func (u *User) patchTimeZone(problems *healthlab.Problems, e Edit[string], at healthlab.Time) {
	switch {
	case !e.touched:
	case e.value == nil:
		// No value was given, as on the day the user was created.
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
		problems.Add("no_such_day", "no such day in the calendar", "fallback_birth_date")
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
		problems.Add("no_such_day", "no such day in the calendar", name)
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

// LearnTimeZone takes over a fallback zone that a provider told us, and reports
// whether the user changed. What was set through the API stays, and so does a
// provider's value that is the same as the new one. A zone that the tz database does
// not know is ignored.
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

// LearnBirthDate takes over a birth date that a provider told us, and reports whether
// the user changed. What was set through the API stays, and so does a provider's value
// that is the same as the new one. A day that does not exist, or is in the future in
// the user's zone, is ignored.
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
