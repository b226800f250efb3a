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
	// Type and Subtype are HL7's words: application and PDF, or so.
	Type, Subtype string
	// Data is the document, decoded.
	Data []byte
}

// ContentType returns the media type of the document; it looks at the bytes first,
// because senders differ in what they call them.
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

// pdfInBase64 is how PDF documents begin in base64.
const pdfInBase64 = "JVBERi0"

// Embedded reads an ED. Without the name of an encoding, a PDF document in base64 is decoded, and
// other data is taken as it stands. Invalid if the data is not in the encoding that it names.
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
		return Embedded{}, fmt.Errorf("%w: HL7 message: an embedded document is not in the encoding that it names", healthlab.Invalid)
	}
	return e, nil
}
