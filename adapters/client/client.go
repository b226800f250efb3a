// Package client is a Go client of the HTTP service: users, uploads, reads, queries, lab orders and webhook
// endpoints. It needs only the standard library.
//
// The names to know are [New], [Client.CreateUser], [Client.UploadSamples], [Client.CreateOrder] and [Error].
// [Client.Do] calls operations without a method. A nil pointer is null or absent.
package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/client/internal/rest"
)

// Options configures a [Client]. Nil means the defaults.
type Options struct {
	// HTTP sends the requests. Default: a client with a timeout of one minute for each attempt.
	// Redirects are not followed, because they would carry the keys to another host.
	HTTP *http.Client
	// ManagementKey gives access to the operations under /v1/org: teams, API keys, webhook endpoints.
	ManagementKey string
	// KeyHeader and ManagementKeyHeader name the headers of the keys. Default: x-service-api-key and
	// x-management-key.
	KeyHeader, ManagementKeyHeader string
	// Retries is the largest number of times that a request is repeated. Default 3; negative: never.
	Retries int
	// MaxWait is the longest wait before a repeat, by default 30 seconds. If Retry-After asks for a longer one, the
	// call returns the error of the answer at once.
	MaxWait time.Duration
}

// Client calls a service with the keys of one team. Safe for concurrent use.
type Client struct{ sender *rest.Sender }

// New returns a client of the service at base, such as https://health.example.org, with an API key.
// It returns an error if base is no http or https URL, or has a user, a query or a fragment.
func New(base, key string, o *Options) (*Client, error) {
	if o == nil {
		o = &Options{}
	}
	sender, err := rest.New(base, key, rest.Options(*o))
	if err != nil {
		return nil, err
	}
	return &Client{sender: sender}, nil
}

// Format writes the address of the service and no key, for every verb of fmt.
func (c Client) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "client of %s", c.sender.Base()) }

// Request is a call of an operation of the contract.
type Request struct {
	Method string
	// Path starts with a slash. The parts between slashes are escaped, as [url.PathEscape] does.
	Path  string
	Query url.Values
	// IdempotencyKey makes the service run the request once. The contract lists the operations that accept a key.
	IdempotencyKey string
	// Body is sent as JSON; nil sends no body. Answer points to the value into which the JSON answer is decoded; nil
	// ignores the answer.
	Body, Answer any
}

// Problem is what is wrong with one field of a request. Field is the path of the field, such as body.data.0.unit.
type Problem = rest.Problem

// Error is an answer with status 300 or above. Its texts contain no values of the request.
type Error struct {
	// Status is the HTTP status. Type is the stable error type of the contract; empty for 422.
	Status        int
	Type, Message string
	// Problems lists all problems of an invalid request (422).
	Problems []Problem
	// RequestID is the id under which the service logs the request.
	RequestID string
	// RetryAfter is how long the service asks to wait; 0 if the answer does not say.
	RetryAfter time.Duration
}

// Error returns the status, the type and the texts of the service.
func (e *Error) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("status %d %s %s", e.Status, e.Type, e.Message))
	for _, p := range e.Problems {
		text += "; " + p.Field + " " + p.Message
	}
	return text
}

// Do calls an operation. It repeats GET, HEAD, PUT, DELETE and requests with an idempotency key if no answer arrives,
// if the status is 429, 502, 503 or 504, or if the service still runs the request with this key. Before a repeat it
// waits for a random time that grows with each repeat, and at least as long as Retry-After says. A repeat of a DELETE
// that succeeded may return status 404. The error is an [*Error] if the answer has status 300 or above. Otherwise it is
// that of an invalid request, of the connection, of the context, or of an answer that cannot be decoded.
func (c *Client) Do(ctx context.Context, r Request) error {
	fault, err := c.sender.Send(ctx, rest.Request(r))
	if fault != nil {
		return (*Error)(fault)
	}
	return err
}
