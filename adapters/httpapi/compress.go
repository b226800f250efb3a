package httpapi

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
)

// Compress compresses the answers of a handler with gzip or zstd, as the request's header
// Accept-Encoding asks. Answers under 1 KiB, which all answers with a secret are, and the link
// pages go as they are: the length of a compressed secret tells of it (BREACH). [Handler] compresses; a host that mounts [Routes] itself wraps
// its own mux.
func Compress(h http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(1024), gzhttp.SetContentType(false), gzhttp.ContentTypes([]string{
		"application/json", "application/xml", "text/css", "text/plain", "text/csv", "text/javascript", "image/svg+xml",
		"application/vnd.apache.parquet",
	}))
	if err != nil {
		panic("httpapi: " + err.Error()) // the options are constants
	}
	return wrap(h)
}
