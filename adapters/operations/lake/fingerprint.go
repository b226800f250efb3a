package lake

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// Fingerprint identifies the data of a month of a resource. Different data has different fingerprints, except as
// described at [Options.Verify].
type Fingerprint struct {
	// Headers covers the headers of chunks of samples, not the samples in them. For results it covers their orders,
	// which change with every report of the laboratory. Of everything else it covers the full content.
	Headers print `json:"headers"`
	// Content covers the full content of everything, including all samples.
	Content print `json:"content"`
}

// print is a sum of hashes. The order in which they are added does not matter.
type print [2]uint64

// MarshalText writes 32 hex digits.
func (p print) MarshalText() ([]byte, error) {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], p[0])
	binary.BigEndian.PutUint64(b[8:], p[1])
	return hex.AppendEncode(nil, b[:]), nil
}

// UnmarshalText reads 32 hex digits.
func (p *print) UnmarshalText(text []byte) error {
	var b [16]byte
	if n, err := hex.Decode(b[:], text); err != nil || n != len(b) {
		return fmt.Errorf("%w: a fingerprint must be 32 hex digits", healthlab.Invalid)
	}
	p[0], p[1] = binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	return nil
}

func (p *print) add(q print) {
	p[0] += q[0]
	p[1] += q[1]
}

func (f *Fingerprint) add(g Fingerprint) {
	f.Headers.add(g.Headers)
	f.Content.add(g.Content)
}

// hash returns the fingerprint of one item, which consists of the parts.
func hash(parts ...[]byte) print {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write(p)
	}
	sum := h.Sum(nil)
	return print{binary.BigEndian.Uint64(sum), binary.BigEndian.Uint64(sum[8:])}
}

// chunkPrint returns the fingerprint of a chunk. position is 0 for the chunk's stored data, and counts pending segments
// from 1. Content is zero if the data was not loaded.
func chunkPrint(user healthlab.UserID, key healthdata.SeriesKey, c *series.Chunk, position int) Fingerprint {
	name := []byte(key.Resource + "\x00" + key.Provider + "\x00" + string(key.SourceType) + "\x00" + key.Part +
		"\x00" + key.Origin.App + "\x00" + string(key.Origin.Device[:]))
	header := c.Header.Append(nil)
	place := binary.BigEndian.AppendUint64(nil, uint64(position))
	var f Fingerprint
	if c.Data != nil {
		f.Content = hash(user.UUID[:], name, place, header, c.Data)
	}
	if position > 0 {
		f.Headers = f.Content
	} else {
		f.Headers = hash(user.UUID[:], name, place, header)
	}
	return f
}

func recordPrint(user healthlab.UserID, r *healthdata.Record) Fingerprint {
	var times []byte
	for _, t := range []time.Time{r.Index, r.CreatedAt, r.UpdatedAt} {
		times = binary.BigEndian.AppendUint64(times, uint64(t.UnixMicro()))
	}
	times = binary.BigEndian.AppendUint64(times, uint64(r.Offset))
	p := hash(user.UUID[:], []byte(r.Resource), r.ID[:], []byte(r.Provider), []byte(r.SourceType), times, r.CoveredBy[:], r.Doc)
	return Fingerprint{p, p}
}

func monthOf(micros int64) string { return time.UnixMicro(micros).UTC().Format("2006-01") }

func monthRange(month string) (from, to time.Time, err error) {
	from, err = time.Parse("2006-01", month)
	return from, from.AddDate(0, 1, 0), err
}

// chunkMonths calls add with the months in which a chunk may have samples. If pending is true, c is a pending segment:
// it may span any time, so its samples are decoded to find their months.
func chunkMonths(c *series.Chunk, pending bool, add func(month string)) error {
	if !pending {
		for at := c.Start; at <= c.Stop; {
			month := monthOf(at)
			add(month)
			_, next, err := monthRange(month)
			if err != nil {
				return err
			}
			at = next.UnixMicro()
		}
		return nil
	}
	var b series.Block
	if err := c.Decode(&b); err != nil {
		return err
	}
	var next int64
	for i, at := range b.Time {
		if i > 0 && at < next {
			continue
		}
		month := monthOf(at)
		add(month)
		_, end, err := monthRange(month)
		if err != nil {
			return err
		}
		next = end.UnixMicro()
	}
	return nil
}
