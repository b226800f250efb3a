package webhook

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

const (
	maxHeaders     = 20
	maxHeaderName  = 64
	maxHeaderValue = 1024
)

// refusedHeaders are the headers that a team cannot set, because the webhook protocol or HTTP uses them. Idempotency
// keys are among them, because net/http would repeat requests that have one.
var refusedHeaders = []string{
	"content-type", "content-length", "content-encoding", "transfer-encoding", "host", "connection",
	"user-agent", "idempotency-key", "x-idempotency-key", "te", "trailer", "upgrade", "expect",
	"keep-alive", "forwarded", "via",
}

var refusedPrefixes = []string{"webhook-", "proxy-", "x-forwarded-"}

var refusedNames = "the header's name must not be one of " + strings.Join(refusedHeaders, ", ") +
	", and must not begin with one of " + strings.Join(refusedPrefixes, ", ")

func refusedHeader(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains(refusedHeaders, name) ||
		slices.ContainsFunc(refusedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

func sensitiveHeader(name string) bool {
	name = strings.ToLower(name)
	return name == "authorization" || name == "cookie" || name == "x-api-key" ||
		strings.Contains(name, "token") || strings.Contains(name, "secret")
}

// checkHeaders returns the problems of custom headers, whose sorted names are names. The path of a problem is the
// position in names, because a name is a value of the caller.
func checkHeaders(headers map[string]string, names []string) healthlab.Problems {
	var p healthlab.Problems
	if len(headers) > maxHeaders {
		p.Add("too_many", fmt.Sprintf("must have at most %d headers", maxHeaders), "headers")
	}
	seen := map[string]bool{}
	for i, name := range names {
		folded := http.CanonicalHeaderKey(name)
		switch {
		case !token(name) || len(name) > maxHeaderName:
			p.Add("bad_name", fmt.Sprintf("the header's name must be an HTTP token of at most %d characters", maxHeaderName), "headers", i)
		case refusedHeader(name):
			p.Add("refused_name", refusedNames, "headers", i)
		case seen[folded]:
			p.Add("duplicate", "the header's name must not come twice; upper and lower case count as equal", "headers", i)
		}
		seen[folded] = true
		if v := headers[name]; len(v) > maxHeaderValue || strings.ContainsFunc(v, notPrintable) {
			p.Add("bad_value", fmt.Sprintf("the header's value must have at most %d printable ASCII characters", maxHeaderValue), "headers", i)
		}
	}
	return p
}

func token(s string) bool {
	const marks = "!#$%&'*+-.^_`|~"
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(marks, r)
	})
}

func notPrintable(r rune) bool { return r < ' ' || r > '~' }
