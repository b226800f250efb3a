package postgres_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/orders/labjournal/labjournaltest"
)

func runLabJournal(t *testing.T, newStore func(t testing.TB) *postgres.Store) {
	labjournaltest.RunStore(t, func(t testing.TB) labjournaltest.Harness {
		s := newStore(t)
		return labjournaltest.Harness{Journal: s.LabJournal(), Users: s.Users()}
	})
}

func TestLabJournal(t *testing.T) {
	t.Parallel()
	runLabJournal(t, func(t testing.TB) *postgres.Store { return postgres.New(pgtest.Pool(t), sealed()) })
}

// The suite passes for a role that row-level security holds for.
func TestLabJournalWithRowSecurity(t *testing.T) {
	skipRowSecurity(t)
	t.Parallel()
	runLabJournal(t, newRestricted)
}

func labRecordOf(u healthdata.User) labjournal.Record {
	return labjournal.Record{Number: u.ID.String(), Team: u.Team, User: u.ID, Doc: []byte("{}")}
}

// reported is a delivery that says something of the order of labRecordOf.
func reported(ctx context.Context, s *postgres.Store, u healthdata.User) error {
	d := labjournal.Delivery{Key: "delivery of " + u.ID.String(), At: noon.Time, Team: u.Team, Raw: []byte("MSH")}
	_, err := s.LabJournal().Take(ctx, "north", d, []string{u.ID.String()}, func(map[string]*labjournal.Record) (labjournal.Outcome, error) {
		return labjournal.Outcome{Messages: []labjournal.Message{{Team: u.Team, User: u.ID, Doc: []byte("{}")}}}, nil
	})
	return err
}

// report has a laboratory report a result of a user.
func report(t testing.TB, s *postgres.Store, u healthdata.User) {
	t.Helper()
	_, err := s.LabJournal().Open(t.Context(), "north", labRecordOf(u))
	require.NoError(t, err)
	require.NoError(t, reported(t.Context(), s, u))
}

var journalWrites = map[string]prepare{
	"LabJournal.Feed": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		lab := "lab of " + u.ID.String()
		unknown := func(map[string]*labjournal.Record) (labjournal.Outcome, error) {
			return labjournal.Outcome{Messages: []labjournal.Message{{Team: u.Team, Doc: []byte("{}")}}}, nil
		}
		_, err := s.LabJournal().Take(t.Context(), lab, labjournal.Delivery{Key: "one", At: noon.Time, Team: u.Team, Raw: []byte("MSH")}, nil, unknown)
		require.NoError(t, err)
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.LabJournal().Feed(ctx, lab, 1, 10)
			return err
		}
	},
	"LabJournal.Open": func(_ testing.TB, _ *postgres.Store, u healthdata.User) write {
		return func(ctx context.Context, s *postgres.Store) error {
			_, err := s.LabJournal().Open(ctx, "north", labRecordOf(u))
			return err
		}
	},
	"LabJournal.Take": func(t testing.TB, s *postgres.Store, u healthdata.User) write {
		_, err := s.LabJournal().Open(t.Context(), "north", labRecordOf(u))
		require.NoError(t, err)
		return func(ctx context.Context, s *postgres.Store) error { return reported(ctx, s, u) }
	},
}
