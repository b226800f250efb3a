package bulk

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// throttle is how fast connections of a team are triggered at a provider: some in a while,
// or some at a time.
type throttle struct {
	n   int
	per time.Duration // 0: n at a time
}

// throttles are the classes of the providers' records, and the one of all others.
var throttles = map[string]throttle{
	"2_per_minute":      {2, time.Minute},
	"250_at_a_time":     {250, 0},
	"1_per_15_minutes":  {1, 15 * time.Minute},
	"150_per_5_minutes": {150, 5 * time.Minute},
	"8_per_minute":      {8, time.Minute},
}

const defaultThrottle = "8_per_minute"

func throttleOf(p *healthdata.Provider) throttle {
	if t, ok := throttles[p.Throttle]; ok {
		return t
	}
	return throttles[defaultThrottle]
}

// Trigger has the history of connections fetched again, as far back as the provider, the
// team and the people's bounds of ingestion let it. It is written down at once, and done in
// the background, as fast as the provider's class allows; what is done at one provider for
// one team is done in the order of the calls. A user is processed when the fetching is
// scheduled, and at a provider of 250 at a time when it is over.
//
// With wait, it returns when all is done, or after [Options].Wait with the operation in
// progress.
//
// Faults: Invalid (the provider is not configured), Forbidden ([RuleNotEnabled]).
func (s *Service) Trigger(ctx context.Context, team healthlab.TeamID, provider string, users []healthlab.UserID, wait bool) (Op, error) {
	op, err := s.trigger(ctx, team, provider, users)
	if err == nil && wait {
		op, err = s.await(ctx, op)
	}
	if err != nil {
		return Op{}, fmt.Errorf("trigger histories: %w", err)
	}
	return op, nil
}

