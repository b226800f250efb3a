package personkey_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

// counted is a store that counts its calls of Find and stops replacing after some.
type counted struct {
	personkey.Store
	finds, replaces int
	left            int
}

var errStopped = errors.New("stopped")

func (c *counted) Find(ctx context.Context, refs []personkey.Ref) ([]personkey.Entry, error) {
	c.finds++
	return c.Store.Find(ctx, refs)
}

func (c *counted) Replace(ctx context.Context, was, e personkey.Entry) error {
	if c.left--; c.left < 0 {
		return errStopped
	}
	c.replaces++
	return c.Store.Replace(ctx, was, e)
}

func sealer(t testing.TB, ids ...string) healthlab.Sealer {
	t.Helper()
	keys := map[string][]byte{}
	for _, id := range ids {
		keys[id] = bytes.Repeat([]byte(id), 32)[:32]
	}
	s, err := healthlab.NewAESSealer(ids[len(ids)-1], keys)
	require.NoError(t, err)
	return s
}

func person() personkey.Ref {
	return personkey.Ref{Team: healthlab.TeamID{UUID: uuid.New()}, User: healthlab.UserID{UUID: uuid.New()}}
}

func TestSeal_opensOnlyUnchangedDataInItsOwnRow(t *testing.T) {
	store := memory.NewPersonKeys()
	keys, ref, plain := personkey.New(store, sealer(t, "k1"), nil), person(), []byte(`{"first_name":"Quillon"}`)
	box, err := keys.Seal(t.Context(), ref, "order/1", plain)
	require.NoError(t, err)
	require.True(t, personkey.Sealed(box))
	require.False(t, bytes.Contains(box, []byte("Quillon")))
	again, err := keys.Seal(t.Context(), ref, "order/1", plain)
	require.NoError(t, err)
	require.NotEqual(t, box, again)

	other := personkey.New(store, sealer(t, "k1"), nil)
	got, err := other.Open(t.Context(), ref, "order/1", box)
	require.NoError(t, err)
	require.Equal(t, plain, got)
	got, err = keys.Open(t.Context(), ref, "order/1", nil)
	require.NoError(t, err)
	require.Empty(t, got)

	stranger := person()
	_, err = keys.Seal(t.Context(), stranger, "order/1", plain)
	require.NoError(t, err)
	for name, open := range map[string]func() ([]byte, error){
		"other row":    func() ([]byte, error) { return keys.Open(t.Context(), ref, "order/2", box) },
		"in clear":     func() ([]byte, error) { return keys.Open(t.Context(), ref, "order/1", plain) },
		"other person": func() ([]byte, error) { return keys.Open(t.Context(), stranger, "order/1", box) },
		"cut":          func() ([]byte, error) { return keys.Open(t.Context(), ref, "order/1", box[:9]) },
		"changed":      func() ([]byte, error) { return keys.Open(t.Context(), ref, "order/1", append(bytes.Clone(box), 0)) },
	} {
		got, err := open()
		require.ErrorIs(t, err, healthlab.Invalid, name)
		require.Empty(t, got)
		require.NotContains(t, err.Error(), "Quillon")
	}
}

func TestKeys_nilKeysStoreUnencrypted(t *testing.T) {
	var none *personkey.Keys
	box, err := none.Seal(t.Context(), person(), "order/1", []byte("{}"))
	require.NoError(t, err)
	require.Equal(t, []byte("{}"), box)
	plain, err := none.Open(t.Context(), person(), "order/1", box)
	require.NoError(t, err)
	require.Equal(t, box, plain)
	require.NoError(t, none.Load(t.Context(), []personkey.Ref{person()}))
	require.NoError(t, none.Delete(t.Context(), person()))
	_, err = none.Open(t.Context(), person(), "order/1", []byte{0x81, 2, 3})
	require.ErrorIs(t, err, healthlab.Unavailable)
}

func TestDelete_makesSealedDataUnreadable(t *testing.T) {
	store, now := memory.NewPersonKeys(), time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	opts := &personkey.Options{Now: func() time.Time { return now }}
	keys, elsewhere, ref := personkey.New(store, sealer(t, "k1"), opts), personkey.New(store, sealer(t, "k1"), opts), person()
	box, err := keys.Seal(t.Context(), ref, "order/1", []byte("{}"))
	require.NoError(t, err)
	_, err = elsewhere.Open(t.Context(), ref, "order/1", box)
	require.NoError(t, err)

	require.NoError(t, keys.Delete(t.Context(), ref))
	_, err = keys.Open(t.Context(), ref, "order/1", box)
	require.ErrorIs(t, err, personkey.ErrErased)
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = keys.Seal(t.Context(), ref, "order/1", []byte("{}"))
	require.ErrorIs(t, err, personkey.ErrErased, "no second key is made")
	now = now.Add(5 * time.Minute)
	_, err = elsewhere.Open(t.Context(), ref, "order/1", box)
	require.ErrorIs(t, err, personkey.ErrErased, "other processes forget the key after its lifetime")
	require.NoError(t, elsewhere.Load(t.Context(), []personkey.Ref{ref}), "deleted keys are passed over")
}

func TestKeys_cacheIsBounded(t *testing.T) {
	store := &counted{Store: memory.NewPersonKeys()}
	keys := personkey.New(store, sealer(t, "k1"), &personkey.Options{Cached: 2})
	var refs []personkey.Ref
	for range 5 {
		refs = append(refs, person())
		_, err := keys.Seal(t.Context(), refs[len(refs)-1], "x", nil)
		require.NoError(t, err)
	}
	store.finds = 0
	for _, ref := range refs {
		_, err := keys.Seal(t.Context(), ref, "x", nil)
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, store.finds, 3, "at most two keys are remembered")
}

