package healthdata

import (
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Offset returns the offset that data of this user gets, in seconds east of UTC: the
// source's own where its affinity says that it knows, else that of the user's fallback
// zone at the instant. Own is what the source said or what was inferred from the data;
// nil if neither.
func (u *User) Offset(a Affinity, own *int, at healthlab.Time) int {
	switch a {
	case "", AffinityNative, AffinityInferred:
		if own != nil {
			return *own
		}
	}
	_, offset := at.In(u.Location()).Zone()
	return offset
}

// FloatingZone returns the zone in which clock digits without any zone are read: that
// of the provider's profile, else that of the most recent activity, else the user's
// fallback zone. An empty or unknown name counts as not said.
func (u *User) FloatingZone(profile, activity string) *time.Location {
	for _, id := range []string{profile, activity} {
		if loc, err := loadZone(id); err == nil {
			return loc
		}
	}
	return u.Location()
}

// Reinterpret returns the instant at which clocks in loc showed the digits that t shows
// in UTC. Digits that were skipped there move forward by the gap; of digits that were
// shown twice it is the earlier instant.
func Reinterpret(t healthlab.Time, loc *time.Location) healthlab.Time {
	const widest = 26 * time.Hour // more than any offset, on either side of UTC
	digits := t.UTC()
	// Walk through the times between two changes of the zone's clocks that may
	// hold the instant.
	for at := digits.Add(-widest); ; {
		_, offset := at.In(loc).Zone()
		_, end := at.In(loc).ZoneBounds()
		found := digits.Add(-time.Duration(offset) * time.Second)
		if end.IsZero() || found.Before(end) {
			return healthlab.At(found)
		}
		_, next := end.Zone()
		if after := digits.Add(-time.Duration(next) * time.Second); after.Before(end) {
			// Skipped: read with the offset before the gap.
			return healthlab.At(found)
		}
		at = end
	}
}
