package pull

import (
	"sync"

	"github.com/healthlab-dev/healthlab"
)

// lanes bounds how many of a process's workers one application at a provider, one team, and
// all background work may hold at a time. So a provider that hangs, or a team with much
// history, leaves workers for the others, and refreshes find a free one.
type lanes struct {
	mu         sync.Mutex
	workers    int
	background int
	apps       map[string]int
	teams      map[healthlab.TeamID]int
}

func newLanes(workers int) lanes {
	return lanes{workers: workers, apps: map[string]int{}, teams: map[healthlab.TeamID]int{}}
}

// perApp is how many requests of one application may be under way: half of the workers.
func (l *lanes) perApp() int { return max(1, l.workers/2) }

// perTeam is how many requests of one team, and of all background work, may be under way:
// three quarters of the workers.
func (l *lanes) perTeam() int { return max(1, l.workers*3/4) }

// take lets a task start. If it may not, full names what has no room.
func (l *lanes) take(t *Task) (full laneFull) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch app := t.App(); {
	case l.apps[app] >= l.perApp():
		return appFull
	case t.Turn >= 0 && (l.teams[t.Team] >= l.perTeam() || l.background >= l.perTeam()):
		return teamFull
	default:
		l.apps[app]++
		l.teams[t.Team]++
		if t.Turn >= 0 {
			l.background++
		}
		return laneFree
	}
}

// release gives back what a task took, and reports whether something was full.
func (l *lanes) release(t *Task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	app := t.App()
	full := l.apps[app] >= l.perApp() || l.teams[t.Team] >= l.perTeam() || l.background >= l.perTeam()
	if l.apps[app]--; l.apps[app] <= 0 {
		delete(l.apps, app)
	}
	if l.teams[t.Team]--; l.teams[t.Team] <= 0 {
		delete(l.teams, t.Team)
	}
	if t.Turn >= 0 {
		l.background--
	}
	return full
}

// full returns the applications that have no room.
func (l *lanes) full() (apps []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for app, n := range l.apps {
		if n >= l.perApp() {
			apps = append(apps, app)
		}
	}
	return apps
}

// laneFull says what kept a task from starting.
type laneFull uint8

const (
	laneFree laneFull = iota
	appFull
	teamFull
)
