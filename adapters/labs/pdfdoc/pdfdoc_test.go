package pdfdoc_test

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/pdfdoc"
	"github.com/healthlab-dev/healthlab/adapters/labs/pdftext"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/documents"
)

// The printer and the eyes that most tests share.
var (
	usual = sync.OnceValues(func() (*pdfdoc.Printer, error) { return pdfdoc.New(nil) })
	eyes  = sync.OnceValues(func() (*pdftext.Extractor, error) { return pdftext.New(nil) })
)

func TestMain(m *testing.M) {
	pdftext.Child()
	code := m.Run()
	if x, err := eyes(); err == nil {
		_ = x.Close()
	}
	os.Exit(code)
}

func printer(t testing.TB) *pdfdoc.Printer {
	t.Helper()
	p, err := usual()
	require.NoError(t, err)
	return p
}

// reader reads PDF files with another program's eyes.
type reader struct {
	*pdftext.Extractor
}

func newReader(t testing.TB) reader {
	t.Helper()
	x, err := eyes()
	require.NoError(t, err)
	return reader{x}
}

// text returns the words of each page, in the order in which they stand in the file.
func (r reader) text(t testing.TB, pdf []byte) []string {
	t.Helper()
	var out []string
	require.NoError(t, r.Extract(t.Context(), labreport.File{Type: "application/pdf", Data: pdf}, func(p labreport.Page) error {
		var words []string
		for _, w := range p.Words {
			words = append(words, w.Text)
		}
		out = append(out, strings.Join(words, " "))
		return nil
	}))
	return out
}

// squeezed is text without spaces: where a line ends is not what a document says.
func squeezed(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, norm.NFKC.String(s))
}

// turned is what stands between the end of a page and the text on the next.
var turned = regexp.MustCompile(`Page\d+of\d+(?:\[U\+…\]standsfor[^.]*\.)?Laboratory(?:report|requisition)·.*?,born\d{4}-\d\d-\d\d`)

// says checks that a document has all of the values.
func (r reader) says(t testing.TB, pdf []byte, values ...string) {
	t.Helper()
	all := turned.ReplaceAllString(squeezed(strings.Join(r.text(t, pdf), " ")), "")
	for i, v := range values {
		require.Contains(t, all, squeezed(v), "value %d", i)
	}
}

// look writes pages as pictures into the folder that the environment names, for people.
func (r reader) look(t testing.TB, name string, pdf []byte) {
	t.Helper()
	dir := os.Getenv("HEALTHLABTEST_LOOK")
	if dir == "" {
		return
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+".pdf"), pdf, 0o600))
	for i := range r.text(t, pdf) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.png", name, i+1)), r.picture(t, pdf, i+1, 100), 0o600))
	}
}

var update = flag.Bool("update", false, "write the golden files")

// golden compares the words and the barcodes of a document's pages with the golden file
// of that name.
func (r reader) golden(t testing.TB, name string, pdf []byte) {
	t.Helper()
	r.look(t, name, pdf)
	var got strings.Builder
	for i, page := range r.lines(t, pdf) {
		fmt.Fprintf(&got, "--- page %d\n%s", i+1, strings.ReplaceAll(page, " \n", "\n"))
		for _, number := range scanned(t, r.picture(t, pdf, i+1, 200)) {
			fmt.Fprintf(&got, "barcode: %s\n", number)
		}
	}
	file := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())
}

// lines returns the text of each page as it is seen: words of one height are a line, from
// left to right.
func (r reader) lines(t testing.TB, pdf []byte) []string {
	t.Helper()
	var out []string
	require.NoError(t, r.Extract(t.Context(), labreport.File{Type: "application/pdf", Data: pdf}, func(p labreport.Page) error {
		bottom := func(w labreport.Word) float64 { return w.Box.Y + w.Box.Height }
		slices.SortStableFunc(p.Words, func(a, b labreport.Word) int { return cmp.Compare(bottom(a), bottom(b)) })
		const apart = 0.004 // of the page's height
		var lines [][]labreport.Word
		for _, w := range p.Words {
			if n := len(lines); n > 0 && bottom(w)-bottom(lines[n-1][0]) < apart {
				lines[n-1] = append(lines[n-1], w)
			} else {
				lines = append(lines, []labreport.Word{w})
			}
		}
		var text strings.Builder
		for _, line := range lines {
			slices.SortStableFunc(line, func(a, b labreport.Word) int { return cmp.Compare(a.Box.X, b.Box.X) })
			for _, w := range line {
				text.WriteString(w.Text + " ")
			}
			text.WriteByte('\n')
		}
		out = append(out, text.String())
		return nil
	}))
	return out
}

