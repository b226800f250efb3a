package linking

import (
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"time"

	"github.com/healthlab-dev/healthlab"
)

const (
	// CodeLife is how long a code is good by default.
	CodeLife = time.Hour
	// MaxCodeLife is the longest time that one may be good.
	MaxCodeLife = 7 * 24 * time.Hour
	// codeBytes is the random part.
	codeBytes = 4
)

var codeForm = regexp.MustCompile(`^(sk|pk)(eu|us)[0-9a-f]{8}$`)

// Code is a link code as a store keeps it. The text is a secret for as long as the code
// is good; 32 bits would not stay secret behind a hash either.
type Code struct {
	healthlab.Private

	// Text is the code: sk or pk, a region, eight lower-case hex digits.
	Text string
	// Team and User are who is bound by it.
	Team healthlab.TeamID
	User healthlab.UserID
	// CreatedAt and ExpiresAt bound its life.
	CreatedAt, ExpiresAt time.Time
	// UsedAt is when it was redeemed; zero if it was not.
	UsedAt time.Time
	// WrongBefore and FirstBefore are what TeamWrong and TeamFirst of [CodeAttempt] were when the
	// code was made. A store sets them, in the same step as it inserts the code.
	WrongBefore, FirstBefore int64
}

// LogValue shows whose code it is, and not the code.
func (c Code) LogValue() slog.Value {
	return slog.GroupValue(slog.String("team", c.Team.String()), slog.String("user", c.User.String()))
}

// IssuedCode is a new code as its owner sees it, once.
type IssuedCode struct {
	healthlab.Private

	// Code is the code.
	Code string `json:"code"`
	// ExchangeURL opens the companion app with it.
	ExchangeURL string `json:"exchange_url"`
	// ExpiresAt is when it stops working.
	ExpiresAt healthlab.Time `json:"expires_at"`
}

func codePrefix(env healthlab.Environment, region string) string {
	if env == healthlab.Production {
		return "pk" + region
	}
	return "sk" + region
}

// newCodeText draws a code.
func newCodeText(random io.Reader, prefix string) (string, error) {
	var b [codeBytes]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("draw code: %w", err)
	}
	return prefix + hex.EncodeToString(b[:]), nil
}

// codeExpiry checks when a code shall expire.
func codeExpiry(asked *time.Time, now time.Time) (time.Time, error) {
	if asked == nil {
		return now.Add(CodeLife), nil
	}
	var p healthlab.Problems
	switch {
	case !asked.After(now):
		p.Add("in_the_past", "a code expires in the future", "expires_at")
	case asked.After(now.Add(MaxCodeLife)):
		p.Add("too_late", "a code expires within 7 days", "expires_at")
	}
	return healthlab.At(*asked).Time, p.Err()
}
