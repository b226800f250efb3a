package series

import (
	"encoding/binary"
	"math"
)

// Decode replaces the samples of dst by those in data and reuses the memory of dst: decoding the chunks of one
// series into one block allocates nothing. Invalid bytes return [ErrCorrupt], never a panic, and dst is then
// empty.
func Decode(dst *Block, data []byte) error {
	var l layout
	err := l.read(data)
	if err == nil {
		err = l.decode(dst)
	}
	if err != nil {
		dst.Reset()
	}
	return err
}

func (l *layout) decode(dst *Block) error {
	dst.Reset()
	dst.Time = grown(dst.Time, l.n, l.n)
	if err := l.decodeTimes(dst.Time); err != nil {
		return err
	}
	dst.Value = grown(dst.Value, l.n, l.n)
	if err := l.values.decode(dst.Value, 0); err != nil {
		return err
	}
	if l.hasSecond {
		dst.Value2 = grown(dst.spareSec, l.n, l.n)
		if err := l.seconds.decode(dst.Value2, 0); err != nil {
			return err
		}
	}
	if l.hasEnds {
		dst.End = grown(dst.spareEnd, l.n, l.n)
		if err := l.decodeEnds(dst.End, dst.Time); err != nil {
			return err
		}
	}
	if err := decodeAttrs(dst, l.attrs, l.n); err != nil {
		return err
	}
	dst.dropEmptyColumns()
	return nil
}

// regular reports whether the samples have a constant interval: sample i is at start + i*step, in microseconds,
// and all of them are in bounds.
func (l *layout) regular() (start, step int64, ok bool) {
	if l.deltas.width != 0 || len(l.gaps) != 0 {
		return 0, 0, false
	}
	if l.first < MinTime/l.unit || l.first > MaxTime/l.unit {
		return 0, 0, false
	}
	start = l.first * l.unit
	if l.n == 1 {
		return start, 0, true
	}
	if l.step < 1 || l.step > (MaxTime-start)/l.unit/int64(l.n-1) {
		return 0, 0, false
	}
	return start, l.step * l.unit, true
}

// decodeTimes fills dst with n times and checks that they ascend and are in bounds. Sums of malicious bytes may
// overflow; the check of the result finds that.
func (l *layout) decodeTimes(dst []int64) error {
	if l.first < MinTime/l.unit || l.first > MaxTime/l.unit {
		return corrupt("first time")
	}
	t, step := l.first*l.unit, l.step*l.unit
	dst[0] = t
	from := 1
	// If steps and deltas are short and no gap is negative, no sum overflows and the times ascend.
	ascend := l.step > 0 && l.step <= dayMicros/l.unit && l.deltas.width <= 2
	for g := l.gaps; len(g) > 0; g = g[gapBytes:] {
		at := int(binary.LittleEndian.Uint32(g))
		extra := int64(binary.LittleEndian.Uint64(g[4:]))
		if at < from || at >= l.n {
			return corrupt("gaps")
		}
		t = l.fillTimes(dst, from, at, t, step)
		t += extra * l.unit
		t = l.fillTimes(dst, at, at+1, t, step)
		from = at + 1
		ascend = ascend && extra >= 0 && extra <= MaxTime/l.unit && t <= MaxTime
	}
	t = l.fillTimes(dst, from, l.n, t, step)
	if (!ascend || t > MaxTime) && !ascending(dst) {
		return corrupt("times")
	}
	return nil
}

// fillTimes fills dst[from:to] with the times that follow t, and returns the last of them. Each time is step
// microseconds and its stored delta after the one before it.
func (l *layout) fillTimes(dst []int64, from, to int, t, step int64) int64 {
	dst = dst[from:to]
	unit := l.unit
	switch l.deltas.width {
	case 0:
		for i := range dst {
			t += step
			dst[i] = t
		}
	case 1:
		c := l.deltas.data[from-1 : to-1][:len(dst)]
		for i := range dst {
			t += step + int64(c[i])*unit
			dst[i] = t
		}
	case 2:
		c := l.deltas.data[2*(from-1) : 2*(to-1)]
		for i := range dst {
			t += step + int64(binary.LittleEndian.Uint16(c[2*i:]))*unit
			dst[i] = t
		}
	case 4:
		c := l.deltas.data[4*(from-1) : 4*(to-1)]
		for i := range dst {
			t += step + int64(binary.LittleEndian.Uint32(c[4*i:]))*unit
			dst[i] = t
		}
	default:
		c := l.deltas.data[8*(from-1) : 8*(to-1)]
		for i := range dst {
			t += step + int64(binary.LittleEndian.Uint64(c[8*i:]))*unit
			dst[i] = t
		}
	}
	return t
}

// decode fills dst with the values from position from on.
func (c *numbers) decode(dst []float64, from int) error {
	data := c.data[from*c.width : (from+len(dst))*c.width]
	if c.scale == rawScale {
		for i := range dst {
			dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
		}
		if !finite(dst) {
			return corrupt("a value is not finite")
		}
		return nil
	}
	base, p := c.base, pow10[c.scale]
	switch c.width {
	case 0:
		v := float64(base) / p
		for i := range dst {
			dst[i] = v
		}
	case 1:
		if c.scale > 0 && len(dst) > 1<<8 {
			// A table needs 256 divisions instead of one per value.
			var table [1 << 8]float64
			for i := range table {
				table[i] = float64(base+int64(i)) / p
			}
			for i := range dst {
				dst[i] = table[data[i]]
			}
			return nil
		}
		for i := range dst {
			dst[i] = float64(base + int64(data[i]))
		}
		divide(dst, c.scale)
	case 2:
		to := dst
		for len(to) >= 4 && len(data) >= 8 {
			x := binary.LittleEndian.Uint64(data)
			to[0] = float64(base + int64(x&math.MaxUint16))
			to[1] = float64(base + int64(x>>16&math.MaxUint16))
			to[2] = float64(base + int64(x>>32&math.MaxUint16))
			to[3] = float64(base + int64(x>>48))
			to, data = to[4:], data[8:]
		}
		for i := range to {
			to[i] = float64(base + int64(binary.LittleEndian.Uint16(data[2*i:])))
		}
		divide(dst, c.scale)
	case 4:
		for i := range dst {
			dst[i] = float64(base + int64(binary.LittleEndian.Uint32(data[4*i:])))
		}
		divide(dst, c.scale)
	default:
		for i := range dst {
			dst[i] = float64(base + int64(binary.LittleEndian.Uint64(data[8*i:])))
		}
		divide(dst, c.scale)
	}
	return nil
}

func divide(v []float64, scale int) {
	if scale == 0 {
		return
	}
	p := pow10[scale]
	for i := range v {
		v[i] /= p
	}
}

func (l *layout) decodeEnds(dst, times []int64) error {
	unit := l.endUnit
	base := l.endBase * unit // may overflow with malicious bytes; the check below finds that
	if l.someEnds {
		for i := range dst {
			if c := l.ends.at(i); c == 0 {
				dst[i] = NoEnd
			} else {
				dst[i] = times[i] + base + int64(c-1)*unit
			}
		}
	} else {
		switch l.ends.width {
		case 0:
			for i := range dst {
				dst[i] = times[i] + base
			}
		case 1:
			c := l.ends.data[:len(dst)]
			for i := range dst {
				dst[i] = times[i] + base + int64(c[i])*unit
			}
		default:
			for i := range dst {
				dst[i] = times[i] + base + int64(l.ends.at(i))*unit
			}
		}
	}
	for _, e := range dst {
		if e < MinTime || e > MaxTime {
			return corrupt("ends")
		}
	}
	return nil
}
