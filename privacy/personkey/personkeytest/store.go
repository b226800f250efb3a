package personkeytest

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

// RunStore tests that a store keeps the contract of [personkey.Store]. newStore returns a fresh, empty store and
// registers its own cleanup on t.
func RunStore(t *testing.T, newStore func(t testing.TB) personkey.Store) {
	for name, run := range conformance.Sorted(personKeyCases) {
		t.Run(name, func(t *testing.T) { run(t, newStore(t)) })
	}
}

func personKey(n byte, keyID string) personkey.Entry {
	return personkey.Entry{
		Ref: personkey.Ref{Team: healthlab.TeamID{UUID: uuid.UUID{15: 9}}, User: healthlab.UserID{UUID: uuid.UUID{15: n}}},
		Key: healthlab.Sealed{KeyID: keyID, Box: []byte{n, 7}},
	}
}

func insertKeys(t *testing.T, s personkey.Store, all ...personkey.Entry) {
	t.Helper()
	for _, e := range all {
		kept, err := s.Insert(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, e, kept)
	}
}

func findKeys(t *testing.T, s personkey.Store, refs ...personkey.Ref) []personkey.Entry {
	t.Helper()
	found, err := s.Find(t.Context(), refs)
	require.NoError(t, err)
	slices.SortFunc(found, func(a, b personkey.Entry) int { return bytes.Compare(a.User.UUID[:], b.User.UUID[:]) })
	for i := range found {
		if len(found[i].Key.Box) == 0 {
			found[i].Key.Box = nil // an empty Box and a nil one mean the same
		}
	}
	return found
}

var personKeyCases = map[string]func(*testing.T, personkey.Store){
	"Insert/First": func(t *testing.T, s personkey.Store) {
		a, b := personKey(1, "k1"), personKey(2, "k1")
		insertKeys(t, s, a, b)
		other := a
		other.Key = healthlab.Sealed{KeyID: "k2", Box: []byte("later")}
		kept, err := s.Insert(t.Context(), other)
		require.NoError(t, err)
		require.Equal(t, a, kept, "the first key stays")
		require.Equal(t, []personkey.Entry{a, b}, findKeys(t, s, a.Ref, b.Ref, personKey(3, "").Ref))
	},
	"Insert/Together": func(t *testing.T, s personkey.Store) {
		var all sync.WaitGroup
		kept := make([]personkey.Entry, 8)
		for i := range kept {
			all.Go(func() {
				e := personKey(1, "k1")
				e.Key.Box = []byte{byte(i)}
				var err error
				if kept[i], err = s.Insert(t.Context(), e); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, e := range kept {
			require.Equal(t, kept[0], e, "one key wins")
		}
	},
	"Find/OfTeam": func(t *testing.T, s personkey.Store) {
		a := personKey(1, "k1")
		insertKeys(t, s, a)
		other := a.Ref
		other.Team.UUID[0] = 1
		require.Empty(t, findKeys(t, s, other))
		require.Empty(t, findKeys(t, s))
	},
	"Delete": func(t *testing.T, s personkey.Store) {
		a, never := personKey(1, "k1"), personKey(2, "k1")
		insertKeys(t, s, a)
		require.NoError(t, s.Delete(t.Context(), a.Ref))
		require.NoError(t, s.Delete(t.Context(), a.Ref), "deleting twice is no error")
		require.NoError(t, s.Delete(t.Context(), never.Ref))
		for _, e := range []personkey.Entry{a, never} {
			kept, err := s.Insert(t.Context(), e)
			require.NoError(t, err)
			require.Empty(t, kept.Key.KeyID, "a deleted key stays deleted")
			require.Equal(t, []personkey.Entry{{Ref: e.Ref}}, findKeys(t, s, e.Ref))
		}
		require.NoError(t, s.Replace(t.Context(), a, personKey(1, "k2")))
		require.Equal(t, []personkey.Entry{{Ref: a.Ref}}, findKeys(t, s, a.Ref), "replacing does not bring a key back")
		for _, c := range []struct {
			after personkey.Ref
			n     int
			want  []personkey.Ref
		}{
			{personkey.Ref{}, 9, []personkey.Ref{a.Ref, never.Ref}}, {personkey.Ref{}, 1, []personkey.Ref{a.Ref}},
			{a.Ref, 9, []personkey.Ref{never.Ref}}, {never.Ref, 9, nil},
		} {
			got, err := s.Deleted(t.Context(), c.after, c.n)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		}
	},
	"Rotate": func(t *testing.T, s personkey.Store) {
		a, b, c, gone := personKey(1, "k1"), personKey(2, "k2"), personKey(3, "k1"), personKey(4, "k1")
		insertKeys(t, s, a, b, c, gone)
		require.NoError(t, s.Delete(t.Context(), gone.Ref))
		count := func(want map[string]int) {
			t.Helper()
			got, err := s.Count(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		count(map[string]int{"k1": 2, "k2": 1})
		others := func(after personkey.Ref, n int, want ...personkey.Entry) {
			t.Helper()
			got, err := s.Others(t.Context(), "k2", after, n)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		others(personkey.Ref{}, 9, a, c)
		others(personkey.Ref{}, 1, a)
		others(a.Ref, 9, c)
		next := a
		next.Key = healthlab.Sealed{KeyID: "k2", Box: []byte("again")}
		stale := a
		stale.Key.Box = []byte("not it")
		require.NoError(t, s.Replace(t.Context(), stale, next))
		others(personkey.Ref{}, 1, a)
		require.NoError(t, s.Replace(t.Context(), a, next))
		others(personkey.Ref{}, 9, c)
		require.Equal(t, []personkey.Entry{next}, findKeys(t, s, a.Ref))
		count(map[string]int{"k1": 1, "k2": 2})
	},
	"Context": func(t *testing.T, s personkey.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Insert(ctx, personKey(1, "k1"))
		require.ErrorIs(t, err, context.Canceled)
		_, err = s.Find(ctx, []personkey.Ref{personKey(1, "").Ref})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, s.Delete(ctx, personKey(1, "").Ref), context.Canceled)
		require.Empty(t, findKeys(t, s, personKey(1, "").Ref))
	},
}
