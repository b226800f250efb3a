package memory

import (
	"slices"
	"sync"
	"testing"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
)

// newTestOrders is a store of orders with an outbox of its own.
func newTestOrders(t *testing.T) storetest.Orders {
	var mu sync.Mutex
	var written []healthlab.Event
	emit := func(events []healthlab.Event) error {
		for _, e := range events {
			e.Seq = int64(len(written) + 1)
			written = append(written, e)
		}
		return nil
	}
	return storetest.Orders{
		Store: newOrders(&mu, emit),
		Events: func(_ *testing.T, team healthlab.TeamID, key string) []healthlab.Event {
			mu.Lock()
			defer mu.Unlock()
			return slices.DeleteFunc(slices.Clone(written), func(e healthlab.Event) bool { return e.Team != team || e.Key != key })
		},
	}
}

func TestOrders(t *testing.T)      { storetest.RunOrders(t, newTestOrders) }
func TestOrdersModel(t *testing.T) { storetest.RunOrdersModel(t, newTestOrders) }
