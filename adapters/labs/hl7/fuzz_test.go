package hl7_test

import (
	"context"
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/labs/hl7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders"
)

// FuzzHandle handles any bytes twice: it never panics, always answers with a readable
// message, and the second time changes nothing.
func FuzzHandle(f *testing.F) {
	b := newBench(f, func(o *hl7.Options) { o.Number = func(orders.Order) string { return "N1" } })
	for _, raw := range [][]byte{
		b.report("N1", ana, ferrP, ferritin("9", "L", "P"), "NTE|1||note"), b.report("N1", ana, ferrF, ferritin("9", "L", "F"), ironF, iron),
		b.report("N1", ana, ferrC, ferritin("", "", "D"), "OBX|2|ED|x||^AP^PDF^Base64^JVBERg=="),
		b.report("N1", ana, "ORC|OC|N1|F1||CA"), b.report("", "SPM|1|a^b", "OBR|1|||x||||||||||||||||||||||F", "OBX|1|SN|x||<^5||1-3"),
	} {
		f.Add(raw)
	}
	f.Add([]byte("BHS|^~\\&\r" + string(b.report("N1", ana, ferrF, ferritin("9", "L", "F"))) + "\rBTS|1"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		lab := &labSystem{}
		back := hl7.New(lab, memory.New(&memory.Options{UsersElsewhere: true}).LabJournal(), &hl7.Options{Number: func(orders.Order) string { return "N1" }})
		ctx := context.Background()
		if _, err := back.Submit(ctx, submission()); err != nil {
			t.Fatal(err)
		}
		feeds := make([]int, 2)
		for i := range feeds {
			answer := back.Handle(ctx, raw, nil)
			if answer != nil {
				batch, err := er7.ParseBatch(answer, nil)
				if err != nil || len(batch.Messages()) == 0 {
					t.Fatal("the answer cannot be read")
				}
				for _, m := range batch.Messages() {
					if m.Segment("MSA").Field(1).Empty() {
						t.Fatal("an acknowledgement has no code")
					}
				}
			}
			feed, err := back.Updates(ctx, "", 1000)
			if err != nil {
				t.Fatal(err)
			}
			feeds[i] = len(feed.Messages)
		}
		if feeds[0] != feeds[1] {
			t.Fatal("the second time it is news again")
		}
	})
}
