package exchange

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab/internal/work"
)

// feedPause limits how often a failing feed of lab messages is read: after a failure it waits a second, then twice as
// long each time, at most a minute. So a long outage of the lab logs one error a minute. Safe for concurrent use.
type feedPause struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

func (p *feedPause) ended(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !now.Before(p.until)
}

// noteOutcome sets the next pause after a read of the feed; err is the error of the read, nil for success.
func (p *feedPause) noteOutcome(now time.Time, err error) {
	const first, doublings, longest = time.Second, 6, time.Minute
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.failures, p.until = 0, time.Time{}
		return
	}
	p.until = now.Add(min(first<<min(p.failures, doublings), longest))
	p.failures++
}

// claimedFeed is the message feed of a lab that this process has leased: the cursor at which reading continues, and the
// end of the lease.
type claimedFeed struct {
	lab    string
	cursor string
	until  time.Time
}

// LogValue logs the slug of the lab.
func (f claimedFeed) LogValue() slog.Value { return slog.GroupValue(slog.String("lab", f.lab)) }

// runUpdates processes the messages of the lab until ctx ends. A lease ensures that one process at a time reads the
// feed.
func (s *Service) runUpdates(ctx context.Context) error {
	var pause feedPause
	loop := &work.Loop[claimedFeed]{
		Name: "lab updates",
		Claim: func(ctx context.Context, _ int) ([]claimedFeed, error) {
			if !pause.ended(s.now()) {
				return nil, nil
			}
			cursor, until, err := s.store.ClaimFeed(ctx, s.opts.LabName, s.shared.Lease)
			if err != nil || until.IsZero() {
				return nil, err
			}
			return []claimedFeed{{s.opts.LabName, cursor, until}}, nil
		},
		Do: func(ctx context.Context, f claimedFeed) error {
			_, err := s.readFeed(ctx, f.cursor, f.until)
			pause.noteOutcome(s.now(), err)
			return err
		},
		// One worker would be enough. With two, a claim of the feed is fewer jobs than requested, so the loop waits
		// before the next.
		Workers: 2, Idle: s.shared.Idle, Log: s.shared.Log,
	}
	return loop.Run(ctx)
}

// PullUpdates processes the new messages of the lab and returns their number. Hosts with a scheduler of their own call
// it in place of [Service.Run]. It returns zero if there is no new message, or if another process has the lease of the
// feed.
func (s *Service) PullUpdates(ctx context.Context) (int, error) {
	cursor, until, err := s.store.ClaimFeed(ctx, s.opts.LabName, s.shared.Lease)
	if err != nil || until.IsZero() {
		return 0, err
	}
	return s.readFeed(ctx, cursor, until)
}

// readFeed processes the messages after cursor until the feed has no more, or until the lease is about to end. until is
// the end of the lease. readFeed stores the cursor after the messages, so it may process a message twice; the order
// ignores the second time by the message's id. It returns the number of processed messages.
func (s *Service) readFeed(ctx context.Context, cursor string, until time.Time) (int, error) {
	const batch = 100
	taken, stop := 0, s.now().Add(s.shared.Lease-s.shared.LabTimeout)
	for {
		call, cancel := context.WithTimeout(ctx, s.shared.LabTimeout)
		b, err := s.lab.Updates(call, cursor, batch)
		cancel()
		if err == nil {
			for _, m := range b.Messages {
				if err = s.Receive(ctx, m); err != nil {
					break
				}
				taken++
			}
		}
		if err != nil {
			return taken, errors.Join(fmt.Errorf("lab updates: %w", err), s.store.MoveFeed(ctx, s.opts.LabName, until, cursor))
		}
		cursor = b.Cursor
		if len(b.Messages) < batch || !s.now().Before(stop) {
			return taken, s.store.MoveFeed(ctx, s.opts.LabName, until, cursor)
		}
	}
}
