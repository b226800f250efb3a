package webhooktest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/webhooktest"
)

// owners knows whose endpoint is whose, which a store that forgets to ask would use.
type owners struct {
	mu sync.Mutex
	of map[webhook.EndpointID]healthlab.TeamID
}

// whose breaks a store that is told which team each endpoint is of.
func whose(how func(s *webhooktest.Harness, o *owners)) func(*webhooktest.Harness) {
	return func(s *webhooktest.Harness) {
		o := &owners{of: map[webhook.EndpointID]healthlab.TeamID{}}
		onInsert(func(e *webhook.Endpoint, _ *int) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.of[e.ID] = e.Team
		})(s)
		how(s, o)
	}
}

func (o *owners) team(id webhook.EndpointID, asked healthlab.TeamID) healthlab.TeamID {
	o.mu.Lock()
	defer o.mu.Unlock()
	if team, ok := o.of[id]; ok {
		return team
	}
	return asked
}

// swallows takes one kind of fault of a replay for success.
func swallows(kind healthlab.ErrorKind) func(*webhooktest.Harness) {
	return afterReplay(func(done *webhook.Replayed, err *error) {
		if errors.Is(*err, kind) {
			*done, *err = webhook.Replayed{Queued: 1}, nil
		}
	})
}

func afterReplay(edit func(*webhook.Replayed, *error)) func(*webhooktest.Harness) {
	return func(s *webhooktest.Harness) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, replay: func(ctx context.Context, r webhook.Replay) (webhook.Replayed, error) {
			done, err := sound.Replay(ctx, r)
			edit(&done, &err)
			return done, err
		}}
	}
}

func replaysNothing(s *webhooktest.Harness) {
	s.Deliveries = &brokenDeliveries{Deliveries: s.Deliveries, replay: func(context.Context, webhook.Replay) (webhook.Replayed, error) {
		return webhook.Replayed{Queued: 1}, nil
	}}
}

// forgetsLate loses the outcomes of leases that have ended, although no other process has them.
func forgetsLate(s *webhooktest.Harness) {
	sound, advance := s.Deliveries, s.Advance
	var mu sync.Mutex
	ahead, ends := time.Duration(0), map[webhook.Lease]time.Duration{}
	s.Advance = func(d time.Duration) {
		mu.Lock()
		ahead += d
		mu.Unlock()
		advance(d)
	}
	s.Deliveries = &brokenDeliveries{
		Deliveries: sound,
		claim: func(ctx context.Context, c webhook.Claim) (webhook.Claimed, error) {
			got, err := sound.Claim(ctx, c)
			mu.Lock()
			defer mu.Unlock()
			for _, d := range got.Deliveries {
				ends[d.Lease] = ahead + c.Lease
			}
			return got, err
		},
		recordOutcomes: func(ctx context.Context, o []webhook.Outcome) (webhook.RecordedOutcomes, error) {
			mu.Lock()
			defer mu.Unlock()
			o = slices.Clone(o)
			for i := range o {
				if ahead >= ends[o[i].Delivery.Lease] {
					o[i].Delivery.Token = -1
				}
			}
			return sound.RecordOutcomes(ctx, o)
		},
	}
}

// oneAtATime hands out nothing of an endpoint while something of another one is claimed.
func oneAtATime(s *webhooktest.Harness) {
	sound := s.Deliveries
	var mu sync.Mutex
	busy := map[webhook.EndpointID]int{}
	s.Deliveries = &brokenDeliveries{
		Deliveries: sound,
		claim: func(ctx context.Context, c webhook.Claim) (webhook.Claimed, error) {
			mu.Lock()
			defer mu.Unlock()
			c.Quotas = slices.DeleteFunc(slices.Clone(c.Quotas), func(q webhook.Quota) bool { return len(busy) > 0 && busy[q.Endpoint] == 0 })
			got, err := sound.Claim(ctx, c)
			for _, d := range got.Deliveries {
				busy[d.Endpoint]++
			}
			return got, err
		},
	}
}

