package rules

import (
	"fmt"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/nearest"
)

// Limits of text in a request, in characters.
const (
	maxName  = 50
	MaxText  = 255
	MaxNotes = 1000
)

var (
	// nameForm is a person's name: a letter or digit of any script, then letters, combining marks, digits, hyphens,
	// periods, commas and apostrophes of both kinds, with single spaces between words.
	nameForm = regexp.MustCompile(`^[\p{L}\p{N}][\p{L}\p{M}\p{N}.,'\x{2019}\x{02BC}\x{2010}-]*(\s[\p{L}\p{M}\p{N}.,'\x{2019}\x{02BC}\x{2010}-]+)*$`)
	// ZipForm is a postal code of the US: five digits, or five, a hyphen and four.
	ZipForm = regexp.MustCompile(`^[0-9]{5}(-[0-9]{4})?$`)
	// ICDForm is an ICD-10 code: letter, digit, digit or A or B, then up to four more.
	ICDForm = regexp.MustCompile(`^[A-Z][0-9][0-9AB](\.?[0-9A-Z]{1,4})?$`)
)

// Check collects the problems of one object of a request; At is the path of the object.
type Check struct {
	Problems *healthlab.Problems
	At       []any
}

// Add adds a problem about a field of the object.
func (c Check) Add(code, msg string, path ...any) {
	c.Problems.Add(code, msg, append(slices.Clone(c.At), path...)...)
}

// Under returns a Check for a nested object, at a path below this object.
func (c Check) Under(path ...any) Check {
	return Check{Problems: c.Problems, At: append(slices.Clone(c.At), path...)}
}

// Text adds a problem unless s has low to high characters and no NUL, and reports whether s is valid. name is the name
// of its field, or its index in a list.
func (c Check) Text(s string, name any, low, high int) bool {
	n := utf8.RuneCountInString(s)
	switch {
	case n == 0 && low > 0:
		c.Add("missing", "is required", name)
	case n < low || n > high:
		c.Add("string_length", fmt.Sprintf("must have %d to %d characters", low, high), name)
	case strings.ContainsRune(s, 0):
		c.Add("nul", "must not contain NUL", name)
	default:
		return true
	}
	return false
}

// Optional adds a problem if s is not nil and has more than high characters or a NUL.
func (c Check) Optional(s *string, name string, high int) {
	if s != nil {
		c.Text(*s, name, 0, high)
	}
}

// Name checks the form of a person's name.
func (c Check) Name(s, field string) {
	if c.Text(s, field, 1, maxName) && !nameForm.MatchString(s) {
		c.Add("name_form", "must start with a letter or digit, and have letters, digits, hyphens, periods, commas, apostrophes and single spaces only", field)
	}
}

// Filled is Text with a lower limit of one character. It also adds a problem if s is blank.
func (c Check) Filled(s, field string, high int) {
	if c.Text(s, field, 1, high) && strings.TrimSpace(s) == "" {
		c.Add("missing", "must not be blank", field)
	}
}

// Phone adds a problem unless s is a telephone number: with its country code after +, or as it is dialled in the US.
func (c Check) Phone(s, field string) {
	if !c.Text(s, field, 1, MaxText) {
		return
	}
	if !phone(s) {
		c.Add("phone_form", "must be a phone number with its country code, such as +14155550137", field)
	}
}

// OptionalPhone checks a telephone number that may be left out.
func (c Check) OptionalPhone(s *string, field string) {
	if s != nil && *s != "" {
		c.Phone(*s, field)
	}
}

// NPI adds a problem unless s is a National Provider Identifier: ten digits, of which the last is a check digit
// (Luhn's, over the number with 80840 before it).
func (c Check) NPI(s, field string) {
	if !c.Text(s, field, 1, MaxText) {
		return
	}
	sum, ok := 24, len(s) == 10 // 24 is the sum of the digits of 80840
	for i, r := range s {
		d := int(r - '0')
		ok = ok && d >= 0 && d <= 9
		if i%2 == 0 {
			d *= 2
			d = d/10 + d%10
		}
		sum += d
	}
	if !ok || sum%10 != 0 {
		c.Add("npi_form", "must be a National Provider Identifier: ten digits with a valid check digit", field)
	}
}

