package fileimport

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
)

// cellReader reads the rows of a CSV file like encoding/csv, but loses less of a broken file. Lines end with LF,
// CRLF or CR. A quote that is not closed makes only its own line unreadable, not those after it.
type cellReader struct {
	r     *bufio.Reader
	comma byte
	width int // number of cells of the header; 0 until it is read
	lines []csvLine
	read  int   // number of lines read from r
	bytes int64 // total length of these lines

	cells  []string
	lineOf []int // line of each cell
	line   int   // line in which the row begins
}

// csvLine is a line without its end, and its number from 1.
type csvLine struct {
	text   []byte
	number int
}

var (
	errLongRow = errors.New("long row")
	errQuotes  = errors.New("quotes that are not closed, or inside a cell without quotes")
)

func newCellReader(r *bufio.Reader, comma byte) *cellReader { return &cellReader{r: r, comma: comma} }

// next reads the next row that is not empty into cells. It returns errQuotes for a row whose quotes cannot be read, and
// errLongRow for one of more than mostRowBytes.
func (c *cellReader) next() error {
	first := csvLine{}
	for len(first.text) == 0 {
		var err error
		if first, err = c.nextLine(); err != nil {
			return err
		}
	}
	c.line = first.number
	row := []csvLine{first}
	size := len(first.text)
	open, bad := c.quotes(first.text, false)
	for open && !bad {
		line, err := c.nextLine()
		if errors.Is(err, io.EOF) || errors.Is(err, errLongRow) || size > mostRowBytes {
			bad = true
			break
		}
		if err != nil {
			return err
		}
		row = append(row, line)
		size += len(line.text)
		open, bad = c.quotes(line.text, true)
	}
	if !bad {
		c.split(row)
		bad = len(row) > 1 && c.looksLikeRows(row[1:])
	}
	if bad {
		c.lines = append(row[1:len(row):len(row)], c.lines...) // the lines after the first may be good rows
		return errQuotes
	}
	return nil
}

// nextLine returns the next line. Later calls do not overwrite the text of the line.
func (c *cellReader) nextLine() (csvLine, error) {
	if len(c.lines) > 0 {
		line := c.lines[0]
		c.lines = c.lines[1:]
		return line, nil
	}
	var text []byte
	for {
		_, err := c.r.Peek(1)
		ready, _ := c.r.Peek(c.r.Buffered())
		end := bytes.IndexAny(ready, "\r\n")
		if end < 0 {
			end = len(ready)
		}
		text = append(text, ready[:end]...)
		_, _ = c.r.Discard(end)
		c.bytes += int64(end)
		switch {
		case len(text) > mostRowBytes:
			return csvLine{}, errLongRow
		case end < len(ready):
			c.endLine()
		case err == nil:
			continue
		case len(text) == 0 || !errors.Is(err, io.EOF):
			return csvLine{}, err
		}
		c.read++
		return csvLine{text, c.read}, nil
	}
}

// endLine consumes the line end at which the reader stands: LF, CRLF or CR.
func (c *cellReader) endLine() {
	end, _ := c.r.ReadByte()
	c.bytes++
	if next, err := c.r.Peek(1); end == '\r' && err == nil && next[0] == '\n' {
		_, _ = c.r.ReadByte()
		c.bytes++
	}
}

// quotes scans one line. open says whether a quoted cell is open at the start of the line, and still whether one is
// open at its end. bad means that the line has a quote in a wrong position.
func (c *cellReader) quotes(line []byte, open bool) (still, bad bool) {
	for {
		if !open {
			if len(line) == 0 || line[0] != '"' {
				end := bytes.IndexByte(line, c.comma)
				cell := line
				if end >= 0 {
					cell = line[:end]
				}
				if bytes.IndexByte(cell, '"') >= 0 {
					return false, true
				}
				if end < 0 {
					return false, false
				}
				line = line[end+1:]
				continue
			}
			line, open = line[1:], true
		}
		end := bytes.IndexByte(line, '"')
		switch {
		case end < 0:
			return true, false
		case end+1 == len(line):
			return false, false
		case line[end+1] == '"':
			line = line[end+2:]
		case line[end+1] == c.comma:
			line, open = line[end+2:], false
		default:
			return false, true
		}
	}
}

// split sets cells and lineOf from the lines of one row, whose quotes must be well-formed.
func (c *cellReader) split(row []csvLine) {
	c.cells, c.lineOf = c.cells[:0], c.lineOf[:0]
	at := 0
	line := row[0].text
	for {
		c.lineOf = append(c.lineOf, row[at].number)
		if len(line) == 0 || line[0] != '"' {
			cell, rest, more := bytes.Cut(line, []byte{c.comma})
			c.cells = append(c.cells, string(cell))
			if !more {
				return
			}
			line = rest
			continue
		}
		var cell strings.Builder
		line = line[1:]
		for closed := false; !closed; {
			end := bytes.IndexByte(line, '"')
			switch {
			case end < 0:
				cell.Write(line)
				cell.WriteByte('\n')
				at++
				line = row[at].text
			case end+1 < len(line) && line[end+1] == '"':
				cell.Write(line[:end+1])
				line = line[end+2:]
			default:
				cell.Write(line[:end])
				line, closed = line[end+1:], true
			}
		}
		c.cells = append(c.cells, cell.String())
		if len(line) == 0 {
			return
		}
		line = line[1:] // the separator
	}
}

// looksLikeRows reports whether the lines of a quoted cell look like separate rows, which means that the quote was not
// meant to open a cell. That is so if the whole row has another number of cells than the header, or if the header has
// more than two cells and one of the lines alone has as many. Before the header is read, it returns false.
func (c *cellReader) looksLikeRows(lines []csvLine) bool {
	if c.width == 0 {
		return false
	}
	if len(c.cells) != c.width {
		return true
	}
	for _, line := range lines {
		if open, bad := c.quotes(line.text, false); !open && !bad && c.width > 2 && c.count(line.text) == c.width {
			return true
		}
	}
	return false
}

// count returns the number of cells of a line whose quotes are well-formed.
func (c *cellReader) count(line []byte) int {
	n, quoted := 1, false
	for _, b := range line {
		switch {
		case b == '"':
			quoted = !quoted
		case b == c.comma && !quoted:
			n++
		}
	}
	return n
}

func (c *cellReader) trimToWidth() bool {
	// Empty cells behind the last column are left out.
	for len(c.cells) > c.width && strings.TrimSpace(c.cells[len(c.cells)-1]) == "" {
		c.cells = c.cells[:len(c.cells)-1]
	}
	return len(c.cells) == c.width
}