func TestLoad_readsAllKeysInOneRoundTrip(t *testing.T) {
	kept := memory.NewPersonKeys()
	var refs []personkey.Ref
	var boxes [][]byte
	for range 50 {
		ref := person()
		box, err := personkey.New(kept, sealer(t, "k1"), nil).Seal(t.Context(), ref, "x", []byte("{}"))
		require.NoError(t, err)
		refs, boxes = append(refs, ref), append(boxes, box)
	}
	store := &counted{Store: kept}
	keys := personkey.New(store, sealer(t, "k1"), nil)
	require.NoError(t, keys.Load(t.Context(), append(refs, refs...)))
	for i, ref := range refs {
		_, err := keys.Open(t.Context(), ref, "x", boxes[i])
		require.NoError(t, err)
	}
	require.Equal(t, 1, store.finds)
}

func TestTokens_dependOnTheTeam(t *testing.T) {
	keys, a, b := personkey.New(memory.NewPersonKeys(), sealer(t, "k1"), nil), person(), person()
	of := func(team healthlab.TeamID, terms ...string) []int64 {
		got, err := keys.Tokens(t.Context(), team, terms)
		require.NoError(t, err)
		return got
	}
	require.Equal(t, of(a.Team, "name ana", "name roe"), of(a.Team, "name ana", "name roe"))
	require.NotEqual(t, of(a.Team, "name ana"), of(b.Team, "name ana"), "teams have different tokens")
	require.NotEqual(t, of(a.Team, "name ana"), of(a.Team, "born ana"))
	require.Empty(t, of(a.Team))

	one, err := keys.Digest(t.Context(), a, []byte("x"))
	require.NoError(t, err)
	two, err := keys.Digest(t.Context(), b, []byte("x"))
	require.NoError(t, err)
	require.Len(t, one, 32)
	require.NotEqual(t, one, two)
}

// A rotation that is stopped goes on where it was; reads go on meanwhile, and afterwards the
// older key is not needed.
func TestRotate_continuesAfterAStopAndFreesTheOldKey(t *testing.T) {
	const n = 1200
	store := &counted{Store: memory.NewPersonKeys(), left: n}
	before := personkey.New(store, sealer(t, "k1"), nil)
	var refs []personkey.Ref
	var boxes [][]byte
	for i := range n {
		ref := person()
		if i == 0 {
			ref = personkey.Ref{} // the operator's
		}
		box, err := before.Seal(t.Context(), ref, "x", []byte("{}"))
		require.NoError(t, err)
		refs, boxes = append(refs, ref), append(boxes, box)
	}
	both := personkey.New(store, sealer(t, "k1", "k2"), nil)
	store.left = 700
	require.ErrorIs(t, both.Rotate(t.Context(), nil), errStopped)
	counts, err := store.Count(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]int{"k1": n - 700, "k2": 700}, counts)
	for i := range refs {
		_, err := personkey.New(store, sealer(t, "k1", "k2"), nil).Open(t.Context(), refs[i], "x", boxes[i])
		require.NoError(t, err)
	}

	store.left = n
	var last personkey.Progress
	require.NoError(t, both.Rotate(t.Context(), func(p personkey.Progress) { last = p }))
	require.Equal(t, personkey.Progress{Done: n - 700, Total: n - 700}, last)
	require.Equal(t, n, store.replaces)
	after := personkey.New(store, sealer(t, "k2"), nil)
	for i := range refs {
		got, err := after.Open(t.Context(), refs[i], "x", boxes[i])
		require.NoError(t, err)
		require.Equal(t, []byte("{}"), got)
	}
	_, err = personkey.New(store, sealer(t, "k1"), nil).Open(t.Context(), refs[0], "x", boxes[0])
	require.ErrorIs(t, err, healthlab.Unavailable)
}

func TestKeys_areSafeForConcurrentUse(t *testing.T) {
	keys := personkey.New(memory.NewPersonKeys(), sealer(t, "k1"), &personkey.Options{Cached: 3})
	refs := []personkey.Ref{person(), person(), person(), person(), person()}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			ref, plain := refs[i%len(refs)], fmt.Appendf(nil, `{"n":%d}`, i)
			box, err := keys.Seal(t.Context(), ref, "x", plain)
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := keys.Open(t.Context(), ref, "x", box); err != nil || !bytes.Equal(got, plain) {
				t.Error("a box does not open", err)
			}
		})
	}
	all.Wait()
	require.Equal(t, "[redacted]", fmt.Sprintf("%v", keys))
	require.Equal(t, "[redacted]", fmt.Sprintf("%#v", keys))
}

// BenchmarkSealOpen measures what encryption costs for a sample that is appended, a tail and a
// chunk of a series.
func BenchmarkSealOpen(b *testing.B) {
	keys, ref := personkey.New(memory.NewPersonKeys(), sealer(b, "k1"), nil), person()
	for _, size := range []int{24, 1500, 8192} {
		plain := bytes.Repeat([]byte{2}, size)
		box, err := keys.Seal(b.Context(), ref, "x", plain)
		require.NoError(b, err)
		b.Run(fmt.Sprint("Seal/", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, err := keys.Seal(b.Context(), ref, "x", plain); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprint("Open/", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, err := keys.Open(b.Context(), ref, "x", box); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
