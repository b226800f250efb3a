package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/console"
)

// withConsole adds the console of the first team at consolePath. It adds nothing without a management key, with
// which people sign in.
func (s *host) withConsole(api http.Handler) (http.Handler, error) {
	if s.managementKey == "" && len(s.teamKeys) == 0 {
		return api, nil
	}
	pages, err := console.New(console.Config{
		API: api, Org: organisationOf(s.team).String(), Team: s.team.String(), Environment: string(s.environment),
		TeamKey: s.apiKey, KeyHeader: s.keyHeader, Path: consolePath, Secure: strings.HasPrefix(s.url, "https://"), Log: s.log,
	})
	if err != nil {
		return nil, err
	}
	s.console = pages
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == consolePath || strings.HasPrefix(r.URL.Path, consolePath+"/") {
			pages.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	}), nil
}

// printConsoleLink prints an address that signs a person in to the console and opens a page of it.
func (s *host) printConsoleLink(out io.Writer, page string) {
	key := s.managementKey
	if key == "" && len(s.teamKeys) > 0 {
		key = s.teamKeys[0].key
	}
	fmt.Fprintf(out, "The console shows last night: %s%s\n", s.url, s.console.Link(key, page))
}
