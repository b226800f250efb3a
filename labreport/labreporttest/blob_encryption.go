package labreporttest

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

// EncryptedBlobs is a fresh, empty store of files that encrypts with a key for each user.
type EncryptedBlobs struct {
	Files labreport.BlobStore
	Keys  *personkey.Keys
	// Kept returns all stored bytes, names and contents.
	Kept func(t testing.TB) []byte
}

// RunBlobEncryption checks the promises of [labreport.BlobStore] about hosts with an encryption key for each user.
// newStore returns a fresh, empty store and registers its own cleanup on t.
func RunBlobEncryption(t *testing.T, newStore func(t testing.TB) EncryptedBlobs) {
	const mark = "Quillonia-zq-document-marker"
	content := strings.Repeat(mark+"\n", 5000)
	stranger := conformance.User("stranger")
	fill := func(t *testing.T) EncryptedBlobs {
		t.Helper()
		s := newStore(t)
		require.NoError(t, s.Files.Put(t.Context(), blobTeam, blobUser, "k/0", strings.NewReader(content)))
		require.NoError(t, s.Files.Put(t.Context(), blobTeam, stranger, "k/1", strings.NewReader("other")))
		return s
	}
	read := func(t *testing.T, s EncryptedBlobs, user healthlab.UserID, key string) (string, error) {
		t.Helper()
		r, err := s.Files.Get(t.Context(), blobTeam, user, key)
		if err != nil {
			return "", err
		}
		b, err := io.ReadAll(r)
		require.NoError(t, r.Close())
		return string(b), err
	}
	t.Run("KeptForm", func(t *testing.T) {
		s := fill(t)
		kept := s.Kept(t)
		require.Greater(t, len(kept), len(content), "the kept form has all files")
		require.False(t, bytes.Contains(kept, []byte(mark)), "a document is kept in clear")
		got, err := read(t, s, blobUser, "k/0")
		require.NoError(t, err)
		require.Equal(t, content, got)
	})
	t.Run("OtherUser", func(t *testing.T) {
		s := fill(t)
		got, err := read(t, s, stranger, "k/0")
		require.ErrorIs(t, err, healthlab.Invalid)
		require.Empty(t, got)
	})
	t.Run("KeyDeleted", func(t *testing.T) {
		s := fill(t)
		require.NoError(t, s.Keys.Delete(t.Context(), personkey.Ref{Team: blobTeam, User: blobUser}))
		got, err := read(t, s, blobUser, "k/0")
		require.ErrorIs(t, err, healthlab.NotFound)
		require.Empty(t, got)
		err = s.Files.Put(t.Context(), blobTeam, blobUser, "k/2", strings.NewReader(content))
		require.ErrorIs(t, err, healthlab.NotFound)
		got, err = read(t, s, stranger, "k/1")
		require.NoError(t, err)
		require.Equal(t, "other", got)
		require.NoError(t, s.Files.Delete(t.Context(), "k/0"))
	})
	t.Run("FirstByteOfAContent", func(t *testing.T) {
		s := newStore(t)
		for _, content := range []string{"", "\x00", "\x01", "\x81", "\x81 is how boxes begin", "\xff"} {
			require.NoError(t, s.Files.Put(t.Context(), blobTeam, blobUser, "k", strings.NewReader(content)))
			got, err := read(t, s, blobUser, "k")
			require.NoError(t, err)
			require.Equal(t, content, got)
		}
	})
}
