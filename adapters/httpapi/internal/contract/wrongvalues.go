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

// wrongValue is a text that no enumeration contains.
const wrongValue = "qz7marker9xw"

// longEnum is the largest number of allowed values that an error lists in full. For a longer enumeration an error must
// list at least three values and say where to find all.
const longEnum = 20

// WrongValues sends requests with a wrong value for each enumeration in queries and bodies. It returns the number of
// enumerations, and those whose error does not list the allowed values. Each is named by operationId and location, such
// as "create_order body.type". It skips those in except, which maps such names to reasons.
func WrongValues(ctx context.Context, h http.Handler, p Probes, except map[string]string) (tried int, found []string, err error) {
	d, err := Read(p.Document)
	if err != nil {
		return 0, nil, err
	}
	f := fuzzer{doc: d, probes: p, r: rand.New(rand.NewPCG(1, 1)), calm: true}
	for _, op := range d.ops {
		for _, e := range f.enums(op) {
			place := op.ID + " " + e.place
			if except[place] != "" {
				continue
			}
			tried++
			why := ""
			for range wrongTries { // what else is in a request may be refused before
				pr := e.request()
				reply, panicked := pr.run(ctx, h, op, p)
				if why = e.checkReply(reply, panicked); why == "" {
					break
				}
			}
			if why != "" {
				found = append(found, place+": "+why)
			}
		}
	}
	return tried, found, nil
}

// wrongTries is the largest number of requests per enumeration.
const wrongTries = 8

// enumPlace is the location of an enumeration in the requests of an operation, such as query.status or body.type.
type enumPlace struct {
	place   string
	values  []string
	request func() probe // makes a request with wrongValue at the location
}

// checkReply returns the fault of the answer to a wrong value; "" if there is none.
func (e *enumPlace) checkReply(reply *Reply, panicked string) string {
	if panicked != "" {
		return "panicked"
	}
	body := string(reply.Body)
	if strings.Contains(body, wrongValue) {
		return "the answer has the value"
	}
	if reply.Status != http.StatusUnprocessableEntity && !strings.Contains(body, `"refused_count":1`) {
		return fmt.Sprintf("%d: %.300s", reply.Status, body)
	}
	named := 0
	for _, v := range e.values {
		if strings.Contains(body, v) {
			named++
		}
	}
	if len(e.values) > longEnum {
		if named < 3 || !strings.Contains(body, "lists all") {
			return fmt.Sprintf("names %d of %d values, and not where all are: %.300s", named, len(e.values), body)
		}
		return ""
	}
	if named < len(e.values) {
		return fmt.Sprintf("names %d of %v: %.300s", named, e.values, body)
	}
	return ""
}

// enums returns the locations of enumerations in the query and the JSON body of an operation.
func (f *fuzzer) enums(op *Operation) (list []enumPlace) {
	for _, p := range f.doc.parameters(op) {
		if values := f.doc.enumOf(p.Schema); p.In == "query" && len(values) > 0 {
			list = append(list, enumPlace{"query." + p.Name, values, func() probe {
				pr := f.requiredRequest(op)
				path, query, _ := strings.Cut(pr.target, "?")
				q, _ := url.ParseQuery(query)
				q.Set(p.Name, wrongValue)
				pr.target = path + "?" + q.Encode()
				return pr
			}})
		}
	}
	body, _ := op.node["requestBody"].(map[string]any)
	body, pointer := f.doc.resolve(body, op.pointer+"/requestBody")
	schema := content(body, pointer)["application/json"]
	if schema == "" {
		return list
	}
	f.bodyEnums(f.doc.at(schema), "body", nil, func(v any) any { return v }, func(place string, values []string, make func() any) {
		list = append(list, enumPlace{place, values, func() probe {
			pr := f.requiredRequest(op)
			b, _ := json.Marshal(make())
			pr.body, pr.contentType = string(b), "application/json"
			return pr
		}})
	})
	return list
}

// requiredRequest returns a request with only the required parameters and without headers.
func (f *fuzzer) requiredRequest(op *Operation) probe {
	pr := f.request(op)
	pr.header = http.Header{}
	path, query, _ := strings.Cut(pr.target, "?")
	q, _ := url.ParseQuery(query)
	for _, p := range f.doc.parameters(op) {
		if p.In == "query" && !p.Required {
			q.Del(p.Name)
		}
	}
	pr.target = path + "?" + q.Encode()
	return pr
}

// required returns a random object with only the required properties.
func (f *fuzzer) required(node, properties map[string]any) map[string]any {
	out := map[string]any{}
	required, _ := node["required"].([]any)
	for _, v := range required {
		name, _ := v.(string)
		schema, _ := properties[name].(map[string]any)
		if known, ok := f.known(name, schema); ok {
			out[name] = known
			continue
		}
		out[name] = f.value(schema, 1)
	}
	return out
}

// enumOf returns the texts of the enumeration of a schema or of its items.
func (d *Document) enumOf(node map[string]any) (values []string) {
	node, _ = d.resolve(node, "")
	if items, ok := node["items"].(map[string]any); ok {
		return d.enumOf(items)
	}
	list, _ := node["enum"].([]any)
	for _, v := range list {
		if s, ok := v.(string); ok && s != "" {
			values = append(values, s)
		}
	}
	return values
}

// bodyEnums calls yield for each enumeration below a schema, with its location, its values, and a function that makes a
// body with wrongValue there. at is the location of the schema, and above lists the components that contain it. put
// makes a whole body from a value of the schema.
func (f *fuzzer) bodyEnums(node map[string]any, at string, above []string, put func(any) any, yield func(place string, values []string, make func() any)) {
	if ref, ok := node["$ref"].(string); ok {
		if slices.Contains(above, ref) {
			return
		}
		above = append(slices.Clone(above), ref)
	}
	node, _ = f.doc.resolve(node, "")
	if values := f.doc.enumOf(node); len(values) > 0 && node["items"] == nil {
		yield(at, values, func() any { return put(wrongValue) })
		return
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		list, _ := node[key].([]any)
		for _, v := range list {
			branch, _ := v.(map[string]any)
			f.bodyEnums(branch, at, above, put, yield)
		}
	}
	if list, ok := node["allOf"].([]any); ok {
		for _, v := range list {
			part, _ := v.(map[string]any)
			f.bodyEnums(part, at, above, func(v any) any {
				own, ok := v.(map[string]any)
				if !ok {
					return put(v)
				}
				whole, _ := f.value(node, 0).(map[string]any)
				if whole == nil {
					whole = map[string]any{}
				}
				maps.Copy(whole, own)
				return put(whole)
			}, yield)
		}
	}
	if items, ok := node["items"].(map[string]any); ok {
		f.bodyEnums(items, at+"[]", above, func(v any) any { return put([]any{v}) }, yield)
	}
	if more, ok := node["additionalProperties"].(map[string]any); ok {
		f.bodyEnums(more, at+".*", above, func(v any) any { return put(map[string]any{"acme_band": v}) }, yield)
	}
	properties, _ := node["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		schema, _ := properties[name].(map[string]any)
		f.bodyEnums(schema, at+"."+name, above, func(v any) any {
			whole := f.required(node, properties)
			whole[name] = v
			return put(whole)
		}, yield)
	}
}
