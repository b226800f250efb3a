package memory

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"sync"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

// blobs is a labreport.BlobStore in memory.
type blobs struct {
	keys *personkey.Keys

	mu   sync.Mutex // guards kept
	kept map[string][]byte
}

func newBlobs(keys *personkey.Keys) *blobs { return &blobs{keys: keys, kept: map[string][]byte{}} }

// reBlobKey matches the keys of files.
var reBlobKey = regexp.MustCompile(`^[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*$`)

const longestKey = 512 // bytes

// check returns the error of an ended context, or of an invalid key.
func (b *blobs) check(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(key) > longestKey || !reBlobKey.MatchString(key) {
		return fmt.Errorf("%w: key: must consist of letters, digits, hyphens, underscores and single slashes between them, in at most %d bytes", healthlab.Invalid, longestKey)
	}
	return nil
}

func (b *blobs) Put(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string, content io.Reader) error {
	if err := b.check(ctx, key); err != nil {
		return err
	}
	data, err := io.ReadAll(content)
	if err != nil {
		return fmt.Errorf("keep file: %w", err)
	}
	if data, err = b.keys.Seal(ctx, personkey.Ref{Team: team, User: user}, personkey.RowFile(key), data); err != nil {
		return fmt.Errorf("keep file: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept[key] = data
	return nil
}

func (b *blobs) Get(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string) (io.ReadCloser, error) {
	if err := b.check(ctx, key); err != nil {
		return nil, err
	}
	b.mu.Lock()
	data, ok := b.kept[key]
	b.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("%w: the store has no file with this key", healthlab.NotFound)
	}
	data, err := b.keys.OpenBytes(ctx, personkey.Ref{Team: team, User: user}, personkey.RowFile(key), data)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (b *blobs) Delete(ctx context.Context, key string) error {
	if err := b.check(ctx, key); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.kept, key)
	return nil
}
