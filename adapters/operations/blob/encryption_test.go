package blob_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/operations/blob"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/labreporttest"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

// personal returns a store that encrypts with keys of persons.
func personal(t testing.TB, place blob.Place, host healthlab.Sealer) (*blob.Store, *personkey.Keys) {
	t.Helper()
	keys := personkey.New(memory.NewPersonKeys(), host, nil)
	s, err := blob.New(place, host, &blob.Options{Keys: keys})
	require.NoError(t, err)
	return s, keys
}

func TestStoreWithPersonKeys_passesTheEncryptionSuite(t *testing.T) {
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

// A store with keys of persons opens no file of the host's sealer, and the other way round.
func TestStoreWithPersonKeys_opensNoFileOfTheHostsSealer(t *testing.T) {
	place := directory(t, t.TempDir())
	host := store(t, place, sealer(t, "a"))
	s, keys := personal(t, place, sealer(t, "a"))
	require.NoError(t, host.Put(t.Context(), team, user, "host", strings.NewReader("x")))
	require.NoError(t, s.Put(t.Context(), team, user, "person", strings.NewReader("y")))
	_, err := s.Get(t.Context(), team, user, "host")
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = host.Get(t.Context(), team, user, "person")
	require.ErrorIs(t, err, healthlab.Unavailable)

	require.NoError(t, keys.Delete(t.Context(), personkey.Ref{Team: team, User: user}))
	_, err = s.Get(t.Context(), team, user, "person")
	require.ErrorIs(t, err, personkey.ErrErased)
}
