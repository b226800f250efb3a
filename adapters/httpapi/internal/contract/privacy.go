package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Logs collects log output. The zero value is ready to use. Safe for concurrent use.
type Logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Logger returns a logger that writes every level to l.
func (l *Logs) Logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true}))
}

// Write appends to l.
func (l *Logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// Take returns what was logged since the last call.
func (l *Logs) Take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.buf.String()
	l.buf.Reset()
	return s
}

// The planted marks. They do not occur by chance.
const (
	textMark   = "Qz7Marker9xW"
	numberMark = "864209753186"
)

// Probes configures [Leaks], [Strays], [Fuzz], [Foreign] and [WrongValues].
type Probes struct {
	// Document is the contract. Every operation in it is called.
	Document []byte
	// Logs collects the log of the handler, which must use Logs.Logger.
	Logs *Logs
	// Header is added to every call, such as a valid key.
	Header http.Header
	// Path maps the names of path parameters to ids of existing objects. Other parameters get a UUID or a word.
	Path map[string]string
}

// Leaks sends recognisable values in the paths, queries, headers and bodies of every operation. It returns each place
// where a value came back: in the log, or in an answer with a status of 400 or more. An answer with success may contain
// values, because the handler may have stored them. A panic is returned too.
func Leaks(ctx context.Context, h http.Handler, p Probes) ([]string, error) {
	return p.runProbes(ctx, h, leaks)
}

// Strays sends the same requests as [Leaks], most of them invalid, and returns each answer that does not match the
// contract. A panic is returned too.
func Strays(ctx context.Context, h http.Handler, p Probes) ([]string, error) {
	return p.runProbes(ctx, h, strays)
}

// LeaksAndStrays sends the requests once, and returns what [Leaks] and [Strays] return.
func LeaksAndStrays(ctx context.Context, h http.Handler, p Probes) ([]string, error) {
	return p.runProbes(ctx, h, leaks, strays)
}

// look returns the faults of a reply. name describes the request, and logged is what the handler logged.
type look func(d *Document, op *Operation, name string, r *Reply, logged string) []string

func leaks(_ *Document, _ *Operation, name string, r *Reply, logged string) []string {
	var out []string
	if containsMark(logged) {
		out = append(out, name+": in the log")
	}
	if r.Status >= http.StatusBadRequest && (containsMark(string(r.Body)) || containsMark(fmt.Sprint(r.Header))) {
		out = append(out, fmt.Sprintf("%s: in the reply %d", name, r.Status))
	}
	return out
}

func strays(d *Document, op *Operation, name string, r *Reply, _ string) []string {
	if err := d.checkReply(op, r); err != nil {
		return []string{name + ": " + err.Error()}
	}
	return nil
}

// runProbes sends the requests of every operation, and returns the faults that looks find, and panics.
func (p Probes) runProbes(ctx context.Context, h http.Handler, looks ...look) ([]string, error) {
	d, err := Read(p.Document)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, op := range d.ops {
		for _, probe := range d.probes(op, p) {
			name := op.ID + ", " + probe.name
			p.Logs.Take()
			reply, panicked := probe.run(ctx, h, op, p)
			if panicked != "" {
				out = append(out, name+": panicked with "+panicked)
			}
			logged := p.Logs.Take()
			for _, look := range looks {
				out = append(out, look(d, op, name, reply, logged)...)
			}
		}
	}
	return out, nil
}

// probe is one request. In [Leaks] it contains a mark, a recognisable value.
type probe struct {
	name, target, body, contentType string
	header                          http.Header
}

// run sends the request. If the handler panics with another value than http.ErrAbortHandler, panicked is the Go type of
// the value; else it is empty.
func (pr probe) run(ctx context.Context, h http.Handler, op *Operation, p Probes) (reply *Reply, panicked string) {
	r := httptest.NewRequestWithContext(ctx, op.Method, pr.target, strings.NewReader(pr.body))
	for _, header := range []http.Header{p.Header, pr.header} {
		maps.Copy(r.Header, header)
	}
	if pr.contentType != "" {
		r.Header.Set("Content-Type", pr.contentType)
	}
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if v := recover(); v != nil && v != http.ErrAbortHandler { //nolint:errorlint // as net/http does
				panicked = fmt.Sprintf("%T", v)
			}
		}()
		h.ServeHTTP(w, r)
	}()
	return &Reply{Operation: op.ID, Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()}, panicked
}

func containsMark(s string) bool {
	return strings.Contains(s, textMark) || strings.Contains(s, numberMark) || strings.Contains(s, strings.ToLower(textMark))
}

