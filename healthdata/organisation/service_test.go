package organisation_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
)

func newService(t *testing.T) *organisation.Service {
	t.Helper()
	n := 0
	s, err := organisation.New(memory.New(nil).Organisations(), &organisation.Options{NewKey: func() (string, string, error) {
		n++
		return fmt.Sprintf("sk_us_MARK%d", n), "sk_us_…", nil
	}, CheckKey: func(key string) error {
		if !strings.HasPrefix(key, "sk_us_") {
			return fmt.Errorf("%w: an API key must begin with sk_us_", healthlab.Invalid)
		}
		return nil
	}})
	require.NoError(t, err)
	return s
}

func TestCreateTeam_refusesNamesWithUnusualCharacters(t *testing.T) {
	s := newService(t)
	for name, good := range map[string]bool{
		"A": true, "Åse & Łódź (Nord), a/b: l’x'y‘z | 1_2-3": true, "e\u0301": true, strings.Repeat("é", 80): true,
		"": false, " ": false, strings.Repeat("é", 81): false, "Ω": false, "a;b": false, "a\tb": false, "a\xff": false, "日本": false, "a.b": false, "×": false,
	} {
		_, err := s.CreateTeam(t.Context(), uuid.New(), organisation.NewTeam{Name: name})
		if good {
			require.NoError(t, err, "%q", name)
			continue
		}
		var bad *healthlab.InvalidError
		require.ErrorAs(t, err, &bad, "%q", name)
		require.Equal(t, []any{"name"}, bad.Problems[0].Path)
	}
}

// A key of the configuration may be admitted at every start, but for one team only.
func TestAdmitKey_isIdempotentForOneTeamOnly(t *testing.T) {
	s := newService(t)
	org := uuid.New()
	a, err := s.CreateTeam(t.Context(), org, organisation.NewTeam{Name: "A"})
	require.NoError(t, err)
	b, err := s.CreateTeam(t.Context(), org, organisation.NewTeam{Name: "B"})
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, s.AdmitKey(t.Context(), a.ID, "of the configuration", "sk_us_secret", "…"))
	}
	keys, err := s.Keys(t.Context(), a.ID)
	require.NoError(t, err)
	require.Len(t, keys, 1)
	require.ErrorIs(t, s.AdmitKey(t.Context(), b.ID, "of the configuration", "sk_us_secret", "…"), healthlab.Conflict)
	require.ErrorIs(t, s.AdmitKey(t.Context(), b.ID, "", "sk_us_other", "…"), healthlab.Invalid)
	err = s.AdmitKey(t.Context(), b.ID, "of the configuration", "MARKED", "…")
	require.ErrorIs(t, err, healthlab.Invalid)
	require.ErrorContains(t, err, "must begin with sk_us_")
	require.NotContains(t, err.Error(), "MARKED")
	unchecked, err := organisation.New(memory.New(nil).Organisations(), &organisation.Options{NewKey: func() (string, string, error) { return "", "", nil }})
	require.NoError(t, err)
	require.ErrorContains(t, unchecked.AdmitKey(t.Context(), a.ID, "first", "sk_us_secret", "…"), "Options.CheckKey")
	require.NotContains(t, slog.AnyValue(keys[0]).Resolve().String(), "configuration")
}

func TestCreateKey_failedKeySourceStoresNoKey(t *testing.T) {
	_, err := organisation.New(memory.New(nil).Organisations(), nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	own := errors.New("no entropy")
	s, err := organisation.New(memory.New(nil).Organisations(), &organisation.Options{NewKey: func() (string, string, error) { return "", "", own }})
	require.NoError(t, err)
	team, err := s.CreateTeam(t.Context(), uuid.New(), organisation.NewTeam{Name: "A"})
	require.NoError(t, err)
	_, _, err = s.CreateKey(t.Context(), team.Org, team.ID, organisation.NewKey{Label: "a"})
	require.ErrorIs(t, err, own)
	keys, err := s.Keys(t.Context(), team.ID)
	require.NoError(t, err)
	require.Empty(t, keys)
}

// A host with one team makes it at every start.
func TestEnsureTeam_createsTheTeamOnce(t *testing.T) {
	s := newService(t)
	org, id := uuid.New(), healthlab.TeamID{UUID: uuid.New()}
	_, err := s.Find(t.Context(), id)
	var rule *healthlab.RuleError
	require.ErrorAs(t, err, &rule)
	require.ErrorIs(t, err, healthlab.NotFound)
	require.Equal(t, organisation.RuleTeamNotFound, rule.Type)
	first, err := s.EnsureTeam(t.Context(), org, organisation.NewTeam{ID: id, Name: "Clinic"})
	require.NoError(t, err)
	again, err := s.EnsureTeam(t.Context(), org, organisation.NewTeam{ID: id, Name: "Renamed"})
	require.NoError(t, err)
	require.Equal(t, first, again)
	_, err = s.EnsureTeam(t.Context(), uuid.New(), organisation.NewTeam{ID: id, Name: "Clinic"})
	require.ErrorIs(t, err, healthlab.Conflict)
	_, err = s.EnsureTeam(t.Context(), org, organisation.NewTeam{Name: "Clinic"})
	require.ErrorIs(t, err, healthlab.Invalid)
	require.NoError(t, s.DeleteTeam(t.Context(), org, id))
	_, err = s.EnsureTeam(t.Context(), org, organisation.NewTeam{ID: id, Name: "Clinic"})
	require.ErrorIs(t, err, healthlab.Conflict)
}

// slowStore takes a second to find keys, and counts how often it did.
type slowStore struct {
	organisation.Store
	reads atomic.Int64
}

func (s *slowStore) FindKeys(ctx context.Context, sums [][sha256.Size]byte) (map[[sha256.Size]byte]organisation.Key, error) {
	found, err := s.Store.FindKeys(ctx, sums)
	s.reads.Add(1)
	time.Sleep(time.Second)
	return found, err
}

// Concurrent callers share a read, and each gets the answer for its own key as of its call.
func TestFindKey_concurrentCallsShareAReadThatBeginsAfterThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowStore{Store: memory.New(nil).Organisations()}
		n := 0
		s, err := organisation.New(slow, &organisation.Options{NewKey: func() (string, string, error) {
			n++
			return fmt.Sprint("sk_us_", n), "sk_us_…", nil
		}})
		require.NoError(t, err)
		org := uuid.New()
		team, err := s.CreateTeam(t.Context(), org, organisation.NewTeam{Name: "A"})
		require.NoError(t, err)
		var keys []organisation.Key
		var sums [][sha256.Size]byte
		for range 5 {
			k, secret, err := s.CreateKey(t.Context(), org, team.ID, organisation.NewKey{Label: "a"})
			require.NoError(t, err)
			keys, sums = append(keys, k), append(sums, sha256.Sum256([]byte(secret)))
		}
		var calls sync.WaitGroup
		find := func(i int, known bool) {
			calls.Go(func() {
				got, err := s.FindKey(t.Context(), sums[i])
				if !known {
					require.ErrorIs(t, err, healthlab.NotFound)
					return
				}
				require.NoError(t, err)
				require.Equal(t, keys[i].ID, got.ID)
			})
		}
		sums = append(sums, [sha256.Size]byte{1})
		find(0, true)
		synctest.Wait() // its read has begun
		require.NoError(t, s.DeleteKey(t.Context(), team.ID, keys[0].ID))
		find(0, false)
		find(5, false)
		for i := 1; i < 5; i++ {
			find(i, true)
			find(i, true)
		}
		calls.Wait()
		require.EqualValues(t, 2, slow.reads.Load())
	})
}
