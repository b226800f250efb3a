package pdfdoc

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/draw"
	_ "image/jpeg" // signatures
	"image/png"
	"math"
	"slices"
	"strings"

	"codeberg.org/go-pdf/fpdf"
	"github.com/boombuler/barcode/code128"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/documents"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// Measures in millimetres, and font sizes in points.
const (
	margin  = 16.0
	top     = 24.0 // below the header of the second and later pages
	bottom  = 20.0
	body    = 9.0
	small   = 7.5
	heading = 11.0
	title   = 16.0
	gutter  = 5.0
	point   = 25.4 / 72
	leading = 1.3
)

// style is the appearance of text.
type style struct {
	size float64
	bold bool
}

func (s style) line() float64 { return s.size * point * leading }

// layout is the layout of one document. Pages are lists of drawing operations until the number of pages is known.
type layout struct {
	ctx           context.Context //nolint:containedctx // it lives as long as one call
	p             *Printer
	f             *fpdf.Fpdf
	d             documents.Document
	width, height float64
	y             float64
	pages         [][]func()
	loaded        map[string]bool
	pictures      int
	unknown       bool
}

func (l *layout) run() error {
	if len(l.d.Labels) > 0 {
		return l.labels()
	}
	l.breakPage()
	l.head()
	for _, s := range l.d.Sections {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		l.section(s)
	}
	for i, page := range l.pages {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		l.f.AddPage()
		for _, draw := range page {
			draw()
		}
		l.foot(i+1, len(l.pages))
	}
	return l.f.Error()
}

func (l *layout) inner() float64 { return l.width - 2*margin }

func (l *layout) breakPage() {
	l.pages = append(l.pages, nil)
	l.y = margin
	if len(l.pages) > 1 {
		l.y = top
		l.later(func() {
			y := margin
			for _, line := range l.wrap(joined(" · ", l.d.Title, l.d.Number, l.d.Subject), style{small, true}, l.inner()) {
				l.draw(margin, y, style{small, true}, line)
				y += style{small, true}.line()
			}
		})
		// A header of several lines moves the rest down.
		n := len(l.wrap(joined(" · ", l.d.Title, l.d.Number, l.d.Subject), style{small, true}, l.inner()))
		l.y = max(top, margin+float64(n)*style{small, true}.line()+3)
	}
}

func joined(with string, parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, with)
}

func (l *layout) ensureHeight(height float64) {
	if l.y+height > l.height-bottom {
		l.breakPage()
	}
}

func (l *layout) later(draw func()) {
	n := len(l.pages) - 1
	l.pages[n] = append(l.pages[n], draw)
}

// font selects a font and embeds it at its first use.
func (l *layout) font(face int, st style) {
	family, variant, cut := fmt.Sprintf("f%d", face), "", &l.p.faces[face].regular
	if st.bold && face == 0 {
		variant, cut = "B", &l.p.faces[face].bold
	}
	if !l.loaded[family+variant] {
		l.loaded[family+variant] = true
		l.f.AddUTF8FontFromBytes(family, variant, cut.file)
	}
	l.f.SetFont(family, variant, st.size)
}

// pieces splits prepared text where the font changes.
func (l *layout) pieces(s string, each func(face int, text string)) {
	start, last := 0, -1
	for i, r := range s {
		if face := l.p.face(r); face != last {
			if i > start {
				each(last, s[start:i])
			}
			start, last = i, face
		}
	}
	if start < len(s) {
		each(last, s[start:])
	}
}

// measure returns the width of prepared text.
func (l *layout) measure(s string, st style) float64 {
	w := 0
	for _, r := range s {
		if face := l.p.face(r); face >= 0 && st.bold {
			w += int(l.p.faces[face].bold.widths[r])
		} else if face >= 0 {
			w += int(l.p.faces[face].regular.widths[r])
		}
	}
	return float64(w) * st.size * point / 1000
}

// set is a prepared line of text, in the order in which it is drawn from left to right.
type set string

