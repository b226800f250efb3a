// Package fsm turns a table of transitions into a finite state machine.
//
// A lifecycle is a list of rows: from this state, on this trigger, to that state,
// for these variants. [Compile] refuses an inconsistent table, so a mistake shows at
// start-up and in a one-line test. A machine defines the lifecycle of all things of a
// kind, such as orders. It is immutable and safe for concurrent use. The caller stores
// the current state of each thing and passes it to [Machine.Next].
//
//	var door = fsm.Must(fsm.Table[string, string, string, Door]{
//		Initial: "closed",
//		Final:   []string{"gone"},
//		Rows: []fsm.Row[string, string, string, Door]{
//			{From: "closed", On: "push", To: "open", Guard: "unlocked"},
//			…
//		},
//		Guards: map[string]func(Door) bool{"unlocked": Door.Unlocked},
//	})
package fsm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Row is a transition: in state From, the trigger On leads to state To.
type Row[S, T, V comparable, F any] struct {
	From S
	On   T
	To   S
	// Variants lists the lifecycle variants that have this row. Empty means all.
	Variants []V
	// Guard is the name, in the table's Guards, of the condition that the facts must meet. Empty means no
	// condition.
	Guard string
}

// Table lists the transitions of a lifecycle. S is the type of states, T of triggers, V of variants of the
// lifecycle (struct{} if there is only one), F of the facts that guards read.
type Table[S, T, V comparable, F any] struct {
	// Initial is the first state of every variant.
	Initial S
	// Variants lists all variants of the lifecycle. Empty means that it has one variant, the zero value of V.
	Variants []V
	// Final lists the states in which a lifecycle may end. A final state has no transitions, unless Reopen also
	// lists it.
	Final []S
	// Reopen lists the final states that may have transitions.
	Reopen []S
	// Rows lists the transitions. Several rows of a variant may share From and On if they have different guards:
	// the first row whose guard is true applies, so a row without a guard must be the last of them.
	Rows []Row[S, T, V, F]
	// Guards maps names to conditions, which are pure functions of the facts.
	Guards map[string]func(F) bool
}

// Machine is a checked table of transitions. It does not hold a current state. It is safe for concurrent use.
type Machine[S, T, V comparable, F any] struct {
	table Table[S, T, V, F]
	next  map[edge[S, T, V]][]Row[S, T, V, F]
	final map[S]bool
}

type edge[S, T, V comparable] struct {
	variant V
	from    S
	on      T
}

// Compile checks the table and returns its machine, which has a copy of the table. It refuses an unknown guard or
// variant, two rows of equal From and On of which the second can never apply, a transition from a final state, a
// state that cannot be reached, and a state without transitions that is not final. The error lists all problems, in
// the order of the table.
func Compile[S, T, V comparable, F any](t Table[S, T, V, F]) (*Machine[S, T, V, F], error) {
	if len(t.Variants) == 0 {
		t.Variants = []V{*new(V)}
	}
	t.Variants, t.Final, t.Reopen = slices.Clone(t.Variants), slices.Clone(t.Final), slices.Clone(t.Reopen)
	t.Rows, t.Guards = cloneRows(t.Rows), maps.Clone(t.Guards)
	m := &Machine[S, T, V, F]{
		table: t,
		next:  make(map[edge[S, T, V]][]Row[S, T, V, F]),
		final: make(map[S]bool, len(t.Final)),
	}
	for _, s := range t.Final {
		m.final[s] = true
	}
	var faults []error
	refuse := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for _, r := range t.Rows {
		if r.Guard != "" && t.Guards[r.Guard] == nil {
			refuse("%v on %v: no guard named %q", r.From, r.On, r.Guard)
		}
		if m.final[r.From] && !slices.Contains(t.Reopen, r.From) {
			refuse("%v on %v: a final state must have no transitions unless it is in Reopen", r.From, r.On)
		}
		variants := r.Variants
		if len(variants) == 0 {
			variants = t.Variants
		}
		for _, v := range variants {
			if !slices.Contains(t.Variants, v) {
				refuse("%v on %v: no variant %v", r.From, r.On, v)
			}
			e := edge[S, T, V]{v, r.From, r.On}
			for _, other := range m.next[e] {
				if other.Guard == r.Guard || other.Guard == "" {
					refuse("%v on %v (%v): two rows", r.From, r.On, v)
				}
			}
			m.next[e] = append(m.next[e], r)
		}
	}
	for _, s := range t.Reopen {
		if !m.final[s] {
			refuse("%v: a state in Reopen must be final", s)
		}
	}
	for _, v := range t.Variants {
		m.checkVariant(v, refuse)
	}
	m.checkReached(refuse)
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return m, nil
}

