package linking

import (
	"crypto/hmac"
	"crypto/sha256"
	"log/slog"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

const (
	// TokenLife is the lifetime of a link token.
	TokenLife = time.Hour
	// tokenRandom is the number of random bytes of a token.
	tokenRandom = 32
	// maxToken is the greatest length of a token in bytes.
	maxToken = 2048
)

// TokenHash is the SHA-256 of a link token. Only the hash is stored. The token has 256 random bits, so that the
// hash needs no salt.
type TokenHash [sha256.Size]byte

func hashToken(token string) TokenHash { return sha256.Sum256([]byte(token)) }

func hmacSHA256(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// NewToken describes a link token and the behaviour of its link pages.
type NewToken struct {
	User healthlab.UserID
	// Provider, if set, is the only provider that the token connects, on the pages and through every operation.
	Provider string
	// RedirectURL is where the pages send the person at the end; empty for the pages' own last page. It must be
	// absolute; schemes of apps are allowed.
	RedirectURL string
	// FilterOnProviders limits the providers on the link pages; nil means all. It does not limit calls of the Service
	// that do not go through the pages.
	FilterOnProviders []string
	// OnError and OnClose are "redirect" or empty. With OnError, an error of the password and e-mail pages redirects to
	// RedirectURL, unless the token no longer works. With OnClose, closing the pages redirects to it.
	OnError, OnClose string
}

// LogValue contains only the user, because a redirect URL may contain anything.
func (n NewToken) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user", n.User.String()), slog.String("provider", n.Provider))
}

// redirects is the only value of OnError and OnClose other than empty.
const redirects = "redirect"

// check adds the invalid fields of a token request to p.
func (n *NewToken) check(p *healthlab.Problems, providers *healthdata.Providers, rules RedirectRules) {
	if n.Provider != "" && providers.Get(n.Provider) == nil {
		p.Add("unknown_provider", providers.Expected(n.Provider), "provider")
	}
	if n.FilterOnProviders != nil && len(n.FilterOnProviders) == 0 {
		p.Add("too_short", "must have at least 1 provider", "filter_on_providers")
	}
	among := false
	for i, slug := range n.FilterOnProviders {
		among = among || slug == n.Provider
		if providers.Get(slug) == nil {
			p.Add("unknown_provider", providers.Expected(slug), "filter_on_providers", i)
		}
	}
	if n.Provider != "" && len(n.FilterOnProviders) > 0 && !among {
		p.Add("filtered_out", "must be one of filter_on_providers", "provider")
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
			p.Add("needs_redirect_url", "must be left out if redirect_url is not given", f.name)
		}
	}
}
