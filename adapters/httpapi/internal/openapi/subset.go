package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Mount describes which operations and events of the contract one handler of the API serves.
type Mount struct {
	// Operations lists the operationIds that the handler serves.
	Operations []string
	// Events lists the names of the events that the service sends to webhook endpoints.
	Events []string
	// ErrorTypes lists the error types of the handler's answers.
	ErrorTypes []string
	// Queries reports whether the handler answers aggregate queries, and Uploads whether it accepts health data.
	Queries, Uploads bool
}

// extended is a document with the members that [WithExtras] adds.
type extended struct {
	document
	Webhooks       map[string]json.RawMessage `json:"webhooks,omitempty"`
	ValueBounds    json.RawMessage            `json:"x-value-bounds,omitempty"`
	IntervalBounds json.RawMessage            `json:"x-interval-bounds,omitempty"`
	QuerySchema    json.RawMessage            `json:"x-query-schema,omitempty"`
	ErrorTypes     json.RawMessage            `json:"x-error-types,omitempty"`
}

// Subset returns the part of a contract that a mount serves, with the components and tags which that part uses. It
// returns the contract unchanged if the mount serves all of it.
func Subset(contract []byte, m Mount) ([]byte, error) {
	var d extended
	if err := json.Unmarshal(contract, &d); err != nil {
		return nil, fmt.Errorf("select operations of the OpenAPI contract: %w", err)
	}
	tags := map[string]bool{}
	left := 0
	for path, methods := range d.Paths {
		for method, raw := range methods {
			var op struct {
				ID   string   `json:"operationId"`
				Tags []string `json:"tags"`
			}
			if err := json.Unmarshal(raw, &op); err != nil {
				return nil, fmt.Errorf("select operations of the OpenAPI contract: %w", err)
			}
			if !slices.Contains(m.Operations, op.ID) {
				delete(methods, method)
				left++
				continue
			}
			for _, t := range op.Tags {
				tags[t] = true
			}
		}
		if len(methods) == 0 {
			delete(d.Paths, path)
		}
	}
	for name := range d.Webhooks {
		if slices.Contains(m.Events, name) {
			tags["events"] = true
			continue
		}
		delete(d.Webhooks, name)
		left++
	}
	if left == 0 {
		return contract, nil
	}
	d.ErrorTypes, _ = json.Marshal(m.ErrorTypes) // strings always encode
	if !m.Queries {
		d.QuerySchema = nil
	}
	if !m.Uploads {
		d.ValueBounds, d.IntervalBounds = nil, nil
	}
	d.Tags = slices.DeleteFunc(d.Tags, func(raw json.RawMessage) bool {
		var tag struct{ Name string }
		return json.Unmarshal(raw, &tag) == nil && !tags[tag.Name]
	})
	if !tags["apps"] {
		for _, methods := range d.Paths {
			for method, raw := range methods {
				methods[method] = userToken.ReplaceAll(raw, nil)
			}
		}
	}
	if err := d.dropUnused(); err != nil {
		return nil, fmt.Errorf("select operations of the OpenAPI contract: %w", err)
	}
	if err := d.describe(tags, m); err != nil {
		return nil, fmt.Errorf("select operations of the OpenAPI contract: %w", err)
	}
	return d.encode()
}

// userToken matches the token of an app among the security schemes of an operation.
var userToken = regexp.MustCompile(`,\s*\{\s*"UserToken":\s*\[[^\]]*\]\s*\}`)

// subjects maps the tags of operations to the words in the title of a contract, in the order of the title.
var subjects = []struct{ tag, words string }{
	{"users", "users and their sources"},
	{"timeseries", "health data"},
	{"aggregate", "aggregates"},
	{"link", "linking"},
	{"orders", "lab orders"},
	{"lab reports", "lab reports"},
	{"webhooks", "webhooks"},
}