// refusesForAnyNewer takes a newer event of the key for a reason, whatever its endpoint.
func refusesForAnyNewer(s *webhooktest.Harness) {
	outbox, sound := s.Outbox, s.Deliveries
	var newest uuid.UUID
	s.Outbox = brokenOutbox(func(ctx context.Context, ev []healthlab.Event) error {
		for _, e := range ev {
			newest = e.ID
		}
		return outbox.Append(ctx, ev)
	})
	s.Deliveries = &brokenDeliveries{Deliveries: sound, replay: func(ctx context.Context, r webhook.Replay) (webhook.Replayed, error) {
		if r.Event != uuid.Nil && r.Event != newest {
			return webhook.Replayed{}, fmt.Errorf("%w: a newer one", healthlab.Precondition)
		}
		return sound.Replay(ctx, r)
	}}
}

// tellsEveryTeam writes each event for every team that has an endpoint.
func tellsEveryTeam(s *webhooktest.Harness, o *owners) {
	sound := s.Outbox
	s.Outbox = brokenOutbox(func(ctx context.Context, ev []healthlab.Event) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		all := slices.Clone(ev)
		for _, team := range o.of {
			for _, e := range ev {
				if e.Team != team {
					e.ID, e.Team = uuid.Must(uuid.NewV7()), team
					all = append(all, e)
				}
			}
		}
		return sound.Append(ctx, all)
	})
}

// pagesByNumber finds a page by how many came before it.
func pagesByNumber(s *webhooktest.Harness) {
	sound := s.Endpoints
	s.Endpoints = &brokenEndpoints{Endpoints: sound, list: func(ctx context.Context, q webhook.EndpointQuery) (webhook.EndpointPage, error) {
		from, _ := strconv.Atoi(q.Cursor)
		all, err := sound.List(ctx, webhook.EndpointQuery{Team: q.Team, Size: 1000})
		if err != nil {
			return all, err
		}
		page := webhook.EndpointPage{Endpoints: all.Endpoints[from:min(from+q.Size, len(all.Endpoints))]}
		if from+q.Size < len(all.Endpoints) {
			page.Next = strconv.Itoa(from + q.Size)
		}
		return page, nil
	}}
}

