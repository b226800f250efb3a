package series

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Format 1, all numbers little-endian. The fixed part comes first, so that a reader
// in another language (a view in SQL) needs no varints to get at times and values.
//
//	 0  format, 1
//	 1  times: unit in the high half, bytes per delta in the low half
//	 2  values: decimal places in the high half (15: raw float64), bytes per code
//	 3  second values: likewise; 255: there are none
//	 4  ends: unit, bytes per code; 255: no sample has one
//	 5  1 if some samples have no end, else 0
//	 6  number of gaps, 2 bytes
//	 8  number of samples, 4 bytes
//	12  first time in the unit of the times, 8 bytes
//	20  smallest delta in that unit, 8 bytes
//	28  smallest value in its decimal place, 8 bytes; 0 if raw
//	36  the same for second values, 8 bytes, only if there are some
//	    smallest end - time in the unit of the ends, 8 bytes, only if there are ends
//	    gaps: position of a sample (4 bytes), what is added to its delta (8 bytes)
//	    deltas of the samples but the first, minus the smallest
//	    values minus the smallest, or raw
//	    second values, likewise
//	    ends - times minus the smallest; if some samples have no end, 0 means no end and
//	    the others are one higher
//	    attributes: a list of distinct ones, then runs (see attrcode.go)
//
// Units: 0 microsecond, 1 millisecond, 2 second, 3 minute. Bytes per code: 0, 1, 2, 4
// or 8; with 0 all codes are zero. A gap is a delta that would have made all the
// others wider: a watch on its charger.
const (
	formatOne  = 1
	fixedBytes = 36
	gapBytes   = 12

	rawScale = 15
	maxScale = 4
	noColumn = 0xff
)

// Format is the format that [NewChunk] writes. Chunks of older formats stay readable, and are rewritten when
// samples are merged into them.
const Format byte = formatOne

// ErrCorrupt reports that stored bytes are damaged or of a newer format than this version knows. It has no error
// kind, because no input of a caller can cause it.
var ErrCorrupt = errors.New("series: damaged chunk")

func corrupt(what string) error { return fmt.Errorf("%w: %s", ErrCorrupt, what) }

var (
	units = [...]int64{1, 1_000, 1_000_000, 60_000_000}
	pow10 = [...]float64{1, 10, 100, 1000, 10000}
	exact = [...]divisor{divisorOf(1), divisorOf(1_000), divisorOf(1_000_000), divisorOf(60_000_000)}
)

// divisor divides by multiplication if the quotient is exact. An odd number has an inverse modulo 2^64: a
// multiple of it times that inverse is the quotient, and any other number gives a value above every possible
// quotient. The even part of the divisor is a rotation, which moves a remainder into the highest bits.
type divisor struct {
	inverse uint64
	shift   int
	most    uint64
}

func divisorOf(d uint64) divisor {
	shift := bits.TrailingZeros64(d)
	odd := d >> shift
	inverse := odd // correct to 3 bits; each step doubles them
	for range 5 {
		inverse *= 2 - odd*inverse
	}
	return divisor{inverse, shift, math.MaxUint64 / d}
}

func (d divisor) divide(x uint64) uint64 {
	return bits.RotateLeft64(x*d.inverse, -d.shift)
}

// codes is a column of unsigned integers of one width in bytes.
type codes struct {
	width int
	data  []byte // n * width bytes
}

func (c codes) at(i int) uint64 {
	switch c.width {
	case 0:
		return 0
	case 1:
		return uint64(c.data[i])
	case 2:
		return uint64(binary.LittleEndian.Uint16(c.data[2*i:]))
	case 4:
		return uint64(binary.LittleEndian.Uint32(c.data[4*i:]))
	default:
		return binary.LittleEndian.Uint64(c.data[8*i:])
	}
}

// numbers is an encoded column of values: base + code, in units of a decimal place, or raw float64.
type numbers struct {
	codes
	scale int // decimal places, or rawScale
	base  int64
}

