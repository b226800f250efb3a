// Command hl7lab plays both ends of an HL7 connection on this machine: a clinic that
// orders lab tests, and a laboratory that answers, over MLLP on loopback. It prints what
// each of them does and ends.
//
//	go run ./examples/hl7lab
//
// With -serve it plays the laboratory alone, for a clinic in another program, such as
// examples/server: it receives orders at an address or in a folder, and sends results.
//
//	go run ./examples/hl7lab -serve 127.0.0.1:2575
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/mllp"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/people"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o serveOptions
	flag.StringVar(&o.target, "serve", "", "`address or folder` where the laboratory takes orders: host:port, or a folder with orders and results in it (default: play both ends)")
	flag.StringVar(&o.results, "results", "127.0.0.1:2576", "`address` that results are sent to, with an address to serve")
	flag.DurationVar(&o.delay, "delay", 2*time.Second, "time from an order to its results")
	flag.BoolVar(&o.stray, "stray", false, "after each order, send a result that fits no order, too")
	flag.Parse()
	play := func() error { return run(ctx, os.Stdout) }
	if o.target != "" {
		play = func() error { return serveLab(ctx, os.Stdout, o) }
	}
	if err := play(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

// cat is the catalogue of tests that the clinic can order. A real deployment reads it from a file.
const cat = `{
	"labs":         [{"id": 1, "slug": "northlab", "name": "Northlab", "collection_methods": ["walk_in_test"]}],
	"markers":      [{"id": 11, "lab_id": 1, "name": "Ferritin", "slug": "ferritin", "provider_id": "4598", "unit": "ug/L"},
	                 {"id": 12, "lab_id": 1, "name": "Iron", "slug": "iron", "provider_id": "7573", "unit": "ug/dL"}],
	"lab_tests":    [{"id": "7b0a3c1e-0000-4000-8000-000000000001", "name": "Iron status", "method": "walk_in_test",
	                  "status": "active", "lab_id": 1, "marker_ids": [11, 12], "price": 39.50}],
	"lab_accounts": [{"lab": "northlab", "status": "active", "allowed_billing": {"client_bill": ["AZ"]}}]}`

// run starts the laboratory and the clinic, lets the clinic order tests, and stops both.
func run(ctx context.Context, out io.Writer) error {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	var servers sync.WaitGroup
	defer servers.Wait()
	defer stop() // deferred last, so the servers stop before the deferred wait for them

	lab := &laboratory{out: out}
	labAddress, err := serve(ctx, &servers, mllp.NewServer(lab, nil))
	if err != nil {
		return err
	}
	// The clinic has a client that sends orders, and a server that receives results. One backend uses both.
	backend := hl7.New(mllp.NewClient(labAddress, nil), memory.New(&memory.Options{UsersElsewhere: true}).LabJournal(), &hl7.Options{
		Us: hl7.Party{Application: "ORDERS", Facility: "CLINIC"}, Lab: hl7.Party{Application: "LIS", Facility: "NORTHLAB"},
		LabSlug: "northlab",
		LOINC:   map[string]string{"7573": "2498-4"}, // the laboratory has no LOINC code for iron
	})
	clinicAddress, err := serve(ctx, &servers, mllp.NewServer(backend, nil))
	if err != nil {
		return err
	}
	lab.clinic = mllp.NewClient(clinicAddress, nil)
	source, err := catalogue.ReadStaticCatalog(strings.NewReader(cat))
	if err != nil {
		return err
	}
	anyUser := people.UsersFunc(func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil })
	store := memory.New(&memory.Options{UsersElsewhere: true})
	service, err := orders.New(store.Orders(), anyUser, source, &orders.Options{Environment: healthlab.Production})
	if err != nil {
		return err
	}
	labs, err := exchange.New(service, store.Orders(), store.Reviews(), backend, nil)
	if err != nil {
		return err
	}
	c := &clinic{out: out, service: service, labs: labs, team: healthlab.TeamID{UUID: uuid.New()}}
	if err := c.order(ctx); err != nil {
		return err
	}
	for _, r := range lab.reports() {
		if err := lab.send(ctx, r); err != nil {
			return err
		}
		if err := c.update(ctx); err != nil {
			return err
		}
	}
	review, err := labs.Operations().Waiting(ctx, exchange.ResultQuery{Team: c.team})
	if err != nil {
		return err
	}
	for _, r := range review.Results {
		printf(out, "for a person to look at: %s\n", r.Reason)
	}
	return nil
}

func printf(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format, args...)
}

// serve starts an MLLP server on a free port of this machine and returns its address. The server runs until ctx ends.
func serve(ctx context.Context, servers *sync.WaitGroup, s *mllp.Server) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	servers.Go(func() { _ = s.Serve(ctx, l) })
	return l.Addr().String(), nil
}

// clinic is the side that orders tests and receives the results.
type clinic struct {
	out     io.Writer
	service *orders.Service
	labs    *exchange.Service
	team    healthlab.TeamID
	placed  orders.OrderID
}

func (c *clinic) order(ctx context.Context) error {
	o, err := c.service.Place(ctx, c.team, orders.PlaceRequest{
		UserID:   healthlab.UserID{UUID: uuid.New()},
		OrderSet: &catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{{UUID: uuid.MustParse("7b0a3c1e-0000-4000-8000-000000000001")}}},
		PatientDetails: people.PatientDetailsInput{FirstName: "Ana", LastName: "Roe", DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9},
			Gender: people.Female, PhoneNumber: "+15550100", Email: "ana@example.com"},
		PatientAddress: people.PatientAddressInput{FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201", Country: "US"},
	})
	if err != nil {
		return err
	}
	c.placed = o.ID
	printf(c.out, "clinic: placed an order: %s\n", o.LastEvent.Status)
	// A host runs exchange.Service.Run in the background. This program calls the single steps instead, to print
	// each.
	if _, err := c.labs.SubmitDue(ctx); err != nil {
		return err
	}
	return c.update(ctx)
}

