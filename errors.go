package healthlab

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with an input.
type Problem struct {
	// Path leads to the place, from the outside in: names (string) and positions
	// (int, from 0), such as "items", 0, "marker_id".
	Path []any
	// Code is the stable name of the rule, lower_snake: "missing", "too_long".
	Code string
	// Msg says the rule in words. It never holds the value that broke it.
	Msg string
	// Context holds numbers and names that help a program: an offset, a limit.
	// Never the value. Nil when there is nothing to add.
	Context map[string]any
}

// String returns the place and the rule.
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

// Problems gathers what is wrong with an input, so that a caller learns all of it at
// once. The zero value is ready; it is not safe for concurrent use.
type Problems []Problem

// Add notes a problem at path.
func (p *Problems) Add(code, msg string, path ...any) {
	*p = append(*p, Problem{Path: path, Code: code, Msg: msg})
}

// AddEnum notes a value that is none of the allowed ones, with the code enum, and lists them.
func (p *Problems) AddEnum(allowed []string, path ...any) {
	p.Add("enum", "must be one of: "+strings.Join(allowed, ", "), path...)
}

// Under notes the problems of a part of the input, each with prefix before its path.
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

// RuleError says that a rule of the business forbids something. Type is the stable
// name that a program branches on; the names are constants of the package whose
// rule it is.
type RuleError struct {
	// Kind is what the error unwraps to. The zero value means [Precondition].
	Kind ErrorKind
	// Type is the rule's name on the wire, UPPER_SNAKE: "CANCEL_NOT_ALLOWED".
	Type string
	// Msg states the rule for a person to read. It holds no value of a user.
	Msg string
}

// Error returns the name and the words.
func (e *RuleError) Error() string { return e.Type + ": " + e.Msg }

// Unwrap returns the error's kind.
func (e *RuleError) Unwrap() error {
	if e.Kind == Unknown {
		return Precondition
	}
	return e.Kind
}
