package pull

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// blockedApps has the OAuth applications whose tasks this process does not claim for a while, because they have no free
// request slot. Each process has a list of its own.
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
