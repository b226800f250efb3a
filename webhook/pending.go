package webhook

import (
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
)

const (
	claimPoll   = 2 * time.Millisecond
	claimApart  = 20 * time.Millisecond // interval of claims while all slots are used; less with free slots
	recordApart = 10 * time.Millisecond // how long an outcome waits for others while all slots are used
	holdAtMost  = time.Second           // a delivery that waits longer for a slot is released
)

// turn is a claimed delivery that waits for a slot, which is the right to run a request.
type turn struct {
	endpoint EndpointID
	target   *target
	since    time.Time
	start    chan bool // receives true to start the delivery and false to release it
}

// free returns how many deliveries may be claimed: one for each free slot, and at most as many as there are slots to
// wait for a slot at endpoints that answer fast. The caller holds ts.mu.
func (ts *targets) free() int {
	ahead := 0
	for id := range ts.due {
		ahead += ts.of(id).gate.ahead()
	}
	return ts.opts.Slots + min(ahead, ts.opts.Slots) - ts.busy - len(ts.held)
}

// claimDelay returns how long the dispatcher waits, at most claimPoll, before it calls claimDelay again; 0 or less
// means that it claims now. A few large claims cost less than many small ones, so claims are further apart the more
// slots are used, unless half of all slots can be filled.
func (ts *targets) claimDelay(now time.Time) time.Duration {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	room := 0
	for id := range ts.due {
		room += ts.of(id).gate.free(now)
	}
	if min(room, ts.free()) >= ts.opts.Slots/2 {
		return 0
	}
	return min(claimPoll, ts.scaleByLoad(claimApart)-now.Sub(ts.claimed))
}

func (ts *targets) underLoad(d time.Duration) time.Duration {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.scaleByLoad(d)
}

func (ts *targets) scaleByLoad(d time.Duration) time.Duration {
	return d * time.Duration(ts.busy) / time.Duration(ts.opts.Slots)
}

// assignSlots assigns slots to deliveries that were claimed with the quotas asked. For each delivery it returns the
// channel turn.start; nil if the delivery has a slot and starts at once. An endpoint that returned fewer deliveries
// than its quota is no longer marked as due.
func (ts *targets) assignSlots(asked []Quota, claimed []Delivery, now time.Time) []<-chan bool {
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

// advance starts deliveries that waited for a slot, as far as slots are free. The caller holds ts.mu.
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

func (ts *targets) dropWaiting(id EndpointID) {
	ts.drop(func(w *turn) bool { return w.endpoint == id })
}

func (ts *targets) drop(these func(*turn) bool) {
	ts.held = slices.DeleteFunc(ts.held, func(w *turn) bool {
		if !these(w) {
			return false
		}
		w.target.gate.held--
		ts.releaseTeam(w.target.team)
		ts.due[w.endpoint] = struct{}{}
		w.start <- false
		return true
	})
}

func (ts *targets) releaseTeam(team healthlab.TeamID) {
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

// releaseSlot releases the slot of a delivery that was not sent, and marks its endpoint as due.
func (ts *targets) releaseSlot(d Delivery) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.of(d.Endpoint).gate.release()
	ts.due[d.Endpoint] = struct{}{}
	ts.freed(d.Team)
}

func (ts *targets) freed(team healthlab.TeamID) {
	ts.busy--
	ts.releaseTeam(team)
	ts.advance(ts.opts.Now())
}

// endDelivery releases the slot of a delivery that has an outcome, and reports whether its endpoint must be paused. If
// so, nothing more starts at the endpoint until the pause is stored.
func (ts *targets) endDelivery(o Outcome, f fact) (pause bool) {
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
			ts.dropWaiting(o.Delivery.Endpoint)
		}
	}
	ts.freed(o.Delivery.Team)
	return pause
}

// markDue marks the endpoints of recorded outcomes as due, because the next deliveries of the lanes may be.
func (ts *targets) markDue(done []*pendingOutcome) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, s := range done {
		ts.due[s.outcome.Delivery.Endpoint] = struct{}{}
	}
}
