package main

import (
	"errors"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/ocr"
	"github.com/healthlab-dev/healthlab/adapters/labs/pdftext"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/labreport"
)

// addReports adds the reading of lab reports. Pictures need the program tesseract; without it, uploads of pictures
// are refused with this reason, and PDFs with text are still read.
func (s *host) addReports(c *service.Config) error {
	reader := labreport.NewReader(nil)
	extractors, renderers := labreport.Extractors{}, labreport.Renderers{}
	pages := pdftext.Options{Workers: s.reportWorkers}
	eyes, err := ocr.New(&ocr.Options{Readability: reader.Readability, DoubtfulNumbers: reader.DoubtfulNumbers, Language: reader.Language, Workers: s.reportWorkers})
	switch {
	case err == nil:
		extractors["image/jpeg"], extractors["image/png"] = eyes, eyes
		renderers["image/jpeg"], renderers["image/png"] = eyes, eyes
		pages.OCR = eyes.Page
	case errors.Is(err, healthlab.Unimplemented):
		s.log.Info("tesseract is not installed: pictures of lab reports are not read")
	default:
		return err
	}
	pdfs, err := pdftext.New(&pages)
	if err != nil {
		return err
	}
	extractors["application/pdf"], renderers["application/pdf"] = pdfs, pdfs
	s.closers = append(s.closers, pdfs.Close)
	c.Extractors, c.Reports.Reader, c.Reports.Renderer = extractors, reader, renderers
	return nil
}
