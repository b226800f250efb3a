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
	// CodeLife is the default lifetime of a link code.
	CodeLife = time.Hour
	// MaxCodeLife is the greatest lifetime of a link code.
	MaxCodeLife = 7 * 24 * time.Hour
	// codeBytes is the number of random bytes of a code.
	codeBytes = 4
)

var codeForm = regexp.MustCompile(`^(sk|pk)(eu|us)[0-9a-f]{8}$`)

// Code is a link code in its stored form. The text is secret while the code is valid; a hash of 32 bits would
// not protect it.
type Code struct {
	healthlab.Private

	// Text is the code: sk or pk, a region, eight lower-case hex digits.
	Text string
	// Team and User are the user for whom the code was made.
	Team healthlab.TeamID
	User healthlab.UserID
	// CreatedAt and ExpiresAt are the lifetime of the code.
	CreatedAt, ExpiresAt time.Time
	// UsedAt is when the code was redeemed; zero if it was not redeemed.
	UsedAt time.Time
	// WrongBefore and FirstBefore are the values of TeamWrong and TeamFirst of [CodeAttempt] at the creation of
	// the code. A store sets them when it inserts the code.
	WrongBefore, FirstBefore int64
}

// LogValue contains the team and the user, and not the code.
func (c Code) LogValue() slog.Value {
	return slog.GroupValue(slog.String("team", c.Team.String()), slog.String("user", c.User.String()))
}

// IssuedCode is a new code, as it is returned once to its owner.
type IssuedCode struct {
	healthlab.Private

	// Code is the text of the code.
	Code string `json:"code"`
	// ExchangeURL opens the companion app with the code.
	ExchangeURL string `json:"exchange_url"`
	// ExpiresAt is when the code expires.
	ExpiresAt healthlab.Time `json:"expires_at"`
}

func codePrefix(env healthlab.Environment, region string) string {
	if env == healthlab.Production {
		return "pk" + region
	}
	return "sk" + region
}

// newCodeText returns a random code.
func newCodeText(random io.Reader, prefix string) (string, error) {
	var b [codeBytes]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("draw code: %w", err)
	}
	return prefix + hex.EncodeToString(b[:]), nil
}

// codeExpiry returns the expiry of a code, or an error if the requested one is not allowed.
func codeExpiry(asked *time.Time, now time.Time) (time.Time, error) {
	if asked == nil {
		return now.Add(CodeLife), nil
	}
	var p healthlab.Problems
	switch {
	case !asked.After(now):
		p.Add("in_the_past", "must be in the future", "expires_at")
	case asked.After(now.Add(MaxCodeLife)):
		p.Add("too_late", "must be within 7 days", "expires_at")
	}
	return healthlab.At(*asked).Time, p.Err()
}
