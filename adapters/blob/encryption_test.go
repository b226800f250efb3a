package blob_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/blob"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/labreporttest"
	"github.com/healthlab-dev/healthlab/personkey"
)

// personal returns a store that encrypts with keys of persons.
func personal(t testing.TB, place blob.Place, host healthlab.Sealer) (*blob.Store, *personkey.Keys) {
	t.Helper()
	keys := personkey.New(memory.NewPersonKeys(), host, nil)
	s, err := blob.New(place, host, &blob.Options{Keys: keys})
	require.NoError(t, err)
	return s, keys
}

func TestEncryption(t *testing.T) {
	for name, place := range places(t) {
		t.Run(name, func(t *testing.T) {
			labreporttest.RunBlobEncryption(t, func(t testing.TB) labreporttest.EncryptedBlobs {
				p := place(t)
				s, keys := personal(t, p, sealer(t, "a"))
				return labreporttest.EncryptedBlobs{Files: s, Keys: keys, Kept: func(t testing.TB) []byte {
					var kept []byte
					require.NoError(t, p.List(t.Context(), func(name string) error {
						f, err := p.Open(t.Context(), name)
						if err != nil {
							return err
						}
						b, err := io.ReadAll(f)
						kept = append(append(kept, name...), b...)
						return errors.Join(err, f.Close())
					}))
					return kept
				}}
			})
			labreporttest.RunBlobStore(t, func(t *testing.T) labreport.BlobStore {
				s, _ := personal(t, place(t), sealer(t, "a"))
				return s
			})
		})
	}
}

// What was written before there were keys of persons opens, and the next write encrypts it with
// the key of its user.
func TestFilesOfBefore(t *testing.T) {
	place := directory(t, t.TempDir())
	require.NoError(t, store(t, place, sealer(t, "a")).Put(t.Context(), team, user, "k", strings.NewReader("x")))
	s, keys := personal(t, place, sealer(t, "a"))
	read := func() (string, error) {
		f, err := s.Get(t.Context(), team, user, "k")
		if err != nil {
			return "", err
		}
		b, err := io.ReadAll(f)
		return string(b), errors.Join(err, f.Close())
	}
	got, err := read()
	require.NoError(t, err)
	require.Equal(t, "x", got)
	counts, err := s.Keys(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]int{"a": 1}, counts)

	require.NoError(t, s.Put(t.Context(), team, user, "k", strings.NewReader("y")))
	counts, err = s.Keys(t.Context())
	require.NoError(t, err)
	require.Empty(t, counts)
	require.NoError(t, keys.Delete(t.Context(), personkey.Ref{Team: team, User: user}))
	_, err = read()
	require.ErrorIs(t, err, personkey.ErrErased)

	_, err = store(t, place, sealer(t, "a")).Get(t.Context(), team, user, "k")
	require.ErrorIs(t, err, healthlab.Unavailable, "a store without keys")
}
