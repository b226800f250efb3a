package aggregate

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/internal/condition"
)

func TestWhere_operatorsBindNotThenAndThenOr(t *testing.T) {
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
		c, err := ParseWhere(r.text)
		require.NoError(t, err, r.text)
		require.Equal(t, r.want, c.String())
		again, err := ParseWhere(c.String())
		require.NoError(t, err)
		require.Equal(t, c.String(), again.String())
	}
}

func TestWhere_syntaxErrorHasItsOffset(t *testing.T) {
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
		_, err := ParseWhere(r.text)
		var invalid *healthlab.InvalidError
		require.True(t, errors.As(err, &invalid), r.text)
		require.Equal(t, "where_syntax", invalid.Problems[0].Code)
		require.Equal(t, r.offset, invalid.Problems[0].Context["offset"], r.text)
	}
	deep := strings.Repeat("(", 64) + "a" + strings.Repeat(")", 64)
	_, err := ParseWhere(deep)
	require.NoError(t, err)
}

// drawCond makes a random condition.
func drawCond(t *rapid.T, depth int) condition.Cond {
	name := func() condition.Operand {
		o := condition.Operand{Kind: 'c', Text: rapid.SampledFrom([]string{"a", "value", "odd name", "NOT", "in", "x1"}).Draw(t, "name")}
		if rapid.Bool().Draw(t, "two") {
			o.Two, o.Table = true, rapid.SampledFrom([]string{"sleep", "a b"}).Draw(t, "table")
		}
		return o
	}
	literal := func() condition.Operand {
		switch rapid.IntRange(0, 2).Draw(t, "literal") {
		case 0:
			return condition.Operand{Kind: 's', Text: rapid.StringMatching(`[a-z' "\\]{0,6}`).Draw(t, "text")}
		case 1:
			return condition.Operand{Kind: 'n', Text: rapid.StringMatching(`[+-]?[0-9]{1,4}(\.[0-9]{0,3})?([eE][+-]?[0-9])?`).Draw(t, "number")}
		default:
			return condition.Operand{Kind: 'b', Yes: rapid.Bool().Draw(t, "yes")}
		}
	}
	if depth > 0 {
		switch rapid.IntRange(0, 4).Draw(t, "node") {
		case 0:
			return condition.And{Left: drawCond(t, depth-1), Right: drawCond(t, depth-1)}
		case 1:
			return condition.Or{Left: drawCond(t, depth-1), Right: drawCond(t, depth-1)}
		case 2:
			return condition.Not{Of: drawCond(t, depth-1)}
		}
	}
	switch rapid.IntRange(0, 3).Draw(t, "leaf") {
	case 0:
		return condition.Null{Of: name(), Not: rapid.Bool().Draw(t, "not")}
	case 1:
		c := condition.In{Of: name(), Not: rapid.Bool().Draw(t, "not")}
		for range rapid.IntRange(1, 3).Draw(t, "n") {
			c.List = append(c.List, literal())
		}
		return c
	case 2:
		return condition.Bool{Of: name()}
	default:
		op := rapid.SampledFrom([]string{"=", "!=", "<", "<=", ">", ">="}).Draw(t, "op")
		return condition.Compare{Op: op, Left: name(), Right: literal()}
	}
}

// unplaced removes the offsets of a condition.
func unplaced(n condition.Cond) condition.Cond {
	switch n := n.(type) {
	case condition.And:
		return condition.And{Left: unplaced(n.Left), Right: unplaced(n.Right)}
	case condition.Or:
		return condition.Or{Left: unplaced(n.Left), Right: unplaced(n.Right)}
	case condition.Not:
		return condition.Not{Of: unplaced(n.Of)}
	case condition.Compare:
		n.Left.At, n.Right.At = 0, 0
		return n
	case condition.Null:
		n.Of.At = 0
		return n
	case condition.In:
		n.Of.At = 0
		list := append([]condition.Operand(nil), n.List...)
		for i := range list {
			list[i].At = 0
		}
		n.List = list
		return n
	case condition.Bool:
		n.Of.At = 0
		return n
	}
	return n
}

func TestWhere_printedConditionParsesToItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCond(t, 5)
		text := condition.Spell(c)
		again, fault := condition.Parse(text)
		require.Nil(t, fault, text)
		require.Equal(t, c, unplaced(again), text)
	})
}

func FuzzWhere(f *testing.F) {
	for _, s := range []string{
		"type = 'long_sleep' AND NOT (efficiency > 90.5 OR a IS NULL)", "\"x\".y in (1,'a''b',TRUE)", "((((", "1 < a < 2", "a = .5e-3",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseWhere(text)
		if err != nil {
			require.ErrorIs(t, err, healthlab.Invalid)
			return
		}
		printed := c.String()
		again, err := ParseWhere(printed)
		if err != nil {
			// Only what is longer in print may not be read back.
			require.Greater(t, len(printed), condition.MaxLength)
			return
		}
		require.Equal(t, printed, again.String())
		require.Equal(t, unplaced(c.root), unplaced(again.root))
	})
}
