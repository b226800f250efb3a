package pdftext

import (
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unicode"

	"github.com/klippa-app/go-pdfium"
	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// engine is PDFium in a sandbox of WebAssembly. It exists only in the child process.
type engine struct {
	pool pdfium.Pool
	inst pdfium.Pdfium
	docs map[int]references.FPDF_DOCUMENT // open documents by number
	last int
}

// newEngine compiles PDFium or loads it from the cache. The module requires 2 GiB of address space, so its memory
// cannot be limited; the limit is that of the process.
func newEngine(cache string) (*engine, error) {
	config := wazero.NewRuntimeConfig().WithCloseOnContextDone(true).
		// PDFium's setjmp is compiled to WebAssembly exceptions.
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling)
	if cache != "" {
		if c, err := wazero.NewCompilationCacheWithDir(filepath.Join(cache, "healthlab-pdfium")); err == nil {
			config = config.WithCompilationCache(c)
		}
	}
	pool, err := webassembly.Init(webassembly.Config{MinIdle: 1, MaxIdle: 1, MaxTotal: 1,
		RuntimeConfig: config, FSConfig: wazero.NewFSConfig(), Stdout: io.Discard, Stderr: io.Discard})
	if err != nil {
		return nil, fmt.Errorf("start pdf engine: %w", err)
	}
	inst, err := pool.GetInstance(30 * time.Second)
	if err != nil {
		return nil, fmt.Errorf("start pdf engine: %w", err)
	}
	return &engine{pool: pool, inst: inst, docs: map[int]references.FPDF_DOCUMENT{}}, nil
}

var errPassword = errors.New("the file needs a password")

var errFile = errors.New("the file cannot be opened")

// ownFaults lists the engine's errors for invalid files. Any other error is a fault of the engine.
var ownFaults = []error{pdfiumerrors.ErrUnknown, pdfiumerrors.ErrFile, pdfiumerrors.ErrFormat, pdfiumerrors.ErrSecurity, pdfiumerrors.ErrPage}

// open opens a file, assigns a number to it and counts its pages.
func (e *engine) open(pdf []byte) (number, pages int, err error) {
	doc, err := e.inst.OpenDocument(&requests.OpenDocument{File: &pdf})
	if err != nil {
		if errors.Is(err, pdfiumerrors.ErrPassword) {
			return 0, 0, errPassword
		}
		if slices.ContainsFunc(ownFaults, func(f error) bool { return errors.Is(err, f) }) {
			return 0, 0, errFile
		}
		return 0, 0, fmt.Errorf("the PDF engine failed to open the file: %w", err)
	}
	n, err := e.inst.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: doc.Document})
	if err != nil || n.PageCount <= 0 {
		_, _ = e.inst.FPDF_CloseDocument(&requests.FPDF_CloseDocument{Document: doc.Document})
		return 0, 0, errFile
	}
	e.last++
	e.docs[e.last] = doc.Document
	return e.last, n.PageCount, nil
}

func (e *engine) close(number int) {
	if doc, ok := e.docs[number]; ok {
		_, _ = e.inst.FPDF_CloseDocument(&requests.FPDF_CloseDocument{Document: doc})
		delete(e.docs, number)
	}
}

// pageText is the text layer of a page. Boxes are fractions of the page.
type pageText struct {
	Width, Height float64
	Words         []wordBox
	// Bad is the number of characters that cannot be read, because their font has no mapping to letters.
	Bad int
	// Turn is the clockwise rotation, in degrees, that makes the text run from left to right.
	Turn int
}

type wordBox struct {
	Text       string
	X, Y, W, H float64
}

// most is the largest number of characters that are read from a page.
const most = 40000

