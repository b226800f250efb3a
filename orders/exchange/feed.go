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

// feedPause says when a feed that failed is read again: after a second, then twice as long
// each time, at most a minute. So an outage of the lab is a line in the log each minute.
// Safe for concurrent use.
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

// noteOutcome notes how a reading ended.
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

// claimedFeed is the feed of a lab from a cursor, until the claim ends.
type claimedFeed struct {
	lab    string
	cursor string
	until  time.Time
}

// LogValue shows the lab.
func (f claimedFeed) LogValue() slog.Value { return slog.GroupValue(slog.String("lab", f.lab)) }

// runUpdates takes in what the lab reports, until ctx ends. The feed is one process's at a
// time.
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
			_, err := s.pull(ctx, f.cursor, f.until)
			pause.noteOutcome(s.now(), err)
			return err
		},
		// One would do; with two, a claim that got the feed still waits before the next.
		Workers: 2, Idle: s.shared.Idle, Log: s.shared.Log,
	}
	return loop.Run(ctx)
}

// PullUpdates takes in what the lab has to report now, and returns how many messages
// that were: for hosts that bring their own scheduler. Zero also means that another
// process is at it.
func (s *Service) PullUpdates(ctx context.Context) (int, error) {
	cursor, until, err := s.store.ClaimFeed(ctx, s.opts.LabName, s.shared.Lease)
	if err != nil || until.IsZero() {
		return 0, err
	}
	return s.pull(ctx, cursor, until)
}

// pull reads the feed to its end, or until the claim, which is of this moment, is about to
// end. The cursor is kept afterwards, so a message is taken in at least once; its id makes
// that exactly once.
func (s *Service) pull(ctx context.Context, cursor string, until time.Time) (int, error) {
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
