package pdfdoc_test

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab/adapters/labs/pdfdoc"
	"github.com/healthlab-dev/healthlab/orders/documents"
)

// A document becomes a PDF file. Usually an orders.Service does this.
func Example() {
	printer, err := pdfdoc.New(nil)
	if err != nil {
		panic(err)
	}
	file, err := printer.Print(context.Background(), documents.Document{
		Title: "Laboratory report", Number: "N100200", Subject: "Ana Roe, born 1984-05-09",
		Sections: []documents.Section{{
			Heading: "Results",
			Table: &documents.Table{
				Columns: []string{"Test", "Result", "Flag"}, Widths: []int{2, 1, 1},
				Rows: []documents.Row{{Cells: []string{"Ferritin", "9", "Low"}, Strong: true}},
			},
		}},
	})
	fmt.Println(string(file[:5]), err)
	// Output:
	// %PDF- <nil>
}
