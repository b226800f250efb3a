package webhook

import (
	"net/http"
	"slices"
	"strings"
)

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
