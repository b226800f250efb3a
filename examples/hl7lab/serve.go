package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/labs/hl7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/mllp"
)

// serveOptions are the settings of -serve: the laboratory's addresses, and what it sends.
type serveOptions struct {
	target  string        // where the laboratory receives orders: host:port for MLLP, or a folder
	results string        // host:port to which results are sent, if orders arrive over MLLP
	delay   time.Duration // time from an order to its results
	stray   bool          // also send one result with an order number that the clinic does not have
}

// labServer is a laboratory that accepts orders for any tests, and reports an invented result for each.
type labServer struct {
	serveOptions
	out  io.Writer
	send func(ctx context.Context, message []byte) error

	mu         sync.Mutex
	accessions map[string]string // the laboratory's number (accession) by the clinic's order number
	cancelled  map[string]bool
	running    sync.WaitGroup
}

// serveLab runs the laboratory until ctx ends: it receives orders over MLLP or from a folder, and sends their results.
func serveLab(ctx context.Context, out io.Writer, o serveOptions) error {
	l := &labServer{serveOptions: o, out: out, accessions: map[string]string{}, cancelled: map[string]bool{}}
	defer l.running.Wait()
	if _, _, err := net.SplitHostPort(o.target); err == nil && !strings.ContainsRune(o.target, os.PathSeparator) {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.target)
		if err != nil {
			return err
		}
		client := mllp.NewClient(o.results, nil)
		defer client.Close()
		l.send = func(ctx context.Context, message []byte) error {
			_, err := client.Send(ctx, message, func(answer []byte) bool { return strings.Contains(string(answer), "MSA|AA") })
			return err
		}
		printf(out, "lab: takes orders at %s, sends results to %s\n", listener.Addr(), o.results)
		return mllp.NewServer(mllp.HandlerFunc(func(_ context.Context, message []byte, frameErr error) []byte {
			m, err := er7.Parse(message, nil)
			if frameErr != nil || err != nil {
				return nil
			}
			return l.handleOrder(ctx, m)
		}), nil).Serve(ctx, listener)
	}
	orders, results := filepath.Join(o.target, "orders"), filepath.Join(o.target, "results")
	if err := errors.Join(os.MkdirAll(orders, 0o700), os.MkdirAll(results, 0o700)); err != nil {
		return err
	}
	folder := hl7.NewFolder(results, orders, &hl7.FolderOptions{Every: time.Second, Settle: time.Millisecond})
	l.send = func(ctx context.Context, message []byte) error {
		_, err := folder.Send(ctx, message, nil)
		return err
	}
	printf(out, "lab: takes orders in %s, puts results into %s\n", orders, results)
	return folder.Run(ctx, func(_ context.Context, m *er7.Message) error {
		l.handleOrder(ctx, m)
		return nil
	})
}

// handleOrder processes an order or a cancellation, and returns the HL7 acknowledgement. A repeated order is
// acknowledged again but gets no second report. A goroutine sends the results after the delay, unless ctx ends before.
func (l *labServer) handleOrder(ctx context.Context, order *er7.Message) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	orc := order.Segment("ORC")
	number := orc.Field(2).Text()
	accession, known := l.accessions[number]
	if !known {
		accession = fmt.Sprintf("LAB-%d", len(l.accessions)+1)
		l.accessions[number] = accession
	}
	switch orc.Field(1).Text() {
	case "CA":
		l.cancelled[number] = true
		printf(l.out, "lab: order %s is cancelled\n", accession)
	default:
		if !known {
			printf(l.out, "lab: took order %s\n", accession)
			l.running.Go(func() { l.report(ctx, order, accession) })
		}
	}
	b := er7.NewBuilder(er7.Standard(), "")
	header(b, "ORL", "O22", "A"+accession)
	b.Add("MSA").Set(1, "AA").Set(2, order.ControlID())
	b.Add("ORC").Set(1, "OK").Set(2, number).Set(3, accession)
	return messageBytes(b)
}

func header(b *er7.Builder, code, event, id string) {
	b.Header().Set(3, "LIS").Set(4, "NORTHLAB").Set(7, er7.FormatStamp(time.Now().UTC())).Set(9, code, event, code+"_"+event).
		Set(10, id).Set(11, "T").Set(12, "2.5.1")
}

// messageBytes returns the HL7 message that b has built; nil after an error.
func messageBytes(b *er7.Builder) []byte {
	m, err := b.Build()
	if err != nil {
		return nil
	}
	return m.Bytes()
}

// report sends the results of an order after the delay, unless the order was cancelled meanwhile.
func (l *labServer) report(ctx context.Context, order *er7.Message, accession string) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(l.delay):
	}
	number := order.Segment("ORC").Field(2).Text()
	l.mu.Lock()
	cancelled := l.cancelled[number]
	l.mu.Unlock()
	if cancelled {
		return
	}
	pid := order.Segment("PID")
	name := pid.Field(5).Name()
	l.result(ctx, order, number, accession, [2]string{name.Family, name.Given}, pid.Field(7).Text())
	if l.stray {
		l.result(ctx, order, "NOSUCHORDER", accession+"X", [2]string{"Stray", "Sam"}, "19700101")
	}
}

// result sends a final report with one invented result for each test of order. number is the order number, accession
// the laboratory's own number, name the family name and the given name, and born the date of birth as HL7 YYYYMMDD.
func (l *labServer) result(ctx context.Context, order *er7.Message, number, accession string, name [2]string, born string) {
	now := er7.FormatStamp(time.Now().UTC())
	b := er7.NewBuilder(er7.Standard(), "")
	header(b, "ORU", "R01", "R"+accession)
	b.Add("PID").SetNumber(1, 1).Set(5, name[0], name[1]).Set(7, born)
	n := 0
	for s := range order.Segments() {
		if s.Name() != "OBR" {
			continue
		}
		n++
		c := s.Field(4).Coded().Codes[0]
		b.Add("OBR").SetNumber(1, n).Set(2, number).Set(3, accession).Set(4, c.Code, c.Text, c.System).Set(7, now).Set(22, now).Set(25, "F")
		b.Add("OBX").SetNumber(1, 1).Set(2, "NM").Set(3, c.Code, c.Text, c.System).Set(5, "42").Set(7, "10-100").Set(8, "N").Set(11, "F").
			Set(17, "DEMO", "Made up", "L")
	}
	b.Add("SPM").SetNumber(1, 1).Set(2, "", accession).Set(4, "SER", "Serum", "HL70487").Set(17, now).Set(18, now)
	if err := l.send(ctx, messageBytes(b)); err != nil {
		printf(l.out, "lab: results of %s could not be sent: %v\n", accession, err)
		return
	}
	printf(l.out, "lab: sent results of %s\n", accession)
}
