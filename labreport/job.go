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

// JobID is the id of a parsing job.
type JobID struct{ uuid.UUID }

// Status is the status of a job, as the HTTP API spells it. Clients must accept further ones.
type Status string

// Statuses, in the order of a job's life.
const (
	// UploadPending: the job is stored, and its files are being stored.
	UploadPending Status = "upload_pending"
	// Started: the files are stored, and the report is being read.
	Started Status = "started"
	// PendingReview: the report is read, and a person must review the draft.
	PendingReview Status = "pending_review"
	// Completed is final: the data is available.
	Completed Status = "completed"
	// Failed is final: the reason is set.
	Failed Status = "failed"
)

// Trigger is an event that changes the status of a job.
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

// Lifecycle returns the transitions of a job, for documentation and diagrams.
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

// TransitionError reports that a trigger is not allowed in the job's status. It unwraps to
// [healthlab.Precondition].
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

// PublishedJob is a job as HTTP responses and events contain it.
type PublishedJob struct {
	healthlab.Private

	ID JobID `json:"id"`
	// JobID is the same as ID.
	JobID  JobID  `json:"job_id"`
	Status Status `json:"status"`
	// FailureReason is not null only if the job has failed. Clients must accept null for a failed job, too.
	FailureReason *FailureReason `json:"failure_reason"`
	// Data is not null only if the job is completed.
	Data *Data `json:"data"`
	// NeedsHumanReview is the value of the request, or true if a page could not be read. IsReviewed is true after a
	// person has approved or rejected the draft.
	NeedsHumanReview bool `json:"needs_human_review"`
	IsReviewed       bool `json:"is_reviewed"`
	// Pages are the pages of all files in order; empty until the files are read.
	Pages []PublishedPage `json:"pages"`
	// DataOmitted is present and true in an event whose data was too large; [Service.Get] returns the data.
	DataOmitted bool `json:"data_omitted,omitzero"`
}

// PageStatus is whether a page was read, as the HTTP API spells it. Clients must accept further ones.
type PageStatus string

// Page statuses.
const (
	// PageRead is a page whose words were read, or a blank one.
	PageRead PageStatus = "read"
	// PageNotRead is a page with content that could not be read. The data has no result from this page.
	PageNotRead PageStatus = "not_read"
)

// PublishedPage is a page of a job, counted from 1 over all files.
type PublishedPage struct {
	Number int        `json:"number"`
	Status PageStatus `json:"status"`
}

// Job is one report in its stored form.
type Job struct {
	healthlab.Private

	ID   JobID
	Team healthlab.TeamID
	User healthlab.UserID
	// Revision increases by one with every write; the first is 1. The Store sets it.
	Revision         int64
	Status           Status
	FailureReason    FailureReason
	NeedsHumanReview bool
	Files            []StoredFile
	// Pages is the number of pages of all files; 0 until they are read.
	Pages int
	// UnreadPages are the numbers of the pages that could not be read, ascending.
	UnreadPages []int
	// Draft is the extracted data. Later steps do not change it.
	Draft *Data
	// Review is a person's decision about the draft; nil before.
	Review *Review
	// Tries is the number of failed attempts of the current step.
	Tries int
	// DueAt is when background work continues with the job: storing files, reading, or at the end deleting its
	// files. Zero means that no work is left, or that a person must act. [Store.Claim] compares it with the
	// store's clock and moves it to the end of the lease. Other values are set by the clock of the process.
	DueAt time.Time
	// StartedAt is when reading began; zero before.
	StartedAt time.Time
	CreatedAt time.Time
	UpdatedAt time.Time
}

// StoredFile is one file of a job. A [BlobStore] keeps it until the retention ends.
type StoredFile struct {
	// Key is the key of the file in the BlobStore.
	Key  string
	Type string
	Size int64
}

// Review is a person's decision about the draft of a job.
type Review struct {
	healthlab.Private

	// By is the name of the reviewer, as the host gave it.
	By string
	At time.Time
	// Approved reports whether the reviewer accepted the draft. Data is the draft with the corrections; nil without
	// corrections.
	Approved    bool
	Corrections []Correction
	Data        *Data
	// Reason is the reason of a rejection.
	Reason FailureReason
}

// LogValue contains the ids and the status, and nothing of the content.
func (j Job) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", j.ID.String()), slog.String("team", j.Team.String()), slog.String("status", string(j.Status)), slog.Int("files", len(j.Files)))
}

// Published returns the job as HTTP responses and events contain it, with data only if it is completed.
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

func (j *Job) corrected() bool { return j.Review != nil && len(j.Review.Corrections) > 0 }

// move changes the status by a trigger, at the time at, and sets Tries to 0. It returns a [TransitionError] if the
// status does not allow the trigger.
func (j *Job) move(on Trigger, at time.Time) error {
	to, ok := lifecycle.Next(variant(j.NeedsHumanReview), j.Status, on, struct{}{})
	if !ok {
		return &TransitionError{Job: j.ID, From: j.Status, On: on}
	}
	j.Status, j.UpdatedAt, j.Tries = to, at, 0
	return nil
}

// Event types of this package. The key of an event is the job's id.
const (
	EventJobCreated = "lab_report.parsing_job.created"
	EventJobUpdated = "lab_report.parsing_job.updated"
)

// EventTypes lists the event types that this package sends.
func EventTypes() []healthlab.EventType {
	return []healthlab.EventType{
		{Name: EventJobCreated, Mode: healthlab.Ordered, Data: PublishedJob{},
			Doc: "The files of a parsing job are staged and reading begins, or staging has failed."},
		{Name: EventJobUpdated, Mode: healthlab.Ordered, Data: PublishedJob{},
			Doc: "A parsing job waits for review, is completed, or has failed."},
	}
}

// eventLimit is the largest job in an event, in bytes; a larger one is sent without its data. It leaves room for
// the envelope of a message.
const eventLimit = 1_000_000

// event returns an event with the current state of the job.
func (j *Job) event(name string, id uuid.UUID, at time.Time) (healthlab.Event, error) {
	p := j.Published()
	data, err := json.Marshal(p)
	if err == nil && len(data) > eventLimit {
		p.Data, p.DataOmitted = nil, true
		data, err = json.Marshal(p)
	}
	if err != nil {
		return healthlab.Event{}, fmt.Errorf("encode event of parsing job: %w", err)
	}
	return healthlab.Event{ID: id, Type: name, Team: j.Team, User: j.User, Key: j.ID.String(), At: at, Data: data}, nil
}
