package storetest_test

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
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/webhook"
)

// brokenLog passes on what it is not told to break.
type brokenLog struct {
	webhook.Log
	message  func(context.Context, healthlab.TeamID, uuid.UUID) (webhook.Message, error)
	attempts func(context.Context, webhook.AttemptQuery) (webhook.AttemptPage, error)
}

func (b *brokenLog) Message(ctx context.Context, team healthlab.TeamID, event uuid.UUID) (webhook.Message, error) {
	if b.message == nil {
		return b.Log.Message(ctx, team, event)
	}
	return b.message(ctx, team, event)
}

func (b *brokenLog) Attempts(ctx context.Context, q webhook.AttemptQuery) (webhook.AttemptPage, error) {
	if b.attempts == nil {
		return b.Log.Attempts(ctx, q)
	}
	return b.attempts(ctx, q)
}

// brokenShelf breaks the other methods of endpoints.
type brokenShelf struct {
	webhook.Endpoints
	get    func(context.Context, healthlab.TeamID, webhook.EndpointID) (webhook.Endpoint, error)
	list   func(context.Context, webhook.EndpointQuery) (webhook.EndpointPage, error)
	delete func(context.Context, healthlab.TeamID, webhook.EndpointID) error
	armed  func(context.Context, time.Time) ([]webhook.Endpoint, error)
}

func (b *brokenShelf) Get(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID) (webhook.Endpoint, error) {
	if b.get == nil {
		return b.Endpoints.Get(ctx, team, id)
	}
	return b.get(ctx, team, id)
}

func (b *brokenShelf) List(ctx context.Context, q webhook.EndpointQuery) (webhook.EndpointPage, error) {
	if b.list == nil {
		return b.Endpoints.List(ctx, q)
	}
	return b.list(ctx, q)
}

func (b *brokenShelf) Delete(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID) error {
	if b.delete == nil {
		return b.Endpoints.Delete(ctx, team, id)
	}
	return b.delete(ctx, team, id)
}

func (b *brokenShelf) Armed(ctx context.Context, until time.Time) ([]webhook.Endpoint, error) {
	if b.armed == nil {
		return b.Endpoints.Armed(ctx, until)
	}
	return b.armed(ctx, until)
}

// owners knows whose endpoint is whose, which a store that forgets to ask would use.
type owners struct {
	mu sync.Mutex
	of map[webhook.EndpointID]healthlab.TeamID
}

// whose breaks a store that is told which team each endpoint is of.
func whose(how func(s *storetest.WebhookStore, o *owners)) func(*storetest.WebhookStore) {
	return func(s *storetest.WebhookStore) {
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
func swallows(kind healthlab.Kind) func(*storetest.WebhookStore) {
	return afterReplay(func(done *webhook.Replayed, err *error) {
		if errors.Is(*err, kind) {
			*done, *err = webhook.Replayed{Queued: 1}, nil
		}
	})
}

func afterReplay(edit func(*webhook.Replayed, *error)) func(*storetest.WebhookStore) {
	return func(s *storetest.WebhookStore) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, replay: func(ctx context.Context, r webhook.Replay) (webhook.Replayed, error) {
			done, err := sound.Replay(ctx, r)
			edit(&done, &err)
			return done, err
		}}
	}
}

func replaysNothing(s *storetest.WebhookStore) {
	s.Deliveries = &brokenDeliveries{Deliveries: s.Deliveries, replay: func(context.Context, webhook.Replay) (webhook.Replayed, error) {
		return webhook.Replayed{Queued: 1}, nil
	}}
}

// forgetsLate loses the outcomes of leases that have ended, although nobody else has them.
func forgetsLate(s *storetest.WebhookStore) {
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
		settle: func(ctx context.Context, o []webhook.Outcome) (webhook.Settled, error) {
			mu.Lock()
			defer mu.Unlock()
			o = slices.Clone(o)
			for i := range o {
				if ahead >= ends[o[i].Delivery.Lease] {
					o[i].Delivery.Token = -1
				}
			}
			return sound.Settle(ctx, o)
		},
	}
}

