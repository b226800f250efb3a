package orders

import (
	"fmt"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
)

// Limits of text in a request, in characters.
const (
	maxName  = 50
	maxText  = 255
	maxNotes = 1000
)

var (
	// A name starts with a letter or digit of any script; then letters, combining marks,
	// digits, hyphens, periods, commas and apostrophes of both kinds, with single spaces
	// between words.
	nameForm  = regexp.MustCompile(`^[\p{L}\p{N}][\p{L}\p{M}\p{N}.,'\x{2019}\x{02BC}\x{2010}-]*(\s[\p{L}\p{M}\p{N}.,'\x{2019}\x{02BC}\x{2010}-]+)*$`)
	phoneForm = regexp.MustCompile(`^\+?[0-9]{7,15}$`)
	zipForm   = regexp.MustCompile(`^[0-9]{5}(-[0-9]{4})?$`)
	// An ICD-10 code: letter, digit, digit or A or B, then up to four more.
	icdForm = regexp.MustCompile(`^[A-Z][0-9][0-9AB](\.?[0-9A-Z]{1,4})?$`)
)

// check gathers the problems of one object of a request; at is the path to it.
type check struct {
	problems *healthlab.Problems
	at       []any
}

func (c check) add(code, msg string, path ...any) {
	c.problems.Add(code, msg, append(slices.Clone(c.at), path...)...)
}

func (c check) under(path ...any) check {
	return check{problems: c.problems, at: append(slices.Clone(c.at), path...)}
}

// text checks text of a length of at least low and at most high characters. It stands
// under name: a field, or the place in a list.
func (c check) text(s string, name any, low, high int) bool {
	n := utf8.RuneCountInString(s)
	switch {
	case n == 0 && low > 0:
		c.add("missing", "is required", name)
	case n < low || n > high:
		c.add("string_length", fmt.Sprintf("has %d to %d characters", low, high), name)
	case strings.ContainsRune(s, 0):
		c.add("nul", "must not contain NUL", name)
	default:
		return true
	}
	return false
}

func (c check) optional(s *string, name string, high int) {
	if s != nil {
		c.text(*s, name, 0, high)
	}
}

func (c check) name(s, field string) {
	if c.text(s, field, 1, maxName) && !nameForm.MatchString(s) {
		c.add("name_form", "must start with a letter or digit, and have letters, digits, hyphens, periods, commas, apostrophes and single spaces only", field)
	}
}

// zip checks a postal code that stands under one of its two names.
func (c check) zip(zip string, other *string) {
	field := "zip"
	if other != nil && zip == "" {
		zip, field = *other, "zip_code"
	}
	if c.text(zip, field, 1, maxText) && !zipForm.MatchString(zip) {
		c.add("zip_form", "is five digits, or five, a hyphen and four", field)
	}
	c.oneZip(zip, other)
}

// oneZip refuses two postal codes that differ.
func (c check) oneZip(zip string, other *string) {
	if other != nil && *other != zip {
		c.add("conflict", "is another name of zip, and says something else", "zip_code")
	}
}

// zipOf is the postal code under whichever name it came.
func zipOf(zip string, other *string) string {
	if zip == "" && other != nil {
		return *other
	}
	return zip
}

func (c check) email(s, field string) {
	if !c.text(s, field, 1, maxText) {
		return
	}
	_, domain, _ := strings.Cut(s, "@")
	if a, err := mail.ParseAddress(s); err != nil || a.Address != s || !strings.Contains(domain, ".") {
		c.add("email_form", "is an e-mail address", field)
	}
}

func (c check) user(id healthlab.UserID, field string) {
	if id.IsZero() {
		c.add("missing", "is required", field)
	}
}

// oneOf notes a value that a request may not hold.
func oneOf[T ~string](p *healthlab.Problems, v T, allowed []T, path ...any) {
	if !slices.Contains(allowed, v) {
		p.Add("enum", "is not one of the known values", path...)
	}
}

func (c check) address(first string, second *string, city, state, country string) {
	c.text(first, "first_line", 1, maxText)
	c.optional(second, "second_line", maxText)
	c.text(city, "city", 1, maxText)
	c.state(state, country)
	c.text(country, "country", 1, maxText)
}

func (c check) count(n *int, field string) {
	if n != nil && *n < 0 {
		c.add("greater_than_equal", "is not negative", field)
	}
}

func optionalOf[T ~string](c check, v *T, allowed []T, field string) {
	if v != nil {
		oneOf(c.problems, *v, allowed, append(slices.Clone(c.at), field)...)
	}
}
