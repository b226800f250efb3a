package pull

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// blockedApps keeps this process from claiming tasks of applications that have no slot for a
// while. Another process finds out for itself.
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
