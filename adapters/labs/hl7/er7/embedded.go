package er7

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// Embedded is an ED: a document in a message.
type Embedded struct {
	// Type and Subtype are the type as HL7 spells it, such as application and PDF.
	Type, Subtype string
	// Data is the document, decoded.
	Data []byte
}

// ContentType returns the media type of the document. The content takes precedence over the declared type, because
// senders differ.
func (e Embedded) ContentType() string {
	head := string(e.Data[:min(len(e.Data), 8)])
	switch sub := strings.ToLower(e.Subtype); {
	case strings.HasPrefix(head, "%PDF"):
		return "application/pdf"
	case strings.HasPrefix(head, "\x89PNG"):
		return "image/png"
	case strings.HasPrefix(head, "\xff\xd8\xff"):
		return "image/jpeg"
	case sub == "html":
		return "text/html"
	case sub == "xml":
		return "application/xml"
	case sub == "rtf":
		return "application/rtf"
	case strings.EqualFold(e.Type, "TEXT") || strings.EqualFold(e.Type, "TX"):
		return "text/plain"
	}
	return "application/octet-stream"
}

// pdfInBase64 is the beginning of a PDF document in base64.
const pdfInBase64 = "JVBERi0"

// Embedded reads an ED. Without a declared encoding, base64 of a PDF is decoded, and other data is returned unchanged.
// It returns Invalid if the data does not match its encoding.
func (p Part) Embedded() (Embedded, error) {
	e := Embedded{Type: p.Component(2).Text(), Subtype: p.Component(3).Text()}
	text := p.Component(5).Whole()
	var err error
	encoding := strings.ToLower(strings.TrimSpace(p.Component(4).Text()))
	if encoding == "" && strings.HasPrefix(strings.TrimSpace(text), pdfInBase64) {
		encoding = "base64"
	}
	switch encoding {
	case "base64":
		text = strings.Map(func(r rune) rune {
			if r == '\n' || r == '\r' || r == ' ' || r == '\t' {
				return -1
			}
			return r
		}, text)
		e.Data, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	case "hex":
		e.Data, err = hex.DecodeString(text)
	case "", "a": // as it stands
		e.Data = []byte(text)
	default:
		err = healthlab.Invalid
	}
	if err != nil {
		return Embedded{}, fmt.Errorf("%w: HL7 message: an embedded document must be encoded as its fourth component says: A, Base64 or Hex", healthlab.Invalid)
	}
	return e, nil
}
