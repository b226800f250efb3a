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

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
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

// redirects is the one value that OnError and OnClose may have.
const redirects = "redirect"

// check notes what is wrong with a request for a token.
func (n *NewToken) check(p *healthlab.Problems, providers *healthdata.Providers, rules RedirectRules) {
	if n.Provider != "" && providers.Get(n.Provider) == nil {
		p.Add("unknown_provider", providers.Expected(n.Provider), "provider")
	}
	if n.FilterOnProviders != nil && len(n.FilterOnProviders) == 0 {
		p.Add("too_short", "at least 1 provider", "filter_on_providers")
	}
	among := false
	for i, slug := range n.FilterOnProviders {
		among = among || slug == n.Provider
		if providers.Get(slug) == nil {
			p.Add("unknown_provider", providers.Expected(slug), "filter_on_providers", i)
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