// dress lists the texts that contain a mark, each with a name for the report.
var dress = []struct{ name, text string }{
	{"plain", textMark},
	{"with NUL", textMark + "\x00"},
	{"not UTF-8", textMark + "\xff"},
	{"long", strings.Repeat(textMark, 500)},
	{"as an address", textMark + "@example.org"},
	{"as a number", numberMark},
	{"as a date", "2026-13-01" + textMark},
	{"quoted", `"` + textMark + `"`},
}

func (d *Document) probes(op *Operation, p Probes) []probe {
	good := func(name string) string {
		if v, ok := p.Path[name]; ok {
			return v
		}
		return "6f1c0b52-0000-4000-8000-000000000001"
	}
	path := func(mark, value string) string {
		var b strings.Builder
		for _, part := range op.parts {
			name := strings.Trim(part, "{}")
			switch {
			case !isParam(part):
				b.WriteString("/" + part)
			case name == mark:
				b.WriteString("/" + url.PathEscape(value))
			default:
				b.WriteString("/" + url.PathEscape(good(name)))
			}
		}
		return b.String()
	}
	plain := path("", "")
	var out []probe
	for _, dr := range dress {
		for _, part := range op.parts {
			if isParam(part) {
				out = append(out, probe{name: part + " " + dr.name, target: path(strings.Trim(part, "{}"), dr.text)})
			}
		}
		query := url.Values{"no_such_parameter": {dr.text}}
		out = append(out, probe{name: "unknown parameter " + dr.name, target: plain + "?" + query.Encode()})
		out = append(out, d.parameterProbes(op, plain, dr.name, dr.text)...)
		out = append(out, d.bodyProbes(op, plain, dr.name, dr.text)...)
		out = append(out, d.formProbes(op, plain, dr.name, dr.text)...)
	}
	for _, name := range []string{"Authorization", "Cookie", "User-Agent", "Accept", "X-Request-Id"} {
		out = append(out, probe{name: name, target: plain, header: http.Header{name: {textMark}}})
	}
	for name := range p.Header {
		out = append(out, probe{name: name, target: plain, header: http.Header{name: {textMark}}})
	}
	return append(out,
		probe{name: "malformed query", target: plain + "?a=" + textMark + "%zz&b;" + textMark},
		probe{name: "content type", target: plain, body: textMark, contentType: "text/" + textMark},
		probe{name: "malformed body", target: plain, body: `{"a":"` + textMark, contentType: "application/json"},
		probe{name: "body that is a text", target: plain, body: `"` + textMark + `"`, contentType: "application/json"},
		probe{name: "body that is a list", target: plain, body: `["` + textMark + `",` + numberMark + `]`, contentType: "application/json"},
		probe{name: "bare body", target: plain, body: textMark, contentType: "application/json"},
		probe{name: "trailing bytes", target: plain, body: `{} ` + textMark, contentType: "application/json"},
		probe{name: "unknown key", target: plain, body: `{"no_such_key":"` + textMark + `"}`, contentType: "application/json"},
	)
}

func (d *Document) parameterProbes(op *Operation, plain, name, text string) []probe {
	var out []probe
	all := url.Values{}
	for _, p := range d.parameters(op) {
		switch p.In {
		case "query":
			all.Add(p.Name, text)
			out = append(out,
				probe{name: p.Name + " " + name, target: plain + "?" + url.Values{p.Name: {text}}.Encode()},
				probe{name: p.Name + " twice " + name, target: plain + "?" + url.Values{p.Name: {text, text}}.Encode()})
		case "header":
			out = append(out, probe{name: p.Name + " " + name, target: plain, header: http.Header{http.CanonicalHeaderKey(p.Name): {text}}})
		}
	}
	if len(all) > 1 {
		out = append(out, probe{name: "all parameters " + name, target: plain + "?" + all.Encode()})
	}
	return out
}

// bodyProbes makes JSON bodies from the schema: one with text as every leaf, one as every string, one with a mark as
// every number, and three per property. plain is the path, and name describes text.
func (d *Document) bodyProbes(op *Operation, plain, name, text string) []probe {
	body, _ := op.node["requestBody"].(map[string]any)
	body, pointer := d.resolve(body, op.pointer+"/requestBody")
	schema, ok := content(body, pointer)["application/json"]
	if !ok || schema == "" {
		return nil
	}
	var out []probe
	add := func(what string, v any) {
		b, err := json.Marshal(v)
		if err == nil {
			out = append(out, probe{name: what + " " + name, target: plain, body: string(b), contentType: "application/json"})
		}
	}
	node := d.at(schema)
	add("every leaf", d.sample(node, func(map[string]any) (any, bool) { return text, true }, 0))
	texts := d.sample(node, func(n map[string]any) (any, bool) { return text, n["type"] == "string" && n["format"] == nil }, 0)
	add("every text", texts)
	add("every number", d.sample(node, func(n map[string]any) (any, bool) {
		return json.Number(numberMark), n["type"] == "number" || n["type"] == "integer"
	}, 0))
	sound, _ := d.sample(node, func(map[string]any) (any, bool) { return nil, false }, 0).(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(sound)) {
		one := maps.Clone(sound)
		one[key] = text
		add(key, one)
		one[key] = []any{text}
		add(key+" as a list", one)
		one[key] = map[string]any{"a": text}
		add(key+" as an object", one)
	}
	return out
}

