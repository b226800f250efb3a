package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// GeneratorFaults returns the constructs of a document that the Go generators oapi-codegen 2.8 and ogen 1.24 refuse, or
// for which their code does not compile. Each begins with a JSON pointer, such as "/components/schemas/User: …". It
// follows the operations and webhooks of the document, not the callbacks, which ogen ignores.
func GeneratorFaults(doc []byte) ([]string, error) {
	d, err := Read(doc)
	if err != nil {
		return nil, err
	}
	g := generators{doc: d, seen: map[string]bool{}}
	for _, op := range d.ops {
		g.operation(op.node, op.pointer)
	}
	webhooks, _ := d.tree["webhooks"].(map[string]any)
	for name, item := range webhooks {
		methods, _ := item.(map[string]any)
		for method, op := range methods {
			node, _ := op.(map[string]any)
			g.operation(node, "/webhooks/"+escape(name)+"/"+method)
		}
	}
	g.components()
	g.unreached()
	slices.Sort(g.found)
	return slices.Compact(g.found), nil
}

type generators struct {
	doc   *Document
	seen  map[string]bool // JSON pointers of the components that were checked
	found []string
}

func (g *generators) reportf(at, format string, args ...any) {
	g.found = append(g.found, at+": "+fmt.Sprintf(format, args...))
}

func (g *generators) operation(op map[string]any, at string) {
	list, _ := op["parameters"].([]any)
	for i, item := range list {
		p, _ := item.(map[string]any)
		p, pointer := g.doc.resolve(p, fmt.Sprintf("%s/parameters/%d", at, i))
		g.schema(p["schema"], pointer+"/schema")
	}
	if body, ok := op["requestBody"].(map[string]any); ok {
		g.content(g.doc.resolve(body, at+"/requestBody"))
	}
	responses, _ := op["responses"].(map[string]any)
	for status, r := range responses {
		node, _ := r.(map[string]any)
		g.content(g.doc.resolve(node, at+"/responses/"+status))
	}
}

// content checks the media types of a body, where at is its JSON pointer. Generators support JSON, text and forms.
// Other types need a schema of format binary.
func (g *generators) content(body map[string]any, at string) {
	types, _ := body["content"].(map[string]any)
	for name, v := range types {
		at := at + "/content/" + escape(name)
		media, _ := v.(map[string]any)
		parts, _ := media["encoding"].(map[string]any)
		for part, v := range parts {
			if e, _ := v.(map[string]any); e["contentType"] != nil && e["contentType"] != "application/json" {
				g.reportf(at, "the content type of part %s is not application/json", part)
			}
		}
		schema, ok := media["schema"]
		if !ok {
			continue
		}
		g.schema(schema, at+"/schema")
		switch name {
		case "application/json", "text/plain", "multipart/form-data":
		default:
			if node, _ := schema.(map[string]any); node["type"] != "string" || node["format"] != "binary" {
				g.reportf(at, "the schema is not a string of format binary")
			}
		}
	}
}

// schema checks a schema and the schemas inside it. at is its JSON pointer.
func (g *generators) schema(v any, at string) {
	node, ok := v.(map[string]any)
	if !ok {
		if v != nil {
			g.reportf(at, "a schema is %v, not an object", v)
		}
		return
	}
	if ref, ok := node["$ref"].(string); ok {
		at = strings.TrimPrefix(ref, "#")
		if g.seen[at] {
			return
		}
		g.seen[at] = true
		if g.contains(g.doc.at(at), at, map[string]bool{}) {
			g.reportf(at, "a value contains another one of itself")
		}
		g.schema(g.doc.at(at), at)
		return
	}
	if types, ok := node["type"].([]any); ok {
		if rest := slices.DeleteFunc(slices.Clone(types), func(t any) bool { return t == "null" }); len(rest) > 1 {
			g.reportf(at, "the type is one of %v: use anyOf", rest)
		}
	}
	for _, key := range []string{"prefixItems", "exclusiveMinimum", "exclusiveMaximum"} {
		if node[key] != nil {
			g.reportf(at, "has %s", key)
		}
	}
	g.union("oneOf", node, at)
	g.union("anyOf", node, at)
	g.names(node, at)
	properties, _ := node["properties"].(map[string]any)
	for name, p := range properties {
		g.schema(p, at+"/properties/"+escape(name))
	}
	g.schema(node["items"], at+"/items")
	if more, ok := node["additionalProperties"].(map[string]any); ok {
		g.schema(more, at+"/additionalProperties")
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		for i, v := range g.branches(node, key) {
			g.schema(v, fmt.Sprintf("%s/%s/%d", at, key, i))
		}
	}
}

