package wire

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// codings lists the allowed values of content-encoding.
const codings = "gzip, zstd"

// zstdWindow is the largest window of a zstd body (RFC 9659).
const zstdWindow = 8 << 20

// errCoding is the error of a body that does not match its content-encoding.
var errCoding = errors.New("not in the coding that content-encoding names")

// Uncompress replaces the body of a request by a reader that decodes its content-encoding, gzip or zstd, and reports
// whether it had one. The length of the decoded body is unknown. Reading more than limit decoded bytes fails with
// [http.MaxBytesError]. Another encoding, or more than one, is refused with 415.
func Uncompress(r *http.Request, limit int64) (compressed bool, err error) {
	var named []string // all but identity, which means no encoding
	for name := range strings.SplitSeq(strings.ToLower(strings.Join(r.Header.Values("Content-Encoding"), ",")), ",") {
		if name = strings.TrimSpace(name); name != "" && name != "identity" {
			named = append(named, name)
		}
	}
	coding := strings.Join(named, ",")
	var open func(io.Reader) (io.Reader, error)
	switch coding {
	case "":
		return false, nil
	case "gzip", "x-gzip":
		open = func(from io.Reader) (io.Reader, error) { return gzip.NewReader(from) }
	case "zstd":
		open = func(from io.Reader) (io.Reader, error) {
			return zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		}
	default:
		f := unsupported("the content-encoding of a body must be one of " + codings + ", alone or with identity")
		f.Header = http.Header{"Accept-Encoding": {codings}}
		return false, f
	}
	r.Header.Del("Content-Encoding")
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return false, nil
	}
	r.ContentLength = -1
	r.Body = http.MaxBytesReader(nil, &uncompressed{from: r.Body, open: open}, limit)
	return true, nil
}

// uncompressed is a reader that decodes a compressed body.
type uncompressed struct {
	from io.ReadCloser
	open func(io.Reader) (io.Reader, error)
	to   io.Reader // decoder of from; nil before the first read
	err  error     // error of from; nil for io.EOF
}

// Read returns decoded bytes.
func (u *uncompressed) Read(b []byte) (n int, err error) {
	if u.to == nil {
		u.to, err = u.open(source{u})
	}
	if err == nil {
		n, err = u.to.Read(b)
	}
	switch {
	case err == nil, errors.Is(err, io.EOF) && u.to != nil:
		return n, err
	case u.err != nil:
		return n, u.err
	}
	return n, fmt.Errorf("%w: %w", errCoding, err)
}

// Close closes the compressed body.
func (u *uncompressed) Close() error { return u.from.Close() }

// source reads the compressed bytes of a body for the decoder.
type source struct{ u *uncompressed }

// Read reads compressed bytes. It stores errors other than io.EOF in u.err.
func (s source) Read(b []byte) (int, error) {
	n, err := s.u.from.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.u.err = err
	}
	return n, err
}

// bodyFault returns the answer to a body that could not be read because of err. limit is the largest body, in bytes.
func bodyFault(err error, limit int64) *Fault {
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return tooLarge(limit)
	case errors.Is(err, errCoding):
		return &Fault{Status: http.StatusBadRequest, Type: "BODY_CODING_INVALID", Msg: fmt.Sprintf("the body must be valid gzip or zstd, as its content-encoding says; a zstd window has at most %d bytes", zstdWindow), Cause: err}
	}
	return &Fault{Status: http.StatusBadRequest, Type: "BODY_INCOMPLETE", Msg: "the body ended before its declared length", Cause: err}
}