// Once adds a problem for each value that is in the list a second time. path is the path of the list.
func Once[T comparable](c Check, list []T, path ...any) {
	for i, v := range list {
		if slices.Contains(list[:i], v) {
			c.Add("duplicate", "must not be in the list twice", append(slices.Clone(path), i)...)
		}
	}
}

// ZipOfState adds a problem if a US postal code is of another state.
func (c Check) ZipOfState(zip string, other *string, state, country string) {
	field, zip := "zip", ZipOf(zip, other)
	if other != nil && zip == *other {
		field = "zip_code"
	}
	if country != HomeCountry || !ZipForm.MatchString(zip) || !slices.Contains(StatesOfUS, state) {
		return
	}
	if of := StateOfZip(zip[:5]); of != state {
		c.Add("zip_state", "must be a postal code of the state that the field state names", field)
	}
}

// Zip checks the form of a US postal code, which a request gives as zip, or as zip_code (other).
func (c Check) Zip(zip string, other *string) {
	field := "zip"
	if other != nil && zip == "" {
		zip, field = *other, "zip_code"
	}
	if c.Text(zip, field, 1, MaxText) && !ZipForm.MatchString(zip) {
		c.Add("zip_form", "must be five digits, or five, a hyphen and four", field)
	}
	c.OneZip(zip, other)
}

// OneZip adds a problem if zip_code (other) is given and differs from zip.
func (c Check) OneZip(zip string, other *string) {
	if other != nil && *other != zip {
		c.Add("conflict", "must equal zip if both are given", "zip_code")
	}
}

// ZipOf returns zip, or zip_code (other) if zip is empty.
func ZipOf(zip string, other *string) string {
	if zip == "" && other != nil {
		return *other
	}
	return zip
}

// Email checks an e-mail address.
func (c Check) Email(s, field string) {
	if !c.Text(s, field, 1, MaxText) {
		return
	}
	_, domain, _ := strings.Cut(s, "@")
	if a, err := mail.ParseAddress(s); err != nil || a.Address != s || !strings.Contains(domain, ".") {
		c.Add("email_form", "must be an e-mail address", field)
	}
}

// User adds a problem if the id of a request's user is zero.
func (c Check) User(id healthlab.UserID, field string) {
	if id.IsZero() {
		c.Add("missing", "is required", field)
	}
}

// OneOf adds a problem with the allowed values unless v is one of them. path is the path of the field.
func OneOf[T ~string](p *healthlab.Problems, v T, allowed []T, path ...any) {
	if !slices.Contains(allowed, v) {
		p.Add("enum", nearest.Allowed(v, allowed, nearest.Contract), path...)
	}
}

// Allowed returns a text with the allowed values, for an error about value, which it does not repeat. If there are many,
// it names the nearest ones, and where all are listed.
func Allowed(value string, all []string, where string) string {
	return nearest.Allowed(value, all, where)
}

// List returns the values separated by commas, or none, as a text for errors.
func List[T any](values []T) string {
	if len(values) == 0 {
		return "none"
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, ", ")
}

// Address adds the problems of an address, without its postal code. first and second are its lines; nil for no second
// line.
func (c Check) Address(first string, second *string, city, state, country string) {
	c.Text(first, "first_line", 1, MaxText)
	c.Optional(second, "second_line", MaxText)
	c.Text(city, "city", 1, MaxText)
	c.state(state, country)
	if c.Text(country, "country", 1, MaxText) && !slices.Contains(countries, country) {
		c.Add("country_form", "must be a country code of two upper-case letters (ISO 3166-1), such as US", "country")
	}
}

// Count adds a problem if n is not nil and below 0.
func (c Check) Count(n *int, field string) {
	if n != nil && *n < 0 {
		c.Add("greater_than_equal", "must be 0 or more", field)
	}
}

// OptionalOf is [OneOf] for a value that may be nil, which is valid.
func OptionalOf[T ~string](c Check, v *T, allowed []T, field string) {
	if v != nil {
		OneOf(c.Problems, *v, allowed, append(slices.Clone(c.At), field)...)
	}
}
