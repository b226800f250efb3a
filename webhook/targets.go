package webhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// forgetAfter is how long the state of an endpoint without deliveries is cached.
const forgetAfter = time.Hour

// targets holds what a Dispatcher knows of endpoints: which may have due deliveries, how many requests each may start,
// and their last read settings. It is safe for concurrent use.
type targets struct {
	endpoints Endpoints
	seal      healthlab.Sealer
	opts      Options

	mu      sync.Mutex
	all     map[EndpointID]*target
	due     map[EndpointID]struct{} // endpoints that may have due deliveries
	fresh   map[EndpointID]struct{} // those that got deliveries since scanDue was last called
	busy    int
	held    []*turn
	teams   map[healthlab.TeamID]int // unfinished claimed deliveries by team
	claimed time.Time                // time of the last claim of deliveries
	scanned time.Time
	again   bool // call Due before the next claim
}

type target struct {
	gate *gate
	team healthlab.TeamID // zero until a delivery was claimed
	open *opened          // nil before the first read
	load *loading         // nil unless a read is running
	used time.Time
}

// loading is a running read of an endpoint. Other goroutines that need the endpoint wait for it.
type loading struct {
	done chan struct{}
	open *opened
	err  error
}

// opened is an endpoint as it was read, with decrypted secrets and headers and the settings of its team. Immutable.
type opened struct {
	Endpoint
	team    TeamSettings
	secrets []openSecret
	headers http.Header
	read    time.Time
}

type openSecret struct {
	sealed SealedSecret
	secret Secret
}

func newTargets(e Endpoints, seal healthlab.Sealer, o Options) *targets {
	return &targets{
		endpoints: e, seal: seal, opts: o,
		all:   map[EndpointID]*target{},
		due:   map[EndpointID]struct{}{},
		fresh: map[EndpointID]struct{}{},
		teams: map[healthlab.TeamID]int{},
	}
}

func (ts *targets) rescan() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.again = true
}

// markRouted marks endpoints as due, because deliveries were added to their lanes.
func (ts *targets) markRouted(to []EndpointID) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, id := range to {
		ts.due[id], ts.fresh[id] = struct{}{}, struct{}{}
	}
}

func (ts *targets) scanDue(now time.Time) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	clear(ts.fresh)
	return ts.again || len(ts.due) == 0 || now.Sub(ts.scanned) >= ts.opts.Idle
}

// setDue sets which endpoints are due: ids, which Due returned, and those that got deliveries while Due ran. It forgets
// endpoints that have had no deliveries for an hour.
func (ts *targets) setDue(ids []EndpointID, now time.Time) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.again, ts.scanned = false, now
	clear(ts.due)
	maps.Copy(ts.due, ts.fresh)
	for _, id := range ids {
		ts.due[id] = struct{}{}
	}
	for id, t := range ts.all {
		if _, due := ts.due[id]; !due && t.gate.busy+t.gate.held == 0 && now.Sub(t.used) > forgetAfter {
			delete(ts.all, id)
		}
	}
}

func (ts *targets) idle() bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.busy+len(ts.held) == 0 && len(ts.due) == 0
}

func (ts *targets) of(id EndpointID) *target {
	t, ok := ts.all[id]
	if !ok {
		t = &target{gate: newGate(ts.opts.EndpointSlots), used: ts.opts.Now()}
		ts.all[id] = t
	}
	return t
}

// quotas divides the free slots among the endpoints that may have due deliveries: first equal parts, then the rest. If
// several teams have such endpoints, none gets more than half of all slots; endpoints whose team is not known yet are
// not limited.
func (ts *targets) quotas(now time.Time) []Quota {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	free := ts.free()
	if free <= 0 || len(ts.due) == 0 {
		return nil
	}
	teams := map[healthlab.TeamID]bool{}
	for id := range ts.due {
		teams[ts.of(id).team] = true
	}
	share := max(free/len(ts.due), 1)
	given := map[healthlab.TeamID]int{}
	want := map[EndpointID]int{}
	got := map[EndpointID]int{}
	give := func(id EndpointID, most int) {
		team := ts.of(id).team
		n := min(want[id]-got[id], most, free)
		if len(teams) > 1 && !team.IsZero() {
			n = min(n, max(ts.opts.Slots/2, 1)-ts.teams[team]-given[team])
		}
		if n > 0 {
			got[id], given[team], free = got[id]+n, given[team]+n, free-n
		}
	}
	for id := range ts.due {
		want[id] = ts.of(id).gate.free(now)
		give(id, share)
	}
	for id := range ts.due {
		give(id, free)
	}
	out := make([]Quota, 0, len(got))
	for id, n := range got {
		out = append(out, Quota{Endpoint: id, Max: n})
	}
	return out
}

