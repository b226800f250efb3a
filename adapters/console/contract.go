package console

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// contract is the part of the OpenAPI document of the API from which the console builds forms.
type contract struct {
	Paths map[string]map[string]struct {
		ID         string            `json:"operationId"`
		Summary    string            `json:"summary"`
		Parameters []json.RawMessage `json:"parameters"`
		Responses  map[string]struct {
			Content map[string]json.RawMessage `json:"content"`
		} `json:"responses"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]contractSchema `json:"schemas"`
	} `json:"components"`
	// Webhooks has a key for each event type.
	Webhooks map[string]json.RawMessage `json:"webhooks"`
}

type contractSchema struct {
	Ref         string                    `json:"$ref"`
	Description string                    `json:"description"`
	Type        any                       `json:"type"` // name of a JSON type, or a list of names
	Format      string                    `json:"format"`
	Enum        []string                  `json:"enum"` // "" stands for null
	OpenEnum    []string                  `json:"x-extensible-enum"`
	Items       *contractSchema           `json:"items"`
	AnyOf       []contractSchema          `json:"anyOf"`
	Properties  map[string]contractSchema `json:"properties"`
	Required    []string                  `json:"required"`
}

// resolve returns the target of a schema's reference, or of the reference of its first alternative.
func (c *contract) resolve(s contractSchema) contractSchema {
	if len(s.AnyOf) > 0 {
		s = s.AnyOf[0]
	}
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return c.Components.Schemas[name]
	}
	return s
}

func (c *contract) eventTypes() []string { return slices.Sorted(maps.Keys(c.Webhooks)) }

func (c *contractSchema) is(name string) bool {
	list, ok := c.Type.([]any)
	return c.Type == any(name) || ok && slices.Contains(list, any(name))
}

// parameter is a query parameter of an operation as a control of a form.
type parameter struct {
	Name        string
	Description string
	Kind        string // select, date, number or text
	Options     []string
	Value       string
}

// contract returns the OpenAPI document of the API. The first successful call reads it, and later calls return the
// same.
func (s *Console) contract(r *http.Request) (*contract, error) {
	s.contractMu.Lock()
	defer s.contractMu.Unlock()
	if s.contractRead != nil {
		return s.contractRead, nil
	}
	read := new(contract)
	if err := s.get(r, "/openapi.json", nil, read); err != nil {
		return nil, err
	}
	s.contractRead = read
	return read, nil
}

// parameters returns the query parameters of an operation. It omits those that the contract only refers to ($ref).
func (c *contract) parameters(path, method string) (list []parameter) {
	for _, raw := range c.Paths[path][method].Parameters {
		var p struct {
			Name        string         `json:"name"`
			In          string         `json:"in"`
			Description string         `json:"description"`
			Schema      contractSchema `json:"schema"`
		}
		if json.Unmarshal(raw, &p) != nil || p.In != "query" {
			continue
		}
		schema := p.Schema
		if schema.Items != nil {
			schema = *schema.Items
		}
		one := parameter{Name: p.Name, Description: p.Description, Kind: "text", Options: schema.Enum}
		switch {
		case schema.Type == "boolean":
			one.Kind, one.Options = "select", []string{"true", "false"}
		case len(schema.Enum) > 0:
			one.Kind = "select"
		case schema.Type == "integer":
			one.Kind = "number"
		case schema.Format == "date", schema.Ref == "#/components/schemas/DateOrTime":
			one.Kind = "date"
		}
		list = append(list, one)
	}
	return list
}

// enum returns the allowed values of the query parameter name; nil if the contract lists none.
func (c *contract) enum(path, method, name string) []string {
	for _, p := range c.parameters(path, method) {
		if p.Name == name {
			return p.Options
		}
	}
	return nil
}

func (c *contract) interpretations() []string {
	return slices.DeleteFunc(slices.Clone(c.enum("/v3/orders", "get", "interpretation")), func(v string) bool { return v == "unknown" })
}

// document is an operation that answers with a PDF file.
type document struct{ Path, Name string }

// documents returns the GET operations that answer with a PDF file and whose path starts with below. It omits those
// with a parameter in the rest of the path. The list is sorted by path. Path is the rest of the path, and Name the
// summary of the operation without its verb and "the".
func (c *contract) documents(below string) (list []document) {
	for path, methods := range c.Paths {
		rest, ok := strings.CutPrefix(path, below)
		if _, pdf := methods["get"].Responses["200"].Content["application/pdf"]; ok && pdf && !strings.Contains(rest, "{") {
			_, name, _ := strings.Cut(methods["get"].Summary, " ") // without its verb
			list = append(list, document{Path: rest, Name: strings.TrimPrefix(name, "the ")})
		}
	}
	slices.SortFunc(list, func(a, b document) int { return strings.Compare(a.Path, b.Path) })
	return list
}
