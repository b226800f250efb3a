package documents

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
)

// LinkValidFor is the time for which the URL of a requisition is valid.
const LinkValidFor = 7 * 24 * time.Hour

// linkBound is the additional authenticated data of the tokens, so that a secret which the same keys encrypt
// for another purpose is no valid token.
var linkBound = []byte("requisition form")

// Links makes URLs at which anyone with the URL can read one requisition. Use [NewLinks].
type Links struct {
	url  string
	keys healthlab.Sealer
}

// NewLinks returns Links below a base URL without a slash at its end: the URL of a requisition is the base URL,
// a slash and a token that keys encrypts. Every process must have the same keys. Use the method URL as
// RequisitionURL in the options of package exchange, and the Links in [Options]. Invalid without URL or keys.
func NewLinks(url string, keys healthlab.Sealer) (*Links, error) {
	if url == "" || keys == nil {
		return nil, fmt.Errorf("%w: documents.NewLinks: url must not be empty, and keys must not be nil", healthlab.Invalid)
	}
	return &Links{url: url, keys: keys}, nil
}

// URL returns the URL of an order's requisition, which is valid for [LinkValidFor] from now.
func (l *Links) URL(ctx context.Context, team healthlab.TeamID, order orders.OrderID, now time.Time) (string, error) {
	plain := append(append([]byte{}, team.UUID[:]...), order.UUID[:]...)
	plain = binary.BigEndian.AppendUint64(plain, uint64(now.Add(LinkValidFor).Unix()))
	box, err := l.keys.Seal(ctx, plain, linkBound)
	if err != nil {
		return "", fmt.Errorf("requisition URL: %w", err)
	}
	enc := base64.RawURLEncoding
	return l.url + "/" + enc.EncodeToString([]byte(box.KeyID)) + "." + enc.EncodeToString(box.Box), nil
}

func noLink() error { return noDocument("there is no such document, or its URL has expired") }

// open decrypts a token and returns its team and order. NotFound if the token is invalid or expired.
func (l *Links) open(ctx context.Context, token string, now time.Time) (team healthlab.TeamID, order orders.OrderID, err error) {
	name, box, ok := strings.Cut(token, ".")
	enc := base64.RawURLEncoding.Strict()
	id, noName := enc.DecodeString(name)
	sealed, noBox := enc.DecodeString(box)
	if l == nil || !ok || noName != nil || noBox != nil {
		return team, order, noLink()
	}
	plain, err := l.keys.Open(ctx, healthlab.Sealed{KeyID: string(id), Box: sealed}, linkBound)
	if ctx.Err() != nil {
		return team, order, ctx.Err()
	}
	if err != nil || len(plain) != 40 || now.Unix() >= int64(binary.BigEndian.Uint64(plain[32:])) {
		return team, order, noLink()
	}
	return healthlab.TeamID{UUID: uuid.UUID(plain[:16])}, orders.OrderID{UUID: uuid.UUID(plain[16:32])}, nil
}
