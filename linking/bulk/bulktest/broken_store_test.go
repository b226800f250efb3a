package bulktest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking/bulk"
	"github.com/healthlab-dev/healthlab/linking/bulk/bulktest"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
)

// brokenBulk reads in a way of its own.
type brokenBulk struct {
	bulk.Store
	held func(context.Context, bulk.ConnectionQuery) ([]bulk.Connection, error)
}

func (b *brokenBulk) Connections(ctx context.Context, q bulk.ConnectionQuery) ([]bulk.Connection, error) {
	return b.held(ctx, q)
}

func bulkMutant(name, dies string, how func(context.Context, *memory.Store, bulk.ConnectionQuery) ([]bulk.Connection, error)) conformance.Broken {
	return conformance.Broken{Name: "bulk: " + name, Suite: func(t *testing.T) {
		clock := conformance.NewClock(time.Unix(0, 0))
		s := memory.New(&memory.Options{Now: clock.Now})
		bulktest.RunStore(t, bulktest.StoreHarness{
			Bulk: &brokenBulk{s.Bulk(), func(ctx context.Context, q bulk.ConnectionQuery) ([]bulk.Connection, error) { return how(ctx, s, q) }},
			Linking: linkingtest.StoreHarness{
				Linking: s.Linking(), Credentials: s.Credentials(), Second: s.Credentials(), Users: s.Users(), Data: s.Data(), Messages: s.WebhookLog(),
			},
			SetClock: clock.Set,
		})
	}, Subtest: dies}
}

var brokenHeldStores = []conformance.Broken{
	bulkMutant("forgets the scopes", "RoundTrip", func(ctx context.Context, s *memory.Store, q bulk.ConnectionQuery) ([]bulk.Connection, error) {
		list, err := s.Bulk().Connections(ctx, q)
		for i := range list {
			list[i].Scopes = nil
		}
		return list, err
	}),
	bulkMutant("ignores the team", "OtherTeam", func(ctx context.Context, s *memory.Store, q bulk.ConnectionQuery) ([]bulk.Connection, error) {
		list, err := s.Bulk().Connections(ctx, q)
		if err == nil && len(list) == 0 && len(q.Users) == 1 {
			return []bulk.Connection{{}}, nil
		}
		return list, err
	}),
	bulkMutant("begins with whom it should begin after", "Pages", func(ctx context.Context, s *memory.Store, q bulk.ConnectionQuery) ([]bulk.Connection, error) {
		if n := len(q.After.UUID) - 1; !q.After.IsZero() {
			q.After.UUID[n]--
		}
		return s.Bulk().Connections(ctx, q)
	}),
	bulkMutant("returns the last page first", "Pages", func(ctx context.Context, s *memory.Store, q bulk.ConnectionQuery) ([]bulk.Connection, error) {
		list, err := s.Bulk().Connections(ctx, q)
		slices.Reverse(list)
		return list, err
	}),
	bulkMutant("takes nobody for everybody", "Users", func(ctx context.Context, s *memory.Store, q bulk.ConnectionQuery) ([]bulk.Connection, error) {
		if len(q.Users) == 0 {
			q.Users = nil
		}
		return s.Bulk().Connections(ctx, q)
	}),
	bulkMutant("leaves out what is paused", "Statuses", func(ctx context.Context, s *memory.Store, q bulk.ConnectionQuery) ([]bulk.Connection, error) {
		list, err := s.Bulk().Connections(ctx, q)
		return slices.DeleteFunc(list, func(h bulk.Connection) bool {
			u, _ := s.Users().Get(ctx, h.Team, h.User)
			return u.Connection(h.Provider).Status == healthdata.Paused
		}), err
	}),
	bulkMutant("goes on without its caller", "Refused", func(ctx context.Context, s *memory.Store, q bulk.ConnectionQuery) ([]bulk.Connection, error) {
		return s.Bulk().Connections(context.WithoutCancel(ctx), q)
	}),
	bulkMutant("takes any text", "Refused", func(ctx context.Context, s *memory.Store, q bulk.ConnectionQuery) ([]bulk.Connection, error) {
		if q.Provider != "acme_scale" {
			return nil, ctx.Err()
		}
		return s.Bulk().Connections(ctx, q)
	}),
}