func (r reader) picture(t testing.TB, pdf []byte, page, dpi int) []byte {
	t.Helper()
	img, err := r.Render(t.Context(), labreport.File{Type: "application/pdf", Data: pdf}, page, dpi)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, img))
	return b.Bytes()
}

// scanned returns what a scanner reads off a page, each barcode once for each time that
// it is there.
func scanned(t testing.TB, picture []byte) []string {
	t.Helper()
	program, err := exec.LookPath("zbarimg")
	if err != nil {
		require.Empty(t, os.Getenv("CI"), "zbarimg is missing (Debian: zbar-tools)")
		t.Skip("zbarimg is missing (Debian: zbar-tools)")
	}
	file := filepath.Join(t.TempDir(), "page.png")
	require.NoError(t, os.WriteFile(file, picture, 0o600))
	out, err := exec.CommandContext(t.Context(), program, "--quiet", "--raw", "--nodbus", "-Sdisable", "-Scode128.enable", file).Output()
	const noBarcode = 4
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == noBarcode {
		return nil
	}
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// scripts are words of several ways to write, each of which stands in the fonts.
var scripts = map[string]string{
	"latin":       "Łódź Ñandú Straße Ďáblice İstanbul Nguyễn",
	"greek":       "Ελληνικά Ἀθῆναι",
	"cyrillic":    "Щербаков Ґалаґан Ђорђе",
	"armenian":    "Հայաստան",
	"georgian":    "საქართველო",
	"hebrew":      "רחוב הרצל 12",
	"arabic":      "شارع الملك 14 دمشق",
	"persian":     "خیابان پاسداران",
	"mixed":       "Hotel שלום 5 Mesa",
	"composed":    "Zoe\u0308 Nun\u0303ez",
	"punctuation": "O'Brien–Smith “No. 1” & Co. <b>5 % of 3 µg ≥ 2 × 10⁶</b> €",
}

func words() []documents.Field {
	var out []documents.Field
	for _, name := range []string{"latin", "greek", "cyrillic", "armenian", "georgian", "hebrew", "arabic", "persian", "mixed", "composed", "punctuation"} {
		out = append(out, documents.Field{Name: name, Value: scripts[name]})
	}
	return out
}

func TestPrint_rendersEveryScriptOfItsFonts(t *testing.T) {
	r := newReader(t)
	d := documents.Document{Kind: documents.RequisitionForm, Title: "Scripts", Number: "A-1", At: noon, Sections: []documents.Section{{Heading: "Words", Fields: words()}}}
	pdf, err := printer(t).Print(t.Context(), d)
	require.NoError(t, err)
	r.look(t, "scripts", pdf)
	all := squeezed(strings.Join(r.text(t, pdf), " "))
	require.NotContains(t, all, "U+")
	for name, value := range scripts {
		for _, word := range strings.Fields(value) {
			require.Contains(t, all, squeezed(word), name)
		}
	}
}

// What no font has is printed by its number, and the page says so.
func TestPrint_characterWithoutAGlyphIsPrintedAsItsCodePoint(t *testing.T) {
	r := newReader(t)
	d := documents.Document{Title: "Letters", Sections: []documents.Section{{Fields: []documents.Field{
		{Name: "Street", Value: "中文 7"}, {Name: "City", Value: "दिल्ली"}, {Name: "Note", Value: "fine 🙂"},
	}}}}
	pdf, err := printer(t).Print(t.Context(), d)
	require.NoError(t, err)
	r.says(t, pdf, "[U+4E2D U+6587] 7", "[U+0926 U+093F U+0932 U+094D U+0932 U+0940]", "fine [U+1F642]", "stands for letters that cannot be shown here")
	r.look(t, "lacking", pdf)

	// A further font has some of them.
	const file = "/usr/share/fonts-droid-fallback/truetype/DroidSansFallback.ttf"
	font, err := os.ReadFile(file)
	if err != nil {
		require.Empty(t, os.Getenv("CI"), "a font is missing (Debian: fonts-droid-fallback)")
		t.Skip("a font is missing (Debian: fonts-droid-fallback)")
	}
	d.Sections[0].Fields = append(d.Sections[0].Fields, documents.Field{Name: "Tokyo", Value: "東京都千代田区 서울특별시 한글"})
	more, err := pdfdoc.New(&pdfdoc.Options{Fonts: [][]byte{font}})
	require.NoError(t, err)
	pdf, err = more.Print(t.Context(), d)
	require.NoError(t, err)
	r.says(t, pdf, "中文 7", "東京都千代田区", "서울특별시", "fine [U+1F642]")
	r.look(t, "further", pdf)
	require.NotContains(t, string(pdf), file)
}

func TestNew_refusesInvalidFonts(t *testing.T) {
	for name, file := range map[string][]byte{"no font": []byte("hello"), "empty": nil} {
		_, err := pdfdoc.New(&pdfdoc.Options{Fonts: [][]byte{file}})
		require.ErrorIs(t, err, healthlab.Invalid, name)
	}
}

func long() documents.Document {
	d := documents.Document{
		Kind: documents.ResultsReport, Title: "Laboratory report", Number: "SBX0123456789AB", Subject: "Ana Roe, born 1984-05-09",
		Remarks: []string{"PARTIAL REPORT: more results are to come"}, At: noon,
	}
	t := &documents.Table{Columns: []string{"Test", "Result", "Flag", "Unit", "Reference range"}, Widths: []int{10, 7, 5, 4, 6}}
	for i := range 120 {
		r := documents.Row{Cells: []string{fmt.Sprintf("Marker number %d", i), fmt.Sprintf("%d.%d", i, i), "", "mg/dL", "1-5"}}
		switch i % 10 {
		case 3:
			r.Strong, r.Cells[2], r.Remark = true, "High (H)", strings.Repeat("A remark that goes on for a while. ", 6)
		case 5:
			r = documents.Row{Cells: []string{fmt.Sprintf("Panel %d", i), "", "", "", ""}, Group: true}
		}
		t.Rows = append(t.Rows, r)
	}
	d.Sections = []documents.Section{
		{Heading: "Patient", Fields: append(words(), documents.Field{Name: "Note", Value: strings.Repeat("long text of several lines ", 20)})},
		{Heading: "Results", Table: t},
		{Heading: "Steps", Steps: []string{"Wash your hands.", strings.Repeat("Wait until it is dry. ", 30)}, Choices: []string{"Option 1", strings.Repeat("Option 2 ", 40)}, Signs: []string{"Signature", "Date"}},
	}
	return d
}

// Wherever a page ends, a heading of a section, of columns or of a group has a row below it on
// its page.
func TestPrint_keepsAHeadingWithItsFirstRow(t *testing.T) {
	r, p := newReader(t), printer(t)
	tall := strings.Repeat("A remark of several lines about the first row. ", 14)
	table := func(group bool, row documents.Row) *documents.Table {
		out := &documents.Table{Columns: []string{"Columnheading", "Other"}, Widths: []int{1, 1}}
		if group {
			out.Rows = []documents.Row{{Cells: []string{"Groupheading", ""}, Group: true}, {Cells: []string{"Subgroupheading", ""}, Group: true}}
		}
		out.Rows = append(out.Rows, row, documents.Row{Cells: []string{"Secondrow", ""}})
		return out
	}
	sections := map[string]documents.Section{
		"row":           {Table: table(false, documents.Row{Cells: []string{"Firstrow", ""}})},
		"tall row":      {Table: table(false, documents.Row{Cells: []string{"Firstrow", strings.Repeat("long value ", 20)}, Remark: tall})},
		"group":         {Table: table(true, documents.Row{Cells: []string{"Firstrow", ""}})},
		"tall group":    {Table: table(true, documents.Row{Cells: []string{"Firstrow", ""}, Remark: tall})},
		"endless row":   {Table: table(true, documents.Row{Cells: []string{"Firstrow", strings.Repeat("very long value ", 500)}})},
		"fields":        {Fields: []documents.Field{{Name: "Firstrow", Value: strings.Repeat("long value ", 40)}, {Name: "Other", Value: "x"}}},
		"paragraph":     {Paragraphs: []string{"Firstrow " + strings.Repeat("long text ", 60)}},
		"step":          {Steps: []string{"Firstrow", "Other"}},
		"line to write": {Signs: []string{"Firstrow"}},
	}
	headings := []string{"Sectionheading", "Columnheading", "Groupheading", "Subgroupheading"}
	for name, s := range sections {
		s.Heading = "Sectionheading"
		const fewest = 33
		widest := prove.Count(17, 59)
		for _, n := range append([]int{0}, steps(fewest, fewest+widest, prove.Sequential(17, 17, 59))...) {
			before := documents.Section{Paragraphs: slices.Repeat([]string{"Line before."}, n)}
			d := documents.Document{Kind: documents.ResultsReport, Title: "Laboratory report", Number: "SBX0123456789AB", At: noon, Sections: []documents.Section{before, s}}
			pdf, err := p.Print(t.Context(), d)
			require.NoError(t, err)
			for i, page := range r.text(t, pdf) {
				for _, heading := range headings {
					if at := strings.LastIndex(page, " "+heading+" "); at >= 0 && (heading != "Columnheading" || i == 0) {
						require.Contains(t, page[at:], "Firstrow", "%s: %s, with %d lines before it", name, heading, len(before.Paragraphs))
					}
				}
			}
		}
	}
}

// steps returns n numbers from from to below to, at even distances.
func steps(from, to, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = from + i*(to-from)/n
	}
	return out
}

