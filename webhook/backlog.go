package webhook

import "time"

// Backlog is what a store still has to deliver, for metrics and for a program that stops.
type Backlog struct {
	// Unrouted are the events that are not handed to endpoints yet, and Unfinished the
	// deliveries that have not come to an end.
	Unrouted, Unfinished int
	// Oldest is the age of the oldest of them; zero if there are none.
	Oldest time.Duration
}
