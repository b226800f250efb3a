package labreporttest

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport"
)

// ExtractorHarness is an extractor and a file that it reads.
type ExtractorHarness struct {
	Extractor labreport.TextExtractor
	// File is a file of a type that the extractor reads.
	File labreport.File
	// Words are some words of each page of File, in any order.
	Words [][]string
	// Protected is a file that requires a password. Its Data is nil if files of the type have no passwords.
	Protected labreport.File
}

// firstRead is the result of reading the file of a harness.
type firstRead struct {
	ExtractorHarness
	before []byte
	pages  []labreport.Page
}

// errStop is returned by the callback of Extract in the tests.
var errStop = errors.New("stop")

// read returns the pages of a file.
func read(ctx context.Context, e labreport.TextExtractor, f labreport.File) ([]labreport.Page, error) {
	var out []labreport.Page
	err := e.Extract(ctx, f, func(p labreport.Page) error {
		out = append(out, p)
		return nil
	})
	return out, err
}

// texts returns the texts of a page's words.
func texts(p labreport.Page) []string {
	out := make([]string, len(p.Words))
	for i, w := range p.Words {
		out[i] = w.Text
	}
	return out
}

// RunTextExtractor runs the contract of [labreport.TextExtractor]. newExtractor returns an
// extractor with its default limits; the suite makes damaged files from the harness's File.
func RunTextExtractor(t *testing.T, newExtractor func(t testing.TB) ExtractorHarness) {
	t.Run("Check", func(t *testing.T) {
		h := newExtractor(t)
		n, err := h.Extractor.Check(t.Context(), h.File)
		require.NoError(t, err)
		require.Equal(t, len(h.Words), n, "the number of pages")
	})
	// The file is read once, for the cases that check its pages.
	first := sync.OnceValues(func() (firstRead, error) {
		h := newExtractor(t)
		before := bytes.Clone(h.File.Data)
		pages, err := read(t.Context(), h.Extractor, h.File)
		return firstRead{h, before, pages}, err
	})
	t.Run("Pages", func(t *testing.T) {
		r, err := first()
		require.NoError(t, err)
		require.Len(t, r.pages, len(r.Words), "one call for each page")
		for i, p := range r.pages {
			require.Equal(t, i+1, p.Number, "pages come in order and count from 1")
			require.Positive(t, p.Width)
			require.Positive(t, p.Height)
		}
	})
	t.Run("Words", func(t *testing.T) {
		r, err := first()
		require.NoError(t, err)
		require.Len(t, r.pages, len(r.Words))
		for i, want := range r.Words {
			require.Subset(t, texts(r.pages[i]), want, "words of page %d", i+1)
		}
	})
	t.Run("WordsAreWhole", func(t *testing.T) {
		r, err := first()
		require.NoError(t, err)
		for _, p := range r.pages {
			for _, w := range p.Words {
				require.NotEmpty(t, w.Text)
				require.False(t, strings.ContainsFunc(w.Text, unicode.IsSpace), "a word has no white space")
				require.Greater(t, w.Confidence, 0.0)
				require.LessOrEqual(t, w.Confidence, 1.0)
				require.GreaterOrEqual(t, w.Votes, 0)
			}
		}
	})
	t.Run("Boxes", func(t *testing.T) {
		r, err := first()
		require.NoError(t, err)
		inside := func(b labreport.Box) {
			t.Helper()
			require.Positive(t, b.Width)
			require.Positive(t, b.Height)
			for _, middle := range []float64{b.X + b.Width/2, b.Y + b.Height/2} {
				require.GreaterOrEqual(t, middle, 0.0, "boxes are fractions of the page")
				require.LessOrEqual(t, middle, 1.0, "boxes are fractions of the page")
			}
		}
		for _, p := range r.pages {
			for _, w := range p.Words {
				inside(w.Box)
				if p.Original != nil {
					require.Equal(t, p.Original(w.Box), p.Original(w.Box), "Original is pure")
				}
			}
		}
	})
	t.Run("CallerStops", func(t *testing.T) {
		h := newExtractor(t)
		calls := 0
		err := h.Extractor.Extract(t.Context(), h.File, func(labreport.Page) error {
			calls++
			return errStop
		})
		require.Equal(t, errStop, err, "an error of page is returned unchanged") //nolint:testifylint // errors.Is is not enough
		require.Equal(t, 1, calls)
	})
	t.Run("FileUnchanged", func(t *testing.T) {
		r, err := first()
		require.NoError(t, err)
		require.Equal(t, r.before, r.File.Data, "the file is the caller's")
	})
	// refused checks the errors for an unreadable file.
	refused := func(t *testing.T, h ExtractorHarness, f labreport.File) {
		t.Helper()
		_, err := h.Extractor.Check(t.Context(), f)
		require.ErrorIs(t, err, healthlab.Invalid)
		_, err = read(t.Context(), h.Extractor, f)
		require.ErrorIs(t, err, healthlab.Invalid)
	}
	t.Run("Empty", func(t *testing.T) {
		h := newExtractor(t)
		refused(t, h, labreport.File{Type: h.File.Type})
	})
	t.Run("OtherType", func(t *testing.T) {
		h := newExtractor(t)
		refused(t, h, labreport.File{Type: "text/plain", Data: h.File.Data})
	})
	t.Run("NotTheType", func(t *testing.T) {
		h := newExtractor(t)
		refused(t, h, labreport.File{Type: h.File.Type, Data: []byte(strings.Repeat("no such file ", 100))})
	})
	t.Run("Password", func(t *testing.T) {
		h := newExtractor(t)
		if h.Protected.Data == nil {
			t.Skip("files of this type have no passwords")
		}
		refused(t, h, h.Protected)
		_, err := h.Extractor.Check(t.Context(), h.Protected)
		require.ErrorIs(t, err, labreport.ErrPassword)
	})
	t.Run("Damaged", func(t *testing.T) {
		h := newExtractor(t)
		r := rand.New(rand.NewPCG(1, 2))
		for range 4 {
			f := labreport.File{Type: h.File.Type, Data: bytes.Clone(h.File.Data)}
			for range 8 {
				f.Data[r.IntN(len(f.Data))] ^= 1 << r.IntN(8)
			}
			f.Data = f.Data[:len(f.Data)-r.IntN(len(f.Data)/2)]
			_, err := read(t.Context(), h.Extractor, f)
			known := err == nil || errors.Is(err, healthlab.Invalid) || errors.Is(err, healthlab.Exhausted) || errors.Is(err, healthlab.Unimplemented)
			require.True(t, known, "a damaged file ends in words, Invalid, Exhausted or Unimplemented; got %v", err)
		}
		_, err := read(t.Context(), h.Extractor, h.File)
		require.NoError(t, err, "a damaged file has no effect on others")
	})
	t.Run("ContextEnded", func(t *testing.T) {
		h := newExtractor(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		pages, err := read(ctx, h.Extractor, h.File)
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, pages)
	})
	t.Run("Concurrent", func(t *testing.T) {
		h := newExtractor(t)
		const callers = 3
		var wg sync.WaitGroup
		pages, errs := make([][]labreport.Page, callers), make([]error, callers)
		for i := range callers {
			wg.Go(func() { pages[i], errs[i] = read(t.Context(), h.Extractor, h.File) })
		}
		wg.Wait()
		for i := range callers {
			require.NoError(t, errs[i])
			require.Len(t, pages[i], len(h.Words))
			for j, want := range h.Words {
				require.Subset(t, texts(pages[i][j]), want)
			}
		}
	})
}
