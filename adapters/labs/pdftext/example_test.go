package pdftext_test

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab/adapters/labs/pdftext"
	"github.com/healthlab-dev/healthlab/labreport"
)

// A PDF becomes results. In main, pdftext.Child() comes first; here TestMain calls it.
func Example() {
	extractor, err := pdftext.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = extractor.Close() }()

	var pages []labreport.Page
	file := labreport.File{Type: "application/pdf", Data: reportPDF(true, "")}
	err = extractor.Extract(context.Background(), file, func(p labreport.Page) error {
		pages = append(pages, p)
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	data, _ := labreport.NewReader(nil).Read(pages)
	for _, r := range data.Results {
		fmt.Println(r.TestName, r.Value, *r.Units, *r.Interpretation)
	}
	// Output:
	// Glucose 112 mg/dL abnormal
	// Creatinine 0.92 mg/dL normal
	// Sodium 139 mmol/L normal
	// Potassium 4.1 mmol/L normal
	// TSH 2.31 mIU/L normal
	// Ferritin 18 ng/mL abnormal
}
