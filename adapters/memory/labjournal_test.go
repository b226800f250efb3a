package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders/labjournal/labjournaltest"
)

func TestLabJournal_passesItsStoreSuite(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		opts func() *memory.Options
	}{
		{"clear", func() *memory.Options { return &memory.Options{UsersElsewhere: true} }},
		{"encrypted", func() *memory.Options { return &memory.Options{Keys: newKeys(), UsersElsewhere: true} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			labjournaltest.RunStore(t, func(testing.TB) labjournaltest.Harness {
				s := memory.New(tt.opts())
				return labjournaltest.Harness{Journal: s.LabJournal(), Users: s.Users()}
			})
		})
	}
}
