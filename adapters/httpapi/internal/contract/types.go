package contract

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"github.com/healthlab-dev/healthlab"
)

// Pair names a Go type and the schema that it must match.
type Pair struct {
	// Schema is the name of the schema under #/components/schemas.
	Schema string
	// Value is a value of the Go type.
	Value any
	// Input is true for a type that is decoded from requests: a field is required unless it is a pointer, a wire.Opt,
	// or has omitempty or omitzero. The words opt, in and required of its wire tag override this. In a type that is
	// encoded in answers, a field is required unless it has omitempty or omitzero.
	Input bool
	// Enums maps the keys of fields with an enumeration, such as status or events.status, to their values in Go. The
	// schema must list the same values, under enum, or under x-extensible-enum where values may be added.
	Enums map[string][]string
}

// CheckTypes compares Go types with schemas: keys, required, null, types and enumerations. It returns every difference,
// each beginning with the key, such as "User.created_on: …".
func CheckTypes(doc []byte, pairs ...Pair) ([]string, error) {
	d, err := Read(doc)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range pairs {
		c := &comparison{doc: d, pair: p, seen: map[reflect.Type]bool{}, enums: maps.Clone(p.Enums)}
		node := d.at("/components/schemas/" + p.Schema)
		if node == nil {
			out = append(out, p.Schema+": there is no such schema")
			continue
		}
		c.value(reflect.TypeOf(p.Value), node, "")
		for key := range c.enums {
			c.reportf(key, "is listed as an enumeration, and is none")
		}
		out = append(out, c.found...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

type comparison struct {
	doc   *Document
	pair  Pair
	seen  map[reflect.Type]bool
	enums map[string][]string
	found []string
}

func (c *comparison) reportf(at, format string, args ...any) {
	if at != "" {
		at = "." + at
	}
	c.found = append(c.found, c.pair.Schema+at+": "+fmt.Sprintf(format, args...))
}

// withoutNull returns a schema without null, and whether the schema allowed null.
func (c *comparison) withoutNull(node map[string]any) (map[string]any, bool) {
	if list, ok := node["type"].([]any); ok && slices.Contains(list, any("null")) {
		rest := slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == "null" })
		node = maps.Clone(node)
		node["type"] = rest
		if len(rest) == 1 {
			node["type"] = rest[0]
		}
		return node, true
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		list, _ := node[key].([]any)
		at := slices.IndexFunc(list, func(v any) bool {
			m, ok := v.(map[string]any)
			return ok && m["type"] == "null"
		})
		if at < 0 {
			continue
		}
		rest := slices.Delete(slices.Clone(list), at, at+1)
		if only, ok := rest[0].(map[string]any); ok && len(rest) == 1 {
			return only, true
		}
		node = maps.Clone(node)
		node[key] = rest
		return node, true
	}
	return node, false
}

var (
	jsonType = reflect.TypeFor[json.Marshaler]()
	ownType  = reflect.TypeFor[json.Unmarshaler]()
	textType = reflect.TypeFor[encoding.TextMarshaler]()
)

// value compares a Go type with a schema, without null. at is the key of the value, such as events.status.
func (c *comparison) value(t reflect.Type, node map[string]any, at string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	node, _ = c.doc.resolve(node, "")
	c.enum(node, at)
	want, format := wireType(t)
	switch {
	case want == "":
		return // a type that writes itself, or free JSON
	case c.pair.Input && format == "" && t.Kind() == reflect.Struct && reflect.PointerTo(t).Implements(ownType):
		return // a type that reads itself
	case node["type"] != want:
		c.reportf(at, "is %v in the contract and %s in Go", node["type"], want)
		return
	case format != "" && node["format"] != format:
		c.reportf(at, "has no format %s", format)
	}
	switch {
	case want == "array":
		items, _ := node["items"].(map[string]any)
		if items == nil {
			c.reportf(at, "does not say what is in the list")
			return
		}
		items, nullable := c.withoutNull(items)
		if pointer := t.Elem().Kind() == reflect.Pointer; pointer != nullable {
			c.reportf(at, "elements: nullable is %v in the contract and %v in Go", nullable, pointer)
		}
		c.value(t.Elem(), items, at)
	case want == "object" && t.Kind() == reflect.Map:
		if values, ok := node["additionalProperties"].(map[string]any); ok {
			values, nullable := c.withoutNull(values)
			if pointer := t.Elem().Kind() == reflect.Pointer; pointer != nullable {
				c.reportf(at, "values: nullable is %v in the contract and %v in Go", nullable, pointer)
			}
			c.value(t.Elem(), values, at)
		} else if node["additionalProperties"] == false {
			c.reportf(at, "is a map in Go, and takes no keys in the contract")
		}
	case want == "object":
		c.object(t, node, at)
	}
}

// wireType returns the JSON type and format of a Go type. The type is empty for free JSON and for types that encode
// themselves in an unknown form.
func wireType(t reflect.Type) (name, format string) {
	switch t {
	case reflect.TypeFor[healthlab.Time]():
		return "string", "date-time"
	case reflect.TypeFor[healthlab.Date]():
		return "string", "date"
	case reflect.TypeFor[uuid.UUID]():
		return "string", "uuid"
	case reflect.TypeFor[decimal.Decimal](), reflect.TypeFor[json.Number]():
		return "number", ""
	}
	pointer := reflect.PointerTo(t)
	switch {
	case t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).Type == reflect.TypeFor[uuid.UUID]():
		return "string", "uuid"
	case pointer.Implements(jsonType):
		return "", ""
	case pointer.Implements(textType):
		return "string", ""
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean", ""
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "integer", ""
	case reflect.Float32, reflect.Float64:
		return "number", ""
	case reflect.String:
		return "string", ""
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "string", ""
		}
		return "array", ""
	case reflect.Array:
		return "array", ""
	case reflect.Map, reflect.Struct:
		return "object", ""
	}
	return "", ""
}

