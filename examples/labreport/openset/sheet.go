// Package openset is an open set of laboratory reports with known results, and a score for what a reader reads from
// them. Anyone can measure a reader with it, this project's or another.
//
//   - [Sheets] are reports of invented people, with the rows that a reader should find.
//   - [Sheet.PDF] draws one as a PDF with a text layer, and [Medium.Take] makes the picture of a page that a
//     scanner or a camera would: with grain, blur, perspective, curl, shadow and low light.
//   - [Score] counts rows and fields that are right, and how often a confidence is justified.
//
// The command examples/labreport/accuracy measures the reader of package labreport.
package openset

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

//go:embed sheets.json
var sheetsJSON []byte

// Sheets returns the sheets of the set. The caller must not change them.
func Sheets() []Sheet { return sheets() }

var sheets = sync.OnceValue(func() (out []Sheet) {
	if err := json.Unmarshal(sheetsJSON, &out); err != nil {
		panic("openset: sheets: " + err.Error())
	}
	return out
})

// Sheet is a laboratory report of an invented patient: its words with their positions on a page of 612 by 792 points,
// and the results that a reader should find.
type Sheet struct {
	Layout string
	Words  []struct {
		Text             string
		X, Y, Wide, Size float64
	}
	Rows []struct{ Name, Value, Unit string }
}

// widths are the widths of the characters of the font Helvetica, beginning with the space, in thousandths of the
// font size.
var widths = []float64{
	278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
	1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
	333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
}

// PDF returns the sheet as a PDF with a text layer, in Helvetica. Each word is scaled to the width of its box.
func (s Sheet) PDF() []byte {
	var c bytes.Buffer
	for _, w := range s.Words {
		var text bytes.Buffer
		real := 0.0
		for _, r := range w.Text {
			switch {
			case r == '–':
				r = 0x96
			case r == '•':
				r = 0x95
			case r > 0xff:
				r = '?'
			}
			if strings.ContainsRune("()\\", r) {
				text.WriteByte('\\')
			}
			text.WriteByte(byte(r))
			if k := int(r) - 32; k >= 0 && k < len(widths) {
				real += widths[k]
			} else {
				real += 556
			}
		}
		part := min(130, max(75, 100*w.Wide/(real*w.Size/1000)))
		fmt.Fprintf(&c, "BT /F1 %.1f Tf %.1f Tz %.1f %.1f Td (%s) Tj ET\n", w.Size, part, w.X, w.Y, text.String())
	}
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n2 0 obj << /Type /Pages /Count 1 /Kids [3 0 R] >> endobj\n" +
		"3 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 4 0 R >> >> /Contents 5 0 R >> endobj\n" +
		"4 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >> endobj\n")
	fmt.Fprintf(&b, "5 0 obj << /Length %d >>\nstream\n%s\nendstream endobj\ntrailer << /Root 1 0 R /Size 6 >>\n%%%%EOF", c.Len(), c.String())
	return b.Bytes()
}
