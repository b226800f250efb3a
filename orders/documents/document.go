package documents

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// LabelStock is the kind of paper on which specimen labels are printed.
type LabelStock string

// Label stocks.
const (
	// LabelRoll is a roll of labels of 2.25 by 1.25 inches. Each label is a page.
	LabelRoll LabelStock = "roll"
	// LabelSheet is an A4 sheet of 24 labels of 70 by 37 millimetres, in three columns.
	LabelSheet LabelStock = "sheet"
)

// LabelStocks are all label stocks.
var LabelStocks = []LabelStock{LabelRoll, LabelSheet}

// Document is the content of a document before layout: a title, and sections from top to bottom. It is a plain
// value that depends on the order only. Printing or logging it shows nothing.
type Document struct {
	healthlab.Private

	Kind  DocumentKind
	Title string
	// Number is printed on every page. On the first page it is also a barcode (Code 128), if such a code can
	// encode it. Empty for none.
	Number string
	// Subject is the patient's name and birth date, printed on every page. Empty for none.
	Subject string
	// Remarks are lines under the title, for example that a report is partial.
	Remarks []string
	Paper   orders.Paper
	// At is the time of the document's content, not of its layout.
	At       time.Time
	Sections []Section
	// Labels are printed on Stock; a document with labels has no other content.
	Labels []Label
	Stock  LabelStock
}

// Section is a part of a document. A printer prints its content in the order of the fields of this type.
type Section struct {
	healthlab.Private

	Heading string
	Fields  []Field
	Table   *Table
	// Paragraphs are text. Steps are numbered. Choices have a box to tick. Signs are the texts below the lines
	// to sign on.
	Paragraphs, Steps, Choices, Signs []string
	// Picture is the picture of a signature; nil for none.
	Picture *people.ImageBlob
}

// Field is one line of a section: a name and its value.
type Field struct {
	healthlab.Private

	Name, Value string
}

// Table is a table with column names and rows.
type Table struct {
	// Columns are the column names; Widths are the relative widths of the columns.
	Columns []string
	Widths  []int
	Rows    []Row
}

// Row is one line of a table.
type Row struct {
	healthlab.Private

	// Cells has one text for each column of the table.
	Cells []string
	// Remark is printed below the cells, over the whole width. Empty for none.
	Remark string
	// Strong is true if the row is printed with emphasis.
	Strong bool
	// Group is true if the row is a heading inside the table: only its first cell is printed.
	Group bool
}

// withoutEmpty returns the document without sections and tables that have no content, and without group headings that
// no row follows.
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
	// Number is printed below the lines, and as a barcode.
	Number string
}

// Printer lays out documents as PDF files.
//
// The same document gives the same bytes. All text of the document can be selected in the file. Lines that are too long
// are wrapped; no text is cut off. A character without a glyph is printed as its Unicode number. A label whose text
// does not fit in readable size takes the space of several labels. Invalid if a table row has another number of cells
// than the table has columns, or a label is taller than a sheet. Once ctx has ended, Print returns the context's error.
// Implementations are safe for concurrent use.
type Printer interface {
	Print(ctx context.Context, d Document) ([]byte, error)
}
