package pdftext_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/pdftext"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/labreport"
)

func TestMain(m *testing.M) {
	pdftext.Child()
	os.Exit(m.Run())
}

func newExtractor(t testing.TB, o *pdftext.Options) *pdftext.Extractor {
	t.Helper()
	x, err := pdftext.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	return x
}

func file(data []byte) labreport.File { return labreport.File{Type: "application/pdf", Data: data} }

func pagesOf(t testing.TB, x *pdftext.Extractor, data []byte) []labreport.Page {
	t.Helper()
	var pages []labreport.Page
	require.NoError(t, x.Extract(t.Context(), file(data), func(p labreport.Page) error {
		pages = append(pages, p)
		return nil
	}))
	return pages
}

// A report is read the same plain, compressed and turned.
func TestExtract_readsPlainCompressedAndTurnedReports(t *testing.T) {
	x := newExtractor(t, nil)
	for name, data := range map[string][]byte{"plain": reportPDF(false, ""), "compressed": reportPDF(true, ""), "turned": reportPDF(true, "/Rotate 180"), "on its side": reportPDF(true, "/Rotate 90"), "other side": reportPDF(false, "/Rotate 270")} {
		t.Run(name, func(t *testing.T) {
			n, err := x.Check(t.Context(), file(data))
			require.NoError(t, err)
			require.Equal(t, 1, n)
			pages := pagesOf(t, x, data)
			require.Len(t, pages, 1)
			require.False(t, pages[0].Image)
			d, reason := labreport.NewReader(nil).Read(pages)
			require.Empty(t, reason)
			require.Len(t, d.Results, 6)
			glucose := d.Results[0]
			require.Equal(t, "Glucose", glucose.TestName)
			require.Equal(t, "112", glucose.Value)
			require.Equal(t, "2345-7", glucose.LoincMatches[0].LoincCode)
			box := glucose.Evidence["value"].Box
			// The receipt points at the page as it is shown.
			x, y := 220.0/612, (792.0-660-10)/792
			switch name {
			case "turned":
				x, y = 1-x-box.Width, 1-y-box.Height
			case "on its side":
				x, y = 1-y-box.Width, x
			case "other side":
				x, y = y, 1-x-box.Height
			}
			require.InDelta(t, x, box.X, 0.012)
			require.InDelta(t, y, box.Y, 0.012)
			require.Equal(t, "Amara", *d.Metadata.PatientFirstName)
		})
	}
}

func TestRenderPage_returnsAtMostTheAskedPixels(t *testing.T) {
	x := newExtractor(t, nil)
	f := file(reportPDF(true, ""))
	for _, pixels := range []int{10_000, 500_000} {
		img, err := x.RenderPage(t.Context(), f, 1, pixels)
		require.NoError(t, err)
		b := img.Bounds()
		require.LessOrEqual(t, b.Dx()*b.Dy(), pixels)
		require.Greater(t, b.Dx()*b.Dy(), pixels*9/10)
		require.InDelta(t, 792.0/612, float64(b.Dy())/float64(b.Dx()), 0.02)
	}
	_, err := x.RenderPage(t.Context(), f, 2, 10_000)
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = x.RenderPage(t.Context(), file([]byte("%PDF-1.4")), 1, 10_000)
	require.ErrorIs(t, err, healthlab.Invalid)
}

// A file may place each glyph by itself, in any order, and draw bold print twice.
func TestExtract_joinsGlyphsPlacedInAnyOrder(t *testing.T) {
	x := newExtractor(t, nil)
	want := wordTexts(pagesOf(t, x, reportPDF(false, ""))[0])
	r := rand.New(rand.NewPCG(7, 7))
	for name, change := range map[string]func(glyphs []set) []set{
		"in order":  func(g []set) []set { return g },
		"backwards": func(g []set) []set { slices.Reverse(g); return g },
		"shuffled":  func(g []set) []set { r.Shuffle(len(g), func(i, k int) { g[i], g[k] = g[k], g[i] }); return g },
		"by column": func(g []set) []set {
			slices.SortStableFunc(g, func(a, b set) int { return cmp.Compare(a.x, b.x) })
			return g
		},
		"drawn twice": func(g []set) []set {
			for _, c := range slices.Clone(g) {
				g = append(g, set{c.x + 0.3, c.y, c.text})
			}
			return g
		},
		"without spaces": func(g []set) []set { return slices.DeleteFunc(g, func(c set) bool { return c.text == " " }) },
	} {
		t.Run(name, func(t *testing.T) {
			page := pagesOf(t, x, writePDF("", false, change(glyphsOf(reportLines()))))[0]
			require.ElementsMatch(t, want, wordTexts(page))
			d, reason := labreport.NewReader(nil).Read([]labreport.Page{page})
			require.Empty(t, reason)
			require.Len(t, d.Results, 6)
			require.Equal(t, "112", d.Results[0].Value)
		})
	}
}

