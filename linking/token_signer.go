package linking

import (
	"crypto/hmac"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// tokenHeader is the header of every token. Tokens with another header are refused, so that a caller cannot
// choose the algorithm.
var tokenHeader = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`))

// claims is the payload of a token. A service that shares an OAuth application with others can read from the claims,
// without the key, which service issued a state parameter.
type claims struct {
	Audience string           `json:"aud"`
	Subject  SessionID        `json:"sub"`
	Team     healthlab.TeamID `json:"team_id"`
	User     healthlab.UserID `json:"user_id"`
	Issued   int64            `json:"iat"`
	Expires  int64            `json:"exp"`
	ID       string           `json:"jti"`
}

// signer makes and reads tokens: JSON Web Tokens with HMAC-SHA-256. Immutable.
type signer struct {
	keys     [][]byte // the first key signs; tokens of all keys are accepted
	audience string
	random   io.Reader
}

// issue returns the token of a session.
func (g *signer) issue(s *Session) (string, error) {
	var b [tokenRandom]byte
	if _, err := io.ReadFull(g.random, b[:]); err != nil {
		return "", fmt.Errorf("draw token: %w", err)
	}
	body, err := json.Marshal(claims{
		Audience: g.audience, Subject: s.ID, Team: s.Team, User: s.User,
		Issued: s.CreatedAt.Unix(), Expires: s.ExpiresAt.Unix(), ID: base64.RawURLEncoding.EncodeToString(b[:]),
	})
	if err != nil {
		return "", fmt.Errorf("encode token: %w", err)
	}
	text := tokenHeader + "." + base64.RawURLEncoding.EncodeToString(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(hmacSHA256(g.keys[0], text)), nil
}

// read verifies a token and returns its claims. It returns an [InvalidToken] error for a token that this service did
// not issue. The session decides whether the token still works.
func (g *signer) read(token string) (claims, error) {
	var c claims
	text, sum, ok := cutLast(token, ".")
	header, body, two := strings.Cut(text, ".")
	if !ok || !two || len(token) > maxToken || subtle.ConstantTimeCompare([]byte(header), []byte(tokenHeader)) != 1 {
		return c, fail(InvalidToken)
	}
	strict := base64.RawURLEncoding.Strict()
	given, err := strict.DecodeString(sum)
	if err != nil || !g.signed(text, given) {
		return c, fail(InvalidToken)
	}
	doc, err := strict.DecodeString(body)
	if err != nil || json.Unmarshal(doc, &c) != nil || c.Audience != g.audience || c.Subject.UUID == uuid.Nil {
		return c, fail(InvalidToken)
	}
	return c, nil
}

func (g *signer) clientKey(client string) (out [32]byte) {
	copy(out[:], hmacSHA256(g.keys[0], "client "+client))
	return out
}

func (g *signer) signed(text string, sum []byte) bool {
	for _, key := range g.keys {
		if hmac.Equal(hmacSHA256(key, text), sum) {
			return true
		}
	}
	return false
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// IssuedToken is a new link token, as it is returned once to its owner.
type IssuedToken struct {
	healthlab.Private

	Token string `json:"link_token"`
	// WebURL is the URL of the link pages with the token.
	WebURL string `json:"link_web_url"`

	// Session is the id of the token's session.
	Session SessionID `json:"-"`
	// ExpiresAt is when the token stops working.
	ExpiresAt time.Time `json:"-"`
}

// webURL returns the URL of the link pages with a token.
func webURL(base, token string, env healthlab.Environment, region string) string {
	sep := "?"
	if strings.Contains(base, "?") {
		sep = "&"
	}
	return base + sep + "token=" + url.QueryEscape(token) + "&env=" + string(env) + "&region=" + url.QueryEscape(region)
}
