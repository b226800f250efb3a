package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/webhook"
)

// soundWebhooks is the store that the mutants break.
func soundWebhooks() storetest.WebhookStore {
	var ahead atomic.Int64
	s := memory.New(&memory.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	return storetest.WebhookStore{
		Outbox: s.Outbox(), Deliveries: s.Deliveries(), Endpoints: s.Endpoints(), Log: s.WebhookLog(),
		Advance: func(d time.Duration) { ahead.Add(int64(d)) },
	}
}

// broken returns a suite over stores that were broken in one way.
func broken(suite func(*testing.T, func(*testing.T) storetest.WebhookStore), how func(*storetest.WebhookStore)) func(*testing.T) {
	return func(t *testing.T) {
		suite(t, func(*testing.T) storetest.WebhookStore {
			s := soundWebhooks()
			how(&s)
			return s
		})
	}
}

func deliveries(how func(*storetest.WebhookStore)) func(*testing.T) {
	return broken(storetest.RunDeliveries, how)
}

func endpoints(how func(*storetest.WebhookStore)) func(*testing.T) {
	return broken(storetest.RunEndpoints, how)
}

func dispatcher(how func(*storetest.WebhookStore)) func(*testing.T) {
	return broken(storetest.RunDispatcher, how)
}

// brokenOutbox, brokenDeliveries, brokenEndpoints and brokenLog pass on what they are
// not told to break.
type brokenOutbox func(ctx context.Context, ev []healthlab.Event) error

func (b brokenOutbox) Append(ctx context.Context, ev []healthlab.Event) error { return b(ctx, ev) }

type brokenDeliveries struct {
	webhook.Deliveries
	route   func(context.Context, map[string]healthlab.Mode, int) (webhook.Routed, error)
	due     func(context.Context) ([]webhook.EndpointID, error)
	claim   func(context.Context, webhook.Claim) (webhook.Claimed, error)
	settle  func(context.Context, []webhook.Outcome) (webhook.Settled, error)
	release func(context.Context, []webhook.Released) error
	replay  func(context.Context, webhook.Replay) (webhook.Replayed, error)
}

func (b *brokenDeliveries) Route(ctx context.Context, m map[string]healthlab.Mode, n int) (webhook.Routed, error) {
	if b.route == nil {
		return b.Deliveries.Route(ctx, m, n)
	}
	return b.route(ctx, m, n)
}

func (b *brokenDeliveries) Due(ctx context.Context) ([]webhook.EndpointID, error) {
	if b.due == nil {
		return b.Deliveries.Due(ctx)
	}
	return b.due(ctx)
}

func (b *brokenDeliveries) Claim(ctx context.Context, c webhook.Claim) (webhook.Claimed, error) {
	if b.claim == nil {
		return b.Deliveries.Claim(ctx, c)
	}
	return b.claim(ctx, c)
}

func (b *brokenDeliveries) Settle(ctx context.Context, o []webhook.Outcome) (webhook.Settled, error) {
	if b.settle == nil {
		return b.Deliveries.Settle(ctx, o)
	}
	return b.settle(ctx, o)
}

func (b *brokenDeliveries) Release(ctx context.Context, r []webhook.Released) error {
	if b.release == nil {
		return b.Deliveries.Release(ctx, r)
	}
	return b.release(ctx, r)
}

func (b *brokenDeliveries) Replay(ctx context.Context, r webhook.Replay) (webhook.Replayed, error) {
	if b.replay == nil {
		return b.Deliveries.Replay(ctx, r)
	}
	return b.replay(ctx, r)
}

type brokenEndpoints struct {
	webhook.Endpoints
	insert func(context.Context, webhook.Endpoint, int) error
	update func(context.Context, healthlab.TeamID, webhook.EndpointID, endpointChange) (webhook.Endpoint, error)
}

type endpointChange = func(*webhook.Endpoint) ([]healthlab.Event, error)

func (b *brokenEndpoints) Insert(ctx context.Context, e webhook.Endpoint, most int) error {
	if b.insert == nil {
		return b.Endpoints.Insert(ctx, e, most)
	}
	return b.insert(ctx, e, most)
}

func (b *brokenEndpoints) Update(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID, c endpointChange) (webhook.Endpoint, error) {
	if b.update == nil {
		return b.Endpoints.Update(ctx, team, id, c)
	}
	return b.update(ctx, team, id, c)
}

// Ways to break a store, by what a call says or what it returns.

func onAppend(edit func([]healthlab.Event) []healthlab.Event) func(*storetest.WebhookStore) {
	return func(s *storetest.WebhookStore) {
		sound := s.Outbox
		s.Outbox = brokenOutbox(func(ctx context.Context, ev []healthlab.Event) error {
			return sound.Append(ctx, edit(slices.Clone(ev)))
		})
	}
}

func onRoute(edit func(modes map[string]healthlab.Mode, most *int)) func(*storetest.WebhookStore) {
	return func(s *storetest.WebhookStore) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, route: func(ctx context.Context, m map[string]healthlab.Mode, n int) (webhook.Routed, error) {
			own := map[string]healthlab.Mode{}
			for name, mode := range m {
				own[name] = mode
			}
			edit(own, &n)
			return sound.Route(ctx, own, n)
		}}
	}
}