func TestPages_eachRepeatsTitlePatientAndPageNumber(t *testing.T) {
	r, p := newReader(t), printer(t)
	for _, paper := range []orders.Paper{orders.Letter, orders.A4} {
		d := long()
		d.Paper = paper
		pdf, err := p.Print(t.Context(), d)
		require.NoError(t, err)
		r.look(t, "long-"+string(paper), pdf)
		pages := r.text(t, pdf)
		require.Greater(t, len(pages), 2)
		for i, page := range pages {
			require.Contains(t, page, fmt.Sprintf("Page %d of %d", i+1, len(pages)))
			require.Contains(t, squeezed(page), squeezed("Laboratory report"))
			require.Contains(t, page, "SBX0123456789AB")
			if i > 0 {
				require.Contains(t, squeezed(page), squeezed("Ana Roe, born 1984-05-09"))
			}
		}
		all := squeezed(strings.Join(pages, " "))
		for i := range 120 {
			if i%10 != 5 {
				require.Contains(t, all, squeezed(fmt.Sprintf("Marker number %d %d.%d", i, i, i)))
			}
		}
		require.Equal(t, []string{"SBX0123456789AB"}, scanned(t, r.picture(t, pdf, 1, 200)))
		other, err := pdfdoc.New(nil)
		require.NoError(t, err)
		again, err := other.Print(t.Context(), d)
		require.NoError(t, err)
		require.True(t, bytes.Equal(pdf, again), "the same document, other bytes")
	}
}

