package fhirlab

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Sender sends a transaction to the laboratory and returns its answer. It returns [healthlab.Invalid] if the
// laboratory refuses the content for good, and [healthlab.NotFound] if the laboratory no longer has a resource that
// the bundle names. After any other error it is unknown whether the bundle arrived, and it is sent again. It must be
// safe for concurrent use.
type Sender interface {
	Send(ctx context.Context, bundle []byte) (answer []byte, err error)
}

// Client is a [Sender] over HTTP.
type Client struct {
	url   string
	token func(ctx context.Context) (string, error)
	http  *http.Client
}

const (
	// answerLimit is the largest answer of a laboratory to a transaction, in bytes.
	answerLimit = 4 << 20
	// pageLimit is the largest page of reports, in bytes.
	pageLimit = 64 << 20
)

// NewClient returns a client of the FHIR server at url. token returns the bearer token of a request; nil for none.
// client sends the requests; nil for one with a timeout of 30 seconds.
func NewClient(url string, token func(ctx context.Context) (string, error), client *http.Client) *Client {
	if client == nil {
		client = &http.Client{Timeout: 30 * time.Second}
	}
	return &Client{strings.TrimSuffix(url, "/"), token, client}
}

// Send implements [Sender].
func (c *Client) Send(ctx context.Context, bundle []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(bundle))
	if err != nil {
		return nil, fmt.Errorf("send bundle: %w", err)
	}
	r.Header.Set("Content-Type", "application/fhir+json")
	if err := c.sign(r); err != nil {
		return nil, err
	}
	w, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("send bundle: %w", err)
	}
	defer func() { _ = w.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(w.Body, answerLimit))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	switch w.StatusCode {
	case http.StatusOK, http.StatusCreated:
		return answer, nil
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge:
		return nil, fmt.Errorf("%w: the laboratory's server refuses the bundle with HTTP status %d", healthlab.Invalid, w.StatusCode)
	case http.StatusNotFound, http.StatusGone:
		return nil, fmt.Errorf("%w: the laboratory's server answers the bundle with HTTP status %d", healthlab.NotFound, w.StatusCode)
	}
	return nil, fmt.Errorf("%w: the laboratory's server answers the bundle with HTTP status %d", healthlab.Unavailable, w.StatusCode)
}

// sign adds the bearer token and the accepted media type to a request.
func (c *Client) sign(r *http.Request) error {
	r.Header.Set("Accept", "application/fhir+json")
	if c.token == nil {
		return nil
	}
	token, err := c.token(r.Context())
	if err != nil {
		return fmt.Errorf("token of the laboratory: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return nil
}
