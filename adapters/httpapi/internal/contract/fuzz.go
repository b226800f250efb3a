package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// unclear is the text of a problem that does not say which form a value must have. No field of a request body may cause
// it.
const unclear = "does not have the form that this field asks for"

// Fuzz sends n random requests made from the schemas of a contract. It returns the faults that it finds: a panic, a
// status of 500 or more except 501, an answer that does not match the contract, or an error that does not say what is
// expected. Most values are valid; some are missing, null, of another type, extreme or repeated. The same seed makes
// the same requests.
func Fuzz(ctx context.Context, h http.Handler, p Probes, seed uint64, n int) ([]string, error) {
	d, err := Read(p.Document)
	if err != nil {
		return nil, err
	}
	f := fuzzer{doc: d, probes: p, r: rand.New(rand.NewPCG(seed, 1))}
	var out []string
	for i := range n {
		op := d.ops[f.r.IntN(len(d.ops))]
		pr := f.request(op)
		reply, panicked := pr.run(ctx, h, op, p)
		switch {
		case panicked != "":
			out = append(out, fmt.Sprintf("%d %s: panicked with %s: %s %s", i, op.ID, panicked, pr.target, pr.body))
		case reply.Status >= http.StatusInternalServerError && reply.Status != http.StatusNotImplemented:
			out = append(out, fmt.Sprintf("%d %s: %d: %s %s: %s", i, op.ID, reply.Status, pr.target, pr.body, p.Logs.Take()))
		case strings.Contains(string(reply.Body), unclear):
			out = append(out, fmt.Sprintf("%d %s: an error that does not say what is expected: %s %s", i, op.ID, pr.body, reply.Body))
		default:
			if err := d.checkReply(op, reply); err != nil {
				out = append(out, fmt.Sprintf("%d %s %s: %v", i, pr.target, pr.body, err))
			}
		}
		p.Logs.Take()
	}
	return out, nil
}

type fuzzer struct {
	doc    *Document
	probes Probes
	r      *rand.Rand
	calm   bool // makes only requests that the schemas allow
}

func (f *fuzzer) oneIn(n int) bool { return f.r.IntN(n) == 0 }

func (f *fuzzer) strange(n int) bool { return !f.calm && f.oneIn(n) }

// known returns the value of Probes.Path for a parameter or property name. For a list whose name is the plural of such
// a name, it returns a list with that value. It returns false if there is no value, and sometimes at random unless
// f.calm is set.
func (f *fuzzer) known(name string, schema map[string]any) (any, bool) {
	if v := f.probes.Path[name]; v != "" {
		return v, !f.strange(8)
	}
	single, plural := strings.CutSuffix(name, "s")
	if v := f.probes.Path[single]; plural && v != "" && f.doc.isList(schema) {
		return []any{v}, !f.strange(8)
	}
	return nil, false
}

// isList reports whether a schema allows lists, apart from null.
func (d *Document) isList(schema map[string]any) bool {
	node, _ := d.resolve(schema, "")
	c := comparison{doc: d}
	node, _ = c.withoutNull(node)
	node, _ = d.resolve(node, "")
	return node["items"] != nil
}

func pick[T any](f *fuzzer, list []T) T { return list[f.r.IntN(len(list))] }

// request returns a random request of an operation.
func (f *fuzzer) request(op *Operation) probe {
	var path strings.Builder
	for _, part := range op.parts {
		name := strings.Trim(part, "{}")
		switch known := f.probes.Path[name]; {
		case !isParam(part):
			path.WriteString("/" + part)
		case known != "" && !f.strange(10):
			path.WriteString("/" + url.PathEscape(known))
		default:
			path.WriteString("/" + url.PathEscape(f.unknown(name)))
		}
	}
	query, header := url.Values{}, http.Header{}
	for _, p := range f.doc.parameters(op) {
		if p.In == "path" || !p.Required && f.oneIn(2) || f.strange(20) {
			continue
		}
		for {
			value, ok := f.known(p.Name, p.Schema)
			if !ok {
				value = f.value(p.Schema, 0)
			}
			text := plainText(value)
			if p.In == "header" {
				header.Add(p.Name, strings.ReplaceAll(text, "\x00", ""))
			} else {
				query.Add(p.Name, text)
			}
			if !f.strange(8) {
				break
			}
		}
	}
	pr := probe{target: path.String(), header: header}
	if len(query) > 0 {
		pr.target += "?" + query.Encode()
	}
	body, _ := op.node["requestBody"].(map[string]any)
	body, pointer := f.doc.resolve(body, op.pointer+"/requestBody")
	if schema := content(body, pointer)["application/json"]; schema != "" && !f.strange(30) {
		if b, err := json.Marshal(f.value(f.doc.at(schema), 0)); err == nil {
			pr.body, pr.contentType = string(b), "application/json"
		}
	}
	return pr
}

