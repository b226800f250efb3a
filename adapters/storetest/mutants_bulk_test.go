package storetest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking/bulk"
)

// brokenBulk reads in a way of its own.
type brokenBulk struct {
	bulk.Store
	held func(context.Context, bulk.HeldQuery) ([]bulk.Held, error)
}

func (b *brokenBulk) Held(ctx context.Context, q bulk.HeldQuery) ([]bulk.Held, error) {
	return b.held(ctx, q)
}

func bulkMutant(name, dies string, how func(context.Context, *memory.Store, bulk.HeldQuery) ([]bulk.Held, error)) mutant {
	return mutant{"bulk: " + name, func(t *testing.T) {
		s := memory.New(nil)
		storetest.RunBulk(t, storetest.BulkHarness{
			Bulk: &brokenBulk{s.Bulk(), func(ctx context.Context, q bulk.HeldQuery) ([]bulk.Held, error) { return how(ctx, s, q) }},
			Linking: storetest.LinkingHarness{
				Linking: s.Linking(), Grants: s.Grants(), Second: s.Grants(), Users: s.Users(), Data: s.Data(), Messages: s.WebhookLog(),
			},
		})
	}, dies}
}

var bulkMutants = []mutant{
	bulkMutant("forgets the scopes", "RoundTrip", func(ctx context.Context, s *memory.Store, q bulk.HeldQuery) ([]bulk.Held, error) {
		list, err := s.Bulk().Held(ctx, q)
		for i := range list {
			list[i].Scopes = nil
		}
		return list, err
	}),
	bulkMutant("ignores the team", "OtherTeam", func(ctx context.Context, s *memory.Store, q bulk.HeldQuery) ([]bulk.Held, error) {
		list, err := s.Bulk().Held(ctx, q)
		if err == nil && len(list) == 0 && len(q.Users) == 1 {
			return []bulk.Held{{}}, nil
		}
		return list, err
	}),
	bulkMutant("begins with whom it should begin after", "Pages", func(ctx context.Context, s *memory.Store, q bulk.HeldQuery) ([]bulk.Held, error) {
		if n := len(q.After.UUID) - 1; !q.After.IsZero() {
			q.After.UUID[n]--
		}
		return s.Bulk().Held(ctx, q)
	}),
	bulkMutant("returns the last page first", "Pages", func(ctx context.Context, s *memory.Store, q bulk.HeldQuery) ([]bulk.Held, error) {
		list, err := s.Bulk().Held(ctx, q)
		slices.Reverse(list)
		return list, err
	}),
	bulkMutant("takes nobody for everybody", "Users", func(ctx context.Context, s *memory.Store, q bulk.HeldQuery) ([]bulk.Held, error) {
		if len(q.Users) == 0 {
			q.Users = nil
		}
		return s.Bulk().Held(ctx, q)
	}),
	bulkMutant("leaves out what is paused", "Statuses", func(ctx context.Context, s *memory.Store, q bulk.HeldQuery) ([]bulk.Held, error) {
		list, err := s.Bulk().Held(ctx, q)
		return slices.DeleteFunc(list, func(h bulk.Held) bool {
			u, _ := s.Users().Get(ctx, h.Team, h.User)
			return u.Connection(h.Provider).Status == healthdata.Paused
		}), err
	}),
	bulkMutant("goes on without its caller", "Refused", func(ctx context.Context, s *memory.Store, q bulk.HeldQuery) ([]bulk.Held, error) {
		return s.Bulk().Held(context.WithoutCancel(ctx), q)
	}),
	bulkMutant("takes any text", "Refused", func(ctx context.Context, s *memory.Store, q bulk.HeldQuery) ([]bulk.Held, error) {
		if q.Provider != "acme_scale" {
			return nil, ctx.Err()
		}
		return s.Bulk().Held(ctx, q)
	}),
}

// brokenOps breaks one method of what keeps operations.
type brokenOps struct {
	bulk.Store
	submit func(context.Context, bulk.Op, []healthlab.UserID) error
	claim  func(ctx context.Context, n int, now, until time.Time) ([]bulk.Op, error)
	items  func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, from, n int) ([]bulk.Item, error)
	update func(context.Context, healthlab.TeamID, uuid.UUID, func(*bulk.Op) error) (bulk.Op, error)
	ops    func(context.Context, healthlab.TeamID, bulk.Place, int) ([]bulk.Op, error)
}

