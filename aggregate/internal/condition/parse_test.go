package condition

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParse_operatorsBindNotThenAndThenOr(t *testing.T) {
	rows := []struct{ text, want string }{
		{"type = 'long_sleep'", "type = 'long_sleep'"},
		{"strain_score >= 14", "strain_score >= 14"},
		{"(a = 'w' AND b = 'p1') OR (a = 'r' AND b = 'p2')", "a = 'w' AND b = 'p1' OR a = 'r' AND b = 'p2'"},
		{"NOT type = 'x' AND score > 80", "NOT type = 'x' AND score > 80"},
		{"NOT (type = 'x' AND score > 80)", "NOT (type = 'x' AND score > 80)"},
		{"a = 1 OR b = 2 AND c = 3", "a = 1 OR b = 2 AND c = 3"},
		{"(a = 1 OR b = 2) AND c = 3", "(a = 1 OR b = 2) AND c = 3"},
		{"a = 1 AND (b = 2 AND c = 3)", "a = 1 AND (b = 2 AND c = 3)"},
		{"title = 'Coach''s run'", "title = 'Coach''s run'"},
		{"a is not null or b IS null", "a IS NOT NULL OR b IS NULL"},
		{"a not in(1,-2.5e3 , .5)", "a NOT IN (1, -2.5e3, .5)"},
		{"\"odd name\".\"select\"!=TRUE", "\"odd name\".select != TRUE"},
		{"\"and\" = 1", "\"and\" = 1"},
		{"is_predicted", "is_predicted"},
		{"not not true", "NOT NOT TRUE"},
		{"a=-1\n\tAND\rb=+1.", "a = -1 AND b = +1."},
	}
	for _, r := range rows {
		c, fault := Parse(r.text)
		require.Nil(t, fault, r.text)
		require.Equal(t, r.want, spell(c))
		again, fault := Parse(spell(c))
		require.Nil(t, fault)
		require.Equal(t, unplaced(c), unplaced(again))
	}
}

func TestParse_syntaxErrorHasItsOffset(t *testing.T) {
	rows := []struct {
		text   string
		offset int
	}{
		{"", 0},
		{"  ", 2},
		{"1 < efficiency < 2", 15},
		{"a = NULL", 4},
		{"a == 1", 3},
		{"a <> 1", 3},
		{"a = 1;", 5},
		{"a = 'x", 4},
		{"\"a = 1", 0},
		{"a = \"\"", 4},
		{"1 = 2", 0},
		{"'x' IN ('x')", 0},
		{"a IN ()", 6},
		{"a IN (b)", 6},
		{"a IN (1", 7},
		{"a BETWEEN 1 AND 2", 2},
		{"a LIKE 'x'", 2},
		{"BETWEEN = 1", 0},
		{"a = 1a", 4},
		{"a = 1.2.3", 4},
		{"a = 1e", 4},
		{"a = -", 4},
		{"(a = 1", 6},
		{"a = 1)", 5},
		{"a + 1 = 2", 2},
		{"a = 1 AND", 9},
		{"a IS 1", 5},
		{"a NOT = 1", 6},
		{"a.b.c = 1", 3},
		{"'text'", 6},
		{"a = ö", 4},
		{strings.Repeat("(", 65) + "a" + strings.Repeat(")", 65), 64},
		{strings.Repeat("NOT ", 65) + "a", 256},
		{"a = '" + strings.Repeat("x", 4096) + "'", 4096},
	}
	for _, r := range rows {
		_, fault := Parse(r.text)
		require.NotNil(t, fault, r.text)
		problem := fault.Problem(nil)
		require.Equal(t, "where_syntax", problem.Code)
		require.Equal(t, r.offset, problem.Context["offset"], r.text)
	}
	deep := strings.Repeat("(", 64) + "a" + strings.Repeat(")", 64)
	_, fault := Parse(deep)
	require.Nil(t, fault)
}

// drawCond makes a random
func drawCond(t *rapid.T, depth int) Cond {
	name := func() Operand {
		o := Operand{Kind: 'c', Text: rapid.SampledFrom([]string{"a", "value", "odd name", "NOT", "in", "x1"}).Draw(t, "name")}
		if rapid.Bool().Draw(t, "two") {
			o.Two, o.Table = true, rapid.SampledFrom([]string{"sleep", "a b"}).Draw(t, "table")
		}
		return o
	}
	literal := func() Operand {
		switch rapid.IntRange(0, 2).Draw(t, "literal") {
		case 0:
			return Operand{Kind: 's', Text: rapid.StringMatching(`[a-z' "\\]{0,6}`).Draw(t, "text")}
		case 1:
			return Operand{Kind: 'n', Text: rapid.StringMatching(`[+-]?[0-9]{1,4}(\.[0-9]{0,3})?([eE][+-]?[0-9])?`).Draw(t, "number")}
		default:
			return Operand{Kind: 'b', Yes: rapid.Bool().Draw(t, "yes")}
		}
	}
	if depth > 0 {
		switch rapid.IntRange(0, 4).Draw(t, "node") {
		case 0:
			return And{Left: drawCond(t, depth-1), Right: drawCond(t, depth-1)}
		case 1:
			return Or{Left: drawCond(t, depth-1), Right: drawCond(t, depth-1)}
		case 2:
			return Not{Of: drawCond(t, depth-1)}
		}
	}
	switch rapid.IntRange(0, 3).Draw(t, "leaf") {
	case 0:
		return Null{Of: name(), Not: rapid.Bool().Draw(t, "not")}
	case 1:
		c := In{Of: name(), Not: rapid.Bool().Draw(t, "not")}
		for range rapid.IntRange(1, 3).Draw(t, "n") {
			c.List = append(c.List, literal())
		}
		return c
	case 2:
		return Bool{Of: name()}
	default:
		op := rapid.SampledFrom([]string{"=", "!=", "<", "<=", ">", ">="}).Draw(t, "op")
		return Compare{Op: op, Left: name(), Right: literal()}
	}
}

// unplaced removes the offsets of a
func unplaced(n Cond) Cond {
	switch n := n.(type) {
	case And:
		return And{Left: unplaced(n.Left), Right: unplaced(n.Right)}
	case Or:
		return Or{Left: unplaced(n.Left), Right: unplaced(n.Right)}
	case Not:
		return Not{Of: unplaced(n.Of)}
	case Compare:
		n.Left.At, n.Right.At = 0, 0
		return n
	case Null:
		n.Of.At = 0
		return n
	case In:
		n.Of.At = 0
		list := append([]Operand(nil), n.List...)
		for i := range list {
			list[i].At = 0
		}
		n.List = list
		return n
	case Bool:
		n.Of.At = 0
		return n
	}
	return n
}

func TestParse_printedConditionParsesToItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCond(t, 5)
		text := spell(c)
		again, fault := Parse(text)
		require.Nil(t, fault, text)
		require.Equal(t, c, unplaced(again), text)
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"type = 'long_sleep' AND NOT (efficiency > 90.5 OR a IS NULL)", "\"x\".y in (1,'a''b',TRUE)", "((((", "1 < a < 2", "a = .5e-3",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, fault := Parse(text)
		if fault != nil {
			require.Equal(t, CodeSyntax, fault.Code)
			return
		}
		printed := spell(c)
		again, fault := Parse(printed)
		if fault != nil {
			// Only what is longer in print may not be read back.
			require.Greater(t, len(printed), MaxLength)
			return
		}
		require.Equal(t, printed, spell(again))
		require.Equal(t, unplaced(c), unplaced(again))
	})
}
