package documents_test

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/documents"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// text prints a document as its title and the headings of its sections.
type text struct{}

func (text) Print(_ context.Context, d documents.Document) ([]byte, error) {
	out := d.Title
	for _, s := range d.Sections {
		out += "\n- " + s.Heading
	}
	return []byte(out), nil
}

// A lab test has collection instructions, which can be printed before anything is ordered.
func Example() {
	book, err := sandbox.Catalogue()
	if err != nil {
		panic(err)
	}
	users := people.UsersFunc(func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil })
	store := memory.New(nil)
	service, err := orders.New(store.Orders(), users, book, &orders.Options{Environment: healthlab.Sandbox})
	if err != nil {
		panic(err)
	}
	printer := documents.New(service, text{}, nil)
	kit := catalogue.LabTestID{UUID: uuid.MustParse("5ab0c1d2-0000-4000-8000-000000000001")}
	file, err := printer.LabTestInstructions(context.Background(), healthlab.TeamID{UUID: uuid.New()}, kit)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(file))
	// Output:
	// Collection instructions
	// - Your test
	// - How to take drops of blood from a finger
}
