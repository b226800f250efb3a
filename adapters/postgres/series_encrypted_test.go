package postgres_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/personkey"
)

// A store reads samples of both forms, in one series and one tail, and writes its own.
func TestSamplesInBothForms(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	clear := postgres.New(pool, &postgres.Options{Keys: sampleKeys})
	sealing := encrypted.New(pool, nil)
	for name, c := range map[string]struct{ first, second *postgres.Store }{
		"switched on": {clear, sealing}, "switched off": {sealing, clear},
	} {
		t.Run(name, func(t *testing.T) {
			u := newPerson(t, c.first)
			everySample(t, c.first, u)
			want := readSeries(t, c.first, u, heart)
			require.Equal(t, want, readSeries(t, c.second, u, heart))

			mergeInto(t, c.second, u, heart, 2061, 1, 99) // behind the pieces of the other form
			require.Equal(t, 1, mergeInto(t, c.second, u, heart, 5, 1, 98).Changed)
			got := readSeries(t, c.first, u, heart)
			require.Len(t, got, len(want)+1)
			require.EqualValues(t, 98, got[5].Value)
			require.EqualValues(t, 99, got[2061].Value)
			require.NoError(t, postgres.Fold(t.Context(), c.second, u, 2))
			require.Equal(t, got, readSeries(t, c.second, u, heart))
			consistent(t, pool)
		})
	}
}

// What a store wrote encrypted stays unread without keys, and where the key was deleted.
func TestEncryptedSamplesNeedTheirKey(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s, keyless := encrypted.New(pool, nil), postgres.New(pool, nil)
	u := newPerson(t, s)
	everySample(t, s, u)
	look := func(s *postgres.Store) error {
		return s.Data().View(t.Context(), u.Team, u.ID, func(v healthdata.View) error {
			_, err := v.Series(t.Context(), healthdata.SeriesQuery{Resources: []string{heart.Resource}})
			return err
		})
	}
	require.NoError(t, look(s))
	require.ErrorIs(t, look(keyless), healthlab.Unavailable)

	require.NoError(t, sampleKeys.Delete(t.Context(), personkey.Ref{Team: u.Team, User: u.ID}))
	require.ErrorIs(t, look(s), personkey.ErrErased)
	for at, n := range map[int]int{5: 1, 3000: 1, 4000: 2000} {
		err := s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{minutes(heart, at, n, 1)}, nil)
		require.ErrorIs(t, err, healthlab.NotFound)
	}
	require.ErrorIs(t, postgres.Fold(t.Context(), s, u, 1), personkey.ErrErased)
	eraseNow(t, s, u)
}

// One person without a key does not keep others of a group from being written.
func TestGroupOfEncryptedSamples(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := encrypted.New(pool, nil)
	people := make([]healthdata.User, 8)
	for i := range people {
		people[i] = newPerson(t, s)
		mergeInto(t, s, people[i], heart, 0, 1, 60)
	}
	require.NoError(t, sampleKeys.Delete(t.Context(), personkey.Ref{Team: people[3].Team, User: people[3].ID}))
	var all sync.WaitGroup
	for i, u := range people {
		all.Go(func() {
			for at := 1; at <= 40; at++ {
				err := s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{minutes(heart, at, 1, 60)}, nil)
				if (i == 3) != errors.Is(err, healthlab.NotFound) || i != 3 && err != nil {
					t.Error(i, err)
				}
			}
		})
	}
	all.Wait()
	for i, u := range people {
		if i != 3 {
			require.Len(t, readSeries(t, s, u, heart), 41)
		}
	}
}
