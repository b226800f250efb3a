package hl7_test

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/mllp"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
)

// A clinic sends an order over a connection, and takes in what the laboratory reports.
// A repeat is reported once; a result without an order waits for review.
func Example() {
	ctx := context.Background()
	ours, theirs := net.Pipe()
	number := make(chan string, 1)
	laboratory := mllp.HandlerFunc(func(_ context.Context, message []byte, _ error) []byte {
		m, err := er7.Parse(message, nil)
		if err != nil {
			return nil
		}
		number <- m.Segment("ORC").Field(2).Text()
		return []byte("MSH|^~\\&|LIS|NORTH|||20260302||ACK^O21|A1|P|2.5.1\rMSA|AA|" + m.ControlID() + "\r")
	})
	go mllp.NewServer(laboratory, nil).ServeConn(ctx, theirs)

	lab := hl7.New(
		mllp.NewClient("lab.example.com:2575", &mllp.ClientOptions{Dial: func(context.Context, string) (net.Conn, error) { return ours, nil }}),
		memory.New(&memory.Options{UsersElsewhere: true}).LabJournal(),
		&hl7.Options{Us: hl7.Party{Application: "ORDERS", Facility: "CLINIC"}, Lab: hl7.Party{Application: "LIS", Facility: "NORTH"}})
	accepted, err := lab.Submit(ctx, exchange.Submission{Stage: exchange.SubmitRequisition, Order: orders.Order{
		ID: orders.OrderID{UUID: uuid.New()}, TeamID: healthlab.TeamID{UUID: uuid.New()},
		LabTest: catalogue.LabTest{Markers: []catalogue.Marker{{ID: 11, Name: "Ferritin", Slug: "ferritin"}}}}})
	fmt.Println("taken:", accepted.SampleID != "", err)

	report := "MSH|^~\\&|LIS|NORTH|||20260303||ORU^R01|R1|P|2.5.1\r" +
		"OBR|1|" + <-number + "|F1|ferritin|||||||||||||||||||||F\r" +
		"OBX|1|NM|2276-4^Ferritin^LN||9.5|ug/L|13-150|L|||F\r"
	for _, raw := range []string{report, report, strings.Replace(report, "OBR|1|", "OBR|1|X", 1)} {
		answer, err := er7.Parse(lab.Handle(ctx, []byte(raw), nil), nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("we answer:", answer.Segment("MSA").Field(1).Text())
	}
	news, err := lab.Updates(ctx, "", 10)
	for _, m := range news.Messages {
		r := m.Results.Results[0]
		fmt.Println(m.On, r.Name, r.Result, *r.Unit, r.Interpretation, err)
	}
	waiting, err := lab.Review(ctx, 0, 10)
	fmt.Println("for a person:", len(waiting), waiting[0].Review, err)
	// Output:
	// taken: true <nil>
	// we answer: AA
	// we answer: AA
	// we answer: AA
	// final_result Ferritin 9.5 ug/L abnormal <nil>
	// for a person: 1 no_match <nil>
}
