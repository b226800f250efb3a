package orders

import (
	"slices"

	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// Lifecycle is the published lifecycle of the orders of a collection method.
type Lifecycle struct {
	Method catalogue.CollectionMethod `json:"method"`
	// Statuses are the statuses that an order can have, from the first on.
	Statuses    []LifecycleStatus     `json:"statuses"`
	Transitions []LifecycleTransition `json:"transitions"`
}

// LifecycleStatus is a low-level status of a lifecycle.
type LifecycleStatus struct {
	Status LowLevel `json:"status"`
	Stage  Stage    `json:"stage"`
	// Final says that an order may end in this status.
	Final bool `json:"final"`
}

// LifecycleTransition says that a trigger leads from one status to another.
type LifecycleTransition struct {
	From LowLevel `json:"from"`
	On   Trigger  `json:"on"`
	To   LowLevel `json:"to"`
	// Condition must hold, too; nil if the trigger suffices.
	Condition *string `json:"condition"`
}

// Lifecycles returns the lifecycle of each collection method.
func Lifecycles() []Lifecycle {
	var list []Lifecycle
	for _, m := range catalogue.CollectionMethods() {
		l := Lifecycle{Method: m}
		statuses := LowLevels(m)
		for _, s := range statuses {
			l.Statuses = append(l.Statuses, LifecycleStatus{Status: s, Stage: StageOf(m, s), Final: s.Final()})
		}
		for _, r := range lifecycle.Rows() {
			if len(r.Variants) > 0 && !slices.Contains(r.Variants, m) || !slices.Contains(statuses, r.From) {
				continue
			}
			t := LifecycleTransition{From: r.From, On: r.On, To: r.To}
			if r.Guard != "" {
				t.Condition = &r.Guard
			}
			l.Transitions = append(l.Transitions, t)
		}
		list = append(list, l)
	}
	return list
}
