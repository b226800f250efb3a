package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
)

// T is the part of *testing.T that this package uses.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	Context() context.Context
}

func must(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// Client sends requests to a handler and fails the test if an answer does not match the contract. Not safe for
// concurrent use.
type Client struct {
	// Header is added to every request, such as the key.
	Header http.Header
	// Lenient skips the check of requests that were answered with success, for tests of input outside of the contract.
	Lenient bool

	doc     *Document
	handler http.Handler
}

// NewClient returns a client for h that checks answers against doc.
func NewClient(t T, h http.Handler, doc []byte) *Client {
	t.Helper()
	d, err := Read(doc)
	must(t, err)
	return &Client{Header: http.Header{}, doc: d, handler: h}
}

// With returns a copy of the client that also sends a header, or replaces its value.
func (c *Client) With(name, value string) *Client {
	own := *c
	own.Header = c.Header.Clone()
	own.Header.Set(name, value)
	return &own
}

// Reply is the answer to a request.
type Reply struct {
	// Operation is the operationId of the path; empty if the path is not in the contract.
	Operation string
	// Status, Header and Body are those of the answer.
	Status int
	Header http.Header
	Body   []byte
}

// Want fails the test and shows the body if the status is not status.
func (r *Reply) Want(t T, status int) *Reply {
	t.Helper()
	if r.Status != status {
		t.Fatalf("the status is %d, not %d: %s", r.Status, status, r.Body)
	}
	return r
}

// JSON decodes the body into v.
func (r *Reply) JSON(t T, v any) {
	t.Helper()
	must(t, json.Unmarshal(r.Body, v))
}

// ErrorType returns the error_type of an error answer. For an answer with a list of problems it returns their types,
// joined by spaces.
func (r *Reply) ErrorType(t T) string {
	t.Helper()
	var one struct {
		Detail struct {
			Type string `json:"error_type"`
		} `json:"detail"`
	}
	if json.Unmarshal(r.Body, &one) == nil {
		return one.Detail.Type
	}
	var many struct {
		Detail []struct {
			Type string `json:"type"`
		} `json:"detail"`
	}
	r.JSON(t, &many)
	var types []string
	for _, p := range many.Detail {
		types = append(types, p.Type)
	}
	return strings.Join(types, " ")
}

// Locs returns the location of each problem of a 422, such as body.limit.
func (r *Reply) Locs(t T) []string {
	t.Helper()
	var many struct {
		Detail []struct {
			Loc []any `json:"loc"`
		} `json:"detail"`
	}
	r.JSON(t, &many)
	var locs []string
	for _, p := range many.Detail {
		locs = append(locs, strings.ReplaceAll(strings.Trim(fmt.Sprint(p.Loc), "[]"), " ", "."))
	}
	return locs
}

// Send makes a request and sends it with [Client.Do]. A string or []byte body is sent as it is, nil is no body, and any
// other value is sent as JSON.
func (c *Client) Send(t T, method, target string, body any) *Reply {
	t.Helper()
	var text io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		text = strings.NewReader(b)
	case []byte:
		text = bytes.NewReader(b)
	default:
		j, err := json.Marshal(b)
		must(t, err)
		text = bytes.NewReader(j)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, target, text)
	if text != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return c.Do(t, r)
}

