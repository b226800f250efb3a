package reference

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// document is the part of an OpenAPI 3.1 document that the pages show.
type document struct {
	Info struct {
		Title       string `json:"title"`
		Version     string `json:"version"`
		Description string `json:"description"`
	} `json:"info"`
	Tags []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"tags"`
	Paths      map[string]map[string]operation `json:"paths"`
	Webhooks   map[string]map[string]operation `json:"webhooks"`
	Security   []map[string][]string           `json:"security"`
	Components struct {
		Schemas         map[string]schema    `json:"schemas"`
		Parameters      map[string]parameter `json:"parameters"`
		Responses       map[string]body      `json:"responses"`
		SecuritySchemes map[string]struct {
			Type   string `json:"type"`
			In     string `json:"in"`
			Name   string `json:"name"`
			Scheme string `json:"scheme"`
		} `json:"securitySchemes"`
	} `json:"components"`
}

type operation struct {
	ID          string                `json:"operationId"`
	Tags        []string              `json:"tags"`
	Summary     string                `json:"summary"`
	Description string                `json:"description"`
	Security    []map[string][]string `json:"security"`
	Parameters  []parameter           `json:"parameters"`
	Body        *body                 `json:"requestBody"`
	Responses   map[string]body       `json:"responses"`
}

type parameter struct {
	Ref         string `json:"$ref"`
	Name        string `json:"name"`
	In          string `json:"in"`
	Required    bool   `json:"required"`
	Description string `json:"description"`
	Schema      schema `json:"schema"`
}

type body struct {
	Ref         string `json:"$ref"`
	Description string `json:"description"`
	Content     map[string]struct {
		Schema  schema          `json:"schema"`
		Example json.RawMessage `json:"example"`
	} `json:"content"`
}

// schema is a JSON Schema. The schemas true and false have no fields.
type schema struct {
	Ref         string            `json:"$ref"`
	Type        any               `json:"type"`
	Format      string            `json:"format"`
	Description string            `json:"description"`
	Enum        []any             `json:"enum"`
	Const       any               `json:"const"`
	Default     any               `json:"default"`
	Minimum     *float64          `json:"minimum"`
	Maximum     *float64          `json:"maximum"`
	MinLength   *int              `json:"minLength"`
	MaxLength   *int              `json:"maxLength"`
	Properties  map[string]schema `json:"properties"`
	Required    []string          `json:"required"`
	Items       *schema           `json:"items"`
	AllOf       []schema          `json:"allOf"`
	AnyOf       []schema          `json:"anyOf"`
	OneOf       []schema          `json:"oneOf"`
	More        *schema           `json:"additionalProperties"`
}

// UnmarshalJSON also accepts the schemas true and false.
func (s *schema) UnmarshalJSON(b []byte) error {
	if string(b) == "true" || string(b) == "false" {
		*s = schema{}
		return nil
	}
	type plain schema
	return json.Unmarshal(b, (*plain)(s))
}

// Values of the templates.
type (
	// tag is an OpenAPI tag with its operations.
	tag struct {
		Name, Description string
		Operations        []call
	}
	// call is an operation or a webhook of the contract.
	call struct {
		ID, Method, Path, Summary, Description, Access string
		// Curl is a curl command that calls the operation; empty for an event.
		Curl       string
		Parameters []field
		Body       []media
		Answers    []reply
	}
	reply struct {
		Status, Description string
		Body                []media
	}
	media struct {
		Type    string
		Shape   shape
		Example string
	}
	// shape describes a JSON type on a page: its name in words, and the fields of an object.
	shape struct {
		Words  []word
		Fields []field
	}
	// word is a piece of the description of a type. If Link is not empty, it is the named type to which the piece
	// links.
	word  struct{ Text, Link string }
	field struct {
		Name, In, Description string
		Required              bool
		Words                 []word
	}
	// kind is a named schema of the contract.
	kind struct {
		Name, Description string
		Shape             shape
	}
)

var methods = []string{"get", "post", "put", "patch", "delete"}

// tags returns the operations by tag, sorted by the name of the tag. Operations without a tag have the tag "other".
func (d *document) tags() []tag {
	by := map[string]*tag{}
	var names []string
	for _, t := range d.Tags {
		by[t.Name] = &tag{Name: t.Name, Description: t.Description}
		names = append(names, t.Name)
	}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range methods {
			op, ok := d.Paths[path][method]
			if !ok {
				continue
			}
			name := "other"
			if len(op.Tags) > 0 {
				name = op.Tags[0]
			}
			if by[name] == nil {
				by[name] = &tag{Name: name}
				names = append(names, name)
			}
			c := d.call(method, path, op)
			c.Curl = d.curl(method, path, op)
			by[name].Operations = append(by[name].Operations, c)
		}
	}
	slices.Sort(names)
	var out []tag
	for _, name := range names {
		if len(by[name].Operations) > 0 {
			out = append(out, *by[name])
		}
	}
	return out
}

func (d *document) call(method, path string, op operation) call {
	c := call{ID: op.ID, Method: strings.ToUpper(method), Path: path, Summary: op.Summary, Description: op.Description, Access: access(d.securityOf(op))}
	for _, p := range op.Parameters {
		p = d.parameter(p)
		c.Parameters = append(c.Parameters, field{Name: p.Name, In: p.In, Required: p.Required, Description: cmp.Or(p.Description, p.Schema.Description), Words: words(p.Schema)})
	}
	if op.Body != nil {
		c.Body = medias(*op.Body)
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		r := op.Responses[status]
		if r.Ref != "" {
			r = d.Components.Responses[last(r.Ref)]
		}
		c.Answers = append(c.Answers, reply{Status: status, Description: r.Description, Body: medias(r)})
	}
	return c
}

func (d *document) parameter(p parameter) parameter {
	if p.Ref != "" {
		return d.Components.Parameters[last(p.Ref)]
	}
	return p
}

func (d *document) securityOf(op operation) []map[string][]string {
	if op.Security != nil {
		return op.Security
	}
	return d.Security
}

// access returns the names of the credentials that an operation requires, with their scopes.
func access(security []map[string][]string) string {
	var out []string
	for _, one := range security {
		for _, name := range slices.Sorted(maps.Keys(one)) {
			text := name
			if scopes := one[name]; len(scopes) > 0 {
				text += " (" + strings.Join(scopes, ", ") + ")"
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, " or ")
}

func medias(b body) (out []media) {
	for _, name := range slices.Sorted(maps.Keys(b.Content)) {
		c := b.Content[name]
		m := media{Type: name, Shape: shapeOf(c.Schema)}
		if len(c.Example) > 0 {
			if text, err := json.MarshalIndent(c.Example, "", "  "); err == nil {
				m.Example = string(text)
			}
		}
		out = append(out, m)
	}
	return out
}

// events returns the webhooks of the contract, sorted by event type.
func (d *document) events() (out []call) {
	for _, name := range slices.Sorted(maps.Keys(d.Webhooks)) {
		for method, op := range d.Webhooks[name] {
			c := d.call(method, name, op)
			c.ID = name
			out = append(out, c)
		}
	}
	return out
}

// types returns the named schemas of the contract, sorted by name.
func (d *document) types() (out []kind) {
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		out = append(out, kind{Name: name, Description: s.Description, Shape: shapeOf(s)})
	}
	return out
}

func shapeOf(s schema) shape {
	out := shape{Words: words(s)}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		out.Fields = append(out.Fields, field{Name: name, Required: slices.Contains(s.Required, name), Description: p.Description, Words: words(p)})
	}
	return out
}

func last(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// words describes the type of a schema in words, with links to named types.
func words(s schema) []word {
	if s.Ref != "" {
		return []word{{Text: last(s.Ref), Link: last(s.Ref)}}
	}
	for _, of := range []struct {
		list []schema
		with string
	}{{s.OneOf, " or "}, {s.AnyOf, " or "}, {s.AllOf, " and "}} {
		if len(of.list) > 0 {
			var out []word
			for i, one := range of.list {
				if i > 0 {
					out = append(out, word{Text: of.with})
				}
				out = append(out, words(one)...)
			}
			return out
		}
	}
	switch {
	case s.Const != nil:
		return []word{{Text: literal(s.Const)}}
	case len(s.Enum) > 0:
		texts := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			texts[i] = literal(v)
		}
		return []word{{Text: "one of " + strings.Join(texts, ", ")}}
	case s.Items != nil:
		return append([]word{{Text: "list of "}}, words(*s.Items)...)
	case s.More != nil && len(s.Properties) == 0 && (s.More.Ref != "" || s.More.Type != nil):
		return append([]word{{Text: "object with values of "}}, words(*s.More)...)
	}
	return []word{{Text: plain(s)}}
}

// plain describes the type of a schema without a reference or element types: its JSON type, format and limits.
func plain(s schema) string {
	text := "any"
	switch t := s.Type.(type) {
	case string:
		text = t
	case []any:
		var names []string
		for _, name := range t {
			names = append(names, fmt.Sprint(name))
		}
		text = strings.Join(names, " or ")
	}
	if s.Format != "" {
		text += " (" + s.Format + ")"
	}
	bound := func(name string, v *float64) {
		if v != nil {
			text += fmt.Sprintf(", %s %g", name, *v)
		}
	}
	length := func(name string, v *int) {
		if v != nil {
			text += fmt.Sprintf(", %s %d characters", name, *v)
		}
	}
	bound("at least", s.Minimum)
	bound("at most", s.Maximum)
	length("at least", s.MinLength)
	length("at most", s.MaxLength)
	if s.Default != nil {
		text += ", default " + literal(s.Default)
	}
	return text
}

func literal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
