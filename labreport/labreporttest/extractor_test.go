package labreporttest_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/labreporttest"
)

// plain reads files that begin with "words\n" and have pages between form feeds, a line of
// words each. "locked\n" begins a file with a password. Its fields break it.
type plain struct {
	edit        func(*labreport.Page)
	pages       int // added to the number of pages
	backwards   bool
	wrapStop    bool
	goOn        bool // after page failed
	scribble    bool // changes the file
	anyType     bool
	emptyIsFine bool
	wrongKind   bool
	noPassword  bool
	deaf        bool // to the context
	mu          sync.Mutex
	busy        bool // refuses a call while another runs
	running     int
}

func (e *plain) open(ctx context.Context, f labreport.File) ([]string, error) {
	if err := ctx.Err(); err != nil && !e.deaf {
		return nil, err
	}
	kind := error(healthlab.Invalid)
	if e.wrongKind {
		kind = healthlab.Unavailable
	}
	if f.Type != "application/pdf" && !e.anyType {
		return nil, fmt.Errorf("%w: the type is not read", healthlab.Invalid)
	}
	if len(f.Data) == 0 && e.emptyIsFine {
		return nil, nil
	}
	if bytes.HasPrefix(f.Data, []byte("locked\n")) {
		if e.noPassword {
			return nil, healthlab.Invalid
		}
		return nil, fmt.Errorf("%w: %w", healthlab.Invalid, labreport.ErrPassword)
	}
	text, ok := strings.CutPrefix(string(f.Data), "words\n")
	if !ok {
		return nil, fmt.Errorf("%w: not a file of words", kind)
	}
	return strings.Split(text, "\f"), nil
}

func (e *plain) Check(ctx context.Context, f labreport.File) (int, error) {
	pages, err := e.open(ctx, f)
	return len(pages) + e.pages, err
}

func (e *plain) Extract(ctx context.Context, f labreport.File, page func(labreport.Page) error) error {
	pages, err := e.open(ctx, f)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.running++
	crowd := e.running > 1
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.running--
		e.mu.Unlock()
	}()
	if e.busy {
		if crowd {
			return healthlab.Unavailable
		}
		for range 1 << 22 { // long enough for another call to begin
			e.mu.Lock()
			crowd = e.running > 1
			e.mu.Unlock()
			if crowd {
				break
			}
		}
	}
	var failed error
	for i := range pages {
		if e.backwards {
			i = len(pages) - 1 - i
		}
		p := labreport.Page{Number: i + 1, Width: 600, Height: 800}
		for j, w := range strings.Fields(pages[i]) {
			p.Words = append(p.Words, labreport.Word{Text: w, Confidence: 1, Box: labreport.Box{X: 0.1 * float64(j%8), Y: 0.5, Width: 0.05, Height: 0.02}})
		}
		e.edit(&p)
		switch err := page(p); {
		case err != nil && e.goOn:
			failed = err
		case err != nil && e.wrapStop:
			return fmt.Errorf("read words: %w", err)
		case err != nil:
			return err
		}
	}
	if e.scribble {
		f.Data[0] = 'W'
	}
	return failed
}

// extractors returns the suite over extractors that are broken in one way.
func extractors(broken func(*plain)) func(*testing.T) {
	return func(t *testing.T) {
		labreporttest.RunTextExtractor(t, func(testing.TB) labreporttest.ExtractorHarness {
			e := &plain{edit: func(*labreport.Page) {}}
			broken(e)
			return labreporttest.ExtractorHarness{
				Extractor: e,
				File:      labreport.File{Type: "application/pdf", Data: []byte("words\nGlucose 112 mg/dL\fSodium 139 mmol/L")},
				Words:     [][]string{{"Glucose", "112", "mg/dL"}, {"Sodium", "139"}},
				Protected: labreport.File{Type: "application/pdf", Data: []byte("locked\nGlucose")},
			}
		})
	}
}

func TestExtractor_unbrokenPassesTheSuite(t *testing.T) { extractors(func(*plain) {})(t) }

func pages(edit func(*labreport.Page)) func(*testing.T) {
	return extractors(func(e *plain) { e.edit = edit })
}

func TestBrokenExtractors_eachFailsTheSuite(t *testing.T) {
	conformance.RunBroken(t, []conformance.Broken{
		{Name: "counts a page too many", Subtest: "Check", Suite: extractors(func(e *plain) { e.pages = 1 })},
		{Name: "reads the last page first", Subtest: "Pages", Suite: extractors(func(e *plain) { e.backwards = true })},
		{Name: "counts pages from 0", Subtest: "Pages", Suite: pages(func(p *labreport.Page) { p.Number-- })},
		{Name: "has no page size", Subtest: "Pages", Suite: pages(func(p *labreport.Page) { p.Width = 0 })},
		{Name: "loses words", Subtest: "Words", Suite: pages(func(p *labreport.Page) { p.Words = p.Words[:1] })},
		{Name: "joins words", Subtest: "WordsAreWhole", Suite: pages(func(p *labreport.Page) { p.Words[0].Text = "Glucose 112" })},
		{Name: "has words without text", Subtest: "WordsAreWhole", Suite: pages(func(p *labreport.Page) { p.Words[0].Text = "" })},
		{Name: "has a confidence in percent", Subtest: "WordsAreWhole", Suite: pages(func(p *labreport.Page) { p.Words[0].Confidence = 96 })},
		{Name: "has no confidence", Subtest: "WordsAreWhole", Suite: pages(func(p *labreport.Page) { p.Words[0].Confidence = 0 })},
		{Name: "has boxes in pixels", Subtest: "Boxes", Suite: pages(func(p *labreport.Page) { p.Words[0].Box = labreport.Box{X: 60, Y: 400, Width: 30, Height: 16} })},
		{Name: "has boxes without a size", Subtest: "Boxes", Suite: pages(func(p *labreport.Page) { p.Words[0].Box.Width = 0 })},
		{Name: "wraps an error of its caller", Subtest: "CallerStops", Suite: extractors(func(e *plain) { e.wrapStop = true })},
		{Name: "reads on after an error of its caller", Subtest: "CallerStops", Suite: extractors(func(e *plain) { e.goOn = true })},
		{Name: "writes into the file", Subtest: "FileUnchanged", Suite: extractors(func(e *plain) { e.scribble = true })},
		{Name: "finds no pages in an empty file", Subtest: "Empty", Suite: extractors(func(e *plain) { e.emptyIsFine = true })},
		{Name: "ignores the type", Subtest: "OtherType", Suite: extractors(func(e *plain) { e.anyType = true })},
		{Name: "reports a bad file as a failure that may pass", Subtest: "NotTheType", Suite: extractors(func(e *plain) { e.wrongKind = true })},
		{Name: "does not say that there is a password", Subtest: "Password", Suite: extractors(func(e *plain) { e.noPassword = true })},
		{Name: "reports damage without a kind", Subtest: "Damaged", Suite: extractors(func(e *plain) { e.wrongKind = true })},
		{Name: "reads after its context ended", Subtest: "ContextEnded", Suite: extractors(func(e *plain) { e.deaf = true })},
		{Name: "reads one file at a time", Subtest: "Concurrent", Suite: extractors(func(e *plain) { e.busy = true })},
	})
}