func wordTexts(p labreport.Page) (out []string) {
	for _, w := range p.Words {
		out = append(out, w.Text)
	}
	return out
}

// glyphsOf places each glyph of the lines by itself.
func glyphsOf(lines []set) (out []set) {
	for _, l := range lines {
		x := l.x
		for _, r := range l.text {
			out = append(out, set{x, l.y, string(r)})
			x += glyphWidth(r)
		}
	}
	return out
}

func TestExtract_pageWithoutTextGoesToOCR(t *testing.T) {
	data := writePDF("", false, []set{{50, 700, "stamp"}})
	x := newExtractor(t, &pdftext.Options{OCR: func(_ context.Context, img image.Image) (labreport.Page, error) {
		require.InDelta(t, 2550, img.Bounds().Dx(), 2)
		return labreport.Page{Number: 1, Width: 1, Height: 1, Image: true, Words: []labreport.Word{{Text: "read"}, {Text: "by"}, {Text: "eye"}}}, nil
	}})
	p := pagesOf(t, x, data)[0]
	require.True(t, p.Image)
	require.Len(t, p.Words, 3)

	blind := newExtractor(t, nil)
	err := blind.Extract(t.Context(), file(writePDF("", false, nil)), func(labreport.Page) error { return nil })
	require.ErrorIs(t, err, healthlab.Unimplemented)
}

// A page that shows more than its words is not read, without OCR and with one that sees
// nothing. A blank page and one of a few words are read.
func TestExtract_pageWithGraphicsOutsideItsTextIsMarkedAsNotRead(t *testing.T) {
	data := writePDF("", false, reportLines(), nil, []set{{50, 700, "End of report"}}, []set{{50, 100, ""}}, []set{{50, 750, "Page 5 of 5"}, {50, 100, ""}}, append(reportLines(), set{50, 100, ""}))
	for name, c := range map[string]struct {
		o    *pdftext.Options
		want []bool
	}{
		"without OCR": {nil, []bool{false, false, false, true, true, false}},
		"OCR sees nothing": {&pdftext.Options{OCR: func(context.Context, image.Image) (labreport.Page, error) { return labreport.Page{Image: true}, nil }},
			[]bool{false, false, false, true, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []bool
			for _, p := range pagesOf(t, newExtractor(t, c.o), data) {
				got = append(got, p.Unread)
			}
			require.Equal(t, c.want, got)
		})
	}
}

// While a page of one file waits for OCR, the child process reads other files. If that process
// has ended meanwhile, another one reads the rest of the file.
func TestExtract_fileWaitingForOCRFreesItsProcess(t *testing.T) {
	waits, goOn := make(chan struct{}), make(chan struct{})
	x := newExtractor(t, &pdftext.Options{OCR: func(_ context.Context, _ image.Image) (labreport.Page, error) {
		waits <- struct{}{}
		<-goOn
		return labreport.Page{Number: 1, Width: 1, Height: 1, Image: true, Words: []labreport.Word{{Text: "seen"}}}, nil
	}})
	var pages []labreport.Page
	done := make(chan error)
	go func() {
		done <- x.Extract(context.Background(), file(writePDF("", false, nil, nil, nil)), func(p labreport.Page) error {
			pages = append(pages, p)
			return nil
		})
	}()
	<-waits
	n, err := x.Check(t.Context(), file(reportPDF(true, "")))
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Len(t, pagesOf(t, x, reportPDF(false, "")), 1)
	goOn <- struct{}{}
	<-waits
	require.NoError(t, x.Close()) // ends the child
	goOn <- struct{}{}
	<-waits
	_, err = x.Check(t.Context(), file([]byte("%PDF-1.7\n")))
	require.ErrorIs(t, err, healthlab.Invalid)
	goOn <- struct{}{}
	require.NoError(t, <-done)
	require.Len(t, pages, 3)
	for i, p := range pages {
		require.Equal(t, i+1, p.Number)
	}
}

