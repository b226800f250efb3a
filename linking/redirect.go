package linking

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// maxURL is the longest redirect URL, in bytes.
const maxURL = 2048

// RedirectRules are a team's allow-list of redirect URLs. The zero value allows https to any host, http to this
// machine, and the schemes of apps. Schemes whose content a browser runs, or by which it reads local files, are never
// allowed.
type RedirectRules struct {
	// Schemes, if set, are the only allowed schemes: "https", "myapp".
	Schemes []string
	// Hosts, if set, are the only allowed hosts of http and https URLs, without the port. "*.example.com" means
	// every subdomain, and not example.com itself.
	Hosts []string
}

// active are the schemes that are never allowed, because a browser would run their content or read local files.
var active = []string{
	"javascript", "data", "vbscript", "file", "blob", "about", "filesystem", "view-source", "ws", "wss", "ftp",
	"intent", "content", "jar", "chrome", "resource",
}

// Allows reports whether the rules allow the URL target.
func (r RedirectRules) Allows(target string) bool {
	var p healthlab.Problems
	r.check(&p, target)
	return len(p) == 0
}

// check adds the problems of a redirect URL to p.
func (r RedirectRules) check(p *healthlab.Problems, target string) {
	const field = "redirect_url"
	if len(target) > maxURL {
		p.Add("too_long", fmt.Sprintf("must have at most %d bytes", maxURL), field)
		return
	}
	// Browsers and parsers read these characters differently, so they are refused.
	if strings.ContainsFunc(target, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '\\' }) {
		p.Add("url", "must be an absolute URL of printable ASCII, without backslashes", field)
		return
	}
	u, err := url.Parse(target)
	if err != nil || u.Scheme == "" || u.User != nil || (u.Opaque == "" && u.Host == "" && u.Path == "") {
		p.Add("url", "must be an absolute URL without user name and password", field)
		return
	}
	web := u.Scheme == "http" || u.Scheme == "https"
	host := strings.ToLower(u.Hostname())
	switch {
	case web && (host == "" || u.Opaque != ""):
		p.Add("url", "must have a host after http:// or https://", field)
	case slices.Contains(active, u.Scheme), !r.allowsScheme(u.Scheme, host):
		p.Add("scheme", "must have "+r.expectedScheme(), field)
	case web && !r.allowsHost(host):
		p.Add("host", "must have one of the hosts that the team's redirect rules allow: "+strings.Join(r.Hosts, ", "), field)
	}
}

// expectedScheme returns the allowed schemes as a text for errors.
func (r RedirectRules) expectedScheme() string {
	if len(r.Schemes) == 0 {
		return "the scheme https, http with the host localhost, 127.0.0.1 or ::1, or the scheme of an app"
	}
	allowed := slices.DeleteFunc(slices.Clone(r.Schemes), func(s string) bool { return slices.Contains(active, strings.ToLower(s)) })
	return "one of the schemes that the team's redirect rules allow: " + strings.Join(allowed, ", ")
}

func (r RedirectRules) allowsScheme(scheme, host string) bool {
	if len(r.Schemes) > 0 {
		return slices.ContainsFunc(r.Schemes, func(s string) bool { return strings.EqualFold(s, scheme) })
	}
	return scheme != "http" || host == "localhost" || host == "127.0.0.1" || host == "::1"
}

func (r RedirectRules) allowsHost(host string) bool {
	return len(r.Hosts) == 0 || slices.ContainsFunc(r.Hosts, func(allowed string) bool {
		allowed = strings.ToLower(allowed)
		if below, ok := strings.CutPrefix(allowed, "*"); ok && strings.HasPrefix(below, ".") {
			return len(host) > len(below) && strings.HasSuffix(host, below)
		}
		return host == allowed
	})
}

// Outcome is the result of linking that the customer's redirect URL gets as parameters.
type Outcome struct {
	// Provider is the slug of the connected provider, for a success.
	Provider string
	// Error is empty for a success.
	Error ErrorType
}

// Redirect adds the outcome to a redirect URL: state, then provider or error_type, error (the error_type again, as in
// OAuth) and error_description (a sentence for people). The existing query stays first, byte for byte, and the fragment
// stays last. The target does not change.
func (o Outcome) Redirect(target string) string {
	base, fragment, hasFragment := strings.Cut(target, "#")
	pairs := [][2]string{{"state", "success"}, {"provider", o.Provider}}
	if o.Error != "" {
		pairs = [][2]string{{"state", "error"}, {"error_type", string(o.Error)}, {"error", string(o.Error)}, {"error_description", o.Error.Text()}}
	}
	sep := "?"
	if strings.Contains(base, "?") {
		sep = "&"
		if strings.HasSuffix(base, "?") || strings.HasSuffix(base, "&") {
			sep = ""
		}
	}
	var b strings.Builder
	b.WriteString(base)
	for _, kv := range pairs {
		if kv[1] == "" {
			continue
		}
		b.WriteString(sep + kv[0] + "=" + escape(kv[1]))
		sep = "&"
	}
	if hasFragment {
		b.WriteString("#" + fragment)
	}
	return b.String()
}

func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
