package mllp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// ClientOptions adjusts a Client. The zero value, and nil, mean the defaults.
type ClientOptions struct {
	// TLS enables TLS if it is not nil.
	TLS *tls.Config
	// Dial opens the connection to the address. Default: TCP. TLS runs on top of the connection.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Timeout is how long to wait for a connection, and then for an answer, before the
	// next attempt. Default 10 s.
	Timeout time.Duration
	// Attempts is the largest number of times that a message is sent. The pause is 1 s at first, then doubles up to 30
	// s. Default 3.
	Attempts int
	// MaxBytes is the largest answer, in bytes. Default [DefaultMaxBytes].
	MaxBytes int
	// Now is the clock of deadlines. Default time.Now.
	Now func() time.Time
}

// Client sends messages to one address, one at a time, over a connection that it reuses. Safe for concurrent use.
type Client struct {
	address string
	opts    ClientOptions
	turn    chan struct{} // holds one token while a message is being sent
	mu      sync.Mutex
	conn    net.Conn
	frames  *Reader
}

// NewClient returns a client for an address (host:port). It connects when the first message is sent.
func NewClient(address string, o *ClientOptions) *Client {
	c := &Client{address: address, turn: make(chan struct{}, 1)}
	if o != nil {
		c.opts = *o
	}
	if c.opts.Dial == nil {
		c.opts.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}
	}
	if c.opts.Now == nil {
		c.opts.Now = time.Now
	}
	if c.opts.Timeout <= 0 {
		c.opts.Timeout = 10 * time.Second
	}
	if c.opts.Attempts <= 0 {
		c.opts.Attempts = 3
	}
	return c
}

func backoff(attempts int) time.Duration {
	return min(time.Second<<min(attempts-1, 10), 30*time.Second)
}

// Send sends a message and returns the first accepted answer. It skips late answers to earlier messages. Without an
// answer it sends the same bytes again; a receiver recognises repeats by the control id. It returns Unavailable if no
// answer arrives; whether the receiver has the message is then unknown.
func (c *Client) Send(ctx context.Context, message []byte, accept func(answer []byte) bool) ([]byte, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("send MLLP message: %w", ctx.Err())
	}
	for attempt := 1; ; attempt++ {
		answer, err := c.exchange(ctx, message, accept)
		if err == nil {
			return answer, nil
		}
		c.drop()
		if ctx.Err() == nil && attempt < c.opts.Attempts && wait(ctx.Done(), backoff(attempt)) {
			continue
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("send MLLP message: %w", ctx.Err())
		}
		return nil, fmt.Errorf("send MLLP message: %w: no answer after %d attempts: %w", healthlab.Unavailable, attempt, err)
	}
}

// exchange sends a message once and waits for its answer.
func (c *Client) exchange(ctx context.Context, message []byte, accept func([]byte) bool) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	conn, frames, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(c.opts.Now().Add(c.opts.Timeout)); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(long) })
	defer stop()
	if _, err := conn.Write(Append(nil, message)); err != nil {
		return nil, err
	}
	for {
		answer, err := frames.Next()
		if err != nil {
			return nil, err
		}
		if accept(answer) {
			return answer, nil
		}
	}
}

func (c *Client) connect(ctx context.Context) (net.Conn, *Reader, error) {
	c.mu.Lock()
	conn, frames := c.conn, c.frames
	c.mu.Unlock()
	if conn != nil {
		return conn, frames, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	conn, err := c.opts.Dial(ctx, c.address)
	if err != nil {
		return nil, nil, err
	}
	if c.opts.TLS != nil {
		config := c.opts.TLS.Clone()
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(c.address)
		}
		t := tls.Client(conn, config)
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, nil, errors.Join(err, conn.Close())
		}
		conn = t
	}
	frames = NewReader(conn, c.opts.MaxBytes)
	c.mu.Lock()
	c.conn, c.frames = conn, frames
	c.mu.Unlock()
	return conn, frames, nil
}

// drop closes the connection, so that the next message gets a new one.
func (c *Client) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn, c.frames = nil, nil
	}
}

// Close closes the connection. A message in progress fails or is sent over a new connection.
func (c *Client) Close() error {
	c.drop()
	return nil
}
