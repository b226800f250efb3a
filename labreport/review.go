package labreport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
// was read stays beside it. by names the reviewer, for the record. Invalid if the
// corrected data cannot be published, Precondition if the job does not wait for
// review.
func (s *Service) Approve(ctx context.Context, team healthlab.TeamID, id JobID, by string, corrected *Data) (PublishedJob, error) {
	if err := checkReview(by, corrected); err != nil {
		return PublishedJob{}, err
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
		for i, r := range d.Results {
			if r.TestName == "" {
				p.Add("missing", "a result needs a name", "data", "results", i, "test_name")
			}
			if r.Value == "" {
				p.Add("missing", "a result needs a value", "data", "results", i, "value")
			}
			for name, n := range map[string]*json.Number{"min_reference_range": r.MinReferenceRange, "max_reference_range": r.MaxReferenceRange} {
				if n != nil && !json.Valid([]byte(*n)) {
					p.Add("number", "not a number", "data", "results", i, name)
				}
			}
			for k, m := range r.LoincMatches {
				if !ValidCode(m.LoincCode) {
					p.Add("loinc_code", "not a LOINC code", "data", "results", i, "loinc_matches", k, "loinc_code")
				}
			}
		}
	}
	return p.Err()
}

// decide records a person's decision.
func (s *Service) decide(ctx context.Context, team healthlab.TeamID, id JobID, on Trigger, r Review) (PublishedJob, error) {
	at, event := s.now(), s.opts.NewID()
	r.At = at
	j, err := s.store.Update(ctx, team, id, func(j *Job) ([]healthlab.Event, error) {
		if err := j.move(on, at); err != nil {
			return nil, err
		}
		review := r
		j.Review, j.FailureReason = &review, r.Reason
		j.DueAt = at.Add(s.opts.Retention)
		return s.told(j, event)
	})
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
