package personkey

import (
	"context"
	"errors"
	"fmt"
)

// Check tests that the Sealer can decrypt the stored keys. It decrypts at most three of them: the operator's key
// (without one, the first other key), and keys that were encrypted under other keys of the host. An error means
// that the keys were encrypted with another Sealer. A store without keys is no error.
func (k *Keys) Check(ctx context.Context) error {
	if k == nil {
		return nil
	}
	stored, err := k.store.Find(ctx, []Ref{{}})
	if err != nil {
		return fmt.Errorf("find the key of the installation: %w", err)
	}
	for range 2 { // the first key that another key of the host encrypted than the last one found
		sealedBy := ""
		if len(stored) > 0 {
			sealedBy = stored[len(stored)-1].Key.KeyID
		}
		others, err := k.store.Others(ctx, sealedBy, Ref{}, 1)
		if err != nil {
			return fmt.Errorf("find stored keys: %w", err)
		}
		stored = append(stored, others...)
	}
	for _, e := range stored {
		if _, err := k.open(ctx, e); err != nil && !errors.Is(err, ErrErased) {
			return err
		}
	}
	return nil
}
