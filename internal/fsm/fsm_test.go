package fsm_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab/internal/fsm"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A parcel goes by van or by bicycle; only a van brings it back, and a returned parcel
// may be sent again. Light ones are dropped at the door.
type parcel struct{ grams int }

type (
	row     = fsm.Row[string, string, string, parcel]
	table   = fsm.Table[string, string, string, parcel]
	machine = fsm.Machine[string, string, string, parcel]
)

func parcels() table {
	return table{
		Initial:  "packed",
		Variants: []string{"van", "bicycle"},
		Final:    []string{"dropped", "signed", "returned"},
		Reopen:   []string{"returned"},
		Rows: []row{
			{From: "packed", On: "leave", To: "under_way"},
			{From: "under_way", On: "ring", To: "dropped", Guard: "light"},
			{From: "under_way", On: "ring", To: "signed"},
			{From: "under_way", On: "nobody_home", To: "returned", Variants: []string{"van"}},
			{From: "under_way", On: "nobody_home", To: "under_way", Variants: []string{"bicycle"}},
			{From: "returned", On: "leave", To: "under_way", Variants: []string{"van"}},
		},
		Guards: map[string]func(parcel) bool{"light": func(p parcel) bool { return p.grams < 500 }},
	}
}

func compile(t *testing.T, tab table) *machine {
	t.Helper()
	m, err := fsm.Compile(tab)
	require.NoError(t, err)
	return m
}

func TestCompile_refusesInvalidTables(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*table)
		want  string
	}{
		{"unknown guard", func(tab *table) { tab.Rows[1].Guard = "heavy" },
			`under_way on ring: no guard named "heavy"`},
		{"guard that is nil", func(tab *table) { tab.Guards["light"] = nil },
			`under_way on ring: no guard named "light"`},
		{"unknown variant", func(tab *table) { tab.Rows[3].Variants = []string{"van", "mule"} },
			"under_way on nobody_home: no variant mule"},
		{"two rows", func(tab *table) { tab.Rows = append(tab.Rows, row{From: "packed", On: "leave", To: "signed"}) },
			"packed on leave (van): two rows\npacked on leave (bicycle): two rows"},
		{"two rows of one variant", func(tab *table) {
			tab.Rows = append(tab.Rows, row{From: "packed", On: "leave", To: "signed", Variants: []string{"bicycle"}})
		}, "packed on leave (bicycle): two rows"},
		{"two rows of one guard", func(tab *table) { tab.Rows[2].Guard = "light" },
			"under_way on ring (van): two rows\nunder_way on ring (bicycle): two rows"},
		{"a guard that nobody asks", func(tab *table) { tab.Rows[1], tab.Rows[2] = tab.Rows[2], tab.Rows[1] },
			"under_way on ring (van): two rows\nunder_way on ring (bicycle): two rows"},
		{"exit from a final state", func(tab *table) { tab.Reopen = nil },
			"returned on leave: a final state must have no transitions unless it is in Reopen"},
		{"reopened, but not final", func(tab *table) { tab.Reopen = append(tab.Reopen, "packed") },
			"packed: a state in Reopen must be final"},
		{"dead end", func(tab *table) { tab.Final = []string{"dropped", "returned"} },
			"signed (van): a state without transitions must be final\nsigned (bicycle): a state without transitions must be final"},
		{"dead end with a circle", func(tab *table) {
			tab.Final = []string{"dropped", "returned"}
			tab.Rows = append(tab.Rows, row{From: "signed", On: "look", To: "signed"})
		}, "signed (van): a state without transitions must be final\nsigned (bicycle): a state without transitions must be final"},
		{"row that cannot be reached", func(tab *table) {
			tab.Rows = append(tab.Rows, row{From: "lost", On: "find", To: "packed"})
		}, "lost on find (van): state cannot be reached\nlost on find (bicycle): state cannot be reached"},
		{"row that one variant cannot reach", func(tab *table) { tab.Rows[5].Variants = nil },
			"returned on leave (bicycle): state cannot be reached"},
		{"final state that cannot be reached", func(tab *table) { tab.Final = append(tab.Final, "eaten") },
			"eaten: final state cannot be reached"},
		{"all at once", func(tab *table) {
			tab.Rows[1].Guard = "heavy"
			tab.Reopen = nil
			tab.Final = append(tab.Final, "eaten")
		}, "under_way on ring: no guard named \"heavy\"\nreturned on leave: a final state must have no transitions unless it is in Reopen\n" +
			"eaten: final state cannot be reached"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tab := parcels()
			tt.spoil(&tab)
			m, err := fsm.Compile(tab)
			require.EqualError(t, err, tt.want)
			require.Nil(t, m)
			require.PanicsWithValue(t, "fsm: "+tt.want, func() { fsm.Must(tab) })
		})
	}
}