func onClaim(edit func(*webhook.Claim), then func([]webhook.Delivery) []webhook.Delivery) func(*storetest.WebhookStore) {
	return func(s *storetest.WebhookStore) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, claim: func(ctx context.Context, c webhook.Claim) (webhook.Claimed, error) {
			c.Quotas = slices.Clone(c.Quotas)
			edit(&c)
			got, err := sound.Claim(ctx, c)
			got.Deliveries = then(got.Deliveries)
			return got, err
		}}
	}
}

func sameClaim(*webhook.Claim)                               {}
func sameDeliveries(d []webhook.Delivery) []webhook.Delivery { return d }
func eachDelivery(edit func(*webhook.Delivery)) func([]webhook.Delivery) []webhook.Delivery {
	return func(ds []webhook.Delivery) []webhook.Delivery {
		for i := range ds {
			edit(&ds[i])
		}
		return ds
	}
}

func onSettle(edit func(*webhook.Outcome)) func(*storetest.WebhookStore) {
	return func(s *storetest.WebhookStore) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, settle: func(ctx context.Context, o []webhook.Outcome) (webhook.Settled, error) {
			o = slices.Clone(o)
			for i := range o {
				edit(&o[i])
			}
			return sound.Settle(ctx, o)
		}}
	}
}

func onReplay(edit func(*webhook.Replay)) func(*storetest.WebhookStore) {
	return func(s *storetest.WebhookStore) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, replay: func(ctx context.Context, r webhook.Replay) (webhook.Replayed, error) {
			edit(&r)
			return sound.Replay(ctx, r)
		}}
	}
}

func onInsert(edit func(*webhook.Endpoint, *int)) func(*storetest.WebhookStore) {
	return func(s *storetest.WebhookStore) {
		sound := s.Endpoints
		s.Endpoints = &brokenEndpoints{Endpoints: sound, insert: func(ctx context.Context, e webhook.Endpoint, most int) error {
			edit(&e, &most)
			return sound.Insert(ctx, e, most)
		}}
	}
}

func onUpdate(edit func(sound, changed *webhook.Endpoint, events *[]healthlab.Event, err *error)) func(*storetest.WebhookStore) {
	return func(s *storetest.WebhookStore) {
		sound := s.Endpoints
		s.Endpoints = &brokenEndpoints{Endpoints: sound, update: func(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID, c endpointChange) (webhook.Endpoint, error) {
			var own error
			e, err := sound.Update(ctx, team, id, func(e *webhook.Endpoint) ([]healthlab.Event, error) {
				was := e.Clone()
				events, err := c(e)
				own = err
				edit(&was, e, &events, &err)
				return events, err
			})
			if err == nil {
				err = own
			}
			return e, err
		}}
	}
}