var brokenEndpointStores = []conformance.Broken{
	// Route, lanes, superseding
	{Name: "tells every team", Suite: deliveries(whose(tellsEveryTeam)), Subtest: "Route/OtherTeam"},
	{Name: "tells one endpoint of a team", Suite: deliveries(func(s *webhooktest.Harness) {
		seen := map[healthlab.TeamID]bool{}
		onInsert(func(e *webhook.Endpoint, _ *int) {
			if seen[e.Team] {
				e.FilterTypes = []string{"nothing.at.all"}
			}
			seen[e.Team] = true
		})(s)
	}), Subtest: "Route/FanOut"},
	{Name: "keeps the last of a batch", Suite: deliveries(allModes(healthlab.Latest)), Subtest: "Route/OneLaneInOneBatch"},
	{Name: "two routers lose some", Suite: deliveries(allModes(healthlab.Latest)), Subtest: "Route/TwoRouters"},
	{Name: "endpoints wait for each other", Suite: deliveries(oneAtATime), Subtest: "Lanes/EndpointsDoNotWaitForEachOther"},
	{Name: "a user's keys are lanes", Suite: deliveries(onInsert(func(e *webhook.Endpoint, _ *int) { e.OrderScope = webhook.OrderKey })), Subtest: "Lanes/UserScopeSupersedesPerKey"},
	{Name: "tries a superseded one again", Suite: deliveries(allModes(healthlab.Ordered)), Subtest: "Superseding/SendingHeadThatFailsIsNotSentAgain"},
	{Name: "keeps every version that waits", Suite: deliveries(allModes(healthlab.Ordered)), Subtest: "Superseding/WaitingOneIsReplaced"},
	{Name: "waits for the dead", Suite: deliveries(onClaim(func(c *webhook.Claim) { c.Lease *= 1000 }, sameDeliveries)), Subtest: "Superseding/ExpiredLeaseIsNotSending"},
	{Name: "one key for all", Suite: deliveries(onAppend(func(ev []healthlab.Event) []healthlab.Event {
		for i := range ev {
			ev[i].Key = "k"
		}
		return ev
	})), Subtest: "Superseding/OtherKeysStay"},
	// Claim, record, log
	{Name: "an endpoint without work is a fault", Suite: deliveries(func(s *webhooktest.Harness) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, claim: func(ctx context.Context, c webhook.Claim) (webhook.Claimed, error) {
			got, err := sound.Claim(ctx, c)
			if err == nil && len(got.Deliveries) == 0 {
				err = healthlab.NotFound
			}
			return got, err
		}}
	}), Subtest: "Claim/UnknownEndpoint"},
	{Name: "forgets what comes late", Suite: deliveries(forgetsLate), Subtest: "RecordOutcomes/LateButStillMine"},
	{Name: "shows its own memory", Suite: deliveries(func(s *webhooktest.Harness) {
		sound, shown := s.Log, map[uuid.UUID]webhook.Message{}
		s.Log = &brokenLog{Log: sound, message: func(ctx context.Context, team healthlab.TeamID, event uuid.UUID) (webhook.Message, error) {
			m, err := sound.Message(ctx, team, event)
			if was, ok := shown[event]; ok && err == nil {
				return was, nil
			}
			shown[event] = m
			return m, err
		}}
	}), Subtest: "Log/Message"},
	{Name: "forgets the head of the answer", Suite: deliveries(func(s *webhooktest.Harness) {
		sound := s.Log
		s.Log = &brokenLog{Log: sound, attempts: func(ctx context.Context, q webhook.AttemptQuery) (webhook.AttemptPage, error) {
			page, err := sound.Attempts(ctx, q)
			for i := range page.Attempts {
				page.Attempts[i].Head = nil
			}
			return page, err
		}}
	}), Subtest: "Log/Attempts"},
	// Replay, recover
	{Name: "takes a retry for the event", Suite: deliveries(onClaim(sameClaim, eachDelivery(func(d *webhook.Delivery) { d.Trigger = webhook.TriggerEvent }))), Subtest: "Replay/Latest"},
	{Name: "any newer event is a reason", Suite: deliveries(refusesForAnyNewer), Subtest: "Replay/LatestOfWhatTheEndpointTakes"},
	{Name: "a retry goes on counting", Suite: deliveries(onClaim(sameClaim, eachDelivery(func(d *webhook.Delivery) {
		if d.Trigger == webhook.TriggerRetry {
			d.Attempts++
		}
	}))), Subtest: "Replay/LatestThatWaitsIsDueAtOnce"},
	{Name: "replays nothing", Suite: deliveries(replaysNothing), Subtest: "Replay/Independent"},
	{Name: "replays what is being sent", Suite: deliveries(swallows(healthlab.Precondition)), Subtest: "Replay/RefusedWhileSending"},
	{Name: "replays to who is off", Suite: deliveries(swallows(healthlab.Precondition)), Subtest: "Replay/RefusedWhileDisabled"},
	{Name: "replays what nobody wanted", Suite: deliveries(swallows(healthlab.Precondition)), Subtest: "Replay/RefusedForAnotherType"},
	{Name: "replays what is not there", Suite: deliveries(swallows(healthlab.NotFound)), Subtest: "Replay/NotFound"},
	{Name: "recovers again and again", Suite: deliveries(afterReplay(func(done *webhook.Replayed, _ *error) { done.Queued = max(done.Queued, 2) })), Subtest: "Recover/FailedAndCancelled"},
	{Name: "recovers nothing", Suite: deliveries(replaysNothing), Subtest: "Recover/WhileItWasDisabled"},
	{Name: "recovers what is on its way", Suite: deliveries(afterReplay(func(done *webhook.Replayed, _ *error) { done.Queued++ })), Subtest: "Recover/NotWhatIsNotRoutedYet"},
	{Name: "recovers past what is being sent", Suite: deliveries(onReplay(func(r *webhook.Replay) {
		r.Modes = map[string]healthlab.Mode{"test.ordered.changed": healthlab.Independent}
	})), Subtest: "Recover/OrderedEndsWithTheNewest"},
	// Endpoints
	{Name: "takes an endpoint twice", Suite: endpoints(func(s *webhooktest.Harness) {
		sound := s.Endpoints
		s.Endpoints = &brokenEndpoints{Endpoints: sound, insert: func(ctx context.Context, e webhook.Endpoint, most int) error {
			if err := sound.Insert(ctx, e, most); !errors.Is(err, healthlab.Conflict) {
				return err
			}
			return nil
		}}
	}), Subtest: "Insert/Duplicate"},
	{Name: "reads another team's endpoint", Suite: endpoints(whose(func(s *webhooktest.Harness, o *owners) {
		sound := s.Endpoints
		s.Endpoints = &brokenEndpoints{Endpoints: sound, get: func(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID) (webhook.Endpoint, error) {
			return sound.Get(ctx, o.team(id, team), id)
		}}
	})), Subtest: "Get/NotFound"},
	{Name: "drops headers", Suite: endpoints(onUpdate(func(_, e *webhook.Endpoint, _ *[]healthlab.Event, _ *error) { e.Headers = nil })), Subtest: "Update/WritesBack"},
	{Name: "changes another team's endpoint", Suite: endpoints(whose(func(s *webhooktest.Harness, o *owners) {
		sound := s.Endpoints
		s.Endpoints = &brokenEndpoints{Endpoints: sound, update: func(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID, c endpointChange) (webhook.Endpoint, error) {
			return sound.Update(ctx, o.team(id, team), id, c)
		}}
	})), Subtest: "Update/NotFound"},
	{Name: "changes without its caller", Suite: endpoints(func(s *webhooktest.Harness) {
		sound := s.Endpoints
		s.Endpoints = &brokenEndpoints{Endpoints: sound, update: func(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID, c endpointChange) (webhook.Endpoint, error) {
			return sound.Update(context.WithoutCancel(ctx), team, id, c)
		}}
	}), Subtest: "Update/CancelledContext"},
	{Name: "deletes nothing", Suite: endpoints(func(s *webhooktest.Harness) {
		s.Endpoints = &brokenEndpoints{Endpoints: s.Endpoints, delete: func(context.Context, healthlab.TeamID, webhook.EndpointID) error { return nil }}
	}), Subtest: "Delete/Cancels"},
	{Name: "deletes another team's endpoint", Suite: endpoints(whose(func(s *webhooktest.Harness, o *owners) {
		sound := s.Endpoints
		s.Endpoints = &brokenEndpoints{Endpoints: sound, delete: func(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID) error {
			return sound.Delete(ctx, o.team(id, team), id)
		}}
	})), Subtest: "Delete/NotFound"},
	{Name: "lists the oldest first", Suite: endpoints(func(s *webhooktest.Harness) {
		sound := s.Endpoints
		s.Endpoints = &brokenEndpoints{Endpoints: sound, list: func(ctx context.Context, q webhook.EndpointQuery) (webhook.EndpointPage, error) {
			page, err := sound.List(ctx, q)
			slices.Reverse(page.Endpoints)
			return page, err
		}}
	}), Subtest: "List/NewestFirst"},
	{Name: "pages by number", Suite: endpoints(pagesByNumber), Subtest: "List/PagesAreStable"},
	{Name: "disables a moment early", Suite: endpoints(func(s *webhooktest.Harness) {
		sound := s.Endpoints
		s.Endpoints = &brokenEndpoints{Endpoints: sound, armed: func(ctx context.Context, until time.Time) ([]webhook.Endpoint, error) {
			return sound.Armed(ctx, until.Add(time.Microsecond))
		}}
	}), Subtest: "Armed"},
}
