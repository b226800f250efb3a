// Command accuracy measures how well package labreport reads the open set of reports, by kind of file, and prints
// the tables of docs/accuracy.md.
//
//	accuracy                            every report as every kind of file
//	accuracy -kinds text,photograph     two kinds
//	accuracy -sheets 4 -missed          the first four reports, with missed rows and wrong fields of high confidence
//	accuracy -write DIR                 write the files and their correct results, to measure another reader
//
// The reports, the pictures and the results are the same in every run. Pictures need tesseract in the
// path; a page takes some seconds.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/labs/ocr"
	"github.com/healthlab-dev/healthlab/adapters/labs/pdftext"
	"github.com/healthlab-dev/healthlab/examples/labreport/openset"
	"github.com/healthlab-dev/healthlab/labreport"
)

func main() {
	pdftext.Child()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		stop()
		os.Exit(1)
	}
}

// textKind is the kind of file that is a PDF with a text layer. Files of all other kinds are pictures.
const textKind = "text"

// settings has the values of the command line flags.
type settings struct {
	kinds  []string
	sheets int
	missed bool
	write  string
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("accuracy", flag.ContinueOnError)
	all := []string{textKind}
	for _, m := range openset.Media() {
		all = append(all, m.Name)
	}
	kinds := flags.String("kinds", strings.Join(all, ","), "`kinds` of files, separated by commas")
	flags.IntVar(&s.sheets, "sheets", len(openset.Sheets()), "how many reports of the set")
	flags.BoolVar(&s.missed, "missed", false, "print the rows that were not found, and the sure fields that are wrong")
	flags.StringVar(&s.write, "write", "", "write the files and what they say into this `folder`, and read none")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	s.kinds = strings.Split(*kinds, ",")
	for _, kind := range s.kinds {
		if !slices.Contains(all, kind) {
			return s, fmt.Errorf("-kinds: must be one or more of %s, separated by commas", strings.Join(all, ", "))
		}
	}
	if s.sheets < 1 || s.sheets > len(openset.Sheets()) {
		return s, fmt.Errorf("-sheets: must be 1 to %d", len(openset.Sheets()))
	}
	return s, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	printer, err := pdftext.New(nil)
	if err != nil {
		return err
	}
	defer func() { _ = printer.Close() }()
	if s.write != "" {
		return writeSet(ctx, s, printer)
	}
	return measure(ctx, s, printer, out)
}

// file returns a report of the open set, by its index from 0, as a file of a kind: a PDF, or a picture of the page.
func file(ctx context.Context, printer *pdftext.Extractor, kind string, number int) (labreport.File, error) {
	pdf := labreport.File{Type: "application/pdf", Data: openset.Sheets()[number].PDF()}
	if kind == textKind {
		return pdf, nil
	}
	media := openset.Media()
	m := media[slices.IndexFunc(media, func(m openset.Medium) bool { return m.Name == kind })]
	page, err := printer.Render(ctx, pdf, 1, m.DPI)
	if err != nil {
		return labreport.File{}, err
	}
	gray, ok := page.(*image.Gray)
	if !ok {
		return labreport.File{}, fmt.Errorf("page of %T: expected shades of gray", page)
	}
	return m.Take(gray, rand.New(rand.NewPCG(uint64(number), uint64(m.DPI)))), nil
}

// measure makes the files of all chosen reports and kinds, reads them with the reader, compares the data with the
// reports, and prints the tables.
func measure(ctx context.Context, s settings, printer *pdftext.Extractor, out io.Writer) error {
	reader := labreport.NewReader(nil)
	extractors := labreport.Extractors{"application/pdf": printer}
	if !slices.Equal(s.kinds, []string{textKind}) {
		eyes, err := ocr.New(&ocr.Options{Readability: reader.Readability, DoubtfulNumbers: reader.DoubtfulNumbers, Language: reader.Language, Timeout: 2 * time.Minute, PageTimeout: 5 * time.Minute})
		if err != nil {
			return err
		}
		extractors["image/jpeg"], extractors["image/png"] = eyes, eyes
	}
	var total openset.Score
	_, _ = fmt.Fprintln(out, "| Kind of file | Pages | Rows | F1 of rows | Fields at 0.9 or more | Wrong | Values among them | Wrong | Seconds a page |")
	_, _ = fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|")
	for _, kind := range s.kinds {
		var c openset.Score
		var took time.Duration
		for i, sheet := range openset.Sheets()[:s.sheets] {
			f, err := file(ctx, printer, kind, i)
			if err != nil {
				return err
			}
			start := time.Now()
			data, err := read(ctx, reader, extractors, f)
			if err != nil {
				return fmt.Errorf("report %d as %s: %w", i, kind, err)
			}
			took += time.Since(start)
			for _, fault := range c.Add(sheet, data) {
				if s.missed {
					_, _ = fmt.Fprintf(os.Stderr, "%s, %s: %s\n", kind, sheet.Layout, fault)
				}
			}
		}
		_, _ = fmt.Fprintf(out, "| %s | %d | %d | %.3f | %d | %d | %d | %d | %.1f |\n", kind, c.Pages, c.Want, c.F1(), c.Sure, c.SureWrong, c.SureValues, c.SureValuesWrong, took.Seconds()/float64(c.Pages))
		total.Join(c)
	}
	_, err := fmt.Fprintf(out, "\n%s", total.Calibration())
	return err
}

// read extracts the text of a file with x, and reads it with reader. If the reader finds no results, the data is empty
// and there is no error.
func read(ctx context.Context, reader *labreport.Reader, x labreport.TextExtractor, f labreport.File) (labreport.Data, error) {
	var pages []labreport.Page
	err := x.Extract(ctx, f, func(p labreport.Page) error {
		pages = append(pages, p)
		return nil
	})
	if err != nil {
		return labreport.Data{}, err
	}
	data, _ := reader.Read(pages)
	return data, nil
}

// writeSet writes each report as a file of each kind, and its correct results as JSON.
func writeSet(ctx context.Context, s settings, printer *pdftext.Extractor) error {
	if err := os.MkdirAll(s.write, 0o750); err != nil {
		return err
	}
	for i, sheet := range openset.Sheets()[:s.sheets] {
		says, err := json.MarshalIndent(sheet.Rows, "", " ")
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%02d", i)
		if err := os.WriteFile(filepath.Join(s.write, name+".truth.json"), says, 0o600); err != nil {
			return err
		}
		for _, kind := range s.kinds {
			f, err := file(ctx, printer, kind, i)
			if err != nil {
				return err
			}
			to := fmt.Sprintf("%s-%s.%s", name, strings.ReplaceAll(kind, " ", "_"), f.Type[strings.LastIndexByte(f.Type, '/')+1:])
			if err := os.WriteFile(filepath.Join(s.write, to), f.Data, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}
