package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/healthlab-dev/healthlab/personkey"
)

// PersonKeys is a [personkey.Store] in memory, apart from any [Store].
type PersonKeys struct {
	mu   sync.Mutex // guards kept
	kept map[personkey.Ref]personkey.Entry
}

// NewPersonKeys returns an empty store of keys.
func NewPersonKeys() *PersonKeys { return &PersonKeys{kept: map[personkey.Ref]personkey.Entry{}} }

// Insert is [personkey.Store].
func (p *PersonKeys) Insert(ctx context.Context, e personkey.Entry) (personkey.Entry, error) {
	if err := ctx.Err(); err != nil {
		return personkey.Entry{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if kept, ok := p.kept[e.Ref]; ok {
		return copyKey(kept), nil
	}
	p.kept[e.Ref] = copyKey(e)
	return e, nil
}

func copyKey(e personkey.Entry) personkey.Entry {
	e.Key.Box = bytes.Clone(e.Key.Box)
	return e
}

// Find is [personkey.Store].
func (p *PersonKeys) Find(ctx context.Context, refs []personkey.Ref) ([]personkey.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []personkey.Entry
	for _, ref := range refs {
		if kept, ok := p.kept[ref]; ok {
			out = append(out, copyKey(kept))
		}
	}
	return out, nil
}

// Delete is [personkey.Store].
func (p *PersonKeys) Delete(ctx context.Context, ref personkey.Ref) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept[ref] = personkey.Entry{Ref: ref}
	return nil
}

// Others is [personkey.Store].
func (p *PersonKeys) Others(ctx context.Context, keyID string, after personkey.Ref, n int) ([]personkey.Entry, error) {
	return p.page(ctx, after, n, func(e personkey.Entry) bool { return e.Key.KeyID != "" && e.Key.KeyID != keyID })
}

// Replace is [personkey.Store].
func (p *PersonKeys) Replace(ctx context.Context, was, e personkey.Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if kept := p.kept[was.Ref]; kept.Key.KeyID == was.Key.KeyID && bytes.Equal(kept.Key.Box, was.Key.Box) {
		p.kept[was.Ref] = personkey.Entry{Ref: was.Ref, Key: copyKey(e).Key}
	}
	return nil
}

// Deleted is [personkey.Store].
func (p *PersonKeys) Deleted(ctx context.Context, after personkey.Ref, n int) ([]personkey.Ref, error) {
	page, err := p.page(ctx, after, n, func(e personkey.Entry) bool { return e.Key.KeyID == "" })
	var out []personkey.Ref
	for _, e := range page {
		out = append(out, e.Ref)
	}
	return out, err
}

// page returns up to n of the entries that fit, after a ref.
func (p *PersonKeys) page(ctx context.Context, after personkey.Ref, n int, fits func(personkey.Entry) bool) ([]personkey.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []personkey.Entry
	for ref, e := range p.kept {
		if fits(e) && comparePersons(ref, after) > 0 {
			out = append(out, copyKey(e))
		}
	}
	slices.SortFunc(out, func(a, b personkey.Entry) int { return comparePersons(a.Ref, b.Ref) })
	return out[:max(min(n, len(out)), 0)], nil
}

func comparePersons(a, b personkey.Ref) int {
	return cmp.Or(bytes.Compare(a.User.UUID[:], b.User.UUID[:]), bytes.Compare(a.Team.UUID[:], b.Team.UUID[:]))
}

// Count is [personkey.Store].
func (p *PersonKeys) Count(ctx context.Context) (map[string]int, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]int{}
	for _, e := range p.kept {
		if e.Key.KeyID != "" {
			out[e.Key.KeyID]++
		}
	}
	return out, nil
}
