// Package pdftext reads the words of PDF files for package labreport, with PDFium compiled to WebAssembly: no cgo,
// and no program to install.
//
// PDFs from strangers may be hostile. The engine therefore runs in a child process, which is the host's own program
// started a second time. Its memory and time are watched, and it is ended and replaced when a file misbehaves. For
// that, [Child] must be the first call in main:
//
//	func main() {
//		pdftext.Child()
//		…
//	}
//
// Pages without a text layer are rendered and passed to an OCR function, page by page, because one file may contain
// scanned and typed pages.
package pdftext

import (
	"context"
	"fmt"
	"image"
	"sync"
	"time"
	"unicode"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport"
)

// Options adjusts an Extractor. The zero value, and nil, mean the defaults.
type Options struct {
	// OCR reads the words of a rendered page. Default: none; files without a text layer are then refused with
	// [healthlab.Unimplemented].
	OCR func(ctx context.Context, page image.Image) (labreport.Page, error)
	// Workers is the largest number of child processes. Each handles one request at a time for any number of files in
	// turn, so a slow file or one that waits for OCR does not block others. Default 1.
	Workers int
	// PageTimeout is the longest time to read or render one page. Default 15 s.
	PageTimeout time.Duration
	// MaxPages is the largest number of pages of a file. Default 30.
	MaxPages int
	// DPI is the resolution of rendered pages. Default 300.
	DPI int
}

const (
	// memoryBytes is the memory limit of one child.
	memoryBytes = 288 << 20 * overhead
	// inflateBytes is the largest total size of a file's compressed parts after decompression.
	inflateBytes = 64 << 20
	// startTimeout is the longest time to start a child. The first start compiles the engine, which takes about 400 MB
	// meanwhile.
	startTimeout = 60 * time.Second * overhead
)

// Extractor implements [labreport.TextExtractor] for PDF files. Safe for concurrent use. Call Close to end its child
// processes.
type Extractor struct {
	o     Options
	slots chan struct{} // holds an element for each child that is working

	mu   sync.Mutex
	idle []*worker
}

var (
	_ labreport.TextExtractor = (*Extractor)(nil)
	_ labreport.Renderer      = (*Extractor)(nil)
)

// New returns an Extractor. It starts nothing; the first file starts a child. It returns [healthlab.Invalid] if the
// program does not call [Child].
func New(opts *Options) (*Extractor, error) {
	if !called.Load() {
		return nil, fmt.Errorf("%w: pdftext.Child must be the first call in main", healthlab.Invalid)
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.Workers, 1)
	def(&o.MaxPages, 30)
	def(&o.DPI, 300)
	if o.PageTimeout <= 0 {
		o.PageTimeout = 15 * time.Second
	}
	return &Extractor{o: o, slots: make(chan struct{}, o.Workers)}, nil
}

// Close ends idle child processes. Files in progress are finished first.
func (x *Extractor) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, w := range x.idle {
		w.kill()
	}
	x.idle = nil
	return nil
}

// Check implements [labreport.TextExtractor].
func (x *Extractor) Check(ctx context.Context, file labreport.File) (int, error) {
	s, err := x.open(ctx, file)
	if err != nil {
		return 0, fmt.Errorf("check pdf: %w", err)
	}
	defer s.close(ctx)
	return s.pages, nil
}

// Extract implements [labreport.TextExtractor].
func (x *Extractor) Extract(ctx context.Context, file labreport.File, page func(labreport.Page) error) error {
	s, err := x.open(ctx, file)
	if err != nil {
		return fmt.Errorf("read pdf: %w", err)
	}
	defer s.close(ctx)
	var stopped error // error of the caller's function page
	err = s.extract(ctx, func(p labreport.Page) error {
		stopped = page(p)
		return stopped
	})
	switch {
	case stopped != nil:
		return stopped
	case err != nil:
		return fmt.Errorf("read pdf: %w", err)
	}
	return nil
}

func (s *session) extract(ctx context.Context, page func(labreport.Page) error) error {
	if s.pages > s.x.o.MaxPages {
		return &healthlab.RuleError{Kind: healthlab.Invalid, Type: labreport.RuleTooManyPages, Msg: "the file has too many pages"}
	}
	blind := 0
	for i := range s.pages {
		p, ok, err := s.page(ctx, i)
		if err != nil {
			return err
		}
		if !ok {
			blind++
		}
		if blind == s.pages {
			return fmt.Errorf("%w: the pages are pictures; set Options.OCR to read them", healthlab.Unimplemented)
		}
		if err := page(p); err != nil {
			return err
		}
	}
	return nil
}

