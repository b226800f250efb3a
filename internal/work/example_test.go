package work_test

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab/internal/work"
)

// Three letters are due. One process takes them, two at a time at most, and stops when
// its host says so.
func Example() {
	due := []string{"to Ada", "to Ben", "to Cleo"}
	posted := make(chan string, len(due))

	post := work.Loop[string]{
		Name:    "letters",
		Workers: 2,
		Claim: func(_ context.Context, n int) ([]string, error) {
			n = min(n, len(due))
			mine := due[:n]
			due = due[n:]
			return mine, nil
		},
		Do: func(_ context.Context, letter string) error {
			posted <- letter
			return nil
		},
	}

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- post.Run(ctx) }()

	for range cap(posted) {
		fmt.Println("posted", <-posted)
	}
	stop()
	fmt.Println("ended:", <-ended)
	// Unordered output:
	// posted to Ada
	// posted to Ben
	// posted to Cleo
	// ended: <nil>
}
