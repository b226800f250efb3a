package accesslog

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Options adjusts a Service. The zero value, and nil, mean the defaults.
type Options struct {
	// Retention is how long lines are kept. Default six years of 365 days.
	Retention time.Duration
	// AnchorInterval is the time between anchors. Default 1 hour.
	AnchorInterval time.Duration
	// Timeout bounds the write of a batch. Default 10 seconds.
	Timeout time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Log receives what fails in Run. Default slog.Default().
	Log *slog.Logger
}

// Service records accesses and reads the log. Safe for concurrent use.
type Service struct {
	store Store
	key   ed25519.PrivateKey
	opts  Options

	turn chan struct{} // has a value while a batch is written
	mu   sync.Mutex
	next *batch // collects entries; nil if there are none
}

// batch is a group of entries that are written together.
type batch struct {
	entries []Entry
	done    chan struct{} // closed once written
	err     error
}

// New returns a Service that signs anchors with key. Invalid without a store or a key.
func New(store Store, key ed25519.PrivateKey, opts *Options) (*Service, error) {
	if store == nil || len(key) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("%w: an access log needs a store and an Ed25519 key", healthlab.Invalid)
	}
	s := &Service{store: store, key: key, turn: make(chan struct{}, 1)}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Retention <= 0 {
		s.opts.Retention = 6 * 365 * 24 * time.Hour
	}
	if s.opts.AnchorInterval <= 0 {
		s.opts.AnchorInterval = time.Hour
	}
	if s.opts.Timeout <= 0 {
		s.opts.Timeout = 10 * time.Second
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	if s.opts.Log == nil {
		s.opts.Log = slog.Default()
	}
	return s, nil
}

// Record returns when entries are stored. A zero At means now. Entries of concurrent calls
// are written together. If ctx ends first, its error is returned and the entries may still be
// stored.
func (s *Service) Record(ctx context.Context, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	now := s.opts.Now()
	s.mu.Lock()
	if s.next == nil {
		s.next = &batch{done: make(chan struct{})}
	}
	b := s.next
	for _, e := range entries {
		if e.At.IsZero() {
			e.At = now
		}
		b.entries = append(b.entries, e)
	}
	s.mu.Unlock()
	select {
	case s.turn <- struct{}{}:
		go func() { // others wait for it, too, so that it goes on when this caller leaves
			s.writeUnless(ctx, b)
			<-s.turn
		}()
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return fmt.Errorf("record access: %w", ctx.Err())
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return fmt.Errorf("record access: %w", ctx.Err())
	}
}

// writeUnless writes a batch unless it has been written. The caller has the turn.
func (s *Service) writeUnless(ctx context.Context, b *batch) {
	select {
	case <-b.done:
		return
	default:
	}
	s.mu.Lock()
	s.next = nil // b: a batch is replaced by the holder of the turn alone
	s.mu.Unlock()
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
	defer stop()
	if err := s.store.Append(ctx, b.entries); err != nil {
		b.err = fmt.Errorf("record access: %w", err)
	}
	close(b.done)
}

// Lines returns lines of a team by number.
func (s *Service) Lines(ctx context.Context, q Query) ([]Line, error) {
	list, err := s.store.Lines(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("read access log: %w", err)
	}
	return list, nil
}

// Anchors returns the anchors of a team by line.
func (s *Service) Anchors(ctx context.Context, team healthlab.TeamID) ([]Anchor, error) {
	list, err := s.store.Anchors(ctx, team)
	if err != nil {
		return nil, fmt.Errorf("read anchors: %w", err)
	}
	return list, nil
}

// PublicKey returns the key that verifies the anchors.
func (s *Service) PublicKey() ed25519.PublicKey { return s.key.Public().(ed25519.PublicKey) }

// page is how many lines are read at a time.
const page = 1000

// Verify checks the chain of a team and the signatures of its anchors, and returns its head.
// Lines may be missing before an anchor that is older than the retention, and nowhere else.
// Conflict if a line was removed, changed or moved, or an anchor does not fit.
func (s *Service) Verify(ctx context.Context, team healthlab.TeamID) (Head, error) {
	anchors, err := s.Anchors(ctx, team)
	if err != nil {
		return Head{}, err
	}
	for i := range anchors {
		if err := anchors[i].Verify(s.PublicKey()); err != nil {
			return Head{}, err
		}
	}
	var v Verifier
	for first := true; ; first = false {
		lines, err := s.Lines(ctx, Query{Team: team, After: v.Head.Seq, N: page})
		if err != nil {
			return Head{}, err
		}
		if first && len(anchors) > 0 && (len(lines) == 0 || lines[0].Seq > 1) && anchors[0].At.Before(s.opts.Now().Add(-s.opts.Retention)) {
			v.Head, anchors = anchors[0].Head, anchors[1:] // the lines before it are pruned
		}
		for i := range lines {
			if err := v.Check(&lines[i]); err != nil {
				return Head{}, err
			}
			for len(anchors) > 0 && anchors[0].Seq == v.Head.Seq {
				if anchors[0].Hash != v.Head.Hash {
					return Head{}, fmt.Errorf("%w: access log: line %d is not the one that was signed", healthlab.Conflict, v.Head.Seq)
				}
				anchors = anchors[1:]
			}
		}
		if len(lines) < page {
			break
		}
	}
	if len(anchors) > 0 {
		return Head{}, fmt.Errorf("%w: access log: the chain ends at line %d, and line %d was signed", healthlab.Conflict, v.Head.Seq, anchors[0].Seq)
	}
	return v.Head, nil
}

// Anchor signs the heads of chains that have lines behind their last anchor.
func (s *Service) Anchor(ctx context.Context) error {
	for {
		heads, err := s.store.Unanchored(ctx, page)
		if err != nil {
			return fmt.Errorf("anchor access log: %w", err)
		}
		for _, head := range heads {
			if err := s.store.AddAnchor(ctx, Sign(head, s.opts.Now(), s.key)); err != nil {
				return fmt.Errorf("anchor access log: %w", err)
			}
		}
		if len(heads) < page {
			return nil
		}
	}
}

// Run anchors the chains and prunes lines that are older than the retention, until ctx ends.
// Several processes may run it on one store.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(s.opts.AnchorInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := s.Anchor(ctx)
		if err == nil {
			err = s.store.Prune(ctx, s.opts.Now().Add(-s.opts.Retention))
		}
		if err != nil && ctx.Err() == nil {
			s.opts.Log.ErrorContext(ctx, "access log not anchored", "kind", healthlab.KindOf(err).Error())
		}
	}
}