// oneAtATime hands out nothing of an endpoint while something of another one is claimed.
func oneAtATime(s *storetest.WebhookStore) {
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

// refusesForAnyNewer takes a newer event of the key for a reason, whoever gets it.
func refusesForAnyNewer(s *storetest.WebhookStore) {
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
func tellsEveryTeam(s *storetest.WebhookStore, o *owners) {
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
func pagesByNumber(s *storetest.WebhookStore) {
	sound := s.Endpoints
	s.Endpoints = &brokenShelf{Endpoints: sound, list: func(ctx context.Context, q webhook.EndpointQuery) (webhook.EndpointPage, error) {
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

var webhookMutantsToo = []mutant{
	// Route, lanes, superseding
	{"tells every team", deliveries(whose(tellsEveryTeam)), "Route/OtherTeam"},
	{"tells one endpoint of a team", deliveries(func(s *storetest.WebhookStore) {
		seen := map[healthlab.TeamID]bool{}
		onInsert(func(e *webhook.Endpoint, _ *int) {
			if seen[e.Team] {
				e.FilterTypes = []string{"nothing.at.all"}
			}
			seen[e.Team] = true
		})(s)
	}), "Route/FanOut"},
	{"keeps the last of a batch", deliveries(allModes(healthlab.Latest)), "Route/OneLaneInOneBatch"},
	{"two routers lose some", deliveries(allModes(healthlab.Latest)), "Route/TwoRouters"},
	{"endpoints wait for each other", deliveries(oneAtATime), "Lanes/EndpointsDoNotWaitForEachOther"},
	{"a user's keys are lanes", deliveries(onInsert(func(e *webhook.Endpoint, _ *int) { e.OrderScope = webhook.OrderKey })), "Lanes/UserScopeSupersedesPerKey"},
	{"tries a superseded one again", deliveries(allModes(healthlab.Ordered)), "Superseding/SendingHeadThatFailsIsNotSentAgain"},
	{"keeps every version that waits", deliveries(allModes(healthlab.Ordered)), "Superseding/WaitingOneIsReplaced"},
	{"waits for the dead", deliveries(onClaim(func(c *webhook.Claim) { c.Lease *= 1000 }, sameDeliveries)), "Superseding/ExpiredLeaseIsNotSending"},
	{"one key for all", deliveries(onAppend(func(ev []healthlab.Event) []healthlab.Event {
		for i := range ev {
			ev[i].Key = "k"
		}
		return ev
	})), "Superseding/OtherKeysStay"},
	// Claim, settle, log
	{"an endpoint without work is a fault", deliveries(func(s *storetest.WebhookStore) {
		sound := s.Deliveries
		s.Deliveries = &brokenDeliveries{Deliveries: sound, claim: func(ctx context.Context, c webhook.Claim) (webhook.Claimed, error) {
			got, err := sound.Claim(ctx, c)
			if err == nil && len(got.Deliveries) == 0 {
				err = healthlab.NotFound
			}
			return got, err
		}}
	}), "Claim/UnknownEndpoint"},
	{"forgets what comes late", deliveries(forgetsLate), "Settle/LateButStillMine"},
	{"shows its own memory", deliveries(func(s *storetest.WebhookStore) {
		sound, shown := s.Log, map[uuid.UUID]webhook.Message{}
		s.Log = &brokenLog{Log: sound, message: func(ctx context.Context, team healthlab.TeamID, event uuid.UUID) (webhook.Message, error) {
			m, err := sound.Message(ctx, team, event)
			if was, ok := shown[event]; ok && err == nil {
				return was, nil
			}
			shown[event] = m
			return m, err
		}}
	}), "Log/Message"},
	{"forgets the head of the answer", deliveries(func(s *storetest.WebhookStore) {
		sound := s.Log
		s.Log = &brokenLog{Log: sound, attempts: func(ctx context.Context, q webhook.AttemptQuery) (webhook.AttemptPage, error) {
			page, err := sound.Attempts(ctx, q)
			for i := range page.Attempts {
				page.Attempts[i].Head = nil
			}
			return page, err
		}}
	}), "Log/Attempts"},
	// Replay, recover
	{"takes a retry for the event", deliveries(onClaim(sameClaim, eachDelivery(func(d *webhook.Delivery) { d.Trigger = webhook.TriggerEvent }))), "Replay/Latest"},
	{"any newer event is a reason", deliveries(refusesForAnyNewer), "Replay/LatestOfWhatTheEndpointTakes"},
	{"a retry goes on counting", deliveries(onClaim(sameClaim, eachDelivery(func(d *webhook.Delivery) {
		if d.Trigger == webhook.TriggerRetry {
			d.Attempts++
		}
	}))), "Replay/LatestThatWaitsIsDueAtOnce"},
	{"replays nothing", deliveries(replaysNothing), "Replay/Independent"},
	{"replays what is being sent", deliveries(swallows(healthlab.Precondition)), "Replay/RefusedWhileSending"},
	{"replays to who is off", deliveries(swallows(healthlab.Precondition)), "Replay/RefusedWhileDisabled"},
	{"replays what nobody wanted", deliveries(swallows(healthlab.Precondition)), "Replay/RefusedForAnotherType"},
	{"replays what is not there", deliveries(swallows(healthlab.NotFound)), "Replay/NotFound"},
	{"recovers again and again", deliveries(afterReplay(func(done *webhook.Replayed, _ *error) { done.Queued = max(done.Queued, 2) })), "Recover/FailedAndCancelled"},
	{"recovers nothing", deliveries(replaysNothing), "Recover/WhileItWasDisabled"},
	{"recovers what is on its way", deliveries(afterReplay(func(done *webhook.Replayed, _ *error) { done.Queued++ })), "Recover/NotWhatIsNotRoutedYet"},
	{"recovers past what is being sent", deliveries(onReplay(func(r *webhook.Replay) {
		r.Modes = map[string]healthlab.Mode{"test.ordered.changed": healthlab.Independent}
	})), "Recover/OrderedEndsWithTheNewest"},
	// Endpoints
	{"takes an endpoint twice", endpoints(func(s *storetest.WebhookStore) {
		sound := s.Endpoints
		s.Endpoints = &brokenEndpoints{Endpoints: sound, insert: func(ctx context.Context, e webhook.Endpoint, most int) error {
			if err := sound.Insert(ctx, e, most); !errors.Is(err, healthlab.Conflict) {
				return err
			}
			return nil
		}}
	}), "Insert/Duplicate"},
	{"reads another team's endpoint", endpoints(whose(func(s *storetest.WebhookStore, o *owners) {
		sound := s.Endpoints
		s.Endpoints = &brokenShelf{Endpoints: sound, get: func(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID) (webhook.Endpoint, error) {
			return sound.Get(ctx, o.team(id, team), id)
		}}
	})), "Get/NotFound"},
	{"drops headers", endpoints(onUpdate(func(_, e *webhook.Endpoint, _ *[]healthlab.Event, _ *error) { e.Headers = nil })), "Update/WritesBack"},
	{"changes another team's endpoint", endpoints(whose(func(s *storetest.WebhookStore, o *owners) {
		sound := s.Endpoints
		s.Endpoints = &brokenEndpoints{Endpoints: sound, update: func(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID, c endpointChange) (webhook.Endpoint, error) {
			return sound.Update(ctx, o.team(id, team), id, c)
		}}
	})), "Update/NotFound"},
	{"changes without its caller", endpoints(func(s *storetest.WebhookStore) {
		sound := s.Endpoints
		s.Endpoints = &brokenEndpoints{Endpoints: sound, update: func(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID, c endpointChange) (webhook.Endpoint, error) {
			return sound.Update(context.WithoutCancel(ctx), team, id, c)
		}}
	}), "Update/CancelledContext"},
	{"deletes nothing", endpoints(func(s *storetest.WebhookStore) {
		s.Endpoints = &brokenShelf{Endpoints: s.Endpoints, delete: func(context.Context, healthlab.TeamID, webhook.EndpointID) error { return nil }}
	}), "Delete/Cancels"},
	{"deletes another team's endpoint", endpoints(whose(func(s *storetest.WebhookStore, o *owners) {
		sound := s.Endpoints
		s.Endpoints = &brokenShelf{Endpoints: sound, delete: func(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID) error {
			return sound.Delete(ctx, o.team(id, team), id)
		}}
	})), "Delete/NotFound"},
	{"lists the oldest first", endpoints(func(s *storetest.WebhookStore) {
		sound := s.Endpoints
		s.Endpoints = &brokenShelf{Endpoints: sound, list: func(ctx context.Context, q webhook.EndpointQuery) (webhook.EndpointPage, error) {
			page, err := sound.List(ctx, q)
			slices.Reverse(page.Endpoints)
			return page, err
		}}
	}), "List/NewestFirst"},
	{"pages by number", endpoints(pagesByNumber), "List/PagesAreStable"},
	{"disables a moment early", endpoints(func(s *storetest.WebhookStore) {
		sound := s.Endpoints
		s.Endpoints = &brokenShelf{Endpoints: sound, armed: func(ctx context.Context, until time.Time) ([]webhook.Endpoint, error) {
			return sound.Armed(ctx, until.Add(time.Microsecond))
		}}
	}), "Armed"},
}
