package pulltest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/linking/pull/pulltest"
)

// brokenPulls passes on what it is not told to break.
type brokenPulls struct {
	pull.Store
	clock       *conformance.Clock
	claim       func(context.Context, pull.ClaimQuery) ([]pull.Task, error)
	connections func(ctx context.Context, n int, now, until time.Time) ([]pull.Ref, error)
	plan        func(context.Context, pull.Ref, planChange) error
	update      func(context.Context, pull.Key, taskChange) (pull.Task, error)
	count       func(context.Context, pull.Key, func(*pull.Task)) error
	tasks       func(context.Context, healthlab.TeamID, healthlab.UserID) ([]pull.Task, error)
	budgets     func(context.Context, []pull.BudgetKey, func([]pull.Budget) error) error
	quarantine  func(context.Context, pull.Ref, []pull.RefusedItem) error
	notify      func(context.Context, pull.Notice, time.Time, func(*pull.Task)) (int, error)
	people      func(context.Context, pull.UserStatusQuery) ([]pull.UserStatus, error)
}

type (
	planChange = func(healthdata.Connection, healthdata.User, []pull.Task) (pull.ConnectionPlan, error)
	taskChange = func(*pull.Task) ([]healthlab.Event, error)
)

func (b *brokenPulls) Claim(ctx context.Context, q pull.ClaimQuery) ([]pull.Task, error) {
	return b.claim(ctx, q)
}

func (b *brokenPulls) ClaimConnections(ctx context.Context, n int, now, until time.Time) ([]pull.Ref, error) {
	return b.connections(ctx, n, now, until)
}

func (b *brokenPulls) Plan(ctx context.Context, ref pull.Ref, change planChange) error {
	return b.plan(ctx, ref, change)
}

func (b *brokenPulls) Update(ctx context.Context, key pull.Key, change taskChange) (pull.Task, error) {
	return b.update(ctx, key, change)
}

func (b *brokenPulls) Count(ctx context.Context, key pull.Key, change func(*pull.Task)) error {
	return b.count(ctx, key, change)
}

func (b *brokenPulls) Tasks(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]pull.Task, error) {
	return b.tasks(ctx, team, user)
}

func (b *brokenPulls) UpdateBudgets(ctx context.Context, keys []pull.BudgetKey, change func([]pull.Budget) error) error {
	return b.budgets(ctx, keys, change)
}

func (b *brokenPulls) Quarantine(ctx context.Context, ref pull.Ref, refused []pull.RefusedItem) error {
	return b.quarantine(ctx, ref, refused)
}

func (b *brokenPulls) Notify(ctx context.Context, n pull.Notice, forget time.Time, change func(*pull.Task)) (int, error) {
	return b.notify(ctx, n, forget, change)
}

func (b *brokenPulls) UserStatuses(ctx context.Context, q pull.UserStatusQuery) ([]pull.UserStatus, error) {
	return b.people(ctx, q)
}

// everyRefusal returns what was ever refused.
type everyRefusal struct {
	pull.Store
	all *[]pull.RefusedItem
}

func (e everyRefusal) Quarantined(context.Context, healthlab.TeamID, healthlab.UserID, int) ([]pull.RefusedItem, error) {
	return *e.all, nil
}

// pullMutant breaks what how changes.
func pullMutant(name, dies string, how func(b *brokenPulls)) conformance.Broken {
	suite := pulltest.RunStore
	if dies == "" {
		suite = pulltest.RunStoreModel
	}
	return conformance.Broken{Name: name, Suite: func(t *testing.T) {
		suite(t, func(testing.TB) pulltest.StoreHarness {
			clock := conformance.NewClock(time.Unix(0, 0))
			s := memory.New(&memory.Options{Now: clock.Now})
			p := s.Pulls()
			b := &brokenPulls{
				clock: clock,
				Store: p, claim: p.Claim, connections: p.ClaimConnections, plan: p.Plan, update: p.Update, count: p.Count, tasks: p.Tasks,
				budgets: p.UpdateBudgets, quarantine: p.Quarantine, notify: p.Notify, people: p.UserStatuses,
			}
			how(b)
			return pulltest.StoreHarness{Pulls: b, Users: s.Users(), Messages: s.WebhookLog(), SetClock: clock.Set}
		})
	}, Subtest: dies}
}