// wrap breaks text into lines of a width: between words, and inside a word that is wider
// than a line.
func (l *layout) wrap(text string, st style, width float64) []set {
	var out []set
	for _, part := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		ready, unknown := l.p.prepare(part)
		l.unknown = l.unknown || unknown
		rtl := isRightToLeft(ready)
		line := ""
		end := func() {
			out = append(out, set(visual(line, rtl)))
			line = ""
		}
		for _, word := range strings.Fields(ready) {
			if line != "" && l.measure(line+" "+word, st) <= width {
				line += " " + word
				continue
			}
			if line != "" {
				end()
			}
			if l.measure(word, st) > width {
				for _, c := range clusters(word) {
					if line != "" && l.measure(line+c, st) > width {
						end()
					}
					line += c
				}
				continue
			}
			line = word
		}
		end()
	}
	return out
}

func (l *layout) breaks(text string, st style, width float64) bool {
	ready, _ := l.p.prepare(text)
	return slices.ContainsFunc(strings.Fields(ready), func(word string) bool { return l.measure(word, st) > width })
}

// draw prints a line with its upper edge at y.
func (l *layout) draw(x, y float64, st style, line set) {
	base := y + st.size*point
	l.pieces(string(line), func(face int, text string) {
		l.font(face, st)
		l.f.Text(x, base, text)
		x += l.measure(text, st)
	})
}

// lines prints lines one below the other, across pages.
func (l *layout) lines(x float64, st style, lines []set) {
	for _, line := range lines {
		l.ensureHeight(st.line())
		y := l.y
		l.later(func() { l.draw(x, y, st, line) })
		l.y += st.line()
	}
}

// head prints the title, the number and the remarks.
func (l *layout) head() {
	left := l.inner()
	if bars, width := l.bars(l.d.Number, 84); bars != nil {
		left -= width + gutter
		x, y := l.width-margin-width, l.y
		l.later(func() { l.stripes(x, y, width, 13, bars) })
		st, below := style{body, false}, y+14
		for i, line := range l.wrap(l.d.Number, st, width) {
			at := below + float64(i)*st.line()
			l.later(func() { l.draw(x+width-l.measure(string(line), st)-width*0.04, at, st, line) })
		}
		below += float64(len(l.wrap(l.d.Number, st, width))) * st.line()
		defer func() { l.y = max(l.y, below) + 2 }()
	} else if l.d.Number != "" {
		defer func() { l.lines(margin, style{body, false}, l.wrap(l.d.Number, style{body, false}, l.inner())) }()
	}
	l.lines(margin, style{title, true}, l.wrap(l.d.Title, style{title, true}, left))
	for _, r := range l.d.Remarks {
		l.lines(margin, style{heading, true}, l.wrap(r, style{heading, true}, left))
	}
}

// foot prints the page number.
func (l *layout) foot(page, of int) {
	st := style{small, false}
	y := l.height - margin + 2
	text := set(fmt.Sprintf("Page %d of %d", page, of))
	l.draw(l.width-margin-l.measure(string(text), st), y, st, text)
	if l.unknown {
		l.draw(margin, y, st, "[U+…] stands for letters that cannot be shown here, by their Unicode numbers.")
	}
}

func (l *layout) section(s documents.Section) {
	l.y += 3
	if s.Heading != "" {
		st := style{heading, true}
		heads := l.wrap(s.Heading, st, l.inner())
		l.ensureHeight(float64(len(heads))*st.line() + 1.5 + l.firstRowHeight(&s)) // keeps a heading on the page of its first row
		l.lines(margin, st, heads)
		y := l.y
		l.later(func() {
			l.f.SetLineWidth(0.2)
			l.f.Line(margin, y, l.width-margin, y)
		})
		l.y += 1.5
	}
	l.fields(s.Fields)
	for _, p := range s.Paragraphs {
		l.lines(margin, style{body, false}, l.wrap(p, style{body, false}, l.inner()))
		l.y++
	}
	if s.Table != nil {
		l.table(s.Table)
	}
	for i, step := range s.Steps {
		l.item(step, func(x, y float64) { l.draw(x, y, style{body, true}, set(fmt.Sprintf("%d.", i+1))) })
	}
	for _, choice := range s.Choices {
		l.item(choice, func(x, y float64) {
			l.f.SetLineWidth(0.3)
			l.f.Rect(x, y+0.2, 3.5, 3.5, "D")
		})
	}
	if s.Picture != nil {
		l.picture(s.Picture)
	}
	for _, sign := range s.Signs {
		l.ensureHeight(signStart)
		y := l.y + 9
		l.later(func() {
			l.f.SetLineWidth(0.2)
			l.f.Line(margin, y, margin+l.inner()*0.6, y)
		})
		l.y = y + 0.5
		l.lines(margin, style{small, false}, l.wrap(sign, style{small, false}, l.inner()*0.6))
	}
}

