package nats

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Scheme is the URL scheme of endpoints.
const Scheme = "nats"

// Headers of messages besides those of the signature.
const (
	HeaderType     = "Event-Type"
	HeaderTeam     = "Team-Id"
	HeaderKey      = "Idempotency-Key"
	HeaderEncoding = "Content-Encoding"
)

// compressFrom is the size, in bytes, from which a body is compressed.
const compressFrom = 1024

// Options adjusts a Notifier. The zero value, and nil, mean the defaults.
type Options struct {
	// Subject returns the subject of a message. Default: the name in the URL, the id of the team and the event type,
	// joined with full stops. Teams choose the name; the id in the subject prevents a team from writing to the queue
	// of another.
	Subject func(n webhook.Notification) string
	// Timeout is the longest wait for the stream's acknowledgement. Default 15 s.
	Timeout time.Duration
	// Now is the clock that measures how long a publication takes. Default time.Now.
	Now func() time.Time
}

// Notifier is a [webhook.Notifier] that publishes to a stream and waits for its acknowledgement. Safe for concurrent
// use.
type Notifier struct {
	js   jetstream.JetStream
	opts Options
}

// New returns a Notifier. The host opens, watches and closes the connection.
func New(js jetstream.JetStream, opts *Options) *Notifier {
	n := &Notifier{js: js}
	if opts != nil {
		n.opts = *opts
	}
	if n.opts.Subject == nil {
		n.opts.Subject = func(n webhook.Notification) string {
			return strings.TrimPrefix(n.URL, Scheme+"://") + "." + n.Team.String() + "." + n.Type
		}
	}
	if n.opts.Timeout <= 0 {
		n.opts.Timeout = 15 * time.Second
	}
	if n.opts.Now == nil {
		n.opts.Now = time.Now
	}
	return n
}

// Notify publishes once. See [webhook.Notifier].
func (n *Notifier) Notify(ctx context.Context, m webhook.Notification) webhook.Result {
	began := n.opts.Now()
	class := n.publish(ctx, m)
	return webhook.Result{Class: class, Duration: n.opts.Now().Sub(began)}
}

func (n *Notifier) publish(ctx context.Context, m webhook.Notification) webhook.Class {
	msg, err := n.message(m)
	if err != nil {
		return webhook.ClassBlocked
	}
	if !n.js.Conn().IsConnected() {
		return webhook.ClassConnect // the client library would otherwise send it later
	}
	ctx, cancel := context.WithTimeout(ctx, n.opts.Timeout)
	defer cancel()
	_, err = n.js.PublishMsg(ctx, msg, jetstream.WithRetryAttempts(0))
	return classOf(err)
}

func (n *Notifier) message(m webhook.Notification) (*natsgo.Msg, error) {
	h := http.Header{}
	for name, values := range m.Headers {
		h[name] = values
	}
	webhook.SetSignature(h, m.ID, m.At, m.Body, m.Secrets...)
	h.Set(HeaderType, m.Type)
	h.Set(HeaderTeam, m.Team.String())
	h.Set(HeaderKey, m.ID)
	body := m.Body
	if len(body) >= compressFrom {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(body); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		h.Set(HeaderEncoding, "gzip")
		body = b.Bytes()
	}
	return &natsgo.Msg{Subject: n.opts.Subject(m), Header: natsgo.Header(h), Data: body}, nil
}

// classOf returns the class of the error of a publication; ClassOK for nil.
func classOf(err error) webhook.Class {
	var api *jetstream.APIError
	switch {
	case err == nil:
		return webhook.ClassOK
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, natsgo.ErrNoResponders),
		errors.Is(err, natsgo.ErrMaxPayload), errors.Is(err, natsgo.ErrBadSubject):
		return webhook.ClassRefused // no stream accepts the subject
	case errors.As(err, &api):
		if api.Code >= http.StatusInternalServerError {
			return webhook.ClassThrottled // the stream is full, or has no leader
		}
		return webhook.ClassRefused
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, natsgo.ErrTimeout):
		return webhook.ClassTimeout
	default:
		return webhook.ClassReset
	}
}

// Read returns the signed body of a message and its headers, for receiver.Receive. A message may wait in its stream
// for long, so the receiver's Verifier needs a sufficient Tolerance. Read returns Invalid if the body does not match
// its Content-Encoding, or has more than max bytes.
func Read(msg jetstream.Msg, max int) (body []byte, h http.Header, err error) {
	h = http.Header(msg.Headers())
	var r io.Reader = bytes.NewReader(msg.Data())
	switch h.Get(HeaderEncoding) {
	case "":
	case "gzip":
		if r, err = gzip.NewReader(r); err != nil {
			return nil, nil, fmt.Errorf("read message: %w: the body must be gzip, because the header Content-Encoding is gzip", healthlab.Invalid)
		}
	default:
		return nil, nil, fmt.Errorf("read message: %w: Content-Encoding: must be gzip or absent", healthlab.Invalid)
	}
	body, err = io.ReadAll(io.LimitReader(r, int64(max)+1))
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("read message: %w: the body must be gzip, because the header Content-Encoding is gzip", healthlab.Invalid)
	case len(body) > max:
		return nil, nil, fmt.Errorf("read message: %w: the body must have at most %d bytes", healthlab.Invalid, max)
	}
	return body, h, nil
}
