package fsm_test

import (
	"fmt"

	"github.com/healthlab-dev/healthlab/internal/fsm"
)

// Door is what the guards look at.
type Door struct{ Bolted bool }

// Free reports whether nothing holds the door.
func (d Door) Free() bool { return !d.Bolted }

// A door's life is a table. Asking it what a trigger leads to is all that code does.
func Example() {
	door := fsm.Must(fsm.Table[string, string, struct{}, Door]{
		Initial: "closed",
		Final:   []string{"walled up"},
		Rows: []fsm.Row[string, string, struct{}, Door]{
			{From: "closed", On: "push", To: "open", Guard: "free"},
			{From: "open", On: "pull", To: "closed"},
			{From: "closed", On: "lay bricks", To: "walled up"},
		},
		Guards: map[string]func(Door) bool{"free": Door.Free},
	})
	var every struct{} // doors come in one variant

	to, ok := door.Next(every, door.Initial(), "push", Door{Bolted: true})
	fmt.Printf("%q %t\n", to, ok)
	to, ok = door.Next(every, door.Initial(), "push", Door{})
	fmt.Printf("%q %t\n", to, ok)
	fmt.Print(door.Mermaid(every))
	// Output:
	// "" false
	// "open" true
	// stateDiagram-v2
	//     [*] --> closed
	//     closed --> open: push [free]
	//     open --> closed: pull
	//     closed --> walled up: lay bricks
	//     walled up --> [*]
}