// text returns the words of a page, made from its characters.
func (e *engine) text(number, index int) (pageText, error) {
	var out pageText
	doc, ok := e.docs[number]
	if !ok {
		return out, errFile
	}
	p, err := e.inst.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: doc, Index: index})
	if err != nil {
		return out, errFile
	}
	defer func() { _, _ = e.inst.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: p.Page}) }()
	page := requests.Page{ByReference: &p.Page}
	size, err := e.inst.FPDF_GetPageSizeByIndex(&requests.FPDF_GetPageSizeByIndex{Document: doc, Index: index})
	if err != nil || !(size.Width > 0) || !(size.Height > 0) || size.Width > 1e6 || size.Height > 1e6 {
		return out, errFile
	}
	out.Width, out.Height = size.Width, size.Height
	move, err := e.transform(page)
	if err != nil {
		return out, err
	}
	chars, turn, bad, err := e.chars(page, move, size.Width, size.Height)
	if err != nil {
		return out, err
	}
	out.Bad, out.Turn = bad, turn
	for i, c := range chars {
		chars[i] = c.rotate(out.Turn, size.Width, size.Height)
	}
	if out.Turn == 90 || out.Turn == 270 {
		out.Width, out.Height = out.Height, out.Width
	}
	for _, w := range wordsOf(chars) {
		out.Words = append(out.Words, wordBox{w.text, w.x0 / out.Width, w.y0 / out.Height, (w.x1 - w.x0) / out.Width, (w.y1 - w.y0) / out.Height})
	}
	return out, nil
}

// chars returns the characters of a page in the order of its content stream, printed spaces included, the rotation
// of the page in degrees, and how many characters cannot be mapped to letters. It leaves out the spaces and line
// ends that the engine adds between glyphs.
func (e *engine) chars(page requests.Page, move func(x, y float64) (float64, float64), width, height float64) (chars []char, turn, bad int, err error) {
	d := direction{votes: map[int]int{}}
	t, err := e.inst.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: page})
	if err != nil {
		return nil, 0, 0, errFile
	}
	defer func() { _, _ = e.inst.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: t.TextPage}) }()
	n, err := e.inst.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: t.TextPage})
	if err != nil {
		return nil, 0, 0, errFile
	}
	for i := range min(n.Count, most) {
		u, err := e.inst.FPDFText_GetUnicode(&requests.FPDFText_GetUnicode{TextPage: t.TextPage, Index: i})
		if err != nil {
			return nil, 0, 0, errFile
		}
		r := rune(u.Unicode)
		switch {
		case r == 2, r == 0xad:
			r = '-'
		case r == 0 || r == 0xfffd || unicode.Is(unicode.Co, r):
			bad++
			continue
		case r == '\r' || r == '\n':
			continue
		case r <= ' ' || unicode.IsSpace(r) || unicode.IsControl(r):
			g, err := e.inst.FPDFText_IsGenerated(&requests.FPDFText_IsGenerated{TextPage: t.TextPage, Index: i})
			if err != nil || g.IsGenerated {
				continue
			}
			r = ' '
		}
		c, err := e.inst.FPDFText_GetLooseCharBox(&requests.FPDFText_GetLooseCharBox{TextPage: t.TextPage, Index: i})
		if err != nil {
			continue
		}
		d.count(e, t.TextPage, i, move, width, height)
		x0, y0 := move(float64(c.Rect.Left), float64(c.Rect.Top))
		x1, y1 := move(float64(c.Rect.Right), float64(c.Rect.Bottom))
		chars = append(chars, char{r, min(x0, x1) * width, min(y0, y1) * height, max(x0, x1) * width, max(y0, y1) * height})
	}
	return chars, d.rotation(), bad, nil
}

// char is a character and its box, in points from the top left.
type char struct {
	r              rune
	x0, y0, x1, y1 float64
}

// direction finds the rotation of a page from the baselines of every eighth character.
type direction struct {
	votes map[int]int
	seen  int
}

// count adds the direction of the character at an index. move maps the page's coordinates to the displayed page of
// width by height points.
func (d *direction) count(e *engine, page references.FPDF_TEXTPAGE, index int, move func(x, y float64) (float64, float64), width, height float64) {
	if d.seen++; d.seen%8 != 1 {
		return
	}
	m, err := e.inst.FPDFText_GetMatrix(&requests.FPDFText_GetMatrix{TextPage: page, Index: index})
	if err != nil {
		return
	}
	x0, y0 := move(0, 0)
	x1, y1 := move(float64(m.Matrix.A), float64(m.Matrix.B))
	dx, dy := (x1-x0)*width, (y1-y0)*height
	switch {
	case math.Abs(dx) >= math.Abs(dy) && dx >= 0:
		d.votes[0]++
	case math.Abs(dx) >= math.Abs(dy):
		d.votes[180]++
	case dy > 0:
		d.votes[270]++
	default:
		d.votes[90]++
	}
}

