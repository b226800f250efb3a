package documents

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// LabelStock is what labels are printed on.
type LabelStock string

// The stocks.
const (
	// LabelRoll is a roll of labels of 2.25 by 1.25 inches. Each is a page.
	LabelRoll LabelStock = "roll"
	// LabelSheet is an A4 sheet of 24 labels of 70 by 37 millimetres, in three columns.
	LabelSheet LabelStock = "sheet"
)

// LabelStocks are all of them.
var LabelStocks = []LabelStock{LabelRoll, LabelSheet}

// Document is the content of a document before layout: a title, and sections from top to
// bottom. It is a plain value that depends on the order only.
// Printing or logging one shows nothing.
type Document struct {
	healthlab.Private

	Kind  DocumentKind
	Title string
	// Number names the document on every page. On the first it is a barcode as well
	// (Code 128), where such a code can hold it. Empty for none.
	Number string
	// Subject is whom it is about, on every page. Empty for none.
	Subject string
	// Remarks stand under the title, such as that a report is partial.
	Remarks []string
	Paper   orders.Paper
	// At is the document's own time: when what it tells happened, not when it was
	// laid out.
	At       time.Time
	Sections []Section
	// Labels are printed on Stock; a document with labels has nothing else.
	Labels []Label
	Stock  LabelStock
}

// Section is a part of a document. What it has stands in the order of the fields here.
type Section struct {
	healthlab.Private

	Heading string
	Fields  []Field
	Table   *Table
	// Paragraphs are text; Steps are numbered, Choices have a box to tick, and Signs
	// are lines to write on, by what is written there.
	Paragraphs, Steps, Choices, Signs []string
	// Picture is a signature; nil for none.
	Picture *people.ImageBlob
}

// Field is something with a name.
type Field struct {
	healthlab.Private

	Name, Value string
}

// Table has a row for each of several things.
type Table struct {
	// Columns name the cells of the rows; Widths are how wide they are, relative to
	// each other.
	Columns []string
	Widths  []int
	Rows    []Row
}

// Row is one line of a table.
type Row struct {
	healthlab.Private

	// Cells are as many as the table has columns.
	Cells []string
	// Remark stands below the cells, over the whole width. Empty for none.
	Remark string
	// Strong rows are to catch the eye.
	Strong bool
	// Group rows are headings inside the table: only the first cell counts.
	Group bool
}

// withoutEmpty returns the document without headings that have nothing below them: sections
// without content, tables without rows, and groups of rows without one.
func (d Document) withoutEmpty() Document {
	sections := d.Sections
	d.Sections = nil
	for _, s := range sections {
		if s.Table != nil {
			t := *s.Table
			t.Rows = nil
			for i, r := range s.Table.Rows {
				if !r.Group || i+1 < len(s.Table.Rows) && !s.Table.Rows[i+1].Group {
					t.Rows = append(t.Rows, r)
				}
			}
			if s.Table = &t; len(t.Rows) == 0 {
				s.Table = nil
			}
		}
		if len(s.Fields)+len(s.Paragraphs)+len(s.Steps)+len(s.Choices)+len(s.Signs) > 0 || s.Table != nil || s.Picture != nil {
			d.Sections = append(d.Sections, s)
		}
	}
	return d
}

// Label is one specimen label.
type Label struct {
	healthlab.Private

	Lines []string
	// Number is below the lines, and a barcode.
	Number string
}

// Printer lays out documents as PDF files.
//
// The same document gives the same bytes. Everything that stands in the document
// stands in the file as text that can be selected, on pages of its paper; what does not
// fit into a line goes on in the next, and nothing is cut off. A letter that the printer
// has no shape for is shown by its number in Unicode. A label whose text does not fit its stock in letters that
// can be read takes the room of several. Errors: Invalid if a table's rows have not as many
// cells as it has columns, or a label is taller than a sheet; the context's error once it
// has ended. Implementations are safe for concurrent use.
type Printer interface {
	Print(ctx context.Context, d Document) ([]byte, error)
}
