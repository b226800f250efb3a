package sandbox_test

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
)

// A laboratory that takes a day for every step loses a sample, because it was asked to.
func Example() {
	clock := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	lab := sandbox.NewLab(&sandbox.LabOptions{Now: func() time.Time { return clock }, Step: 24 * time.Hour})
	wish := "sandbox:lost_inbound"
	_, err := lab.Submit(context.Background(), exchange.Submission{Stage: exchange.SubmitRequisition, Order: orders.Order{
		ID: orders.OrderID{UUID: uuid.New()}, Details: orders.Details{Type: catalogue.Testkit}, Passthrough: &wish}})
	if err != nil {
		fmt.Println(err)
		return
	}
	clock = clock.Add(30 * 24 * time.Hour)
	news, err := lab.Updates(context.Background(), "", 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range news.Messages {
		fmt.Println(m.At.Format("Jan 2"), m.On)
	}
	// Output:
	// Mar 3 kit_shipped
	// Mar 4 kit_out_for_delivery
	// Mar 5 kit_delivered
	// Mar 6 sample_sent
	// Mar 7 parcel_lost
}
