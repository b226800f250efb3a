package series

import (
	"encoding/binary"
	"math"

	"github.com/google/uuid"
)

// The attributes of a chunk, in varints: the number of distinct ones; each as a mask
// of the fields that are set (2 bytes) and those fields in the order offset, device,
// workout, texts, rank; then, unless there is only one, the number of runs and each run as
// the index of its attributes and its length.
const (
	maskOffset = 1 << iota
	maskDevice
	maskWorkout
	maskTexts // the first of the bits for text fields, one for each
	maskRank  = maskTexts << textFields
	maskKnown = maskRank<<1 - 1
)

func appendAttrs(out []byte, runs []Run) []byte {
	if oneAttrs(runs) {
		return appendAttr(append(out, 1), &runs[0].Attrs)
	}
	index := make(map[Attrs]int, 8)
	var distinct []*Attrs
	for r := range runs {
		if _, ok := index[runs[r].Attrs]; !ok {
			index[runs[r].Attrs] = len(distinct)
			distinct = append(distinct, &runs[r].Attrs)
		}
	}
	out = binary.AppendUvarint(out, uint64(len(distinct)))
	for _, a := range distinct {
		out = appendAttr(out, a)
	}
	out = binary.AppendUvarint(out, uint64(len(runs)))
	for r := range runs {
		out = binary.AppendUvarint(out, uint64(index[runs[r].Attrs]))
		out = binary.AppendUvarint(out, uint64(runs[r].N))
	}
	return out
}

// oneAttrs reports whether all runs have the same attributes.
func oneAttrs(runs []Run) bool {
	for r := 1; r < len(runs); r++ {
		if runs[r].Attrs != runs[0].Attrs {
			return false
		}
	}
	return true
}

func appendAttr(out []byte, a *Attrs) []byte {
	at := len(out)
	out = append(out, 0, 0)
	mask := 0
	if a.Offset != 0 {
		mask |= maskOffset
		out = binary.AppendVarint(out, int64(a.Offset))
	}
	if a.Device != uuid.Nil {
		mask |= maskDevice
		out = append(out, a.Device[:]...)
	}
	if a.Workout != uuid.Nil {
		mask |= maskWorkout
		out = append(out, a.Workout[:]...)
	}
	for i, text := range a.texts() {
		if *text != "" {
			mask |= maskTexts << i
			out = binary.AppendUvarint(out, uint64(len(*text)))
			out = append(out, *text...)
		}
	}
	if a.Rank != 0 {
		mask |= maskRank
		out = binary.AppendUvarint(out, uint64(a.Rank))
	}
	binary.LittleEndian.PutUint16(out[at:], uint16(mask))
	return out
}

// attrReader reads attributes. After the first error all its results are zero.
type attrReader struct {
	data []byte
	bad  bool
}

func (r *attrReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.bad, r.data = true, nil
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *attrReader) varint() int64 {
	v, n := binary.Varint(r.data)
	if n <= 0 {
		r.bad, r.data = true, nil
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *attrReader) bytes(n uint64) []byte {
	if n > uint64(len(r.data)) {
		r.bad, r.data = true, nil
		return nil
	}
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

// attr reads one Attrs into a. It does not allocate a text that a has already, so that decoding chunks of one series
// allocates nothing.
func (r *attrReader) attr(a *Attrs) {
	m := r.bytes(2)
	if r.bad {
		return
	}
	mask := int(binary.LittleEndian.Uint16(m))
	if mask&^maskKnown != 0 {
		r.bad = true
		return
	}
	a.Offset, a.Device, a.Workout = 0, uuid.Nil, uuid.Nil
	if mask&maskOffset != 0 {
		o := r.varint()
		if o <= -maxOffset || o >= maxOffset {
			r.bad = true
		}
		a.Offset = int32(o)
	}
	if mask&maskDevice != 0 {
		copy(a.Device[:], r.bytes(16))
	}
	if mask&maskWorkout != 0 {
		copy(a.Workout[:], r.bytes(16))
	}
	for i, text := range a.texts() {
		if mask&(maskTexts<<i) == 0 {
			*text = ""
			continue
		}
		if b := r.bytes(r.uvarint()); string(b) != *text {
			*text = string(b)
		}
	}
	a.Rank = 0
	if mask&maskRank != 0 {
		rank := r.uvarint()
		r.bad = r.bad || rank == 0 || rank > math.MaxUint32
		a.Rank = uint32(rank)
	}
}

// decodeAttrs reads the runs of n samples into dst.
func decodeAttrs(dst *Block, data []byte, n int) error {
	r := attrReader{data: data}
	distinct := r.uvarint()
	if r.bad || distinct < 1 || distinct > uint64(n) || distinct > uint64(len(data))/2 {
		return corrupt("attributes")
	}
	for uint64(len(dst.dict)) < distinct {
		dst.dict = append(dst.dict, Attrs{})
	}
	for i := range distinct {
		r.attr(&dst.dict[i])
	}
	dst.Runs = dst.Runs[:0]
	if distinct == 1 {
		if r.bad || len(r.data) != 0 {
			return corrupt("attributes")
		}
		dst.Runs = append(dst.Runs, Run{n, dst.dict[0]})
		return nil
	}
	left := uint64(n)
	runs := r.uvarint()
	for range min(runs, left) {
		k, count := r.uvarint(), r.uvarint()
		if r.bad || k >= distinct || count < 1 || count > left {
			return corrupt("runs")
		}
		left -= count
		dst.addRun(&dst.dict[k], int(count))
	}
	if r.bad || runs > uint64(n) || left != 0 || len(r.data) != 0 {
		return corrupt("runs")
	}
	return nil
}
