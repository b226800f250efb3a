package pull

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// receiver stores items of a provider for one task. It adds up the counts, and collects the refused items.
type receiver struct {
	users      *healthdata.Service
	task       *Task
	connection *healthdata.Connection
	now        func() time.Time

	sum     healthdata.Received
	refused []RefusedItem
}

// receive stores the items of a page, or of a message, of the provider.
func (r *receiver) receive(ctx context.Context, items []linking.PullItem) error {
	t, c := r.task, r.connection
	up := healthdata.Upload{Provider: t.Provider, Stage: healthdata.StageDaily}
	if t.Kind == History {
		up.Stage = healthdata.StageHistorical
	}
	// Items of one id may be in several parts of an answer.
	var parts []healthdata.SummaryPart
	var streams []*healthdata.WorkoutStream // the streams of the parts
	for i := range items {
		p := &items[i]
		for _, u := range p.Unparsed {
			r.refuse(u.Item, u.Problems)
		}
		if t.Resource == deviceSlug && p.Device == nil {
			continue // the part has only unreadable items
		}
		if p.Owner != nil && (c.ExternalUserID == nil || *p.Owner != *c.ExternalUserID) {
			r.refuseForeign(p)
			continue
		}
		up.Source, up.Device, up.TimeZone, up.Workout = p.Source, p.Device, p.TimeZone, p.Workout
		if t.Resource == deviceSlug {
			got, err := r.users.ReceiveDevice(ctx, t.Team, t.User, up)
			if err != nil {
				return asNotFound(err)
			}
			r.add(&got, func(int) any { return p.Device })
			continue
		}
		if len(p.Deleted) > 0 {
			if err := r.remove(ctx, up, p.Deleted); err != nil {
				return asNotFound(err)
			}
		}
		if t.Resource == streamSlug && (len(p.Summaries) != 1 || p.Stream == nil) {
			if p.Stream != nil || len(p.Summaries) > 0 {
				r.refuse(p, []healthlab.Problem{{Code: "shape", Msg: "must be the stream of a workout on the same page"}})
			}
			continue
		}
		if len(p.Summaries) > 0 {
			streams = append(streams, p.Stream)
			parts = append(parts, healthdata.SummaryPart{Upload: up, Items: p.Summaries})
		}
		if len(p.Samples) == 0 {
			continue
		}
		got, err := r.users.ReceiveSamples(ctx, t.Team, t.User, t.Resource, up, p.Samples)
		if err != nil {
			return asNotFound(err)
		}
		r.add(&got, func(i int) any { return &p.Samples[i] })
	}
	return r.receiveParts(ctx, parts, streams)
}

func (r *receiver) add(got *healthdata.Received, item func(int) any) {
	addTotals(&r.sum, got)
	for _, refused := range got.Refusals {
		r.refuse(item(refused.Index), refused.Problems)
	}
}

// remove deletes the stored items of records that were deleted at the provider.
func (r *receiver) remove(ctx context.Context, up healthdata.Upload, deleted []linking.DeletedRecord) error {
	t := r.task
	var ids []string
	times := map[string][]healthlab.Time{}
	for _, d := range deleted {
		if d.ID != "" {
			ids = append(ids, d.ID)
			continue
		}
		times[d.Type] = append(times[d.Type], d.At)
	}
	if len(ids) > 0 {
		if _, err := r.users.RemoveSummaries(ctx, t.Team, t.User, t.Resource, up, ids); err != nil {
			return err
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(times)) {
		if _, err := r.users.RemoveSamples(ctx, t.Team, t.User, t.Resource, up, kind, times[kind]); err != nil {
			return err
		}
	}
	return nil
}

// receiveParts stores summaries and then the streams of those workouts that were not refused. streams[n] belongs to
// parts[n].
func (r *receiver) receiveParts(ctx context.Context, parts []healthdata.SummaryPart, streams []*healthdata.WorkoutStream) error {
	t := r.task
	if len(parts) == 0 {
		return nil
	}
	resource := t.Resource
	if resource == streamSlug {
		resource = "workouts"
	}
	all, err := r.users.ReceiveSummaries(ctx, t.Team, t.User, resource, parts)
	if err != nil {
		return asNotFound(err)
	}
	for n := range all {
		r.add(&all[n], func(i int) any { return parts[n].Items[i] })
		if t.Resource != streamSlug || len(all[n].Refusals) > 0 {
			continue
		}
		got, err := r.users.ReceiveWorkoutStream(ctx, t.Team, t.User, healthdata.HeadOf(parts[n].Items[0]).ID, parts[n].Upload, streams[n])
		if err != nil {
			return asNotFound(err)
		}
		r.add(&got, func(int) any { return streams[n] })
	}
	return nil
}

// refuseForeign refuses all items of p, because p.Owner is another account than that of the connection.
func (r *receiver) refuseForeign(p *linking.PullItem) {
	why := []healthlab.Problem{{Code: "other_user", Msg: "the provider says that this is another user's"}}
	for i := range p.Samples {
		r.refuse(&p.Samples[i], why)
	}
	for i := range p.Summaries {
		r.refuse(p.Summaries[i], why)
	}
	if r.task.Resource == deviceSlug {
		r.refuse(p.Device, why)
	}
}

// asNotFound converts the error of a missing connection (RuleNoConnection) to NotFound, and returns other errors
// unchanged.
func asNotFound(err error) error {
	var rule *healthlab.RuleError
	if errors.As(err, &rule) && rule.Type == healthdata.RuleNoConnection {
		return healthlab.NotFound
	}
	return err
}

// addTotals adds the outcome of several parts.
func addTotals(sum, got *healthdata.Received) {
	sum.Sent += got.Sent
	sum.New += got.New
	sum.Days = append(sum.Days, got.Days...)
	if !got.Oldest.IsZero() && (sum.Oldest.IsZero() || got.Oldest.Before(sum.Oldest)) {
		sum.Oldest = got.Oldest
	}
	sum.Newest = later(sum.Newest, got.Newest)
}

// refuse adds an item with its problems to the refused items.
func (r *receiver) refuse(item any, problems []healthlab.Problem) {
	t := r.task
	tells := fmt.Appendf(nil, "%s %s %s %s ", t.Team, t.User, t.Provider, t.Resource)
	tells = appendFingerprint(tells, reflect.ValueOf(item))
	refused := RefusedItem{Provider: t.Provider, Resource: t.Resource, At: healthlab.At(r.now()), Count: 1}
	for _, p := range problems {
		parts := make([]string, len(p.Path))
		for i, part := range p.Path {
			parts[i] = fmt.Sprint(part)
		}
		why := Reason{Field: strings.Join(parts, "."), Code: p.Code, Message: p.Msg}
		refused.Reasons = append(refused.Reasons, why)
		tells = fmt.Appendf(tells, " %s %s", why.Field, why.Code)
	}
	sum := sha256.Sum256(tells)
	refused.ID = uuid.NewSHA1(refusedSpace, sum[:])
	r.refused = append(r.refused, refused)
}

// mergeRefused joins refused items with the same id, and counts them.
func mergeRefused(list []RefusedItem) []RefusedItem {
	var out []RefusedItem
	for _, r := range list {
		if i := slices.IndexFunc(out, func(o RefusedItem) bool { return o.ID == r.ID }); i >= 0 {
			out[i].Count++
			continue
		}
		out = append(out, r)
	}
	return out
}

// refusedSpace is the UUID name space of the ids of refusals.
var refusedSpace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("healthlab:refused"))
