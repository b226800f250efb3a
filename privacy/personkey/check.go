package personkey

import (
	"context"
	"errors"
	"fmt"
)

// Check decrypts the key of the installation, the first key of a person or a team, and the first key that is
// encrypted under another key of the host. An error means that the Sealer is not the one with which the keys
// were encrypted. A store without keys is no error.
func (k *Keys) Check(ctx context.Context) error {
	if k == nil {
		return nil
	}
	stored, err := k.store.Find(ctx, []Ref{{}})
	if err != nil {
		return fmt.Errorf("find the key of the installation: %w", err)
	}
	for range 2 { // the first key, and the first that is sealed otherwise
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