func TestCompile_emptyTableNeedsAFinalState(t *testing.T) {
	_, err := fsm.Compile(table{Initial: "packed"})
	require.EqualError(t, err, "packed (): a state without transitions must be final")
	m := compile(t, table{Initial: "packed", Final: []string{"packed"}})
	require.True(t, m.Final("packed"))
	require.Equal(t, []string{"packed"}, m.States(""))
}

func TestMachine_isUnaffectedByLaterChangesOfItsTable(t *testing.T) {
	tab := parcels()
	m := compile(t, tab)
	before := walk(m)
	for _, rows := range [][]row{tab.Rows, m.Rows()} {
		rows[0].To = "lost"
		rows[3].Variants[0] = "bicycle"
	}
	tab.Final[0], tab.Variants[0], tab.Reopen[0] = "x", "x", "x"
	delete(tab.Guards, "light")
	require.Equal(t, before, walk(m))
}

func TestMachine_returnsStatesRowsAndFinalStates(t *testing.T) {
	m := compile(t, parcels())
	require.Equal(t, "packed", m.Initial())
	require.Equal(t, parcels().Rows, m.Rows())
	require.Equal(t, []string{"packed", "under_way", "dropped", "signed", "returned"}, m.States("van"))
	require.Equal(t, []string{"packed", "under_way", "dropped", "signed"}, m.States("bicycle"))
	for state, want := range map[string]bool{
		"packed": false, "under_way": false, "dropped": true, "signed": true, "returned": true, "lost": false,
	} {
		require.Equal(t, want, m.Final(state), state)
	}
}

// walk asks the machine about every variant, state, trigger and fact there is, and some
// that are not.
func walk(m *machine) string {
	var b strings.Builder
	for _, v := range []string{"van", "bicycle", "mule"} {
		for _, s := range []string{"packed", "under_way", "dropped", "signed", "returned", "lost"} {
			for _, on := range []string{"leave", "ring", "nobody_home", "sing"} {
				for _, p := range []parcel{{499}, {500}} {
					to, ok := m.Next(v, s, on, p)
					if !ok {
						to = "-"
					}
					fmt.Fprintf(&b, "%s: %s, %s, %d g: %s\n", v, s, on, p.grams, to)
				}
			}
		}
	}
	return b.String()
}

func TestMachine_transitionsEqualTheGoldenFile(t *testing.T) {
	golden(t, "walk.txt", walk(compile(t, parcels())))
}

func TestMermaid_equalsTheGoldenFile(t *testing.T) {
	m := compile(t, parcels())
	golden(t, "van.mmd", m.Mermaid("van"))
	golden(t, "bicycle.mmd", m.Mermaid("bicycle"))
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// No sequence of triggers leaves the table, and only a reopened end is left again.
func TestMachine_takesOnlyTransitionsOfItsTable(t *testing.T) {
	tab := parcels()
	m := compile(t, tab)
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SampledFrom(tab.Variants).Draw(t, "variant")
		p := parcel{rapid.IntRange(0, 1000).Draw(t, "grams")}
		s := m.Initial()
		for range 30 {
			on := rapid.SampledFrom([]string{"leave", "ring", "nobody_home", "sing"}).Draw(t, "on")
			to, ok := m.Next(v, s, on, p)
			if !ok {
				require.Empty(t, to)
				continue
			}
			require.Contains(t, m.States(v), to)
			require.True(t, !m.Final(s) || slices.Contains(tab.Reopen, s))
			s = to
		}
	})
}
