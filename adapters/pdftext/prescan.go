package pdftext

import (
	"bytes"
	"compress/zlib"
	"errors"
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

// prescan inflates the compressed parts of a file to nowhere, counting, so that a
// small file that becomes a huge one is refused before the engine sees it. Pictures
// are counted one by one, since they are decoded one at a time; all other parts
// together.
func prescan(pdf []byte, limit int64) error {
	left := limit
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
		dict := pdf[max(0, begin-2048):begin]
		if k := bytes.LastIndex(dict, []byte(" obj")); k >= 0 {
			dict = dict[k:]
		}
		flate := len(reFlate.FindAllIndex(dict, 3))
		if flate == 0 {
			continue
		}
		if flate > 1 && !reImage.Match(dict) {
			return fmt.Errorf("%w: a part is compressed more than once", healthlab.Exhausted)
		}
		data := pdf[at:]
		for len(data) > 0 && (data[0] == '\r' || data[0] == '\n') {
			data = data[1:]
		}
		if end := bytes.Index(data, endAt); end >= 0 {
			data = data[:end]
		}
		budget := left
		picture := reImage.Match(dict)
		if picture {
			budget = limit
		}
		n, err := inflated(data, budget)
		if err != nil {
			return err
		}
		if !picture {
			left -= n
		}
	}
	return nil
}

// inflated counts the bytes that data becomes. Damaged data counts as far as it can
// be read.
func inflated(data []byte, limit int64) (int64, error) {
	z, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return 0, nil //nolint:nilerr // not compressed after all
	}
	n, err := io.CopyN(io.Discard, z, limit+1)
	if n > limit {
		return n, fmt.Errorf("%w: the file grows too large when it is unpacked", healthlab.Exhausted)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return n, nil // damaged: the engine decides
	}
	return n, nil
}
