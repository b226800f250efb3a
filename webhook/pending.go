package webhook

import (
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
)

const (
	claimPoll   = 2 * time.Millisecond
	claimApart  = 20 * time.Millisecond // two claims, while all slots are taken
	recordApart = 10 * time.Millisecond // how long an outcome waits for company, likewise
	holdAtMost  = time.Second           // what is held for longer is given back
)

// turn is a claimed delivery that waits for a slot.
type turn struct {
	endpoint EndpointID
	target   *target
	since    time.Time
	start    chan bool // false to give it back
}

// free returns how many deliveries may be claimed: for the slots that are free, and for
// as many as there are slots, to be held for endpoints that answer well.
func (ts *targets) free() int {
	ahead := 0
	for id := range ts.due {
		ahead += ts.of(id).gate.ahead()
	}
	return ts.opts.Slots + min(ahead, ts.opts.Slots) - ts.busy - len(ts.held)
}

// restTime is how long to wait before it is looked again whether to claim; 0 to do it now.
// Few claims that take much cost less than many that take little. So the more slots are
// taken, the longer a claim waits, unless there is room for half as much as there are slots.
func (ts *targets) restTime(now time.Time) time.Duration {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	room := 0
	for id := range ts.due {
		room += ts.of(id).gate.free(now)
	}
	if min(room, ts.free()) >= ts.opts.Slots/2 {
		return 0
	}
	return min(claimPoll, ts.loaded(claimApart)-now.Sub(ts.claimed))
}

func (ts *targets) underLoad(d time.Duration) time.Duration {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.loaded(d)
}

func (ts *targets) loaded(d time.Duration) time.Duration {
	return d * time.Duration(ts.busy) / time.Duration(ts.opts.Slots)
}

// started gives slots to what was claimed. It returns, for each delivery, what tells it
// to start; nil where it starts at once. An endpoint that gave less than it was asked for
// has no more.
func (ts *targets) started(asked []Quota, claimed []Delivery, now time.Time) []<-chan bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.claimed = now
	turns := make([]<-chan bool, len(claimed))
	counts := map[EndpointID]int{}
	for i, d := range claimed {
		t := ts.of(d.Endpoint)
		t.team, t.used = d.Team, now
		ts.teams[d.Team]++
		counts[d.Endpoint]++
		if ts.busy < ts.opts.Slots && t.gate.hasFreeSlot() {
			ts.busy++
			t.gate.start(now)
			continue
		}
		t.gate.held++
		w := &turn{d.Endpoint, t, now, make(chan bool, 1)}
		ts.held, turns[i] = append(ts.held, w), w.start
	}
	for _, q := range asked {
		if counts[q.Endpoint] < q.Max {
			delete(ts.due, q.Endpoint)
		}
	}
	return turns
}

// advance starts what is held and may start.
func (ts *targets) advance(now time.Time) {
	if len(ts.held) == 0 || ts.busy >= ts.opts.Slots {
		return
	}
	ts.held = slices.DeleteFunc(ts.held, func(w *turn) bool {
		g := w.target.gate
		if ts.busy >= ts.opts.Slots || !g.hasFreeSlot() {
			return false
		}
		ts.busy++
		g.held--
		g.start(now)
		w.start <- true
		return true
	})
}

func (ts *targets) giveBack(id EndpointID) { ts.drop(func(w *turn) bool { return w.endpoint == id }) }

func (ts *targets) drop(these func(*turn) bool) {
	ts.held = slices.DeleteFunc(ts.held, func(w *turn) bool {
		if !these(w) {
			return false
		}
		w.target.gate.held--
		ts.left(w.target.team)
		ts.due[w.endpoint] = struct{}{}
		w.start <- false
		return true
	})
}

func (ts *targets) left(team healthlab.TeamID) {
	if ts.teams[team]--; ts.teams[team] <= 0 {
		delete(ts.teams, team)
	}
}

func (ts *targets) dropOld(before time.Time) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.drop(func(w *turn) bool { return w.since.Before(before) })
}

func (ts *targets) dropAll() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.drop(func(*turn) bool { return true })
}

// released frees the slot of a delivery that was not sent.
func (ts *targets) released(d Delivery) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.of(d.Endpoint).gate.release()
	ts.due[d.Endpoint] = struct{}{}
	ts.freed(d.Team)
}

func (ts *targets) freed(team healthlab.TeamID) {
	ts.busy--
	ts.left(team)
	ts.advance(ts.opts.Now())
}

// ended frees the slot of a delivery that has an outcome, and reports whether its
// endpoint is to be paused. Until that is written, nothing more is started.
func (ts *targets) ended(o Outcome, f fact) (pause bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	now := ts.opts.Now()
	g := ts.of(o.Delivery.Endpoint).gate
	switch {
	case !o.Sent:
		g.release()
	case o.Class == ClassOK:
		g.succeed(f.ended.Sub(f.began), now)
		g.lastOK = f.ended
	default:
		pause = g.fail(o.Delivery.Delivery, o.Class, now)
		g.shut = g.shut || pause
		if g.shut || g.spaced {
			ts.giveBack(o.Delivery.Endpoint)
		}
	}
	ts.freed(o.Delivery.Team)
	return pause
}

// recorded notes that outcomes are in the store: their lanes may have new heads.
func (ts *targets) recorded(done []*pendingOutcome) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, s := range done {
		ts.due[s.outcome.Delivery.Endpoint] = struct{}{}
	}
}
