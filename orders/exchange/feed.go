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

// feedPause is the wait before a failed feed of lab messages is read again: a second, then twice as long each
// time, at most a minute. So an outage of the lab makes one log line each minute. Safe for concurrent use.
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

// noteOutcome records whether a reading of the feed succeeded.
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

// claimedFeed is the message feed of a lab from a cursor, until the lease ends.
type claimedFeed struct {
	lab    string
	cursor string
	until  time.Time
}

// LogValue logs the lab.
func (f claimedFeed) LogValue() slog.Value { return slog.GroupValue(slog.String("lab", f.lab)) }

// runUpdates processes messages of labs until ctx ends. One process at a time reads the feed of a lab.
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
		// One worker would be enough. With two, a claim of the feed is fewer jobs than requested, so the loop waits
		// before the next.
		Workers: 2, Idle: s.shared.Idle, Log: s.shared.Log,
	}
	return loop.Run(ctx)
}

// PullUpdates processes the new messages of labs and returns their number. Hosts with a scheduler of their own
// call it. Zero also means that another process reads the feed.
func (s *Service) PullUpdates(ctx context.Context) (int, error) {
	cursor, until, err := s.store.ClaimFeed(ctx, s.opts.LabName, s.shared.Lease)
	if err != nil || until.IsZero() {
		return 0, err
	}
	return s.pull(ctx, cursor, until)
}

// pull reads the feed to its end, or until the lease, which has just begun, is about to end. The cursor is
// stored afterwards, so a message is processed at least once; its id ensures that it takes effect once.
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
