package labreport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/nearest"
)

// JobSummary is a job in a list for reviewers.
type JobSummary struct {
	ID               JobID            `json:"id"`
	UserID           healthlab.UserID `json:"user_id"`
	Status           Status           `json:"status"`
	FailureReason    *FailureReason   `json:"failure_reason"`
	NeedsHumanReview bool             `json:"needs_human_review"`
	IsReviewed       bool             `json:"is_reviewed"`
	// Pages is 0 until the report is read.
	Pages     int            `json:"pages"`
	CreatedAt healthlab.Time `json:"created_at"`
	UpdatedAt healthlab.Time `json:"updated_at"`
	// ReviewedBy and ReviewedAt are nil before the review.
	ReviewedBy *string         `json:"reviewed_by"`
	ReviewedAt *healthlab.Time `json:"reviewed_at"`
}

// JobReview is a job for a reviewer.
type JobReview struct {
	healthlab.Private

	JobSummary
	// Draft is the extracted data with the position and confidence of each field; nil until the report is read.
	Draft *Data `json:"draft"`
	// Corrections are those of the review; never nil.
	Corrections []Correction `json:"corrections"`
	// Data is the data that clients get, with the corrections; nil until the job is completed.
	Data *Data `json:"data"`
}

// TrainingExample is a correction with the original reading, for training and measuring readers.
type TrainingExample struct {
	healthlab.Private

	JobID JobID `json:"job_id"`
	// UserID is the user of the report. It is not part of the JSON.
	UserID     healthlab.UserID `json:"-"`
	ReviewedBy string           `json:"reviewed_by"`
	ReviewedAt healthlab.Time   `json:"reviewed_at"`
	Correction Correction       `json:"correction"`
	// Read is the original text of a changed field; nil if it was not read.
	Read *string `json:"read"`
	// Reading is the position and confidence of the field; nil if it was not read.
	Reading *Reading `json:"reading"`
	// Draft is the whole original result; nil for added results and for metadata.
	Draft *Result `json:"draft"`
}

// JobsQuery selects jobs for reviewers.
type JobsQuery struct {
	// Status restricts the list to jobs with one of these statuses; empty means any.
	Status []Status
	// User, if not zero, restricts the list to the jobs of this user.
	User healthlab.UserID
	// Cursor is the Next of an earlier page; empty for the first page.
	Cursor string
	// Size is the greatest number of jobs. Default 50.
	Size int
}

// JobPage is one page of jobs, newest first.
type JobPage struct {
	Jobs []JobSummary
	// Next is the cursor of the next page; empty after the last.
	Next string
}

func (j *Job) place() ListPosition { return ListPosition{j.CreatedAt, j.ID} }

func (p ListPosition) cursor() string {
	return strconv.FormatInt(p.CreatedAt.UnixMicro(), 10) + "." + p.ID.String()
}

// parseCursor parses the cursor of a list of jobs. It returns Invalid if the cursor is malformed or empty.
func parseCursor(cursor string) (ListPosition, error) {
	at, id, _ := strings.Cut(cursor, ".")
	micro, err1 := strconv.ParseInt(at, 10, 64)
	name, err2 := uuid.Parse(id)
	p := ListPosition{time.UnixMicro(micro).UTC(), JobID{name}}
	if errors.Join(err1, err2) != nil || p.cursor() != cursor {
		var bad healthlab.Problems
		bad.Add("cursor", "must be the next_cursor of an earlier page", "next_cursor")
		return ListPosition{}, bad.Err()
	}
	return p, nil
}

func (j *Job) summary() JobSummary {
	s := JobSummary{
		ID: j.ID, UserID: j.User, Status: j.Status, NeedsHumanReview: j.NeedsHumanReview, IsReviewed: j.Review != nil, Pages: j.Pages,
		FailureReason: j.Published().FailureReason, CreatedAt: healthlab.At(j.CreatedAt), UpdatedAt: healthlab.At(j.UpdatedAt),
	}
	if j.Review != nil {
		s.ReviewedBy, s.ReviewedAt = &j.Review.By, ptr(healthlab.At(j.Review.At))
	}
	return s
}

// Jobs lists the jobs of a team for reviewers. It returns Invalid for an invalid cursor.
func (s *Service) Jobs(ctx context.Context, team healthlab.TeamID, q JobsQuery) (JobPage, error) {
	if q.Size <= 0 {
		q.Size = 50
	}
	list := Query{Team: team, User: q.User, Status: q.Status, Size: q.Size + 1}
	if q.Cursor != "" {
		var err error
		if list.After, err = parseCursor(q.Cursor); err != nil {
			return JobPage{}, err
		}
	}
	jobs, err := s.store.List(ctx, list)
	if err != nil {
		return JobPage{}, fmt.Errorf("list parsing jobs: %w", err)
	}
	page := JobPage{Jobs: []JobSummary{}}
	if len(jobs) > q.Size {
		jobs = jobs[:q.Size]
		page.Next = jobs[q.Size-1].place().cursor()
	}
	for i := range jobs {
		page.Jobs = append(page.Jobs, jobs[i].summary())
	}
	return page, nil
}

