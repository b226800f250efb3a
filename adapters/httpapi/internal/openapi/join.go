// Package openapi builds the contract: it joins the parts, one JSON file per tag, into one document, and adds data
// generated from the code, such as events and the bounds of values.
//
// common.json holds the unique members: openapi, info, servers and security. Every part may add tags, paths and
// components. A reference names its target in the joined document (#/components/schemas/Error), whichever part defines
// it.
package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// common is the file that may define openapi, info, servers and security.
const common = "common.json"

// document holds the top-level members of one file of the contract, or of the joined document. Members keep their text
// and order.
type document struct {
	OpenAPI    json.RawMessage                       `json:"openapi,omitempty"`
	Info       json.RawMessage                       `json:"info,omitempty"`
	Servers    json.RawMessage                       `json:"servers,omitempty"`
	Security   json.RawMessage                       `json:"security,omitempty"`
	Tags       []json.RawMessage                     `json:"tags,omitempty"`
	Paths      map[string]map[string]json.RawMessage `json:"paths,omitempty"`
	Components map[string]map[string]json.RawMessage `json:"components,omitempty"`
}

// Join joins all .json files of parts to one document. The same parts give the same bytes. It refuses two
// definitions of the same name, two operations with the same id, and references without a target.
func Join(parts fs.FS) ([]byte, error) {
	names, err := fs.Glob(parts, "*.json")
	if err != nil {
		return nil, fmt.Errorf("join contract: %w", err)
	}
	whole := document{
		Paths:      map[string]map[string]json.RawMessage{},
		Components: map[string]map[string]json.RawMessage{},
	}
	// The common part is joined first, so that its tags come first.
	slices.SortFunc(names, func(a, b string) int {
		switch {
		case a == common:
			return -1
		case b == common:
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		if err := whole.add(parts, name); err != nil {
			return nil, fmt.Errorf("join contract: %s: %w", name, err)
		}
	}
	if err := whole.check(); err != nil {
		return nil, fmt.Errorf("join contract: %w", err)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(whole); err != nil {
		return nil, fmt.Errorf("join contract: %w", err)
	}
	return b.Bytes(), nil
}

func (d *document) add(parts fs.FS, name string) error {
	data, err := fs.ReadFile(parts, name)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var part document
	if err := dec.Decode(&part); err != nil {
		return err
	}
	if dec.More() {
		return errors.New("must have no text after the JSON value")
	}
	once := part.OpenAPI != nil || part.Info != nil || part.Servers != nil || part.Security != nil
	if name == common {
		d.OpenAPI, d.Info, d.Servers, d.Security = part.OpenAPI, part.Info, part.Servers, part.Security
	} else if once {
		return errors.New("openapi, info, servers and security must be in " + common)
	}
	d.Tags = append(d.Tags, part.Tags...)
	if err := merge(d.Paths, part.Paths); err != nil {
		return err
	}
	return merge(d.Components, part.Components)
}

func merge(into, from map[string]map[string]json.RawMessage) error {
	for outer, members := range from {
		if into[outer] == nil {
			into[outer] = map[string]json.RawMessage{}
		}
		for inner, value := range members {
			if _, taken := into[outer][inner]; taken {
				return fmt.Errorf("%s %s is defined twice", outer, inner)
			}
			into[outer][inner] = value
		}
	}
	return nil
}

// check checks the rules that concern several files, such as unique operationIds.
func (d *document) check() error {
	var faults []error
	ids := map[string]string{}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			var op struct {
				ID string `json:"operationId"`
			}
			if err := json.Unmarshal(d.Paths[path][method], &op); err != nil {
				return err
			}
			at := method + " " + path
			switch {
			case op.ID == "":
				faults = append(faults, fmt.Errorf("%s has no operationId", at))
			case ids[op.ID] != "":
				faults = append(faults, fmt.Errorf("%s and %s have the same operationId", ids[op.ID], at))
			}
			ids[op.ID] = at
		}
	}
	all, err := json.Marshal(d)
	if err != nil {
		return err
	}
	var tree any
	if err := json.Unmarshal(all, &tree); err != nil {
		return err
	}
	return errors.Join(append(faults, d.danglingRefs(tree)...)...)
}

// danglingRefs returns an error for each reference without a target.
func (d *document) danglingRefs(v any) (faults []error) {
	switch v := v.(type) {
	case []any:
		for _, member := range v {
			faults = append(faults, d.danglingRefs(member)...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if ref, ok := v[key].(string); ok && key == "$ref" {
				parts := strings.Split(ref, "/")
				if len(parts) != 4 || parts[0] != "#" || parts[1] != "components" || d.Components[parts[2]][parts[3]] == nil {
					faults = append(faults, fmt.Errorf("the reference %s has no target", ref))
				}
				continue
			}
			faults = append(faults, d.danglingRefs(v[key])...)
		}
	}
	return faults
}
