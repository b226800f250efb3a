package webhook

import (
	"slices"
	"strings"
	"time"
)

// TeamSettings are what a team has chosen for all of its endpoints. The zero value sends
// everything everywhere.
type TeamSettings struct {
	// Prefixes lets only those events be sent whose type begins with one of them. None
	// lets all be sent.
	Prefixes []string
	// Kinds are those of the endpoints that get something: see [DestinationKind]. None
	// lets all get it.
	Kinds []string
	// BodyRetention is how long the body of a message is kept after the last attempt to
	// deliver it. Zero means [DefaultBodyRetention].
	BodyRetention time.Duration
}

// KindWebhook is the kind of endpoints that are called over HTTP.
const KindWebhook = "webhook"

// DestinationKind returns what kind an endpoint with this URL is: [KindWebhook], or
// the scheme of the URL, as nats.
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
