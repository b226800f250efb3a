package db

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/personkey"
)

// EncodeDocument encodes what is kept as a document.
func EncodeDocument(v any) ([]byte, error) {
	doc, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	if Spoilt(doc) {
		return nil, fmt.Errorf("%w: text is UTF-8 without NUL", healthlab.Invalid)
	}
	return doc, nil
}

// SealDocument encodes what is kept about a person, and encrypts it. bound names the row.
func (d *DB) SealDocument(ctx context.Context, ref personkey.Ref, bound string, v any) ([]byte, error) {
	doc, err := EncodeDocument(v)
	if err != nil {
		return nil, err
	}
	return d.Keys.Seal(ctx, ref, bound, doc)
}

// OpenDocument decrypts and decodes what SealDocument made.
func (d *DB) OpenDocument(ctx context.Context, ref personkey.Ref, bound string, box []byte, v any) error {
	doc, err := d.Keys.Open(ctx, ref, bound, box)
	if err != nil {
		return err
	}
	return json.Unmarshal(doc, v)
}

// Spoilt reports whether any text of a document that was encoded as JSON has the
// character NUL, or was not UTF-8: the encoder writes either of them as an escape.
func Spoilt(doc []byte) bool {
	for i := 0; i < len(doc); i++ {
		if doc[i] != '\\' {
			continue
		}
		if rest := doc[i:]; bytes.HasPrefix(rest, []byte(`\u0000`)) || bytes.HasPrefix(rest, []byte(`\ufffd`)) {
			return true
		}
		i++ // the escaped character is no escape itself
	}
	return false
}
