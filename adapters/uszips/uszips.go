// Package uszips finds the location of a postal code of the United States: it implements [appointment.Zips] with a
// table of the U.S. Census Bureau (see [Notices]).
//
// Names to know: [Embedded] returns the table that comes with the package, [Read] reads a newer one.
package uszips

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

//go:embed data/zcta_2021.tsv.gz
var gazetteer []byte

// Notices names the authors of the data in the embedded table, with their licence terms.
//
//go:embed data/NOTICES.md
var Notices string

// Table maps postal codes to locations. Immutable and safe for concurrent use.
type Table struct {
	places   map[string]appointment.LngLat
	prefixes map[string]appointment.LngLat // first three digits → mean location of their codes
}

// Embedded returns the table of 2021 that comes with the package.
func Embedded() *Table { return embedded() }

var embedded = sync.OnceValue(func() *Table {
	text, err := gzip.NewReader(bytes.NewReader(gazetteer))
	if err == nil {
		var t *Table
		if t, err = Read(text); err == nil {
			return t
		}
	}
	panic("uszips: embedded table: " + err.Error())
})

// Read reads a national ZCTA file of the Census Bureau's Gazetteer Files. Columns are separated by tabs, and the
// first line has their names. It reads GEOID (five digits), INTPTLAT and INTPTLONG (degrees). It returns Invalid
// with the first line that cannot be read.
func Read(r io.Reader) (*Table, error) {
	in := csv.NewReader(r)
	in.Comma, in.ReuseRecord, in.LazyQuotes = '\t', true, true
	header, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("%w: gazetteer: the first line must have the names of the columns, separated by tabs, among them GEOID, INTPTLAT and INTPTLONG", healthlab.Invalid)
	}
	at := map[string]int{}
	for i, name := range header {
		at[strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))] = i
	}
	columns := make([]int, 3)
	for i, name := range []string{"GEOID", "INTPTLAT", "INTPTLONG"} {
		column, ok := at[name]
		if !ok {
			return nil, fmt.Errorf("%w: gazetteer: the column %s is missing", healthlab.Invalid, name)
		}
		columns[i] = column
	}
	t := &Table{places: map[string]appointment.LngLat{}, prefixes: map[string]appointment.LngLat{}}
	for {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			t.average()
			return t, nil
		}
		var bad *csv.ParseError
		if err != nil && !errors.As(err, &bad) {
			return nil, fmt.Errorf("read gazetteer: %w", err)
		}
		line, _ := in.FieldPos(0)
		if err != nil {
			return nil, fmt.Errorf("%w: gazetteer: line %d must have one field per column", healthlab.Invalid, bad.Line)
		}
		code := strings.TrimSpace(cells[columns[0]])
		lat, noLat := strconv.ParseFloat(strings.TrimSpace(cells[columns[1]]), 64)
		lng, noLng := strconv.ParseFloat(strings.TrimSpace(cells[columns[2]]), 64)
		if !isCode(code) || noLat != nil || noLng != nil || math.Abs(lat) > 90 || math.Abs(lng) > 180 || math.IsNaN(lat+lng) {
			return nil, fmt.Errorf("%w: gazetteer: line %d: GEOID must have five digits, INTPTLAT must be -90 to 90, and INTPTLONG -180 to 180", healthlab.Invalid, line)
		}
		t.places[strings.Clone(code)] = appointment.LngLat{Lng: lng, Lat: lat}
	}
}

func isCode(s string) bool {
	return len(s) == 5 && !slices.ContainsFunc([]byte(s), func(c byte) bool { return c < '0' || c > '9' })
}

// average computes the mean location, on the sphere, of the codes with the same first three digits.
func (t *Table) average() {
	sums := map[string][3]float64{}
	for _, code := range t.Codes() {
		x, y, z := t.places[code].Vector()
		s := sums[code[:3]]
		sums[code[:3]] = [3]float64{s[0] + x, s[1] + y, s[2] + z}
	}
	for prefix, s := range sums {
		t.prefixes[prefix] = appointment.LngLat{
			Lng: math.Atan2(s[1], s[0]) * 180 / math.Pi,
			Lat: math.Atan2(s[2], math.Hypot(s[0], s[1])) * 180 / math.Pi,
		}
	}
}

// Codes returns every code of the table, ascending.
func (t *Table) Codes() []string {
	out := make([]string, 0, len(t.places))
	for code := range t.places {
		out = append(out, code)
	}
	slices.Sort(out)
	return out
}

// FindZip implements [appointment.Zips]. A code without an area of its own (post office boxes, single large
// receivers, codes newer than the table) gets the mean location of the codes that share its first three digits,
// which belong to one sorting center.
func (t *Table) FindZip(ctx context.Context, code string) (appointment.Zip, bool, error) {
	if err := ctx.Err(); err != nil {
		return appointment.Zip{}, false, err
	}
	if !isCode(code) {
		return appointment.Zip{}, false, nil
	}
	at, ok := t.places[code]
	if !ok {
		at, ok = t.prefixes[code[:3]]
	}
	return appointment.Zip{Location: at, State: appointment.StateOfZip(code)}, ok, nil
}
