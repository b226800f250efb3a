package reference

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// curl returns a command for a POSIX shell that calls an operation. The variable URL is the address of the service;
// each parameter and each credential is a variable too.
func (d *document) curl(method, path string, op operation) string {
	var lines []string
	add := func(line string) { lines = append(lines, line) }
	var query []string
	address := variables(path)
	for _, p := range op.Parameters {
		p = d.parameter(p)
		switch {
		case !p.Required:
		case p.In == "query":
			query = append(query, url.QueryEscape(p.Name)+"="+variable(p.Name))
		case p.In == "header":
			add(`-H "` + p.Name + ": " + variable(p.Name) + `"`)
		}
	}
	if len(query) > 0 {
		address += "?" + strings.Join(query, "&")
	}
	first := `curl "$URL` + address + `"`
	if method != "get" {
		first = "curl -X " + strings.ToUpper(method) + ` "$URL` + address + `"`
	}
	if security := d.securityOf(op); len(security) > 0 {
		for _, name := range slices.Sorted(maps.Keys(security[0])) {
			switch s := d.Components.SecuritySchemes[name]; {
			case s.Type == "apiKey" && s.In == "header":
				add(`-H "` + s.Name + ": " + variable(name) + `"`)
			case s.Scheme == "bearer":
				add(`-H "authorization: Bearer ` + variable(name) + `"`)
			}
		}
	}
	lines = append(lines, d.curlBody(op)...)
	return strings.Join(append([]string{first}, lines...), " \\\n  ")
}

// curlBody returns the curl options that send a body: the example of the contract, or else a file.
func (d *document) curlBody(op operation) []string {
	if op.Body == nil || len(op.Body.Content) == 0 {
		return nil
	}
	const form = "multipart/form-data"
	if c, ok := op.Body.Content["application/json"]; ok {
		data := "@body.json"
		var example bytes.Buffer
		if len(c.Example) > 0 && json.Indent(&example, c.Example, "  ", "  ") == nil {
			data = quoted(example.String())
		}
		return []string{`-H "content-type: application/json"`, "-d " + data}
	}
	if c, ok := op.Body.Content[form]; ok {
		s := c.Schema
		if s.Ref != "" {
			s = d.Components.Schemas[last(s.Ref)]
		}
		var fields []string
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if slices.Contains(s.Required, name) {
				fields = append(fields, "-F "+name+"=@"+name)
			}
		}
		return fields
	}
	name := slices.Sorted(maps.Keys(op.Body.Content))[0]
	return []string{`-H "content-type: ` + name + `"`, "--data-binary @body"}
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// variables returns a path with shell variables in place of its path parameters.
func variables(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if name, ok := strings.CutPrefix(p, "{"); ok {
			if name, rest, ok := strings.Cut(name, "}"); ok {
				parts[i] = variable(name) + rest
			}
		}
	}
	return strings.Join(parts, "/")
}

// variable returns the use of the shell variable for a name: ${USER_ID} for user_id, ${TEAM_KEY} for TeamKey.
func variable(name string) string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		switch {
		case unicode.IsUpper(r) && lower:
			b.WriteByte('_')
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			r = '_'
		}
		lower = unicode.IsLower(r)
		b.WriteRune(unicode.ToUpper(r))
	}
	return "${" + b.String() + "}"
}
