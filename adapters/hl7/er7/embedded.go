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

// Embedded reads an ED. Invalid if its data is not in the encoding that it names.
func (p Part) Embedded() (Embedded, error) {
	e := Embedded{Type: p.Component(2).Text(), Subtype: p.Component(3).Text()}
	text := p.Component(5).Whole()
	var err error
	switch strings.ToLower(p.Component(4).Text()) {
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
	default: // A: as it stands
		e.Data = []byte(text)
	}
	if err != nil {
		return Embedded{}, fmt.Errorf("%w: HL7 message: an embedded document is not in the encoding that it names", healthlab.Invalid)
	}
	return e, nil
}
