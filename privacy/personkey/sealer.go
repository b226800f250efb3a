package personkey

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab"
)

// InstallationKeyID is the KeyID of values that the result of [Keys.Sealer] encrypted. The host's Sealer must not
// have a key with this id.
const InstallationKeyID = "healthlab.installation"

// ofInstallation is the Ref of the installation's own key. It differs from the zero Ref, after which the pages of
// Rotate begin.
var ofInstallation = Ref{User: healthlab.UserID{UUID: [16]byte{15: 1}}}

// Sealer returns a Sealer with the installation's own key, which is stored among the keys of persons. [Keys.Rotate]
// encrypts this key anew, so values outside of the store, such as links, can still be decrypted after a rotation.
// The Sealer of a nil *Keys is host.
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