// describe adapts the title and the descriptions of the document to a mount. tags are those of the served operations.
func (d *extended) describe(tags map[string]bool, m Mount) error {
	links := d.Components["securitySchemes"]["LinkTokenKey"] != nil // manual sources have the tag link, but no link token
	var names []string
	for _, s := range subjects {
		if tags[s.tag] && (s.tag != "link" || links) {
			names = append(names, s.words)
		}
	}
	title := "This service"
	if len(names) > 0 {
		title = strings.Join(names, ", ")
		title = strings.ToUpper(title[:1]) + title[1:]
	}
	var info map[string]json.RawMessage
	if err := json.Unmarshal(d.Info, &info); err != nil {
		return err
	}
	var text string
	if raw := info["description"]; raw != nil {
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
	}
	kept := strings.SplitAfter(text, ". ")
	kept = slices.DeleteFunc(kept[min(1, len(kept)):], func(sentence string) bool {
		return !m.Queries && strings.Contains(sentence, "x-query-schema") ||
			!m.Uploads && strings.Contains(sentence, "x-value-bounds") ||
			!links && strings.Contains(sentence, "link API")
	})
	info["title"], _ = json.Marshal(title) // strings always encode
	info["description"], _ = json.Marshal(strings.TrimSpace(title + ". " + strings.Join(kept, "")))
	var err error
	if d.Info, err = json.Marshal(info); err != nil {
		return err
	}
	if schemes := d.Components["securitySchemes"]; schemes["ManagementKey"] != nil && !tags["lab reports"] {
		schemes["ManagementKey"] = bytes.ReplaceAll(schemes["ManagementKey"], []byte(", reviewer works on lab reports"), nil)
	}
	return nil
}

func (d *extended) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return nil, fmt.Errorf("encode contract: %w", err)
	}
	return b.Bytes(), nil
}

// reference matches references to components. References have no other form; danglingRefs checks that.
var reference = regexp.MustCompile(`"\$ref":\s*"#/components/([^/"]+)/([^/"]+)"`)

// dropUnused removes the components that the paths do not reach by references.
func (d *extended) dropUnused() error {
	used := map[string]map[string]bool{}
	var visit func(text []byte)
	visit = func(text []byte) {
		for _, m := range reference.FindAllSubmatch(text, -1) {
			kind, name := string(m[1]), string(m[2])
			if used[kind][name] {
				continue
			}
			if used[kind] == nil {
				used[kind] = map[string]bool{}
			}
			used[kind][name] = true
			visit(d.Components[kind][name])
		}
	}
	roots, err := json.Marshal([]any{d.Paths, d.Webhooks})
	if err != nil {
		return err
	}
	visit(roots)
	schemes, err := d.schemes()
	if err != nil {
		return err
	}
	used["securitySchemes"] = schemes
	for kind, members := range d.Components {
		maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return !used[kind][name] })
		if len(members) == 0 {
			delete(d.Components, kind)
		}
	}
	return nil
}

// schemes returns the security schemes that operations use. An operation that states none uses those of the
// document.
func (d *extended) schemes() (map[string]bool, error) {
	out := map[string]bool{}
	note := func(list []map[string]json.RawMessage) {
		for _, way := range list {
			for name := range way {
				out[name] = true
			}
		}
	}
	var whole []map[string]json.RawMessage
	if err := json.Unmarshal(d.Security, &whole); err != nil {
		return nil, err
	}
	for _, methods := range d.Paths {
		for _, raw := range methods {
			op := struct {
				Security *[]map[string]json.RawMessage `json:"security"`
			}{}
			if err := json.Unmarshal(raw, &op); err != nil {
				return nil, err
			}
			if op.Security == nil {
				op.Security = &whole
			}
			note(*op.Security)
		}
	}
	note(whole)
	return out, nil
}

// Adapt sets the server URL of a contract, unless url is empty, and replaces the security scheme of teams by signIn,
// unless signIn is nil.
func Adapt(contract []byte, url string, signIn json.RawMessage) ([]byte, error) {
	if url == "" && signIn == nil {
		return contract, nil
	}
	var d extended
	err := json.Unmarshal(contract, &d)
	if err == nil && url != "" {
		d.Servers, err = json.Marshal([]map[string]string{{"url": url}})
	}
	if err != nil {
		return nil, fmt.Errorf("adapt contract: %w", err)
	}
	if schemes := d.Components["securitySchemes"]; signIn != nil && schemes["TeamKey"] != nil {
		schemes["TeamKey"] = signIn
	}
	return d.encode()
}

// WithExtras adds the members of the object extras, which package extras generates, to a contract.
func WithExtras(contract, extras []byte) []byte {
	out := bytes.TrimSuffix(bytes.TrimSpace(contract), []byte{'}'})
	return append(append(out, ','), bytes.TrimPrefix(bytes.TrimSpace(extras), []byte{'{'})...)
}