// firstRowHeight returns the height of the first row of a section, which must be on the same page as the section's
// title.
func (l *layout) firstRowHeight(s *documents.Section) float64 {
	line := style{body, false}.line()
	switch {
	case len(s.Fields) > 0:
		wide := l.wrap(s.Fields[0].Value, style{body, false}, l.inner()-fieldName)
		return l.unbrokenHeight(max(2, float64(len(wide)))*line, line)
	case len(s.Paragraphs) == 0 && s.Table != nil:
		return l.tableStart(s.Table)
	case len(s.Paragraphs)+len(s.Steps)+len(s.Choices) > 0:
		return line
	case s.Picture != nil:
		return pictureY + 2
	}
	return signStart
}

func (l *layout) unbrokenHeight(height, line float64) float64 {
	if height < l.height-bottom-top-10 {
		return height
	}
	return line
}

// signStart is the height of a signature line with its label.
const signStart = 18.0

// item prints a paragraph with a mark before it.
func (l *layout) item(text string, mark func(x, y float64)) {
	const indent = 8
	st := style{body, false}
	lines := l.wrap(text, st, l.inner()-indent)
	l.ensureHeight(st.line())
	y := l.y
	l.later(func() { mark(margin, y) })
	l.lines(margin+indent, st, lines)
	l.y += 1.5
}

// fieldName is the width of the name of a field.
const fieldName = 28.0

// fields prints two fields per row. A field with a long value, or with a word that half a row would break, has its own
// row.
func (l *layout) fields(fields []documents.Field) {
	type cell struct{ name, value []set }
	const named = fieldName
	name, value := style{small, true}, style{body, false}
	half := (l.inner() - gutter) / 2
	var row []cell
	flush := func() {
		var columns []column
		for j, c := range row {
			x := margin + float64(j)*(half+gutter)
			columns = append(columns, column{x, 0.4, name, c.name}, column{x + named, 0, value, c.value})
		}
		l.printColumns(columns, value.line())
		row = nil
	}
	for _, f := range fields {
		c := cell{l.wrap(f.Name, name, named-2), l.wrap(f.Value, value, half-named)}
		if len(c.value) > 2 || l.breaks(f.Value, value, half-named) {
			flush()
			c.value = l.wrap(f.Value, value, l.inner()-named)
			row = []cell{c}
			flush()
			continue
		}
		if row = append(row, c); len(row) == 2 {
			flush()
		}
	}
	flush()
}

// columns returns the positions and widths of the columns of a table.
func (l *layout) columns(t *documents.Table) (xs, ws []float64) {
	total := 0
	for _, w := range t.Widths {
		total += w
	}
	x := margin
	for _, w := range t.Widths {
		width := l.inner() * float64(w) / float64(total)
		xs, ws = append(xs, x), append(ws, width-2)
		x += width
	}
	return xs, ws
}

func (l *layout) tableStart(t *documents.Table) float64 {
	_, ws := l.columns(t)
	return l.rowHeight(ws, t.Columns, style{small, true}) + 1 + l.firstTableRowHeight(ws, t.Rows)
}

// firstTableRowHeight returns the height of the first row and of the group headings before it, which must be on one
// page. ws are the widths of the columns.
func (l *layout) firstTableRowHeight(ws []float64, rows []documents.Row) float64 {
	need := 0.0
	for _, r := range rows {
		st := style{body, r.Strong || r.Group}
		if r.Group {
			need += float64(len(l.wrap(r.Cells[0], st, l.inner())))*st.line() + 1
			continue
		}
		height := l.rowHeight(ws, r.Cells, st) + float64(len(l.remark(r)))*style{small, false}.line() + 1
		return l.unbrokenHeight(need+height, need+st.line())
	}
	return need
}

func (l *layout) remark(r documents.Row) []set {
	if r.Remark == "" {
		return nil
	}
	return l.wrap(r.Remark, style{small, false}, l.inner()-6)
}

