package webhook

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Class is the kind of result of one attempt to send a message.
type Class string

const (
	// ClassOK is a status of 200 to 299.
	ClassOK Class = "ok"
	// ClassRedirect is a status of 300 to 399; redirects are never followed.
	ClassRedirect Class = "redirect"
	// ClassGone is status 410: the endpoint is disabled at once.
	ClassGone Class = "gone"
	// ClassThrottled is status 429, 502, 503 or 504: the dispatcher then sends more slowly.
	ClassThrottled Class = "throttled"
	// ClassRefused is any other status.
	ClassRefused Class = "refused"
	// ClassTimeout means that no status was received in time after the request was written.
	ClassTimeout Class = "timeout"
	// ClassReset means that the connection broke after the request was written.
	ClassReset Class = "reset"
	// ClassConnect means that no connection was made, so that no byte was sent.
	ClassConnect Class = "connect"
	// ClassDNS means that the name does not resolve.
	ClassDNS Class = "dns"
	// ClassTLS means that the handshake failed, or that the certificate is not trusted.
	ClassTLS Class = "tls"
	// ClassBlocked means that the guard refused the address.
	ClassBlocked Class = "blocked"
	// ClassProxy means that the sender's own egress proxy failed. It does not count as an attempt: the delivery
	// waits.
	ClassProxy Class = "proxy"
	// ClassCrashed means that the sending goroutine or its process crashed.
	ClassCrashed Class = "crashed"
)

// ClassOf returns the class of an HTTP response status.
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

// Ambiguous reports whether the receiver may have the message although no status was received.
func (c Class) Ambiguous() bool {
	return c == ClassTimeout || c == ClassReset || c == ClassCrashed
}

// maxRetryAfter is the longest delay that a receiver can request.
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

// maxHead is the number of bytes of a response's status line and header fields that are stored.
const maxHead = 2 << 10

// notKept replaces a header value that must not be stored.
const notKept = "(not kept)"

// headOf returns the status line and header fields of a response for storage, sorted by name, one per line. It replaces
// the values of fields that may have a credential or a URL, by the name of the field. A text that is too long is cut at
// the end of a line.
func headOf(r *http.Response) []byte {
	names := make([]string, 0, 16)
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	out := make([]byte, 0, 128) // enough for most responses
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

// appendLine appends a line that consists of parts. It cuts the line after maxHead bytes.
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

// secretive reports whether the value of a response header must not be logged, because it may be a credential or
// a URL.
func secretive(name string) bool {
	switch name {
	case "Connection", "Content-Length", "Content-Type", "Date", "Server": // most responses have these
		return false
	}
	name = strings.ToLower(name)
	return sensitiveHeader(name) || slices.Contains([]string{"location", "content-location", "link", "refresh"}, name) ||
		slices.ContainsFunc([]string{"cookie", "auth", "key", "session", "signature"}, func(part string) bool { return strings.Contains(name, part) })
}
