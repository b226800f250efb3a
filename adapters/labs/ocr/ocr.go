// Package ocr reads the words of pictures for package labreport. It runs tesseract as a separate process, so that a
// harmful picture affects only that process.
package ocr

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // the types that we read
	_ "image/png"  // supported types
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport"
)

// Options adjusts an Engine. The zero value, and nil, mean the defaults.
type Options struct {
	// Command is the name or path of the program. Default "tesseract"; a name is looked up in PATH.
	Command string
	// Readability rates how well a page was read; higher is better. The page is read in several ways, and the best
	// reading is used. Use [labreport.Reader.Readability]. Default: the number of words.
	Readability func(labreport.Page) float64
	// DoubtfulNumbers returns the boxes of numbers that may have lost their decimal point. These areas are read again
	// at a higher resolution. Use [labreport.Reader.DoubtfulNumbers]. Default: no area is read again.
	DoubtfulNumbers func(labreport.Page) []labreport.Box
	// Language returns the language of a page from its first reading. If tesseract has data of that language, the page
	// is read again with it. Use [labreport.Reader.Language]. Default: every page is read in Languages.
	Language func(labreport.Page) string
	// Workers is the number of pages that are read concurrently. Default: the number of processors, at most 2.
	Workers int
	// Timeout is the longest run of tesseract. Default 15 s.
	Timeout time.Duration
	// PageTimeout is the longest time of all runs for one page. Default 25 s.
	PageTimeout time.Duration
	// Languages are additional tesseract languages ("deu"). Default: English only.
	Languages []string
}

// maxPixels is the largest number of pixels of a picture with three bytes per pixel. Pictures with more bytes per
// pixel may have fewer.
const maxPixels = 40_000_000

// maxSide is the largest width and height of a picture, in pixels.
const maxSide = 12_000

// Engine reads pictures. It is safe for concurrent use.
type Engine struct {
	o       Options
	path    string
	langs   string
	listing sync.Once
	have    map[string]string // language → tesseract's name for it, if tesseract has its data; set by listing
	slots   chan struct{}
	// own is a semaphore that limits concurrent image processing and keeps one processor free of it. Goroutines,
	// unlike the process of tesseract, cannot have a lower priority.
	own chan struct{}
}

var (
	_ labreport.TextExtractor = (*Engine)(nil)
	_ labreport.Renderer      = (*Engine)(nil)
)

// New returns an Engine. It returns [healthlab.Unimplemented] if tesseract is not installed; a host may then run
// without OCR, and pictures are refused with a reason.
func New(opts *Options) (*Engine, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Command = cmp.Or(o.Command, "tesseract")
	path, err := exec.LookPath(o.Command)
	if err != nil {
		return nil, fmt.Errorf("%w: tesseract is not installed: Options.Command: %v", healthlab.Unimplemented, err)
	}
	if o.Workers <= 0 {
		o.Workers = min(2, runtime.NumCPU())
	}
	if o.Timeout <= 0 {
		o.Timeout = 15 * time.Second
	}
	if o.PageTimeout <= 0 {
		o.PageTimeout = 25 * time.Second
	}
	langs := "eng"
	for _, l := range o.Languages {
		langs += "+" + l
	}
	return &Engine{o: o, path: path, langs: langs, slots: make(chan struct{}, o.Workers), own: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1))}, nil
}

// Check implements [labreport.TextExtractor]. A picture has one page. It decodes the picture to refuse a truncated one.
func (e *Engine) Check(ctx context.Context, file labreport.File) (int, error) {
	if _, err := e.decode(ctx, file); err != nil {
		return 0, fmt.Errorf("check picture: %w", err)
	}
	return 1, nil
}

// decode returns the picture in grey, upright.
func (e *Engine) decode(ctx context.Context, file labreport.File) (g *image.Gray, err error) {
	if err := e.header(file); err != nil {
		return nil, err
	}
	err = e.withSlot(ctx, func() error {
		img, _, err := image.Decode(bytes.NewReader(file.Data))
		if err != nil {
			return fmt.Errorf("%w: the file must be a readable PNG or JPEG picture", healthlab.Invalid)
		}
		g = grey(img, orientation(file.Data))
		return nil
	})
	return g, err
}

