package labreporttest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/labreport"
)

// blobTeam and blobUser own the files of the suite.
var blobTeam, blobUser = conformance.Team("files"), conformance.User("files")

// RunBlobStore runs the contract of [labreport.BlobStore], and of every interface with the same
// methods. newStore returns a fresh, empty store.
func RunBlobStore(t *testing.T, newStore func(t *testing.T) labreport.BlobStore) {
	put := func(t *testing.T, s labreport.BlobStore, key string, content []byte) {
		t.Helper()
		require.NoError(t, s.Put(t.Context(), blobTeam, blobUser, key, bytes.NewReader(content)))
	}
	missing := func(t *testing.T, s labreport.BlobStore, key string) {
		t.Helper()
		_, err := s.Get(t.Context(), blobTeam, blobUser, key)
		require.ErrorIs(t, err, healthlab.NotFound)
	}
	t.Run("RoundTrip", func(t *testing.T) {
		s := newStore(t)
		content := bytes.Repeat([]byte{0, 1, 255}, 100_000)
		put(t, s, "lab-reports/t/j/0", content)
		put(t, s, "lab-reports/t/j/1", []byte("other"))
		put(t, s, "nothing", nil)
		require.Equal(t, content, readBlob(t, s, "lab-reports/t/j/0"))
		require.Empty(t, readBlob(t, s, "nothing"))
	})
	t.Run("Large", func(t *testing.T) {
		s := newStore(t)
		content := noise(17<<20 + 5)
		put(t, s, "large", content)
		require.True(t, bytes.Equal(content, readBlob(t, s, "large")))
	})
	t.Run("Put/SmallReads", func(t *testing.T) {
		s := newStore(t)
		content := noise(5000)
		require.NoError(t, s.Put(t.Context(), blobTeam, blobUser, "k", iotest.OneByteReader(bytes.NewReader(content))))
		require.Equal(t, content, readBlob(t, s, "k"))
	})
	t.Run("Put/Replaces", func(t *testing.T) {
		s := newStore(t)
		put(t, s, "k/0", noise(1000))
		put(t, s, "k/0", []byte("newer"))
		require.Equal(t, []byte("newer"), readBlob(t, s, "k/0"))
	})
	t.Run("Put/ReaderFails", func(t *testing.T) {
		s := newStore(t)
		fault := errors.New("the network ended")
		broken := func() io.Reader { return io.MultiReader(bytes.NewReader(noise(300_000)), iotest.ErrReader(fault)) }
		require.ErrorIs(t, s.Put(t.Context(), blobTeam, blobUser, "new", broken()), fault)
		missing(t, s, "new")
		put(t, s, "old", []byte("whole"))
		require.ErrorIs(t, s.Put(t.Context(), blobTeam, blobUser, "old", broken()), fault)
		require.Equal(t, []byte("whole"), readBlob(t, s, "old"))
	})
	t.Run("Put/ContextEnds", func(t *testing.T) {
		s := newStore(t)
		ctx, stop := context.WithCancel(t.Context())
		ending := io.MultiReader(bytes.NewReader(noise(300_000)), readerFunc(func([]byte) (int, error) {
			stop()
			return 0, io.EOF
		}))
		require.ErrorIs(t, s.Put(ctx, blobTeam, blobUser, "k", ending), context.Canceled)
		missing(t, s, "k")
		_, err := s.Get(ctx, blobTeam, blobUser, "k")
		require.ErrorIs(t, err, context.Canceled)
		put(t, s, "k", []byte("x"))
		require.ErrorIs(t, s.Delete(ctx, "k"), context.Canceled)
		require.Equal(t, []byte("x"), readBlob(t, s, "k"))
	})
	// A read during writes returns one of their contents.
	t.Run("Put/NeverAPart", func(t *testing.T) {
		s := newStore(t)
		contents := [][]byte{bytes.Repeat([]byte("a"), 150_000), bytes.Repeat([]byte("b"), 90_000), []byte("c")}
		put(t, s, "k", contents[0])
		var writers, readers sync.WaitGroup
		for i := range 3 {
			writers.Go(func() {
				for n := range 10 {
					if err := s.Put(context.Background(), blobTeam, blobUser, "k", bytes.NewReader(contents[(i+n)%3])); err != nil {
						t.Error(err)
					}
				}
			})
		}
		written := make(chan struct{})
		for range 2 {
			readers.Go(func() {
				for {
					got, err := fetchBlob(context.Background(), s, "k")
					if err != nil {
						t.Error(err)
					}
					if len(got) == 0 || !bytes.Equal(got, bytes.Repeat(got[:1], len(got))) || len(got) != len(contents[got[0]-'a']) {
						t.Errorf("a part of %d bytes", len(got))
					}
					select {
					case <-written:
						return
					default:
					}
				}
			})
		}
		writers.Wait()
		close(written)
		readers.Wait()
	})
	t.Run("Get/Missing", func(t *testing.T) {
		s := newStore(t)
		missing(t, s, "k")
		put(t, s, "k/1", []byte("x"))
		missing(t, s, "k")
		missing(t, s, "k/1/2")
	})
	t.Run("Delete", func(t *testing.T) {
		s := newStore(t)
		put(t, s, "k/0", []byte("x"))
		put(t, s, "k/1", []byte("y"))
		for range 2 {
			require.NoError(t, s.Delete(t.Context(), "k/0"))
		}
		missing(t, s, "k/0")
		require.Equal(t, []byte("y"), readBlob(t, s, "k/1"))
		put(t, s, "k/0", []byte("again"))
		require.Equal(t, []byte("again"), readBlob(t, s, "k/0"))
	})
	t.Run("Delete/WhileOthersWriteBeside", func(t *testing.T) {
		s := newStore(t)
		var all sync.WaitGroup
		for _, key := range []string{"k/a/0", "k/b/0"} {
			all.Go(func() {
				for range 20 {
					if err := s.Put(context.Background(), blobTeam, blobUser, key, strings.NewReader("x")); err != nil {
						t.Error(err)
					}
					if err := s.Delete(context.Background(), key); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		missing(t, s, "k/a/0")
		missing(t, s, "k/b/0")
	})
	t.Run("Keys/OneBelowAnother", func(t *testing.T) {
		s := newStore(t)
		put(t, s, "a", []byte("1"))
		put(t, s, "a/b", []byte("2"))
		put(t, s, "a/b/c", []byte("3"))
		require.NoError(t, s.Delete(t.Context(), "a/b"))
		require.Equal(t, []byte("1"), readBlob(t, s, "a"))
		require.Equal(t, []byte("3"), readBlob(t, s, "a/b/c"))
	})
	t.Run("Keys/Case", func(t *testing.T) {
		s := newStore(t)
		put(t, s, "Key", []byte("1"))
		missing(t, s, "key")
	})
	t.Run("Keys/Refused", func(t *testing.T) {
		s := newStore(t)
		for _, key := range []string{"", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a b", "a.b", "a\x00", "ä", "a\nb", strings.Repeat("k", 513)} {
			require.ErrorIs(t, s.Put(t.Context(), blobTeam, blobUser, key, strings.NewReader("x")), healthlab.Invalid)
			_, err := s.Get(t.Context(), blobTeam, blobUser, key)
			require.ErrorIs(t, err, healthlab.Invalid)
			require.ErrorIs(t, s.Delete(t.Context(), key), healthlab.Invalid)
		}
		long := strings.Repeat("k", 200) + "/" + strings.Repeat("Z-9_", 50)
		put(t, s, long, []byte("x"))
		require.Equal(t, []byte("x"), readBlob(t, s, long))
	})
}

// fetchBlob reads a whole file.
func fetchBlob(ctx context.Context, s labreport.BlobStore, key string) ([]byte, error) {
	r, err := s.Get(ctx, blobTeam, blobUser, key)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

func readBlob(t *testing.T, s labreport.BlobStore, key string) []byte {
	t.Helper()
	b, err := fetchBlob(t.Context(), s, key)
	require.NoError(t, err)
	return b
}

// noise returns content that cannot be compressed.
func noise(n int) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