func (b *brokenOps) Submit(ctx context.Context, op bulk.Op, users []healthlab.UserID) error {
	return b.submit(ctx, op, users)
}

func (b *brokenOps) Claim(ctx context.Context, n int, now, until time.Time) ([]bulk.Op, error) {
	return b.claim(ctx, n, now, until)
}

func (b *brokenOps) Items(ctx context.Context, team healthlab.TeamID, id uuid.UUID, from, n int) ([]bulk.Item, error) {
	return b.items(ctx, team, id, from, n)
}

func (b *brokenOps) UpdateOp(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change func(*bulk.Op) error) (bulk.Op, error) {
	return b.update(ctx, team, id, change)
}

func (b *brokenOps) Ops(ctx context.Context, team healthlab.TeamID, before bulk.Place, n int) ([]bulk.Op, error) {
	return b.ops(ctx, team, before, n)
}

func bulkOpMutant(name, dies string, how func(b *brokenOps, good bulk.Store)) mutant {
	return mutant{"bulk: " + name, func(t *testing.T) {
		s := memory.New(nil)
		good := s.Bulk()
		b := &brokenOps{Store: good, submit: good.Submit, claim: good.Claim, items: good.Items, update: good.UpdateOp, ops: good.Ops}
		how(b, good)
		storetest.RunBulk(t, storetest.BulkHarness{Bulk: b, Linking: storetest.LinkingHarness{
			Linking: s.Linking(), Grants: s.Grants(), Second: s.Grants(), Users: s.Users(), Data: s.Data(), Messages: s.WebhookLog(),
		}})
	}, dies}
}

var bulkOpMutants = []mutant{
	bulkOpMutant("forgets what failed", "OpRoundTrip", func(b *brokenOps, good bulk.Store) {
		b.submit = func(ctx context.Context, op bulk.Op, users []healthlab.UserID) error {
			op.Failed = 0
			return good.Submit(ctx, op, users)
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
		b.submit = func(ctx context.Context, op bulk.Op, users []healthlab.UserID) error {
			if err := good.Submit(ctx, op, users); !errors.Is(err, healthlab.Conflict) {
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
		b.claim = func(ctx context.Context, n int, now, _ time.Time) ([]bulk.Op, error) {
			return good.Claim(ctx, n, now, now)
		}
	}),
	bulkOpMutant("claims too early", "Claims", func(b *brokenOps, good bulk.Store) {
		b.claim = func(ctx context.Context, n int, now, until time.Time) ([]bulk.Op, error) {
			return good.Claim(ctx, n, now.Add(time.Second), until)
		}
	}),
	bulkOpMutant("lets operations overtake", "OneAfterAnother", func(b *brokenOps, good bulk.Store) {
		b.claim = func(ctx context.Context, n int, now, until time.Time) ([]bulk.Op, error) {
			list, err := good.Claim(ctx, n, now, until)
			slices.Reverse(list)
			return list, err
		}
	}),
	bulkOpMutant("lists the oldest first", "List", func(b *brokenOps, good bulk.Store) {
		b.ops = func(ctx context.Context, team healthlab.TeamID, before bulk.Place, n int) ([]bulk.Op, error) {
			list, err := good.Ops(ctx, team, before, n)
			slices.Reverse(list)
			return list, err
		}
	}),
	bulkOpMutant("remembers the erased", "ItemsGoWithTheirUser", func(b *brokenOps, good bulk.Store) {
		first := map[uuid.UUID][]healthlab.UserID{}
		b.submit = func(ctx context.Context, op bulk.Op, users []healthlab.UserID) error {
			first[op.ID] = users
			return good.Submit(ctx, op, users)
		}
		b.items = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID, from, n int) ([]bulk.Item, error) {
			list, err := good.Items(ctx, team, id, from, n)
			if from == 0 && n == 10 && len(list) > 0 {
				list = nil
				for i, u := range first[id] {
					list = append(list, bulk.Item{N: i, User: u})
				}
			}
			return list, err
		}
	}),
	bulkOpMutant("submits without its caller", "OpEnded", func(b *brokenOps, good bulk.Store) {
		b.submit = func(ctx context.Context, op bulk.Op, users []healthlab.UserID) error {
			return good.Submit(context.WithoutCancel(ctx), op, users)
		}
	}),
}
