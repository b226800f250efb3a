package webhook

import "net/http"

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
