package accesslog

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
)

// Options are the options of a Service. The zero value, and nil, mean the defaults.
type Options struct {
	// Retention is the time for which lines are stored. Default six years of 365 days.
	Retention time.Duration
	// Timeout is the time limit of writing a batch. Default 10 seconds.
	Timeout time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Log receives errors of Run. Default slog.Default().
	Log *slog.Logger
}

const (
	// anchorInterval is the time between anchors.
	anchorInterval = time.Hour
	// sealInterval is the interval at which lines of other processes are sealed; those of this process are
	// sealed within a tenth of a second.
	sealInterval = time.Second
)

// Service records accesses and reads the log. Safe for concurrent use.
type Service struct {
	store Store
	key   ed25519.PrivateKey
	opts  Options

	wake   chan struct{} // has a value after lines were stored
	record *work.Batch[[]Entry, struct{}]
}

// New returns a Service that signs with key. Invalid without a store or a key.
func New(store Store, key ed25519.PrivateKey, opts *Options) (*Service, error) {
	if store == nil || len(key) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("%w: accesslog.New: a store and an Ed25519 key are required", healthlab.Invalid)
	}
	s := &Service{store: store, key: key, wake: make(chan struct{}, 1)}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Retention <= 0 {
		s.opts.Retention = 6 * 365 * 24 * time.Hour
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
	s.record = work.NewBatch(s.opts.Timeout, func(ctx context.Context, in [][]Entry) ([]struct{}, error) {
		return make([]struct{}, len(in)), s.store.Append(ctx, slices.Concat(in...), s.stored)
	})
	return s, nil
}

// Add records entries in the store transaction of ctx: they are stored if it commits. Without a transaction, it
// commits them itself. A zero At means now.
func (s *Service) Add(ctx context.Context, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	if err := s.store.Append(ctx, s.dated(entries), s.stored); err != nil {
		return fmt.Errorf("record access: %w", err)
	}
	return nil
}

// dated returns entries with a zero At set to now.
func (s *Service) dated(entries []Entry) []Entry {
	entries = slices.Clone(entries)
	for i := range entries {
		if entries[i].At.IsZero() {
			entries[i].At = s.opts.Now()
		}
	}
	return entries
}

func (s *Service) stored() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Record records entries, and returns when they are stored. A zero At means now. Entries of concurrent calls
// are written together in a transaction of their own; inside a transaction, call [Service.Add]. If ctx ends
// first, its error is returned and the entries may still be stored.
func (s *Service) Record(ctx context.Context, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	if _, err := s.record.Do(ctx, s.dated(entries)); err != nil {
		return fmt.Errorf("record access: %w", err)
	}
	return nil
}

// Seal adds all lines that were stored before the call to the hash chains of their teams.
func (s *Service) Seal(ctx context.Context) error { return s.seal(ctx, healthlab.TeamID{}) }

// seal is Seal for one team, or for all teams if team is zero.
func (s *Service) seal(ctx context.Context, team healthlab.TeamID) error {
	for {
		n, err := s.store.Seal(ctx, SealQuery{Team: team, N: page}, s.sign)
		if err != nil {
			return fmt.Errorf("seal access log: %w", err)
		}
		if n < page {
			return nil
		}
	}
}

// Lines returns lines of a team by number. It first seals the team's lines, so it also returns those that were
// stored shortly before the call.
func (s *Service) Lines(ctx context.Context, q Query) ([]Line, error) {
	if err := s.seal(ctx, q.Team); err != nil {
		return nil, err
	}
	return s.sealedLines(ctx, q)
}

