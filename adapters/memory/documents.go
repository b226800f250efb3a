package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/personkey"
)

// document encodes what is to be kept.
func document(v any) ([]byte, error) {
	doc, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	if hasInvalidText(doc) {
		return nil, fmt.Errorf("%w: text is UTF-8 without NUL", healthlab.Invalid)
	}
	return doc, nil
}

// sealDocument encodes what is to be kept about a person, and encrypts it.
func sealDocument(ctx context.Context, keys *personkey.Keys, ref personkey.Ref, bound string, v any) ([]byte, error) {
	doc, err := document(v)
	if err != nil {
		return nil, err
	}
	return keys.Seal(ctx, ref, bound, doc)
}

// openDocument decrypts and decodes what sealDocument made.
func openDocument(ctx context.Context, keys *personkey.Keys, ref personkey.Ref, bound string, box []byte, v any) error {
	doc, err := keys.Open(ctx, ref, bound, box)
	if err != nil {
		return err
	}
	return json.Unmarshal(doc, v)
}

// hasInvalidText reports whether any text of a document that was encoded as JSON has the
// character NUL, or was not UTF-8: the encoder writes either of them as an escape.
func hasInvalidText(doc []byte) bool {
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
