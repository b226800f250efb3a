package sandbox

import (
	_ "embed"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

//go:embed page.html
var pageText string

var pageForm = template.Must(template.New("page").Parse(pageText))

// SignInPage returns the sign-in page of every provider of a sandbox, for people who try it: mount it at the address
// [ConnectorOptions].Page. callbacks lists the addresses to which it may redirect, each including all paths below
// it. It redirects nowhere else.
//
// A person signs in with any name and chooses the granted scopes. A name with a behaviour makes the sign-in or later
// requests fail.
func SignInPage(callbacks ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		if err := r.ParseForm(); err != nil {
			http.Error(w, "the form is too large or broken", http.StatusBadRequest)
			return
		}
		q := r.URL.Query()
		to := q.Get("redirect_uri")
		if !slices.ContainsFunc(callbacks, func(ours string) bool { return to == ours || strings.HasPrefix(to, ours+"/") }) ||
			q.Get("response_type") != "code" {
			http.Error(w, "this is no request of ours", http.StatusBadRequest)
			return
		}
		if r.Method == http.MethodPost {
			answerPage(w, r)
			return
		}
		h.Set("Content-Type", "text/html; charset=utf-8")
		_ = pageForm.Execute(w, map[string]any{
			"Action": "?" + r.URL.RawQuery, "Scopes": strings.Fields(q.Get("scope")),
			"Behaviours": Behaviours(),
		})
	})
}

func answerPage(w http.ResponseWriter, r *http.Request) {
	var c Connector // a zero Connector suffices to make a code
	page := url.URL{RawQuery: r.URL.RawQuery}
	to, err := c.Deny(page.String())
	if r.PostForm.Get("answer") == "allow" {
		granted := r.PostForm["scope"]
		if granted == nil {
			granted = []string{}
		}
		to, err = c.Approve(page.String(), r.PostForm.Get("name"), granted...)
	}
	if err != nil {
		http.Error(w, "this is no request of ours", http.StatusBadRequest)
		return
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}
