package personkey

import (
	"context"
	"fmt"
)

// Progress is how far a rotation (see [Keys.Rotate]) has come.
type Progress struct {
	// Done is the number of keys that this call of Rotate has encrypted under the newer key. Total is the number
	// that needed it at the start of the call.
	Done, Total int
}

// rotatePage is the number of keys that Rotate reads from the store at a time.
const rotatePage = 500

// Rotate encrypts every stored key under the current key of the Sealer, which must still have the older ones. Data
// can be read and written meanwhile. If Rotate was interrupted, the next call continues. progress is called after
// each page of keys; it may be nil.
func (k *Keys) Rotate(ctx context.Context, progress func(Progress)) error {
	probe, err := k.sealer.Seal(ctx, nil, []byte(ofKey))
	if err != nil {
		return fmt.Errorf("rotate keys: %w", err)
	}
	current := probe.KeyID
	counts, err := k.store.Count(ctx)
	if err != nil {
		return fmt.Errorf("rotate keys: %w", err)
	}
	var p Progress
	for id, n := range counts {
		if id != current {
			p.Total += n
		}
	}
	replace := func(e Entry) error {
		next, err := k.reseal(ctx, e)
		if err == nil {
			err = k.store.Replace(ctx, e, next)
		}
		if err != nil {
			return fmt.Errorf("rotate keys: %w", err)
		}
		p.Done++
		return nil
	}
	zero, err := k.store.Find(ctx, []Ref{{}}) // the zero Ref, which the pages below do not include
	if err != nil {
		return fmt.Errorf("rotate keys: %w", err)
	}
	for _, e := range zero {
		if e.Key.KeyID != "" && e.Key.KeyID != current {
			if err := replace(e); err != nil {
				return err
			}
		}
	}
	for after := (Ref{}); ; {
		page, err := k.store.Others(ctx, current, after, rotatePage)
		if err != nil {
			return fmt.Errorf("rotate keys: %w", err)
		}
		for _, e := range page {
			if err := replace(e); err != nil {
				return err
			}
			after = e.Ref
		}
		if progress != nil {
			progress(p)
		}
		if len(page) < rotatePage {
			return nil
		}
	}
}

// reseal decrypts a stored key and encrypts it under the current key of the sealer.
func (k *Keys) reseal(ctx context.Context, e Entry) (Entry, error) {
	bound := extra(e.Ref, ofKey)
	secret, err := k.sealer.Open(ctx, e.Key, bound)
	if err != nil {
		return Entry{}, err
	}
	defer clear(secret)
	e.Key, err = k.sealer.Seal(ctx, secret, bound)
	return e, err
}