func (c *comparison) enum(node map[string]any, at string) {
	want, ok := c.enums[at]
	if !ok {
		return
	}
	list, _ := node["enum"].([]any)
	if list == nil {
		list, _ = node["x-extensible-enum"].([]any)
	}
	if list == nil {
		return // perhaps on the elements of the list
	}
	delete(c.enums, at)
	var have []string
	for _, v := range list {
		have = append(have, fmt.Sprint(v))
	}
	want = slices.Sorted(slices.Values(want))
	slices.Sort(have)
	if !slices.Equal(want, have) {
		c.reportf(at, "has the values %v in the contract and %v in Go", have, want)
	}
}

func (c *comparison) object(t reflect.Type, node map[string]any, at string) {
	if c.seen[t] {
		return
	}
	c.seen[t] = true
	defer delete(c.seen, t)
	if node["additionalProperties"] != false {
		c.reportf(at, "does not say additionalProperties: false")
	}
	properties, _ := node["properties"].(map[string]any)
	required := map[string]bool{}
	list, _ := node["required"].([]any)
	for _, v := range list {
		required[fmt.Sprint(v)] = true
	}
	known := map[string]bool{}
	for _, f := range fieldsOf(t) {
		if f.has("out") && c.pair.Input || f.has("in") && !c.pair.Input {
			continue
		}
		known[f.name] = true
		under := strings.TrimPrefix(at+"."+f.name, ".")
		schema, ok := properties[f.name].(map[string]any)
		if !ok {
			c.reportf(under, "is not in the contract")
			continue
		}
		if want := f.required(c.pair.Input); want != required[f.name] {
			c.reportf(under, "required is %v in the contract and %v in Go", required[f.name], want)
		}
		schema, _ = c.doc.resolve(schema, "")
		schema, nullable := c.withoutNull(schema)
		if want, sure := f.nullable(c.pair.Input); sure && want != nullable {
			c.reportf(under, "nullable is %v in the contract and %v in Go", nullable, want)
		}
		c.value(f.valueType(), schema, under)
	}
	for name := range properties {
		if !known[name] {
			c.reportf(strings.TrimPrefix(at+"."+name, "."), "is not in Go")
		}
	}
	for name := range required {
		if properties[name] == nil {
			c.reportf(strings.TrimPrefix(at+"."+name, "."), "is required and has no schema")
		}
	}
}