// brokenOps breaks one method of what keeps operations.
type brokenOps struct {
	bulk.Store
	submit func(context.Context, bulk.Op, []bulk.Item) error
	clock  *conformance.Clock
	claim  func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]bulk.Op, error)
	items  func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, from, n int) ([]bulk.Item, error)
	update func(context.Context, healthlab.TeamID, uuid.UUID, func(*bulk.Op) error) (bulk.Op, error)
	ops    func(context.Context, healthlab.TeamID, bulk.ListPosition, int) ([]bulk.Op, error)
	imp    func(context.Context, bulk.Import) (bulk.Outcome, error)
	reject func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, n int, why bulk.Outcome) (bulk.Outcome, error)
	prune  func(ctx context.Context, n int, before time.Time) (int, error)
}

func (b *brokenOps) Prune(ctx context.Context, n int, before time.Time) (int, error) {
	return b.prune(ctx, n, before)
}

func (b *brokenOps) Import(ctx context.Context, c bulk.Import) (bulk.Outcome, error) {
	return b.imp(ctx, c)
}

func (b *brokenOps) Reject(ctx context.Context, team healthlab.TeamID, id uuid.UUID, n int, why bulk.Outcome) (bulk.Outcome, error) {
	return b.reject(ctx, team, id, n, why)
}

func (b *brokenOps) Submit(ctx context.Context, op bulk.Op, items []bulk.Item) error {
	return b.submit(ctx, op, items)
}

func (b *brokenOps) Claim(ctx context.Context, n int, now time.Time, lease time.Duration) ([]bulk.Op, error) {
	return b.claim(ctx, n, now, lease)
}

func (b *brokenOps) Items(ctx context.Context, team healthlab.TeamID, id uuid.UUID, from, n int) ([]bulk.Item, error) {
	return b.items(ctx, team, id, from, n)
}

func (b *brokenOps) UpdateOp(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change func(*bulk.Op) error) (bulk.Op, error) {
	return b.update(ctx, team, id, change)
}

func (b *brokenOps) Ops(ctx context.Context, team healthlab.TeamID, before bulk.ListPosition, n int) ([]bulk.Op, error) {
	return b.ops(ctx, team, before, n)
}

func bulkOpMutant(name, dies string, how func(b *brokenOps, good bulk.Store)) conformance.Broken {
	return conformance.Broken{Name: "bulk: " + name, Suite: func(t *testing.T) {
		clock := conformance.NewClock(time.Unix(0, 0))
		s := memory.New(&memory.Options{Now: clock.Now})
		good := s.Bulk()
		b := &brokenOps{
			Store: good, submit: good.Submit, claim: good.Claim, items: good.Items, update: good.UpdateOp, ops: good.Ops, imp: good.Import, reject: good.Reject,
			prune: good.Prune, clock: clock,
		}
		how(b, good)
		bulktest.RunStore(t, bulktest.StoreHarness{Bulk: b, Linking: linkingtest.StoreHarness{
			Linking: s.Linking(), Credentials: s.Credentials(), Second: s.Credentials(), Users: s.Users(), Data: s.Data(), Messages: s.WebhookLog(),
		}, SetClock: clock.Set})
	}, Subtest: dies}
}