// layout is an encoded chunk, split into its parts but not decoded.
type layout struct {
	n int

	unit   int64 // unit of the times, in microseconds
	first  int64 // first time, in that unit
	step   int64 // smallest delta, in that unit
	gaps   []byte
	deltas codes // for the n-1 deltas

	values numbers

	hasSecond bool
	seconds   numbers

	hasEnds  bool
	someEnds bool
	endUnit  int64
	endBase  int64
	ends     codes

	attrs []byte
}

// read splits data into its parts and checks their lengths. The codes are checked when they are decoded.
func (l *layout) read(data []byte) error {
	if len(data) == 0 {
		return corrupt("no bytes")
	}
	if data[0] != formatOne {
		return corrupt("unknown format")
	}
	if len(data) < fixedBytes {
		return corrupt("too short")
	}
	n := binary.LittleEndian.Uint32(data[8:])
	if n < 1 || n > MaxLen {
		return corrupt("number of samples")
	}
	*l = layout{
		n:     int(n),
		first: int64(binary.LittleEndian.Uint64(data[12:])),
		step:  int64(binary.LittleEndian.Uint64(data[20:])),
	}
	l.values.base = int64(binary.LittleEndian.Uint64(data[28:]))
	rest := data[fixedBytes:]
	ok := true
	l.unit, l.deltas.width = unitAndWidth(data[1], &ok)
	l.values.spec(data[2], &ok)
	if data[3] != noColumn {
		l.hasSecond = true
		l.seconds.spec(data[3], &ok)
		l.seconds.base, rest = takeInt(rest, &ok)
	}
	if data[4] != noColumn {
		l.hasEnds, l.someEnds = true, data[5] != 0
		l.endUnit, l.ends.width = unitAndWidth(data[4], &ok)
		l.endBase, rest = takeInt(rest, &ok)
	}
	l.gaps, rest = takeBytes(rest, gapBytes*int(binary.LittleEndian.Uint16(data[6:])), &ok)
	l.deltas.data, rest = takeBytes(rest, (l.n-1)*l.deltas.width, &ok)
	l.values.data, rest = takeBytes(rest, l.n*l.values.width, &ok)
	l.seconds.data, rest = takeBytes(rest, l.n*l.seconds.width, &ok)
	l.ends.data, rest = takeBytes(rest, l.n*l.ends.width, &ok)
	l.attrs = rest
	if !ok {
		return corrupt("layout")
	}
	return nil
}

func (c *numbers) spec(b byte, ok *bool) {
	c.scale, c.width = int(b>>4), int(b&15)
	raw := c.scale == rawScale
	*ok = *ok && isValidWidth(c.width) && (raw && c.width == 8 || !raw && c.scale <= maxScale)
}

func unitAndWidth(b byte, ok *bool) (unit int64, width int) {
	u := int(b >> 4)
	if u >= len(units) {
		*ok = false
		u = 0
	}
	width = int(b & 15)
	*ok = *ok && isValidWidth(width)
	return units[u], width
}

func isValidWidth(w int) bool { return w == 0 || w == 1 || w == 2 || w == 4 || w == 8 }

func takeBytes(b []byte, n int, ok *bool) (part, rest []byte) {
	if n < 0 || n > len(b) {
		*ok = false
		return nil, nil
	}
	return b[:n:n], b[n:]
}

func takeInt(b []byte, ok *bool) (int64, []byte) {
	p, rest := takeBytes(b, 8, ok)
	if p == nil {
		return 0, nil
	}
	return int64(binary.LittleEndian.Uint64(p)), rest
}

// widthFor returns the number of bytes for codes up to most.
func widthFor(most uint64) int {
	switch {
	case most == 0:
		return 0
	case most < 1<<8:
		return 1
	case most < 1<<16:
		return 2
	case most < 1<<32:
		return 4
	default:
		return 8
	}
}
