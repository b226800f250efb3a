package rest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

// Listening is passed to [Definition.Listen]. It holds the secrets that check pushed messages, and decodes their items.
type Listening struct {
	healthlab.Private

	// Client is the OAuth client that the message is for. Many providers sign messages with its secret.
	Client Client
	// VerifyToken is Options.VerifyToken. For the client of [Connector.ForClient] of a provider with
	// Definition.MessageKey, it is the detail of that name.
	VerifyToken string

	def *Definition
}

// Read decodes the items in a message as a page of a collection, like [Definition.Read].
func (l *Listening) Read(collection string, items []byte) ([]linking.ResourceData, error) {
	data, err := l.def.Read(collection, items)
	if err != nil {
		return nil, err
	}
	var out []linking.ResourceData
	for _, resource := range slices.Sorted(maps.Keys(data)) {
		out = append(out, linking.ResourceData{Resource: resource, Items: data[resource]})
	}
	return out, nil
}

// Words returns the message types that announce collections, sorted.
func Words(collections []Collection) []string {
	words := map[string]bool{}
	for i := range collections {
		for _, word := range collections[i].Messages {
			words[word] = true
		}
		for word := range collections[i].MessagesFor {
			words[word] = true
		}
	}
	return slices.Sorted(maps.Keys(words))
}

// Brought decodes the items that a message contains. word is the type of the message. The items are those of the first
// collection whose Messages contain word; if there is none, Brought returns Invalid.
func (l *Listening) Brought(word string, items []byte) ([]linking.ResourceData, error) {
	for i := range l.def.Collections {
		if slices.Contains(l.def.Collections[i].Messages, word) {
			return l.Read(l.def.Collections[i].Name, items)
		}
	}
	return nil, NotReadable()
}

// Announced returns the resources that a message of the type word announces, in the order of the definition; nil if
// there are none.
func (l *Listening) Announced(word string) (out []string) {
	for i := range l.def.Collections {
		k := &l.def.Collections[i]
		announced := k.MessagesFor[word]
		if slices.Contains(k.Messages, word) {
			announced = k.Resources
		}
		for _, resource := range announced {
			if !slices.Contains(out, resource) {
				out = append(out, resource)
			}
		}
	}
	return out
}

type listener struct {
	state  Listening
	listen func(*Listening, linking.Message) (linking.ListenResult, error)
}

// Listen reads a message. See [linking.Listener].
func (l *listener) Listen(_ context.Context, m linking.Message) (linking.ListenResult, error) {
	return l.listen(&l.state, m)
}

// Header returns the first value of a message's header, or the empty text.
func Header(m *linking.Message, name string) string {
	if v := m.Header[textproto.CanonicalMIMEHeaderKey(name)]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Query returns the first value of a message's query parameter, or the empty text.
func Query(m *linking.Message, name string) string {
	if v := m.Query[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// SignedHex reports whether a signature is the HMAC-SHA256 of the concatenated parts, in hexadecimal digits of
// either case. It returns false for an empty secret.
func SignedHex(signature, secret string, parts ...[]byte) bool {
	got, err := hex.DecodeString(strings.ToLower(signature))
	return err == nil && signed(got, secret, parts)
}

// SignedBase64 is SignedHex for signatures in base64.
func SignedBase64(signature, secret string, parts ...[]byte) bool {
	got, err := base64.StdEncoding.DecodeString(signature)
	return err == nil && signed(got, secret, parts)
}

func signed(got []byte, secret string, parts [][]byte) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	for _, p := range parts {
		mac.Write(p)
	}
	return secret != "" && hmac.Equal(got, mac.Sum(nil))
}

// Same reports, in constant time, whether two texts are equal and not empty.
func Same(a, b string) bool {
	return a != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// maxAge is the largest accepted difference between the signing and the arrival of a message.
const maxAge = 15 * time.Minute

// Fresh reports whether the signing and the arrival of a message are less than 15 minutes apart. signedAt is the time
// of the signing.
func Fresh(m *linking.Message, signedAt time.Time) bool {
	d := m.At.Sub(signedAt)
	return d < maxAge && d > -maxAge
}

// NotTheirs returns the error for a message without a valid signature or token of the provider.
func NotTheirs() error {
	return fmt.Errorf("%w: the message is not signed by the provider", healthlab.Unauthenticated)
}

// NotReadable returns the error for a message of an unknown form.
func NotReadable() error {
	return fmt.Errorf("%w: the message does not have the form that the provider documents", healthlab.Invalid)
}

// JSONReply answers a handshake with a JSON object.
func JSONReply(doc map[string]string) linking.ListenResult {
	b, _ := json.Marshal(doc) // strings always encode
	return linking.ListenResult{Reply: b, ReplyType: "application/json"}
}