var brokenOpStores = []conformance.Broken{
	bulkOpMutant("forgets what ended just now", "Prune", func(b *brokenOps, good bulk.Store) {
		b.prune = func(ctx context.Context, n int, before time.Time) (int, error) {
			return good.Prune(ctx, n, before.Add(time.Microsecond))
		}
	}),
	bulkOpMutant("forgets all at once", "Prune", func(b *brokenOps, good bulk.Store) {
		b.prune = func(ctx context.Context, _ int, before time.Time) (int, error) { return good.Prune(ctx, 1000, before) }
	}),
	bulkOpMutant("forgets nothing", "Prune", func(b *brokenOps, _ bulk.Store) {
		b.prune = func(ctx context.Context, _ int, _ time.Time) (int, error) { return 0, ctx.Err() }
	}),
	bulkOpMutant("forgets without its caller", "Prune", func(b *brokenOps, good bulk.Store) {
		b.prune = func(ctx context.Context, n int, before time.Time) (int, error) {
			return good.Prune(context.WithoutCancel(ctx), n, before)
		}
	}),
	bulkOpMutant("forgets what failed", "OpRoundTrip", func(b *brokenOps, good bulk.Store) {
		b.submit = func(ctx context.Context, op bulk.Op, items []bulk.Item) error {
			op.Failed = 0
			return good.Submit(ctx, op, items)
		}
	}),
	bulkOpMutant("forgets who runs", "OpRoundTrip", func(b *brokenOps, good bulk.Store) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change func(*bulk.Op) error) (bulk.Op, error) {
			return good.UpdateOp(ctx, team, id, func(op *bulk.Op) error {
				err := change(op)
				op.Running = nil
				return err
			})
		}
	}),
	bulkOpMutant("takes an operation twice", "OpRefused", func(b *brokenOps, good bulk.Store) {
		b.submit = func(ctx context.Context, op bulk.Op, items []bulk.Item) error {
			if err := good.Submit(ctx, op, items); !errors.Is(err, healthlab.Conflict) {
				return err
			}
			return nil
		}
	}),
	bulkOpMutant("writes what change refused", "OpErrorWritesNothing", func(b *brokenOps, good bulk.Store) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change func(*bulk.Op) error) (bulk.Op, error) {
			var own error
			op, err := good.UpdateOp(ctx, team, id, func(op *bulk.Op) error {
				own = change(op)
				return nil
			})
			return op, errors.Join(err, own)
		}
	}),
	bulkOpMutant("begins with the next item", "Items", func(b *brokenOps, good bulk.Store) {
		b.items = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, from, n int) ([]bulk.Item, error) {
			return good.Items(ctx, team, id, from+1, n)
		}
	}),
	bulkOpMutant("claims what is leased", "Claims", func(b *brokenOps, good bulk.Store) {
		b.claim = func(ctx context.Context, n int, now time.Time, _ time.Duration) ([]bulk.Op, error) {
			return good.Claim(ctx, n, now, 0)
		}
	}),
	bulkOpMutant("counts leases from the caller's clock", "CallersClocks", func(b *brokenOps, good bulk.Store) {
		b.claim = func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]bulk.Op, error) {
			return good.Claim(ctx, n, now, lease+now.Sub(b.clock.Now()))
		}
	}),
	bulkOpMutant("claims too early", "Claims", func(b *brokenOps, good bulk.Store) {
		b.claim = func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]bulk.Op, error) {
			return good.Claim(ctx, n, now.Add(time.Second), lease)
		}
	}),
	bulkOpMutant("lets operations overtake", "OneAfterAnother", func(b *brokenOps, good bulk.Store) {
		b.claim = func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]bulk.Op, error) {
			list, err := good.Claim(ctx, n, now, lease)
			slices.Reverse(list)
			return list, err
		}
	}),
	bulkOpMutant("lists the oldest first", "List", func(b *brokenOps, good bulk.Store) {
		b.ops = func(ctx context.Context, team healthlab.TeamID, before bulk.ListPosition, n int) ([]bulk.Op, error) {
			list, err := good.Ops(ctx, team, before, n)
			slices.Reverse(list)
			return list, err
		}
	}),
	bulkOpMutant("remembers the erased", "ItemsGoWithTheirUser", func(b *brokenOps, good bulk.Store) {
		first := map[uuid.UUID][]bulk.Item{}
		b.submit = func(ctx context.Context, op bulk.Op, items []bulk.Item) error {
			first[op.ID] = items
			return good.Submit(ctx, op, items)
		}
		b.items = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, from, n int) ([]bulk.Item, error) {
			list, err := good.Items(ctx, team, id, from, n)
			if from == 0 && n == 10 && len(list) > 0 {
				list = first[id]
			}
			return list, err
		}
	}),
	bulkOpMutant("submits without its caller", "OpEnded", func(b *brokenOps, good bulk.Store) {
		b.submit = func(ctx context.Context, op bulk.Op, items []bulk.Item) error {
			return good.Submit(context.WithoutCancel(ctx), op, items)
		}
	}),
}

