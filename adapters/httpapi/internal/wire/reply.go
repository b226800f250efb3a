package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/healthlab-dev/healthlab"
)

// JSON answers with v as JSON. It encodes v before it sends anything, so an error means that nothing was sent. It does
// not escape HTML characters.
func JSON(w http.ResponseWriter, status int, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return Bytes(w, status, "application/json", bytes.TrimSuffix(b.Bytes(), []byte{'\n'}))
}

// Bytes answers with b unchanged.
func Bytes(w http.ResponseWriter, status int, contentType string, b []byte) error {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // the caller may have gone
	return nil
}

// NoContent answers 204.
func NoContent(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// Stream answers with JSON that build appends in pieces, for answers too large for memory. If build fails within the
// first 64 KiB, the client gets an error answer. After that the connection is closed, so that the client can see that
// the answer is incomplete.
func Stream(w http.ResponseWriter, status int, build func(*Pieces) error) error {
	return StreamAs(w, status, "application/json", build)
}

// StreamAs is [Stream] with another media type.
func StreamAs(w http.ResponseWriter, status int, contentType string, build func(*Pieces) error) error {
	p := &Pieces{w: w, status: status, contentType: contentType}
	if err := build(p); err != nil {
		return err
	}
	if !p.started {
		return Bytes(w, status, contentType, p.B)
	}
	_, err := w.Write(p.B)
	if err != nil {
		return fmt.Errorf("send answer: %w", err)
	}
	return nil
}

// Pieces is the buffer of [Stream].
type Pieces struct {
	// B holds the bytes that were not sent yet. build appends to it.
	B []byte

	w           http.ResponseWriter
	status      int
	contentType string
	started     bool
}

// full is the number of bytes that [Pieces.Next] collects before it sends them.
const full = 64 << 10

// Next sends the bytes of B if there are at least 64 KiB. build calls it between elements and must return its error,
// which means that the client has disconnected.
func (p *Pieces) Next() error {
	if len(p.B) < full {
		return nil
	}
	if !p.started {
		p.started = true
		p.w.Header().Set("Content-Type", p.contentType)
		p.w.WriteHeader(p.status)
	}
	if _, err := p.w.Write(p.B); err != nil {
		return fmt.Errorf("send answer: %w", err)
	}
	p.B = p.B[:0]
	return nil
}

// Bodies of error answers.
type (
	faultBody struct {
		Detail map[string]any `json:"detail"`
	}
	problemsBody struct {
		Detail []problemBody `json:"detail"`
	}
	problemBody struct {
		Loc  []any          `json:"loc"`
		Msg  string         `json:"msg"`
		Type string         `json:"type"`
		Ctx  map[string]any `json:"ctx,omitempty"`
	}
)

// RetryAfter is the value of the header Retry-After, in seconds, of a 503 whose error states no time.
const RetryAfter = "5"

// Refuse answers with an error. A 503 without Retry-After gets the default [RetryAfter].
func Refuse(w http.ResponseWriter, f *Fault) error {
	detail := map[string]any{}
	for k, v := range f.Extra {
		detail[k] = v
	}
	detail["error_type"], detail["error_message"] = f.Type, f.Msg
	for k, v := range f.Header {
		w.Header()[k] = v
	}
	if f.Status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", RetryAfter)
	}
	return JSON(w, f.Status, faultBody{detail})
}

// RefuseInput answers 422 with every problem. The path of each problem begins with query, path, header or body.
func RefuseInput(w http.ResponseWriter, problems []healthlab.Problem) error {
	out := problemsBody{Detail: make([]problemBody, 0, len(problems))}
	for _, p := range problems {
		b := problemBody{Loc: p.Path, Msg: p.Msg, Type: p.Code, Ctx: p.Context}
		if b.Loc == nil {
			b.Loc = []any{}
		}
		out.Detail = append(out.Detail, b)
	}
	return JSON(w, http.StatusUnprocessableEntity, out)
}