// Many files by turns in two children: each gets its own words.
func TestExtract_concurrentFilesDoNotMixTheirText(t *testing.T) {
	x := newExtractor(t, &pdftext.Options{Workers: 2, OCR: func(context.Context, image.Image) (labreport.Page, error) {
		return labreport.Page{}, nil
	}})
	var all sync.WaitGroup
	for i := range 6 {
		name := strings.Repeat("abcdef"[i:i+1], 8)
		lines := []set{{50, 700, name}}
		for k := range 30 {
			lines = append(lines, set{50, 650 - 15*float64(k), "word"})
		}
		data := writePDF("", i%2 == 0, lines, lines, lines)
		all.Go(func() {
			pages := 0
			err := x.Extract(context.Background(), file(data), func(p labreport.Page) error {
				pages++
				if len(p.Words) != 31 || p.Words[0].Text != name {
					return errors.New("words of another file")
				}
				return nil
			})
			if err != nil || pages != 3 {
				t.Error(err, pages)
			}
		})
	}
	all.Wait()
}

func TestExtract_returnsTheCallersError(t *testing.T) {
	x := newExtractor(t, nil)
	stop := errors.New("enough")
	require.ErrorIs(t, x.Extract(t.Context(), file(reportPDF(true, "")), func(labreport.Page) error { return stop }), stop)
	require.NoError(t, x.Extract(t.Context(), file(reportPDF(true, "")), func(labreport.Page) error { return nil }))
}

// hostile are files that were made to harm.
var hostile = sync.OnceValue(func() map[string][]byte {
	page := func(b *book, media string, content int) []byte {
		p := b.add(fmt.Sprintf("<< /Type /Page /Parent %d 0 R /MediaBox %s /Contents %d 0 R >>", len(b.objects)+2, media, content))
		b.add(fmt.Sprintf("<< /Type /Pages /Count 1 /Kids [%d 0 R] >>", p))
		return b.bytes(b.add(fmt.Sprintf("<< /Type /Catalog /Pages %d 0 R >>", p+1)))
	}
	out := map[string][]byte{
		"empty":       {},
		"not a pdf":   []byte("hello"),
		"header only": []byte("%PDF-1.7\n"),
		"truncated":   reportPDF(true, "")[:700],
		"no pages":    func() []byte { b := &book{}; return b.bytes(b.add("<< /Type /Catalog >>")) }(),
		"zero of them": func() []byte {
			b := &book{}
			b.add("<< /Type /Pages /Count 0 /Kids [] >>")
			return b.bytes(b.add("<< /Type /Catalog /Pages 1 0 R >>"))
		}(),
		"400 pages": writePDF("", false, make([][]set, 400)...),
		"a million": func() []byte {
			b := &book{}
			b.add("<< /Type /Pages /Count 1000000 /Kids [1 0 R] >>")
			return b.bytes(b.add("<< /Type /Catalog /Pages 1 0 R >>"))
		}(),
		"page loop": func() []byte {
			b := &book{}
			b.add("<< /Type /Pages /Count 2 /Kids [2 0 R] >>")
			b.add("<< /Type /Pages /Count 2 /Parent 1 0 R /Kids [1 0 R 2 0 R] >>")
			return b.bytes(b.add("<< /Type /Catalog /Pages 1 0 R >>"))
		}(),
		"encrypted": func() []byte {
			b := &book{extra: "/Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O (01234567890123456789012345678901) /U (01234567890123456789012345678901) >> /ID [(a) (b)]"}
			c := b.stream("", nil)
			return page(b, "[0 0 612 792]", c)
		}(),
		"bomb": func() []byte {
			b := &book{}
			c := b.stream("/Filter /FlateDecode", zeros(68<<20))
			return page(b, "[0 0 612 792]", c)
		}(),
		"bomb in bomb": func() []byte {
			b := &book{}
			c := b.stream("/Filter [/FlateDecode /FlateDecode]", deflate(zeros(68<<20)))
			return page(b, "[0 0 612 792]", c)
		}(),
		"picture bomb": func() []byte {
			b := &book{}
			b.stream("/Type /XObject /Subtype /Image /Width 30000 /Height 30000 /BitsPerComponent 8 /ColorSpace /DeviceRGB /Filter /FlateDecode", zeros(68<<20))
			c := b.stream("", nil)
			return page(b, "[0 0 612 792]", c)
		}(),
		"vast page": func() []byte {
			b := &book{}
			c := b.stream("", []byte("0 0 m 1 1 l S"))
			return page(b, "[0 0 100000000 100000000]", c)
		}(),
		"no area": func() []byte { b := &book{}; c := b.stream("", nil); return page(b, "[0 0 0 0]", c) }(),
		"endless paths": func() []byte {
			b := &book{}
			c := b.stream("/Filter /FlateDecode", deflate([]byte(strings.Repeat("0 0 m 612 792 l S ", 900_000))))
			return page(b, "[0 0 612 792]", c)
		}(),
		"self reference": func() []byte {
			b := &book{}
			form := b.stream("/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Resources << /XObject << /X 1 0 R >> >>", []byte("/X Do /X Do"))
			c := b.stream("", []byte("/X Do"))
			p := b.add(fmt.Sprintf("<< /Type /Page /Parent 4 0 R /MediaBox [0 0 612 792] /Resources << /XObject << /X %d 0 R >> >> /Contents %d 0 R >>", form, c))
			b.add(fmt.Sprintf("<< /Type /Pages /Count 1 /Kids [%d 0 R] >>", p))
			return b.bytes(b.add("<< /Type /Catalog /Pages 4 0 R >>"))
		}(),
		"deep arrays": []byte("%PDF-1.4\n1 0 obj\n" + strings.Repeat("[", 200_000) + "\nendobj\ntrailer << /Root 1 0 R >>"),
	}
	return out
})

