package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/ocr"
	"github.com/healthlab-dev/healthlab/adapters/pdftext"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/labreport"
)

// sheet is a report of an invented patient that is drawn here, and what it says.
type sheet struct {
	Layout string
	Words  []struct {
		Text             string
		X, Y, Wide, Size float64
	}
	Rows []struct{ Name, Value, Unit string }
}

func sheets(t *testing.T) []sheet {
	t.Helper()
	var all []sheet
	load(t, filepath.Join("..", "..", "labreport", "testdata", "sheets.json"), &all)
	require.NotEmpty(t, all)
	return all
}

// widths of Helvetica from the space on, in thousandths of the size.
var widths = []float64{
	278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
	1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
	333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
}

// pdf draws the sheet in Helvetica, each word as wide as its box.
func (s sheet) pdf() []byte {
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

// grain is what the sensor of a scanner adds: noise of a strength, under a small blur.
func grain(g *image.Gray, r *rand.Rand, paper, ink, strength float64) *image.Gray {
	out := image.NewGray(g.Rect)
	w, h := g.Rect.Dx(), g.Rect.Dy()
	for y := range h {
		for x := range w {
			v := float64(g.Pix[y*g.Stride+x])
			v = (2*v + float64(g.Pix[y*g.Stride+max(0, x-1)]) + float64(g.Pix[max(0, y-1)*g.Stride+x])) / 4
			v = ink + (paper-ink)*v/255 + strength*r.NormFloat64()
			out.Pix[y*out.Stride+x] = uint8(min(255, max(0, v)))
		}
	}
	return out
}

// turned is the picture turned a little, as paper lies in a scanner.
func turned(g *image.Gray, degrees float64) *image.Gray {
	out := image.NewGray(g.Rect)
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	w, h := g.Rect.Dx(), g.Rect.Dy()
	for y := range h {
		for x := range w {
			dx, dy := float64(x-w/2), float64(y-h/2)
			out.Pix[y*out.Stride+x] = between(g, float64(w/2)+dx*cos-dy*sin, float64(h/2)+dx*sin+dy*cos)
		}
	}
	return out
}

// between reads the picture between its pixels; outside it is paper.
func between(g *image.Gray, x, y float64) uint8 {
	x0, y0 := int(math.Floor(x)), int(math.Floor(y))
	if x0 < 0 || y0 < 0 || x0+1 >= g.Rect.Dx() || y0+1 >= g.Rect.Dy() {
		return 255
	}
	ax, ay := x-float64(x0), y-float64(y0)
	at := func(x, y int) float64 { return float64(g.Pix[y*g.Stride+x]) }
	return uint8((1-ay)*((1-ax)*at(x0, y0)+ax*at(x0+1, y0)) + ay*((1-ax)*at(x0, y0+1)+ax*at(x0+1, y0+1)))
}

// photo lays the sheet on a dark desk, seen from a side and in the light of a lamp.
func photo(g *image.Gray, r *rand.Rand) image.Image {
	w, h := g.Rect.Dx(), g.Rect.Dy()
	margin := w / 10
	out := image.NewRGBA(image.Rect(0, 0, w+2*margin, h+2*margin))
	lean := 0.02 + 0.03*r.Float64()
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			v := float64(y-margin) / float64(h)
			wide := 1 - lean*(1-v) // farther away above
			u := (float64(x-margin)/float64(w)-0.5)/wide + 0.5 + 0.01*v
			c := color.RGBA{58, 48, 40, 255}
			if u >= 0 && u < 1 && v >= 0 && v < 1 {
				light := 0.62 + 0.33*u*(1-0.4*v) + 0.02*r.NormFloat64()
				p := float64(between(g, u*float64(w), v*float64(h))) * light
				c = color.RGBA{uint8(min(255, max(0, p))), uint8(min(255, max(0, p*0.98))), uint8(min(255, max(0, p*0.92))), 255}
			}
			out.SetRGBA(x, y, c)
		}
	}
	return out
}

// media are the ways in which a sheet becomes a picture, with the least part of its rows
// that must come back.
var media = []struct {
	name string
	dpi  int
	bar  float64
	make func(g *image.Gray, r *rand.Rand) labreport.File
}{
	{"scan with strong grain", 300, 0.92, func(g *image.Gray, r *rand.Rand) labreport.File {
		return pngFile(grain(turned(g, 1.2*r.Float64()-0.6), r, 215, 45, 42))
	}},
	{"photo", 200, 0.85, func(g *image.Gray, r *rand.Rand) labreport.File {
		var b bytes.Buffer
		_ = jpeg.Encode(&b, photo(g, r), &jpeg.Options{Quality: 82})
		return labreport.File{Type: "image/jpeg", Data: b.Bytes()}
	}},
	{"scan", 300, 0.92, func(g *image.Gray, r *rand.Rand) labreport.File {
		return pngFile(grain(turned(g, 1.2*r.Float64()-0.6), r, 244, 30, 8))
	}},
	{"picture of 150 dots an inch", 150, 0.88, func(g *image.Gray, r *rand.Rand) labreport.File {
		return pngFile(grain(g, r, 250, 25, 3))
	}},
}

func pngFile(g image.Image) labreport.File {
	var b bytes.Buffer
	_ = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, g)
	return labreport.File{Type: "image/png", Data: b.Bytes()}
}