func (s *Service) trigger(ctx context.Context, team healthlab.TeamID, provider string, users []healthlab.UserID) (Op, error) {
	if _, err := s.enabled(ctx, team); err != nil {
		return Op{}, err
	}
	if _, err := s.provider(provider); err != nil {
		return Op{}, err
	}
	users = once(users)
	at := s.now()
	op := Op{
		ID: s.opts.NewID(), Team: team, Type: HistoricalTrigger, Provider: provider, Status: InProgress, Total: len(users), StartedAt: at, Due: at,
	}
	if err := s.store.Submit(ctx, op, users); err != nil {
		return Op{}, err
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return op, nil
}

// look is how often a caller looks at what it waits for.
const look = 50 * time.Millisecond

func (s *Service) await(ctx context.Context, op Op) (Op, error) {
	limit := time.NewTimer(s.opts.Wait)
	defer limit.Stop()
	again := time.NewTicker(look)
	defer again.Stop()
	for op.Status == InProgress {
		select {
		case <-ctx.Done():
			return op, ctx.Err()
		case <-limit.C:
			return op, nil
		case <-again.C:
		}
		var err error
		if op, err = s.store.Op(ctx, op.Team, op.ID); err != nil {
			return op, err
		}
	}
	return op, nil
}

// Run does what was submitted, until ctx ends. Run it in at least one process; any number
// may.
func (s *Service) Run(ctx context.Context) error {
	ops := &work.Loop[Op]{
		Name: "bulk operations", Idle: s.opts.Idle, Wake: s.wake, Log: s.opts.Log, Do: s.advance, Workers: 4,
		Claim: func(ctx context.Context, n int) ([]Op, error) {
			now := s.now()
			return s.store.Claim(ctx, n, now, now.Add(lease))
		},
	}
	return ops.Run(ctx)
}

// Step does what is due now, and returns how many operations it took up: for hosts that
// bring their own scheduler, and for tests.
func (s *Service) Step(ctx context.Context) (int, error) {
	now := s.now()
	ops, err := s.store.Claim(ctx, 100, now, now.Add(lease))
	if err != nil {
		return 0, fmt.Errorf("claim bulk operations: %w", err)
	}
	var faults []error
	for _, op := range ops {
		faults = append(faults, s.advance(ctx, op))
	}
	return len(ops), errors.Join(faults...)
}

const (
	// lease is how long an operation is one process's, and turn how many users it deals
	// with before others have their turn.
	lease = 2 * time.Minute
	turn  = 50
	// again is when to look at histories that are not over.
	again = 5 * time.Second
)

// errLost says that an operation is somebody else's by now.
var errLost = errors.New("the lease is over")

// advance deals with the next users of a claimed operation, and notes how far it is. What
// was not noted is done again, and does nothing the second time.
func (s *Service) advance(ctx context.Context, op Op) error {
	next, err := s.proceed(ctx, op)
	if err != nil {
		return err
	}
	_, err = s.store.UpdateOp(ctx, op.Team, op.ID, func(now *Op) error {
		if now.Fence != op.Fence {
			return errLost
		}
		*now = next
		now.Lease = time.Time{}
		return nil
	})
	if errors.Is(err, errLost) {
		return nil
	}
	return err
}

func (s *Service) proceed(ctx context.Context, op Op) (Op, error) {
	p := s.users.Providers().Get(op.Provider)
	settings, err := s.links.Settings(ctx, op.Team)
	if err != nil {
		return op, err
	}
	if p == nil || !settings.Bulk {
		return op.ended(Aborted, s.now()), nil
	}
	limit := throttleOf(p)
	if op.Running, err = s.unfinished(ctx, &op); err != nil {
		return op, err
	}
	for range turn {
		if limit.per == 0 && len(op.Running) >= limit.n {
			op.Due = s.now().Add(again)
			return op, nil
		}
		items, err := s.store.Items(ctx, op.Team, op.ID, op.Next, 1)
		if err != nil {
			return op, err
		}
		if len(items) == 0 {
			op.Next = op.Total
			return s.finish(op), nil
		}
		if limit.per > 0 {
			wait, err := s.pulls.Spread(ctx, op.Team, op.Provider, limit.n, limit.per)
			if err != nil {
				return op, err
			}
			if wait > 0 {
				op.Due = s.now().Add(wait)
				return op, nil
			}
		}
		it := items[0]
		err = s.pulls.Again(ctx, pull.Ref{Team: op.Team, User: it.User, Provider: op.Provider}, op.StartedAt)
		switch {
		case errors.Is(err, healthlab.NotFound):
			op.Failed++
		case err != nil:
			return op, err
		case limit.per == 0:
			op.Running = append(op.Running, it.User)
		}
		op.Next = it.N + 1
	}
	op.Due = s.now()
	return op, nil
}

// finish ends an operation that has dealt with everybody, once nothing runs.
func (s *Service) finish(op Op) Op {
	switch {
	case len(op.Running) > 0:
		op.Due = s.now().Add(again)
		return op
	case op.Failed > 0:
		return op.ended(Failure, s.now())
	default:
		return op.ended(Success, s.now())
	}
}

// unfinished are those of an operation's running users whose history is not over. Where
// the connection no longer works, nothing is fetched any more.
func (s *Service) unfinished(ctx context.Context, op *Op) (out []healthlab.UserID, err error) {
	for _, id := range op.Running {
		u, err := s.users.User(ctx, op.Team, id)
		if errors.Is(err, healthlab.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if c := u.Connection(op.Provider); c == nil || c.Status != healthdata.Connected {
			continue
		}
		p, err := s.pulls.Progress(ctx, op.Team, id, op.Provider)
		if err != nil && !errors.Is(err, healthlab.NotFound) {
			return nil, err
		}
		if p.Done < p.Total {
			out = append(out, id)
		}
	}
	return out, nil
}

// OpsQuery asks for the operations of a team.
type OpsQuery struct {
	Team healthlab.TeamID
	// Cursor is empty for the first page, then what the page before said.
	Cursor string
	// Size is 0 to [MaxOps].
	Size int
}

// MaxOps is the largest page of operations.
const MaxOps = 50

// Ops returns a page of a team's operations, the latest first, and the cursor of the next
// page; empty on the last one. Faults: Invalid (the size or the cursor), Forbidden
// ([RuleNotEnabled]).
func (s *Service) Ops(ctx context.Context, q OpsQuery) (list []Op, next string, err error) {
	if _, err := s.enabled(ctx, q.Team); err != nil {
		return nil, "", fmt.Errorf("list bulk operations: %w", err)
	}
	var p healthlab.Problems
	if q.Size < 0 || q.Size > MaxOps {
		p.Add("range", "from 0 to 50", "page_size")
	}
	before, ok := q.before()
	if !ok {
		p.Add("cursor", "damaged, or of another query", "next_cursor")
	}
	if err := p.Err(); err != nil {
		return nil, "", fmt.Errorf("list bulk operations: %w", err)
	}
	list, err = s.store.Ops(ctx, q.Team, before, q.Size+1)
	if err != nil {
		return nil, "", fmt.Errorf("list bulk operations: %w", err)
	}
	if len(list) > q.Size {
		list = list[:q.Size]
		if q.Size > 0 {
			last := &list[q.Size-1]
			next = q.cursor(Place{last.StartedAt, last.ID})
		}
	}
	return list, next, nil
}

func (q *OpsQuery) cursor(at Place) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(at.StartedAt.UnixMicro()))
	b = append(b, at.ID[:]...)
	sum := sha256.Sum256(fmt.Appendf(nil, "bulk %s %x", q.Team, b))
	return base64.RawURLEncoding.EncodeToString(append(b, sum[:8]...))
}

func (q *OpsQuery) before() (Place, bool) {
	if q.Cursor == "" {
		return Place{}, true
	}
	b, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil || len(b) != 32 {
		return Place{}, false
	}
	at := Place{time.UnixMicro(int64(binary.BigEndian.Uint64(b))).UTC(), uuid.UUID(slices.Clone(b[8:24]))}
	return at, q.cursor(at) == q.Cursor
}
