package pdftext

import (
	"bytes"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"regexp"

	"github.com/healthlab-dev/healthlab"
)

var (
	reImage  = regexp.MustCompile(`/Subtype\s*/Image\b`)
	reFlate  = regexp.MustCompile(`/(?:FlateDecode|Fl)\b`)
	streamAt = []byte("stream")
	endAt    = []byte("endstream")
)

// budget is what may still be decompressed while a file is measured.
type budget struct {
	parts    int   // number of parts with content
	in       int64 // compressed bytes that may be read; parts inside of parts are read more than once
	out      int64 // decompressed bytes of all parts except pictures
	pictures int64 // decompressed bytes of all pictures
	one      int64 // decompressed bytes of one picture
}

// prescan decompresses the parts of a file, counting and discarding the bytes, so that a small file that expands to
// a huge one is refused before the engine reads it. It counts pictures one by one, because they are decoded one at a
// time, and all other parts together. The budget bounds its duration to a few seconds for any file.
func prescan(ctx context.Context, pdf []byte, limit int64) error {
	left := budget{parts: 200_000, in: 4*int64(len(pdf)) + 1<<20, out: limit, pictures: 30 * limit, one: limit}
	end := 0 // end of the current part
	for at := 0; at < len(pdf); {
		i := bytes.Index(pdf[at:], streamAt)
		if i < 0 {
			return nil
		}
		begin := at + i
		at = begin + len(streamAt)
		if begin >= 3 && bytes.Equal(pdf[begin-3:begin], []byte("end")) {
			continue
		}
		if left.parts--; left.parts < 0 {
			return errGrows
		}
		dict := pdf[max(0, begin-2048):begin]
		if k := bytes.LastIndex(dict, []byte(" obj")); k >= 0 {
			dict = dict[k:]
		}
		flate := 0
		if bytes.Contains(dict, []byte("/Fl")) {
			flate = len(reFlate.FindAllIndex(dict, 3))
		}
		if flate == 0 {
			continue
		}
		picture := reImage.Match(dict)
		if flate > 1 && !picture {
			return fmt.Errorf("%w: a part of the PDF file is compressed more than once", healthlab.Exhausted)
		}
		if end < at {
			end = len(pdf)
			if n := bytes.Index(pdf[at:], endAt); n >= 0 {
				end = at + n
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := left.inflate(bytes.TrimLeft(pdf[at:end], "\r\n"), picture); err != nil {
			return err
		}
	}
	return nil
}

var errGrows = fmt.Errorf("%w: the PDF file is too large after decompression: at most %d MiB, and as many for each picture", healthlab.Exhausted, inflateBytes>>20)

// inflate decompresses data, discards the bytes and subtracts their number from the budget. It returns an error if
// the budget is exceeded. Of damaged data it counts the readable part, because the engine reports the damage.
func (b *budget) inflate(data []byte, picture bool) error {
	from := bytes.NewReader(data[:min(int64(len(data)), b.in+1)])
	z, err := zlib.NewReader(from)
	if err != nil {
		return nil //nolint:nilerr // the data is not compressed
	}
	limit := b.out
	if picture {
		limit = min(b.one, b.pictures)
	}
	n, _ := io.CopyN(io.Discard, z, limit+1)
	b.in -= from.Size() - int64(from.Len())
	if picture {
		b.pictures -= n
	} else {
		b.out -= n
	}
	if n > limit || b.in < 0 {
		return errGrows
	}
	return nil
}
