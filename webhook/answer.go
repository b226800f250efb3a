package webhook

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Class is the stable name of what came of one attempt.
type Class string

const (
	// ClassOK is a status of 200 to 299.
	ClassOK Class = "ok"
	// ClassRedirect is a status of 300 to 399; redirects are never followed.
	ClassRedirect Class = "redirect"
	// ClassGone is status 410: the endpoint is disabled at once.
	ClassGone Class = "gone"
	// ClassThrottled is status 429, 502, 503 or 504: slow down.
	ClassThrottled Class = "throttled"
	// ClassRefused is any other status.
	ClassRefused Class = "refused"
	// ClassTimeout means that no status came in time after the request was written.
	ClassTimeout Class = "timeout"
	// ClassReset means that the connection broke after the request was written.
	ClassReset Class = "reset"
	// ClassConnect means that no connection was made, so that no byte was sent.
	ClassConnect Class = "connect"
	// ClassDNS means that the name does not resolve.
	ClassDNS Class = "dns"
	// ClassTLS means that the handshake failed, or the certificate is not to be believed.
	ClassTLS Class = "tls"
	// ClassBlocked means that the guard refused the address.
	ClassBlocked Class = "blocked"
	// ClassProxy means that our own egress proxy did not do its work. It says nothing about
	// the receiver, so it is no attempt: the delivery waits.
	ClassProxy Class = "proxy"
	// ClassCrashed means that the sender died, or its process did.
	ClassCrashed Class = "crashed"
)

// ClassOf returns the class of an HTTP status.
func ClassOf(status int) Class {
	switch {
	case status >= 200 && status <= 299:
		return ClassOK
	case status >= 300 && status <= 399:
		return ClassRedirect
	case status == http.StatusGone:
		return ClassGone
	case status == http.StatusTooManyRequests, status == http.StatusBadGateway,
		status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return ClassThrottled
	default:
		return ClassRefused
	}
}

// Ambiguous reports whether the receiver may have the message although no status
// came back.
func (c Class) Ambiguous() bool {
	return c == ClassTimeout || c == ClassReset || c == ClassCrashed
}

// maxRetryAfter is how far ahead a receiver may move the next attempt.
const maxRetryAfter = 24 * time.Hour

// ParseRetryAfter reads the value of a Retry-After header, seconds or an HTTP date
// (RFC 9110, 10.2.3), as a delay from now. At most 24 hours; 0 for a past date and
// for anything else.
func ParseRetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		d := time.Duration(0)
		for i := range len(value) {
			d = d*10 + time.Second*time.Duration(value[i]-'0')
			if d >= maxRetryAfter {
				return maxRetryAfter
			}
		}
		return d
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// maxHead is how much of the head of an answer is kept.
const maxHead = 2 << 10

// notKept stands for a value that is not kept.
const notKept = "(not kept)"

// headOf returns the head of an answer as it is kept: the status line and the header
// fields, sorted by name, a line each, without the values of those that look like
// credentials or may lead to some. What is too long is cut at the end of a line.
func headOf(r *http.Response) []byte {
	names := make([]string, 0, 16)
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	out := make([]byte, 0, 128) // which most do with
	out = appendLine(out, r.Proto, " ", r.Status)
	for _, name := range names {
		hidden := secretive(name)
		for _, value := range r.Header[name] {
			if hidden {
				value = notKept
			}
			more := appendLine(out, name, ": ", value)
			if len(more) > maxHead {
				return out
			}
			out = more
		}
	}
	return out
}

// appendLine appends a line of so many parts, of which it takes no more than is kept.
func appendLine(to []byte, parts ...string) []byte {
	if len(to) > 0 {
		to = append(to, '\n')
	}
	most := len(to) + maxHead
	for _, part := range parts {
		to = append(to, part[:min(len(part), most-len(to))]...)
	}
	return to
}

// secretive reports whether the value of a field of an answer is nothing for a log: what
// opens something, or a URL, which may.
func secretive(name string) bool {
	switch name {
	case "Connection", "Content-Length", "Content-Type", "Date", "Server": // which most answers have
		return false
	}
	name = strings.ToLower(name)
	return SensitiveHeader(name) || slices.Contains([]string{"location", "content-location", "link", "refresh"}, name) ||
		slices.ContainsFunc([]string{"cookie", "auth", "key", "session", "signature"}, func(part string) bool { return strings.Contains(name, part) })
}