// setShut prevents further requests to an endpoint if closed is true, and otherwise allows them.
func (ts *targets) setShut(id EndpointID, closed bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.of(id).gate.shut = closed
	if closed {
		ts.dropWaiting(id)
	}
}

func (ts *targets) accepted(id EndpointID) time.Time {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.of(id).gate.lastOK
}

// errSealed reports that secrets or headers could not be decrypted.
var errSealed = errors.New("cannot decrypt the secrets or headers of the endpoint")

// read returns the endpoint of a delivery: the cached one, or from the store if that is older than CacheFor, than the
// endpoint at the claim, or than since. It returns errSealed if the secrets or headers cannot be decrypted. Concurrent
// callers share one read.
func (ts *targets) read(ctx context.Context, d Delivery, since time.Time) (*opened, error) {
	for {
		now := ts.opts.Now()
		ts.mu.Lock()
		t := ts.of(d.Endpoint)
		known, load := t.open, t.load
		if known.isCurrent(d, since) && now.Sub(known.read) < ts.opts.CacheFor {
			ts.mu.Unlock()
			return known, nil
		}
		if load == nil {
			load = &loading{done: make(chan struct{})}
			t.load = load
			ts.mu.Unlock()
			load.open, load.err = ts.fetch(ctx, d, known, now)
			ts.mu.Lock()
			t.load = nil
			ts.mu.Unlock()
			close(load.done)
			return load.open, load.err
		}
		ts.mu.Unlock()
		<-load.done // the read ends with the same context
		if load.err != nil || load.open.isCurrent(d, since) {
			return load.open, load.err
		}
	}
}

func (o *opened) isCurrent(d Delivery, since time.Time) bool {
	return o != nil && o.Revision >= d.Revision && o.read.After(since)
}

// refuses returns why a delivery must not be sent; empty if it may be sent.
func (o *opened) refuses(d Delivery) Reason {
	switch {
	case o.Disabled:
		return ReasonDisabled
	case !o.team.Wants(d.Type, o.URL):
		return ReasonUnwanted
	}
	return ""
}

// fetch reads the endpoint of a delivery from the store and caches it. known is the cached one, whose decrypted secrets
// are used if the endpoint has not changed; nil if there is none.
func (ts *targets) fetch(ctx context.Context, d Delivery, known *opened, now time.Time) (*opened, error) {
	e, err := ts.endpoints.Get(ctx, d.Team, d.Endpoint)
	if err != nil {
		return nil, err
	}
	settings, err := ts.opts.Settings(ctx, d.Team)
	if err != nil {
		return nil, fmt.Errorf("team settings: %w", err)
	}
	fresh := &opened{Endpoint: e, team: settings, read: now}
	if known != nil && known.Revision == e.Revision {
		fresh.secrets, fresh.headers = known.secrets, known.headers
	} else if err := unseal(ctx, ts.seal, fresh); err != nil {
		return nil, fmt.Errorf("%w: %w", errSealed, err)
	}
	ts.cacheEndpoint(fresh)
	return fresh, nil
}

// unseal sets o.secrets and o.headers to the decrypted secrets and headers of the endpoint.
func unseal(ctx context.Context, seal healthlab.Sealer, o *opened) error {
	for _, s := range o.Secrets {
		b, err := seal.Open(ctx, s.Sealed, secretPlace(&o.Endpoint, s.ID))
		if err != nil {
			return err
		}
		o.secrets = append(o.secrets, openSecret{s, Secret{key: string(b)}})
	}
	o.headers = http.Header{}
	for _, h := range o.Headers {
		b, err := seal.Open(ctx, h.Sealed, headerPlace(&o.Endpoint, h.Name))
		if err != nil {
			return err
		}
		o.headers.Set(h.Name, string(b))
	}
	return nil
}

// cacheEndpoint caches a read endpoint and sets its limit of sends per second.
func (ts *targets) cacheEndpoint(o *opened) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.of(o.ID)
	t.open = o
	t.gate.limit(o.RateLimit, ts.opts.Now())
}

