package portal_test

import (
	"fmt"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/portal"
)

// A host sends a patient a link, and reads its token where the portal is opened.
func Example() {
	options := portal.Options{BaseURL: "https://portal.example.com", Key: []byte("0123456789abcdef0123456789abcdef")}
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	robin := healthlab.UserID{UUID: uuid.UUID{1}}
	link := options.Link(portal.Request{Context: portal.Communications}, robin, now)
	token, err := portal.ReadToken(options.Key, strings.TrimPrefix(link.URL, "https://portal.example.com/l/"), now.Add(time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(token.User == robin, token.Expires.Format(time.DateOnly))
	// Output: true 2026-03-30
}

// Check refuses a key shorter than 32 bytes: an attacker who guesses it can forge links.
func TestOptions_refuseAKeyBelow32Bytes(t *testing.T) {
	for n, want := range map[int]error{0: healthlab.Invalid, 31: healthlab.Invalid, 32: nil, 64: nil} {
		require.ErrorIs(t, (&portal.Options{Key: make([]byte, n)}).Check(), want, n)
	}
	require.NoError(t, (*portal.Options)(nil).Check())
}

// ReadToken refuses what is not a token of the key, and a token after its time.
func TestReadToken_refusesForgedAndExpiredTokens(t *testing.T) {
	options := portal.Options{BaseURL: "https://p.example.com", Key: []byte("0123456789abcdef0123456789abcdef")}
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	link := options.Link(portal.Request{Context: portal.Communications}, healthlab.UserID{UUID: uuid.UUID{1}}, now)
	token := strings.TrimPrefix(link.URL, "https://p.example.com/l/")
	_, err := portal.ReadToken(options.Key, token, now)
	require.NoError(t, err)
	for name, bad := range map[string]func() (portal.Token, error){
		"other key": func() (portal.Token, error) { return portal.ReadToken([]byte("x"), token, now) },
		"expired":   func() (portal.Token, error) { return portal.ReadToken(options.Key, token, now.AddDate(0, 0, 29)) },
		"cut":       func() (portal.Token, error) { return portal.ReadToken(options.Key, token[2:], now) },
		"changed":   func() (portal.Token, error) { return portal.ReadToken(options.Key, "B"+token[1:], now) },
		"empty":     func() (portal.Token, error) { return portal.ReadToken(options.Key, "", now) },
	} {
		_, err := bad()
		require.ErrorIs(t, err, healthlab.Unauthenticated, name)
	}
}
