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
	// Retention is the time for which log lines are stored. Default six years of 365 days.
	Retention time.Duration
	// Timeout is the time limit of [Service.Record] for writing to the store. Default 10 seconds.
	Timeout time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Log receives the errors of [Service.Run]. Default slog.Default().
	Log *slog.Logger
}

const (
	// anchorInterval is the time between two runs that sign an anchor (a copy of the last line) of each changed
	// chain.
	anchorInterval = time.Hour
	// sealInterval is the interval at which lines that other processes stored are added to the hash chains. Lines
	// of this process are added after [sealPause].
	sealInterval = time.Second
)

// Service records accesses to personal data and reads the log. It is safe for concurrent use.
type Service struct {
	store Store
	key   ed25519.PrivateKey
	opts  Options

	wake   chan struct{} // receives a value after lines were stored, for runSeal
	record *work.Batch[[]Entry, struct{}]
}

// New returns a Service that signs heads and anchors with key. Invalid without a store or a key.
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

// Add records entries in the store transaction of ctx, so they are stored if it commits. If ctx has no transaction,
// Add stores them in one of its own. A zero At means now.
func (s *Service) Add(ctx context.Context, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	if err := s.store.Append(ctx, s.dated(entries), s.stored); err != nil {
		return fmt.Errorf("record access: %w", err)
	}
	return nil
}

// dated returns a copy of entries in which a zero At is the present time.
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

// Record records entries, and returns when they are stored. A zero At means now. Concurrent calls share a
// transaction, which is not that of ctx; use [Service.Add] inside a transaction. If ctx ends first, Record returns
// the context's error and the entries may still be stored.
func (s *Service) Record(ctx context.Context, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	if _, err := s.record.Do(ctx, s.dated(entries)); err != nil {
		return fmt.Errorf("record access: %w", err)
	}
	return nil
}

// Seal appends all lines that were stored before the call to the hash chains of their teams.
func (s *Service) Seal(ctx context.Context) error { return s.seal(ctx, healthlab.TeamID{}) }

// seal appends the stored lines of one team to its hash chain; of all teams if team is zero.
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

// Lines returns lines of a team, ordered by number. It seals the team's new lines first (adds them to the hash
// chain), so the result includes lines that were stored just before the call.
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

// Anchors returns the anchors of a team, ordered by line number.
func (s *Service) Anchors(ctx context.Context, team healthlab.TeamID) ([]Anchor, error) {
	list, err := s.store.Anchors(ctx, team)
	if err != nil {
		return nil, fmt.Errorf("read anchors: %w", err)
	}
	return list, nil
}

// PublicKey returns the key that verifies the signatures of heads and anchors.
func (s *Service) PublicKey() ed25519.PublicKey { return s.key.Public().(ed25519.PublicKey) }

// page is the number of lines that are sealed or read at a time.
const page = 1000

func (s *Service) sign(h Head) []byte { return ed25519.Sign(s.key, h.message()) }

// Verification is the result of [Service.Verify].
type Verification struct {
	// Head is the last line of the chain that was verified.
	Head
	// Lines is the number of stored lines of the chain. Lines that were deleted after the retention do not count.
	Lines int64
	// Unsealed is the number of stored lines that are not yet in the chain. Verify cannot detect that one of them
	// was removed or changed.
	Unsealed int64
}

// Verify checks a team's hash chain against the stored head (last line) and the anchors (signed copies of earlier
// heads), and checks the signatures of these. Lines may be missing only up to an anchor that is older than the
// retention. kept are anchors of the team that were stored outside of this store: with them Verify detects that an
// older state of the log, with fewer lines, was restored. Conflict if a line was removed, changed or moved, or a
// head or an anchor does not match, or lines follow the head.
//
// Verify writes nothing. It counts unsealed lines (not yet in the chain), which [Service.Run] seals later.
func (s *Service) Verify(ctx context.Context, team healthlab.TeamID, kept ...Anchor) (Verification, error) {
	// The head is read before the lines, so lines that are added meanwhile only come after it.
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

// head returns the stored head (last line) of a team's chain, after it has checked the signature of the head. A
// team without a head has a Head with Seq 0.
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

// verifyLines checks that the hashes of a team's lines form a chain, and that the chain has each of marks: the head
// and the anchors, sorted by line number.
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
		return Verification{}, fmt.Errorf("%w: access log: the log ends at line %d, but line %d was signed: lines were removed", healthlab.Conflict, v.Head.Seq, marks[0].Seq)
	}
	out.Head = v.Head
	return out, nil
}

// skipPruned lets the verifier start at the anchor up to which lines were deleted after the retention, and returns
// the marks that are still to check.
func (s *Service) skipPruned(v *Verifier, lines []Line, marks []Anchor) []Anchor {
	for len(marks) > 0 && marks[0].Seq == 0 { // a signed state without any line
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

// VerifyAll calls Verify for every team with lines, a head or an anchor in kept, and passes the result to each.
// kept are anchors of any teams that were stored outside of this store. NotFound if there is no such team; Conflict
// if the log of a team is incomplete or changed.
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
	for team := range unsealed { // teams that have lines, but no chain yet
		if _, ok := of[team]; !ok {
			of[team] = nil
		}
	}
	for _, team := range slices.SortedFunc(maps.Keys(of), byID) { // teams without a head in the store
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

// SignHeads returns one anchor for each team, of the present last line of its chain. A host stores them outside of
// the store and passes them to [Service.VerifyAll] later.
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

// Anchor appends all stored lines to the chains, and then stores an anchor of each chain that has lines after its
// last anchor.
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

// sealPause is the time from the storing of a line until it is sealed together with the lines stored meanwhile.
const sealPause = 100 * time.Millisecond

// sealTime is the time limit for the last Seal, after the context of Run has ended.
const sealTime = 3 * time.Second

// Run seals new lines, signs anchors of the chains every hour, and deletes lines older than the retention, until
// ctx ends. Several processes may run it on one store.
func (s *Service) Run(ctx context.Context) error {
	return work.Together(ctx, []work.Part{{Name: "seal", Run: s.runSeal}, {Name: "anchor", Run: s.runAnchor}})
}

// runSeal seals lines soon after this process has stored them, and those of other processes at intervals.
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
			s.logFailure(ctx, "cannot sign the last line of an access log", err) // only the first failure in a row
		}
		failed = err != nil
	}
}

// runAnchor calls Anchor, which signs the last line of each team with new lines, and deletes lines older than the
// retention, at intervals.
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
