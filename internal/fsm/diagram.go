package fsm

import (
	"fmt"
	"slices"
	"strings"
)

// Mermaid returns the states and transitions of one variant as the text of a Mermaid state diagram, in the order of
// the table.
func (m *Machine[S, T, V, F]) Mermaid(v V) string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	fmt.Fprintf(&b, "    [*] --> %v\n", m.table.Initial)
	for _, r := range m.table.Rows {
		if len(r.Variants) > 0 && !slices.Contains(r.Variants, v) {
			continue
		}
		label := fmt.Sprint(r.On)
		if r.Guard != "" {
			label += " [" + r.Guard + "]"
		}
		fmt.Fprintf(&b, "    %v --> %v: %s\n", r.From, r.To, label)
	}
	seen := m.reachable(v)
	for _, s := range m.table.Final {
		if seen[s] {
			fmt.Fprintf(&b, "    %v --> [*]\n", s)
		}
	}
	return b.String()
}
