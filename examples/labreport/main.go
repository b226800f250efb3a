// Command labreport reads lab reports and prints the results that it found as a table, which a
// person can compare with the paper.
//
//	labreport report.pdf
//	labreport -as-one page1.jpg page2.jpg
//	labreport -json report.pdf
//	labreport -boxes boxes.png report.pdf
//	labreport -loinc Loinc.csv report.pdf
//
// It makes the checks that the service makes of an upload. After it has read all reports, it exits
// with 1 if it could not open a file, refused one, or found no results in one.
//
// With -results DIR it writes one JSON file for each report instead. A report without results gets
// a file as well and does not count as a failure. Pictures and scanned pages need the program
// tesseract in the path.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/ocr"
	"github.com/healthlab-dev/healthlab/adapters/labs/pdftext"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

func main() {
	pdftext.Child()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "labreport:", err)
		stop()
		os.Exit(1)
	}
}

type settings struct {
	json    bool
	boxes   string
	results string
	words   bool
	asOne   bool
	loinc   string
}

// catalogue returns the LOINC table in the file of -loinc; nil without the flag, which means the library's own
// table.
func (s settings) catalogue() (loinc.Catalogue, error) {
	if s.loinc == "" {
		return nil, nil //nolint:nilnil // nil is the default of the reader
	}
	f, err := os.Open(s.loinc)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	terms, err := loinc.Load(f)
	if err != nil {
		return nil, err
	}
	return loinc.NewTable(terms)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("labreport", flag.ContinueOnError)
	flags.BoolVar(&s.json, "json", false, "print the shape of the API")
	flags.StringVar(&s.boxes, "boxes", "", "draw the boxes of the fields over the pages, the first into this PNG `file`")
	flags.StringVar(&s.results, "results", "", "write one JSON file per report into this `folder`")
	flags.BoolVar(&s.words, "words", false, "print the words that were read, line by line")
	flags.BoolVar(&s.asOne, "as-one", false, "the files are pages of one report")
	flags.StringVar(&s.loinc, "loinc", "", "match with the table that LOINC publishes, this CSV `file` (LoincTable/Loinc.csv of a release)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("at least one file must be given, after the flags")
	}
	catalogue, err := s.catalogue()
	if err != nil {
		return err
	}
	reader := labreport.NewReader(catalogue)
	var see func(context.Context, pageImage) (labreport.Page, error)
	engine, err := ocr.New(&ocr.Options{Readability: reader.Readability, DoubtfulNumbers: reader.DoubtfulNumbers, Language: reader.Language})
	extractors := labreport.Extractors{}
	if err == nil {
		see = engine.Page
		extractors["image/jpeg"], extractors["image/png"] = engine, engine
	} else if !errors.Is(err, healthlab.Unimplemented) {
		return err
	}
	pdf, err := pdftext.New(&pdftext.Options{OCR: see})
	if err != nil {
		return err
	}
	defer func() { _ = pdf.Close() }()
	extractors["application/pdf"] = pdf

	var reports [][]string
	if s.asOne {
		reports = [][]string{flags.Args()}
	} else {
		for _, f := range flags.Args() {
			reports = append(reports, []string{f})
		}
	}
	refused := 0
	for _, files := range reports {
		err := readReport(ctx, s, reader, extractors, files, out)
		var e errRefused
		switch {
		case errors.As(err, &e):
			refused++
			_, _ = fmt.Fprintf(out, "%s: %v\n", filepath.Base(files[0]), e)
		case err != nil:
			return err
		}
	}
	if refused > 0 {
		return fmt.Errorf("%d of %d reports were refused", refused, len(reports))
	}
	return nil
}

// errRefused marks the error of a report that cannot be opened or read, or that has no results. The program continues
// with the next report.
type errRefused struct{ error }

// readReport reads one report from the files names, and prints it to out. The files are the pages of the report in
// order.
func readReport(ctx context.Context, s settings, reader *labreport.Reader, x labreport.TextExtractor, names []string, out io.Writer) error {
	var files []labreport.File
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return errRefused{err}
		}
		files = append(files, labreport.File{Data: data})
	}
	files, err := labreport.CheckFiles(files)
	if err == nil {
		err = labreport.CheckContent(ctx, x, files)
	}
	if err != nil {
		return errRefused{err}
	}
	start := time.Now()
	var pages []labreport.Page
	for _, f := range files {
		err := x.Extract(ctx, f, func(p labreport.Page) error {
			p.Number = len(pages) + 1
			pages = append(pages, p)
			return nil
		})
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			return errRefused{err}
		}
	}
	data, reason := reader.Read(pages)
	took := time.Since(start)
	if s.words {
		printWords(out, pages)
	}
	if s.boxes != "" {
		if err := drawBoxes(ctx, s.boxes, files, len(pages), data); err != nil {
			return err
		}
	}
	switch {
	case s.results != "":
		return writeResults(s.results, names[0], data, took)
	case reason != "":
		return errRefused{fmt.Errorf("no results: %s", reason)}
	case s.json:
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(data)
	}
	return table(out, filepath.Base(names[0]), data, took)
}

// writeResults writes a JSON file in dir, named after the report, with data and took, the time that reading took.
func writeResults(dir, name string, data labreport.Data, took time.Duration) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	b, err := json.MarshalIndent(struct {
		labreport.Data
		Seconds float64 `json:"seconds"`
	}{data, took.Seconds()}, "", " ")
	if err != nil {
		return err
	}
	base := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	return os.WriteFile(filepath.Join(dir, base+".json"), b, 0o600)
}

// table prints the data of a report as a table for people. took is the time that reading took.
func table(out io.Writer, name string, d labreport.Data, took time.Duration) error {
	text := func(s *string) string {
		if s == nil {
			return "-"
		}
		return *s
	}
	m := d.Metadata
	_, _ = fmt.Fprintf(out, "%s (%d results, %s)\n", name, len(d.Results), took.Round(time.Millisecond))
	_, _ = fmt.Fprintf(out, "patient %s %s, born %s, %s; lab %s; collected %s, reported %s; specimen %s\n",
		text(m.PatientFirstName), text(m.PatientLastName), text(m.DOB), m.Gender, text(m.LabName), text(m.DateCollected), text(m.DateReported), text(m.SpecimenNumber))
	w := tabwriter.NewWriter(out, 2, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "test\tvalue\tunit\treference\tmeans\tLOINC\tmatch\tread")
	for _, r := range d.Results {
		code, score := "-", 0.0
		if len(r.LoincMatches) > 0 {
			code, score = r.LoincMatches[0].LoincCode, r.LoincMatches[0].ConfidenceScore
		}
		status := "-"
		if r.LoincMatchStatus != nil {
			status = string(*r.LoincMatchStatus)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s %.2f\t%.2f\n", r.TestName, r.Value, text(r.Units), text(r.ReferenceRange), *r.Interpretation, code, status, score, r.Evidence["value"].Confidence)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

func printWords(out io.Writer, pages []labreport.Page) {
	for _, p := range pages {
		for _, w := range p.Words {
			_, _ = fmt.Fprintf(out, "%d %.3f %.3f %.3f %.3f %.2f %s\n", p.Number, w.Box.X, w.Box.Y, w.Box.Width, w.Box.Height, w.Confidence, w.Text)
		}
	}
}