// mutate damages a good file: some bytes, a piece cut out, a piece twice.
func mutate(r *rand.Rand, good []byte) []byte {
	data := append([]byte{}, good...)
	for range 1 + r.IntN(40) {
		switch at := r.IntN(len(data)); r.IntN(5) {
		case 0:
			data[at] = byte(r.IntN(256))
		case 1:
			data[at] ^= 1 << r.IntN(8)
		case 2:
			if n := min(r.IntN(60)+1, len(data)-at); len(data)-n > 20 {
				data = append(data[:at], data[at+n:]...)
			}
		case 3:
			n := min(r.IntN(60)+1, len(data)-at)
			data = append(data[:at], append(append([]byte{}, data[at:at+n]...), data[at:]...)...)
		case 4:
			number := []string{"99999999", "-1", "0", "2147483648", "1e9"}[r.IntN(5)]
			for k := at; k < min(at+200, len(data)); k++ {
				if data[k] >= '0' && data[k] <= '9' {
					data = append(data[:k], append([]byte(number), data[k+1:]...)...)
					break
				}
			}
		}
	}
	return data
}

// Files from strangers end in words, a refusal or a failure, in time and within the
// memory that was granted; and the next good file is read as if nothing was.
func TestExtract_hostileFilesStayWithinTimeAndMemoryLimits(t *testing.T) {
	x := newExtractor(t, &pdftext.Options{PageTimeout: 12 * time.Second,
		OCR: func(context.Context, image.Image) (labreport.Page, error) {
			return labreport.Page{Width: 1, Height: 1, Image: true}, nil
		}})
	reader := labreport.NewReader(nil)
	var peak atomic.Int64
	stop := watchMemory(&peak)
	defer stop()
	try := func(t *testing.T, data []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		defer cancel()
		var pages []labreport.Page
		err := x.Extract(ctx, file(data), func(p labreport.Page) error {
			pages = append(pages, p)
			return nil
		})
		require.NoError(t, ctx.Err(), "too slow")
		if err != nil {
			var rule *healthlab.RuleError
			require.True(t, errors.Is(err, healthlab.Invalid) || errors.Is(err, healthlab.Exhausted) || errors.Is(err, healthlab.Unimplemented) || errors.As(err, &rule), "%v", err)
			return
		}
		reader.Read(pages)
	}
	bad := hostile()
	for name, data := range bad {
		t.Run(name, func(t *testing.T) { try(t, data) })
	}
	r := rand.New(rand.NewPCG(4, 2))
	good := [][]byte{reportPDF(false, ""), reportPDF(true, ""), writePDF("", true, nil, nil, []set{{10, 10, "x"}})}
	for i := range prove.Count(40, 500) - len(bad) {
		try(t, mutate(r, good[i%len(good)]))
	}
	pages := pagesOf(t, x, reportPDF(true, ""))
	d, reason := reader.Read(pages)
	require.Empty(t, reason)
	require.Len(t, d.Results, 6)
	t.Logf("most memory of a child: %d MiB", peak.Load()>>20)
	if !prove.Race {
		require.Less(t, peak.Load(), int64(480<<20))
	}
}

