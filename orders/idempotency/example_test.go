package idempotency_test

import (
	"context"
	"fmt"
	"log"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
)

// A request that comes twice with one key runs once.
func Example() {
	requests := idempotency.New(memory.New(nil).OrderKeys(), nil)
	req := idempotency.Request{
		Scope:       idempotency.Scope{Team: healthlab.TeamID{UUID: uuid.New()}, Endpoint: "POST /v3/order", Key: "k-1"},
		Fingerprint: "hash of the body",
	}
	runs := 0
	for range 2 {
		answer, err := requests.Once(context.Background(), req, func(context.Context, orders.OrderID) (idempotency.Outcome, error) {
			runs++
			return idempotency.Outcome{Answer: []byte(`{"status":"received"}`)}, nil
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(answer))
	}
	fmt.Println("runs:", runs)
	// Output:
	// {"status":"received"}
	// {"status":"received"}
	// runs: 1
}
