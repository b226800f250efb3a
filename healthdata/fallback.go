package healthdata

import (
	"time"

	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// FloatingZone returns the zone in which clock digits of a provider are read that
// writes no zone beside them but says elsewhere where the person is: that of its
// profile, else that of the most recent activity, else the user's fallback zone. An
// empty or unknown name counts as not said.
func (u *User) FloatingZone(profile, activity string) *time.Location {
	for _, id := range []string{profile, activity} {
		if loc, err := check.LoadZone(id); err == nil {
			return loc
		}
	}
	return u.Location()
}