// table prints a table and repeats the column names on each page.
func (l *layout) table(t *documents.Table) {
	xs, ws := l.columns(t)
	names := func() {
		l.cells(xs, ws, t.Columns, style{small, true})
		y := l.y
		l.later(func() {
			l.f.SetLineWidth(0.2)
			l.f.Line(margin, y, l.width-margin, y)
		})
		l.y++
	}
	l.ensureHeight(l.tableStart(t))
	names()
	for i, r := range t.Rows {
		st := style{body, r.Strong || r.Group}
		wide, text := ws, r.Cells
		if r.Group {
			wide, text = []float64{l.inner()}, r.Cells[:1]
		}
		before := len(l.pages)
		if l.ensureHeight(l.firstTableRowHeight(ws, t.Rows[i:])); len(l.pages) > before {
			names()
		}
		l.cells(xs, wide, text, st)
		l.lines(margin+4, style{small, false}, l.remark(r))
		l.y++
	}
}

// rowHeight returns the height of a row whose cells have these widths and texts.
func (l *layout) rowHeight(ws []float64, text []string, st style) float64 {
	n := 0
	for i, c := range text {
		n = max(n, len(l.wrap(c, st, ws[i])))
	}
	return float64(n) * st.line()
}

// cells prints texts side by side.
func (l *layout) cells(xs, ws []float64, text []string, st style) {
	var columns []column
	for i, c := range text {
		columns = append(columns, column{xs[i], 0, st, l.wrap(c, st, ws[i])})
	}
	l.printColumns(columns, st.line())
}

// column is a list of lines, printed beside other columns.
type column struct {
	x, down float64
	st      style
	lines   []set
}

// printColumns prints columns next to each other, with lines of height line. It writes one column after the other, so
// that selected text is in reading order, and keeps the columns on one page if possible.
func (l *layout) printColumns(columns []column, line float64) {
	n := 0
	for _, c := range columns {
		n = max(n, len(c.lines))
	}
	if height := float64(n) * line; height < l.height-bottom-top-10 {
		l.ensureHeight(height)
	}
	for from := 0; from < n; {
		l.ensureHeight(line)
		fit := max(1, min(n-from, int((l.height-bottom-l.y+0.01)/line)))
		for _, c := range columns {
			for i := from; i < min(from+fit, len(c.lines)); i++ {
				y := l.y + float64(i-from)*line + c.down
				l.later(func() { l.draw(c.x, y, c.st, c.lines[i]) })
			}
		}
		l.y += float64(fit) * line
		from += fit
	}
}

// The thinnest bar that scanners can read on paper, and the widest useful one, in millimetres.
const thinnest, thickest = 0.19, 0.33

// bars returns the bars of a number as a Code 128 barcode and its width with quiet zones; nil if the width exceeds
// most.
func (l *layout) bars(number string, most float64) ([]bool, float64) {
	const quiet = 20 // width of both quiet zones, in modules
	if number == "" || strings.ContainsFunc(number, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, 0
	}
	code, err := code128.Encode(number)
	if err != nil {
		return nil, 0
	}
	n := code.Bounds().Dx()
	module := min(most/float64(n+quiet), thickest)
	if module < thinnest {
		return nil, 0
	}
	bars := make([]bool, 0, n+quiet)
	bars = append(bars, make([]bool, quiet/2)...)
	for i := range n {
		r, _, _, _ := code.At(i, 0).RGBA()
		bars = append(bars, r == 0)
	}
	return append(bars, make([]bool, quiet/2)...), module * float64(n+quiet)
}

func (l *layout) stripes(x, y, width, height float64, bars []bool) {
	module := width / float64(len(bars))
	l.f.SetFillColor(0, 0, 0)
	for i := 0; i < len(bars); {
		n := i
		for n < len(bars) && bars[n] == bars[i] {
			n++
		}
		if bars[i] {
			l.f.Rect(x+float64(i)*module, y, float64(n-i)*module, height, "F")
		}
		i = n
	}
}

// stock holds the measures of label paper, in millimetres.
type stock struct {
	page          fpdf.SizeType
	width, height float64
	columns       int
	pad           float64 // margin of a label, in which some printers cannot print
}

var stocks = map[documents.LabelStock]stock{
	documents.LabelRoll:  {fpdf.SizeType{Wd: 57.15, Ht: 31.75}, 57.15, 31.75, 1, 1.8},
	documents.LabelSheet: {fpdf.SizeType{Wd: 210, Ht: 297}, 70, 37, 3, 4.5},
}

