package aggregate

import (
	"bytes"
	"compress/flate"
	"encoding/gob"
	"errors"
	"fmt"

	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
)

// storedColumn is a column of the table that a continuous query keeps for a user.
type storedColumn struct {
	Name   string
	Type   Type
	Nulls  []bool
	Ints   []int64
	Floats []float64
	Texts  []string
}

// errOtherTable says that a stored table does not have the expected columns.
var errOtherTable = errors.New("the stored table has other columns")

// encodeFrame returns a frame in the form that stores keep: compressed gob.
func encodeFrame(f *Frame) ([]byte, error) {
	columns := make([]storedColumn, len(f.Columns))
	for i := range f.Columns {
		c := &f.Columns[i]
		columns[i] = storedColumn{c.Name, c.Type, c.v.Nulls, c.v.Ints, c.v.Floats, c.v.Texts}
	}
	var out bytes.Buffer
	zip, err := flate.NewWriter(&out, flate.BestSpeed)
	if err == nil {
		err = errors.Join(gob.NewEncoder(zip).Encode(columns), zip.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("encode table: %w", err)
	}
	return out.Bytes(), nil
}

// decodeFrame reads a stored table, which must have the columns of like, and
// errOtherTable otherwise.
func decodeFrame(data []byte, like *Frame) (Frame, error) {
	var columns []storedColumn
	if err := gob.NewDecoder(flate.NewReader(bytes.NewReader(data))).Decode(&columns); err != nil {
		return Frame{}, fmt.Errorf("decode table: %w", err)
	}
	if len(columns) != len(like.Columns) {
		return Frame{}, errOtherTable
	}
	var out Frame
	for i := range columns {
		c := &columns[i]
		if c.Name != like.Columns[i].Name || c.Type != like.Columns[i].Type {
			return Frame{}, errOtherTable
		}
		out.Columns = append(out.Columns, Column{Name: c.Name, Type: c.Type, v: vector.Vec{
			Type: c.Type, Nulls: c.Nulls, Ints: c.Ints, Floats: c.Floats, Texts: c.Texts,
		}})
	}
	return out, nil
}
