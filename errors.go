package healthlab

import (
	"fmt"
	"strings"
)

// Problem is one error in an input.
type Problem struct {
	// Path is the position of the error, from the outside in: names (string) and positions (int, from 0), such
	// as "items", 0, "marker_id".
	Path []any
	// Code is the stable name of the broken rule, lower_snake: "missing", "too_long".
	Code string
	// Msg states what is expected. It never contains the invalid value.
	Msg string
	// Context has numbers and names for programs: an offset, a limit; never the value. Nil for none.
	Context map[string]any
}

// String returns the position and the text of the problem.
func (p Problem) String() string {
	var b strings.Builder
	for i, part := range p.Path {
		switch part := part.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", part)
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			fmt.Fprint(&b, part)
		}
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(p.Msg)
	return b.String()
}

// InvalidError lists every problem of one input. It unwraps to [Invalid].
type InvalidError struct {
	Problems []Problem
}

// Error names the first problems, without any value.
func (e *InvalidError) Error() string {
	const most = 5
	var b strings.Builder
	b.WriteString(Invalid.Error())
	for i, p := range e.Problems {
		if i == most {
			fmt.Fprintf(&b, "; and %d more", len(e.Problems)-most)
			break
		}
		if i == 0 {
			b.WriteString(": ")
		} else {
			b.WriteString("; ")
		}
		b.WriteString(p.String())
	}
	return b.String()
}

// Unwrap returns [Invalid].
func (e *InvalidError) Unwrap() error { return Invalid }

// Problems collects the errors in an input, so that a caller learns all of them at once. The zero value is
// ready to use; it is not safe for concurrent use.
type Problems []Problem

// Add adds a problem at a path.
func (p *Problems) Add(code, msg string, path ...any) {
	*p = append(*p, Problem{Path: path, Code: code, Msg: msg})
}

// AddEnum adds a problem about a value that is not one of the allowed ones, with the code enum, and lists the
// allowed ones.
func (p *Problems) AddEnum(allowed []string, path ...any) {
	p.Add("enum", "must be one of: "+strings.Join(allowed, ", "), path...)
}

// Under adds the problems of a part of the input, with prefix before each path.
func (p *Problems) Under(part Problems, prefix ...any) {
	for _, q := range part {
		q.Path = append(append(make([]any, 0, len(prefix)+len(q.Path)), prefix...), q.Path...)
		*p = append(*p, q)
	}
}

// Err returns an [InvalidError] with the problems, or nil if there are none.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return &InvalidError{Problems: p}
}

// RuleError reports that a business rule forbids a request. Type is the stable name for programs; the names are
// constants of the package with the rule.
type RuleError struct {
	// Kind is the error kind that the error unwraps to. The zero value means [Precondition].
	Kind ErrorKind
	// Type is the name of the rule in the HTTP API, UPPER_SNAKE: "CANCEL_NOT_ALLOWED".
	Type string
	// Msg states the rule for people. It contains no value of a user.
	Msg string
}

// Error returns the type and the text.
func (e *RuleError) Error() string { return e.Type + ": " + e.Msg }

// Unwrap returns the error's kind.
func (e *RuleError) Unwrap() error {
	if e.Kind == Unknown {
		return Precondition
	}
	return e.Kind
}