func TestPrint_labelsFitTheirStock(t *testing.T) {
	r := newReader(t)
	for stock, pages := range map[documents.LabelStock]int{documents.LabelRoll: 30, documents.LabelSheet: 2} {
		d := documents.Document{Kind: documents.SpecimenLabels, Title: "Specimen labels", At: noon, Stock: stock}
		for i := range 30 {
			lines := []string{"Ana Roe", "Born 1984-05-09  Female", "Collected 2026-03-02 12:00 UTC", "Basics", "Account 1234567890"}
			switch i {
			case 2:
				lines[0] = strings.Repeat("Wolfeschlegelsteinhausenbergerdorff", 3)
			case 7:
				lines[3] = strings.Repeat("Glucose + Urea ", 40) // the room of several
			}
			d.Labels = append(d.Labels, documents.Label{Lines: lines, Number: fmt.Sprintf("SBX4F00%05d", i)})
		}
		pdf, err := printer(t).Print(t.Context(), d)
		require.NoError(t, err)
		r.look(t, "labels-"+string(stock), pdf)
		r.says(t, pdf, strings.Repeat("Wolfeschlegelsteinhausenbergerdorff", 3), strings.Repeat("Glucose + Urea ", 40), "SBX4F0000029")
		found := map[string]int{}
		for i := range r.text(t, pdf) {
			for _, number := range scanned(t, r.picture(t, pdf, i+1, 300)) {
				found[number]++
			}
		}
		require.Len(t, found, 30, stock)
		require.Len(t, r.text(t, pdf), pages, stock)
	}

	// The number comes first, and a label that no sheet has room for is Invalid.
	d := documents.Document{Stock: documents.LabelSheet, Labels: []documents.Label{{Lines: []string{"Ana Roe"}, Number: "SBX4F0000001"}}}
	pdf, err := printer(t).Print(t.Context(), d)
	require.NoError(t, err)
	text := strings.Join(r.text(t, pdf), " ")
	require.Less(t, strings.Index(text, "SBX4F0000001"), strings.Index(text, "Ana"))
	d.Labels = append(d.Labels, documents.Label{Lines: []string{strings.Repeat("Glucose + Urea ", 600)}, Number: "SBX4F0000002"})
	_, err = printer(t).Print(t.Context(), d)
	require.ErrorIs(t, err, healthlab.Invalid)
	d.Stock = ""
	_, err = printer(t).Print(t.Context(), d)
	require.ErrorIs(t, err, healthlab.Invalid)
}

// BenchmarkPrint measures how long a document of several pages takes.
func BenchmarkPrint(b *testing.B) {
	p := printer(b)
	d := long()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Print(b.Context(), d); err != nil {
			b.Fatal(err)
		}
	}
}