// Font sizes of labels in points, and the height of their barcodes in millimetres.
const (
	labelLetters, leastLetters = 7.5, 5.0
	labelBars                  = 8.0
)

// labels prints labels row by row. A label that does not fit takes several rows; on a roll its page is as tall as the
// label.
func (l *layout) labels() error {
	s := stocks[l.d.Stock]
	pageTop := (s.page.Ht - s.height*math.Floor(s.page.Ht/s.height)) / 2
	x, y, tallest := 0.0, pageTop, 0.0
	for i, label := range l.d.Labels {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		size, need := l.fitLabel(label, s)
		height := s.height * math.Ceil(need/s.height)
		if height > s.page.Ht && s.columns > 1 {
			return fmt.Errorf("%w: Labels[%d]: must fit on a sheet of %g mm height; use fewer or shorter lines", healthlab.Invalid, i, s.page.Ht)
		}
		if i%s.columns == 0 {
			x, y, tallest = 0, y+tallest, 0
		}
		if i == 0 || y+height > s.page.Ht+0.01 {
			x, y, tallest = 0, pageTop, 0
			l.f.AddPageFormat("P", fpdf.SizeType{Wd: s.page.Wd, Ht: max(s.page.Ht, height)})
		}
		l.label(label, size, x, y, s)
		x, tallest = x+s.width, max(tallest, height)
	}
	return l.f.Error()
}

// fitLabel returns the largest font size at which a label fits its stock, or the smallest, and the needed height.
func (l *layout) fitLabel(label documents.Label, s stock) (size, height float64) {
	for size = labelLetters; ; size -= 0.5 {
		lines := len(l.wrap(label.Number, style{size, false}, s.width-2*s.pad))
		for i, line := range label.Lines {
			lines += len(l.wrap(line, style{size, i == 0}, s.width-2*s.pad))
		}
		height = 2*s.pad + labelBars + 0.5 + float64(lines)*style{size, false}.line()
		if height <= s.height || size <= leastLetters {
			return size, height
		}
	}
}

// label prints a label. The barcode with its number and the name come first, because they identify the tube.
func (l *layout) label(label documents.Label, size, x, y float64, s stock) {
	at := y + s.pad
	if bars, wide := l.bars(label.Number, s.width-2); bars != nil {
		l.stripes(x+(s.width-wide)/2, at, wide, labelBars, bars)
		at += labelBars + 0.5
	}
	for i, text := range append([]string{label.Number}, label.Lines...) {
		st := style{size, i == 1}
		for _, line := range l.wrap(text, st, s.width-2*s.pad) {
			l.draw(x+s.pad, at, st, line)
			at += st.line()
		}
	}
}

// Largest size of a signature, in pixels and on paper.
const (
	maxPixels              = 16 << 20
	pictureWidth, pictureY = 60.0, 22.0
)

// picture prints a signature. It re-encodes the picture, so that no foreign bytes enter the file.
func (l *layout) picture(p *people.ImageBlob) {
	img, err := decode(p.Content)
	if err != nil {
		l.lines(margin, style{small, false}, l.wrap("(A signature was given, and is no picture that can be shown.)", style{small, false}, l.inner()))
		return
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		l.f.SetError(err)
		return
	}
	l.pictures++
	name := fmt.Sprintf("picture%d", l.pictures)
	l.f.RegisterImageOptionsReader(name, fpdf.ImageOptions{ImageType: "PNG"}, &b)
	w, h := float64(img.Bounds().Dx()), float64(img.Bounds().Dy())
	scale := min(pictureWidth/w, pictureY/h)
	l.ensureHeight(h*scale + 2)
	y := l.y
	l.later(func() { l.f.ImageOptions(name, margin, y, w*scale, h*scale, false, fpdf.ImageOptions{}, 0, "") })
	l.y += h*scale + 2
}

// decode reads a picture and draws it on white.
func decode(b []byte) (*image.RGBA, error) {
	c, _, err := image.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	if c.Width <= 0 || c.Height <= 0 || c.Width > maxPixels/c.Height {
		return nil, image.ErrFormat
	}
	from, _, err := image.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	out := image.NewRGBA(image.Rect(0, 0, c.Width, c.Height))
	draw.Draw(out, out.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(out, out.Bounds(), from, from.Bounds().Min, draw.Over)
	return out, nil
}
