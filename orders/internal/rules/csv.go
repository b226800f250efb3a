package rules

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// ParseInt parses a decimal integer into into; it returns false for other texts.
func ParseInt(into *int, s string) bool {
	n, err := strconv.Atoi(s)
	*into = n
	return err == nil
}

// What columns of tables allow, for [Expect].
const (
	WholeNumber = "a whole number"
	TrueOrFalse = "true or false"
)

// Expect returns an empty text for a valid cell, and what its column allows for an invalid one.
func Expect(valid bool, allowed string) string {
	if valid {
		return ""
	}
	return allowed
}

// ReadTable reads a CSV table and calls row for each line after the first. The first line has the column names, in any
// order. of is the name of the table in errors; column reports whether the table may have a column. Invalid lists the
// problems by line (from 1) and column. ReadTable stops after a first line with problems, and at a line that is no CSV.
func ReadTable(r io.Reader, of string, column func(name string) bool, row func(columns, cells []string, c Check)) error {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	var p healthlab.Problems
	header, err := in.Read()
	if err != nil {
		return fmt.Errorf("%w: %s: the first line must have the names of the columns", healthlab.Invalid, of)
	}
	columns := make([]string, len(header))
	for i, name := range header {
		columns[i] = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
		if !column(columns[i]) {
			p.Add("unknown_column", "must be a column of "+of, "line", 1, "column", i+1)
		}
		for _, before := range columns[:i] {
			if before == columns[i] {
				p.Add("duplicate", "must not be the name of an earlier column", "line", 1, "column", i+1)
			}
		}
	}
	if err := p.Err(); err != nil {
		return err
	}
	for {
		cells, err := in.Read()
		var bad *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return p.Err()
		case errors.As(err, &bad):
			p.Add("csv", "must be a CSV line with as many cells as the first line", "line", bad.Line)
			return p.Err()
		case err != nil:
			return fmt.Errorf("read %s: %w", of, err)
		}
		line, _ := in.FieldPos(0)
		row(columns, cells, Check{Problems: &p, At: []any{"line", line}})
	}
}
