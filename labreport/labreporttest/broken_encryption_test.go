package labreporttest_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/labreport/labreporttest"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

// safe is an encrypting BlobStore to break.
type safe struct {
	files map[string][]byte
	keys  *personkey.Keys
	owner func(personkey.Ref) personkey.Ref // whose key a file is under
	clear bool                              // files are kept as they came
	bare  bool                              // what looks encrypted is kept as it came
}

func (s *safe) Put(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string, content io.Reader) error {
	b, err := io.ReadAll(content)
	if err == nil && !s.clear && (!s.bare || !personkey.Sealed(b)) {
		b, err = s.keys.Seal(ctx, s.owner(personkey.Ref{Team: team, User: user}), key, b)
	}
	if err == nil {
		s.files[key] = b
	}
	return err
}

func (s *safe) Get(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string) (io.ReadCloser, error) {
	b, err := s.keys.Open(ctx, s.owner(personkey.Ref{Team: team, User: user}), key, s.files[key])
	return io.NopCloser(bytes.NewReader(b)), err
}

func (s *safe) Delete(_ context.Context, key string) error {
	delete(s.files, key)
	return nil
}

// encryption returns the suite over a store that was broken in one way.
func encryption(how func(*safe)) func(*testing.T) {
	return func(t *testing.T) {
		labreporttest.RunBlobEncryption(t, func(t testing.TB) labreporttest.EncryptedBlobs {
			host, err := healthlab.NewAESSealer("k", map[string][]byte{"k": make([]byte, 32)})
			require.NoError(t, err)
			keys := personkey.New(memory.NewPersonKeys(), host, nil)
			s := &safe{files: map[string][]byte{}, keys: keys, owner: func(ref personkey.Ref) personkey.Ref { return ref }}
			how(s)
			return labreporttest.EncryptedBlobs{Files: s, Keys: keys, Kept: func(testing.TB) (kept []byte) {
				for key, b := range s.files {
					kept = append(append(kept, key...), b...)
				}
				return kept
			}}
		})
	}
}

func TestEncryption_unbrokenPassesTheSuite(t *testing.T) { encryption(func(*safe) {})(t) }

var brokenEncryption = []conformance.Broken{
	{Name: "keeps files in clear", Suite: encryption(func(s *safe) { s.clear = true }), Subtest: "KeptForm"},
	{Name: "opens a file for every user", Suite: encryption(func(s *safe) {
		s.owner = func(personkey.Ref) personkey.Ref { return personkey.Ref{} }
	}), Subtest: "OtherUser"},
	{Name: "uses the key of the team", Suite: encryption(func(s *safe) {
		s.owner = func(ref personkey.Ref) personkey.Ref { return personkey.Ref{Team: ref.Team} }
	}), Subtest: "KeyDeleted"},
	{Name: "takes a content for a box", Suite: encryption(func(s *safe) { s.bare = true }), Subtest: "FirstByteOfAContent"},
}
