package webhooktest_test

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
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/webhooktest"
)

// soundWebhooks is the store that the mutants break.
func soundWebhooks() webhooktest.Harness {
	var ahead atomic.Int64
	s := memory.New(&memory.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	return webhooktest.Harness{
		Outbox: s.Outbox(), Deliveries: s.Deliveries(), Endpoints: s.Endpoints(), Log: s.WebhookLog(),
		Advance: func(d time.Duration) { ahead.Add(int64(d)) },
	}
}

// broken returns a suite over stores that were broken in one way.
func broken(suite func(*testing.T, func(*testing.T) webhooktest.Harness), how func(*webhooktest.Harness)) func(*testing.T) {
	return func(t *testing.T) {
		suite(t, func(*testing.T) webhooktest.Harness {
			s := soundWebhooks()
			how(&s)
			return s
		})
	}
}

func deliveries(how func(*webhooktest.Harness)) func(*testing.T) {
	return broken(webhooktest.RunDeliveries, how)
}

func endpoints(how func(*webhooktest.Harness)) func(*testing.T) {
	return broken(webhooktest.RunEndpoints, how)
}

func dispatcher(how func(*webhooktest.Harness)) func(*testing.T) {
	return broken(webhooktest.RunDispatcher, how)
}

// brokenOutbox is an outbox whose Append is replaced.
type brokenOutbox func(ctx context.Context, ev []healthlab.Event) error

func (b brokenOutbox) Append(ctx context.Context, ev []healthlab.Event) error { return b(ctx, ev) }

type endpointChange = func(*webhook.Endpoint) ([]healthlab.Event, error)

// Ways to break a store, by what a call says or what it returns.

func onAppend(edit func([]healthlab.Event) []healthlab.Event) func(*webhooktest.Harness) {
	return func(s *webhooktest.Harness) {
		sound := s.Outbox
		s.Outbox = brokenOutbox(func(ctx context.Context, ev []healthlab.Event) error {
			return sound.Append(ctx, edit(slices.Clone(ev)))
		})
	}
}

func onRoute(edit func(modes map[string]healthlab.Mode, most *int)) func(*webhooktest.Harness) {
	return func(s *webhooktest.Harness) {
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

func onClaim(edit func(*webhook.Claim), then func([]webhook.Delivery) []webhook.Delivery) func(*webhooktest.Harness) {
	return func(s *webhooktest.Harness) {
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

func onRecord(edit func(*webhook.Outcome)) func(*webhooktest.Harness) {
	return func(s *webhooktest.Harness) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, recordOutcomes: func(ctx context.Context, o []webhook.Outcome) (webhook.RecordedOutcomes, error) {
			o = slices.Clone(o)
			for i := range o {
				edit(&o[i])
			}
			return sound.RecordOutcomes(ctx, o)
		}}
	}
}

func onReplay(edit func(*webhook.Replay)) func(*webhooktest.Harness) {
	return func(s *webhooktest.Harness) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, replay: func(ctx context.Context, r webhook.Replay) (webhook.Replayed, error) {
			edit(&r)
			return sound.Replay(ctx, r)
		}}
	}
}

func onInsert(edit func(*webhook.Endpoint, *int)) func(*webhooktest.Harness) {
	return func(s *webhooktest.Harness) {
		sound := s.Endpoints
		s.Endpoints = &brokenEndpoints{Endpoints: sound, insert: func(ctx context.Context, e webhook.Endpoint, most int) error {
			edit(&e, &most)
			return sound.Insert(ctx, e, most)
		}}
	}
}

func onUpdate(edit func(sound, changed *webhook.Endpoint, events *[]healthlab.Event, err *error)) func(*webhooktest.Harness) {
	return func(s *webhooktest.Harness) {
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
func trustsAnyToken(s *webhooktest.Harness) {
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
		recordOutcomes: func(ctx context.Context, o []webhook.Outcome) (webhook.RecordedOutcomes, error) {
			mu.Lock()
			defer mu.Unlock()
			o = slices.Clone(o)
			for i := range o {
				o[i].Delivery.Token = tokens[o[i].Delivery.Delivery]
			}
			return sound.RecordOutcomes(ctx, o)
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

func allModes(mode healthlab.Mode) func(*webhooktest.Harness) {
	return onRoute(func(m map[string]healthlab.Mode, _ *int) {
		for name := range m {
			m[name] = mode
		}
		m["test.unknown.changed"] = mode
	})
}

var brokenDeliveryStores = []conformance.Broken{
	// Append
	{Name: "one count for nothing", Suite: deliveries(onAppend(func(ev []healthlab.Event) []healthlab.Event {
		for i := range ev {
			ev[i].Key = ""
		}
		return ev
	})), Subtest: "Append/DrawsSeqPerKey"},
	{Name: "re-encodes the body", Suite: deliveries(onClaim(sameClaim, eachDelivery(func(d *webhook.Delivery) {
		var v any
		_ = json.Unmarshal(d.Body, &v)
		d.Body, _ = json.Marshal(v)
	}))), Subtest: "Append/BodyIsMadeOnce"},
	{Name: "appends one by one", Suite: deliveries(func(s *webhooktest.Harness) {
		sound := s.Outbox
		s.Outbox = brokenOutbox(func(ctx context.Context, ev []healthlab.Event) error {
			for _, e := range ev {
				if err := sound.Append(ctx, []healthlab.Event{e}); err != nil {
					return err
				}
			}
			return nil
		})
	}), Subtest: "Append/AllOrNone"},
	{Name: "takes an id twice", Suite: deliveries(onAppend(func(ev []healthlab.Event) []healthlab.Event {
		for i := range ev {
			ev[i].ID = uuid.New()
		}
		return ev
	})), Subtest: "Append/IDTaken"},
	{Name: "ignores the context", Suite: deliveries(func(s *webhooktest.Harness) {
		sound := s.Outbox
		s.Outbox = brokenOutbox(func(ctx context.Context, ev []healthlab.Event) error {
			return sound.Append(context.WithoutCancel(ctx), ev)
		})
	}), Subtest: "Append/CancelledContext"},
	{Name: "routes in no order", Suite: deliveries(allModes(healthlab.Independent)), Subtest: "Append/SeqIsInOrderUnderWriters"},
	// Route
	{Name: "ignores the filter", Suite: deliveries(onInsert(func(e *webhook.Endpoint, _ *int) { e.FilterTypes = nil })), Subtest: "Route/Filter"},
	{Name: "sends to disabled endpoints", Suite: deliveries(onInsert(func(e *webhook.Endpoint, _ *int) { e.Disabled = false })), Subtest: "Route/DisabledEndpoint"},
	{Name: "tells an endpoint about itself", Suite: deliveries(onAppend(func(ev []healthlab.Event) []healthlab.Event {
		for i := range ev {
			ev[i].Key += " "
		}
		return ev
	})), Subtest: "Route/NotAboutItself"},
	{Name: "routes more than asked", Suite: deliveries(onRoute(func(_ map[string]healthlab.Mode, most *int) { *most *= 10 })), Subtest: "Route/AtMostSoMany"},
	{Name: "does not say where it routed", Suite: deliveries(func(s *webhooktest.Harness) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, route: func(ctx context.Context, m map[string]healthlab.Mode, n int) (webhook.Routed, error) {
			routed, err := sound.Route(ctx, m, n)
			return webhook.Routed{Events: routed.Events}, err
		}}
	}), Subtest: "Route/SaysWhere"},
	{Name: "lets unknown types overtake", Suite: deliveries(onRoute(func(m map[string]healthlab.Mode, _ *int) {
		m["test.unknown.changed"] = healthlab.Independent
	})), Subtest: "Route/UnknownTypeIsOrdered"},
	// Lanes
	{Name: "many heads", Suite: deliveries(allModes(healthlab.Independent)), Subtest: "Lanes/OneHead"},
	{Name: "a failure lets the next one pass", Suite: deliveries(allModes(healthlab.Independent)), Subtest: "Lanes/FailureHoldsTheLane"},
	{Name: "holds back what is independent", Suite: deliveries(allModes(healthlab.Ordered)), Subtest: "Lanes/IndependentWaitsForNothing"},
	{Name: "cancelled, and nobody moves up", Suite: deliveries(onRecord(func(o *webhook.Outcome) {
		if o.State == webhook.Cancelled {
			o.State, o.Delay = webhook.Retrying, time.Hour
		}
	})), Subtest: "Lanes/CancelPromotes"},
	{Name: "keys fold case", Suite: deliveries(onAppend(func(ev []healthlab.Event) []healthlab.Event {
		for i := range ev {
			ev[i].Key = string(bytes.ToLower([]byte(ev[i].Key)))
		}
		return ev
	})), Subtest: "Lanes/KeysDoNotWaitForEachOther"},
	{Name: "knows no user scope", Suite: deliveries(onInsert(func(e *webhook.Endpoint, _ *int) { e.OrderScope = webhook.OrderKey })), Subtest: "Lanes/UserScope"},
	// Superseding
	{Name: "supersedes nothing", Suite: deliveries(allModes(healthlab.Ordered)), Subtest: "Superseding/UnsentHead"},
	{Name: "supersedes what counts", Suite: deliveries(allModes(healthlab.Latest)), Subtest: "Superseding/OrderedNever"},
	{Name: "sends beside what is being sent", Suite: deliveries(allModes(healthlab.Independent)), Subtest: "Superseding/SendingHeadIsWaitedFor"},
	{Name: "hides that a newer one waits", Suite: deliveries(onClaim(sameClaim, eachDelivery(func(d *webhook.Delivery) { d.Superseded = false }))),
		Subtest: "Superseding/NeverIntoAHeadWithSomethingWaiting"},
	{Name: "a head keeps its attempts", Suite: deliveries(onClaim(sameClaim, eachDelivery(func(d *webhook.Delivery) { d.Attempts++ }))), Subtest: "Superseding/FailedHeadStartsOver"},
	{Name: "applies the result of a replaced head", Suite: deliveries(trustsAnyToken), Subtest: "RecordOutcomes/WrongToken"},
	// Claim
	{Name: "claims more than asked", Suite: deliveries(onClaim(func(c *webhook.Claim) {
		for i := range c.Quotas {
			c.Quotas[i].Max *= 10
		}
	}, sameDeliveries)), Subtest: "Claim/AtMostSoMany"},
	{Name: "does not notice a changed endpoint", Suite: deliveries(onClaim(sameClaim, eachDelivery(func(d *webhook.Delivery) { d.Revision = 1 }))),
		Subtest: "Claim/RevisionOfTheEndpoint"},
	{Name: "claims the newest first", Suite: deliveries(func(s *webhooktest.Harness) {
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
	}), Subtest: "Claim/LongestDueFirst"},
	{Name: "forgets the trigger", Suite: deliveries(onClaim(sameClaim, eachDelivery(func(d *webhook.Delivery) { d.Trigger = "" }))), Subtest: "Claim/SaysEverything"},
	{Name: "leases never end", Suite: deliveries(onClaim(func(c *webhook.Claim) { c.Lease *= 1000 }, sameDeliveries)), Subtest: "Claim/LeaseEnds"},
	{Name: "hands out twice", Suite: deliveries(onClaim(func(c *webhook.Claim) { c.Lease = 0 }, sameDeliveries)), Subtest: "Lanes/OneHead"},
	{Name: "uses a token twice", Suite: deliveries(onClaim(sameClaim, eachDelivery(func(d *webhook.Delivery) { d.Token = 1 }))), Subtest: "Claim/NeverTwice"},
	{Name: "knows no pause", Suite: deliveries(onUpdate(func(_, e *webhook.Endpoint, _ *[]healthlab.Event, _ *error) {
		e.Health.PausedUntil = time.Time{}
	})), Subtest: "Claim/PausedEndpoint"},
	{Name: "knows no probation", Suite: deliveries(onUpdate(func(_, e *webhook.Endpoint, _ *[]healthlab.Event, _ *error) {
		e.Health.PauseStep = 0
	})), Subtest: "Claim/ProbationSendsOne"},
	{Name: "always something due", Suite: deliveries(func(s *webhooktest.Harness) {
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
	}), Subtest: "Claim/Due"},
	// RecordOutcomes
	{Name: "trusts any token", Suite: deliveries(trustsAnyToken), Subtest: "RecordOutcomes/Batch"},
	{Name: "due at once", Suite: deliveries(onRecord(func(o *webhook.Outcome) { o.Delay = 0 })), Subtest: "RecordOutcomes/DueAfterTheDelay"},
	{Name: "never quiet", Suite: deliveries(onRecord(func(o *webhook.Outcome) { o.Quiet = 0 })), Subtest: "RecordOutcomes/QuietHoldsTheNextOne"},
	{Name: "never quiet for what replaces", Suite: deliveries(onRecord(func(o *webhook.Outcome) { o.Quiet = 0 })), Subtest: "RecordOutcomes/QuietHoldsTheOneThatReplaces"},
	{Name: "drops events", Suite: deliveries(onRecord(func(o *webhook.Outcome) { o.Events = nil })), Subtest: "RecordOutcomes/EventsWithTheOutcome"},
	{Name: "counts what was not sent", Suite: deliveries(onRecord(func(o *webhook.Outcome) { o.Sent = true })), Subtest: "RecordOutcomes/UnsentCountsNoAttempt"},
	{Name: "takes any state", Suite: deliveries(onRecord(func(o *webhook.Outcome) {
		if !o.State.Final() {
			o.State = webhook.Retrying
		}
	})), Subtest: "RecordOutcomes/NotAnOutcome"},
	{Name: "logs twice", Suite: deliveries(func(s *webhooktest.Harness) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, recordOutcomes: func(ctx context.Context, o []webhook.Outcome) (webhook.RecordedOutcomes, error) {
			o = slices.Clone(o)
			for i := range o {
				if i == 0 && len(o) == 1 {
					again := o[0]
					again.Delivery.Token += 1000
					o = append(o, again)
				}
			}
			return sound.RecordOutcomes(ctx, o)
		}}
	}), Subtest: "RecordOutcomes/Twice"},
	// Release
	{Name: "a release counts as a start", Suite: deliveries(func(s *webhooktest.Harness) {
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
	}), Subtest: "Release/CountsNothing"},
	{Name: "releases without delay", Suite: deliveries(func(s *webhooktest.Harness) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, release: func(ctx context.Context, r []webhook.Released) error {
			r = slices.Clone(r)
			for i := range r {
				r[i].Delay = 0
			}
			return sound.Release(ctx, r)
		}}
	}), Subtest: "Release/AfterADelay"},
	{Name: "releases what is another's", Suite: deliveries(trustsAnyToken), Subtest: "Release/StaleLease"},
	// Replay
	{Name: "an old version after a newer one", Suite: deliveries(onReplay(func(r *webhook.Replay) {
		r.Modes = map[string]healthlab.Mode{"test.latest.changed": healthlab.Independent}
	})), Subtest: "Replay/LatestRefusedIfNewerExists"},
	{Name: "does not rewind", Suite: deliveries(onReplay(func(r *webhook.Replay) {
		r.Modes = map[string]healthlab.Mode{"test.ordered.changed": healthlab.Independent}
	})), Subtest: "Replay/OrderedRewinds"},
	{Name: "recovers without end", Suite: deliveries(onReplay(func(r *webhook.Replay) { r.Max = 0 })), Subtest: "Recover/Pages"},
	{Name: "recovers since ever", Suite: deliveries(onReplay(func(r *webhook.Replay) { r.Since = time.Time{} })), Subtest: "Recover/SinceATime"},
	{Name: "recovers until now", Suite: deliveries(onReplay(func(r *webhook.Replay) { r.Until = time.Time{} })), Subtest: "Recover/UntilATime"},
	{Name: "recovers every version", Suite: deliveries(onReplay(func(r *webhook.Replay) {
		r.Modes = map[string]healthlab.Mode{"test.latest.changed": healthlab.Independent}
	})), Subtest: "Recover/LatestOnlyTheNewest"},
	{Name: "recovers what was lost alone", Suite: deliveries(onReplay(func(r *webhook.Replay) {
		r.Modes = map[string]healthlab.Mode{"test.ordered.changed": healthlab.Independent}
	})), Subtest: "Recover/OrderedFromTheFirstLost"},
	// Endpoints
	{Name: "any number of endpoints", Suite: endpoints(onInsert(func(_ *webhook.Endpoint, most *int) { *most = 1000 })), Subtest: "Insert/Full"},
	{Name: "drops the scope", Suite: endpoints(onInsert(func(e *webhook.Endpoint, _ *int) { e.OrderScope = "" })), Subtest: "Insert/RoundTrip"},
	{Name: "nil is empty", Suite: endpoints(onInsert(func(e *webhook.Endpoint, _ *int) {
		if e.FilterTypes == nil {
			e.FilterTypes = []string{}
		}
	})), Subtest: "Insert/NilFilterStaysNil"},
	{Name: "writes after an error", Suite: endpoints(onUpdate(func(_, _ *webhook.Endpoint, events *[]healthlab.Event, err *error) {
		*err, *events = nil, nil
	})), Subtest: "Update/ErrorWritesNothing"},
	{Name: "drops the events of a endpointChange", Suite: endpoints(onUpdate(func(_, _ *webhook.Endpoint, events *[]healthlab.Event, _ *error) {
		*events = nil
	})), Subtest: "Update/EventsTogetherOrNotAtAll"},
	{Name: "loses updates", Suite: endpoints(func(s *webhooktest.Harness) {
		sound := s.Endpoints
		s.Endpoints = &brokenEndpoints{Endpoints: sound, update: func(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID, c endpointChange) (webhook.Endpoint, error) {
			e, err := sound.Get(ctx, team, id)
			if err != nil {
				return e, err
			}
			conformance.Pause()
			if _, err := c(&e); err != nil {
				return e, err
			}
			return sound.Update(ctx, team, id, func(to *webhook.Endpoint) ([]healthlab.Event, error) {
				*to = e
				return nil, nil
			})
		}}
	}), Subtest: "Update/NoLostUpdates"},
	{Name: "disables and sends on", Suite: endpoints(onUpdate(func(_, e *webhook.Endpoint, _ *[]healthlab.Event, _ *error) { e.Disabled = false })), Subtest: "Update/DisablingCancels"},
	{Name: "resumes nothing", Suite: endpoints(onUpdate(func(was, e *webhook.Endpoint, _ *[]healthlab.Event, _ *error) {
		if was.Health.PauseStep > 0 {
			e.Health.PauseStep = was.Health.PauseStep
		}
	})), Subtest: "Update/ResumingMakesAllDue"},
	// The dispatcher: what it relies on.
	{Name: "sends other bytes again", Suite: dispatcher(onClaim(sameClaim, eachDelivery(func(d *webhook.Delivery) {
		if d.Starts > 1 {
			d.Body = append([]byte(" "), d.Body...)
		}
	}))), Subtest: "DiesBeforeItRecords"},
	{Name: "leases nothing", Suite: dispatcher(onClaim(func(c *webhook.Claim) { c.Lease = 0 }, sameDeliveries)), Subtest: "TwoShareTheWork"},
	{Name: "tells the worker's time", Suite: dispatcher(func(s *webhooktest.Harness) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, claim: func(ctx context.Context, c webhook.Claim) (webhook.Claimed, error) {
			got, err := sound.Claim(ctx, c)
			if len(c.Quotas) > 0 {
				got.At = got.At.Add(time.Hour)
			}
			return got, err
		}}
	}), Subtest: "ItsClockIsWrong"},
	{Name: "gives up after one failure", Suite: dispatcher(onRecord(func(o *webhook.Outcome) {
		if o.State == webhook.Retrying {
			o.State, o.Reason = webhook.Failed, webhook.ReasonExhausted
		}
	})), Subtest: "TheServersClockJumps"},
	{Name: "keeps the old URL", Suite: dispatcher(onUpdate(func(was, e *webhook.Endpoint, _ *[]healthlab.Event, _ *error) { e.URL = was.URL })),
		Subtest: "EndpointChangesBetweenAttempts"},
	{Name: "forgets how long it has failed", Suite: dispatcher(onUpdate(func(_, e *webhook.Endpoint, _ *[]healthlab.Event, _ *error) {
		e.Health.ArmedAt = time.Time{}
	})), Subtest: "DisablesAcrossRestarts"},
	// The model.
	{Name: "model, supersedes nothing", Suite: broken(webhooktest.RunDeliveriesModel, allModes(healthlab.Ordered)), Subtest: ""},
	{Name: "model, never quiet", Suite: broken(webhooktest.RunDeliveriesModel, onRecord(func(o *webhook.Outcome) { o.Quiet = 0 })), Subtest: ""},
	{Name: "model, trusts any token", Suite: broken(webhooktest.RunDeliveriesModel, trustsAnyToken), Subtest: ""},
	// Order under fire: what the dispatcher relies on.
	{Name: "fire, no lanes", Suite: broken(webhooktest.RunOrderUnderFailures, allModes(healthlab.Independent)), Subtest: "LanePerKey"},
	{Name: "fire, no lanes of users", Suite: broken(webhooktest.RunOrderUnderFailures, allModes(healthlab.Independent)), Subtest: "LanePerUser"},
	{Name: "fire, loses what was cut off", Suite: broken(webhooktest.RunOrderUnderFailures, onRecord(func(o *webhook.Outcome) {
		if o.State == webhook.Retrying {
			o.State, o.Reason = webhook.Failed, webhook.ReasonExhausted
		}
	})), Subtest: "NothingLost"},
}
