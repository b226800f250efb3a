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

// Region is the region in which the data of a team is stored.
type Region string

// The regions.
const (
	US Region = "us"
	EU Region = "eu"
)

// KeySum is the SHA-256 of an API key. Only the sum is stored, not the key. Keys are 32 random bytes, so a sum needs no
// salt. A KeySum is immutable and comparable.
type KeySum [sha256.Size]byte

// SumKey returns the sum of a key. The key includes its prefix.
func SumKey(key string) KeySum { return sha256.Sum256([]byte(key)) }

// APIKey is a stored API key.
type APIKey struct {
	// Team is the team that owns the key.
	Team healthlab.TeamID
	// Sum is the sum of the key.
	Sum KeySum
	// ID is the id of the key; zero if it has none.
	ID uuid.UUID
	// Scopes limits what the key may do. Empty means all scopes.
	Scopes organisation.Scopes
}

// KeyFinder finds an API key by its sum. Implementations must be safe for concurrent use.
type KeyFinder interface {
	// FindKey returns the valid key with that sum. A lookup by sum in an index is safe, because an attacker cannot
	// choose a sum. Errors: NotFound (unknown or revoked key), Unavailable.
	FindKey(ctx context.Context, sum KeySum) (APIKey, error)
}

// Keys is a fixed list of keys, for hosts with few of them.
type Keys []APIKey

// FindKey returns the key with that sum. It compares every key, so that its duration does not depend on the sum.
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

// LogValue returns the number of keys, so that no key is logged.
func (k Keys) LogValue() slog.Value { return slog.IntValue(len(k)) }

// KeyOptions adjusts [KeyAuth]. The zero value, and nil, mean the defaults.
type KeyOptions struct {
	// Header is the header with the key. Default x-service-api-key.
	Header string
}

// KeyAuth returns a function for Config.Authenticate that identifies a team by its API key. It refuses a key whose
// prefix names another environment or region. Errors: Unauthenticated, and the errors of find other than NotFound.
func KeyAuth(find KeyFinder, env healthlab.Environment, region Region, opts *KeyOptions) (func(*http.Request) (Caller, error), error) {
	if _, err := keyPrefix(env, region); err != nil {
		return nil, fmt.Errorf("authenticate by key: %w", err)
	}
	if find == nil {
		return nil, fmt.Errorf("%w: authenticate by key: find must not be nil", healthlab.Invalid)
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

// keyBytes is the number of random bytes in a key.
const keyBytes = 32

// NewKey makes an API key from 32 bytes of random. Use crypto/rand.Reader; tests may use another reader. The caller
// shows the key once and stores only its sum. The prefix of a key is pk_us_ or pk_eu_ in production, and sk_us_ or
// sk_eu_ in a sandbox.
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
		return fmt.Errorf("%w: API key: must be %s followed by %d hexadecimal digits", healthlab.Invalid, prefix, 2*keyBytes)
	}
	return nil
}

// KeyHint returns the prefix and the last four characters of a key, to be shown later. Store the hint with the sum,
// because the key cannot be computed from its sum.
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
		return "", fmt.Errorf("%w: environment: must be one of sandbox, production", healthlab.Invalid)
	}
	if region != US && region != EU {
		return "", fmt.Errorf("%w: region: must be one of us, eu", healthlab.Invalid)
	}
	return p + string(region) + "_", nil
}
