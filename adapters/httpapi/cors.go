package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
)

// preflight answers the preflight request of a browser for an operation of the link API. It allows every origin,
// because a preflight has no link token and therefore no team. allowOrigin decides whether the page may read the
// answer. The link API uses no cookie.
func (a api) preflight(method string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Add("Vary", "Origin")
		if origin := r.Header.Get("Origin"); origin != "" {
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Allow-Methods", method)
			h.Set("Access-Control-Allow-Headers", "content-type, "+strings.ToLower(a.LinkTokenHeader))
			h.Set("Access-Control-Max-Age", "600")
		}
		h.Set("Allow", method+", OPTIONS")
		w.WriteHeader(http.StatusNoContent)
	})
}

// allowOrigin lets a page of another origin read the answer if the team's setting link_allowed_origins contains the
// origin.
func (a api) allowOrigin(w http.ResponseWriter, r *http.Request, token string) error {
	if !slices.Contains(w.Header().Values("Vary"), "Origin") {
		w.Header().Add("Vary", "Origin")
	}
	origin := r.Header.Get("Origin")
	if origin == "" || a.linkOrigins == nil || a.tokenUser == nil {
		return nil
	}
	team, _, ok := a.tokenUser(token)
	if !ok {
		return nil
	}
	allowed, err := a.linkOrigins(r.Context(), team)
	if err != nil {
		return err
	}
	if slices.Contains(allowed, origin) {
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Expose-Headers", "Retry-After, "+server.RequestIDHeader)
	}
	return nil
}
