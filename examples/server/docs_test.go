package main

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/examples/internal/browse"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

// The reference at /docs/ has every operation, event and type of the contract that the server
// serves, its links lead somewhere, and a browser without scripts shows it from this host
// alone, without a finding of axe-core.
func TestReference(t *testing.T) {
	t.Parallel()
	p := start(t, "-api-key-header", "x-clinic-key")
	read := func(path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+path, http.NoBody)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(body)
	}
	pages := map[string]string{}
	href := regexp.MustCompile(`href="(/[^"]*)"`)
	anchor := map[string]bool{}
	for queue := []string{"/docs/"}; len(queue) > 0; queue = queue[1:] {
		path, id, _ := strings.Cut(queue[0], "#")
		anchor[path+"#"+id] = true
		if _, ok := pages[path]; ok {
			continue
		}
		status, body := read(path)
		require.Equal(t, http.StatusOK, status, path)
		pages[path] = body
		for _, m := range href.FindAllStringSubmatch(body, -1) {
			queue = append(queue, m[1])
		}
	}
	ids := regexp.MustCompile(` id="([^"]*)"`)
	for path, body := range pages {
		once := map[string]bool{}
		for _, m := range ids.FindAllStringSubmatch(body, -1) {
			require.False(t, once[m[1]], "%s has two elements with the id %s", path, m[1])
			once[m[1]] = true
		}
	}
	for at := range anchor {
		if path, id, _ := strings.Cut(at, "#"); id != "" {
			require.Contains(t, pages[path], `id="`+id+`"`, path)
		}
	}
	var all strings.Builder
	for path, body := range pages {
		if path != "/openapi.json" {
			all.WriteString(body)
		}
	}
	var doc struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		} `json:"paths"`
		Webhooks   map[string]any `json:"webhooks"`
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	require.NoError(t, json.Unmarshal([]byte(pages["/openapi.json"]), &doc))
	operations := 0
	for path, item := range doc.Paths {
		for method, op := range item {
			operations++
			require.Contains(t, all.String(), `id="`+op.ID+`"`, "%s %s", method, path)
		}
	}
	require.Greater(t, operations, 100)
	for name := range doc.Webhooks {
		require.Contains(t, all.String(), `id="`+name+`"`)
	}
	for name := range doc.Components.Schemas {
		require.Contains(t, all.String(), `id="`+name+`"`)
	}
	status, _ := read("/docs/nothing")
	require.Equal(t, http.StatusNotFound, status)

	b := browse.Start(t)
	b.LoadAxe()
	plain := b.Open(t, browse.Person{NoScript: true})
	plain.Go(p.url + "/docs")
	plain.See("Reference", "users", "Add a user")
	plain.Shot("reference")
	for _, address := range plain.Asked() {
		require.True(t, strings.HasPrefix(address, p.url+"/docs"), address)
	}
	tab := b.Open(t, browse.Person{})
	for _, path := range []string{"/docs/", "/docs/users", "/docs/events"} {
		tab.Go(p.url + path)
		if !prove.All() {
			// One template writes all sections of a page, and axe-core needs seconds for the colours of
			// thousands of elements, so that a quick run checks the first sections.
			browse.Eval[int](tab, `[...document.querySelectorAll("section.card")].slice(8).map(s => s.remove()).length`)
		}
		tab.Check()
	}
	p.quit()
}
