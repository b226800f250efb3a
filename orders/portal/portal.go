// Package portal makes the links by which a patient opens the portal of a host, and verifies the tokens of
// these links. The host serves the portal; orders.Service.PortalLink decides who gets a link.
package portal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Context is the purpose of a link to the patient portal.
type Context string

// Contexts of links.
const (
	// Launch opens the portal at once, from the team's own program; the link works for 10 minutes.
	Launch Context = "launch"
	// Communications is a short link for a message, which works for 28 days; the portal may ask the person to
	// identify themselves.
	Communications Context = "communications"
)

// Options configure the portal's links.
type Options struct {
	// BaseURL is the URL of the portal, without a slash at the end.
	BaseURL string
	// Key signs the links: at least 32 random bytes.
	Key []byte
}

// keySize is the minimum length of a key.
const keySize = 32

// Check returns healthlab.Invalid if the key is shorter than 32 bytes. Nil options are no error.
func (o *Options) Check() error {
	if o != nil && len(o.Key) < keySize {
		return fmt.Errorf("%w: portal.Options: Key must have at least %d bytes", healthlab.Invalid, keySize)
	}
	return nil
}

func (c Context) life() time.Duration {
	if c == Communications {
		return 28 * 24 * time.Hour
	}
	return 10 * time.Minute
}

// Request is a request for a link to the portal.
type Request struct {
	Context Context `json:"context"`
	// OrderID opens one order; nil opens all.
	OrderID *uuid.UUID `json:"order_id"`
}

// Check returns healthlab.Invalid for an unknown context.
func (r *Request) Check() error {
	var p healthlab.Problems
	rules.OneOf(&p, r.Context, []Context{Launch, Communications}, "context")
	return p.Err()
}

// Link is a link to the portal for a user.
type Link struct {
	URL string `json:"url"`
	// ExpiresIn is the time for which the link works, in seconds.
	ExpiresIn int `json:"expires_in"`
}

// Token is the content of a link's token.
type Token struct {
	Context Context
	User    healthlab.UserID
	// Order is the order that the link opens; zero for all.
	Order uuid.UUID
	// Expires is the expiry, to the second.
	Expires time.Time
}

// Link returns a signed link for a user, valid from now for 10 minutes ([Launch]) or 28 days
// ([Communications]).
func (o *Options) Link(r Request, user healthlab.UserID, now time.Time) Link {
	life := r.Context.life()
	t := Token{Context: r.Context, User: user, Expires: now.Add(life)}
	if r.OrderID != nil {
		t.Order = *r.OrderID
	}
	url := o.BaseURL + "/l/" + t.sign(o.Key)
	if r.Context == Launch {
		url = o.BaseURL + "/launch?context=launch&token=" + t.sign(o.Key) + "&user_id=" + user.String()
		if r.OrderID != nil {
			url += "&order_id=" + r.OrderID.String()
		}
	}
	return Link{URL: url, ExpiresIn: int(life / time.Second)}
}

// macSize is the length of the signature in a token: 96 bits.
const macSize = 12

// sign encodes and signs a token: a byte for the context, four for the expiry, the user, the order if there is one, and
// the signature.
func (t Token) sign(key []byte) string {
	b := []byte{0}
	if t.Context == Communications {
		b[0] = 1
	}
	b = binary.BigEndian.AppendUint32(b, uint32(t.Expires.Unix()))
	b = append(b, t.User.UUID[:]...)
	if t.Order != uuid.Nil {
		b = append(b, t.Order[:]...)
	}
	return base64.RawURLEncoding.EncodeToString(append(b, mac(key, b)...))
}

func mac(key, text []byte) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte("portal"))
	_, _ = h.Write(text)
	return h.Sum(nil)[:macSize]
}

// ReadToken verifies and reads the token of a link. Unauthenticated if the token is not signed with the key, or
// has expired.
func ReadToken(key []byte, token string, now time.Time) (Token, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	n := len(raw) - macSize
	if err != nil || n != 21 && n != 37 || !hmac.Equal(raw[n:], mac(key, raw[:n])) {
		return Token{}, fmt.Errorf("%w: token: must be one that the portal's link contains", healthlab.Unauthenticated)
	}
	t := Token{Context: Launch, Expires: time.Unix(int64(binary.BigEndian.Uint32(raw[1:5])), 0).UTC(),
		User: healthlab.UserID{UUID: uuid.UUID(raw[5:21])}}
	if raw[0] == 1 {
		t.Context = Communications
	}
	if n == 37 {
		t.Order = uuid.UUID(raw[21:37])
	}
	if !now.Before(t.Expires) {
		return Token{}, fmt.Errorf("%w: the token has expired", healthlab.Unauthenticated)
	}
	return t, nil
}
