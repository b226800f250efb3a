package aggregate

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"time"
)

// AppendJSON appends the result as JSON: {"results":[{"table":{…}}]}.
func (r *Result) AppendJSON(b []byte) []byte {
	w := jsonWriter{b: b}
	w.result(r)
	return w.b
}

// WriteJSON writes the result as JSON, 64 KiB at a time.
func (r *Result) WriteJSON(to io.Writer) error {
	w := jsonWriter{b: make([]byte, 0, jsonPiece+4096), to: to}
	w.result(r)
	w.flush()
	return w.err
}

// WriteJSON writes the frame as JSON, {"table":{…}}, 64 KiB at a time.
func (f *Frame) WriteJSON(to io.Writer) error {
	w := jsonWriter{b: make([]byte, 0, jsonPiece+4096), to: to}
	w.frame(f)
	w.flush()
	return w.err
}

// AppendColumns appends a JSON object with an array of values by column name.
func (f *Frame) AppendColumns(b []byte) []byte {
	w := jsonWriter{b: b}
	w.columns(f.Columns)
	return w.b
}

const jsonPiece = 64 << 10

// jsonWriter writes JSON into a buffer. Without an io.Writer, the buffer keeps the whole text.
type jsonWriter struct {
	b   []byte
	to  io.Writer
	err error
}

func (w *jsonWriter) flush() {
	if w.to == nil {
		return
	}
	if w.err == nil {
		_, w.err = w.to.Write(w.b)
	}
	w.b = w.b[:0]
}

func (w *jsonWriter) result(r *Result) {
	w.b = append(w.b, `{"results":[`...)
	for i := range r.Frames {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.frame(&r.Frames[i])
	}
	w.b = append(w.b, ']')
	if r.Explain != nil {
		w.b = append(w.b, `,"explain":`...)
		e, err := json.Marshal(r.Explain)
		if err != nil && w.err == nil {
			w.err = err
		}
		w.b = append(w.b, e...)
	}
	w.b = append(w.b, '}')
}

func (w *jsonWriter) frame(f *Frame) {
	w.b = append(w.b, `{"table":`...)
	w.columns(f.Columns)
	w.b = append(w.b, '}')
}

// columns writes columns as an object of arrays.
func (w *jsonWriter) columns(list []Column) {
	w.b = append(w.b, '{')
	for k := range list {
		if k > 0 {
			w.b = append(w.b, ',')
		}
		w.b = append(appendText(w.b, list[k].Name), ':', '[')
		w.column(&list[k])
		w.b = append(w.b, ']')
	}
	w.b = append(w.b, '}')
}

// column writes the values of a column, a range of rows at a time.
func (w *jsonWriter) column(c *Column) {
	const stretch = 1024
	for from := 0; from < c.Len(); from += stretch {
		to := min(from+stretch, c.Len())
		if c.v.Nulls == nil {
			w.b = c.appendRange(w.b, from, to)
		} else {
			for i := from; i < to; i++ {
				if c.v.Nulls[i] {
					w.b = append(w.b, "null,"...)
					continue
				}
				w.b = c.appendRange(w.b, i, i+1)
			}
		}
		if to == c.Len() {
			w.b = w.b[:len(w.b)-1] // remove the comma after the last value
		}
		if len(w.b) >= jsonPiece {
			w.flush()
		}
	}
}

// appendRange writes the values of the rows from to to (exclusive), none of which is null, each followed by a comma.
func (c *Column) appendRange(b []byte, from, to int) []byte {
	switch c.Type {
	case typeInt:
		for _, v := range c.v.Ints[from:to] {
			b = append(appendInt(b, v), ',')
		}
	case typeFloat:
		for _, v := range c.v.Floats[from:to] {
			b = append(appendFloat(b, v), ',')
		}
	case typeBool:
		for _, v := range c.v.Ints[from:to] {
			b = append(strconv.AppendBool(b, v != 0), ',')
		}
	case typeText:
		for _, s := range c.v.Texts[from:to] {
			b = append(appendText(b, s), ',')
		}
	case typeDate:
		for _, v := range c.v.Ints[from:to] {
			b = append(appendDay(append(b, '"'), v), '"', ',')
		}
	default:
		var last [10]byte
		var lastDay int64
		for i, v := range c.v.Ints[from:to] {
			d := floorDiv(v, day)
			b = append(b, '"')
			if i > 0 && d == lastDay {
				b = appendClock(append(b, last[:]...), v-d*day)
			} else {
				at := len(b)
				b = appendWall(b, v)
				copy(last[:], b[at:])
				if lastDay = d; b[at+10] != 'T' { // the year does not have four digits
					lastDay = math.MinInt64
				}
			}
			if c.Type == typeInstant {
				b = append(b, "+00:00"...)
			}
			b = append(b, '"', ',')
		}
	}
	return b
}

func appendWall(b []byte, at int64) []byte {
	d := floorDiv(at, day)
	return appendClock(appendDay(b, d), at-d*day)
}

// appendClock writes the time of day with a T before it. rest is the time since midnight in microseconds.
func appendClock(b []byte, rest int64) []byte {
	s := int(rest / second)
	h, m := twoDigits[s/3600], twoDigits[s/60%60]
	sec := twoDigits[s%60]
	b = append(b, 'T', h[0], h[1], ':', m[0], m[1], ':', sec[0], sec[1])
	if f := int(rest % second); f != 0 {
		x, y, z := twoDigits[f/10000], twoDigits[f/100%100], twoDigits[f%100]
		b = append(b, '.', x[0], x[1], y[0], y[1], z[0], z[1])
	}
	return b
}

// appendDay writes a day, counted from 1970-01-01, as YYYY-MM-DD.
func appendDay(b []byte, d int64) []byte {
	y, m, dd := time.Unix(d*86400, 0).UTC().Date()
	if y < 0 || y > 9999 {
		b = strconv.AppendInt(b, int64(y), 10)
	} else {
		c, yy := twoDigits[y/100], twoDigits[y%100]
		b = append(b, c[0], c[1], yy[0], yy[1])
	}
	mm, day := twoDigits[int(m)], twoDigits[dd]
	return append(b, '-', mm[0], mm[1], '-', day[0], day[1])
}

// twoDigits are the digits of 0 to 99.
var twoDigits = func() (t [100][2]byte) {
	for i := range t {
		t[i] = [2]byte{byte('0' + i/10), byte('0' + i%10)}
	}
	return t
}()

// appendInt writes a whole number. It is fast for small ones such as counts, heart rates and steps.
func appendInt(b []byte, v int64) []byte {
	switch {
	case uint64(v) < 10:
		return append(b, byte('0'+v))
	case uint64(v) < 100:
		p := twoDigits[v]
		return append(b, p[0], p[1])
	case uint64(v) < 1000:
		p := twoDigits[v%100]
		return append(b, byte('0'+v/100), p[0], p[1])
	case uint64(v) < 10_000:
		p, q := twoDigits[v/100], twoDigits[v%100]
		return append(b, p[0], p[1], q[0], q[1])
	}
	return strconv.AppendInt(b, v, 10)
}

// appendFloat writes a finite number in the shortest form that parses to the same number; minus zero as 0.
func appendFloat(b []byte, v float64) []byte {
	if n := int64(v); float64(n) == v && -1e15 < n && n < 1e15 {
		return appendInt(b, n)
	}
	if a := math.Abs(v); a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	return strconv.AppendFloat(b, v, 'e', -1, 64)
}

// appendText writes a JSON string.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return appendEscaped(b, s)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func appendEscaped(b []byte, s string) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		panic("aggregate: a string does not encode")
	}
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte{'\n'})...)
}
