package fhir

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// both are patterns of operations, which are called by GET, and by POST with a resource Parameters.
func both(paths ...string) (out []string) {
	for _, p := range paths {
		out = append(out, "GET "+p, "POST "+p)
	}
	return out
}

// operationParams returns the parameters of an operation as a query: those of the address, and those of a resource Parameters
// in the body.
func operationParams(r *http.Request, by caller) (query string, problems []healthlab.Problem, err error) {
	if r.Method != http.MethodPost {
		return r.URL.RawQuery, nil, nil
	}
	body, err := by.Body(r)
	if err != nil {
		return "", nil, fmt.Errorf("read parameters: %w", err)
	}
	if body = bytes.TrimSpace(body); len(body) == 0 || string(body) == "{}" {
		return r.URL.RawQuery, nil, nil
	}
	wrong := []healthlab.Problem{{Path: []any{"body"}, Code: "invalid", Msg: "must be a resource Parameters, whose parameters have a name and a value of a primitive type, or nothing"}}
	var in struct {
		ResourceType string                       `json:"resourceType"`
		Parameter    []map[string]json.RawMessage `json:"parameter"`
	}
	if json.Unmarshal(body, &in) != nil || in.ResourceType != "Parameters" {
		return "", wrong, nil
	}
	values := url.Values{}
	for _, p := range in.Parameter {
		name, value, ok := readParameter(p)
		if !ok {
			return "", wrong, nil
		}
		values.Add(name, value)
	}
	return strings.Trim(r.URL.RawQuery+"&"+values.Encode(), "&"), nil, nil
}

// readParameter reads a parameter with a primitive value.
func readParameter(p map[string]json.RawMessage) (name, value string, ok bool) {
	if json.Unmarshal(p["name"], &name) != nil || name == "" {
		return "", "", false
	}
	for key, raw := range p {
		if !strings.HasPrefix(key, "value") || len(raw) == 0 || raw[0] == '{' || raw[0] == '[' {
			continue
		}
		if json.Unmarshal(raw, &value) != nil {
			value = string(raw) // a number or a boolean
		}
		return name, value, true
	}
	return "", "", false
}
