package labreport

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/fsm"
)

// JobID names a parsing job.
type JobID struct{ uuid.UUID }

// Status is where a job is, as published. Clients accept further ones.
type Status string

// Statuses, in the order of a job's life.
const (
	// UploadPending: the job is stored, its files are being staged.
	UploadPending Status = "upload_pending"
	// Started: the files are staged, reading runs.
	Started Status = "started"
	// PendingReview: reading is done, a person looks at the draft.
	PendingReview Status = "pending_review"
	// Completed is final: the data is there.
	Completed Status = "completed"
	// Failed is final: the reason is set.
	Failed Status = "failed"
)

// Trigger is something that happens to a job.
type Trigger string

// Triggers.
const (
	Staged        Trigger = "staged"
	StagingFailed Trigger = "staging_failed"
	Read          Trigger = "read"
	ReadInPart    Trigger = "read_in_part"
	ReadingFailed Trigger = "reading_failed"
	Approved      Trigger = "approved"
	Rejected      Trigger = "rejected"
)

// variant is whether a person reviews the job.
type variant bool

var lifecycle = fsm.Must(fsm.Table[Status, Trigger, variant, struct{}]{
	Initial:  UploadPending,
	Variants: []variant{false, true},
	Final:    []Status{Completed, Failed},
	Rows: []fsm.Row[Status, Trigger, variant, struct{}]{
		{From: UploadPending, On: Staged, To: Started},
		{From: UploadPending, On: StagingFailed, To: Failed},
		{From: Started, On: Read, To: Completed, Variants: []variant{false}},
		{From: Started, On: Read, To: PendingReview, Variants: []variant{true}},
		{From: Started, On: ReadInPart, To: PendingReview},
		{From: Started, On: ReadingFailed, To: Failed},
		{From: PendingReview, On: Approved, To: Completed},
		{From: PendingReview, On: Rejected, To: Failed},
	},
})

// Lifecycle returns the transitions of a job, for documents and drawings.
func Lifecycle() []Transition {
	var out []Transition
	for _, r := range lifecycle.Rows() {
		out = append(out, Transition{r.From, r.On, r.To})
	}
	return out
}

// Transition is one row of the lifecycle.
type Transition struct {
	From Status
	On   Trigger
	To   Status
}

// TransitionError says that a trigger makes no sense in the job's status. It unwraps
// to [healthlab.Precondition].
type TransitionError struct {
	Job  JobID
	From Status
	On   Trigger
}

// Error names the job's status and the trigger.
func (e *TransitionError) Error() string {
	return fmt.Sprintf("job is %s: %s makes no sense now", e.From, e.On)
}

// Unwrap returns [healthlab.Precondition].
func (e *TransitionError) Unwrap() error { return healthlab.Precondition }

// PublishedJob is a job as answers and events show it.
type PublishedJob struct {
	healthlab.Private

	ID JobID `json:"id"`
	// JobID is the same as ID.
	JobID  JobID  `json:"job_id"`
	Status Status `json:"status"`
	// FailureReason is not null only when the job has failed. Clients accept null
	// there too.
	FailureReason *FailureReason `json:"failure_reason"`
	// Data is not null only when the job is completed.
	Data *Data `json:"data"`
	// NeedsHumanReview is as requested, and true if a page was not read; IsReviewed is
	// true once that review is done.
	NeedsHumanReview bool `json:"needs_human_review"`
	IsReviewed       bool `json:"is_reviewed"`
	// Pages are the pages of all files in order; empty until the report is read.
	Pages []PublishedPage `json:"pages"`
	// DataOmitted is there, and true, in an event whose data was too large to send;
	// it is read with get.
	DataOmitted bool `json:"data_omitted,omitzero"`
}

// PageStatus says whether a page was read, as published. Clients accept further ones.
type PageStatus string

// Page statuses.
const (
	// PageRead is a page whose words were read, or a blank one.
	PageRead PageStatus = "read"
	// PageNotRead is a page with content that could not be read. No result is from it.
	PageNotRead PageStatus = "not_read"
)

// PublishedPage is a page of a job, counted from 1 over all files.
type PublishedPage struct {
	Number int        `json:"number"`
	Status PageStatus `json:"status"`
}

