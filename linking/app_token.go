package linking

import (
	"encoding/base64"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Prefixes of app tokens. They distinguish the kinds of tokens, and let a secret scanner find a token in source
// code.
const (
	signInPrefix  = "uis_"
	accessPrefix  = "uat_"
	refreshPrefix = "urt_"
)

// IsUserToken reports whether a bearer token has the form of an access token of [Apps]. [Apps.Authenticate] checks
// whether the token is valid.
func IsUserToken(token string) bool { return strings.HasPrefix(token, accessPrefix) }

// appToken is the content of an app token: the team, the session, and a secret of 256 bits. In a refresh token, the
// second half of the secret is a keyed hash (see seal) by which [Apps] recognizes the tokens that it made.
type appToken struct {
	team    healthlab.TeamID
	session uuid.UUID
	secret  [tokenRandom]byte
}

// appTokenBytes is the length of a token in bytes before its encoding.
const appTokenBytes = 16 + 16 + tokenRandom

func (t *appToken) seal(key []byte) []byte {
	return hmacSHA256(key, "ours "+string(t.team.UUID[:])+string(t.session[:])+string(t.secret[:tokenRandom/2]))[:tokenRandom/2]
}

func (t *appToken) text(prefix string) string {
	b := append(append(append(make([]byte, 0, appTokenBytes), t.team.UUID[:]...), t.session[:]...), t.secret[:]...)
	return prefix + base64.RawURLEncoding.EncodeToString(b)
}

// readAppToken parses a token of one kind. ok is false for other texts.
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
