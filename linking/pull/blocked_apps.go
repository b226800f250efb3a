package pull

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// blockedApps lists the OAuth applications that have used up their rate limits, with the instants until which this
// process claims no tasks of them. Each process has a list of its own.
type blockedApps struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (p *blockedApps) block(app string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until[app] = until
}

func (p *blockedApps) list(now time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.until, func(_ string, until time.Time) bool { return !until.After(now) })
	return slices.Sorted(maps.Keys(p.until))
}
