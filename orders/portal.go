package orders

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// PortalContext is what a link to the patient portal is for.
type PortalContext string

// The contexts.
const (
	// PortalLaunch opens the portal at once, from the team's own program.
	PortalLaunch PortalContext = "launch"
	// PortalCommunications is a short link for a message; the portal may ask who opens
	// it.
	PortalCommunications PortalContext = "communications"
)

// Portal says where patients see their orders. The host serves the portal; we make the
// links that lead there, and [ReadPortalToken] reads them.
type Portal struct {
	// BaseURL is that of the portal, without a slash at the end.
	BaseURL string
	// Key signs the links: at least 32 random bytes.
	Key []byte
	// LaunchFor is how long a link for PortalLaunch lives. Default 10 min.
	LaunchFor time.Duration
	// CommunicationsFor is the same for PortalCommunications. Default 28 days.
	CommunicationsFor time.Duration
}

// portalKeySize is the least that a key has.
const portalKeySize = 32

func (p *Portal) check() error {
	if p != nil && len(p.Key) < portalKeySize {
		return fmt.Errorf("%w: links to the portal need a key of at least %d bytes", healthlab.Invalid, portalKeySize)
	}
	return nil
}

// PortalRequest asks for a link to the portal.
type PortalRequest struct {
	Context PortalContext `json:"context"`
	// OrderID leads to one order; nil to all.
	OrderID *OrderID `json:"order_id"`
}

// PortalLink leads a user to the portal.
type PortalLink struct {
	URL string `json:"url"`
	// ExpiresIn is in seconds.
	ExpiresIn int `json:"expires_in"`
}

// PortalToken is what the token of a link says.
type PortalToken struct {
	Context PortalContext
	User    healthlab.UserID
	// Order is zero if the link names none.
	Order OrderID
	// Expires is to the second.
	Expires time.Time
}

// PortalLink makes a link to the portal for a user. Invalid if the request is wrong, or
// the user has no demographics (DEMOGRAPHICS_MISSING); NotFound if the team has no such
// user or order; Unimplemented without a portal.
func (s *Service) PortalLink(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, req PortalRequest) (PortalLink, error) {
	var p healthlab.Problems
	rules.OneOf(&p, req.Context, []PortalContext{PortalLaunch, PortalCommunications}, "context")
	if err := p.Err(); err != nil {
		return PortalLink{}, err
	}
	portal := s.opts.Portal
	if portal == nil {
		return PortalLink{}, fmt.Errorf("portal link: %w", healthlab.Unimplemented)
	}
	_, err := s.people.UserInfo(ctx, team, user)
	var rule *healthlab.RuleError
	if errors.As(err, &rule) && rule.Type == people.UserInfoNotFound {
		return PortalLink{}, &healthlab.RuleError{Kind: healthlab.Invalid, Type: people.DemographicsMissing, Msg: "the user has no demographics"}
	}
	if err != nil {
		return PortalLink{}, err
	}
	t := PortalToken{Context: req.Context, User: user}
	if req.OrderID != nil {
		o, err := s.Get(ctx, team, *req.OrderID)
		if err != nil || o.UserID != user {
			return PortalLink{}, errors.Join(err, rules.Missing(OrderNotFound, "the user has no such order"))
		}
		t.Order = *req.OrderID
	}
	life := portal.LaunchFor
	if req.Context == PortalCommunications {
		life = portal.CommunicationsFor
	}
	t.Expires = s.now().Add(life)
	url := portal.BaseURL + "/l/" + t.sign(portal.Key)
	if req.Context == PortalLaunch {
		url = portal.BaseURL + "/launch?context=launch&token=" + t.sign(portal.Key) + "&user_id=" + user.String()
		if req.OrderID != nil {
			url += "&order_id=" + req.OrderID.String()
		}
	}
	return PortalLink{URL: url, ExpiresIn: int(life / time.Second)}, nil
}

// macSize is how much of the signature a token has: 96 bits.
const macSize = 12

// sign writes a token: a byte for the context, four for the end, the user, the order if
// there is one, and the signature.
func (t PortalToken) sign(key []byte) string {
	b := []byte{0}
	if t.Context == PortalCommunications {
		b[0] = 1
	}
	b = binary.BigEndian.AppendUint32(b, uint32(t.Expires.Unix()))
	b = append(b, t.User.UUID[:]...)
	if !t.Order.IsZero() {
		b = append(b, t.Order.UUID[:]...)
	}
	return base64.RawURLEncoding.EncodeToString(append(b, portalMAC(key, b)...))
}

func portalMAC(key, text []byte) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte("portal"))
	_, _ = mac.Write(text)
	return mac.Sum(nil)[:macSize]
}

// ReadPortalToken reads the token of a link. Unauthenticated if it is none that was
// signed with the key, or has expired.
func ReadPortalToken(key []byte, token string, now time.Time) (PortalToken, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	n := len(raw) - macSize
	if err != nil || n != 21 && n != 37 || !hmac.Equal(raw[n:], portalMAC(key, raw[:n])) {
		return PortalToken{}, fmt.Errorf("%w: not a token of the portal", healthlab.Unauthenticated)
	}
	t := PortalToken{Context: PortalLaunch, Expires: time.Unix(int64(binary.BigEndian.Uint32(raw[1:5])), 0).UTC(),
		User: healthlab.UserID{UUID: uuid.UUID(raw[5:21])}}
	if raw[0] == 1 {
		t.Context = PortalCommunications
	}
	if n == 37 {
		t.Order.UUID = uuid.UUID(raw[21:37])
	}
	if !now.Before(t.Expires) {
		return PortalToken{}, fmt.Errorf("%w: the token has expired", healthlab.Unauthenticated)
	}
	return t, nil
}
