package orders_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/orders"
)

// docs/order-endings.md lists what follows from each final status.
func TestOrderEndings_documentListsEveryFinalStatus(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# What follows when an order ends

Each status in which an order may end, and what follows at once. Reminders of the order end with
every one of them. A correction may follow a completed order.

| status | appointment | laboratory | earlier results | a held result that is accepted |
|---|---|---|---|---|
`)
	pick := func(is bool, yes, no string) string {
		if is {
			return yes
		}
		return no
	}
	var lows []orders.LowLevel
	for _, s := range orders.Statuses() {
		if !slices.Contains(lows, s.LowLevel()) {
			lows = append(lows, s.LowLevel())
		}
	}
	for _, l := range lows {
		e, ends := orders.EndingOf(l)
		require.Equal(t, l.Final(), ends, l)
		if ends {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", l,
				pick(e.VisitTookPlace, "completed if its time has come, else cancelled", "cancelled"),
				pick(e.TakeBack, "takes the order and its shipment back", "is not called"),
				pick(e.WithdrawResults, "withdrawn", "stay"), pick(e.TakesResult, "corrects the order", "goes to an order that replaces it"))
			if e.Detail != "" {
				require.Contains(t, orders.StatusDetails(l), e.Detail)
			}
			require.Equal(t, orders.StageOf("", l) == orders.StageFailed, e.Detail != "" && l != orders.DoNotProcess, "every failure has a detail: %s", l)
		}
	}
	b.WriteString("\n## Status details\n\nA laboratory may give others.\n\n| status | status_detail |\n|---|---|\n")
	for _, l := range lows {
		if details := orders.StatusDetails(l); len(details) > 0 {
			var names []string
			for _, d := range details {
				names = append(names, "`"+string(d)+"`")
			}
			fmt.Fprintf(&b, "| `%s` | %s |\n", l, strings.Join(names, ", "))
		}
	}
	golden(t, "../docs/order-endings.md", b.String())
}
