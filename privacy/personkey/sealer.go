package personkey

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab"
)

// InstallationKeyID is the key id of values that [Keys.Sealer] encrypts. No key of the host may have it.
const InstallationKeyID = "healthlab.installation"

// ofInstallation is the Ref of the installation's own key. It is not the zero Ref, because Rotate starts after
// the zero Ref.
var ofInstallation = Ref{User: healthlab.UserID{UUID: [16]byte{15: 1}}}

// Sealer returns a Sealer whose key is stored with the keys of persons, as the installation's own.
// [Keys.Rotate] covers that key, so values outside of the store, such as links, can be decrypted after a
// rotation too. With a nil *Keys it returns host.
func (k *Keys) Sealer(host healthlab.Sealer) healthlab.Sealer {
	if k == nil {
		return host
	}
	return &installation{keys: k}
}

type installation struct {
	healthlab.Private

	keys *Keys
}

// Seal implements [healthlab.Sealer].
func (i *installation) Seal(ctx context.Context, plain, bound []byte) (healthlab.Sealed, error) {
	box, err := i.keys.Seal(ctx, ofInstallation, "installation/"+string(bound), plain)
	if err != nil {
		return healthlab.Sealed{}, fmt.Errorf("encrypt with the installation's key: %w: %v", healthlab.Unavailable, err)
	}
	return healthlab.Sealed{KeyID: InstallationKeyID, Box: box}, nil
}

// Open implements [healthlab.Sealer].
func (i *installation) Open(ctx context.Context, box healthlab.Sealed, bound []byte) ([]byte, error) {
	switch {
	case box.KeyID != InstallationKeyID:
		return nil, fmt.Errorf("decrypt: %w: the value is not encrypted with the installation's key", healthlab.Unavailable)
	case !Sealed(box.Box):
		return nil, fmt.Errorf("decrypt: %w: the encrypted value is damaged", healthlab.Invalid)
	}
	plain, err := i.keys.Open(ctx, ofInstallation, "installation/"+string(bound), box.Box)
	if err != nil && healthlab.KindOf(err) != healthlab.Invalid {
		return nil, fmt.Errorf("decrypt with the installation's key: %w: %v", healthlab.Unavailable, err)
	}
	return plain, err
}
