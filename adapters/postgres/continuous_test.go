package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/aggregatetest"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

func continuousHarness(s *postgres.Store) aggregatetest.ContinuousHarness {
	return aggregatetest.ContinuousHarness{
		Store: s.Continuous(), Work: s.ContinuousWork(), Data: s.Data(), Users: s.Users(), Messages: s.WebhookLog(),
	}
}

func TestContinuous(t *testing.T) {
	t.Parallel()
	aggregatetest.RunContinuous(t, func(t testing.TB) aggregatetest.ContinuousHarness {
		return continuousHarness(postgres.New(pgtest.Pool(t), nil))
	})
}

// For a role that row-level security holds for.
func TestContinuousWithRowSecurity(t *testing.T) {
	skipRowSecurity(t)
	t.Parallel()
	aggregatetest.RunContinuous(t, func(t testing.TB) aggregatetest.ContinuousHarness { return continuousHarness(newRestricted(t)) })
}

func TestPriorities(t *testing.T) {
	t.Parallel()
	s := postgres.New(pgtest.Connect(t, pgtest.URL(t)), nil)
	aggregatetest.RunPriorityStore(t, s.Priorities(), continuousHarness(s))
	restricted := newRestricted(t)
	aggregatetest.RunPriorityStore(t, restricted.Priorities(), continuousHarness(restricted))
}

// watching is a continuous query that depends on some resources.
func watching(team healthlab.TeamID, resources ...string) continuous.Query {
	return continuous.Query{
		ID: continuous.QueryID{UUID: uuid.New()}, Status: continuous.Active, Slug: resources[0], Team: team, Resources: resources,
		Query: aggregate.Query{Select: []aggregate.Expr{aggregate.Keys()}, GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))}},
	}
}

// watch makes a continuous query and its table for a user.
func watch(t testing.TB, s *postgres.Store, u healthdata.User) {
	t.Helper()
	require.NoError(t, s.Continuous().Insert(t.Context(), watching(u.Team, "water")))
	_, err := s.Priorities().UpdatePriorities(t.Context(), u.Team, func([]aggregate.Priority) ([]aggregate.Priority, error) {
		return []aggregate.Priority{{Provider: "acme_band", Number: 1}}, nil
	})
	require.NoError(t, err)
	mergeInto(t, s, u, healthdata.SeriesKey{Resource: "water", Provider: "acme_band", SourceType: "watch"}, 0, 1, 1)
	tasks, err := s.ContinuousWork().Claim(t.Context(), 9, time.Hour)
	require.NoError(t, err)
	require.Len(t, tasks, 1)
	require.NoError(t, s.ContinuousWork().Finish(t.Context(), tasks[0], continuous.Outcome{Status: continuous.TaskCompleted, Table: []byte("x")}))
}