// page reads the text of one page, counted from 0, by OCR if needed. The bool is false if the page has only pictures
// and there is no OCR.
func (s *session) page(ctx context.Context, index int) (labreport.Page, bool, error) {
	a, err := s.call(ctx, request{Op: "text", Page: index})
	if err != nil {
		return labreport.Page{}, false, err
	}
	p := labreport.Page{Number: index + 1, Width: a.Text.Width, Height: a.Text.Height}
	for _, b := range a.Text.Words {
		p.Words = append(p.Words, labreport.Word{Text: b.Text, Confidence: 1, Box: labreport.Box{X: b.X, Y: b.Y, Width: b.W, Height: b.H}})
	}
	if turn := a.Text.Turn; turn != 0 {
		p.Original = func(b labreport.Box) labreport.Box { return unrotate(b, turn) }
	}
	if !needsOCR(a.Text) {
		return p, true, nil
	}
	if s.x.o.OCR == nil {
		img, err := s.render(ctx, index, inkDPI, maxPixels)
		if err != nil {
			return p, false, err
		}
		p.Unread = a.Text.Bad > 0 && len(p.Words) == 0 || inkBesides(img, p)
		return p, len(p.Words) > 0, nil
	}
	img, err := s.render(ctx, index, s.x.o.DPI, maxPixels)
	if err != nil {
		return p, false, err
	}
	seen, err := s.x.o.OCR(ctx, img)
	if err != nil {
		return p, false, err
	}
	if len(seen.Words) > len(p.Words) {
		seen.Number = p.Number
		return seen, true, nil
	}
	p.Unread = len(p.Words) == 0 && inkBesides(img, p)
	return p, true, nil
}

// inkDPI is the resolution at which a page is searched for pictures.
const inkDPI = 50

// inkBesides reports whether a page shows more than its words: at least one pixel in 500 is dark outside of the words'
// boxes.
func inkBesides(img *image.Gray, p labreport.Page) bool {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	covered := make([]bool, w*h)
	const edge = 0.004 // fraction of the page by which letters may exceed their box
	for _, word := range p.Words {
		b := word.Box
		if p.Original != nil {
			b = p.Original(b)
		}
		for y := max(0, int((b.Y-edge)*float64(h))); y < min(h, int((b.Y+b.Height+edge)*float64(h))+1); y++ {
			for x := max(0, int((b.X-edge)*float64(w))); x < min(w, int((b.X+b.Width+edge)*float64(w))+1); x++ {
				covered[y*w+x] = true
			}
		}
	}
	dark := 0
	for y := range h {
		for x := range w {
			if !covered[y*w+x] && img.Pix[y*img.Stride+x] < 160 {
				dark++
			}
		}
	}
	return dark*500 >= w*h && dark > 0
}

// unrotate maps a box of a rotated page to the page as it is displayed.
func unrotate(b labreport.Box, degrees int) labreport.Box {
	switch degrees {
	case 90:
		return labreport.Box{X: b.Y, Y: 1 - b.X - b.Width, Width: b.Height, Height: b.Width}
	case 180:
		return labreport.Box{X: 1 - b.X - b.Width, Y: 1 - b.Y - b.Height, Width: b.Width, Height: b.Height}
	case 270:
		return labreport.Box{X: 1 - b.Y - b.Height, Y: b.X, Width: b.Height, Height: b.Width}
	}
	return b
}

// needsOCR reports whether a page must be read by OCR, because its text layer has fewer than 20 words, or many
// characters that cannot be mapped to letters: more than half the number of its letters and digits.
func needsOCR(t pageText) bool {
	if len(t.Words) < 20 {
		return true
	}
	letters, digits := 0, 0
	for _, w := range t.Words {
		for _, r := range w.Text {
			switch {
			case unicode.IsLetter(r):
				letters++
			case unicode.IsDigit(r):
				digits++
			}
		}
	}
	return t.Bad > (letters+digits)/2
}

// maxPixels is the largest number of pixels of a page for OCR.
const maxPixels = 12 << 20

// render draws a page, counted from 0, at a resolution of dpi, or a lower one if the page would have more than the
// given number of pixels.
func (s *session) render(ctx context.Context, index, dpi, pixels int) (*image.Gray, error) {
	r, err := s.call(ctx, request{Op: "render", Page: index, DPI: dpi, Pixels: pixels})
	if err != nil {
		return nil, err
	}
	return &image.Gray{Pix: r.Pix, Stride: r.Width, Rect: image.Rect(0, 0, r.Width, r.Height)}, nil
}

// Render draws one page, counted from 1, in shades of grey, at a resolution in dots per inch; a very large page at a
// lower one. It returns the errors of Extract, and NotFound if there is no such page.
func (x *Extractor) Render(ctx context.Context, file labreport.File, page, dpi int) (image.Image, error) {
	return x.draw(ctx, file, page, dpi, maxPixels)
}

// RenderPage implements [labreport.Renderer], in shades of grey.
func (x *Extractor) RenderPage(ctx context.Context, file labreport.File, page, pixels int) (image.Image, error) {
	return x.draw(ctx, file, page, x.o.DPI, min(pixels, maxPixels))
}

func (x *Extractor) draw(ctx context.Context, file labreport.File, page, dpi, pixels int) (image.Image, error) {
	s, err := x.open(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("render pdf: %w", err)
	}
	defer s.close(ctx)
	if page < 1 || page > s.pages {
		return nil, fmt.Errorf("render pdf: %w: page %d; the file has %d pages", healthlab.NotFound, page, s.pages)
	}
	img, err := s.render(ctx, page-1, dpi, pixels)
	if err != nil {
		return nil, fmt.Errorf("render pdf: %w", err)
	}
	return img, nil
}

// Files in the order of reading: each uses those before it.
//
//	engine.go limit_linux.go limit_other.go child.go norace.go prescan.go race.go pdftext.go words.go worker.go
//	session.go