// update processes the received reports, and prints the new status of the order.
func (c *clinic) update(ctx context.Context) error {
	n, err := c.labs.PullUpdates(ctx)
	if err != nil {
		return err
	}
	o, err := c.service.Get(ctx, c.team, c.placed)
	if err != nil {
		return err
	}
	printf(c.out, "clinic: %d news; the order is %s\n", n, o.LastEvent.Status)
	if o.Interpretation == nil || n == 0 {
		return nil
	}
	results, err := c.service.Results(ctx, c.team, c.placed)
	if err != nil {
		return err
	}
	for _, r := range results.Results {
		printf(c.out, "        %s %s %s (%s, LOINC %s)\n", r.Name, r.Result, *r.Unit, r.Interpretation, *r.LOINC)
	}
	return nil
}

// laboratory is the side that accepts orders and sends reports.
type laboratory struct {
	out    io.Writer
	clinic *mllp.Client

	mu    sync.Mutex
	order *er7.Message
	sent  int
}

// Handle implements [mllp.Handler]: it accepts an order, and answers with the laboratory's own number for it.
func (l *laboratory) Handle(_ context.Context, message []byte, frameErr error) []byte {
	m, err := er7.Parse(message, nil)
	if frameErr != nil || err != nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.order = m
	code, event := m.Type()
	printf(l.out, "lab:    got %s^%s for %s:", code, event, m.Segment("PID").Field(5).Name().Full())
	for s := range m.Segments() {
		if s.Name() == "OBR" {
			printf(l.out, " %s", s.Field(4).Component(2).Text())
		}
	}
	printf(l.out, "\n")
	b := er7.NewBuilder(er7.Standard(), "")
	b.Header().Set(3, "LIS").Set(4, "NORTHLAB").Set(9, "ORL", "O22", "ORL_O22").Set(10, "A1").Set(11, "P").Set(12, "2.5.1")
	b.Add("MSA").Set(1, "AA").Set(2, m.ControlID())
	b.Add("ORC").Set(1, "OK").Set(2, m.Segment("ORC").Field(2).Text()).Set(3, "LAB-77")
	answer, err := b.Build()
	if err != nil {
		return nil
	}
	return answer.Bytes()
}

// report describes a message with results that the laboratory sends.
type report struct {
	what     string
	number   string // order number in the message; empty means the clinic's own number of the order
	at       string
	ferritin [3]string // value, flag (high or low) and status of the result
	iron     [3]string
}

// reports returns the reports to send about the order, in this order. Some are repeated, late or have a wrong order
// number, as reports of real laboratories do.
func (l *laboratory) reports() []report {
	partial := report{what: "a partial report", at: "20260303090000-0700", ferritin: [3]string{"9.0", "L", "P"}}
	final := report{what: "the final report", at: "20260303150000-0700", ferritin: [3]string{"9.5", "L", "F"}, iron: [3]string{"90", "N", "F"}}
	again, late, wrong := final, partial, final
	again.what, late.what, wrong.what, wrong.number = "the same again", "the partial report again, late", "a report with a wrong number", "NOBODYSORDER"
	corrected := report{what: "a corrected report", at: "20260304090000-0700", ferritin: [3]string{"95.0", "N", "C"}}
	return []report{partial, final, again, late, wrong, corrected}
}

// send sends a report to the clinic, and prints the clinic's acknowledgement.
func (l *laboratory) send(ctx context.Context, r report) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	id := fmt.Sprintf("R%d", l.sent)
	if r.number == "" {
		r.number = l.order.Segment("ORC").Field(2).Text()
	}
	b := er7.NewBuilder(er7.Standard(), "")
	b.Header().Set(3, "LIS").Set(4, "NORTHLAB").Set(7, r.at).Set(9, "ORU", "R01", "ORU_R01").Set(10, id).Set(11, "P").Set(12, "2.5.1")
	b.Add("PID").SetNumber(1, 1).Set(5, "ROE", "ANA").Set(7, "19840509")
	for i, t := range []struct {
		code, name, loinc, unit, normal string
		result                          [3]string
	}{{"4598", "Ferritin", "2276-4", "ug/L", "13-150", r.ferritin}, {"7573", "Iron", "", "ug/dL", "60-170", r.iron}} {
		if t.result[2] == "" {
			continue
		}
		b.Add("OBR").SetNumber(1, i+1).Set(2, r.number).Set(3, "LAB-77").Set(4, t.code, t.name, "L").Set(7, "20260302120000-0700").Set(22, r.at).Set(25, t.result[2])
		obx := b.Add("OBX").SetNumber(1, 1).Set(2, "NM").Set(5, t.result[0]).Set(6, t.unit).Set(7, t.normal).Set(8, t.result[1]).Set(11, t.result[2])
		if t.loinc != "" {
			obx.Set(3, t.loinc, t.name, "LN", t.code, t.name, "L")
		} else {
			obx.Set(3, t.code, t.name, "L")
		}
	}
	m, err := b.Build()
	if err != nil {
		return err
	}
	answer, err := l.clinic.Send(ctx, m.Bytes(), func(answer []byte) bool {
		a, err := er7.Parse(answer, nil)
		return err == nil && a.Segment("MSA").Field(2).Text() == id
	})
	if err != nil {
		return err
	}
	ack, err := er7.Parse(answer, nil)
	if err != nil {
		return err
	}
	printf(l.out, "lab:    sent %s; the answer is %s\n", r.what, ack.Segment("MSA").Field(1).Text())
	return nil
}
