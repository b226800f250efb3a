package ucum

import (
	"strings"
	"sync"
)

//go:generate go run ./gen

// prefixRow, baseRow and unitRow are rows of the official UCUM table. code is the case-sensitive code and upper the
// case-insensitive one.
type prefixRow struct{ code, upper, name, value string }

type baseRow struct{ code, upper, name string }

// unitRow defines a unit as value times unit. For a special unit, it names the function whose argument is counted
// in value times unit.
type unitRow struct {
	code, upper, name string
	value, unit       string
	metric            bool // the unit may have a prefix
	arbitrary         bool // the unit cannot be compared with any other unit
	function          string
}

// atom is a unit without a prefix: a row of the UCUM table, in base units.
type atom struct {
	quantity
	unitRow
}

type prefix struct {
	prefixRow
	quantity
}

// codes has the atoms and prefixes of the UCUM table by code: code by case-sensitive, upper by case-insensitive
// codes.
type codes struct {
	code, upper             map[string]*atom
	prefixCode, prefixUpper map[string]prefix
}

// apart lists laboratory units that UCUM defines as numbers, but which are compared by name: cells per field of a
// microscope, and osmoles.
var apart = map[string]bool{"[HPF]": true, "[LPF]": true, "osm": true}

var table = sync.OnceValue(func() *codes {
	t := &codes{code: map[string]*atom{}, upper: map[string]*atom{}, prefixCode: map[string]prefix{}, prefixUpper: map[string]prefix{}}
	for _, row := range prefixTable {
		p := prefix{row, number(rational(row.value))}
		t.prefixCode[row.code], t.prefixUpper[row.upper] = p, p
	}
	add := func(a *atom) {
		t.code[a.code] = a
		if _, taken := t.upper[a.upper]; !taken { // l and L share a case-insensitive code, and so do [iU] and [IU]
			t.upper[a.upper] = a
		}
	}
	for i, row := range baseTable {
		a := &atom{one(), unitRow{code: row.code, upper: row.upper, name: row.name, metric: true}}
		a.dims[i] = 1
		add(a)
	}
	for _, row := range unitTable {
		add(&atom{unitRow: row})
	}
	// Quantities are computed only after all atoms are known, because a definition may refer to a unit further down
	// in the table.
	for _, a := range t.code {
		t.define(a)
	}
	return t
})

// define computes the quantity of an atom in base units, unless that was done before.
func (t *codes) define(a *atom) {
	switch {
	case a.factor != nil:
	case a.code == "mol":
		a.quantity = one()
		a.dims[dimAmount] = 1
	case a.function != "":
		of := a.unit
		if strings.Contains(a.function, "tan") {
			of = "rad" // a tangent takes radians, whatever unit the table gives
		}
		a.quantity = one()
		a.scale = &special{function: functions[a.function], of: t.defined(of).times(number(rational(a.value)), 1)}
	default:
		a.quantity = t.defined(a.unit).times(number(rational(a.value)), 1)
		if a.unitRow.arbitrary && len(a.of) == 0 || apart[a.code] {
			a.add(a.code, 1)
		}
	}
}

// defined parses the code in a definition of the UCUM table and returns its quantity in base units.
func (t *codes) defined(code string) quantity {
	q, err := (&reader{rest: code, atoms: t.code, prefixes: t.prefixCode, define: t.define}).main()
	if err != nil {
		panic("ucum: a definition is no unit: " + code)
	}
	return q
}
