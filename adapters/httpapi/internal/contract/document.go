package contract

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Document is an OpenAPI 3.1 contract. Safe for concurrent use.
type Document struct {
	tree     map[string]any
	compiler *jsonschema.Compiler
	ops      []*Operation

	mu      sync.Mutex // guards schemas and the compiler
	schemas map[string]*jsonschema.Schema
}

// Operation is one operation of a document.
type Operation struct {
	// ID is its operationId.
	ID string
	// Method and Path are as the document spells them; the method in upper case.
	Method, Path string

	parts   []string
	pointer string
	node    map[string]any
}

const base = "contract.json"

// documents caches parsed documents by SHA-256, because parsing the contract takes longer than most tests.
var documents sync.Map

// Read parses a document, or returns the cached one of the same bytes. It is safe for concurrent use, as is the
// document.
func Read(doc []byte) (*Document, error) {
	sum := sha256.Sum256(doc)
	if d, ok := documents.Load(sum); ok {
		return d.(*Document), nil
	}
	d, err := read(doc)
	if err != nil {
		return nil, err
	}
	kept, _ := documents.LoadOrStore(sum, d)
	return kept.(*Document), nil
}

func read(doc []byte) (*Document, error) {
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return nil, fmt.Errorf("read contract: %w", err)
	}
	root, ok := tree.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("read contract: not an object")
	}
	d := &Document{tree: root, compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource(base, tree); err != nil {
		return nil, fmt.Errorf("read contract: %w", err)
	}
	paths, _ := root["paths"].(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		methods, _ := paths[path].(map[string]any)
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			node, _ := methods[method].(map[string]any)
			id, _ := node["operationId"].(string)
			d.ops = append(d.ops, &Operation{
				ID: id, Method: strings.ToUpper(method), Path: path, parts: split(path), node: node,
				pointer: "/paths/" + escape(path) + "/" + method,
			})
		}
	}
	return d, nil
}

// Operations lists the operations by path and method.
func (d *Document) Operations() []*Operation { return d.ops }

func split(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// find returns the operation of a request. Literal segments take precedence over parameters, from left to right.
func (d *Document) find(method, path string) *Operation {
	parts := split(path)
	var best *Operation
	for _, op := range d.ops {
		if op.Method == method && op.matches(parts) && (best == nil || narrower(op, best)) {
			best = op
		}
	}
	return best
}

func isParam(part string) bool { return strings.HasPrefix(part, "{") }

func (o *Operation) matches(parts []string) bool {
	if len(parts) != len(o.parts) {
		return false
	}
	for i, p := range o.parts {
		if p != parts[i] && (!isParam(p) || parts[i] == "") {
			return false
		}
	}
	return true
}

func narrower(a, b *Operation) bool {
	for i := range a.parts {
		if isParam(a.parts[i]) != isParam(b.parts[i]) {
			return isParam(b.parts[i])
		}
	}
	return false
}

// resolve follows a reference. It returns the target of node and its JSON pointer, or node and pointer if node is no
// reference.
func (d *Document) resolve(node map[string]any, pointer string) (map[string]any, string) {
	for range 10 {
		ref, ok := node["$ref"].(string)
		if !ok {
			break
		}
		pointer = strings.TrimPrefix(ref, "#")
		node = d.at(pointer)
	}
	return node, pointer
}

// at returns the object at a JSON pointer; nil if there is none.
func (d *Document) at(pointer string) map[string]any {
	node := d.tree
	for _, key := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		key = strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
		node, _ = node[key].(map[string]any)
	}
	return node
}

// schema compiles the schema at a JSON pointer, or returns the cached one.
func (d *Document) schema(pointer string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.schemas[pointer]; s != nil {
		return s, nil
	}
	fragment := (&url.URL{Fragment: pointer}).EscapedFragment()
	s, err := d.compiler.Compile(base + "#" + fragment)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	d.schemas[pointer] = s
	return s, nil
}

// validate checks a JSON text against the schema at pointer.
func (d *Document) validate(pointer string, body []byte) error {
	s, err := d.schema(pointer)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	return s.Validate(v)
}

// parameter is one parameter of an operation.
type parameter struct {
	Name     string         `json:"name"`
	In       string         `json:"in"`
	Required bool           `json:"required"`
	Schema   map[string]any `json:"schema"`
}

func (d *Document) parameters(op *Operation) []parameter {
	list, _ := op.node["parameters"].([]any)
	var out []parameter
	for _, item := range list {
		node, _ := item.(map[string]any)
		node, _ = d.resolve(node, "")
		b, err := json.Marshal(node)
		if err != nil {
			continue
		}
		var p parameter
		if json.Unmarshal(b, &p) == nil {
			out = append(out, p)
		}
	}
	return out
}

// content maps the media types of a request or response body to the JSON pointers of their schemas; empty for no
// schema. pointer is that of node.
func content(node map[string]any, pointer string) map[string]string {
	types, _ := node["content"].(map[string]any)
	out := map[string]string{}
	for name, media := range types {
		out[name] = ""
		if m, ok := media.(map[string]any); ok && m["schema"] != nil {
			out[name] = pointer + "/content/" + escape(name) + "/schema"
		}
	}
	return out
}

// CheckEvent checks the body of a webhook message against the schema of its event type.
func (d *Document) CheckEvent(eventType string, body []byte) error {
	return d.validate("/webhooks/"+escape(eventType)+"/post/requestBody/content/application~1json/schema", body)
}
