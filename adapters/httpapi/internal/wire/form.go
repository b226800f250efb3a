package wire

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Part is one part of a multipart form.
type Part struct {
	// Name is the name of the field; empty if the part has none.
	Name string
	// Type is the declared media type in lower case without parameters; empty if none or an invalid one is declared.
	Type string

	r io.Reader
}

// Read reads the content.
func (p *Part) Read(b []byte) (int, error) { return p.r.Read(b) }

// mostParts is the largest number of parts of a form.
const mostParts = 200

// Form reads a multipart/form-data body and calls part with each part, in order. Bytes that part does not read are
// skipped. If part returns an error, reading stops, and Err reports the error. Form keeps nothing in memory, so only
// the limit of the body's size applies.
//
// It returns whether the whole form arrived. A malformed form, or one with more than 200 parts, is a problem of the
// request, even if part was called before.
func (in *In) Form(part func(p *Part) error) bool {
	in.settings.body = true
	limit := in.settings.MaxBody
	if in.r.ContentLength > limit {
		in.fault = tooLarge(limit)
		return false
	}
	kind, params, err := mime.ParseMediaType(in.r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" {
		in.fault = unsupported("the body must be multipart/form-data")
		return false
	}
	// RFC 2046 allows at most 70 characters in a boundary.
	const longest = 70
	if b := params["boundary"]; b == "" || len(b) > longest {
		in.Problem("boundary_missing", "multipart/form-data needs a boundary of at most 70 characters", "header", "content-type")
		return false
	}
	source := &watched{r: bodyOf(in.r)}
	form := multipart.NewReader(source, params["boundary"])
	for n := 0; ; n++ {
		p, err := form.NextPart()
		switch {
		case errors.Is(err, io.EOF) && source.err == nil:
			return true
		case err != nil:
			in.formEnds(source.err)
			return false
		case n == mostParts:
			in.Problem("too_many_parts", "a form must have at most 200 parts", "body")
			return false
		}
		declared, _, err := mime.ParseMediaType(p.Header.Get("Content-Type"))
		if err != nil {
			declared = ""
		}
		err = part(&Part{Name: partName(p), Type: strings.ToLower(declared), r: p})
		if err == nil {
			_, err = io.Copy(io.Discard, p)
		}
		if err != nil {
			in.formEnds(source.err)
			return false
		}
	}
}

// partName returns the field name of a part. It also accepts headers whose file name some clients write malformed:
// without quotes, with quotes inside, or twice.
func partName(p *multipart.Part) string {
	if name := p.FormName(); name != "" {
		return name
	}
	kind, rest, _ := strings.Cut(p.Header.Get("Content-Disposition"), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "form-data") {
		return ""
	}
	for rest != "" {
		key, value, _ := strings.Cut(strings.TrimLeft(rest, "; \t"), "=")
		value = strings.TrimLeft(value, " \t")
		end := ";"
		if quoted, ok := strings.CutPrefix(value, `"`); ok {
			value, end = quoted, `"`
		}
		value, rest, _ = strings.Cut(value, end)
		if strings.EqualFold(strings.TrimSpace(key), "name") {
			return strings.TrimSpace(value)
		}
		if end == `"` {
			_, rest, _ = strings.Cut(rest, ";")
		}
	}
	return ""
}

// formEnds records why a form ended early. fault is the error with which reading the body failed; nil means that the
// form itself is malformed.
func (in *In) formEnds(fault error) {
	if fault != nil {
		in.fault = bodyFault(fault, in.settings.MaxBody)
		return
	}
	in.Problem("form_invalid", "must be a well-formed multipart form", "body")
}

// watched is a reader that stores the error with which reading the body failed.
type watched struct {
	r   io.Reader
	err error
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

// UnknownPart records a problem with a part that is no field of the operation, unless Settings.IgnoreUnknown is set.
func (in *In) UnknownPart(p *Part) {
	if !in.settings.IgnoreUnknown {
		in.Problem("unknown_key", "must be absent: this form has no such part", "body", truncateKey(text{raw: []byte(p.Name)}))
	}
}

// Field is a short text field of a form that may occur only once.
type Field struct {
	name  string
	value string
	there bool
}

// Field reads a part into f. A second part with the same name is a problem.
func (in *In) Field(p *Part, f *Field) error {
	if f.there {
		in.Problem("duplicate_key", "must occur only once", "body", p.Name)
		return nil
	}
	const longest = 100
	b, err := io.ReadAll(io.LimitReader(p, longest))
	*f = Field{p.Name, string(b), true}
	return err
}

// FieldUUID returns the required UUID of a field.
func (in *In) FieldUUID(f Field, name string) uuid.UUID {
	if !f.there {
		in.Problem("missing", "is required", "body", name)
		return uuid.Nil
	}
	id := in.uuid(f.value, "body", name)
	if own := in.settings.Own; name == "user_id" && !own.IsZero() && id != own.UUID {
		return in.settings.replaceUser(healthlab.UserID{UUID: id}).UUID
	}
	return id
}

// FieldBool reads true or 1, and false or 0, in any case. It returns def for an absent or empty field.
func (in *In) FieldBool(f Field, def bool) bool {
	if !f.there || f.value == "" {
		return def
	}
	b, ok := parseBool(f.value)
	if !ok {
		in.Problem("wrong_type", boolRule, "body", f.name)
		return def
	}
	return b
}
