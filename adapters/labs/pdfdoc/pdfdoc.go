// Package pdfdoc lays out the documents of orders as PDF files: requisitions, labels, collection instructions,
// notices and reports.
//
// [New] makes a [Printer], which implements [documents.Printer]:
//
//	printer, err := pdfdoc.New(nil)
//	service, err := orders.New(store, users, catalogue, &orders.Options{
//		Environment: healthlab.Production, Files: files,
//	})
//	printed := documents.New(service, printer, nil)
//
// Text is set in DejaVu Sans. Each file contains the letters that it needs, with their code points, so that text can
// be selected, searched and read aloud. The font covers Latin, Greek, Cyrillic, Armenian, Georgian, Hebrew and
// Arabic, the last two from right to left and with joined letters. Further scripts need [Options.Fonts]. A letter
// that no font has, or that cannot be shaped correctly (such as in the scripts of India), is printed by its code
// point, as in [U+4E2D U+6587], and the foot of the page says so.
//
// Barcodes are Code 128, drawn as lines. A number that Code 128 cannot encode, or whose barcode a scanner could not
// read, is printed only as text.
package pdfdoc

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"
	"unicode"

	"codeberg.org/go-pdf/fpdf"
	"github.com/go-fonts/dejavu/dejavusans"
	"github.com/go-fonts/dejavu/dejavusansbold"
	"golang.org/x/image/font/sfnt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/documents"
)

// Options adjusts a Printer. The zero value, and nil, mean the defaults.
type Options struct {
	// Fonts are additional TrueType files (with glyf outlines) for letters that DejaVu Sans lacks. The first font with
	// a letter is used. Default: none.
	Fonts [][]byte
}

// Printer lays out documents. It is immutable and safe for concurrent use.
type Printer struct {
	faces []*face
	// first maps a letter to the index of the first font that has the letter, plus one; 0 if no font has the letter.
	first [1 << 16]uint8
	forms map[rune]joining
}

var _ documents.Printer = (*Printer)(nil)

// face is a font with its bold variant, or the same font twice.
type face struct {
	regular, bold cut
}

// cut is a font file with the width of each letter in thousandths of the font size; -1 for missing letters.
type cut struct {
	file   []byte
	widths [1 << 16]int16
}

// maxFonts is the largest number of fonts.
const maxFonts = 100

// New returns a Printer. It returns Invalid if a font cannot be used.
func New(opts *Options) (*Printer, error) {
	files := [][]byte{dejavusans.TTF}
	if opts != nil {
		files = append(files, opts.Fonts...)
	}
	if len(files) > maxFonts {
		return nil, fmt.Errorf("%w: Options.Fonts: must have at most %d fonts", healthlab.Invalid, maxFonts)
	}
	p := &Printer{}
	for i, file := range files {
		f := new(face)
		if err := f.regular.read(file); err != nil {
			return nil, fmt.Errorf("%w: Options.Fonts[%d]: must be a TrueType font: %v", healthlab.Invalid, i-1, err) // fonts[0] is built in
		}
		f.bold = f.regular
		p.faces = append(p.faces, f)
	}
	if err := p.faces[0].bold.read(dejavusansbold.TTF); err != nil {
		return nil, err
	}
	for r := range p.first {
		if unicode.In(rune(r), intricate...) {
			continue
		}
		p.first[r] = uint8(slices.IndexFunc(p.faces, func(f *face) bool {
			return f.regular.widths[r] >= 0 && f.bold.widths[r] >= 0
		}) + 1)
	}
	p.forms = p.joiningForms()
	return p, nil
}

// read records the widths of the letters that a font has.
func (c *cut) read(file []byte) error {
	font, err := sfnt.Parse(file)
	if err != nil {
		return err
	}
	trial := fpdf.New("P", "mm", "A4", "")
	trial.AddUTF8FontFromBytes("trial", "", file)
	trial.SetFont("trial", "", body)
	if err := trial.Error(); err != nil {
		return err
	}
	c.file = file
	var b sfnt.Buffer
	for r := range c.widths {
		c.widths[r] = -1
		if r >= 0xfffe {
			continue
		}
		if i, err := font.GlyphIndex(&b, rune(r)); err == nil && i != 0 {
			c.widths[r] = int16(trial.GetStringSymbolWidth(string(rune(r))))
		}
	}
	return nil
}

// Print implements [documents.Printer].
func (p *Printer) Print(ctx context.Context, d documents.Document) ([]byte, error) {
	for _, s := range d.Sections {
		if err := checkTable(s.Table); err != nil {
			return nil, err
		}
	}
	if _, ok := stocks[d.Stock]; len(d.Labels) > 0 && !ok {
		return nil, fmt.Errorf("print document: %w: Stock: must be roll or sheet if Labels is not empty", healthlab.Invalid)
	}
	size := fpdf.SizeType{Wd: 215.9, Ht: 279.4}
	if d.Paper == orders.A4 {
		size = fpdf.SizeType{Wd: 210, Ht: 297}
	}
	at := d.At
	if at.IsZero() {
		at = time.Unix(0, 0) // otherwise the library uses the current time
	}
	f := fpdf.NewCustom(&fpdf.InitType{UnitStr: "mm", Size: size})
	f.SetCatalogSort(true)
	f.SetCreationDate(at.UTC())
	f.SetModificationDate(at.UTC())
	f.SetProducer("healthlab", true)
	f.SetTitle(d.Title, true)
	f.SetLang("en")
	f.SetAutoPageBreak(false, 0)
	l := &layout{ctx: ctx, p: p, f: f, d: d, width: size.Wd, height: size.Ht, loaded: map[string]bool{}}
	if err := l.run(); err != nil {
		return nil, fmt.Errorf("print document: %w", err)
	}
	var out bytes.Buffer
	if err := f.Output(&out); err != nil {
		return nil, fmt.Errorf("print document: %w", err)
	}
	return out.Bytes(), nil
}

func checkTable(t *documents.Table) error {
	if t == nil {
		return nil
	}
	if len(t.Columns) == 0 || len(t.Widths) != len(t.Columns) {
		return fmt.Errorf("print document: %w: Table.Widths: must have one width per column", healthlab.Invalid)
	}
	for _, w := range t.Widths {
		if w <= 0 {
			return fmt.Errorf("print document: %w: Table.Widths: must be greater than 0", healthlab.Invalid)
		}
	}
	for _, r := range t.Rows {
		if len(r.Cells) != len(t.Columns) {
			return fmt.Errorf("print document: %w: Table.Rows: each row must have one cell per column", healthlab.Invalid)
		}
	}
	return nil
}
