package main

import (
	"errors"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/ocr"
	"github.com/healthlab-dev/healthlab/adapters/pdftext"
	"github.com/healthlab-dev/healthlab/labreport"
)

// buildReports makes what reads lab reports. Pictures need tesseract; without it they
// fail with a reason, and PDFs with text are read all the same.
func (s *service) buildReports(files labreport.BlobStore) error {
	reader := labreport.NewReader(nil)
	extractors := labreport.Extractors{}
	pages := pdftext.Options{Workers: s.reportWorkers}
	eyes, err := ocr.New(&ocr.Options{Judge: reader.Judge, Language: reader.Language, Workers: s.reportWorkers})
	switch {
	case err == nil:
		extractors["image/jpeg"], extractors["image/png"] = eyes, eyes
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
	extractors["application/pdf"] = pdfs
	s.closers = append(s.closers, pdfs.Close)
	s.reports, err = labreport.New(s.store.ParsingJobs(), files, s.health, extractors, reader, &labreport.Options{
		Environment: s.environment, Workers: s.reportWorkers, Log: s.log,
	})
	return err
}
