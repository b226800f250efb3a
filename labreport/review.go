package labreport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Review by people. There is no HTTP for it: a host builds its own screen on these
// methods.

// PendingReviews returns jobs that wait for a person, oldest first, at most n, after
// a job of an earlier call (zero to begin).
func (s *Service) PendingReviews(ctx context.Context, team healthlab.TeamID, after JobID, n int) ([]Job, error) {
	jobs, err := s.store.List(ctx, Query{Team: team, Status: []Status{PendingReview}, After: after, Size: max(1, n)})
	if err != nil {
		return nil, fmt.Errorf("list reviews: %w", err)
	}
	return jobs, nil
}

// Draft returns what was read of a job that waits for review. Precondition if it
// does not.
func (s *Service) Draft(ctx context.Context, team healthlab.TeamID, id JobID) (Data, error) {
	j, err := s.store.Get(ctx, team, id)
	if errors.Is(err, healthlab.NotFound) {
		return Data{}, rule(healthlab.NotFound, RuleJobNotFound, "the team has no such parsing job")
	}
	if err != nil {
		return Data{}, fmt.Errorf("get draft: %w", err)
	}
	if j.Status != PendingReview || j.Draft == nil {
		return Data{}, fmt.Errorf("get draft: %w: the job does not wait for review", healthlab.Precondition)
	}
	return *j.Draft, nil
}

// Approve completes a job with the draft, or with corrected data in its place. What
// was read stays beside it. by names the reviewer, for the record. What is empty in
// corrected data, where something is always published, is published as unknown. Invalid
// if it cannot be published, Precondition if the job does not wait for
// review.
func (s *Service) Approve(ctx context.Context, team healthlab.TeamID, id JobID, by string, corrected *Data) (PublishedJob, error) {
	if err := checkReview(by, corrected); err != nil {
		return PublishedJob{}, err
	}
	if corrected != nil {
		data := corrected.published()
		corrected = &data
	}
	return s.decide(ctx, team, id, Approved, Review{By: by, Approved: true, Data: corrected})
}

// Reject fails a job with a reason. Faults as of Approve.
func (s *Service) Reject(ctx context.Context, team healthlab.TeamID, id JobID, by string, reason FailureReason) (PublishedJob, error) {
	var p healthlab.Problems
	if by == "" {
		p.Add("missing", "a review needs a reviewer", "by")
	}
	if !slices.Contains([]FailureReason{InvalidInput, LowQuality, NotEnglish, TooManyPages, ProcessingError}, reason) {
		p.Add("enum", "not one of the failure reasons", "reason")
	}
	if err := p.Err(); err != nil {
		return PublishedJob{}, err
	}
	return s.decide(ctx, team, id, Rejected, Review{By: by, Reason: reason})
}

// checkReview checks what a reviewer wrote.
func checkReview(by string, d *Data) error {
	var p healthlab.Problems
	if by == "" {
		p.Add("missing", "a review needs a reviewer", "by")
	}
	if d != nil {
		if d.Results == nil {
			p.Add("missing", "results is a list", "data", "results")
		}
		p.Under(d.Metadata.Evidence.check(), "data", "metadata", "evidence")
		for i := range d.Results {
			p.Under(d.Results[i].check(), "data", "results", i)
		}
	}
	return p.Err()
}

// check finds what cannot be published of a result.
func (res *Result) check() healthlab.Problems {
	var p healthlab.Problems
	if res.TestName == "" {
		p.Add("missing", "a result needs a name", "test_name")
	}
	if res.Value == "" {
		p.Add("missing", "a result needs a value", "value")
	}
	for _, end := range []struct {
		name string
		n    *json.Number
	}{{"min_reference_range", res.MinReferenceRange}, {"max_reference_range", res.MaxReferenceRange}} {
		if end.n == nil {
			continue
		}
		if _, err := json.Marshal(end.n); err != nil || *end.n == "" {
			p.Add("number", "not a number", end.name)
		}
	}
	if len(res.LoincMatches) > maxMatches {
		p.Add("too_long", "a result has at most 5 candidates", "loinc_matches")
	}
	for k, m := range res.LoincMatches {
		if !ValidCode(m.LoincCode) {
			p.Add("loinc_code", "not a LOINC code", "loinc_matches", k, "loinc_code")
		}
		if !share(m.ConfidenceScore) {
			p.Add("out_of_range", "is 0 to 1", "loinc_matches", k, "confidence_score")
		}
	}
	p.Under(res.Evidence.check(), "evidence")
	return p
}

// check finds what is no place on a page.
func (e Evidence) check() healthlab.Problems {
	var p healthlab.Problems
	for _, name := range slices.Sorted(maps.Keys(e)) {
		if r := e[name]; r.Page < 1 || !share(r.Confidence) || !share(r.Box.X) || !share(r.Box.Y) || !share(r.Box.Width) || !share(r.Box.Height) {
			p.Add("out_of_range", "pages count from 1, places and confidences are 0 to 1", name)
		}
	}
	return p
}

func share(v float64) bool { return v >= 0 && v <= 1 }

// published returns a copy in which what was left out is said to be unknown.
func (d Data) published() Data {
	text := func(s *string, unknown string) {
		if *s == "" {
			*s = unknown
		}
	}
	places := func(e *Evidence) {
		if *e == nil {
			*e = Evidence{}
		}
	}
	text(&d.Metadata.Gender, "other")
	places(&d.Metadata.Evidence)
	d.Results = slices.Clone(d.Results)
	for i := range d.Results {
		r := &d.Results[i]
		text((*string)(&r.SampleType), string(NoSpecimen))
		text(&r.MeasurementKind, "unknown")
		text(&r.Sensitivity, "unknown")
		if r.Interpretation == nil {
			r.Interpretation = ptr(Unclear)
		}
		places(&r.Evidence)
		r.LoincMatches = slices.Clone(r.LoincMatches)
		for k := range r.LoincMatches {
			if r.LoincMatches[k].Aliases == nil {
				r.LoincMatches[k].Aliases = []string{}
			}
		}
	}
	return d
}

// decide records a person's decision.
func (s *Service) decide(ctx context.Context, team healthlab.TeamID, id JobID, on Trigger, r Review) (PublishedJob, error) {
	at, event := s.now(), s.opts.NewID()
	r.At = at
	j, err := s.store.Get(ctx, team, id) // does not find the job of a deleted user
	if err == nil {
		j, err = s.store.Update(ctx, team, id, func(j *Job) ([]healthlab.Event, error) {
			if err := j.move(on, at); err != nil {
				return nil, err
			}
			review := r
			j.Review, j.FailureReason = &review, r.Reason
			j.DueAt = at.Add(s.opts.Retention)
			return s.told(j, event)
		})
	}
	switch {
	case errors.Is(err, healthlab.NotFound):
		return PublishedJob{}, rule(healthlab.NotFound, RuleJobNotFound, "the team has no such parsing job")
	case err != nil:
		return PublishedJob{}, fmt.Errorf("review parsing job: %w", err)
	}
	return j.Published(), nil
}

func (s *Service) told(j *Job, id uuid.UUID) ([]healthlab.Event, error) {
	e, err := j.event(EventJobUpdated, id, j.UpdatedAt)
	if err != nil {
		return nil, err
	}
	return []healthlab.Event{e}, nil
}
