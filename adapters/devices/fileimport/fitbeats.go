package fileimport

import (
	"math"

	"github.com/muktihari/fit/profile/untyped/fieldnum"
	"github.com/muktihari/fit/proto"
)

// beats collects the heart rates of hr messages, which a chest strap transmits after a swim. A message has a time and
// the clock of the strap in 1/1024 s; later messages have only the low 12 bits of that clock.
type beats struct {
	anchored bool
	second   float64 // timestamp of the file at which the strap's clock was anchor
	anchor   uint32  // strap's clock at second, in 1/1024 s
	last     uint32
	sums     map[int64]beatSum // key: timestamp of the file, in seconds
}

// beatSum is the sum and number of heart rates in one second.
type beatSum struct{ sum, n float64 }

// readMessage reads an hr message. at is its timestamp, if timed. readMessage returns the number of the message's beats
// times costPoint; 0 if the strap's full clock is not known yet.
func (b *beats) readMessage(m *proto.Message, at float64, timed bool) int {
	var events []uint32
	var rates []uint8
	full := false // the strap's clock has all its bits
	for i := range m.Fields {
		switch f := &m.Fields[i]; f.Num {
		case fieldnum.HrFilteredBpm:
			rates = bytesOf(f.Value)
		case fieldnum.HrEventTimestamp:
			if events = f.Value.SliceUint32(); f.Value.Type() == proto.TypeUint32 {
				events = []uint32{f.Value.Uint32()}
			}
			full = true
		case fieldnum.HrEventTimestamp12:
			if b.anchored {
				events = b.unpack(bytesOf(f.Value))
			}
		}
	}
	if timed && full && len(events) > 0 {
		b.anchored, b.second, b.anchor = true, at, events[0]
		if part := scaled(m, fieldnum.HrFractionalTimestamp, 32768, 0); part == part {
			b.second += part
		} else if part := scaled(m, fieldnum.HrTime256, 256, 0); part == part {
			b.second += part
		}
	}
	if !b.anchored || len(events) == 0 {
		return 0
	}
	b.last = events[len(events)-1]
	for i := range min(len(events), len(rates)) {
		if rates[i] == 0 || rates[i] == math.MaxUint8 {
			continue
		}
		if b.sums == nil {
			b.sums = map[int64]beatSum{}
		}
		second := int64(math.Floor(b.second + float64(int32(events[i]-b.anchor))/1024))
		s := b.sums[second]
		b.sums[second] = beatSum{s.sum + float64(rates[i]), s.n + 1}
	}
	return len(events) * costPoint
}

// unpack decodes clocks of 12 bits, two in three bytes. It adds the high bits, which follow from the last clock.
func (b *beats) unpack(packed []byte) (out []uint32) {
	clock := b.last
	for i := 0; i+2 < len(packed); i += 3 {
		for _, low := range [...]uint32{uint32(packed[i]) | uint32(packed[i+1]&0xf)<<8, uint32(packed[i+1]>>4) | uint32(packed[i+2])<<4} {
			clock += (low - clock) & 0xfff
			out = append(out, clock)
		}
	}
	return out
}

// add adds the heart rates of another file, whose keys are seconds.
func (b *beats) add(others map[int64]beatSum) {
	if b.sums == nil {
		b.sums = map[int64]beatSum{}
	}
	for second, o := range others {
		s := b.sums[second]
		b.sums[second] = beatSum{s.sum + o.sum, s.n + o.n}
	}
}

func bytesOf(v proto.Value) []byte {
	if v.Type() == proto.TypeUint8 {
		return []byte{v.Uint8()}
	}
	return v.SliceUint8()
}

// addToPoints sets the heart rate of points that lack one, and appends a point for each second without a point.
func (b *beats) addToPoints(points []point) []point {
	for i := range points {
		s, ok := b.sums[points[i].micros]
		if !ok {
			continue
		}
		if math.IsNaN(points[i].heart) {
			points[i].heart = s.sum / s.n
		}
		delete(b.sums, points[i].micros)
	}
	for second, s := range b.sums {
		p := newPoint()
		p.micros, p.heart, p.strap = second, s.sum/s.n, true
		points = append(points, p)
	}
	b.sums = nil
	return points
}