func TestCheck_refusesBombsAndEncryptedFiles(t *testing.T) {
	x := newExtractor(t, nil)
	all := hostile()
	for _, name := range []string{"bomb", "bomb in bomb", "picture bomb"} {
		_, err := x.Check(t.Context(), file(all[name]))
		require.ErrorIs(t, err, healthlab.Exhausted, name)
	}
	n, err := x.Check(t.Context(), file(all["400 pages"]))
	require.NoError(t, err)
	require.Equal(t, 400, n)
	var rule *healthlab.RuleError
	require.ErrorAs(t, x.Extract(t.Context(), file(all["400 pages"]), func(labreport.Page) error { return nil }), &rule)
	require.Equal(t, labreport.RuleTooManyPages, rule.Type)
	_, err = x.Check(t.Context(), file(all["encrypted"]))
	require.ErrorIs(t, err, healthlab.Invalid)
	require.ErrorIs(t, err, labreport.ErrPassword)
}

// A file that is nothing but beginnings of parts is looked at no longer than another one
// of its size.
func TestCheck_takesLinearTimeOnHostileFiles(t *testing.T) {
	x := newExtractor(t, nil)
	size := labreport.MaxFileBytes * prove.Count(1, 16) / 16
	stored := func(inner string) string { // as a piece of a zlib stream that is not compressed
		n := uint16(len(inner))
		return "x\x01\x00" + string([]byte{byte(n), byte(n >> 8), byte(^n), byte(^n >> 8)}) + inner
	}
	nested := ""
	for range 1500 {
		nested = " obj/Fl stream\n" + stored(nested)
	}
	for name, text := range map[string]string{
		"without an end":   strings.Repeat(" obj/Fl stream x", size/17),
		"with a header":    strings.Repeat(" obj/Fl stream\nx\x9c", size/18),
		"of pictures":      strings.Repeat(" obj/Subtype/Image/Fl stream\nx\x9c", size/34),
		"of nothing":       strings.Repeat("stream/Flx", size/10),
		"in each other":    strings.Repeat(nested, size/len(nested)),
		"that say nothing": strings.Repeat(" obj/Fl stream\nx\x01"+strings.Repeat("\x00\x00\x00\xff\xff", 200), size/1100),
	} {
		_, err := x.Check(t.Context(), file([]byte("%PDF-1.4\n"+text)))
		require.True(t, errors.Is(err, healthlab.Invalid) || errors.Is(err, healthlab.Exhausted), "%s: %v", name, err)
	}
	// A caller whose context has ended does not wait.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := x.Check(ctx, file([]byte("%PDF-1.4\n"+strings.Repeat(" obj/Fl stream x", 1000))))
	require.ErrorIs(t, err, context.Canceled)
}

func TestCheck_stopsWithItsContext(t *testing.T) {
	x := newExtractor(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := x.Check(ctx, file(reportPDF(false, "")))
	require.ErrorIs(t, err, context.Canceled)
}

// A page of text, with the child warm.
func BenchmarkTextPage(b *testing.B) {
	x := newExtractor(b, nil)
	reader := labreport.NewReader(nil)
	data := reportPDF(true, "")
	pagesOf(b, x, data)
	for b.Loop() {
		reader.Read(pagesOf(b, x, data))
	}
}