// Job is one report on its way, as a Store keeps it.
type Job struct {
	healthlab.Private

	ID   JobID
	Team healthlab.TeamID
	User healthlab.UserID
	// Revision grows by one with every write; the first is 1. The Store sets it.
	Revision         int64
	Status           Status
	FailureReason    FailureReason
	NeedsHumanReview bool
	Files            []StoredFile
	// Pages is how many pages the files have; 0 until they are read.
	Pages int
	// UnreadPages are the numbers of the pages that could not be read, ascending.
	UnreadPages []int
	// Draft is what was read. No later step changes it.
	Draft *Data
	// Review is what a person decided about the draft; nil before.
	Review *Review
	// Tries counts failed attempts at the present step.
	Tries int
	// DueAt is when background work goes on with the job: staging, reading, or at
	// the end the deletion of its files. Zero means that nothing is left to do, or
	// that a person must act. [Store.Claim] compares it with the store's clock and
	// moves it to the end of the lease. Every other DueAt is by the clock of the process
	// that sets it: a process whose clock is slow starts and retries
	// earlier, and one whose clock is fast later, by the difference.
	DueAt time.Time
	// StartedAt is when reading began; zero before.
	StartedAt time.Time
	CreatedAt time.Time
	UpdatedAt time.Time
}

// StoredFile is one file of a job, kept in a [BlobStore] until retention ends.
type StoredFile struct {
	// Key is its name in the BlobStore.
	Key  string
	Type string
	Size int64
}

// Review is a person's decision.
type Review struct {
	healthlab.Private

	// By names the reviewer in the host's own words.
	By string
	At time.Time
	// Approved, with the draft as Corrections change it in Data; nil without corrections.
	Approved    bool
	Corrections []Correction
	Data        *Data
	// Reason of a rejection.
	Reason FailureReason
}

// LogValue shows where the job is, and nothing of what it holds.
func (j Job) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", j.ID.String()), slog.String("team", j.Team.String()), slog.String("status", string(j.Status)), slog.Int("files", len(j.Files)))
}

// Published returns the job as answers show it: data only once it is completed.
func (j *Job) Published() PublishedJob {
	p := PublishedJob{ID: j.ID, JobID: j.ID, Status: j.Status, NeedsHumanReview: j.NeedsHumanReview, IsReviewed: j.Review != nil,
		Pages: make([]PublishedPage, j.Pages)}
	for i := range p.Pages {
		p.Pages[i] = PublishedPage{Number: i + 1, Status: PageRead}
		if slices.Contains(j.UnreadPages, i+1) {
			p.Pages[i].Status = PageNotRead
		}
	}
	if j.Status == Failed && j.FailureReason != "" {
		p.FailureReason = ptr(j.FailureReason)
	}
	if j.Status == Completed {
		p.Data = j.Draft
		if j.Review != nil && j.Review.Data != nil {
			p.Data = j.Review.Data
		}
	}
	return p
}

// Corrected reports whether the job's review has corrections.
func (j *Job) Corrected() bool { return j.Review != nil && len(j.Review.Corrections) > 0 }

// move takes the job along its lifecycle.
func (j *Job) move(on Trigger, at time.Time) error {
	to, ok := lifecycle.Next(variant(j.NeedsHumanReview), j.Status, on, struct{}{})
	if !ok {
		return &TransitionError{Job: j.ID, From: j.Status, On: on}
	}
	j.Status, j.UpdatedAt, j.Tries = to, at, 0
	return nil
}

// Names of the events that this package emits. Their key is the job's id.
const (
	EventJobCreated = "lab_report.parsing_job.created"
	EventJobUpdated = "lab_report.parsing_job.updated"
)

// EventTypes lists the events that this package emits.
func EventTypes() []healthlab.EventType {
	return []healthlab.EventType{
		{Name: EventJobCreated, Mode: healthlab.Ordered, Data: PublishedJob{},
			Doc: "The files of a parsing job are staged and reading begins, or staging has failed."},
		{Name: EventJobUpdated, Mode: healthlab.Ordered, Data: PublishedJob{},
			Doc: "A parsing job waits for review, is completed, or has failed."},
	}
}

// eventLimit is the most bytes of a job in an event; a larger one goes without its
// data. A message has room for it and its envelope.
const eventLimit = 1_000_000

// event makes an event of the job as it is now.
func (j *Job) event(name string, id uuid.UUID, at time.Time) (healthlab.Event, error) {
	p := j.Published()
	data, err := json.Marshal(p)
	if err == nil && len(data) > eventLimit {
		p.Data, p.DataOmitted = nil, true
		data, err = json.Marshal(p)
	}
	if err != nil {
		return healthlab.Event{}, fmt.Errorf("job event: %w", err)
	}
	return healthlab.Event{ID: id, Type: name, Team: j.Team, User: j.User, Key: j.ID.String(), At: at, Data: data}, nil
}
