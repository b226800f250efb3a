package main

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"os"
	"os/exec"
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
func TestReference_hasEveryOperationAndIsAccessible(t *testing.T) {
	t.Parallel()
	p := start(t, "-api-key-header", "x-clinic-key", "-management-key", "manager")
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
	code := regexp.MustCompile(`(?s)<code>.*?</code>`)
	for path, body := range pages {
		if path != "/openapi.json" && path != "/docs/style.css" {
			require.NotRegexp(t, "`|\\*\\*|\\]\\(", code.ReplaceAllString(body, ""), "%s has marks of Markdown", path)
		}
	}
	curls := curlsOf(all.String())
	require.Len(t, curls, operations)
	runCurls(p, curls)
	status, found := read("/docs/search?q=webhook+secret")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, found, `href="/docs/webhooks#read_webhook_secret"`)

	b := browse.Start(t)
	b.LoadAxe()
	plain := b.Open(t, browse.Person{NoScript: true})
	plain.Go(p.url + "/docs")
	plain.See("Reference", "users", "Add a user")
	plain.Shot("reference")
	plain.Go(p.url + "/docs/search?q=order")
	plain.See("Search", "Order tests for a patient")
	plain.Shot("reference-search")
	plain.Go(p.url + "/docs/users")
	plain.Shot("reference-users")
	for _, address := range plain.Asked() {
		require.True(t, strings.HasPrefix(address, p.url+"/docs"), address)
	}
	tab := b.Open(t, browse.Person{})
	for _, path := range []string{"/docs/", "/docs/users", "/docs/events", "/docs/search?q=order"} {
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

// curlsOf returns the commands of pages of the reference, by operation.
func curlsOf(pages string) map[string]string {
	out := map[string]string{}
	section := regexp.MustCompile(`(?s)<section class="card" id="([^"]+)".*?</section>`)
	command := regexp.MustCompile(`(?s)<h3>curl</h3><pre tabindex="0"><code>(.*?)</code>`)
	for _, m := range section.FindAllStringSubmatch(pages, -1) {
		if c := command.FindStringSubmatch(m[0]); c != nil {
			out[m[1]] = html.UnescapeString(c[1])
		}
	}
	return out
}

// runCurls checks that each command is one of a shell, and that those of the first steps succeed as
// they stand on the page.
func runCurls(p *program, curls map[string]string) {
	p.Helper()
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			require.Empty(p, os.Getenv("CI"), "CI must have %s", program)
			return
		}
	}
	var all, first strings.Builder
	for id, command := range curls {
		require.True(p, strings.HasPrefix(command, "curl "), id)
		all.WriteString(command + "\n")
	}
	check := exec.CommandContext(p.Context(), "bash", "-n")
	check.Stdin = strings.NewReader(all.String())
	out, err := check.CombinedOutput()
	require.NoError(p, err, "%s", out)
	for _, id := range []string{"create_user", "resolve_user", "list_users", "list_lab_tests"} {
		first.WriteString(strings.Replace(curls[id], "curl ", "curl -sf ", 1) + "\n")
	}
	run := exec.CommandContext(p.Context(), "bash", "-euo", "pipefail", "-c", first.String())
	run.Env = append(os.Environ(), "URL="+p.url, "TEAM_KEY="+p.key, "CLIENT_USER_ID=member-42")
	out, err = run.CombinedOutput()
	require.NoError(p, err, "%s", out)
	require.Contains(p, string(out), `"total":1`)
}
