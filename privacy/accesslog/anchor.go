package accesslog

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Anchor is a signed copy of the last line of a team's hash chain at a point in time.
type Anchor struct {
	Head
	// At is when the anchor was signed.
	At time.Time
	// KeyID identifies the public key that verifies the signature; see the function [KeyID].
	KeyID string
	// Signature is the Ed25519 signature of [Anchor.Message].
	Signature []byte
}

// KeyID returns the id of a public key: the first 16 hexadecimal digits of the key's SHA-256.
func KeyID(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:8])
}

// Message returns the text that is signed: the team, the number and hash of the line, and the time, one on each
// line.
func (a *Anchor) Message() []byte {
	return fmt.Appendf(nil, "healthlab access log anchor\n%s\n%d\n%s\n%s\n", a.Team, a.Seq, a.Hash, a.At.UTC().Format(TimeForm))
}

// Sign returns an anchor: the last line of a chain (head) and a time, signed with key.
func Sign(head Head, at time.Time, key ed25519.PrivateKey) Anchor {
	a := Anchor{Head: head, At: at.UTC().Truncate(time.Microsecond), KeyID: KeyID(key.Public().(ed25519.PublicKey))}
	a.Signature = ed25519.Sign(key, a.Message())
	return a
}

// Verify returns a Conflict unless the private key that belongs to key signed the anchor.
func (a *Anchor) Verify(key ed25519.PublicKey) error {
	if a.KeyID != KeyID(key) || !ed25519.Verify(key, a.Message(), a.Signature) {
		return fmt.Errorf("%w: access log: the signature of the anchor of line %d is wrong", healthlab.Conflict, a.Seq)
	}
	return nil
}

// anchorLine is an anchor as [Anchor.AppendNDJSON] writes it.
type anchorLine struct {
	Team      healthlab.TeamID `json:"team_id"`
	Seq       int64            `json:"seq"`
	Hash      string           `json:"hash"`
	At        string           `json:"at"`
	KeyID     string           `json:"key_id"`
	Signature string           `json:"signature"`
}

// AppendNDJSON appends the anchor to b as one line of JSON.
func (a *Anchor) AppendNDJSON(b []byte) []byte {
	return fmt.Appendf(b, `{"anchor":{"team_id":%q,"seq":%d,"hash":%q,"at":%q,"key_id":%q,"signature":"%x"}}`+"\n",
		a.Team, a.Seq, a.Hash, a.At.UTC().Format(TimeForm), a.KeyID, a.Signature)
}

// ReadAnchors reads the anchors from an export of the access log, one JSON object on each line, and skips log
// lines. Invalid if a line is neither an anchor nor a log line.
func ReadAnchors(r io.Reader) ([]Anchor, error) {
	var out []Anchor
	for d, n := json.NewDecoder(r), 1; ; n++ {
		var line struct {
			Anchor *anchorLine `json:"anchor"`
		}
		err := d.Decode(&line)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err == nil && line.Anchor != nil {
			var a Anchor
			a, err = line.Anchor.anchor()
			out = append(out, a)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: line %d is no anchor of an access log: %w", healthlab.Invalid, n, err)
		}
	}
}

func (l *anchorLine) anchor() (Anchor, error) {
	a := Anchor{Head: Head{Team: l.Team, Seq: l.Seq}, KeyID: l.KeyID}
	hash, err := hex.DecodeString(l.Hash)
	if err == nil && len(hash) != len(a.Hash) {
		err = fmt.Errorf("hash must be %d hexadecimal digits", 2*len(a.Hash))
	}
	if err != nil {
		return Anchor{}, err
	}
	copy(a.Hash[:], hash)
	if a.Signature, err = hex.DecodeString(l.Signature); err != nil {
		return Anchor{}, err
	}
	a.At, err = time.Parse(TimeForm, l.At)
	return a, err
}
