package labreporttest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/labreporttest"
)

// breakableStore is a BlobStore to break: a map of what lies under which name.
type breakableStore struct {
	mu    sync.Mutex
	files map[string][]byte

	name   func(key string) string          // what a file is called
	valid  func(key string) bool            // which keys are taken
	keep   func(old, content []byte) []byte // what a Put makes of a content
	half   bool                             // a Put shows its first half first
	torn   bool                             // a Put keeps what came before an error
	deaf   bool                             // a Put looks at no context
	remove func(files map[string][]byte, name string) error
	gone   func() (io.ReadCloser, error) // Get of what is not there
}

func (s *breakableStore) Put(ctx context.Context, _ healthlab.TeamID, _ healthlab.UserID, key string, content io.Reader) error {
	if !s.valid(key) {
		return healthlab.Invalid
	}
	b, err := io.ReadAll(content)
	if err == nil && !s.deaf {
		err = ctx.Err()
	}
	if err != nil && !s.torn {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.name(key)
	b = s.keep(s.files[name], b)
	if s.half {
		s.files[name] = b[:len(b)/2]
		s.mu.Unlock()
		conformance.Pause()
		s.mu.Lock()
	}
	s.files[name] = b
	return err
}

func (s *breakableStore) Get(ctx context.Context, _ healthlab.TeamID, _ healthlab.UserID, key string) (io.ReadCloser, error) {
	if !s.valid(key) {
		return nil, healthlab.Invalid
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.files[s.name(key)]
	if !ok {
		return s.gone()
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (s *breakableStore) Delete(ctx context.Context, key string) error {
	if !s.valid(key) {
		return healthlab.Invalid
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove(s.files, s.name(key))
}

// sound is a breakableStore that keeps every promise.
func sound() *breakableStore {
	return &breakableStore{
		files: map[string][]byte{},
		name:  func(key string) string { return key },
		valid: func(key string) bool {
			return len(key) <= 512 && !slices.Contains(strings.Split(key, "/"), "") &&
				strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/") == ""
		},
		keep:   func(_, content []byte) []byte { return content },
		remove: func(files map[string][]byte, name string) error { delete(files, name); return nil },
		gone:   func() (io.ReadCloser, error) { return nil, healthlab.NotFound },
	}
}

// blobs returns the suite over shelves that were broken in one way.
func blobs(how func(*breakableStore)) func(*testing.T) {
	return func(t *testing.T) {
		labreporttest.RunBlobStore(t, func(*testing.T) labreport.BlobStore {
			s := sound()
			how(s)
			return s
		})
	}
}

// The store from which the mutants are made passes the suite.
func TestBlobStore_unbrokenPassesTheSuite(t *testing.T) { blobs(func(*breakableStore) {})(t) }

var brokenBlobStores = []conformance.Broken{
	{Name: "forgets the last byte", Suite: blobs(func(s *breakableStore) {
		s.keep = func(_, b []byte) []byte { return b[:max(0, len(b)-1)] }
	}), Subtest: "RoundTrip"},
	{Name: "one name for all", Suite: blobs(func(s *breakableStore) { s.name = func(string) string { return "k" } }), Subtest: "RoundTrip"},
	{Name: "keeps 16 MiB of a file", Suite: blobs(func(s *breakableStore) {
		s.keep = func(_, b []byte) []byte { return b[:min(len(b), 16<<20)] }
	}), Subtest: "Large"},
	{Name: "keeps the first content", Suite: blobs(func(s *breakableStore) {
		s.keep = func(old, b []byte) []byte {
			if old != nil {
				return old
			}
			return b
		}
	}), Subtest: "Put/Replaces"},
	{Name: "writes over the old content without cutting it", Suite: blobs(func(s *breakableStore) {
		s.keep = func(old, b []byte) []byte { return append(b, old[min(len(old), len(b)):]...) }
	}), Subtest: "Put/Replaces"},
	{Name: "keeps half a file", Suite: blobs(func(s *breakableStore) { s.torn = true }), Subtest: "Put/ReaderFails"},
	{Name: "does not see its context end", Suite: blobs(func(s *breakableStore) { s.deaf = true }), Subtest: "Put/ContextEnds"},
	{Name: "shows half a file for a moment", Suite: blobs(func(s *breakableStore) { s.half = true }), Subtest: "Put/NeverAPart"},
	{Name: "has something for every key", Suite: blobs(func(s *breakableStore) {
		s.gone = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("")), nil }
	}), Subtest: "Get/Missing"},
	{Name: "has no word for what is not there", Suite: blobs(func(s *breakableStore) {
		s.gone = func() (io.ReadCloser, error) { return nil, errors.New("no such file") }
	}), Subtest: "Get/Missing"},
	{Name: "keeps what was deleted", Suite: blobs(func(s *breakableStore) { s.remove = func(map[string][]byte, string) error { return nil } }), Subtest: "Delete"},
	{Name: "misses what was deleted before", Suite: blobs(func(s *breakableStore) {
		s.remove = func(files map[string][]byte, name string) error {
			if files[name] == nil {
				return healthlab.NotFound
			}
			delete(files, name)
			return nil
		}
	}), Subtest: "Delete"},
	{Name: "deletes what is below", Suite: blobs(func(s *breakableStore) {
		s.remove = func(files map[string][]byte, name string) error {
			maps.DeleteFunc(files, func(n string, _ []byte) bool { return n == name || strings.HasPrefix(n, name+"/") })
			return nil
		}
	}), Subtest: "Keys/OneBelowAnother"},
	{Name: "folds its keys", Suite: blobs(func(s *breakableStore) { s.name = strings.ToLower }), Subtest: "Keys/Case"},
	{Name: "takes every key", Suite: blobs(func(s *breakableStore) { s.valid = func(string) bool { return true } }), Subtest: "Keys/Refused"},
	{Name: "takes no long key", Suite: blobs(func(s *breakableStore) {
		valid := s.valid
		s.valid = func(key string) bool { return len(key) < 256 && valid(key) }
	}), Subtest: "Keys/Refused"},
}
