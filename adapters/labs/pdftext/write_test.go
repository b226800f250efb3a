package pdftext_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
)

// book writes small PDF files: objects, a table of them, a trailer.
type book struct {
	objects []string
	extra   string // of the trailer
}

func (b *book) add(body string) int {
	b.objects = append(b.objects, body)
	return len(b.objects)
}

func (b *book) stream(dict string, data []byte) int {
	return b.add(fmt.Sprintf("<< %s /Length %d >>\nstream\n%s\nendstream", dict, len(data), data))
}

func (b *book) bytes(root int) []byte {
	var out bytes.Buffer
	out.WriteString("%PDF-1.5\n")
	at := make([]int, len(b.objects))
	for i, o := range b.objects {
		at[i] = out.Len()
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, a := range at {
		fmt.Fprintf(&out, "%010d 00000 n \n", a)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root %d 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, root, b.extra, start)
	return out.Bytes()
}

// set is a text at a place, in points from the bottom left.
type set struct {
	x, y float64
	text string
}

// writePDF makes a file with one page for each list of texts.
func writePDF(pageDict string, flate bool, pages ...[]set) []byte {
	b := &book{}
	font := b.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
	var kids []string
	tree := len(pages)*2 + 2
	for _, p := range pages {
		var c strings.Builder
		for _, s := range p {
			if s.text == "" { // a picture
				fmt.Fprintf(&c, "%g %g 200 300 re f\n", s.x, s.y)
				continue
			}
			text := strings.NewReplacer("\\", "\\\\", "(", "\\(", ")", "\\)").Replace(s.text)
			fmt.Fprintf(&c, "BT /F1 10 Tf %g %g Td (%s) Tj ET\n", s.x, s.y, text)
		}
		data, dict := []byte(c.String()), ""
		if flate {
			data, dict = deflate(data), "/Filter /FlateDecode"
		}
		content := b.stream(dict, data)
		page := b.add(fmt.Sprintf("<< /Type /Page /Parent %d 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 %d 0 R >> >> /Contents %d 0 R %s >>", tree, font, content, pageDict))
		kids = append(kids, fmt.Sprintf("%d 0 R", page))
	}
	b.add(fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", len(pages), strings.Join(kids, " ")))
	root := b.add(fmt.Sprintf("<< /Type /Catalog /Pages %d 0 R >>", tree))
	return b.bytes(root)
}

func deflate(data []byte) []byte {
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	_, _ = z.Write(data)
	_ = z.Close()
	return out.Bytes()
}

// zeros is a compressed run of n spaces.
func zeros(n int) []byte {
	var out bytes.Buffer
	z, _ := zlib.NewWriterLevel(&out, zlib.BestCompression)
	chunk := bytes.Repeat([]byte(" "), 1<<20)
	for ; n > 0; n -= len(chunk) {
		_, _ = z.Write(chunk)
	}
	_ = z.Close()
	return out.Bytes()
}

func reportPDF(flate bool, pageDict string) []byte {
	return writePDF(pageDict, flate, reportLines())
}

func reportLines() []set {
	lines := []set{{50, 750, "Northfield Clinical Laboratory"}, {50, 735, "Patient: Amara Hartley"}, {300, 735, "Collected: 03/14/2025"},
		{50, 720, "DOB: 05/21/1980"}, {300, 720, "Reported: 03/16/2025"}, {50, 705, "Sex: Female"}, {300, 705, "Specimen: S1234567"},
		{50, 680, "Test"}, {220, 680, "Result"}, {280, 680, "Flag"}, {330, 680, "Units"}, {430, 680, "Reference Range"}}
	y := 660.0
	for _, r := range [][5]string{
		{"Glucose", "112", "H", "mg/dL", "70-99"}, {"Creatinine", "0.92", "", "mg/dL", "0.60-1.30"}, {"Sodium", "139", "", "mmol/L", "135-146"},
		{"Potassium", "4.1", "", "mmol/L", "3.5-5.3"}, {"TSH", "2.31", "", "mIU/L", "0.40-4.50"}, {"Ferritin", "18", "L", "ng/mL", "38-380"},
	} {
		for i, x := range []float64{50, 220, 280, 330, 430} {
			if r[i] != "" {
				lines = append(lines, set{x, y, r[i]})
			}
		}
		y -= 15
	}
	return lines
}

// glyphWidth is the width of a glyph of Helvetica at ten points.
func glyphWidth(r rune) float64 {
	const from, widths = 32, "" +
		"\x1c\x1c\x24\x38\x38\x59\x43\x13\x21\x21\x27\x3a\x1c\x21\x1c\x1c\x38\x38\x38\x38\x38\x38\x38\x38\x38\x38\x1c\x1c\x3a\x3a\x3a\x38" +
		"\x66\x43\x43\x48\x48\x43\x3d\x4e\x48\x1c\x32\x43\x38\x53\x48\x4e\x43\x4e\x48\x43\x3d\x48\x43\x5e\x43\x43\x3d\x1c\x1c\x1c\x2f\x38" +
		"\x21\x38\x38\x32\x38\x38\x1c\x38\x38\x16\x16\x32\x16\x53\x38\x38\x38\x38\x21\x32\x1c\x38\x32\x48\x32\x32\x32\x21\x1a\x21\x3a"
	return float64(widths[r-from]) / 10
}
