package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"

	"github.com/healthlab-dev/healthlab"
)

// Progress says how far a rotation is.
type Progress struct {
	// Done files were written anew by this call, of Seen that it looked at.
	Done, Seen int
}

// rotating begins the names of marks: a file whose mark is there is being written anew.
const rotating = "rotating/"

// Rotate writes those files anew, under the current key of the host's sealer, that an older key of
// it seals; files under keys of persons need none. Readers and writers go on meanwhile, and a
// deletion of the very file that is written anew is Unavailable, so that the file does not come
// back. A rotation that was stopped goes on where it was when it is called again; until then the
// deletion of the file at which it stopped is Unavailable. Two must not run at the same time.
// progress is called after each file that was written; nil for no reports.
func (s *Store) Rotate(ctx context.Context, progress func(Progress)) error {
	probe, err := s.seal.Seal(ctx, nil, nil)
	if err != nil {
		return fmt.Errorf("rotate files: %w", err)
	}
	var names []string
	if err := s.place.List(ctx, func(name string) error {
		names = append(names, name)
		return nil
	}); err != nil {
		return fmt.Errorf("rotate files: %w", err)
	}
	var p Progress
	for _, name := range names {
		key, stopped := strings.CutPrefix(name, rotating)
		done, err := s.rewrite(ctx, key, probe.KeyID)
		if err == nil && stopped {
			err = s.place.Remove(ctx, name)
		}
		if err != nil {
			return fmt.Errorf("rotate files: %w", err)
		}
		p.Seen++
		if done {
			p.Done++
			if progress != nil {
				progress(p)
			}
		}
	}
	return nil
}

// rewrite writes a file anew if a key of the host other than the current one seals it.
func (s *Store) rewrite(ctx context.Context, key, current string) (done bool, err error) {
	if h, err := s.head(ctx, key); errors.Is(err, healthlab.NotFound) {
		return false, nil
	} else if err != nil || h.personal || h.keyID == current {
		return false, err
	}
	if err := s.place.Write(ctx, rotating+key, strings.NewReader("")); err != nil {
		return false, err
	}
	done, err = s.copyOver(ctx, key)
	if err != nil {
		return false, err // the mark stays: the next call begins with it
	}
	return done, s.place.Remove(ctx, rotating+key)
}

// copyOver reads a file and writes it under the host's current key.
func (s *Store) copyOver(ctx context.Context, key string) (bool, error) {
	sealed, err := s.place.Open(ctx, key)
	if errors.Is(err, healthlab.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = sealed.Close() }()
	from := &envelope{ctx: ctx, seal: s.seal, key: key}
	plain, err := age.Decrypt(&noted{r: sealed, err: &from.broken}, from)
	if err != nil {
		return false, from.fault(ctx, err)
	}
	again, err := age.EncryptReader(&whole{ctx: ctx, r: plain}, &envelope{ctx: ctx, seal: s.seal, key: key})
	if err != nil {
		return false, err
	}
	return true, s.place.Write(ctx, key, again)
}

// head reads the head of a file.
func (s *Store) head(ctx context.Context, name string) (head, error) {
	sealed, err := s.place.Open(ctx, name)
	if err != nil {
		return head{}, err
	}
	var h asker
	_, err = age.Decrypt(sealed, &h)
	if err = errors.Join(ignoreAsked(err), sealed.Close()); err != nil {
		return head{}, fmt.Errorf("%w: a file is damaged", healthlab.Invalid)
	}
	return h.head, nil
}

// checkRotating is Unavailable while a file is written anew.
func (s *Store) checkRotating(ctx context.Context, key string) error {
	mark, err := s.place.Open(ctx, rotating+key)
	if errors.Is(err, healthlab.NotFound) {
		return nil
	}
	if err == nil {
		_, err = io.Copy(io.Discard, mark)
		err = errors.Join(err, mark.Close())
	}
	if err == nil {
		err = fmt.Errorf("%w: the file is being sealed under another key; delete it again later", healthlab.Unavailable)
	}
	return err
}
