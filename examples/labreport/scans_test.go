package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/ocr"
	"github.com/healthlab-dev/healthlab/adapters/labs/pdftext"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/internal/ucum"
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

// TestPictures draws every sheet on every medium and reads it. The sheets with even numbers are
// for development, the others are blind.
func TestPictures(t *testing.T) {
	reader := labreport.NewReader(nil)
	eyes, err := ocr.New(&ocr.Options{Readability: reader.Readability, DoubtfulNumbers: reader.DoubtfulNumbers, Language: reader.Language, Timeout: time.Minute, PageTimeout: 4 * time.Minute})
	if errors.Is(err, healthlab.Unimplemented) && os.Getenv("CI") == "" {
		t.Skip("tesseract is not installed: pictures are not read in this run")
	}
	require.NoError(t, err)
	printer, err := pdftext.New(nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, printer.Close()) }()
	all := sheets(t)
	var blind reliability
	var total counts
	for _, m := range media[:prove.Counts(1, 2, len(media))] {
		var both counts
		for set, name := range []string{"development", "blind"}[:prove.Count(1, 2)] {
			t.Run(m.name+"/"+name, func(t *testing.T) {
				var c counts
				var took time.Duration
				for i := set; i < prove.Count(1, len(all)); i += 2 {
					f := m.picture(t, printer, all[i], i)
					start := time.Now()
					d := readPicture(t, eyes, reader, f)
					took += time.Since(start)
					one := compare(all[i], d)
					t.Logf("%-34s F1 %.3f of %d rows, %d read", all[i].Layout, one.f1(), one.want, one.got)
					c.add(one)
					if name == "blind" {
						blind.add(all[i], d)
					}
				}
				t.Logf("F1 %.4f of %d rows; %d of %d sure fields wrong; %.1f s a page", c.f1(), c.want, c.sureWrong, c.sure, took.Seconds()/float64(c.pages))
				both.add(c)
				if name == "blind" {
					total.add(c)
					require.GreaterOrEqual(t, c.f1(), m.bar)
				}
			})
		}
		if both.pages == 0 {
			continue // -run left the medium out
		}
		// One sheet is no mean of many.
		require.GreaterOrEqual(t, both.f1(), m.bar-0.2+0.2*float64(prove.Count(0, 1)), m.name)
	}
	t.Logf("blind: %d of %d sure fields wrong%s", total.sureWrong, total.sure, blind.String())
	require.LessOrEqual(t, total.sureWrong*500, total.sure)
}

// picture draws a sheet on the medium. HEALTHLABTEST_PICTURES names a folder that keeps the pictures.
func (m *medium) picture(t *testing.T, printer *pdftext.Extractor, s sheet, number int) labreport.File {
	t.Helper()
	page, err := printer.Render(t.Context(), labreport.File{Type: "application/pdf", Data: s.pdf()}, 1, m.dpi)
	require.NoError(t, err)
	f := m.take(page.(*image.Gray), rand.New(rand.NewPCG(uint64(number), uint64(m.dpi))))
	if dir := os.Getenv("HEALTHLABTEST_PICTURES"); dir != "" {
		name := fmt.Sprintf("%s-%d.%s", strings.ReplaceAll(m.name, " ", "_"), number, strings.TrimPrefix(f.Type, "image/"))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), f.Data, 0o600))
	}
	return f
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
		if u, ok := ucum.Parse(s); ok {
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

// counts are rows and fields that were read.
type counts struct{ pages, want, got, right, sure, sureWrong int }

func (c *counts) add(o counts) {
	c.pages, c.want, c.got, c.right = c.pages+o.pages, c.want+o.want, c.got+o.got, c.right+o.right
	c.sure, c.sureWrong = c.sure+o.sure, c.sureWrong+o.sureWrong
}

func (c *counts) f1() float64 { return 2 * float64(c.right) / float64(max(1, c.want+c.got)) }

// compare counts the rows that came back with name, value and unit.
func compare(s sheet, d labreport.Data) counts {
	c := counts{pages: 1, want: len(s.Rows), got: len(d.Results)}
	used := make([]bool, len(d.Results))
	for _, w := range s.Rows {
		i := slices.IndexFunc(d.Results, func(g labreport.Result) bool {
			return g.Value == w.Value && sameName(w.Name, g.TestName) && sameUnit(unitOf(g), w.Unit)
		})
		for i >= 0 && used[i] {
			rest := slices.IndexFunc(d.Results[i+1:], func(g labreport.Result) bool {
				return g.Value == w.Value && sameName(w.Name, g.TestName) && sameUnit(unitOf(g), w.Unit)
			})
			if rest < 0 {
				i = -1
			} else {
				i += 1 + rest
			}
		}
		switch {
		case i >= 0:
			used[i] = true
			c.right++
		case os.Getenv("HEALTHLABTEST_MISSES") != "":
			near := ""
			for _, g := range d.Results {
				if sameName(w.Name, g.TestName) {
					near = g.Value + " " + unitOf(g)
				}
			}
			fmt.Println("   missed", w.Name, "|", w.Value, "|", w.Unit, "| read", near)
		}
	}
	for _, f := range fields(s, d) {
		if f.confidence >= 0.9 {
			c.sure++
			if !f.right {
				c.sureWrong++
				if os.Getenv("HEALTHLABTEST_MISSES") != "" {
					fmt.Println("   sure and wrong", f.name, "|", f.text, "|", f.confidence)
				}
			}
		}
	}
	return c
}

func unitOf(g labreport.Result) string {
	if g.Units == nil {
		return ""
	}
	return *g.Units
}

// field is one field that was read, and whether the sheet says the same.
type field struct {
	name, text string
	confidence float64
	right      bool
}

// fields returns the names, values and units that were read. Those of a row that stands
// nowhere on the sheet are wrong.
func fields(s sheet, d labreport.Data) []field {
	var out []field
	for _, g := range d.Results {
		best, most := [3]bool{}, -1
		for _, w := range s.Rows {
			same := [3]bool{sameName(w.Name, g.TestName), w.Value == g.Value, sameUnit(unitOf(g), w.Unit)}
			n := 0
			for i, points := range []int{4, 2, 1} {
				if same[i] {
					n += points
				}
			}
			if n > most {
				best, most = same, n
			}
		}
		for i, name := range []string{"test_name", "value", "units"} {
			if at, ok := g.Evidence[name]; ok {
				out = append(out, field{name, []string{g.TestName, g.Value, unitOf(g)}[i], at.Confidence, best[i]})
			}
		}
	}
	return out
}

// reliability counts fields by their confidence, in steps of 0.05.
type reliability [20]struct {
	n, right int
	sum      float64
}

func (r *reliability) add(s sheet, d labreport.Data) {
	for _, f := range fields(s, d) {
		b := &r[min(19, int(f.confidence*20+1e-9))]
		b.n++
		b.sum += f.confidence
		if f.right {
			b.right++
		}
	}
}

// String is a table for docs/labreport.md.
func (r *reliability) String() string {
	var b strings.Builder
	b.WriteString("\n| Confidence | Fields | Mean confidence | Right |\n|---|---|---|---|\n")
	for i, bin := range r {
		if bin.n > 0 {
			fmt.Fprintf(&b, "| %.2f to %.2f | %d | %.3f | %.3f |\n", float64(i)/20, float64(i+1)/20, bin.n, bin.sum/float64(bin.n), float64(bin.right)/float64(bin.n))
		}
	}
	return b.String()
}
