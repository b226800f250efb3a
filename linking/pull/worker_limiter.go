package pull

import (
	"sync"

	"github.com/healthlab-dev/healthlab"
)

// workerLimiter bounds how many of a process's workers one application at a provider, one team, and all
// background work may use at a time. A provider that does not answer, or a team with much history, thus leaves
// workers for others and for refreshes.
type workerLimiter struct {
	mu         sync.Mutex
	workers    int
	background int
	apps       map[string]int
	teams      map[healthlab.TeamID]int
}

func newWorkerLimiter(workers int) workerLimiter {
	return workerLimiter{workers: workers, apps: map[string]int{}, teams: map[healthlab.TeamID]int{}}
}

func (l *workerLimiter) perApp() int { return max(1, l.workers/2) }

func (l *workerLimiter) perTeam() int { return max(1, l.workers*3/4) }

// acquire gives a worker to a task and returns hasRoom. If a limit is reached, it gives none and returns the limit.
func (l *workerLimiter) acquire(t *Task) (full limiterState) {
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
		return hasRoom
	}
}

// release frees the worker of a task, and reports whether a limit was reached until then, so that waiting tasks may now
// run.
func (l *workerLimiter) release(t *Task) bool {
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

// fullApps returns the applications that have used up their workers.
func (l *workerLimiter) fullApps() (apps []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for app, n := range l.apps {
		if n >= l.perApp() {
			apps = append(apps, app)
		}
	}
	return apps
}

// limiterState is the result of acquire: hasRoom, or the limit that is reached.
type limiterState uint8

const (
	hasRoom limiterState = iota
	appFull
	teamFull
)