// RenderPage implements [labreport.Renderer]. It returns the picture upright on white, scaled down to at most pixels.
func (e *Engine) RenderPage(ctx context.Context, file labreport.File, page, pixels int) (image.Image, error) {
	if page != 1 {
		return nil, fmt.Errorf("render picture: %w: page %d; a picture has only page 1", healthlab.NotFound, page)
	}
	if err := e.header(file); err != nil {
		return nil, fmt.Errorf("render picture: %w", err)
	}
	var out *image.RGBA
	err := e.withSlot(ctx, func() error {
		img, _, err := image.Decode(bytes.NewReader(file.Data))
		if err != nil {
			return fmt.Errorf("render picture: %w: the file must be a readable PNG or JPEG picture", healthlab.Invalid)
		}
		out = scaledDown(img, orientation(file.Data), pixels)
		return nil
	})
	return out, err
}

// header refuses a picture by its declared size, before any pixel is read.
func (e *Engine) header(file labreport.File) error {
	c, format, err := image.DecodeConfig(bytes.NewReader(file.Data))
	if err != nil || "image/"+format != file.Type {
		return fmt.Errorf("%w: the file must be a readable PNG or JPEG picture", healthlab.Invalid)
	}
	if c.Width <= 0 || c.Height <= 0 || c.Width > maxSide || c.Height > maxSide || c.Width > maxPixels/c.Height ||
		c.Width*c.Height*depth(c.ColorModel) > 3*maxPixels {
		return fmt.Errorf("%w: the picture has %d x %d pixels; it must have at most %d, fewer if a pixel has more than 3 bytes, and at most %d on a side",
			healthlab.Exhausted, c.Width, c.Height, maxPixels, maxSide)
	}
	return nil
}

// depth returns the bytes per pixel of a decoded picture.
func depth(m color.Model) int {
	switch m {
	case color.GrayModel:
		return 1
	case color.Gray16Model:
		return 2
	case color.YCbCrModel:
		return 3
	case color.RGBA64Model, color.NRGBA64Model:
		return 8
	}
	if _, ok := m.(color.Palette); ok {
		return 1
	}
	return 4
}

// Extract implements [labreport.TextExtractor].
func (e *Engine) Extract(ctx context.Context, file labreport.File, page func(labreport.Page) error) error {
	if err := e.header(file); err != nil {
		return fmt.Errorf("read picture: %w", err)
	}
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	g, err := e.decode(ctx, file)
	if err != nil {
		return fmt.Errorf("read picture: %w", err)
	}
	p, err := e.read(ctx, g)
	if err != nil {
		return fmt.Errorf("read picture: %w", err)
	}
	return page(p)
}

// Page reads the picture of a page, for the pages of scanned PDFs. Its number is 1.
func (e *Engine) Page(ctx context.Context, img image.Image) (labreport.Page, error) {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return labreport.Page{}, ctx.Err()
	}
	return e.read(ctx, grey(img, 1))
}

