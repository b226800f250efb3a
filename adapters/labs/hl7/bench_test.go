package hl7_test

import (
	"fmt"
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/labs/hl7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders/exchange"
)

// BenchmarkHandle takes in a final report of 30 results: read, matched, gathered, kept
// in memory and acknowledged. One operation is one message.
func BenchmarkHandle(b *testing.B) {
	bench := newBench(b, nil)
	segments := []string{ana, ferrF}
	for i := range 30 {
		segments = append(segments, fmt.Sprintf("OBX|%d|NM|%d-1^Marker %d^LN^m%d^Marker %d^L||11.%d|ug/L|13-150|L|||F|||202603021230-0700", i+1, 1000+i, i, i, i, i))
	}
	var reports [][]byte
	for range 200 {
		reports = append(reports, bench.report(bench.submit(submission()), segments...))
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if i == len(reports) { // repeats are not measured
			b.StopTimer()
			bench.back = hl7.New(bench.lab, memory.New(&memory.Options{UsersElsewhere: true}).LabJournal(), nil)
			reports = reports[:0]
			for range 200 {
				reports = append(reports, bench.report(bench.submit(submission()), segments...))
			}
			i = 0
			b.StartTimer()
		}
		if len(bench.back.Handle(b.Context(), reports[i], nil)) == 0 {
			b.Fatal("no answer")
		}
		i++
	}
}

// BenchmarkRead reads the same message without keeping it.
func BenchmarkRead(b *testing.B) {
	bench := newBench(b, nil)
	raw := bench.report("N1", ana, ferrF, ferritin("9", "L", "F"), ironF, iron)
	b.ReportAllocs()
	for b.Loop() {
		m, err := er7.Parse(raw, nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := hl7.Read(m, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSubmit writes an order and reads its answer.
func BenchmarkSubmit(b *testing.B) {
	bench := newBench(b, nil)
	var s exchange.Submission
	b.ReportAllocs()
	for b.Loop() {
		s = submission()
		if _, err := bench.back.Submit(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
}
