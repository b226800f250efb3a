package er7

import (
	"regexp"
	"strings"

	"github.com/shopspring/decimal"
)

// Authority is an HD: the assigning authority of an identifier.
type Authority struct{ Namespace, ID, Type string }

// Entity is an EI: an identifier of a thing, such as an order.
type Entity struct {
	ID string
	Authority
}

// Entity reads an EI.
func (p Part) Entity() Entity {
	return Entity{p.Component(1).Text(), Authority{p.Component(2).Text(), p.Component(3).Text(), p.Component(4).Text()}}
}

// authority reads an HD from a field, or from the subcomponents of a component.
func (p Part) authority() Authority {
	at := p.Component
	if p.level >= component {
		at = p.Subcomponent
	}
	return Authority{at(1).Text(), at(2).Text(), at(3).Text()}
}

// Identifier is a CX: an identifier of a person or an account.
type Identifier struct {
	ID        string
	Authority Authority
	// Type is the type of identifier, such as MR for a medical record number.
	Type string
}

// Identifier reads a CX.
func (p Part) Identifier() Identifier {
	return Identifier{p.Component(1).Text(), p.Component(4).authority(), p.Component(5).Text()}
}

// Code is a code with its text and code system.
type Code struct{ Code, Text, System string }

// Coded is a CE, CNE or CWE: up to three codes of one concept, and the original text.
type Coded struct {
	Codes    [3]Code
	Original string
}

// Coded reads a CE, CNE or CWE from a field, or from the subcomponents of a component.
func (p Part) Coded() Coded {
	part := p.Component
	if p.level >= component {
		part = p.Subcomponent
	}
	at := func(n int) string { return part(n).Text() }
	return Coded{[3]Code{{at(1), at(2), at(3)}, {at(4), at(5), at(6)}, {at(10), at(11), at(12)}}, at(9)}
}

// In returns the code in the first of the given systems for which there is one.
func (c Coded) In(systems ...string) (Code, bool) {
	for _, s := range systems {
		for _, code := range c.Codes {
			if code.Code != "" && strings.EqualFold(code.System, s) {
				return code, true
			}
		}
	}
	return Code{}, false
}

// Display returns the text for people: the original text, else the text of a code, else the code.
func (c Coded) Display() string {
	if c.Original != "" {
		return c.Original
	}
	for _, code := range c.Codes {
		if code.Text != "" {
			return code.Text
		}
	}
	for _, code := range c.Codes {
		if code.Code != "" {
			return code.Code
		}
	}
	return ""
}

// Unit returns the unit in a CE, CNE or CWE that is a field or a component: its code, else its text. An exponent
// after an unescaped separator belongs to the unit: 10^3/uL and mL/min/1.73m^2.
func (p Part) Unit() string {
	one, at := p, p.Component
	if p.level == field {
		one = p.at(1)
	}
	if p.level >= component {
		at = p.Subcomponent
	}
	first := at(1).Whole()
	for i := 2; i <= one.Len(); i++ {
		next := at(i).Whole()
		if !hasExponent(first, next) {
			break
		}
		first += string(rune(p.separator(one.level))) + next
	}
	if first != "" {
		return first
	}
	return p.Coded().Display()
}

func hasExponent(power, exponent string) bool {
	return endsWithTen.MatchString(power) && exponentOfTen.MatchString(exponent) ||
		endsWithUnit.MatchString(power) && exponentOfUnit.MatchString(exponent)
}

var (
	endsWithTen    = regexp.MustCompile(`(?:^|[^0-9.])10$`)
	exponentOfTen  = regexp.MustCompile(`^[-+]?[0-9]{1,2}(?:$|[^0-9])`)
	endsWithUnit   = regexp.MustCompile(`[A-Za-z\])]$`)
	exponentOfUnit = regexp.MustCompile(`^[-+]?[0-9](?:$|[/*)\]])`)
)

// Name is an XPN: a person's name.
type Name struct{ Family, Given, Middle, Suffix, Prefix, Degree, Type string }

// Name reads an XPN.
func (p Part) Name() Name { return p.name(1) }

func (p Part) name(first int) Name {
	at := func(n int) string { return p.Component(first + n).Text() }
	return Name{at(0), at(1), at(2), at(3), at(4), at(5), at(6)}
}

// Full returns given, middle and family name.
func (n Name) Full() string {
	return strings.Join(strings.Fields(n.Given+" "+n.Middle+" "+n.Family), " ")
}

// Person is an XCN: a person with an identifier, such as a physician.
type Person struct {
	ID string
	Name
	Authority Authority
}

// Person reads an XCN.
func (p Part) Person() Person {
	n := p.name(2)
	n.Type = p.Component(10).Text()
	return Person{p.Component(1).Text(), n, p.Component(9).authority()}
}

// Address is an XAD: a postal address.
type Address struct{ Street, Other, City, State, Zip, Country, Type string }

// Address reads an XAD.
func (p Part) Address() Address {
	at := func(n int) string { return p.Component(n).Text() }
	return Address{at(1), at(2), at(3), at(4), at(5), at(6), at(7)}
}

// Telecom is an XTN: a telephone number or an e-mail address.
type Telecom struct {
	// Number is the number as it was sent, or joined from its parts.
	Number string
	// Use and Equipment are codes such as PRN (primary residence) and PH (telephone).
	Use, Equipment string
	Email          string
}

// Telecom reads an XTN.
func (p Part) Telecom() Telecom {
	at := func(n int) string { return p.Component(n).Text() }
	t := Telecom{Number: at(12), Use: at(2), Equipment: at(3), Email: at(4)}
	if t.Number == "" {
		t.Number = at(1)
	}
	if t.Number == "" && at(7) != "" {
		if at(5) != "" {
			t.Number = "+" + strings.TrimPrefix(at(5), "+")
		}
		t.Number += at(6) + at(7)
		if at(8) != "" {
			t.Number += " x" + at(8)
		}
	}
	return t
}

// Number reads an NM. It returns false if the part is not a number.
func (p Part) Number() (decimal.Decimal, bool) { return parseNumber(p.Text()) }

func parseNumber(text string) (decimal.Decimal, bool) {
	text = strings.TrimSpace(text)
	if rest, plus := strings.CutPrefix(text, "+"); plus && !strings.HasPrefix(rest, "-") {
		text = rest
	}
	const longest = 50 // no measurement has more digits
	if text == "" || len(text) > longest || strings.ContainsAny(text, "eE+") {
		return decimal.Decimal{}, false
	}
	d, err := decimal.NewFromString(text)
	return d, err == nil
}

// Structured is an SN: a number with a comparator, an interval or a ratio.
type Structured struct {
	// Comparator is one of <, <=, >, >=, =, <> and empty, which means =.
	Comparator string
	// First and Second are the numbers as they were sent.
	First, Separator, Second string
}

// Structured reads an SN. It returns false if its numbers are malformed.
func (p Part) Structured() (Structured, bool) {
	at := func(n int) string { return strings.TrimSpace(p.Component(n).Whole()) }
	s := Structured{at(1), at(2), at(3), at(4)}
	switch s.Comparator {
	case "", "<", "<=", ">", ">=", "=", "<>":
	default:
		return s, false
	}
	_, first := parseNumber(s.First)
	_, second := parseNumber(s.Second)
	return s, (first || s.First == "") && (second || s.Second == "") && (first || second)
}

// String returns the value as people write it: <5, 1:128, 3-5.
func (s Structured) String() string {
	c := s.Comparator
	if c == "=" {
		c = ""
	}
	return c + s.First + s.Separator + s.Second
}