func (f *fuzzer) unknown(name string) string {
	// An empty path segment would change the path.
	if f.calm && strings.HasSuffix(name, "_id") {
		return "6f1c0b52-0000-4000-8000-000000000001"
	}
	return "x" + fmt.Sprint(f.unusualValue())
}

// plainText returns a value as the text of a query parameter or header. Of a list it returns the first element.
func plainText(v any) string {
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// unusualValue returns a value that few schemas accept.
func (f *fuzzer) unusualValue() any {
	return pick(f, []any{
		nil, true, "", " ", "\x00", "x", "é", strings.Repeat("a", 300), strings.Repeat("9", 40), "2147483648", "-1", "0", "1e400", "NaN",
		"2026-02-30", "0000-00-00", "9999-12-31T23:59:59+14:00", "1899-12-31", "2026-03-01T07:00:00", "00000000-0000-0000-0000-000000000000",
		"6f1c0b52-0000-4000-8000-000000000001", json.Number("2147483648"), json.Number("-9223372036854775808"), json.Number("1e308"), json.Number("0.1"),
		-1, 0, []any{}, []any{nil}, map[string]any{}, map[string]any{"": nil}, []any{map[string]any{}},
	})
}

// value returns a random value of a schema. depth is the nesting, which is limited.
func (f *fuzzer) value(node map[string]any, depth int) any {
	node, _ = f.doc.resolve(node, "")
	if depth > 12 || f.strange(40) {
		return f.unusualValue()
	}
	c := comparison{doc: f.doc}
	sound, nullable := c.withoutNull(node)
	if nullable && f.oneIn(6) {
		return nil
	}
	node, _ = f.doc.resolve(sound, "")
	for _, key := range []string{"oneOf", "anyOf"} {
		if list, ok := node[key].([]any); ok && len(list) > 0 {
			schema, _ := pick(f, list).(map[string]any)
			return f.value(schema, depth+1)
		}
	}
	if list, ok := node["allOf"].([]any); ok {
		out := map[string]any{}
		for _, v := range list {
			schema, _ := v.(map[string]any)
			if part, ok := f.value(schema, depth+1).(map[string]any); ok {
				maps.Copy(out, part)
			}
		}
		return out
	}
	if properties, ok := node["properties"].(map[string]any); ok {
		return f.object(node, properties, depth)
	}
	if items, ok := node["items"].(map[string]any); ok {
		out := []any{}
		for range f.r.IntN(4) {
			out = append(out, f.value(items, depth+1))
		}
		return out
	}
	for _, key := range []string{"enum", "examples"} {
		if list, ok := node[key].([]any); ok && len(list) > 0 {
			return pick(f, list)
		}
	}
	if v, ok := node["const"]; ok {
		return v
	}
	return f.leaf(node)
}

// object returns a random object with most of the required properties and half of the others.
func (f *fuzzer) object(node, properties map[string]any, depth int) any {
	required, _ := node["required"].([]any)
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		needed := slices.Contains(required, any(name))
		if needed && f.strange(30) || !needed && f.oneIn(2) {
			continue
		}
		schema, _ := properties[name].(map[string]any)
		if known, ok := f.known(name, schema); ok {
			out[name] = known
			continue
		}
		out[name] = f.value(schema, depth+1)
	}
	return out
}

// leaf returns a random value of a schema that is neither an object nor a list.
func (f *fuzzer) leaf(node map[string]any) any {
	switch node["type"] {
	case "boolean":
		return f.oneIn(2)
	case "integer":
		return pick(f, []any{0, 1, 2, 10, 100, 5000, node["minimum"], node["maximum"]})
	case "number":
		return pick(f, []any{0, 1, 0.5, 36.6, 120, 1e6, node["minimum"], node["maximum"]})
	}
	switch node["format"] {
	case "uuid":
		return "6f1c0b52-0000-4000-8000-000000000002"
	case "date":
		return pick(f, []any{"2026-03-01", "2026-03-03", "1988-03-07", "2024-02-29"})
	case "date-time":
		return pick(f, []any{"2026-03-01T07:00:00+00:00", "2026-03-03T23:59:59.999-11:00", "2026-03-01T07:00:00Z", "2026-03-29T02:30:00+01:00"})
	}
	return pick(f, []any{"x", "Ana", "55802", "MN", "US", "heartrate", "steps", "manual", "day", "mean", "2026-03-01", "ana@example.com", "+15550100", "bpm"})
}