func cloneRows[S, T, V comparable, F any](rows []Row[S, T, V, F]) []Row[S, T, V, F] {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Variants = slices.Clone(rows[i].Variants)
	}
	return rows
}

// checkVariant reports, by refuse, each state that the variant can reach, that has no transitions and is not final.
func (m *Machine[S, T, V, F]) checkVariant(v V, refuse func(string, ...any)) {
	for _, s := range m.States(v) {
		if m.final[s] {
			continue
		}
		if !slices.ContainsFunc(m.table.Rows, func(r Row[S, T, V, F]) bool {
			return r.From == s && r.To != s && (len(r.Variants) == 0 || slices.Contains(r.Variants, v))
		}) {
			refuse("%v (%v): a state without transitions must be final", s, v)
		}
	}
}

// checkReached reports, by refuse, each row whose From one of the row's variants cannot reach, and each final state
// that no variant can reach.
func (m *Machine[S, T, V, F]) checkReached(refuse func(string, ...any)) {
	for _, v := range m.table.Variants {
		seen := m.reachable(v)
		for _, r := range m.table.Rows {
			if !seen[r.From] && (len(r.Variants) == 0 || slices.Contains(r.Variants, v)) {
				refuse("%v on %v (%v): state cannot be reached", r.From, r.On, v)
			}
		}
	}
	for _, s := range m.table.Final {
		if !slices.ContainsFunc(m.table.Variants, func(v V) bool { return m.reachable(v)[s] }) {
			refuse("%v: final state cannot be reached", s)
		}
	}
}

// reachable returns the states to which transitions of a variant lead from the initial state, and the initial
// state.
func (m *Machine[S, T, V, F]) reachable(v V) map[S]bool {
	seen := map[S]bool{m.table.Initial: true}
	for todo := []S{m.table.Initial}; len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, r := range m.table.Rows {
			if r.From == s && !seen[r.To] && (len(r.Variants) == 0 || slices.Contains(r.Variants, v)) {
				seen[r.To] = true
				todo = append(todo, r.To)
			}
		}
	}
	return seen
}

// Must calls [Compile] and panics on an error. It is for tables in package variables.
func Must[S, T, V comparable, F any](t Table[S, T, V, F]) *Machine[S, T, V, F] {
	m, err := Compile(t)
	if err != nil {
		panic(fmt.Sprintf("fsm: %v", err))
	}
	return m
}

// Next returns the state to which a trigger leads from a state of a variant. ok is false if no row allows it with
// these facts.
func (m *Machine[S, T, V, F]) Next(v V, from S, on T, facts F) (to S, ok bool) {
	for _, r := range m.next[edge[S, T, V]{v, from, on}] {
		if r.Guard == "" || m.table.Guards[r.Guard](facts) {
			return r.To, true
		}
	}
	return to, false
}

// Initial returns the first state of every variant.
func (m *Machine[S, T, V, F]) Initial() S { return m.table.Initial }

// Final reports whether a lifecycle may end in s.
func (m *Machine[S, T, V, F]) Final(s S) bool { return m.final[s] }

// Rows returns a copy of the transitions, in the order of the table.
func (m *Machine[S, T, V, F]) Rows() []Row[S, T, V, F] { return cloneRows(m.table.Rows) }

// States returns the states that a variant can reach, in the order of the table.
func (m *Machine[S, T, V, F]) States(v V) []S {
	seen := m.reachable(v)
	out := []S{m.table.Initial}
	add := func(s S) {
		if seen[s] && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, r := range m.table.Rows {
		add(r.From)
		add(r.To)
	}
	return out
}
