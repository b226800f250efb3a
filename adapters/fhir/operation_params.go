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

func getAndPost(paths ...string) (out []string) {
	for _, p := range paths {
		out = append(out, "GET "+p, "POST "+p)
	}
	return out
}

// operationParams returns the parameters of an operation as a query string: those in the URL, and those in the
// Parameters resource of the body. problems are those of the body. err says that the body could not be read.
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
	values, ok := readParameters(body)
	if !ok {
		return "", []healthlab.Problem{{
			Path: []any{"body"}, Code: "invalid", Msg: "must be a resource Parameters, whose parameters have a name and a value of a primitive type, or nothing",
		}}, nil
	}
	return strings.Trim(r.URL.RawQuery+"&"+values.Encode(), "&"), nil, nil
}

// readParameters reads a Parameters resource. It returns false if body is not one, or if a value is not of a primitive
// type.
func readParameters(body []byte) (url.Values, bool) {
	var in struct {
		ResourceType string                       `json:"resourceType"`
		Parameter    []map[string]json.RawMessage `json:"parameter"`
	}
	if err := json.Unmarshal(body, &in); err != nil || in.ResourceType != "Parameters" {
		return nil, false
	}
	values := url.Values{}
	for _, p := range in.Parameter {
		name, value, ok := readParameter(p)
		if !ok {
			return nil, false
		}
		values.Add(name, value)
	}
	return values, true
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
