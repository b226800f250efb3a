package hl7

import (
	"strings"
	"unicode"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// Patient identifies the patient of an order or of a report.
type Patient struct {
	Family, Given string
	DOB           healthlab.Date `json:",omitzero"`
	// Gender is read from reports; empty if unknown. It is not compared.
	Gender people.Gender `json:",omitzero"`
}

// matches reports whether a report can be of the patient. Another birth date excludes it.
// With the same birth date, either the family or the given name may differ, since people
// change them; without a birth date, neither may.
func (p Patient) matches(q Patient) bool {
	known := !p.DOB.IsZero() && !q.DOB.IsZero()
	if known && p.DOB != q.DOB {
		return false
	}
	family, given := compare(p.Family, q.Family), compare(p.Given, q.Given)
	if known {
		return family != otherName || given != otherName
	}
	return family == sameName && given == sameName
}

// nameMatch is the outcome of comparing two names.
type nameMatch int

const (
	sameName nameMatch = iota // or one of them is missing
	otherName
	otherScript // they cannot be compared
)

// compare compares names as laboratories write them: shortened, in capitals, and without
// the letters that they do not have.
func compare(a, b string) nameMatch {
	begins := func(of func(rune) bool) (bool, string, string) {
		fold := func(s string) string {
			return strings.Map(func(r rune) rune {
				if of(r) {
					return r
				}
				return -1
			}, strings.ToLower(s))
		}
		a, b := fold(a), fold(b)
		return strings.HasPrefix(a, b) || strings.HasPrefix(b, a), a, b
	}
	if same, _, _ := begins(unicode.IsLetter); same {
		return sameName
	}
	same, a, b := begins(func(r rune) bool { return r >= 'a' && r <= 'z' })
	switch {
	case a != "" && b != "" && same:
		return sameName
	case (a == "") != (b == ""):
		return otherScript
	}
	return otherName
}

// patient returns the patient of the order.
func (d *dossier) patient() *orders.ReportedPatient {
	return &orders.ReportedPatient{FirstName: d.Patient.Given, LastName: d.Patient.Family, DOB: d.Patient.DOB}
}