// withSlot runs an image operation when the semaphore e.own has a free slot. It returns the error of work, or that of
// ctx.
func (e *Engine) withSlot(ctx context.Context, work func() error) error {
	select {
	case e.own <- struct{}{}:
		defer func() { <-e.own }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return work()
}

// try is one way of reading a page.
type try struct {
	part float64 // size of the picture, as a share of the full size
	psm  string  // tesseract's page segmentation mode
	raw  bool    // the picture is read in full size, and the lines of tables are not erased before
}

// Ways of reading a page, the best first. They make different mistakes: with mode 11, a value is read separately
// from the rest of its line, but noise in the picture then becomes words.
var (
	tries       = []try{{0.76, "6", false}, {0.88, "11", false}, {0.64, "6", false}, {0.85, "11", true}}
	triesGrainy = []try{{0.76, "6", false}, {0.88, "6", false}, {0.64, "6", false}, {0.85, "11", true}}
)

// sureEnough is the mean confidence of a first reading from which on a page is read only twice.
const sureEnough = 0.95

// read reads a page, and reads a second time the areas that Options.DoubtfulNumbers returns.
func (e *Engine) read(ctx context.Context, g *image.Gray) (labreport.Page, error) {
	ctx, stop := context.WithTimeout(ctx, e.o.PageTimeout)
	defer stop()
	if empty(g) {
		return labreport.Page{Number: 1, Width: float64(g.Rect.Dx()), Height: float64(g.Rect.Dy()), Image: true}, nil
	}
	p, first, err := e.upright(ctx, g)
	if err != nil {
		return labreport.Page{}, err
	}
	page, err := e.readBest(ctx, p, first)
	page.Unread = len(page.Words) == 0
	if err != nil || e.o.DoubtfulNumbers == nil {
		return page, err
	}
	boxes := e.o.DoubtfulNumbers(page)
	page.Words = slices.Clone(page.Words)
	for _, box := range boxes[:min(len(boxes), maxReread)] {
		e.reread(ctx, p, page.Words, box)
	}
	return page, nil
}

// A page is turned if its first reading has at least fewWords words with a mean confidence below legible. For eight
// pictures of the open set the mean was at least 0.84 upright, and at most 0.44 turned.
const (
	fewWords = 8
	legible  = 0.6
)

// upright prepares a page and reads it once. If the page is not legible, it tries the quarter turns; if none of them
// is legible, it keeps the page as it is.
func (e *Engine) upright(ctx context.Context, g *image.Gray) (*prepared, []labreport.Word, error) {
	p, words, err := e.readTurned(ctx, g, 1)
	if err != nil || confidence(words) >= legible || len(words) < fewWords {
		return p, words, err
	}
	for _, orientation := range []int{6, 8, 3} {
		if q, again, err := e.readTurned(ctx, g, orientation); err == nil && confidence(again) >= legible {
			return q, again, nil
		}
	}
	return p, words, nil
}

func (e *Engine) readTurned(ctx context.Context, g *image.Gray, orientation int) (p *prepared, words []labreport.Word, err error) {
	err = e.withSlot(ctx, func() error {
		p = prepare(grey(g, orientation))
		p.turned = orientation
		return nil
	})
	if err == nil {
		words, err = e.attempt(ctx, p, tries[0], e.langs)
	}
	return p, words, err
}

// maxReread is the largest number of areas of a page that are read a second time.
const maxReread = 6

// reread reads the words of a box again at three times the size. If the digits are equal and a decimal point appears,
// the second reading counts and the first is its alternative.
func (e *Engine) reread(ctx context.Context, p *prepared, words []labreport.Word, box labreport.Box) {
	w, h := float64(p.flat.Rect.Dx()), float64(p.flat.Rect.Dy())
	const scale = 3
	edge := box.Height * h / 2
	x0, y0 := box.X*w-edge, box.Y*h-edge/2
	var crop *image.Gray
	err := e.withSlot(ctx, func() error {
		crop = warp(p.flat, int((box.Width*w+2*edge)*scale), int((box.Height*h+edge)*scale), func(q point) point { return point{x0 + q.x/scale, y0 + q.y/scale} })
		return nil
	})
	if err != nil {
		return
	}
	again, err := e.tesseract(ctx, crop, "7", e.langs)
	if err != nil {
		return // keep the first reading
	}
	var text strings.Builder
	for _, word := range again {
		text.WriteString(word.Text)
	}
	for i := range words {
		if old := words[i]; cover(old.Box, box) && digits(old.Text) != "" && digits(old.Text) == digits(text.String()) && text.String() != old.Text {
			words[i].Text, words[i].Alternative = text.String(), old.Text
			words[i].Confidence, words[i].Votes = min(old.Confidence, confidence(again)), 1
			return
		}
	}
}

// digits returns the digits of a text.
func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
}