func (g *generators) branches(node map[string]any, key string) []any {
	list, _ := node[key].([]any)
	return list
}

// union checks that a value shows to which branch of oneOf or anyOf (key) it belongs: by its JSON type, by a
// discriminator, or under oneOf by a property that no other branch has.
func (g *generators) union(key string, node map[string]any, at string) {
	var branches []map[string]any
	refs, types, count := true, map[any]bool{}, map[string]int{}
	for _, v := range g.branches(node, key) {
		branch, _ := v.(map[string]any)
		if branch["type"] == "null" {
			continue
		}
		refs = refs && branch["$ref"] != nil
		branch, _ = g.doc.resolve(branch, "")
		branches = append(branches, branch)
		t := branch["type"]
		if t == "integer" {
			t = "number"
		}
		if name, ok := t.(string); ok {
			types[name] = true
		}
		properties, _ := branch["properties"].(map[string]any)
		for name := range properties {
			count[name]++
		}
	}
	discriminator, _ := node["discriminator"].(map[string]any)
	mapping, _ := discriminator["mapping"].(map[string]any)
	switch {
	case len(branches) < 2, len(types) == len(branches), refs && len(mapping) >= len(branches):
		return
	case key == "oneOf":
		alike := slices.ContainsFunc(branches, func(branch map[string]any) bool {
			properties, _ := branch["properties"].(map[string]any)
			for name := range properties {
				if count[name] == 1 {
					return false
				}
			}
			return true
		})
		if !alike {
			return
		}
	}
	g.reportf(at, "a value does not tell its branch of %s", key)
}

// names checks that the properties of an object get different names in Go.
func (g *generators) names(node map[string]any, at string) {
	properties, _ := node["properties"].(map[string]any)
	taken := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		inGo := name
		if p, _ := properties[name].(map[string]any); p["x-go-name"] != nil {
			inGo = fmt.Sprint(p["x-go-name"])
		}
		inGo = strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(inGo))
		if other, ok := taken[inGo]; ok {
			g.reportf(at, "%s and %s have one name in Go: give one an x-go-name", other, name)
		}
		taken[inGo] = name
	}
}

// contains reports whether the generated Go type of a schema contains that of the component with the JSON pointer
// target. Lists, maps, optional and nullable members do not count. seen holds the components that were searched.
func (g *generators) contains(node map[string]any, target string, seen map[string]bool) bool {
	member := func(v any) bool {
		node, _ := v.(map[string]any)
		c := comparison{doc: g.doc}
		node, nullable := c.withoutNull(node)
		if nullable {
			return false
		}
		if ref, ok := node["$ref"].(string); ok {
			at := strings.TrimPrefix(ref, "#")
			if at == target {
				return true
			}
			if seen[at] {
				return false
			}
			seen[at] = true
			node = g.doc.at(at)
		}
		return g.contains(node, target, seen)
	}
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	for _, name := range required {
		if member(properties[fmt.Sprint(name)]) {
			return true
		}
	}
	// The generated type of a union contains all branches.
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		if slices.ContainsFunc(g.branches(node, key), member) {
			return true
		}
	}
	return false
}

// components checks that components of different kinds have different names, because all become types of one package.
func (g *generators) components() {
	components, _ := g.doc.tree["components"].(map[string]any)
	taken := map[string]string{}
	for _, kind := range slices.Sorted(maps.Keys(components)) {
		members, _ := components[kind].(map[string]any)
		for name := range members {
			if other, ok := taken[name]; ok {
				g.reportf("/components/"+kind+"/"+name, "a component in %s has the same name", other)
			}
			taken[name] = kind
		}
	}
}

// unreached checks that operations refer to every component that webhooks use, because oapi-codegen omits components
// that no operation uses.
func (g *generators) unreached() {
	kept, needed := map[string]bool{}, map[string]bool{}
	g.doc.refs(g.doc.tree["paths"], kept)
	g.doc.refs(g.doc.tree["webhooks"], needed)
	for ref := range needed {
		if !kept[ref] {
			g.reportf(strings.TrimPrefix(ref, "#"), "webhooks refer to it and no operation does")
		}
	}
}

// refs adds the references in v, and those in their targets, to into.
func (d *Document) refs(v any, into map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, member := range v {
			d.refs(member, into)
		}
	case map[string]any:
		for key, member := range v {
			ref, ok := member.(string)
			switch {
			case !ok:
				d.refs(member, into)
			case key == "$ref" && !into[ref]:
				into[ref] = true
				d.refs(d.at(strings.TrimPrefix(ref, "#")), into)
			}
		}
	}
}