var brokenImportStores = []conformance.Broken{
	bulkOpMutant("forgets the grants", "Grants", func(b *brokenOps, good bulk.Store) {
		b.submit = func(ctx context.Context, op bulk.Op, items []bulk.Item) error {
			bare := make([]bulk.Item, len(items))
			for i, it := range items {
				bare[i].User = it.User
			}
			return good.Submit(ctx, op, bare)
		}
	}),
	bulkOpMutant("writes a user without the credential", "Import", func(b *brokenOps, good bulk.Store) {
		b.imp = func(ctx context.Context, c bulk.Import) (bulk.Outcome, error) {
			c.Credential.Secret = healthlab.Sealed{}
			return good.Import(ctx, c)
		}
	}),
	bulkOpMutant("writes a user without the event", "Import", func(b *brokenOps, good bulk.Store) {
		b.imp = func(ctx context.Context, c bulk.Import) (bulk.Outcome, error) {
			change := c.Change
			c.Change = func(u *healthdata.User) ([]healthlab.Event, error) {
				_, err := change(u)
				return nil, err
			}
			return good.Import(ctx, c)
		}
	}),
	bulkOpMutant("imports an item again", "Import", func(b *brokenOps, good bulk.Store) {
		b.imp = func(ctx context.Context, c bulk.Import) (bulk.Outcome, error) {
			out, err := good.Import(ctx, c)
			if out == bulk.Connected && err == nil {
				_, err = c.Change(&healthdata.User{})
			}
			return out, err
		}
	}),
	bulkOpMutant("keeps the grant of what is made", "Import", func(b *brokenOps, good bulk.Store) {
		b.items = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, from, n int) ([]bulk.Item, error) {
			list, err := good.Items(ctx, team, id, from, n)
			for i := range list {
				if list[i].Outcome == bulk.Connected {
					list[i].Grant = healthlab.Sealed{KeyID: "k1", Box: []byte("kept")}
				}
			}
			return list, err
		}
	}),
	bulkOpMutant("makes a connection that was refused", "ImportErrorWritesNothing", func(b *brokenOps, good bulk.Store) {
		b.imp = func(ctx context.Context, c bulk.Import) (bulk.Outcome, error) {
			change := c.Change
			var own error
			c.Change = func(u *healthdata.User) (events []healthlab.Event, err error) {
				events, own = change(u)
				return events, nil
			}
			out, err := good.Import(ctx, c)
			return out, errors.Join(err, own)
		}
	}),
	bulkOpMutant("lets two have an account", "ImportTaken", func(b *brokenOps, good bulk.Store) {
		b.imp = func(ctx context.Context, c bulk.Import) (bulk.Outcome, error) {
			c.Sole = nil
			return good.Import(ctx, c)
		}
	}),
	bulkOpMutant("keeps an account for who has gone", "ImportAccountFree", func(b *brokenOps, good bulk.Store) {
		b.imp = func(ctx context.Context, c bulk.Import) (bulk.Outcome, error) {
			if c.Sole != nil && *c.Sole != "" && (*c.Sole)[0] == 'e' {
				return "", healthlab.Conflict
			}
			return good.Import(ctx, c)
		}
	}),
	bulkOpMutant("says of nobody's item that it is made", "ImportNotThere", func(b *brokenOps, good bulk.Store) {
		b.imp = func(ctx context.Context, c bulk.Import) (bulk.Outcome, error) {
			out, err := good.Import(ctx, c)
			if errors.Is(err, healthlab.NotFound) {
				return bulk.Connected, nil
			}
			return out, err
		}
	}),
	bulkOpMutant("rejects without its caller", "ImportNotThere", func(b *brokenOps, good bulk.Store) {
		b.reject = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, n int, why bulk.Outcome) (bulk.Outcome, error) {
			return good.Reject(context.WithoutCancel(ctx), team, id, n, why)
		}
	}),
	bulkOpMutant("changes an outcome", "Reject", func(b *brokenOps, good bulk.Store) {
		b.reject = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, n int, why bulk.Outcome) (bulk.Outcome, error) {
			_, err := good.Reject(ctx, team, id, n, why)
			return why, err
		}
	}),
	bulkOpMutant("keeps the grants of what was given up", "GrantsGoWithTheOperation", func(b *brokenOps, good bulk.Store) {
		first := map[uuid.UUID][]bulk.Item{}
		b.submit = func(ctx context.Context, op bulk.Op, items []bulk.Item) error {
			first[op.ID] = items
			return good.Submit(ctx, op, items)
		}
		b.items = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, from, n int) ([]bulk.Item, error) {
			list, err := good.Items(ctx, team, id, from, n)
			for i := range list {
				if it := &list[i]; it.Outcome == "" {
					it.Grant = first[id][it.N].Grant
				}
			}
			return list, err
		}
	}),
}