// trustsAnyToken gives every outcome the token that the delivery has now.
func trustsAnyToken(s *storetest.WebhookStore) {
	sound := s.Deliveries
	var mu sync.Mutex
	tokens := map[webhook.DeliveryID]int64{}
	s.Deliveries = &brokenDeliveries{
		Deliveries: sound,
		claim: func(ctx context.Context, c webhook.Claim) (webhook.Claimed, error) {
			got, err := sound.Claim(ctx, c)
			mu.Lock()
			defer mu.Unlock()
			for _, d := range got.Deliveries {
				tokens[d.Delivery] = d.Token
			}
			return got, err
		},
		settle: func(ctx context.Context, o []webhook.Outcome) (webhook.Settled, error) {
			mu.Lock()
			defer mu.Unlock()
			o = slices.Clone(o)
			for i := range o {
				o[i].Delivery.Token = tokens[o[i].Delivery.Delivery]
			}
			return sound.Settle(ctx, o)
		},
		release: func(ctx context.Context, r []webhook.Released) error {
			mu.Lock()
			defer mu.Unlock()
			r = slices.Clone(r)
			for i := range r {
				r[i].Lease.Token = tokens[r[i].Lease.Delivery]
			}
			return sound.Release(ctx, r)
		},
	}
}

func allModes(mode healthlab.Mode) func(*storetest.WebhookStore) {
	return onRoute(func(m map[string]healthlab.Mode, _ *int) {
		for name := range m {
			m[name] = mode
		}
		m["test.unknown.changed"] = mode
	})
}

