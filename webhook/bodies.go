package webhook

import (
	"context"
	"errors"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Bodies deletes the bodies of messages some time after their delivery. The type, key, Seq and time of the
// message and its attempts stay. The store of the messages implements it. Implementations are safe for
// concurrent use.
type Bodies interface {
	// Teams returns the teams that have messages, in no order.
	Teams(ctx context.Context) ([]healthlab.TeamID, error)

	// EmptyBodies deletes at most n bodies of a team's messages, the oldest first, and returns how many it deleted. A
	// body is deleted if its message was written before ended, was routed, has no unfinished delivery, and had no
	// attempt at or after ended.
	//
	// [Log.Message] returns such a message without a body. [Deliveries.Replay] refuses to resend one, with a RuleError
	// of type [RuleBodyDeleted]; a Replay without an Event skips it.
	EmptyBodies(ctx context.Context, team healthlab.TeamID, ended time.Time, n int) (int, error)
}

// RuleBodyDeleted is the type of the RuleError (Precondition) of a replay of a message whose body
// was deleted.
const RuleBodyDeleted = "EVENT_BODY_DELETED"

func bodyDeleted() error {
	return &healthlab.RuleError{Kind: healthlab.Precondition, Type: RuleBodyDeleted,
		Msg: "the body of the event was deleted after the time that the team keeps bodies; read the data by the API"}
}

// DefaultBodyRetention is how long bodies are kept after the last delivery attempt, unless the team has chosen
// another time.
const DefaultBodyRetention = 7 * 24 * time.Hour

// emptyBodies deletes the bodies, of all teams, whose retention has ended. at is the store's time. If it fails for one
// team, it continues with the next.
func (d *Dispatcher) emptyBodies(ctx context.Context, at time.Time) error {
	if d.opts.Bodies == nil {
		return nil
	}
	teams, err := d.opts.Bodies.Teams(ctx)
	if err != nil {
		return err
	}
	var errs error
	for _, team := range teams {
		errs = errors.Join(errs, d.emptyBodiesOf(ctx, team, at))
		if ctx.Err() != nil {
			break
		}
	}
	return errs
}

// emptyBodiesOf deletes the bodies of one team whose retention has ended at the store's time at.
func (d *Dispatcher) emptyBodiesOf(ctx context.Context, team healthlab.TeamID, at time.Time) error {
	const batch = 500
	keep := DefaultBodyRetention
	settings, err := d.opts.Settings(ctx, team)
	if err != nil {
		return err
	}
	if settings.BodyRetention > 0 {
		keep = settings.BodyRetention
	}
	for n := batch; n == batch; {
		if n, err = d.opts.Bodies.EmptyBodies(ctx, team, at.Add(-keep), batch); err != nil {
			return err
		}
	}
	return nil
}
