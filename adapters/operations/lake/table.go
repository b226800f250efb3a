package lake

import (
	"bufio"
	"io"

	pq "github.com/parquet-go/parquet-go"

	"github.com/healthlab-dev/healthlab/aggregate/parquet"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

const (
	// batchRows is the number of rows that are passed to the column writers at a time.
	batchRows = 4096
	// groupRows is the number of rows of a row group.
	groupRows = 1 << 20
	// writeBuffer is the number of bytes that are written to the [Place] at a time.
	writeBuffer = 1 << 20
)

// table writes rows as one Parquet file, column by column.
type table struct {
	out     *bufio.Writer
	w       columnWriter
	columns []Column
	values  [][]pq.Value // by column, the values of the rows that are not written yet
	rows    int64
}

// columnWriter is a Parquet writer that writes the values of one column after another.
type columnWriter interface {
	ColumnWriters() []*pq.ColumnWriter
	Flush() error
	Close() error
}

func newTable(to io.Writer, name string, columns []Column) *table {
	fields := make([]parquet.Field, len(columns))
	for i, c := range columns {
		fields[i] = parquet.Field{Name: c.Name, Type: c.Type}
	}
	t := &table{out: bufio.NewWriterSize(to, writeBuffer), columns: columns, values: make([][]pq.Value, len(columns))}
	t.w = pq.NewWriter(t.out, parquet.Schema(name, fields), pq.Compression(&pq.Zstd))
	return t
}

func (t *table) set(column int, c tables.Cell) {
	t.values[column] = append(t.values[column], valueOf(t.columns[column].Type, c, column))
}

func (t *table) fill(column, n int, c tables.Cell) {
	v := valueOf(t.columns[column].Type, c, column)
	for range n {
		t.values[column] = append(t.values[column], v)
	}
}

// added counts n rows that were appended to values, and writes the buffered rows if there are enough.
func (t *table) added(n int) error {
	t.rows += int64(n)
	if len(t.values[0]) < batchRows {
		return nil
	}
	return t.flush()
}

func (t *table) flush() error {
	before := t.rows - int64(len(t.values[0]))
	for i, column := range t.w.ColumnWriters() {
		if _, err := column.WriteRowValues(t.values[i]); err != nil {
			return err
		}
		t.values[i] = t.values[i][:0]
	}
	if before/groupRows != t.rows/groupRows {
		return t.w.Flush()
	}
	return nil
}

func (t *table) close() error {
	if err := t.flush(); err != nil {
		return err
	}
	if err := t.w.Close(); err != nil {
		return err
	}
	return t.out.Flush()
}

func valueOf(kind tables.ColumnType, c tables.Cell, column int) pq.Value {
	if !c.Valid {
		return pq.NullValue().Level(0, 0, column)
	}
	var v pq.Value
	switch kind {
	case tables.TypeFloat64:
		v = pq.DoubleValue(c.Float)
	case tables.TypeBool:
		v = pq.BooleanValue(c.Int != 0)
	case tables.TypeString:
		v = pq.ByteArrayValue([]byte(c.Text))
	case tables.TypeDate:
		v = pq.Int32Value(int32(c.Int))
	default:
		v = pq.Int64Value(c.Int)
	}
	return v.Level(0, 1, column)
}

func textCell(s string) tables.Cell { return tables.Cell{Valid: s != "", Text: s} }

func intCell(n int64) tables.Cell { return tables.Cell{Valid: true, Int: n} }

func floatCell(f float64) tables.Cell { return tables.Cell{Valid: true, Float: f} }