// formProbes makes forms from the schema: one with text in every field, one per field with valid values in the others,
// and some with text in the names of files or in an unknown part. plain is the path, and name describes text.
func (d *Document) formProbes(op *Operation, plain, name, text string) []probe {
	body, _ := op.node["requestBody"].(map[string]any)
	body, pointer := d.resolve(body, op.pointer+"/requestBody")
	schema, ok := content(body, pointer)["multipart/form-data"]
	if !ok || schema == "" {
		return nil
	}
	sound, _ := d.sample(d.at(schema), func(map[string]any) (any, bool) { return nil, false }, 0).(map[string]any)
	fields := slices.Sorted(maps.Keys(sound))
	// form writes the fields. marks returns the text and the file name of a field.
	form := func(what, extra string, marks func(field string) (fieldText, file string)) probe {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		for _, field := range append(slices.Clone(fields), extra) {
			if field == "" {
				continue
			}
			value, file := marks(field)
			h := textproto.MIMEHeader{"Content-Disposition": {mime.FormatMediaType("form-data", map[string]string{"name": field})}}
			if file != "" {
				h.Set("Content-Disposition", mime.FormatMediaType("form-data", map[string]string{"name": field, "filename": file}))
			}
			if p, err := w.CreatePart(h); err == nil {
				_, _ = io.WriteString(p, value)
			}
		}
		_ = w.Close()
		return probe{name: "form, " + what + " " + name, target: plain, body: b.String(), contentType: w.FormDataContentType()}
	}
	plainly := func(field string) string { return strings.Trim(fmt.Sprint(sound[field]), "[]") }
	out := []probe{
		form("every field", "", func(string) (string, string) { return text, "" }),
		form("a part that is none", "no_such_part", func(field string) (string, string) {
			if field == "no_such_part" {
				return text, ""
			}
			return plainly(field), ""
		}),
		form("names of files", "", func(field string) (string, string) { return plainly(field), text }),
	}
	for _, one := range fields {
		out = append(out, form(one, "", func(field string) (string, string) {
			if field == one {
				return text, ""
			}
			return plainly(field), ""
		}))
	}
	return out
}

// sample returns a value of a schema with all properties. mark replaces the leaves for which it returns true. depth is
// the nesting, which is limited.
func (d *Document) sample(node map[string]any, mark func(map[string]any) (any, bool), depth int) any {
	node, _ = d.resolve(node, "")
	if depth > 12 {
		return nil
	}
	c := comparison{doc: d}
	node, _ = c.withoutNull(node)
	node, _ = d.resolve(node, "")
	for _, key := range []string{"oneOf", "anyOf"} {
		if list, ok := node[key].([]any); ok && len(list) > 0 {
			first, _ := list[0].(map[string]any)
			return d.sample(first, mark, depth+1)
		}
	}
	if list, ok := node["allOf"].([]any); ok {
		out := map[string]any{}
		for _, v := range list {
			schema, _ := v.(map[string]any)
			if part, ok := d.sample(schema, mark, depth+1).(map[string]any); ok {
				maps.Copy(out, part)
			}
		}
		return out
	}
	if properties, ok := node["properties"].(map[string]any); ok {
		out := map[string]any{}
		for name, p := range properties {
			schema, _ := p.(map[string]any)
			out[name] = d.sample(schema, mark, depth+1)
		}
		return out
	}
	if items, ok := node["items"].(map[string]any); ok {
		return []any{d.sample(items, mark, depth+1)}
	}
	if v, ok := mark(node); ok {
		return v
	}
	return leafOf(node)
}

// leafOf returns a valid value of a schema that has no properties and no items.
func leafOf(node map[string]any) any {
	for _, key := range []string{"enum", "examples"} {
		if list, ok := node[key].([]any); ok && len(list) > 0 {
			return list[0]
		}
	}
	switch node["type"] {
	case "boolean":
		return true
	case "integer", "number":
		if low, ok := node["minimum"]; ok {
			return low
		}
		return 1
	case "object":
		return map[string]any{}
	case "array":
		return []any{}
	}
	switch node["format"] {
	case "uuid":
		return "6f1c0b52-0000-4000-8000-000000000002"
	case "date":
		return "2026-03-01"
	case "date-time":
		return "2026-03-01T07:00:00+00:00"
	}
	return "x"
}
