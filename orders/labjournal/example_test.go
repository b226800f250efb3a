package labjournal_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
)

// A backend keeps an order that it sent, takes in the laboratory's answer once, and has the
// message for the orders.Service in the feed.
func Example() {
	ctx := context.Background()
	store := memory.New(&memory.Options{UsersElsewhere: true}).LabJournal()
	team, user := healthlab.TeamID{UUID: uuid.New()}, healthlab.UserID{UUID: uuid.New()}

	_, err := store.Open(ctx, "northlab", labjournal.Record{Number: "A-17", Team: team, User: user, Doc: []byte("sent")})
	if err != nil {
		log.Fatal(err)
	}
	answer := labjournal.Delivery{Key: "hash of the answer", At: time.Now(), Raw: []byte("accepted A-17")}
	for range 2 { // the laboratory sends it again
		fresh, err := store.Take(ctx, "northlab", answer, []string{"A-17"}, func(records map[string]*labjournal.Record) (labjournal.Outcome, error) {
			records["A-17"].Doc = []byte("accepted")
			return labjournal.Outcome{Messages: []labjournal.Message{{Team: team, User: user, Doc: []byte("order accepted")}}}, nil
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("fresh:", fresh)
	}
	feed, err := store.Feed(ctx, "northlab", 0, 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range feed {
		fmt.Println(e.Place, string(e.Doc))
	}
	// Output:
	// fresh: true
	// fresh: false
	// 1 order accepted
}