// Sheets that are drawn, scanned and photographed come back with what they say.
func TestPictures(t *testing.T) {
	reader := labreport.NewReader(nil)
	eyes, err := ocr.New(&ocr.Options{Judge: reader.Judge, Doubtful: reader.Doubtful, Language: reader.Language, PageTimeout: 4 * time.Minute})
	if errors.Is(err, healthlab.Unimplemented) && os.Getenv("CI") == "" {
		t.Skip("tesseract is not installed: pictures are not read in this run")
	}
	require.NoError(t, err)
	printer, err := pdftext.New(nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, printer.Close()) }()
	all := sheets(t)
	for _, m := range media[:prove.Count(2, len(media))] {
		t.Run(m.name, func(t *testing.T) {
			want, got, right, sure, sureWrong := 0, 0, 0, 0, 0
			for i := range all[:prove.Count(1, len(all))] {
				s := all[(i*7)%len(all)]
				page, err := printer.Render(t.Context(), labreport.File{Type: "application/pdf", Data: s.pdf()}, 1, m.dpi)
				require.NoError(t, err)
				f := m.make(page.(*image.Gray), rand.New(rand.NewPCG(uint64(i), uint64(m.dpi))))
				if dir := os.Getenv("HEALTHLAB_PICTURES"); dir != "" {
					require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.%s", strings.ReplaceAll(m.name, " ", "_"), i, strings.TrimPrefix(f.Type, "image/"))), f.Data, 0o600))
				}
				d := readPicture(t, eyes, reader, f)
				w, g, r := compare(s, d)
				want, got, right = want+w, got+g, right+r
				t.Logf("%-34s F1 %.3f of %d rows, %d read", s.Layout, 2*float64(r)/float64(max(1, w+g)), w, g)
				a, b := confident(s, d)
				sure, sureWrong = sure+a, sureWrong+b
			}
			f1 := 2 * float64(right) / float64(max(1, want+got))
			t.Logf("F1 %.4f of %d rows; %d of %d sure fields wrong", f1, want, sureWrong, sure)
			// One sheet is no mean of many.
			require.GreaterOrEqual(t, f1, m.bar-0.2+0.2*float64(prove.Count(0, 1)))
			require.Zero(t, sure, "what is read from a picture is never as sure as print")
		})
	}
}

func readPicture(t *testing.T, eyes *ocr.Engine, reader *labreport.Reader, f labreport.File) labreport.Data {
	t.Helper()
	var pages []labreport.Page
	require.NoError(t, eyes.Extract(context.Background(), f, func(p labreport.Page) error {
		pages = append(pages, p)
		return nil
	}))
	d, _ := reader.Read(pages)
	return d
}

var plainLetters = strings.NewReplacer("á", "a", "à", "a", "â", "a", "ä", "a", "é", "e", "è", "e", "ê", "e", "ë", "e", "í", "i", "î", "i", "ï", "i",
	"ó", "o", "ô", "o", "ö", "o", "ú", "u", "û", "u", "ü", "u", "ñ", "n", "ç", "c", "ß", "ss", "µ", "u", "μ", "u", "²", "2")

// sameName compares names by their letters, and forgives one in six: the row is found.
func sameName(a, b string) bool {
	only := func(s string) []rune {
		return []rune(strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '%' {
				return r
			}
			return -1
		}, plainLetters.Replace(strings.ToLower(s))))
	}
	x, y := only(a), only(b)
	row := make([]int, len(y)+1)
	for k := range row {
		row[k] = k
	}
	for i := range x {
		last := row[0]
		row[0] = i + 1
		for k := range y {
			cost := last
			if x[i] != y[k] {
				cost++
			}
			last = row[k+1]
			row[k+1] = min(cost, row[k]+1, last+1)
		}
	}
	return row[len(y)]*6 <= len(x)
}

// sameUnit compares units by what they mean: a misread one is mended to another way to
// write the same.
func sameUnit(a, b string) bool {
	key := func(s string) string {
		s = plainLetters.Replace(strings.ToLower(strings.ReplaceAll(s, " ", "")))
		if u, ok := labreport.ParseUnit(s); ok {
			s = u.UCUM
		}
		switch s {
		case "10*9/L":
			return "10*3/uL"
		case "10*12/L":
			return "10*6/uL"
		case "u[IU]/mL":
			return "m[IU]/L"
		}
		return s
	}
	return key(a) == key(b)
}

// compare counts the rows that came back with name, value and unit.
func compare(s sheet, d labreport.Data) (want, got, right int) {
	used := make([]bool, len(d.Results))
	for _, w := range s.Rows {
		i := -1
		for k, g := range d.Results {
			unit := ""
			if g.Units != nil {
				unit = *g.Units
			}
			if !used[k] && sameName(w.Name, g.TestName) && g.Value == w.Value && sameUnit(unit, w.Unit) {
				i = k
				break
			}
		}
		if i >= 0 {
			used[i] = true
			right++
		} else if testing.Verbose() && os.Getenv("HEALTHLAB_MISSES") != "" {
			near := ""
			for _, g := range d.Results {
				if sameName(w.Name, g.TestName) {
					near = g.Value
					if g.Units != nil {
						near += " " + *g.Units
					}
				}
			}
			fmt.Println("   missed", w.Name, "|", w.Value, "|", w.Unit, "| read", near)
		}
	}
	return len(s.Rows), len(d.Results), right
}

// confident counts the values that were read with a confidence of 0.9 or more, and those
// of them that stand nowhere on the sheet.
func confident(s sheet, d labreport.Data) (sure, wrong int) {
	for _, g := range d.Results {
		if g.Evidence["value"].Confidence < 0.9 {
			continue
		}
		sure++
		if !slices.ContainsFunc(s.Rows, func(w struct{ Name, Value, Unit string }) bool { return w.Value == g.Value }) {
			wrong++
		}
	}
	return sure, wrong
}
