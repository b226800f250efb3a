package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/orders/matchtest"
)

// dueOrder adds an order of which everything is due.
func dueOrder(t testing.TB, s *postgres.Store, u healthdata.User) orders.Record {
	t.Helper()
	r := orderOf(u)
	r.Lab.Due, r.Notifications.Due, r.VisitWork.Due = noon.Time, noon.Time, noon.Time
	r.Visits = []orders.Visit{{Keys: []uuid.UUID{uuid.New()}}}
	r, err := s.Orders().Insert(t.Context(), r, unchanged)
	require.NoError(t, err)
	return r
}

func keyOf(u healthdata.User) idempotency.Scope {
	return idempotency.Scope{Team: u.Team, Endpoint: "order", Key: "k"}
}

// startKey claims the idempotency key of a user.
func startKey(ctx context.Context, s *postgres.Store, u healthdata.User, lease time.Duration) (idempotency.State, error) {
	return s.OrderKeys().StartKey(ctx, keyOf(u), "print", orders.OrderID{UUID: u.ID.UUID}, lease)
}

var orderWrites = map[string]prepare{
	"Orders.Insert": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Orders().Insert(ctx, orderOf(u), func(*orders.Record) ([]healthlab.Event, error) { return emit(u), nil })
			return err
		}
	},
	"Orders.InsertAfter": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		parent := placeOrder(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, _, err := s.Orders().InsertAfter(ctx, parent.ID, orderOf(u), func(*orders.Record, *orders.Record) ([]healthlab.Event, error) { return emit(u), nil })
			return err
		}
	},
	"Orders.Update": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		id := placeOrder(t, s, u).ID
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Orders().Update(ctx, u.Team, id, func(*orders.Record) ([]healthlab.Event, error) { return emit(u), nil })
			return err
		}
	},
	"Orders.Claim": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		dueOrder(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Orders().Claim(ctx, 10, noon.Time, time.Minute)
			return err
		}
	},
	"Orders.ClaimNotifications": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		dueOrder(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Orders().ClaimNotifications(ctx, 10, noon.Time, time.Minute)
			return err
		}
	},
	"Orders.ClaimFeed": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			_, _, err := s.Orders().ClaimFeed(ctx, u.ID.String(), time.Minute)
			return err
		}
	},
	"Orders.MoveFeed": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		_, until, err := s.Orders().ClaimFeed(t.Context(), u.ID.String(), time.Minute)
		require.NoError(t, err)
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Orders().MoveFeed(ctx, u.ID.String(), until, "c")
		}
	},
	"OrderKeys.StartKey": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := startKey(ctx, s, u, time.Minute)
			return err
		}
	},
	"OrderKeys.FinishKey": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		k, err := startKey(t.Context(), s, u, time.Minute)
		require.NoError(t, err)
		return func(ctx context.Context, s *postgres.Store) error {
			return s.OrderKeys().FinishKey(ctx, keyOf(u), k.Until, []byte("answer"), healthlab.UserID{}, time.Hour)
		}
	},
	"OrderKeys.PruneKeys": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		_, err := startKey(t.Context(), s, u, -48*time.Hour)
		require.NoError(t, err)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.OrderKeys().PruneKeys(ctx, 10)
			return err
		}
	},
	"LabTests.InsertLabTest": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error { return s.LabTests().InsertLabTest(ctx, ownTest(u)) }
	},
	"LabTests.UpdateLabTest": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		own := ownTest(u)
		require.NoError(t, s.LabTests().InsertLabTest(t.Context(), own))
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.LabTests().UpdateLabTest(ctx, u.Team, own.ID, func(t *catalogue.TeamTest) error {
				t.Name = "iron 2"
				return nil
			})
			return err
		}
	},
}

var visitWrites = map[string]prepare{
	"Orders.ClaimVisits": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		dueOrder(t, s, u)
		return func(ctx context.Context, s *postgres.Store) error {
			visits, ok := s.Orders().(orders.VisitStore)
			require.True(t, ok)
			_, err := visits.ClaimVisits(ctx, 10, noon.Time, time.Minute)
			return err
		}
	},
	"SlotCache.PutSlots": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			return s.SlotCache().PutSlots(ctx, u.ID.String(), noon.Time, map[string][]appointment.Slot{"A": nil, "B": nil})
		}
	},
	"Centers.Replace": func(t testing.TB, s *postgres.Store, _ healthdata.User) write {
		center := func(code string) appointment.Center {
			return appointment.Center{LabID: 1, SiteCode: code, IANATimezone: "UTC",
				Metadata: appointment.PSCMetadata{Name: "n", FirstLine: "f", City: "c", State: "s", ZipCode: "85201"}}
		}
		fill(t, s, []appointment.Center{center("A"), center("B")})
		return func(ctx context.Context, s *postgres.Store) error {
			return s.Centers().Replace(ctx, 1, []appointment.Center{center("B"), center("C")})
		}
	},
}

func trialOf(u healthdata.User) matchtest.Record {
	return matchtest.Record{
		Team: u.Team, Key: u.ID.String(), Due: noon.Time,
		Run: matchtest.Run{RunID: matchtest.RunID{UUID: u.ID.UUID}, CreatedAt: noon, UpdatedAt: noon},
	}
}

var reviewWrites = map[string]prepare{
	"Reviews.InsertResult": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		r := orders.RawResult{Team: u.Team, Subject: u.ID}
		r.ID.UUID, r.Status, r.CreatedAt, r.UpdatedAt = uuid.New(), orders.MatchPendingCustomer, noon, noon
		return func(ctx context.Context, s *postgres.Store) error { return s.Reviews().InsertResult(ctx, r, emit(u)) }
	},
	"Reviews.UpdateResult": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		id := hold(t, s, u).ID
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Reviews().UpdateResult(ctx, u.Team, id, func(*orders.RawResult) ([]healthlab.Event, error) { return emit(u), nil })
			return err
		}
	},
	"Reviews.AssignResult": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		id, order, other := hold(t, s, u).ID, placeOrder(t, s, u).ID, orderOf(u)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Reviews().AssignResult(ctx, u.Team, id, orders.Assignment{Order: order, New: &other},
				func(*orders.RawResult, *orders.Record, *orders.Record) ([]healthlab.Event, error) {
					return emit(u), nil
				})
			return err
		}
	},
	"MatchTestRuns.StartMatchTestRun": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			_, _, err := s.MatchTestRuns().StartMatchTestRun(ctx, trialOf(u))
			return err
		}
	},
	"MatchTestRuns.UpdateMatchTestRun": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		_, _, err := s.MatchTestRuns().StartMatchTestRun(t.Context(), trialOf(u))
		require.NoError(t, err)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.MatchTestRuns().UpdateMatchTestRun(ctx, u.Team, trialOf(u).RunID, func(k *matchtest.Record) error {
				k.Due = end
				return nil
			})
			return err
		}
	},
	"MatchTestRuns.ClaimMatchTestRuns": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		_, _, err := s.MatchTestRuns().StartMatchTestRun(t.Context(), trialOf(u))
		require.NoError(t, err)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.MatchTestRuns().ClaimMatchTestRuns(ctx, 10, time.Minute)
			return err
		}
	},
}
