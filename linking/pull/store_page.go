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

// storeItems stores the items of a task's page, and quarantines refused ones. allRefused reports whether there
// were items and all were refused.
func (s *Service) storeItems(ctx context.Context, t *Task, c *healthdata.Connection, items []linking.PullItem) (sum healthdata.Received, allRefused bool, err error) {
	sum, bad, err := s.receive(ctx, t, c, items)
	if err != nil || len(bad) == 0 {
		return sum, false, err
	}
	if err := s.store.Quarantine(ctx, t.Ref, merged(bad)); err != nil {
		return sum, false, fmt.Errorf("quarantine: %w", err)
	}
	allRefused = len(bad) >= t.count(items)
	s.logRefused(ctx, t, bad, allRefused)
	return sum, allRefused, nil
}

// storePage stores a page and the progress of the task and its followers.
func (s *Service) storePage(ctx context.Context, t Task, followers []Task, c *healthdata.Connection, page linking.PullPage) error {
	if !c.Demo {
		if _, err := s.updateLimits(ctx, &t, page.RateLimits, nil); err != nil {
			return err
		}
	}
	brings := func(r linking.ResourceData) bool { return len(r.Items) > 0 }
	if s.opts.Accessed != nil && (len(page.Items) > 0 || slices.ContainsFunc(page.With, brings)) {
		if err := s.opts.Accessed(ctx, t.Team, t.User); err != nil {
			return fmt.Errorf("record access: %w", err)
		}
	}
	sum, allRefused, err := s.storeItems(ctx, &t, c, page.Items)
	if err == nil {
		err = s.storeFollowerPages(ctx, t, followers, c, &page)
	}
	if err != nil {
		return s.recordFailure(ctx, t, err)
	}
	now := s.now()
	begun := t
	var done []healthlab.Event
	if t.Kind == History {
		e, ok, err := s.users.HistoricalEvent(t.Team, t.User, t.Provider, t.Resource, t.From, t.To)
		if err != nil {
			return err
		}
		if ok {
			done = []healthlab.Event{e}
		}
	}
	fetched := false
	err = s.updateClaimed(ctx, t, func(t *Task) ([]healthlab.Event, error) {
		refusedBefore := t.refused()
		t.From, t.To, t.Until, t.StartedAt, t.EndedAt, t.Swept = begun.From, begun.To, begun.Until, begun.StartedAt, begun.EndedAt, begun.Swept
		t.addReceived(&sum, now)
		ended := t.advance(page.Next, now, &s.opts)
		t.noteRefused(allRefused, refusedBefore, ended)
		if fetched = ended && t.Status == Success; !fetched {
			return nil, nil
		}
		return done, nil
	})
	if err == nil && fetched && begun.Kind == History {
		s.opts.Log.InfoContext(ctx, "history fetched", "task", begun.Key, "trace", begun.trace())
	}
	s.Wake()
	return err
}

