package linking

import (
	"encoding/base64"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Prefixes tell what a token is for, so that none is taken for another, and that a scan of
// source code finds one that was left there.
const (
	signInPrefix  = "uis_"
	accessPrefix  = "uat_"
	refreshPrefix = "urt_"
)

// IsUserToken reports whether a bearer token looks like an access token of [Apps]. Whether
// it works, [Apps.Authenticate] says.
func IsUserToken(token string) bool { return strings.HasPrefix(token, accessPrefix) }

// appToken is what a token of an app says: whose it is, and a secret of 256 bits. That of a
// refresh token is 128 bits, and the seal by which [Apps] knows it as its own for ever.
type appToken struct {
	team    healthlab.TeamID
	session uuid.UUID
	secret  [tokenRandom]byte
}

// appTokenBytes is the length of a token before it is text.
const appTokenBytes = 16 + 16 + tokenRandom

func (t *appToken) seal(key []byte) []byte {
	return mac(key, "ours "+string(t.team.UUID[:])+string(t.session[:])+string(t.secret[:tokenRandom/2]))[:tokenRandom/2]
}

func (t *appToken) text(prefix string) string {
	b := append(append(append(make([]byte, 0, appTokenBytes), t.team.UUID[:]...), t.session[:]...), t.secret[:]...)
	return prefix + base64.RawURLEncoding.EncodeToString(b)
}

// readAppToken reads a token of one kind. ok is false for what is none.
func readAppToken(prefix, token string) (t appToken, ok bool) {
	text, ok := strings.CutPrefix(token, prefix)
	if !ok || len(text) != base64.RawURLEncoding.EncodedLen(appTokenBytes) {
		return appToken{}, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return appToken{}, false
	}
	copy(t.team.UUID[:], b)
	copy(t.session[:], b[16:])
	copy(t.secret[:], b[32:])
	return t, true
}
