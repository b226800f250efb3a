package fold

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// ReadCSV reads a CSV table with a header line and calls row for each further line. Lines that begin with # are
// comments. need lists the required headings. column returns the field of the row under a heading, or "" if there
// is no such heading. column is valid only during the call of row; the fields may be kept.
func ReadCSV(r io.Reader, need []string, row func(column func(name string) string)) error {
	c := csv.NewReader(r)
	c.Comment = '#'
	c.ReuseRecord = true
	head, err := c.Read()
	if err != nil {
		return fmt.Errorf("%w: the table must have a header line: %v", healthlab.Invalid, err)
	}
	at := map[string]int{}
	for i, name := range head {
		if i == 0 {
			name = strings.TrimPrefix(name, "\ufeff")
		}
		at[strings.Clone(name)] = i
	}
	for _, name := range need {
		if _, ok := at[name]; !ok {
			return fmt.Errorf("%w: the header line must have the column %s", healthlab.Invalid, name)
		}
	}
	for n := 1; ; n++ {
		fields, err := c.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: row %d must be valid CSV: %v", healthlab.Invalid, n, err)
		}
		row(func(name string) string {
			if i, ok := at[name]; ok && i < len(fields) {
				return strings.Clone(fields[i])
			}
			return ""
		})
	}
}

// Split returns the items of a list that are separated by |; nil for an empty text.
func Split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "|")
}
