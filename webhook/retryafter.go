package webhook

import (
	"net/http"
	"strings"
	"time"
)

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
