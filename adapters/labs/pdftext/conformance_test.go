package pdftext_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/labreport/labreporttest"
)

func TestExtractor_passesTheTextExtractorSuite(t *testing.T) {
	x := newExtractor(t, nil)
	labreporttest.RunTextExtractor(t, func(testing.TB) labreporttest.ExtractorHarness {
		return labreporttest.ExtractorHarness{
			Extractor: x,
			File:      file(writePDF("", true, reportLines(), reportLines())),
			Words:     [][]string{{"Glucose", "112", "mg/dL"}, {"Sodium", "139", "mmol/L"}},
			Protected: file(hostile()["encrypted"]),
		}
	})
}
