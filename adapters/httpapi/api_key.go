package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
)

// Region is where a team's data stays.
type Region string

// The regions.
const (
	US Region = "us"
	EU Region = "eu"
)

// KeySum is the SHA-256 of an API key, which is all that is ever stored of one. The
// keys are 32 random bytes, so a sum needs neither salt nor stretching. Immutable and
// comparable.
type KeySum [sha256.Size]byte

// SumKey returns the sum of a whole key, prefix included.
func SumKey(key string) KeySum { return sha256.Sum256([]byte(key)) }

// APIKey is a key as it is stored.
type APIKey struct {
	// Team is whose key it is.
	Team healthlab.TeamID
	// Sum is the sum of the key.
	Sum KeySum
	// ID is the id of the key; zero if it has none.
	ID uuid.UUID
	// Scopes are what the key may do; empty means everything.
	Scopes organisation.Scopes
}

// KeyFinder finds out whose a key is. Implementations must be safe for concurrent
// use.
type KeyFinder interface {
	// FindKey returns the live key with that sum. Finding it by the sum in an index
	// tells an attacker nothing, as a sum cannot be chosen. Errors: NotFound
	// (there is none, or it was revoked), Unavailable.
	FindKey(ctx context.Context, sum KeySum) (APIKey, error)
}

// Keys is a fixed list of keys, for hosts with few of them.
type Keys []APIKey

// FindKey looks at every key, in the same time whichever it is.
func (k Keys) FindKey(_ context.Context, sum KeySum) (APIKey, error) {
	found := -1
	for i := range k {
		if subtle.ConstantTimeCompare(k[i].Sum[:], sum[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return APIKey{}, fmt.Errorf("%w: API key", healthlab.NotFound)
	}
	return k[found], nil
}

// LogValue shows how many keys there are.
func (k Keys) LogValue() slog.Value { return slog.IntValue(len(k)) }

// KeyOptions adjusts [KeyAuth]. The zero value, and nil, mean the defaults.
type KeyOptions struct {
	// Header is the header with the key. Default x-service-api-key.
	Header string
}

// KeyAuth returns a function for Config.Authenticate that knows teams by their API
// keys. A key of another environment or region is refused by its prefix. Its errors:
// Unauthenticated, and what the finder fails with other than NotFound.
func KeyAuth(find KeyFinder, env healthlab.Environment, region Region, opts *KeyOptions) (func(*http.Request) (Caller, error), error) {
	if _, err := keyPrefix(env, region); err != nil {
		return nil, fmt.Errorf("authenticate by key: %w", err)
	}
	if find == nil {
		return nil, fmt.Errorf("%w: authenticate by key: a finder of keys is needed", healthlab.Invalid)
	}
	header := defaultKeyHeader
	if opts != nil && opts.Header != "" {
		header = opts.Header
	}
	return func(r *http.Request) (Caller, error) {
		sent := r.Header.Values(header)
		if len(sent) != 1 || CheckKey(sent[0], env, region) != nil {
			return Caller{}, fmt.Errorf("%w: API key", healthlab.Unauthenticated)
		}
		sum := SumKey(sent[0])
		key, err := find.FindKey(r.Context(), sum)
		switch {
		case errors.Is(err, healthlab.NotFound):
			return Caller{}, fmt.Errorf("%w: API key", healthlab.Unauthenticated)
		case err != nil:
			return Caller{}, fmt.Errorf("find API key: %w", err)
		case subtle.ConstantTimeCompare(key.Sum[:], sum[:]) != 1 || key.Team.IsZero():
			return Caller{}, fmt.Errorf("%w: API key", healthlab.Unauthenticated)
		}
		return Caller{Team: key.Team, Key: key.ID, Scopes: key.Scopes}, nil
	}, nil
}

// keyBytes is how much randomness a key has.
const keyBytes = 32

// NewKey makes an API key from 32 bytes of random, which is crypto/rand.Reader but
// in tests. The key is shown once, to its owner; only its sum is stored. Its prefix
// tells where it is good: pk_us_ and pk_eu_ in production, sk_us_ and sk_eu_ in a
// sandbox.
func NewKey(random io.Reader, env healthlab.Environment, region Region) (string, KeySum, error) {
	prefix, err := keyPrefix(env, region)
	if err != nil {
		return "", KeySum{}, fmt.Errorf("make API key: %w", err)
	}
	var b [keyBytes]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", KeySum{}, fmt.Errorf("make API key: %w", err)
	}
	key := prefix + hex.EncodeToString(b[:])
	return key, SumKey(key), nil
}

// CheckKey returns Invalid unless a text has the form of [NewKey]'s keys for this
// environment and region.
func CheckKey(key string, env healthlab.Environment, region Region) error {
	prefix, err := keyPrefix(env, region)
	if err != nil {
		return fmt.Errorf("check API key: %w", err)
	}
	digits, ok := strings.CutPrefix(key, prefix)
	if _, err := hex.DecodeString(digits); !ok || err != nil || len(digits) != 2*keyBytes {
		return fmt.Errorf("%w: an API key is %s and %d hexadecimal digits", healthlab.Invalid, prefix, 2*keyBytes)
	}
	return nil
}

// KeyHint returns what may be shown of a key later: its prefix and its last four
// characters. Keep it beside the sum, which cannot be turned back.
func KeyHint(key string) string {
	const tail = 4
	i := strings.LastIndexByte(key, '_') + 1
	if len(key)-i < 4*tail {
		return "…"
	}
	return key[:i] + "…" + key[len(key)-tail:]
}

func keyPrefix(env healthlab.Environment, region Region) (string, error) {
	var p string
	switch env {
	case healthlab.Production:
		p = "pk_"
	case healthlab.Sandbox:
		p = "sk_"
	default:
		return "", fmt.Errorf("%w: the environment must be sandbox or production", healthlab.Invalid)
	}
	if region != US && region != EU {
		return "", fmt.Errorf("%w: the region must be us or eu", healthlab.Invalid)
	}
	return p + string(region) + "_", nil
}
