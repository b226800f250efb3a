package linking

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Listener reads what a provider sends by itself when it has something new.
//
// Listen checks that a message is the provider's own, by its signature, and reads it. It
// is safe for concurrent use, keeps nothing between calls, and makes no requests. What is new is
// then fetched from the provider, unless the message brings the data itself. What is deleted
// at the provider, and who ended the grant there, is known by messages alone.
//
// Errors. Of the kind healthlab.Unauthenticated: the message is not the provider's, or too
// old to be. Of the kind healthlab.Invalid: it is, and makes no sense. No error holds what
// was sent.
type Listener interface {
	Listen(ctx context.Context, m Message) (ListenResult, error)
}

// Message is a request that came from outside, as it was received.
type Message struct {
	healthlab.Private

	// Method is GET, HEAD or POST.
	Method string
	// Header and Query are as net/http has them: names of headers are in canonical form.
	Header, Query map[string][]string
	Body          []byte
	// At is when it came, in UTC.
	At time.Time
}

// ListenResult is what a message says.
type ListenResult struct {
	Notifications []Notification
	// Reply is what the provider wants to read, as when it asks whether we listen at all,
	// in plain text. Most want nothing.
	Reply []byte
	// ReplyType is the media type of Reply. Default text/plain.
	ReplyType string
	// Status is the HTTP status of the answer. Default 200 with a Reply and 204 without.
	Status int
}

// Notification is something new of one account.
type Notification struct {
	// ID is the provider's own name for it: what comes twice is acted upon once. Empty
	// where it has none; then only a message that is the same byte for byte is the same.
	ID string
	// ExternalUserID is the account, in the provider's words.
	ExternalUserID string
	// Resources are the slugs of what is new; empty for anything.
	Resources []string
	// Since is the earliest instant of what is new; zero if the provider does not say, and
	// if it is recent.
	Since time.Time
	// Data is what the message itself brought: items and deletions by resource. It is stored
	// before the message is acknowledged, so a message that comes twice changes nothing.
	// With Data and without Resources, nothing is fetched.
	Data []ResourceData
	// Unlinked reports that the person ended the grant at the provider. The connection
	// fails as deregistered.
	Unlinked bool
}
