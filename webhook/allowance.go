package webhook

import (
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// allowanceOf is the period for which [ServiceOptions].PerMinute limits the calls of a team.
const allowanceOf = time.Minute

// allowance limits the calls of each team in a minute: see [ServiceOptions].PerMinute. It is safe for concurrent use.
type allowance struct {
	most int

	mu     sync.Mutex
	minute time.Time
	used   map[healthlab.TeamID]int
}

func newAllowance(most int) *allowance {
	return &allowance{most: most, used: map[healthlab.TeamID]int{}}
}

// take counts a call of the team, unless the team has used its calls of the minute. It reports whether it counted the
// call.
func (a *allowance) take(team healthlab.TeamID, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if minute := now.Truncate(allowanceOf); !minute.Equal(a.minute) {
		a.minute = minute
		clear(a.used)
	}
	if a.used[team] >= a.most {
		return false
	}
	a.used[team]++
	return true
}