// receive stores the items of a page, and returns the outcome and the refused items.
func (s *Service) receive(ctx context.Context, t *Task, c *healthdata.Connection, items []linking.PullItem) (sum healthdata.Received, bad []RefusedItem, err error) {
	up := healthdata.Upload{Provider: t.Provider, Stage: healthdata.StageDaily}
	if t.Kind == History {
		up.Stage = healthdata.StageHistorical
	}
	took := func(got *healthdata.Received, item func(int) any) {
		addTotals(&sum, got)
		for _, r := range got.Refusals {
			bad = append(bad, s.refusal(t, item(r.Index), r.Problems))
		}
	}
	// Items of one id may be in several parts of an answer.
	var parts []healthdata.SummaryPart
	var streams []*healthdata.WorkoutStream // the streams of the parts
	for i := range items {
		p := &items[i]
		for _, u := range p.Unparsed {
			bad = append(bad, s.refusal(t, u.Item, u.Problems))
		}
		if t.Resource == deviceSlug && p.Device == nil {
			continue // the part has only unreadable items
		}
		if p.Owner != nil && (c.ExternalUserID == nil || *p.Owner != *c.ExternalUserID) {
			bad = append(bad, s.refuseForeign(t, p)...)
			continue
		}
		up.Source, up.Device, up.TimeZone, up.Workout = p.Source, p.Device, p.TimeZone, p.Workout
		if t.Resource == deviceSlug {
			got, err := s.users.ReceiveDevice(ctx, t.Team, t.User, up)
			if err != nil {
				return sum, nil, gone(err)
			}
			took(&got, func(int) any { return p.Device })
			continue
		}
		if len(p.Deleted) > 0 {
			if err := s.remove(ctx, t, up, p.Deleted); err != nil {
				return sum, nil, gone(err)
			}
		}
		if t.Resource == streamSlug && (len(p.Summaries) != 1 || p.Stream == nil) {
			if p.Stream != nil || len(p.Summaries) > 0 {
				bad = append(bad, s.refusal(t, p, []healthlab.Problem{{Code: "shape", Msg: "must be the stream of a workout on the same page"}}))
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
		got, err := s.users.ReceiveSamples(ctx, t.Team, t.User, t.Resource, up, p.Samples)
		if err != nil {
			return sum, nil, gone(err)
		}
		took(&got, func(i int) any { return &p.Samples[i] })
	}
	err = s.receiveParts(ctx, t, parts, streams, took)
	return sum, bad, err
}

// remove removes items that were deleted at the provider.
func (s *Service) remove(ctx context.Context, t *Task, up healthdata.Upload, deleted []linking.DeletedRecord) error {
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
		if _, err := s.users.RemoveSummaries(ctx, t.Team, t.User, t.Resource, up, ids); err != nil {
			return err
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(times)) {
		if _, err := s.users.RemoveSamples(ctx, t.Team, t.User, t.Resource, up, kind, times[kind]); err != nil {
			return err
		}
	}
	return nil
}

// receiveParts stores summaries and their streams.
func (s *Service) receiveParts(ctx context.Context, t *Task, parts []healthdata.SummaryPart, streams []*healthdata.WorkoutStream,
	took func(*healthdata.Received, func(int) any),
) error {
	if len(parts) == 0 {
		return nil
	}
	resource := t.Resource
	if resource == streamSlug {
		resource = "workouts"
	}
	all, err := s.users.ReceiveSummaries(ctx, t.Team, t.User, resource, parts)
	if err != nil {
		return gone(err)
	}
	for n := range all {
		took(&all[n], func(i int) any { return parts[n].Items[i] })
		if t.Resource != streamSlug || len(all[n].Refusals) > 0 {
			continue
		}
		got, err := s.users.ReceiveWorkoutStream(ctx, t.Team, t.User, healthdata.HeadOf(parts[n].Items[0]).ID, parts[n].Upload, streams[n])
		if err != nil {
			return gone(err)
		}
		took(&got, func(int) any { return streams[n] })
	}
	return nil
}

// refuseForeign refuses items of another owner.
func (s *Service) refuseForeign(t *Task, p *linking.PullItem) (bad []RefusedItem) {
	why := []healthlab.Problem{{Code: "other_user", Msg: "the provider says that this is another user's"}}
	for i := range p.Samples {
		bad = append(bad, s.refusal(t, &p.Samples[i], why))
	}
	for i := range p.Summaries {
		bad = append(bad, s.refusal(t, p.Summaries[i], why))
	}
	if t.Resource == deviceSlug {
		bad = append(bad, s.refusal(t, p.Device, why))
	}
	return bad
}

// gone converts the error of a missing connection (RuleNoConnection) to NotFound, and returns other errors unchanged.
func gone(err error) error {
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

// refusal describes an item that was refused.
func (s *Service) refusal(t *Task, item any, problems []healthlab.Problem) RefusedItem {
	tells := fmt.Appendf(nil, "%s %s %s %s ", t.Team, t.User, t.Provider, t.Resource)
	tells = appendFingerprint(tells, reflect.ValueOf(item))
	r := RefusedItem{Provider: t.Provider, Resource: t.Resource, At: healthlab.At(s.now()), Count: 1}
	for _, p := range problems {
		parts := make([]string, len(p.Path))
		for i, part := range p.Path {
			parts[i] = fmt.Sprint(part)
		}
		why := Reason{Field: strings.Join(parts, "."), Code: p.Code, Message: p.Msg}
		r.Reasons = append(r.Reasons, why)
		tells = fmt.Appendf(tells, " %s %s", why.Field, why.Code)
	}
	sum := sha256.Sum256(tells)
	r.ID = uuid.NewSHA1(refusedSpace, sum[:])
	return r
}

// merged joins refusals with one id.
func merged(list []RefusedItem) []RefusedItem {
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

// storeFollowerPages stores the items of followers on a task's page, and their progress. The same page may be
// stored twice.
func (s *Service) storeFollowerPages(ctx context.Context, t Task, followers []Task, c *healthdata.Connection, page *linking.PullPage) error {
	for _, f := range followers {
		var items []linking.PullItem
		for _, of := range page.With {
			if of.Resource == f.Resource {
				items = append(items, of.Items...)
			}
		}
		got, allRefused, err := s.storeItems(ctx, &f, c, items)
		if err != nil {
			return err
		}
		e, announced, err := s.users.HistoricalEvent(f.Team, f.User, f.Provider, f.Resource, t.From, t.To)
		if err != nil {
			return err
		}
		now := s.now()
		_, err = s.store.Update(ctx, f.Key, func(stored *Task) ([]healthlab.Event, error) {
			if !stored.follows(&f, &t) || stored.Status == Success {
				return nil, nil
			}
			refusedBefore := stored.refused()
			stored.From, stored.To, stored.Until, stored.Cursor, stored.StartedAt, stored.EndedAt = t.From, t.To, t.Until, t.Cursor, t.StartedAt, t.EndedAt
			stored.addReceived(&got, now)
			ended := stored.advance(page.Next, now, &s.opts)
			stored.noteRefused(allRefused, refusedBefore, ended)
			if !ended {
				stored.Due = time.Time{}
				return nil, nil
			}
			stored.Lead = ""
			if announced && stored.Status == Success {
				return []healthlab.Event{e}, nil
			}
			return nil, nil
		})
		if err != nil && !errors.Is(err, healthlab.NotFound) {
			return err
		}
	}
	return nil
}

// refusedSpace is the UUID name space of the ids of refusals.
var refusedSpace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("healthlab:refused"))
