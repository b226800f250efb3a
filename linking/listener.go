package linking

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Listener reads messages that a provider sends when it has new data.
//
// Listen checks that a message is the provider's own, by its signature, and reads it. It is safe for concurrent
// use, keeps nothing between calls, and makes no requests. New data is then fetched from the provider, unless
// the message contains it. Deletions and ended grants are known only from messages.
//
// Errors. healthlab.Unauthenticated means that the message is not from the provider, or too old.
// healthlab.Invalid means that the provider's message cannot be read. Errors must not contain message data.
type Listener interface {
	Listen(ctx context.Context, m Message) (ListenResult, error)
}

// Message is an HTTP request as it was received from a provider.
type Message struct {
	healthlab.Private

	// Method is GET, HEAD or POST.
	Method string
	// Header and Query have the form of net/http, with canonical header names.
	Header, Query map[string][]string
	Body          []byte
	// At is when the message was received, in UTC.
	At time.Time
}

// ListenResult is the content of a message.
type ListenResult struct {
	Notifications []Notification
	// Reply is the plain text that the provider expects as the answer, for example when it verifies the URL.
	// Most providers expect none.
	Reply []byte
	// ReplyType is the media type of Reply. Default text/plain.
	ReplyType string
	// Status is the HTTP status of the answer. Default 200 with a Reply and 204 without.
	Status int
}

// Notification reports new data of one account.
type Notification struct {
	// ID is the provider's own id of the notification. A notification with a known id is ignored. If ID is empty, a
	// message with exactly the same bytes is ignored.
	ID string
	// ExternalUserID is the account, by the provider's name.
	ExternalUserID string
	// Resources are the slugs with new data; empty means all.
	Resources []string
	// Since is the earliest instant of the new data; zero if the provider does not state it, or if the data is so
	// recent that the next regular fetch includes it.
	Since time.Time
	// Data is the data in the message itself, with deletions, by resource. It is stored before the message is
	// acknowledged, so that a repeated message changes nothing. With Data and without Resources, nothing is
	// fetched.
	Data []ResourceData
	// Unlinked reports that the person ended the grant at the provider. The connection
	// fails as deregistered.
	Unlinked bool
}
