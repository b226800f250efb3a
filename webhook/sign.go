package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a signed message, as Standard Webhooks 1.0 names them.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// Sign returns the signature of one message, as Standard Webhooks 1.0 defines it for
// shared secrets: "v1," and the base64 of HMAC-SHA256 over id, a full stop, the Unix
// second of at, a full stop, and the body. id must not hold a full stop. The zero
// secret signs nothing: the signature is empty.
func Sign(secret Secret, id string, at time.Time, body []byte) string {
	if secret.IsZero() {
		return ""
	}
	return sign(secret, id, strconv.FormatInt(at.Unix(), 10), body)
}

func sign(secret Secret, id, timestamp string, body []byte) string {
	var room, text [64]byte // for what there mostly is, with one request to the heap
	head := append(append(append(append(room[:0], id...), '.'), timestamp...), '.')
	mac := hmac.New(sha256.New, []byte(secret.key))
	mac.Write(head)
	mac.Write(body)
	sum := mac.Sum(room[:0])
	return string(base64.StdEncoding.AppendEncode(append(text[:0], "v1,"...), sum))
}

// SetSignature sets the three headers on h. secrets are the active ones, the newest
// first; each of them signs, so that a receiver who still has the old one can verify
// during a rotation.
func SetSignature(h http.Header, id string, at time.Time, body []byte, secrets ...Secret) {
	signatures := make([]string, 0, len(secrets))
	for _, s := range secrets {
		if !s.IsZero() {
			signatures = append(signatures, Sign(s, id, at, body))
		}
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
	h.Set(HeaderSignature, strings.Join(signatures, " "))
}