// edited makes a mutant whose tasks are written wrong.
func edited(edit func(old pull.Task, t *pull.Task)) func(b *brokenPulls) {
	return func(b *brokenPulls) {
		real := b.update
		b.update = func(ctx context.Context, key pull.Key, change taskChange) (pull.Task, error) {
			return real(ctx, key, func(t *pull.Task) ([]healthlab.Event, error) {
				old := *t
				events, err := change(t)
				edit(old, t)
				return events, err
			})
		}
	}
}

var brokenStores = []conformance.Broken{
	pullMutant("counts in a task of another kind", "Count", func(b *brokenPulls) {
		real := b.count
		b.count = func(ctx context.Context, key pull.Key, change func(*pull.Task)) error {
			key.Kind = pull.News
			return real(ctx, key, change)
		}
	}),
	pullMutant("counts in a new task each time", "Count", func(b *brokenPulls) {
		real := b.count
		b.count = func(ctx context.Context, key pull.Key, change func(*pull.Task)) error {
			return real(ctx, key, func(t *pull.Task) {
				*t = pull.Task{Linked: t.Linked}
				change(t)
			})
		}
	}),
	pullMutant("claims what is leased", "ClaimOrder", func(b *brokenPulls) {
		real := b.claim
		b.claim = func(ctx context.Context, q pull.ClaimQuery) ([]pull.Task, error) {
			list, err := real(ctx, q)
			for _, t := range list {
				_, _ = b.Store.Update(ctx, t.Key, func(t *pull.Task) ([]healthlab.Event, error) { t.Lease = time.Time{}; return nil, nil })
			}
			return list, err
		}
	}),
	pullMutant("holds back a provider with all its clients", "ClaimWithoutApps", func(b *brokenPulls) {
		real := b.claim
		b.claim = func(ctx context.Context, q pull.ClaimQuery) ([]pull.Task, error) {
			list, err := real(ctx, q)
			return slices.DeleteFunc(list, func(t pull.Task) bool { return slices.Contains(q.Without, t.Provider) }), err
		}
	}),
	pullMutant("tells every team what came to one", "NotifyOfTeam", func(b *brokenPulls) {
		real := b.notify
		b.notify = func(ctx context.Context, n pull.Notice, forget time.Time, change func(*pull.Task)) (int, error) {
			n.Team = healthlab.TeamID{}
			return real(ctx, n, forget, change)
		}
	}),
	pullMutant("counts leases from the caller's clock", "CallersClocks", func(b *brokenPulls) {
		real := b.claim
		b.claim = func(ctx context.Context, q pull.ClaimQuery) ([]pull.Task, error) {
			q.Lease += q.Now.Sub(b.clock.Now())
			return real(ctx, q)
		}
	}),
	pullMutant("claims for nobody", "ClaimOrder", func(b *brokenPulls) {
		real := b.claim
		b.claim = func(ctx context.Context, q pull.ClaimQuery) ([]pull.Task, error) {
			list, err := real(ctx, q)
			for _, t := range list {
				_, _ = b.Store.Update(ctx, t.Key, func(t *pull.Task) ([]healthlab.Event, error) { t.Fence--; return nil, nil })
			}
			return list, err
		}
	}),
	pullMutant("claims what others should", "ClaimOrder", func(b *brokenPulls) {
		real := b.claim
		b.claim = func(ctx context.Context, q pull.ClaimQuery) ([]pull.Task, error) {
			q.Without = nil
			return real(ctx, q)
		}
	}),
	pullMutant("claims by name", "", func(b *brokenPulls) {
		real := b.claim
		b.claim = func(ctx context.Context, q pull.ClaimQuery) ([]pull.Task, error) {
			list, err := real(ctx, q)
			if len(list) > 1 {
				list[0], list[len(list)-1] = list[len(list)-1], list[0]
			}
			return list, err
		}
	}),
	pullMutant("wakes what waits", "UpdatedTasksWait", func(b *brokenPulls) {
		real := b.claim
		b.claim = func(ctx context.Context, q pull.ClaimQuery) ([]pull.Task, error) {
			q.Now = q.Now.Add(time.Hour)
			return real(ctx, q)
		}
	}),
	pullMutant("claims connections twice", "ConnectionsThatAreDue", func(b *brokenPulls) {
		real := b.connections
		b.connections = func(ctx context.Context, n int, now, _ time.Time) ([]pull.Ref, error) { return real(ctx, n, now, now) }
	}),
	pullMutant("drops the events of a plan", "PlanRoundTrip", func(b *brokenPulls) {
		real := b.plan
		b.plan = func(ctx context.Context, ref pull.Ref, change planChange) error {
			return real(ctx, ref, func(c healthdata.Connection, u healthdata.User, old []pull.Task) (pull.ConnectionPlan, error) {
				p, err := change(c, u, old)
				p.Events = nil
				return p, err
			})
		}
	}),
	pullMutant("keeps what a plan leaves out", "PlanRoundTrip", func(b *brokenPulls) {
		real := b.plan
		b.plan = func(ctx context.Context, ref pull.Ref, change planChange) error {
			return real(ctx, ref, func(c healthdata.Connection, u healthdata.User, old []pull.Task) (pull.ConnectionPlan, error) {
				p, err := change(c, u, old)
				if len(p.Tasks) < len(old) {
					p.Tasks = old
				}
				return p, err
			})
		}
	}),
	pullMutant("plans what change refused", "PlanErrorWritesNothing", func(b *brokenPulls) {
		real := b.plan
		b.plan = func(ctx context.Context, ref pull.Ref, change planChange) error {
			var own error
			err := real(ctx, ref, func(c healthdata.Connection, u healthdata.User, old []pull.Task) (p pull.ConnectionPlan, err error) {
				p, own = change(c, u, old)
				return p, nil
			})
			return errors.Join(err, own)
		}
	}),
	pullMutant("forgets the cursor", "Update", edited(func(_ pull.Task, t *pull.Task) { t.Cursor = "" })),
	pullMutant("forgets the days", "Update", edited(func(_ pull.Task, t *pull.Task) { t.Days = nil })),
	pullMutant("forgets how far a notice reaches", "Update", edited(func(_ pull.Task, t *pull.Task) { t.Reach = time.Time{} })),
	pullMutant("drops the events of a task", "Update", func(b *brokenPulls) {
		real := b.update
		b.update = func(ctx context.Context, key pull.Key, change taskChange) (pull.Task, error) {
			return real(ctx, key, func(t *pull.Task) ([]healthlab.Event, error) {
				_, err := change(t)
				return nil, err
			})
		}
	}),
	pullMutant("loses updates", "NoLostUpdates", func(b *brokenPulls) {
		real := b.update
		b.update = func(ctx context.Context, key pull.Key, change taskChange) (pull.Task, error) {
			list, err := b.Store.Tasks(ctx, key.Team, key.User)
			if err != nil || len(list) == 0 {
				return real(ctx, key, change)
			}
			conformance.Pause()
			return real(ctx, key, func(t *pull.Task) ([]healthlab.Event, error) {
				if key == list[0].Key {
					*t = list[0]
				}
				return change(t)
			})
		}
	}),
	pullMutant("shows the tasks of the deleted", "NotThere", func(b *brokenPulls) {
		seen := map[healthlab.UserID][]pull.Task{}
		b.plan = func(ctx context.Context, ref pull.Ref, change planChange) error {
			err := b.Store.Plan(ctx, ref, change)
			if err == nil {
				seen[ref.User], err = b.Store.Tasks(ctx, ref.Team, ref.User)
			}
			return err
		}
		b.tasks = func(_ context.Context, _ healthlab.TeamID, user healthlab.UserID) ([]pull.Task, error) {
			return seen[user], nil
		}
	}),
	pullMutant("spends what change refused", "Budgets", func(b *brokenPulls) {
		real := b.budgets
		b.budgets = func(ctx context.Context, keys []pull.BudgetKey, change func([]pull.Budget) error) error {
			var own error
			err := real(ctx, keys, func(list []pull.Budget) error {
				own = change(list)
				return nil
			})
			return errors.Join(err, own)
		}
	}),
	pullMutant("gives every process its own budget", "Budgets", func(b *brokenPulls) {
		real := b.budgets
		b.budgets = func(ctx context.Context, keys []pull.BudgetKey, change func([]pull.Budget) error) error {
			return real(ctx, keys, func(list []pull.Budget) error {
				return change(append([]pull.Budget{}, list...))
			})
		}
	}),
	pullMutant("keeps refusals twice", "Quarantine", func(b *brokenPulls) {
		real := b.quarantine
		n := byte(0)
		b.quarantine = func(ctx context.Context, ref pull.Ref, refused []pull.RefusedItem) error {
			refused = append([]pull.RefusedItem{}, refused...)
			for i := range refused {
				n++
				refused[i].ID[0] = n
			}
			return real(ctx, ref, refused)
		}
	}),
	pullMutant("keeps refusals for ever", "QuarantineIsBounded", func(b *brokenPulls) {
		real := b.quarantine
		var first []pull.RefusedItem
		b.quarantine = func(ctx context.Context, ref pull.Ref, refused []pull.RefusedItem) error {
			err := real(ctx, ref, refused)
			first = append(first, refused...)
			return err
		}
		b.Store = everyRefusal{b.Store, &first}
	}),
	pullMutant("takes a notice twice", "NotifyOnce", func(b *brokenPulls) {
		real := b.notify
		n := byte(0)
		b.notify = func(ctx context.Context, x pull.Notice, forget time.Time, change func(*pull.Task)) (int, error) {
			n++
			x.ID[31] = n
			return real(ctx, x, forget, change)
		}
	}),
	pullMutant("remembers notices for ever", "NotifyOnce", func(b *brokenPulls) {
		real := b.notify
		b.notify = func(ctx context.Context, x pull.Notice, _ time.Time, change func(*pull.Task)) (int, error) {
			return real(ctx, x, time.Time{}, change)
		}
	}),
	pullMutant("forgets which resources a notice is for", "Notify", func(b *brokenPulls) {
		real := b.notify
		b.notify = func(ctx context.Context, x pull.Notice, forget time.Time, change func(*pull.Task)) (int, error) {
			x.Resources = nil
			return real(ctx, x, forget, change)
		}
	}),
	pullMutant("counts tasks that it does not write", "Notify", func(b *brokenPulls) {
		real := b.notify
		b.notify = func(ctx context.Context, x pull.Notice, forget time.Time, change func(*pull.Task)) (int, error) {
			return real(ctx, x, forget, func(t *pull.Task) {
				own := *t
				change(&own)
			})
		}
	}),
	pullMutant("keeps a notice whose tasks it could not write", "NotifyBad", func(b *brokenPulls) {
		real := b.notify
		b.notify = func(ctx context.Context, x pull.Notice, forget time.Time, change func(*pull.Task)) (int, error) {
			n, err := real(ctx, x, forget, change)
			if errors.Is(err, healthlab.Invalid) {
				_, _ = real(ctx, x, forget, func(*pull.Task) {})
			}
			return n, err
		}
	}),
	pullMutant("takes the tasks away while it plans them", "NotifyLosesNoUpdates", func(b *brokenPulls) {
		real := b.plan
		b.plan = func(ctx context.Context, ref pull.Ref, change planChange) error {
			var old []pull.Task
			_ = real(ctx, ref, func(_ healthdata.Connection, _ healthdata.User, was []pull.Task) (pull.ConnectionPlan, error) {
				old = was
				return pull.ConnectionPlan{}, nil
			})
			conformance.Pause()
			return real(ctx, ref, func(c healthdata.Connection, u healthdata.User, was []pull.Task) (pull.ConnectionPlan, error) {
				return change(c, u, append(was, old...))
			})
		}
	}),
	pullMutant("shows people without order", "PeopleInOrder", func(b *brokenPulls) {
		real := b.people
		b.people = func(ctx context.Context, q pull.UserStatusQuery) ([]pull.UserStatus, error) {
			list, err := real(ctx, q)
			if len(list) > 1 {
				list[0], list[1] = list[1], list[0]
			}
			return list, err
		}
	}),
	pullMutant("shows all tasks of people", "People", func(b *brokenPulls) {
		real := b.people
		b.people = func(ctx context.Context, q pull.UserStatusQuery) ([]pull.UserStatus, error) {
			list, err := real(ctx, q)
			for i := range list {
				list[i].Tasks, _ = b.Store.Tasks(ctx, q.Team, list[i].User)
			}
			return list, err
		}
	}),
}
