package series

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/healthlab-dev/healthlab"
)

// Header summarizes a chunk without decoding it. It is enough to find the chunk, and to aggregate the chunk if
// it lies in one bucket of time. A store keeps it beside the data, as columns or as the bytes of
// [Header.Append].
type Header struct {
	healthlab.Private

	// Start and Stop are the times of the first and the last sample, in microseconds since 1970 UTC, both
	// inclusive. Start identifies the chunk in its series.
	Start, Stop int64
	// MaxEnd is the latest end of a sample, or [NoEnd] if no sample has an end.
	MaxEnd int64
	// N is the number of samples, at least one.
	N int
	// Min, Max and Sum are the least, the greatest and the sum of the values. First and Last are the first and
	// the last value.
	Min, Max    float64
	Sum         Sum
	First, Last float64
	// OneOffset reports whether all samples have the same offset. If not, Offset is zero and must be ignored.
	OneOffset bool
	Offset    int32
	// Crossed reports whether intervals of the chunk overlap.
	Crossed bool
	// MaxRank is the greatest rank of a sample.
	MaxRank uint32
	// Format is the number of the format of Data, such as [Format].
	Format byte
	// Size is the length of the data in bytes.
	Size int
}

// Overlaps reports whether the chunk can have a sample between from (inclusive) and to (exclusive).
func (h *Header) Overlaps(from, to int64) bool { return h.Start < to && h.Stop >= from }

// Chunk is an encoded block with its header. Treat it as immutable. A store that only needs headers leaves Data
// nil. Chunks are used in two places: the body of a series, where they do not overlap, and its log, where a
// later segment replaces samples of earlier segments and of the body.
type Chunk struct {
	Header
	Data []byte
}

// Segment is a chunk in the log of a series: appended, and not yet merged into the body.
type Segment = Chunk

// NewChunk encodes b. The errors are those of [Encode]. The chunk is a copy.
func NewChunk(b *Block) (Chunk, error) {
	data, err := Encode(make([]byte, 0, 64+3*b.Len()), b)
	if err != nil {
		return Chunk{}, err
	}
	c := Chunk{Data: slices.Clip(data)}
	var l layout
	if err := l.read(data); err != nil {
		return Chunk{}, err
	}
	var t total
	if l.values.scale == rawScale {
		t = totalOf(b.Value)
	} else {
		t = l.values.total(0, l.n)
	}
	c.Header = Header{
		Start: b.Time[0], Stop: b.Time[b.Len()-1], N: b.Len(),
		Min: t.min, Max: t.max, Sum: t.sum, First: t.first, Last: t.last,
		OneOffset: true, Offset: b.Runs[0].Offset,
		Format: Format, Size: len(data),
	}
	for i, e := range b.End {
		if c.MaxEnd != NoEnd && c.MaxEnd > b.Time[i] {
			c.Crossed = true
		}
		if e != NoEnd && (c.MaxEnd == NoEnd || e > c.MaxEnd) {
			c.MaxEnd = e
		}
	}
	for r := range b.Runs {
		c.MaxRank = max(c.MaxRank, b.Runs[r].Rank)
	}
	for r := range b.Runs {
		if b.Runs[r].Offset != c.Offset {
			c.OneOffset, c.Offset = false, 0
			break
		}
	}
	return c, nil
}

// Decode decodes a chunk as [Decode] does. It also returns [ErrCorrupt] if the header does not match the data,
// or if there is no data.
func (c *Chunk) Decode(dst *Block) error {
	if err := Decode(dst, c.Data); err != nil {
		return err
	}
	if dst.Len() != c.N || dst.Time[0] != c.Start || dst.Time[c.N-1] != c.Stop {
		dst.Reset()
		return corrupt("header of another chunk")
	}
	return nil
}

// headerBytes is the length of a stored header; headerForm is its first byte.
const (
	headerBytes = 91
	headerForm  = 1

	flagOneOffset = 1
	flagCrossed   = 2
)

// Append appends the header in a stored form of 91 bytes, for a store without a column for each field.
func (h *Header) Append(dst []byte) []byte {
	le := binary.LittleEndian
	dst = append(dst, headerForm)
	dst = le.AppendUint64(dst, uint64(h.Start))
	dst = le.AppendUint64(dst, uint64(h.Stop))
	dst = le.AppendUint64(dst, uint64(h.MaxEnd))
	dst = le.AppendUint32(dst, uint32(h.N))
	for _, v := range [...]float64{h.Min, h.Max, h.Sum.Hi, h.Sum.Lo, h.First, h.Last} {
		dst = le.AppendUint64(dst, math.Float64bits(v))
	}
	var flags byte
	if h.OneOffset {
		flags |= flagOneOffset
	}
	if h.Crossed {
		flags |= flagCrossed
	}
	dst = append(dst, flags)
	dst = le.AppendUint32(dst, uint32(h.Offset))
	dst = append(dst, h.Format)
	dst = le.AppendUint32(dst, uint32(h.Size))
	return le.AppendUint32(dst, h.MaxRank)
}

// ParseHeader reads a header of [Header.Append]. It returns [ErrCorrupt] for other bytes.
func ParseHeader(data []byte) (Header, error) {
	if len(data) != headerBytes || data[0] != headerForm {
		return Header{}, corrupt("header")
	}
	le := binary.LittleEndian
	f := func(at int) float64 { return math.Float64frombits(le.Uint64(data[at:])) }
	h := Header{
		Start: int64(le.Uint64(data[1:])), Stop: int64(le.Uint64(data[9:])), MaxEnd: int64(le.Uint64(data[17:])),
		N:   int(le.Uint32(data[25:])),
		Min: f(29), Max: f(37), Sum: Sum{f(45), f(53)}, First: f(61), Last: f(69),
		OneOffset: data[77]&flagOneOffset != 0, Crossed: data[77]&flagCrossed != 0, Offset: int32(le.Uint32(data[78:])),
		Format: data[82], Size: int(le.Uint32(data[83:])), MaxRank: le.Uint32(data[87:]),
	}
	if h.N < 1 || h.N > MaxLen || h.Start > h.Stop {
		return Header{}, corrupt("header")
	}
	return h, nil
}
