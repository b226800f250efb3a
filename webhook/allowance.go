package webhook

import (
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// allowanceOf is the time that an allowance is for.
const allowanceOf = time.Minute

// allowance counts what each team asks for in a minute. It keeps this minute's counts
// and no others. Safe for concurrent use.
type allowance struct {
	most int

	mu     sync.Mutex
	minute time.Time
	used   map[healthlab.TeamID]int
}

func newAllowance(most int) *allowance {
	return &allowance{most: most, used: map[healthlab.TeamID]int{}}
}

// take uses one of the team's allowance, and reports whether there was one left.
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
