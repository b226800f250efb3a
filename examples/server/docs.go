package main

import (
	"net/http"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/reference"
)

// withReference adds the HTML pages of the API's contract at /docs/.
func withReference(next, api http.Handler) http.Handler {
	pages := reference.Handler(api)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, reference.Path):
			pages.ServeHTTP(w, r)
		case r.URL.Path+"/" == reference.Path:
			http.Redirect(w, r, reference.Path, http.StatusMovedPermanently)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