// JobReview returns a job with its draft. It returns NotFound with [RuleJobNotFound] if the team has no such
// job.
func (s *Service) JobReview(ctx context.Context, team healthlab.TeamID, id JobID) (JobReview, error) {
	j, err := s.job(ctx, team, id)
	if err != nil {
		return JobReview{}, fmt.Errorf("read parsing job: %w", err)
	}
	out := JobReview{JobSummary: j.summary(), Draft: j.Draft, Corrections: []Correction{}, Data: j.Published().Data}
	if j.Review != nil && j.Review.Corrections != nil {
		out.Corrections = j.Review.Corrections
	}
	return out, nil
}

func (s *Service) job(ctx context.Context, team healthlab.TeamID, id JobID) (Job, error) {
	j, err := s.store.Get(ctx, team, id)
	if errors.Is(err, healthlab.NotFound) {
		return Job{}, noJob(id)
	}
	return j, err
}

func noJob(id JobID) error {
	return rule(healthlab.NotFound, RuleJobNotFound, "parsing job "+id.String()+" not found")
}

// MaxPagePixels is the greatest number of pixels of a page's picture.
const MaxPagePixels = 2_000_000

// PagePNG returns the picture of a page of a job, counted from 1, as PNG of at most
// [MaxPagePixels]. NotFound with [RuleJobNotFound] or [RulePageNotFound], also once the files
// are deleted; Unimplemented with [RulePageNotDrawn] without a [Renderer] for the file.
func (s *Service) PagePNG(ctx context.Context, team healthlab.TeamID, id JobID, page int) ([]byte, error) {
	j, err := s.job(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("draw page: %w", err)
	}
	if len(j.Files) == 0 {
		return nil, rule(healthlab.NotFound, RulePageNotFound, "the files of the parsing job were deleted when their retention ended")
	}
	if s.opts.Renderer == nil {
		return nil, errNotDrawn("the server has no renderer for the pages of lab reports")
	}
	// Each of several files is a picture of one page.
	file, inFile := 0, page
	if len(j.Files) > 1 {
		file, inFile = page-1, 1
	}
	missing := rule(healthlab.NotFound, RulePageNotFound, fmt.Sprintf("page %d of the parsing job not found", page))
	if page < 1 || file >= len(j.Files) {
		return nil, missing
	}
	data, err := s.load(ctx, &j, j.Files[file])
	if err != nil {
		return nil, fmt.Errorf("draw page: %w", err)
	}
	img, err := s.opts.Renderer.RenderPage(ctx, File{Type: j.Files[file].Type, Data: data}, inFile, MaxPagePixels)
	switch {
	case errors.Is(err, healthlab.NotFound):
		return nil, missing
	case errors.Is(err, healthlab.Unimplemented), errors.Is(err, healthlab.Invalid), errors.Is(err, healthlab.Exhausted):
		return nil, errNotDrawn("the server cannot draw this page of a file of type " + j.Files[file].Type)
	case err != nil:
		return nil, fmt.Errorf("draw page: %w", err)
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(&out, img); err != nil {
		return nil, fmt.Errorf("draw page: %w", err)
	}
	return out.Bytes(), nil
}

func errNotDrawn(msg string) error { return rule(healthlab.Unimplemented, RulePageNotDrawn, msg) }

// Approve completes a job with the corrected draft; see [Reader.Correct]. The draft itself stays unchanged. by
// is the name of the reviewer. Invalid if a correction does not fit the draft or no result is left, Precondition
// with [RuleJobNotInReview] if the job does not wait for review.
func (s *Service) Approve(ctx context.Context, team healthlab.TeamID, id JobID, by string, corrections []Correction) (PublishedJob, error) {
	if err := checkReviewer(by).Err(); err != nil {
		return PublishedJob{}, err
	}
	return s.decide(ctx, team, id, Approved, func(j *Job) (Review, error) {
		r := Review{By: by, Approved: true}
		if len(corrections) == 0 {
			return r, nil
		}
		data, err := s.reader.Correct(*j.Draft, corrections)
		if err == nil && len(data.Results) == 0 {
			var p healthlab.Problems
			p.Add("too_short", "must leave at least one result; reject a job whose report has none", "corrections")
			err = p.Err()
		}
		r.Corrections, r.Data = corrections, &data
		return r, err
	})
}

// Reject fails a job with a reason. The errors are those of Approve.
func (s *Service) Reject(ctx context.Context, team healthlab.TeamID, id JobID, by string, reason FailureReason) (PublishedJob, error) {
	p := checkReviewer(by)
	if all := []FailureReason{InvalidInput, LowQuality, NotEnglish, TooManyPages, ProcessingError}; !slices.Contains(all, reason) {
		p.Add("enum", nearest.Allowed(reason, all, nearest.Contract), "failure_reason")
	}
	if err := p.Err(); err != nil {
		return PublishedJob{}, err
	}
	return s.decide(ctx, team, id, Rejected, func(*Job) (Review, error) { return Review{By: by, Reason: reason}, nil })
}

func checkReviewer(by string) (p healthlab.Problems) {
	const most = 200
	switch {
	case strings.TrimSpace(by) == "":
		p.Add("missing", "must name the reviewer", "reviewed_by")
	case utf8.RuneCountInString(by) > most:
		p.Add("too_long", fmt.Sprintf("must have at most %d characters", most), "reviewed_by")
	case !plainText(by):
		p.Add("text", "must be UTF-8 without control characters", "reviewed_by")
	}
	return p
}

// decide applies the trigger on to a job in review, and stores the decision that review returns for the job. An error
// of review is returned, and nothing is stored.
func (s *Service) decide(ctx context.Context, team healthlab.TeamID, id JobID, on Trigger, review func(*Job) (Review, error)) (PublishedJob, error) {
	at, event := s.now(), s.opts.NewID()
	j, err := s.job(ctx, team, id) // the job of a deleted user is not found
	if err == nil {
		j, err = s.store.Update(ctx, team, id, func(j *Job) ([]healthlab.Event, error) {
			if err := j.move(on, at); err != nil {
				return nil, err
			}
			r, err := review(j)
			if err != nil {
				return nil, err
			}
			r.At = at
			j.Review, j.FailureReason = &r, r.Reason
			j.DueAt = at.Add(s.opts.Retention)
			e, err := j.event(EventJobUpdated, event, j.UpdatedAt)
			return []healthlab.Event{e}, err
		})
	}
	var wrong *TransitionError
	switch {
	case errors.As(err, &wrong):
		return PublishedJob{}, rule(healthlab.Precondition, RuleJobNotInReview, fmt.Sprintf("the parsing job is %s; only a job in pending_review can be reviewed", wrong.From))
	case errors.Is(err, healthlab.NotFound):
		return PublishedJob{}, noJob(id)
	case err != nil:
		return PublishedJob{}, fmt.Errorf("review parsing job: %w", err)
	}
	return j.Published(), nil
}

// Examples calls each with every correction of a team's reviews, newest job first, and stops at its first error.
// Corrections of erased users are deleted with their jobs.
func (s *Service) Examples(ctx context.Context, team healthlab.TeamID, each func(TrainingExample) error) error {
	q := Query{Team: team, Corrected: true, Size: 100}
	for {
		jobs, err := s.store.List(ctx, q)
		if err != nil {
			return fmt.Errorf("list corrections: %w", err)
		}
		for i := range jobs {
			for _, c := range jobs[i].Review.Corrections {
				if err := each(jobs[i].example(c)); err != nil {
					return err
				}
			}
		}
		if len(jobs) < q.Size {
			return nil
		}
		q.After = jobs[len(jobs)-1].place()
	}
}

// example returns the training example of a correction, with the original text and its confidence.
func (j *Job) example(c Correction) TrainingExample {
	e := TrainingExample{JobID: j.ID, UserID: j.User, ReviewedBy: j.Review.By, ReviewedAt: healthlab.At(j.Review.At), Correction: c}
	evidence := j.Draft.Metadata.Evidence
	if c.Result != nil && c.Action != AddResult {
		e.Draft = &j.Draft.Results[*c.Result]
		evidence = e.Draft.Evidence
	}
	if c.Action != ChangeField {
		return e
	}
	if at, ok := evidence[c.Field]; ok {
		e.Reading = &at
	}
	switch {
	case e.Draft != nil:
		e.Read = e.Draft.text(c.Field)
	case c.Field == "gender":
		e.Read = &j.Draft.Metadata.Gender
	default:
		e.Read = *j.Draft.Metadata.metadataField(c.Field)
	}
	return e
}

// text returns a field of the result by its JSON name; nil if it was not read.
func (res *Result) text(field string) *string {
	switch field {
	case fieldName:
		return &res.TestName
	case fieldValue:
		return &res.Value
	case fieldUnits:
		return res.Units
	case fieldRange:
		return res.ReferenceRange
	case fieldPanel:
		return res.SourcePanelName
	case fieldSpecimen:
		return ptr(string(res.SampleType))
	case fieldMeans:
		return (*string)(res.Interpretation)
	}
	if len(res.LoincMatches) == 0 {
		return nil
	}
	return &res.LoincMatches[0].LoincCode
}