func (s *Service) sealedLines(ctx context.Context, q Query) ([]Line, error) {
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

// PublicKey returns the public key for verifying the anchors.
func (s *Service) PublicKey() ed25519.PublicKey { return s.key.Public().(ed25519.PublicKey) }

// page is the number of lines that are sealed or read at a time.
const page = 1000

func (s *Service) sign(h Head) []byte { return ed25519.Sign(s.key, h.message()) }

// Verification is the result of [Service.Verify].
type Verification struct {
	// Head is the last line of the chain.
	Head
	// Lines is the number of lines in the chain. Lines older than the retention are missing.
	Lines int64
	// Unsealed is the number of lines that are not sealed yet. Removing or changing one of them cannot be
	// detected.
	Unsealed int64
}

// Verify checks the hash chain of a team against its head and anchors, and their signatures. Lines may be
// missing only before an anchor that is older than the retention. kept are anchors of the team that were stored
// elsewhere: with them Verify detects an old head that was restored together with fewer lines. Conflict if a
// line was removed, changed or moved, or a head or an anchor does not match, or lines follow the head.
//
// It writes nothing: unsealed lines are counted separately. [Service.Run] seals them.
func (s *Service) Verify(ctx context.Context, team healthlab.TeamID, kept ...Anchor) (Verification, error) {
	// The head first: lines that are added meanwhile come behind it.
	head, err := s.head(ctx, team)
	if err != nil {
		return Verification{}, err
	}
	anchors, err := s.Anchors(ctx, team)
	if err != nil {
		return Verification{}, err
	}
	anchors = append(anchors, kept...)
	for i := range anchors {
		if err := anchors[i].Verify(s.PublicKey()); err != nil {
			return Verification{}, err
		}
	}
	marks := append(anchors, Anchor{Head: head.Head}) //nolint:gocritic // the head is a mark of its own
	slices.SortStableFunc(marks, func(a, b Anchor) int { return cmp.Compare(a.Seq, b.Seq) })
	found, err := s.verifyLines(ctx, team, marks)
	if err != nil {
		return Verification{}, err
	}
	if head, err = s.head(ctx, team); err != nil {
		return Verification{}, err
	}
	if found.Seq > head.Seq {
		return Verification{}, fmt.Errorf("%w: access log: unsigned lines follow the signed last line %d", healthlab.Conflict, head.Seq)
	}
	unsealed, err := s.store.Unsealed(ctx, team)
	if err != nil {
		return Verification{}, fmt.Errorf("count lines of an access log: %w", err)
	}
	found.Unsealed = unsealed[team]
	return found, nil
}

// head returns the head of a team, after checking its signature.
func (s *Service) head(ctx context.Context, team healthlab.TeamID) (SignedHead, error) {
	heads, err := s.store.Heads(ctx, HeadQuery{Team: team, N: 1})
	switch {
	case err != nil:
		return SignedHead{}, fmt.Errorf("read the head of an access log: %w", err)
	case len(heads) == 0:
		return SignedHead{Head: Head{Team: team}}, nil
	case !ed25519.Verify(s.PublicKey(), heads[0].message(), heads[0].Signature):
		return SignedHead{}, fmt.Errorf("%w: access log: the signature of the last line, line %d, is wrong", healthlab.Conflict, heads[0].Seq)
	}
	return heads[0], nil
}

// verifyLines checks lines against each other and against marks (heads and anchors), which are sorted by line.
func (s *Service) verifyLines(ctx context.Context, team healthlab.TeamID, marks []Anchor) (Verification, error) {
	var v Verifier
	v.Head.Team = team
	out := Verification{}
	for first := true; ; first = false {
		lines, err := s.sealedLines(ctx, Query{Team: team, After: v.Head.Seq, N: page})
		if err != nil {
			return Verification{}, err
		}
		if first {
			marks = s.skipPruned(&v, lines, marks)
		}
		for i := range lines {
			if err := v.Check(&lines[i]); err != nil {
				return Verification{}, err
			}
			for len(marks) > 0 && marks[0].Seq == v.Head.Seq {
				if marks[0].Hash != v.Head.Hash {
					return Verification{}, fmt.Errorf("%w: access log: line %d differs from the signed line", healthlab.Conflict, v.Head.Seq)
				}
				marks = marks[1:]
			}
		}
		out.Lines += int64(len(lines))
		if len(lines) < page {
			break
		}
	}
	if len(marks) > 0 {
		return Verification{}, fmt.Errorf("%w: access log: the log ends at line %d, and the signature is of line %d", healthlab.Conflict, v.Head.Seq, marks[0].Seq)
	}
	out.Head = v.Head
	return out, nil
}

// skipPruned sets the verifier to start after the pruned lines, and returns the remaining marks.
func (s *Service) skipPruned(v *Verifier, lines []Line, marks []Anchor) []Anchor {
	for len(marks) > 0 && marks[0].Seq == 0 { // the head of an empty chain
		marks = marks[1:]
	}
	if len(lines) > 0 && lines[0].Seq == 1 {
		return marks
	}
	for len(marks) > 0 && len(marks[0].Signature) > 0 && marks[0].At.Before(s.opts.Now().Add(-s.opts.Retention)) {
		v.Head, marks = marks[0].Head, marks[1:]
		if len(lines) > 0 && lines[0].Seq == v.Head.Seq+1 {
			break
		}
	}
	for len(marks) > 0 && v.Head.Seq > 0 && marks[0].Seq == v.Head.Seq && marks[0].Hash == v.Head.Hash {
		marks = marks[1:]
	}
	return marks
}

// VerifyAll verifies every team with lines or a head in the store, and calls each with the result. kept are
// anchors of any teams that were stored elsewhere. NotFound if there is no such team; Conflict if a chain is
// incomplete or changed.
func (s *Service) VerifyAll(ctx context.Context, kept []Anchor, each func(healthlab.TeamID, Verification, error)) error {
	of := map[healthlab.TeamID][]Anchor{}
	for _, a := range kept {
		of[a.Team] = append(of[a.Team], a)
	}
	unsealed, err := s.store.Unsealed(ctx, healthlab.TeamID{})
	if err != nil {
		return fmt.Errorf("count lines of access logs: %w", err)
	}
	verified, broken := 0, 0
	verify := func(team healthlab.TeamID) {
		v, err := s.Verify(ctx, team, of[team]...)
		delete(of, team)
		delete(unsealed, team)
		verified++
		if err != nil {
			broken++
		}
		each(team, v, err)
	}
	for q := (HeadQuery{N: page}); ; {
		heads, err := s.store.Heads(ctx, q)
		if err != nil {
			return fmt.Errorf("read the heads of access logs: %w", err)
		}
		for _, h := range heads {
			q.After = h.Team
			verify(h.Team)
		}
		if len(heads) < page {
			break
		}
	}
	byID := func(a, b healthlab.TeamID) int { return bytes.Compare(a.UUID[:], b.UUID[:]) }
	for team := range unsealed { // of teams without a chain
		if _, ok := of[team]; !ok {
			of[team] = nil
		}
	}
	for _, team := range slices.SortedFunc(maps.Keys(of), byID) { // anchors of teams whose log is gone
		verify(team)
	}
	switch {
	case verified == 0:
		return fmt.Errorf("%w: the store has no access log of any team", healthlab.NotFound)
	case broken > 0:
		return fmt.Errorf("%w: the access logs of %d of %d teams are incomplete or changed", healthlab.Conflict, broken, verified)
	}
	return nil
}

// SignHeads returns an anchor of the present head of every team, for storing elsewhere.
func (s *Service) SignHeads(ctx context.Context) ([]Anchor, error) {
	var out []Anchor
	for q := (HeadQuery{N: page}); ; {
		heads, err := s.store.Heads(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("read the heads of access logs: %w", err)
		}
		for _, h := range heads {
			q.After = h.Team
			out = append(out, Sign(h.Head, s.opts.Now(), s.key))
		}
		if len(heads) < page {
			return out, nil
		}
	}
}

// Anchor seals all lines and signs the heads of chains with lines after their last anchor.
func (s *Service) Anchor(ctx context.Context) error {
	if err := s.Seal(ctx); err != nil {
		return err
	}
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

// sealPause is the time for which new lines are collected before they are sealed.
const sealPause = 100 * time.Millisecond

// sealTime is the time limit for sealing the last lines after the context of Run has ended.
const sealTime = 3 * time.Second

// Run seals new lines, signs anchors of the chains and prunes lines that are older than the retention, until
// ctx ends. Several processes may run it on one store.
func (s *Service) Run(ctx context.Context) error {
	return work.Together(ctx, []work.Part{{Name: "seal", Run: s.runSeal}, {Name: "anchor", Run: s.runAnchor}})
}

// runSeal seals new lines soon after they are stored.
func (s *Service) runSeal(ctx context.Context) error {
	tick := time.NewTicker(sealInterval)
	defer tick.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	waiting, failed := true, false
	after, stop := work.Grace(ctx, sealTime)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			if err := s.Seal(after); err != nil {
				s.logFailure(after, "cannot sign the last line of an access log", err)
			}
			return nil
		case <-s.wake:
			if !waiting {
				pause.Reset(sealPause)
				waiting = true
			}
			continue
		case <-pause.C:
			waiting = false
		case <-tick.C:
		}
		err := s.Seal(ctx)
		if err != nil && !failed {
			s.logFailure(ctx, "cannot sign the last line of an access log", err) // once, until it works
		}
		failed = err != nil
	}
}

// runAnchor signs anchors and prunes lines at intervals.
func (s *Service) runAnchor(ctx context.Context) error {
	tick := time.NewTicker(anchorInterval)
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
		if err != nil {
			s.logFailure(ctx, "cannot write the anchor of an access log", err)
		}
	}
}

func (s *Service) logFailure(ctx context.Context, msg string, err error) {
	if ctx.Err() == nil {
		s.opts.Log.ErrorContext(ctx, msg, "kind", healthlab.KindOf(err).Error())
	}
}
