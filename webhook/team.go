package webhook

import (
	"slices"
	"strings"
	"time"
)

// TeamSettings are the settings of a team for all of its endpoints. The zero value sends everything everywhere.
type TeamSettings struct {
	// Prefixes limits events to types that begin with one of them. An empty list sends all.
	Prefixes []string
	// Kinds limits events to endpoints of these kinds: see [DestinationKind]. An empty list allows all.
	Kinds []string
	// BodyRetention is how long the body of a message is kept after the last delivery attempt. Zero means
	// [DefaultBodyRetention].
	BodyRetention time.Duration
}

// KindWebhook is the kind of endpoints with an HTTP URL.
const KindWebhook = "webhook"

// DestinationKind returns the kind of an endpoint with this URL: [KindWebhook], or the scheme of the URL, such
// as nats.
func DestinationKind(url string) string {
	scheme, _, _ := strings.Cut(url, "://")
	if scheme = strings.ToLower(scheme); scheme == "https" || scheme == "http" {
		return KindWebhook
	}
	return scheme
}

// Wants reports whether events of a type are sent to an endpoint with this URL.
func (s TeamSettings) Wants(eventType, url string) bool {
	if len(s.Kinds) > 0 && !slices.Contains(s.Kinds, DestinationKind(url)) {
		return false
	}
	return len(s.Prefixes) == 0 || slices.ContainsFunc(s.Prefixes, func(p string) bool { return strings.HasPrefix(eventType, p) })
}
