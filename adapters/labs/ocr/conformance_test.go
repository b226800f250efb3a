package ocr_test

import (
	"image"
	"testing"

	"github.com/healthlab-dev/healthlab/labreport/labreporttest"
)

func TestEngine_passesTheTextExtractorSuite(t *testing.T) {
	e := engine(t)
	rows := sheet(4).SubImage(image.Rect(0, 4*110, 4*480, 4*170)) // a heading and two results
	file := asPNG(t, rows)
	labreporttest.RunTextExtractor(t, func(testing.TB) labreporttest.ExtractorHarness {
		return labreporttest.ExtractorHarness{Extractor: e, File: file, Words: [][]string{{"Glucose", "112", "Creatinine", "1.12"}}}
	})
}