// readBest reads a page in several ways and merges the readings; first is the reading that was already made. It
// returns the best of the merged reading and the single ones.
func (e *Engine) readBest(ctx context.Context, p *prepared, first []labreport.Word) (labreport.Page, error) {
	page := labreport.Page{Number: 1, Width: float64(p.flat.Rect.Dx()), Height: float64(p.flat.Rect.Dy()), Image: true, Original: p.original}
	judge := e.o.Readability
	if judge == nil {
		judge = func(p labreport.Page) float64 { return float64(len(p.Words)) }
	}
	langs := e.langs
	var readings [][]labreport.Word
	best, bestScore := page, -1.0
	consider := func(words []labreport.Word) float64 {
		with := page
		with.Words = words
		score := judge(with)
		if score > bestScore {
			best, bestScore = with, score
		}
		return score
	}
	ways := tries
	if p.grainy {
		ways = triesGrainy
	}
	for i, t := range ways {
		words := first
		var err error
		if i > 0 {
			words, err = e.attempt(ctx, p, t, langs)
		}
		if err != nil {
			if errors.Is(err, healthlab.Exhausted) || errors.Is(err, context.DeadlineExceeded) {
				break // the time is up: return the best so far
			}
			return labreport.Page{}, err
		}
		if i == 0 {
			page.Words = words
			words, langs = e.readInLanguage(ctx, p, page, langs)
		}
		readings = append(readings, words)
		consider(words)
		if i == 0 && len(words) == 0 && e.blank(p.flat) {
			return best, nil
		}
		if i == 1 && bestScore == 0 {
			return best, nil // two readings found nothing that a lab report contains
		}
		if i == 1 && confidence(readings[0]) >= sureEnough {
			break // the second reading confirms the first
		}
		// Three readings that mostly agree need no fourth.
		if i == 2 && e.o.Readability != nil {
			if s := consider(vote(readings)); s >= 0.97*bestScore && confidence(best.Words) > 0.8 {
				break
			}
		}
	}
	if len(readings) > 1 {
		joined := page
		joined.Words = vote(readings)
		if score := judge(joined); score >= 0.97*bestScore {
			return joined, nil
		}
	}
	return best, nil
}

// attempt reads a page in the way t, with the tesseract languages langs.
func (e *Engine) attempt(ctx context.Context, p *prepared, t try, langs string) ([]labreport.Word, error) {
	img := p.flat
	err := e.withSlot(ctx, func() error {
		if !t.raw {
			img = p.scaled(t.part)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e.tesseract(ctx, img, t.psm, langs)
}

// readInLanguage reads a page again in its own language, if its first reading, in the languages langs, shows another
// one. It returns the words of the last reading and its languages.
func (e *Engine) readInLanguage(ctx context.Context, p *prepared, first labreport.Page, langs string) ([]labreport.Word, string) {
	if e.o.Language == nil {
		return first.Words, langs
	}
	e.listing.Do(func() { e.have = e.installed(context.WithoutCancel(ctx)) })
	own := e.have[e.o.Language(first)]
	if own == "" || own == langs {
		return first.Words, langs
	}
	words, err := e.attempt(ctx, p, tries[0], own)
	if err != nil {
		return first.Words, langs
	}
	return words, own
}

// confidence returns the mean confidence of the words with a letter or digit.
func confidence(words []labreport.Word) float64 {
	sum, n := 0.0, 0.0
	for _, w := range words {
		if strings.ContainsFunc(w.Text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			sum += w.Confidence
			n++
		}
	}
	return sum / max(n, 1)
}

// empty reports whether a picture has nearly the same brightness everywhere.
func empty(g *image.Gray) bool {
	w, h := g.Rect.Dx(), g.Rect.Dy()
	low, high := 255, 0
	for y := 0; y < h; y++ {
		row := g.Pix[y*g.Stride : y*g.Stride+w]
		for _, v := range row {
			low, high = min(low, int(v)), max(high, int(v))
		}
		if high-low > 12 {
			return false
		}
	}
	return true
}

// blank reports whether a page has almost no ink.
func (e *Engine) blank(g *image.Gray) bool {
	dark := 0
	for i := 0; i < len(g.Pix); i += 7 {
		if g.Pix[i] < 110 {
			dark++
		}
	}
	return dark*7*5000 < len(g.Pix)
}

// Files in the order of reading: each uses those before it.
//
//	sheet.go grain.go leaders.go level.go light.go limit_linux.go limit_other.go rules.go prepare.go upright.go
//	render.go vote.go ocr.go tesseract.go
