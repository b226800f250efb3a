package linking

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

const (
	// TokenLife is how long a link token works.
	TokenLife = time.Hour
	// tokenRandom is how many random bytes a token carries.
	tokenRandom = 32
	// maxToken is the longest text that is looked at as a token.
	maxToken = 2048
)

// TokenHash is the SHA-256 of a link token, which is all that is stored of one. The
// token has 256 random bits, so a hash needs neither salt nor stretching.
type TokenHash [sha256.Size]byte

func hashToken(token string) TokenHash { return sha256.Sum256([]byte(token)) }

// tokenHeader is the first part of every token. A token with another is not ours: the
// algorithm is not the caller's to choose.
var tokenHeader = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`))

// claims are the second part. A service that shares an application with us at a provider can
// read, without the key, whose callback a state belongs to.
type claims struct {
	Audience string           `json:"aud"`
	Subject  SessionID        `json:"sub"`
	Team     healthlab.TeamID `json:"team_id"`
	User     healthlab.UserID `json:"user_id"`
	Issued   int64            `json:"iat"`
	Expires  int64            `json:"exp"`
	ID       string           `json:"jti"`
}

// signer makes and reads tokens: JSON Web Tokens under HMAC-SHA-256. Immutable.
type signer struct {
	keys     [][]byte // the first one signs, all are good
	audience string
	random   io.Reader
}

// issue makes the token of a session.
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
	return text + "." + base64.RawURLEncoding.EncodeToString(mac(g.keys[0], text)), nil
}

// read returns whose session a token names, if the token is ours. Whether it still
// works is the session's affair.
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

func (g *signer) signed(text string, sum []byte) bool {
	for _, key := range g.keys {
		if hmac.Equal(mac(key, text), sum) {
			return true
		}
	}
	return false
}

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// NewToken says for whom a link token is, and how the link pages behave.
type NewToken struct {
	User healthlab.UserID
	// Provider, when set, is the only one that the token connects, on the pages and by every
	// operation; empty is all.
	Provider string
	// RedirectURL is where the pages send the person at the end; empty for their own
	// last page. It is absolute; the schemes of apps are welcome.
	RedirectURL string
	// FilterOnProviders narrows what the pages offer; nil offers all. It does not bind
	// who calls the operations directly.
	FilterOnProviders []string
	// OnError and OnClose are "redirect" or empty: whether errors of the password and
	// e-mail pages, and closing, go to RedirectURL.
	OnError, OnClose string
}

// LogValue shows the user alone: a redirect URL may carry anything.
func (n NewToken) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user", n.User.String()), slog.String("provider", n.Provider))
}

// TokenOffer is a new link token as its owner sees it, once.
type TokenOffer struct {
	Token string `json:"link_token"`
	// WebURL opens the link pages with it.
	WebURL string `json:"link_web_url"`

	// Session is the session behind the token.
	Session SessionID `json:"-"`
	// ExpiresAt is when the token stops working.
	ExpiresAt time.Time `json:"-"`
}

// LogValue names the session, and not the token.
func (o TokenOffer) LogValue() slog.Value { return slog.StringValue(o.String()) }

// String names the session, and not the token.
func (o TokenOffer) String() string { return "link token of session " + o.Session.String() }

// GoString is String.
func (o TokenOffer) GoString() string { return o.String() }

// redirects is the one value that OnError and OnClose may have.
const redirects = "redirect"

// check notes what is wrong with a request for a token.
func (n *NewToken) check(p *healthlab.Problems, known func(slug string) bool, rules RedirectRules) {
	if n.Provider != "" && !known(n.Provider) {
		p.Add("unknown_provider", "not one of the configured providers", "provider")
	}
	if n.FilterOnProviders != nil && len(n.FilterOnProviders) == 0 {
		p.Add("too_short", "at least 1 provider", "filter_on_providers")
	}
	among := false
	for i, slug := range n.FilterOnProviders {
		among = among || slug == n.Provider
		if !known(slug) {
			p.Add("unknown_provider", "not one of the configured providers", "filter_on_providers", i)
		}
	}
	if n.Provider != "" && len(n.FilterOnProviders) > 0 && !among {
		p.Add("filtered_out", "the provider must be among filter_on_providers", "provider")
	}
	if n.RedirectURL != "" {
		rules.check(p, n.RedirectURL)
	}
	for _, f := range []struct{ name, value string }{{"on_error", n.OnError}, {"on_close", n.OnClose}} {
		switch {
		case f.value == "":
		case f.value != redirects:
			p.AddEnum([]string{redirects}, f.name)
		case n.RedirectURL == "":
			p.Add("needs_redirect_url", "needs redirect_url", f.name)
		}
	}
}

// webURL is where the pages of a token are.
func webURL(base, token string, env healthlab.Environment, region string) string {
	sep := "?"
	if strings.Contains(base, "?") {
		sep = "&"
	}
	return base + sep + "token=" + url.QueryEscape(token) + "&env=" + string(env) + "&region=" + url.QueryEscape(region)
}