func (d *direction) rotation() int {
	best := 0
	for _, turn := range []int{90, 180, 270} {
		if d.votes[turn] > d.votes[best] {
			best = turn
		}
	}
	return best
}

// rotate maps a box to a page of w by h that is turned clockwise.
func (c char) rotate(degrees int, w, h float64) char {
	switch degrees {
	case 90:
		return char{c.r, h - c.y1, c.x0, h - c.y0, c.x1}
	case 180:
		return char{c.r, w - c.x1, h - c.y1, w - c.x0, h - c.y0}
	case 270:
		return char{c.r, c.y0, w - c.x1, c.y1, w - c.x0}
	}
	return c
}

// transform returns the map from the page's coordinates to fractions of the displayed page, rotated and cropped.
func (e *engine) transform(page requests.Page) (func(x, y float64) (float64, float64), error) {
	const scale = 1 << 20
	at := func(x, y float64) (float64, float64, error) {
		d, err := e.inst.FPDF_PageToDevice(&requests.FPDF_PageToDevice{Page: page, SizeX: scale, SizeY: scale, PageX: x, PageY: y})
		if err != nil {
			return 0, 0, errFile
		}
		return float64(d.DeviceX) / scale, float64(d.DeviceY) / scale, nil
	}
	ox, oy, err := at(0, 0)
	if err != nil {
		return nil, err
	}
	const far = 1000
	ax, ay, err1 := at(far, 0)
	bx, by, err2 := at(0, far)
	if err := errors.Join(err1, err2); err != nil {
		return nil, errFile
	}
	return func(x, y float64) (float64, float64) {
		return ox + x*(ax-ox)/far + y*(bx-ox)/far, oy + x*(ay-oy)/far + y*(by-oy)/far
	}, nil
}

// render draws a page of document number, counted from 0, in shades of grey. It lowers the resolution dpi if the page
// would have more than the given number of pixels.
func (e *engine) render(number, index, dpi, pixels int) (*image.Gray, error) {
	doc, ok := e.docs[number]
	if !ok {
		return nil, errFile
	}
	size, err := e.inst.FPDF_GetPageSizeByIndex(&requests.FPDF_GetPageSizeByIndex{Document: doc, Index: index})
	if err != nil || !(size.Width > 0) || !(size.Height > 0) {
		return nil, errFile
	}
	inches := size.Width / 72 * size.Height / 72
	if fit := int(math.Sqrt(float64(pixels) / inches)); fit < dpi {
		dpi = max(fit, 1)
	}
	if inches*float64(dpi*dpi) > float64(pixels)*1.1 {
		return nil, errFile
	}
	r, err := e.inst.RenderPageInDPI(&requests.RenderPageInDPI{DPI: dpi, Page: requests.Page{ByIndex: &requests.PageByIndex{Document: doc, Index: index}}})
	if err != nil {
		return nil, errFile
	}
	defer r.Cleanup()
	src, ok := r.Result.RenderedImage.(*image.RGBA)
	if !ok {
		return nil, errors.New("the PDF engine returned a bitmap of an unknown format")
	}
	b := src.Bounds()
	g := image.NewGray(image.Rect(0, 0, b.Dx(), b.Dy()))
	for y := range b.Dy() {
		row := src.Pix[y*src.Stride:]
		for x := range b.Dx() {
			p := row[x*4 : x*4+4]
			g.Pix[y*g.Stride+x] = uint8((299*int(p[0]) + 587*int(p[1]) + 114*int(p[2])) / 1000)
		}
	}
	return g, nil
}

// cacheDir returns the folder for compiled code, which only the current user can read.
func cacheDir() string {
	base, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	dir := filepath.Join(base, "healthlab")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ""
	}
	return dir
}