// active returns the secrets that sign at this instant, the newest first.
func (o *opened) active(at time.Time) []Secret {
	out := make([]Secret, 0, len(o.secrets))
	for i := range o.secrets {
		if s := &o.secrets[i]; s.sealed.active(at) {
			out = append(out, s.secret)
		}
	}
	return out
}

// observe computes the health of an endpoint after some attempts. It stores the health if the endpoint must be
// disabled, if anything but LastFailedAt has changed, or if the stored LastFailedAt is at least a minute too early.
func (ts *targets) observe(ctx context.Context, id EndpointID, facts []fact) error {
	ts.mu.Lock()
	known := ts.of(id).open
	ts.mu.Unlock()
	if known == nil {
		return nil
	}
	next, disable := known.Health, DisabledReason("")
	for _, f := range facts {
		var d DisabledReason
		if next, d = next.observe(f); d != "" {
			disable = d
		}
	}
	if disable == "" && !next.worthWriting(known.Health) {
		return nil
	}
	return ts.write(ctx, known, facts, ts.opts.NewID())
}

func (ts *targets) write(ctx context.Context, known *opened, facts []fact, event uuid.UUID) error {
	was := known.Health
	e, err := ts.endpoints.Update(ctx, known.Team, known.ID, func(e *Endpoint) ([]healthlab.Event, error) {
		for _, f := range facts {
			var disable DisabledReason
			if e.Health, disable = e.Health.observe(f); disable != "" && !e.Disabled {
				return []healthlab.Event{e.disable(disable, f.ended, event)}, nil
			}
		}
		return nil, nil
	})
	if errors.Is(err, healthlab.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	ts.cacheUpdated(known, e, was)
	return nil
}

// cacheUpdated caches an endpoint that was stored, and calls the hooks. known is the cached endpoint, and was its
// health before.
func (ts *targets) cacheUpdated(known *opened, e Endpoint, was Health) {
	fresh := *known
	fresh.Endpoint = e
	if e.Revision != known.Revision+1 {
		fresh.read = time.Time{} // something else changed it too, so it is read again
		fresh.Revision = known.Revision
	}
	resumed := was.PauseStep > 0 && e.Health.PauseStep == 0
	ts.mu.Lock()
	t := ts.of(e.ID)
	t.open = &fresh
	if resumed {
		t.gate.resume()
	}
	ts.mu.Unlock()
	switch {
	case e.Disabled && !known.Disabled:
		ts.opts.Hooks.Disabled()
		ts.opts.Log.Warn("endpoint disabled", "endpoint", e, "reason", string(e.DisabledReason))
	case resumed:
		ts.opts.Hooks.Resumed()
		ts.opts.Log.Info("endpoint answers again", "endpoint", e)
	case e.Health.PauseStep > was.PauseStep:
		ts.opts.Hooks.Paused()
		ts.opts.Log.Warn("endpoint paused", "endpoint", e, "step", e.Health.PauseStep)
	}
}

func (e *Endpoint) disable(why DisabledReason, at time.Time, id uuid.UUID) healthlab.Event {
	e.Disabled, e.DisabledReason = true, why
	return newEndpointEvent(id, typeDisabled, e.Team, e.ID, at, EndpointDisabled{
		EndpointID: e.ID.String(), URL: e.URL, Reason: why, At: healthlab.At(at),
	})
}

// disableFailing disables endpoints that have failed for too long at the store's time now, even without a recent
// attempt.
func (ts *targets) disableFailing(ctx context.Context, now time.Time) error {
	failing, err := ts.endpoints.Armed(ctx, now.Add(-disableAfter))
	if err != nil {
		return err
	}
	for _, e := range failing {
		event, disabled := ts.opts.NewID(), false
		_, err := ts.endpoints.Update(ctx, e.Team, e.ID, func(e *Endpoint) ([]healthlab.Event, error) {
			if disabled = !e.Disabled && e.Health.shouldDisable(now); !disabled {
				return nil, nil
			}
			return []healthlab.Event{e.disable(DisabledFailing, now, event)}, nil
		})
		switch {
		case errors.Is(err, healthlab.NotFound):
		case err != nil:
			return err
		case disabled: // disabled by this process and not by another one
			ts.opts.Hooks.Disabled()
		}
	}
	return nil
}