// Do sends a request, and fails the test unless the contract lists the reply's status and content type and its schema
// accepts the body. A path that the contract lacks must be answered with 404 or 405 and an Error. If the reply is a
// success, the query and the JSON body of the request must match the contract too, unless Lenient is set.
func (c *Client) Do(t T, r *http.Request) *Reply {
	t.Helper()
	for name, values := range c.Header {
		if r.Header.Get(name) == "" {
			r.Header[name] = values
		}
	}
	var sent []byte
	if r.Body != nil {
		var err error
		sent, err = io.ReadAll(r.Body)
		must(t, err)
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	target, query, kind := r.URL.EscapedPath(), r.URL.Query(), r.Header.Get("Content-Type")
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	got := &Reply{Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()}

	op := c.doc.find(r.Method, target)
	if op == nil {
		if got.Status != http.StatusNotFound && got.Status != http.StatusMethodNotAllowed {
			t.Fatalf("%s %s answers %d and is in no contract", r.Method, target, got.Status)
		}
		must(t, c.doc.validate("/components/schemas/Error", got.Body))
		return got
	}
	got.Operation = op.ID
	must(t, c.doc.checkReply(op, got))
	if got.Status < 300 && !c.Lenient {
		must(t, c.doc.checkRequest(op, query, kind, sent, got.Body))
	}
	return got
}

func (d *Document) checkReply(op *Operation, got *Reply) error {
	responses, _ := op.node["responses"].(map[string]any)
	status := strconv.Itoa(got.Status)
	node, ok := responses[status].(map[string]any)
	if !ok {
		return fmt.Errorf("%s: status %s is not in the contract: %s", op.ID, status, got.Body)
	}
	node, pointer := d.resolve(node, op.pointer+"/responses/"+status)
	types := content(node, pointer)
	if len(types) == 0 {
		if len(got.Body) > 0 {
			return fmt.Errorf("%s: %s has a body that is not in the contract", op.ID, status)
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(got.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("%s: %s: content type: %w", op.ID, status, err)
	}
	schema, ok := types[kind]
	if !ok {
		return fmt.Errorf("%s: %s: the content type %s is not in the contract", op.ID, status, kind)
	}
	if kind != "application/json" || schema == "" {
		return nil
	}
	if err := d.validate(schema, got.Body); err != nil {
		return fmt.Errorf("%s: %s: the body is not as in the contract: %w", op.ID, status, err)
	}
	return nil
}

// withoutRefused returns the body of an upload without the items that the answer lists as refused. If the answer does
// not list every refused item, it removes all items. In a stream the items are the points. Other bodies are unchanged.
func withoutRefused(sent, answer []byte) []byte {
	var refused struct {
		Refused []struct {
			Index int `json:"index"`
		} `json:"refused"`
		Count int `json:"refused_count"`
	}
	var body map[string]json.RawMessage
	if json.Unmarshal(answer, &refused) != nil || refused.Count == 0 || json.Unmarshal(sent, &body) != nil {
		return sent
	}
	gone := map[int]bool{}
	for _, r := range refused.Refused {
		gone[r.Index] = true
	}
	without := func(list json.RawMessage) (json.RawMessage, bool) {
		var items []json.RawMessage
		if json.Unmarshal(list, &items) != nil {
			return nil, false
		}
		kept := []json.RawMessage{}
		for i, item := range items {
			if !gone[i] && refused.Count == len(gone) {
				kept = append(kept, item)
			}
		}
		out, _ := json.Marshal(kept) // they were read as JSON
		return out, true
	}
	if kept, ok := without(body["data"]); ok {
		body["data"] = kept
	}
	var stream map[string]json.RawMessage
	if json.Unmarshal(body["stream"], &stream) == nil {
		for name, column := range stream {
			if kept, ok := without(column); ok {
				stream[name] = kept
			}
		}
		body["stream"], _ = json.Marshal(stream)
	}
	out, _ := json.Marshal(body)
	return out
}

func (d *Document) checkRequest(op *Operation, query map[string][]string, contentType string, sent, answer []byte) error {
	known := map[string]bool{}
	for _, p := range d.parameters(op) {
		if p.In != "query" {
			continue
		}
		known[p.Name] = true
		if p.Required && len(query[p.Name]) == 0 {
			return fmt.Errorf("%s: succeeded without the required parameter %s", op.ID, p.Name)
		}
	}
	for name := range query {
		if !known[name] {
			return fmt.Errorf("%s: succeeded with the parameter %s, which is not in the contract", op.ID, name)
		}
	}
	body, _ := op.node["requestBody"].(map[string]any)
	body, pointer := d.resolve(body, op.pointer+"/requestBody")
	if len(sent) == 0 {
		if body["required"] == true {
			return fmt.Errorf("%s: succeeded without a body", op.ID)
		}
		return nil
	}
	kind, _, _ := mime.ParseMediaType(contentType)
	schema, ok := content(body, pointer)[kind]
	if !ok {
		return fmt.Errorf("%s: succeeded with a body of type %s, which is not in the contract", op.ID, kind)
	}
	if kind != "application/json" || schema == "" {
		return nil
	}
	if err := d.validate(schema, withoutRefused(sent, answer)); err != nil {
		return fmt.Errorf("%s: succeeded with a body that is not as in the contract: %w", op.ID, err)
	}
	return nil
}