// goField is one key of a Go struct.
type goField struct {
	name string
	t    reflect.Type
	omit bool
	wire []string
}

func fieldsOf(t reflect.Type) []goField {
	var out []goField
	for _, sf := range reflect.VisibleFields(t) {
		tag := sf.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" || !sf.IsExported() || (sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct) {
			continue
		}
		if name == "" {
			name = sf.Name
		}
		words := strings.Split(options, ",")
		out = append(out, goField{
			name: name, t: sf.Type, omit: slices.Contains(words, "omitempty") || slices.Contains(words, "omitzero"),
			wire: strings.Split(sf.Tag.Get("wire"), ","),
		})
	}
	return out
}

func (f goField) has(word string) bool { return slices.Contains(f.wire, word) }

func (f goField) isOpt() bool {
	return f.t.Kind() == reflect.Struct && strings.HasPrefix(f.t.Name(), "Opt[") && f.t.NumField() == 3
}

func (f goField) valueType() reflect.Type {
	if f.isOpt() {
		return f.t.Field(0).Type
	}
	return f.t
}

func (f goField) required(input bool) bool {
	if !input {
		return !f.omit
	}
	if f.has("opt") || f.has("in") {
		return false
	}
	return f.has("required") || (!f.omit && !f.isOpt() && f.t.Kind() != reflect.Pointer)
}

// nullable reports whether the schema of a field should allow null. sure is false if either is right: for optional
// fields of answers, and for types with their own JSON form.
func (f goField) nullable(input bool) (want, sure bool) {
	pointer := f.t.Kind() == reflect.Pointer
	if input {
		free := f.t.Kind() == reflect.Interface || f.t == reflect.TypeFor[json.RawMessage]()
		can := pointer || f.isOpt() || f.has("nullable") || f.has("opt")
		return can && !f.has("notnull"), !free
	}
	if f.isOpt() {
		return true, true
	}
	name, _ := wireType(f.valueType())
	return (pointer || f.has("nullable")) && !f.has("filled"), pointer && !f.omit || !pointer && name != ""
}

// NilCollections returns the paths in v, such as data[0].codes, at which a slice or map is nil and would be encoded as
// null. Fields that are omitted are skipped.
func NilCollections(v any) []string {
	var out []string
	nilIn(reflect.ValueOf(v), "", &out)
	return out
}

func nilIn(v reflect.Value, at string, out *[]string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			nilIn(v.Elem(), at, out)
		}
	case reflect.Slice, reflect.Map:
		if v.IsNil() && v.Type() != reflect.TypeFor[json.RawMessage]() {
			*out = append(*out, at)
			return
		}
		if v.Kind() == reflect.Map {
			for it := v.MapRange(); it.Next(); {
				nilIn(it.Value(), at, out)
			}
			return
		}
		for i := range v.Len() {
			nilIn(v.Index(i), fmt.Sprintf("%s[%d]", at, i), out)
		}
	case reflect.Struct:
		if name, _ := wireType(v.Type()); name != "object" {
			return
		}
		for _, f := range fieldsOf(v.Type()) {
			for _, sf := range reflect.VisibleFields(v.Type()) {
				name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
				if name != f.name && (name != "" || sf.Name != f.name) {
					continue
				}
				member := v.FieldByIndex(sf.Index)
				if !f.omit || !member.IsZero() {
					nilIn(member, strings.TrimPrefix(at+"."+f.name, "."), out)
				}
			}
		}
	}
}