var webhookMutants = []mutant{
	// Append
	{"one count for nothing", deliveries(onAppend(func(ev []healthlab.Event) []healthlab.Event {
		for i := range ev {
			ev[i].Key = ""
		}
		return ev
	})), "Append/DrawsSeqPerKey"},
	{"re-encodes the body", deliveries(onClaim(sameClaim, eachDelivery(func(d *webhook.Delivery) {
		var v any
		_ = json.Unmarshal(d.Body, &v)
		d.Body, _ = json.Marshal(v)
	}))), "Append/BodyIsMadeOnce"},
	{"appends one by one", deliveries(func(s *storetest.WebhookStore) {
		sound := s.Outbox
		s.Outbox = brokenOutbox(func(ctx context.Context, ev []healthlab.Event) error {
			for _, e := range ev {
				if err := sound.Append(ctx, []healthlab.Event{e}); err != nil {
					return err
				}
			}
			return nil
		})
	}), "Append/AllOrNone"},
	{"takes an id twice", deliveries(onAppend(func(ev []healthlab.Event) []healthlab.Event {
		for i := range ev {
			ev[i].ID = uuid.New()
		}
		return ev
	})), "Append/IDTaken"},
	{"ignores the context", deliveries(func(s *storetest.WebhookStore) {
		sound := s.Outbox
		s.Outbox = brokenOutbox(func(ctx context.Context, ev []healthlab.Event) error {
			return sound.Append(context.WithoutCancel(ctx), ev)
		})
	}), "Append/CancelledContext"},
	{"routes in no order", deliveries(allModes(healthlab.Independent)), "Append/SeqIsInOrderUnderWriters"},
	// Route
	{"ignores the filter", deliveries(onInsert(func(e *webhook.Endpoint, _ *int) { e.FilterTypes = nil })), "Route/Filter"},
	{"sends to disabled endpoints", deliveries(onInsert(func(e *webhook.Endpoint, _ *int) { e.Disabled = false })), "Route/DisabledEndpoint"},
	{"tells an endpoint about itself", deliveries(onAppend(func(ev []healthlab.Event) []healthlab.Event {
		for i := range ev {
			ev[i].Key += " "
		}
		return ev
	})), "Route/NotAboutItself"},
	{"routes more than asked", deliveries(onRoute(func(_ map[string]healthlab.Mode, most *int) { *most *= 10 })), "Route/AtMostSoMany"},
	{"does not say where it routed", deliveries(func(s *storetest.WebhookStore) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, route: func(ctx context.Context, m map[string]healthlab.Mode, n int) (webhook.Routed, error) {
			routed, err := sound.Route(ctx, m, n)
			return webhook.Routed{Events: routed.Events}, err
		}}
	}), "Route/SaysWhere"},
	{"lets unknown types overtake", deliveries(onRoute(func(m map[string]healthlab.Mode, _ *int) {
		m["test.unknown.changed"] = healthlab.Independent
	})), "Route/UnknownTypeIsOrdered"},
	// Lanes
	{"many heads", deliveries(allModes(healthlab.Independent)), "Lanes/OneHead"},
	{"a failure lets the next one pass", deliveries(allModes(healthlab.Independent)), "Lanes/FailureHoldsTheLane"},
	{"holds back what is independent", deliveries(allModes(healthlab.Ordered)), "Lanes/IndependentWaitsForNothing"},
	{"cancelled, and nobody moves up", deliveries(onSettle(func(o *webhook.Outcome) {
		if o.State == webhook.Cancelled {
			o.State, o.Delay = webhook.Retrying, time.Hour
		}
	})), "Lanes/CancelPromotes"},
	{"keys fold case", deliveries(onAppend(func(ev []healthlab.Event) []healthlab.Event {
		for i := range ev {
			ev[i].Key = string(bytes.ToLower([]byte(ev[i].Key)))
		}
		return ev
	})), "Lanes/KeysDoNotWaitForEachOther"},
	{"knows no user scope", deliveries(onInsert(func(e *webhook.Endpoint, _ *int) { e.OrderScope = webhook.OrderKey })), "Lanes/UserScope"},
	// Superseding
	{"supersedes nothing", deliveries(allModes(healthlab.Ordered)), "Superseding/UnsentHead"},
	{"supersedes what counts", deliveries(allModes(healthlab.Latest)), "Superseding/OrderedNever"},
	{"sends beside what is being sent", deliveries(allModes(healthlab.Independent)), "Superseding/SendingHeadIsWaitedFor"},
	{"hides that a newer one waits", deliveries(onClaim(sameClaim, eachDelivery(func(d *webhook.Delivery) { d.Superseded = false }))),
		"Superseding/NeverIntoAHeadWithSomethingWaiting"},
	{"a head keeps its attempts", deliveries(onClaim(sameClaim, eachDelivery(func(d *webhook.Delivery) { d.Attempts++ }))), "Superseding/FailedHeadStartsOver"},
	{"applies the result of a replaced head", deliveries(trustsAnyToken), "Settle/WrongToken"},
	// Claim
	{"claims more than asked", deliveries(onClaim(func(c *webhook.Claim) {
		for i := range c.Quotas {
			c.Quotas[i].Max *= 10
		}
	}, sameDeliveries)), "Claim/AtMostSoMany"},
	{"claims the newest first", deliveries(func(s *storetest.WebhookStore) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, claim: func(ctx context.Context, c webhook.Claim) (webhook.Claimed, error) {
			want := 0
			for i := range c.Quotas {
				want, c.Quotas[i].Max = want+c.Quotas[i].Max, 1000
			}
			got, err := sound.Claim(ctx, c)
			for len(got.Deliveries) > want {
				d := got.Deliveries[0]
				_ = sound.Release(ctx, []webhook.Released{{Lease: d.Lease}})
				got.Deliveries = got.Deliveries[1:]
			}
			return got, err
		}}
	}), "Claim/LongestDueFirst"},
	{"forgets the trigger", deliveries(onClaim(sameClaim, eachDelivery(func(d *webhook.Delivery) { d.Trigger = "" }))), "Claim/SaysEverything"},
	{"leases never end", deliveries(onClaim(func(c *webhook.Claim) { c.Lease *= 1000 }, sameDeliveries)), "Claim/LeaseEnds"},
	{"hands out twice", deliveries(onClaim(func(c *webhook.Claim) { c.Lease = 0 }, sameDeliveries)), "Lanes/OneHead"},
	{"uses a token twice", deliveries(onClaim(sameClaim, eachDelivery(func(d *webhook.Delivery) { d.Token = 1 }))), "Claim/NeverTwice"},
	{"knows no pause", deliveries(onUpdate(func(_, e *webhook.Endpoint, _ *[]healthlab.Event, _ *error) {
		e.Health.PausedUntil = time.Time{}
	})), "Claim/PausedEndpoint"},
	{"knows no probation", deliveries(onUpdate(func(_, e *webhook.Endpoint, _ *[]healthlab.Event, _ *error) {
		e.Health.PauseStep = 0
	})), "Claim/ProbationSendsOne"},
	{"always something due", deliveries(func(s *storetest.WebhookStore) {
		sound := s.Deliveries
		var mu sync.Mutex
		known := map[webhook.EndpointID]bool{}
		s.Deliveries = &brokenDeliveries{Deliveries: sound, due: func(ctx context.Context) ([]webhook.EndpointID, error) {
			ids, err := sound.Due(ctx)
			mu.Lock()
			defer mu.Unlock()
			for _, id := range ids {
				known[id] = true
			}
			for id := range known {
				ids = append(ids, id)
			}
			return ids, err
		}}
	}), "Claim/Due"},
	// Settle
	{"trusts any token", deliveries(trustsAnyToken), "Settle/Batch"},
	{"due at once", deliveries(onSettle(func(o *webhook.Outcome) { o.Delay = 0 })), "Settle/DueAfterTheDelay"},
	{"never quiet", deliveries(onSettle(func(o *webhook.Outcome) { o.Quiet = 0 })), "Settle/QuietHoldsTheNextOne"},
	{"never quiet for what replaces", deliveries(onSettle(func(o *webhook.Outcome) { o.Quiet = 0 })), "Settle/QuietHoldsTheOneThatReplaces"},
	{"drops events", deliveries(onSettle(func(o *webhook.Outcome) { o.Events = nil })), "Settle/EventsWithTheOutcome"},
	{"counts what was not sent", deliveries(onSettle(func(o *webhook.Outcome) { o.Sent = true })), "Settle/UnsentCountsNoAttempt"},
	{"takes any state", deliveries(onSettle(func(o *webhook.Outcome) {
		if !o.State.Final() {
			o.State = webhook.Retrying
		}
	})), "Settle/NotAnOutcome"},
	{"logs twice", deliveries(func(s *storetest.WebhookStore) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, settle: func(ctx context.Context, o []webhook.Outcome) (webhook.Settled, error) {
			o = slices.Clone(o)
			for i := range o {
				if i == 0 && len(o) == 1 {
					again := o[0]
					again.Delivery.Token += 1000
					o = append(o, again)
				}
			}
			return sound.Settle(ctx, o)
		}}
	}), "Settle/Twice"},
	// Release
	{"a release counts as a start", deliveries(func(s *storetest.WebhookStore) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{
			Deliveries: sound,
			claim: func(ctx context.Context, c webhook.Claim) (webhook.Claimed, error) {
				got, err := sound.Claim(ctx, c)
				for i := range got.Deliveries {
					got.Deliveries[i].Starts = int(got.Deliveries[i].Token)
				}
				return got, err
			},
		}
	}), "Release/CountsNothing"},
	{"releases without delay", deliveries(func(s *storetest.WebhookStore) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, release: func(ctx context.Context, r []webhook.Released) error {
			r = slices.Clone(r)
			for i := range r {
				r[i].Delay = 0
			}
			return sound.Release(ctx, r)
		}}
	}), "Release/AfterADelay"},
	{"releases what is another's", deliveries(trustsAnyToken), "Release/StaleLease"},
	// Replay
	{"an old version after a newer one", deliveries(onReplay(func(r *webhook.Replay) {
		r.Modes = map[string]healthlab.Mode{"test.latest.changed": healthlab.Independent}
	})), "Replay/LatestRefusedIfNewerExists"},
	{"does not rewind", deliveries(onReplay(func(r *webhook.Replay) {
		r.Modes = map[string]healthlab.Mode{"test.ordered.changed": healthlab.Independent}
	})), "Replay/OrderedRewinds"},
	{"recovers without end", deliveries(onReplay(func(r *webhook.Replay) { r.Max = 0 })), "Recover/Pages"},
	{"recovers since ever", deliveries(onReplay(func(r *webhook.Replay) { r.Since = time.Time{} })), "Recover/SinceATime"},
	{"recovers every version", deliveries(onReplay(func(r *webhook.Replay) {
		r.Modes = map[string]healthlab.Mode{"test.latest.changed": healthlab.Independent}
	})), "Recover/LatestOnlyTheNewest"},
	{"recovers what was lost alone", deliveries(onReplay(func(r *webhook.Replay) {
		r.Modes = map[string]healthlab.Mode{"test.ordered.changed": healthlab.Independent}
	})), "Recover/OrderedFromTheFirstLost"},
	// Endpoints
	{"any number of endpoints", endpoints(onInsert(func(_ *webhook.Endpoint, most *int) { *most = 1000 })), "Insert/Full"},
	{"drops the scope", endpoints(onInsert(func(e *webhook.Endpoint, _ *int) { e.OrderScope = "" })), "Insert/RoundTrip"},
	{"nil is empty", endpoints(onInsert(func(e *webhook.Endpoint, _ *int) {
		if e.FilterTypes == nil {
			e.FilterTypes = []string{}
		}
	})), "Insert/NilFilterStaysNil"},
	{"writes after an error", endpoints(onUpdate(func(_, _ *webhook.Endpoint, events *[]healthlab.Event, err *error) {
		*err, *events = nil, nil
	})), "Update/ErrorWritesNothing"},
	{"drops the events of a endpointChange", endpoints(onUpdate(func(_, _ *webhook.Endpoint, events *[]healthlab.Event, _ *error) {
		*events = nil
	})), "Update/EventsTogetherOrNotAtAll"},
	{"loses updates", endpoints(func(s *storetest.WebhookStore) {
		sound := s.Endpoints
		s.Endpoints = &brokenEndpoints{Endpoints: sound, update: func(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID, c endpointChange) (webhook.Endpoint, error) {
			e, err := sound.Get(ctx, team, id)
			if err != nil {
				return e, err
			}
			pausing()
			if _, err := c(&e); err != nil {
				return e, err
			}
			return sound.Update(ctx, team, id, func(to *webhook.Endpoint) ([]healthlab.Event, error) {
				*to = e
				return nil, nil
			})
		}}
	}), "Update/NoLostUpdates"},
	{"disables and sends on", endpoints(onUpdate(func(_, e *webhook.Endpoint, _ *[]healthlab.Event, _ *error) { e.Disabled = false })), "Update/DisablingCancels"},
	{"resumes nothing", endpoints(onUpdate(func(was, e *webhook.Endpoint, _ *[]healthlab.Event, _ *error) {
		if was.Health.PauseStep > 0 {
			e.Health.PauseStep = was.Health.PauseStep
		}
	})), "Update/ResumingMakesAllDue"},
	// The dispatcher: what it relies on.
	{"sends other bytes again", dispatcher(onClaim(sameClaim, eachDelivery(func(d *webhook.Delivery) {
		if d.Starts > 1 {
			d.Body = append([]byte(" "), d.Body...)
		}
	}))), "DiesBeforeItSettles"},
	{"leases nothing", dispatcher(onClaim(func(c *webhook.Claim) { c.Lease = 0 }, sameDeliveries)), "TwoShareTheWork"},
	{"tells the worker's time", dispatcher(func(s *storetest.WebhookStore) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, claim: func(ctx context.Context, c webhook.Claim) (webhook.Claimed, error) {
			got, err := sound.Claim(ctx, c)
			if len(c.Quotas) > 0 {
				got.At = got.At.Add(time.Hour)
			}
			return got, err
		}}
	}), "ItsClockIsWrong"},
	{"gives up after one failure", dispatcher(onSettle(func(o *webhook.Outcome) {
		if o.State == webhook.Retrying {
			o.State, o.Reason = webhook.Failed, webhook.ReasonExhausted
		}
	})), "TheServersClockJumps"},
	{"keeps the old URL", dispatcher(onUpdate(func(was, e *webhook.Endpoint, _ *[]healthlab.Event, _ *error) { e.URL = was.URL })),
		"EndpointChangesBetweenAttempts"},
	{"forgets how long it has failed", dispatcher(onUpdate(func(_, e *webhook.Endpoint, _ *[]healthlab.Event, _ *error) {
		e.Health.ArmedAt = time.Time{}
	})), "DisablesAcrossRestarts"},
	// The model.
	{"model, supersedes nothing", broken(storetest.RunDeliveriesModel, allModes(healthlab.Ordered)), ""},
	{"model, never quiet", broken(storetest.RunDeliveriesModel, onSettle(func(o *webhook.Outcome) { o.Quiet = 0 })), ""},
	{"model, trusts any token", broken(storetest.RunDeliveriesModel, trustsAnyToken), ""},
	// Order under fire: what the dispatcher relies on.
	{"fire, no lanes", broken(storetest.RunOrderUnderFire, allModes(healthlab.Independent)), "LanePerKey"},
	{"fire, no lanes of users", broken(storetest.RunOrderUnderFire, allModes(healthlab.Independent)), "LanePerUser"},
	{"fire, loses what was cut off", broken(storetest.RunOrderUnderFire, onSettle(func(o *webhook.Outcome) {
		if o.State == webhook.Retrying {
			o.State, o.Reason = webhook.Failed, webhook.ReasonExhausted
		}
	})), "NothingLost"},
}
