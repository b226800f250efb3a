package labreport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
)

// Limits of uploads.
const (
	// MaxFileBytes is the greatest total size of a job's files: 10 MiB.
	MaxFileBytes = 10 << 20
	// MaxFiles is the greatest number of files of a job.
	MaxFiles = 8
	// MaxPages is the greatest number of pages of a PDF.
	MaxPages = 30
)

// Settings are the features that a team has enabled.
type Settings struct {
	// Enabled allows the team to create jobs.
	Enabled bool
	// HumanReview allows the team to request a person's review.
	HumanReview bool
}

// attemptTimeout is how long one call of [Service.Step] may take.
const attemptTimeout = 4 * time.Minute

// Options adjusts a Service. Environment is required; every other field that is zero means its default.
type Options struct {
	// Environment is sandbox, where the quota holds, or production. Required.
	Environment healthlab.Environment
	// Settings returns the enabled features of a team. Default: all.
	Settings func(ctx context.Context, team healthlab.TeamID) (Settings, error)
	// SandboxQuota is how many jobs that have not failed a team may have in a
	// sandbox. Default 300.
	SandboxQuota int
	// CreatesPerTeam is how many create requests of a team may be in progress in
	// this process. Default 10.
	CreatesPerTeam int
	// Retention is how long files are kept after a job's final state. Default 30
	// days.
	Retention time.Duration
	// Deadline is how long reading a job may take over all attempts, after which the job fails. Default 15 min.
	Deadline time.Duration
	// Tries is the number of attempts of each step of a job, such as reading. Default 3.
	Tries int
	// Workers is the number of jobs that are read at a time. Default 1.
	Workers int
	// Reader extracts data from pages. Default: one with the catalogue of loinc.Embedded.
	Reader *Reader
	// Rows extracts rows from words. Default: the reader.
	Rows RowExtractor
	// Renderer draws the pages of a job for reviewers. Default: none; pictures of pages are then
	// [healthlab.Unimplemented].
	Renderer Renderer
	// Idle is the pause between queries for due jobs while none is due. Default 1 s.
	Idle time.Duration
	// Accessed is called before each attempt to read the files of a job. After an error nothing is read, the
	// attempt does not count, and the job is retried after its lease. Nil records nothing.
	Accessed func(ctx context.Context, j Job) error
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids. Default: UUID version 7.
	NewID func() uuid.UUID
	// Log receives failures of background work. Default: slog.Default().
	Log *slog.Logger
}

func (o *Options) defaults() {
	if o.Reader == nil {
		o.Reader = NewReader(nil)
	}
	if o.Accessed == nil {
		o.Accessed = func(context.Context, Job) error { return nil }
	}
	if o.Settings == nil {
		o.Settings = func(context.Context, healthlab.TeamID) (Settings, error) { return Settings{true, true}, nil }
	}
	positive := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	positive(&o.SandboxQuota, 300)
	positive(&o.CreatesPerTeam, 10)
	positive(&o.Tries, 3)
	positive(&o.Workers, 1)
	long := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	long(&o.Retention, 30*24*time.Hour)
	long(&o.Deadline, 15*time.Minute)
	long(&o.Idle, time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() uuid.UUID { return uuid.Must(uuid.NewV7()) }
	}
	o.Log = cmp.Or(o.Log, slog.Default())
}

// Service accepts reports, reads them in the background, and lets people review them. It is safe for concurrent
// use.
type Service struct {
	store   Store
	blobs   BlobStore
	users   Users
	extract TextExtractor
	reader  *Reader
	opts    Options

	mu       sync.Mutex
	creating map[healthlab.TeamID]int
}

// New returns a Service. Everything except opts is required, and opts must have an Environment. It returns
// Invalid if an argument is missing.
func New(store Store, blobs BlobStore, users Users, extract TextExtractor, opts *Options) (*Service, error) {
	if store == nil || blobs == nil || users == nil || extract == nil {
		return nil, fmt.Errorf("%w: labreport.New: store, blobs, users and extract must not be nil", healthlab.Invalid)
	}
	s := &Service{store: store, blobs: blobs, users: users, extract: extract, creating: map[healthlab.TeamID]int{}}
	if opts != nil {
		s.opts = *opts
	}
	if err := s.opts.Environment.Check(); err != nil {
		return nil, err
	}
	s.opts.defaults()
	s.reader = s.opts.Reader
	return s, nil
}

func (s *Service) now() time.Time { return healthlab.At(s.opts.Now()).Time }

// Upload is a request to read a report.
type Upload struct {
	User healthlab.UserID
	// Files is one PDF or picture, or 2 to 8 pictures of one page each. For an empty Type or
	// application/octet-stream the content decides.
	Files            []File
	NeedsHumanReview bool
}

func rule(kind healthlab.ErrorKind, name, msg string) error {
	return &healthlab.RuleError{Kind: kind, Type: name, Msg: msg}
}

// Open begins an upload before its body is read. It returns Forbidden with [RuleFeatureNotEnabled] if the team
// does not have the feature, and Exhausted with [RuleTooManyRequests] if the team has too many concurrent
// uploads. Close the result.
func (s *Service) Open(ctx context.Context, team healthlab.TeamID) (*Intake, error) {
	set, err := s.opts.Settings(ctx, team)
	if err != nil {
		return nil, fmt.Errorf("create parsing job: %w", err)
	}
	if !set.Enabled {
		return nil, rule(healthlab.Forbidden, RuleFeatureNotEnabled, "lab report parsing is not enabled for the team")
	}
	if err := s.reserveUpload(team); err != nil {
		return nil, err
	}
	return &Intake{s: s, team: team, settings: set}, nil
}

// Intake is one running upload. It must not be used concurrently.
type Intake struct {
	s        *Service
	team     healthlab.TeamID
	settings Settings
	closed   bool
}

// Close ends the upload. Further calls do nothing.
func (i *Intake) Close() {
	if !i.closed {
		i.closed = true
		i.s.releaseUpload(i.team)
	}
}

// Create accepts a report; see [Intake.Create].
func (s *Service) Create(ctx context.Context, team healthlab.TeamID, u Upload) (PublishedJob, error) {
	i, err := s.Open(ctx, team)
	if err != nil {
		return PublishedJob{}, err
	}
	defer i.Close()
	return i.Create(ctx, u)
}

// Create stores a report and its files, and returns before the report is read; events and [Service.Get] have the
// outcome. The same report twice makes two jobs. The error of the first failed check is a [healthlab.RuleError], or a
// [healthlab.InvalidError] without a file.
func (i *Intake) Create(ctx context.Context, u Upload) (PublishedJob, error) {
	s := i.s
	has, err := s.users.HasUser(ctx, i.team, u.User)
	switch {
	case err != nil:
		return PublishedJob{}, fmt.Errorf("create parsing job: %w", err)
	case !has:
		return PublishedJob{}, rule(healthlab.NotFound, RuleUserNotFound, "the team has no such user")
	case u.NeedsHumanReview && !i.settings.HumanReview:
		return PublishedJob{}, rule(healthlab.Precondition, RuleHumanReviewNotEnabled, "human review is not enabled for the team")
	}
	files, err := CheckFiles(u.Files)
	if err != nil {
		return PublishedJob{}, err
	}
	if err := CheckContent(ctx, s.extract, files); err != nil {
		return PublishedJob{}, err
	}
	return s.insert(ctx, i.team, u, files)
}

// insert stores the job and then its files, so that no file exists without a job, even after a crash. Background
// work waits for the files, or fails the job if they are missing.
func (s *Service) insert(ctx context.Context, team healthlab.TeamID, u Upload, files []File) (PublishedJob, error) {
	at := s.now()
	j := Job{ID: JobID{s.opts.NewID()}, Team: team, User: u.User, Revision: 1, Status: lifecycle.Initial(), NeedsHumanReview: u.NeedsHumanReview,
		CreatedAt: at, UpdatedAt: at, DueAt: at.Add(keepTimeout)}
	for i, f := range files {
		j.Files = append(j.Files, StoredFile{Key: "lab-reports/" + team.String() + "/" + j.ID.String() + "/" + strconv.Itoa(i), Type: f.Type, Size: int64(len(f.Data))})
	}
	quota := 0
	if s.opts.Environment == healthlab.Sandbox {
		quota = s.opts.SandboxQuota
	}
	if err := s.store.Insert(ctx, j, quota, nil); err != nil {
		if quota > 0 && errors.Is(err, healthlab.Exhausted) {
			return PublishedJob{}, rule(healthlab.Forbidden, RuleSandboxQuotaReached,
				fmt.Sprintf("the team has reached the sandbox quota of %d parsing jobs that have not failed", quota))
		}
		return PublishedJob{}, fmt.Errorf("create parsing job: %w", err)
	}
	// The job is stored, so it is completed or failed even if the caller disconnects.
	var kept error
	for i, f := range files {
		if kept = s.storeFile(ctx, &j, j.Files[i].Key, f.Data); kept != nil {
			break
		}
	}
	after, stop := work.Grace(ctx, afterTimeout)
	defer stop()
	if kept != nil {
		return PublishedJob{}, errors.Join(fmt.Errorf("create parsing job: store file: %w", kept), s.fail(after, j, s.now(), ProcessingError))
	}
	_, err := s.store.Update(after, team, j.ID, func(j *Job) ([]healthlab.Event, error) {
		j.DueAt = at
		return nil, nil
	})
	if err != nil {
		s.opts.Log.Warn("parsing job begins late", "job", j.ID.String(), "kind", healthlab.KindOf(err).Error(), "cause", work.Cause(err))
	}
	return j.Published(), nil
}

// afterTimeout is how long the store may take to update a new job after the request has ended.
const afterTimeout = 3 * time.Second

// keepTimeout is how long storing the files of a job may take.
const keepTimeout = 2 * time.Minute

// storeFile writes a file of a job to the BlobStore under key.
func (s *Service) storeFile(ctx context.Context, j *Job, key string, data []byte) error {
	ctx, stop := context.WithTimeout(ctx, keepTimeout/MaxFiles)
	defer stop()
	err := s.blobs.Put(ctx, j.Team, j.User, key, bytes.NewReader(data))
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return unavailable(err)
}

// reserveUpload counts a new upload of the team. It returns Exhausted if the team has too many uploads in progress;
// otherwise the caller must call releaseUpload.
func (s *Service) reserveUpload(team healthlab.TeamID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.creating[team] >= s.opts.CreatesPerTeam {
		return rule(healthlab.Exhausted, RuleTooManyRequests,
			fmt.Sprintf("the team has %d uploads in progress, the highest allowed number; try again when one has ended", s.creating[team]))
	}
	s.creating[team]++
	return nil
}

func (s *Service) releaseUpload(team healthlab.TeamID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.creating[team]--; s.creating[team] == 0 {
		delete(s.creating, team)
	}
}

// undeclared is the media type of unknown content; declarable are the accepted declared types.
const undeclared = "application/octet-stream"

var declarable = []string{undeclared, "application/pdf", "image/jpeg", "image/jpg", "image/png"}

// CheckFiles checks number, size and type of uploaded files and returns them with the types of their content. It does
// not decode the files.
func CheckFiles(files []File) ([]File, error) {
	if len(files) == 0 {
		var p healthlab.Problems
		p.Add("missing", "at least one file is required", "file")
		return nil, p.Err()
	}
	if len(files) > MaxFiles {
		return nil, rule(healthlab.Precondition, RuleTooManyFiles, fmt.Sprintf("a job must have at most %d files; the upload has %d", MaxFiles, len(files)))
	}
	total := 0
	for i, f := range files {
		if len(f.Data) == 0 {
			return nil, rule(healthlab.Precondition, RuleEmptyFile, fmt.Sprintf("file %d is empty; it must be a PDF, a JPEG or a PNG", i+1))
		}
		total += len(f.Data)
	}
	if total > MaxFileBytes {
		return nil, rule(healthlab.Precondition, RuleUploadTooLarge, fmt.Sprintf("all files together must have at most %d MiB; the upload has %d bytes", MaxFileBytes>>20, total))
	}
	out := make([]File, len(files))
	for i, f := range files {
		out[i] = File{Type: sniff(f.Data), Data: f.Data}
		if out[i].Type == "" {
			return nil, rule(healthlab.Precondition, RuleUnsupportedFileType, fmt.Sprintf("file %d must be a PDF, a JPEG or a PNG", i+1))
		}
		if f.Type != "" && !slices.Contains(declarable, f.Type) {
			return nil, rule(healthlab.Precondition, RuleUnsupportedFileType,
				fmt.Sprintf("file %d: the Content-Type must be left out or be one of: %s", i+1, strings.Join(declarable, ", ")))
		}
	}
	for i, f := range files {
		if kind := strings.Replace(f.Type, "image/jpg", "image/jpeg", 1); kind != "" && kind != undeclared && kind != out[i].Type {
			return nil, rule(healthlab.Precondition, RuleContentTypeMismatch, fmt.Sprintf("file %d: the Content-Type is %s, but the content is %s", i+1, kind, out[i].Type))
		}
	}
	for i, f := range out {
		if len(out) > 1 && f.Type == "application/pdf" {
			return nil, rule(healthlab.Precondition, RulePDFInMultiFile,
				fmt.Sprintf("file %d is a PDF; a job must have one PDF, or 1 to %d pictures (JPEG or PNG)", i+1, MaxFiles))
		}
	}
	return out, nil
}

// CheckContent opens the files of [CheckFiles] and refuses those that x cannot read: a damaged PDF or picture, a
// PDF with a password or with more than [MaxPages] pages. Pictures pass if x has no OCR.
func CheckContent(ctx context.Context, x TextExtractor, files []File) error {
	for i, f := range files {
		pdf := f.Type == "application/pdf"
		pages, err := x.Check(ctx, f)
		switch {
		case err == nil:
		case errors.Is(err, healthlab.Unimplemented) && !pdf:
			return nil // without OCR the job fails later
		case pdf && errors.Is(err, ErrPassword):
			return rule(healthlab.Precondition, RuleUnreadablePDF, "the PDF needs a password; remove the password and upload it again")
		case errors.Is(err, healthlab.Invalid), errors.Is(err, healthlab.Exhausted):
			switch {
			case pdf:
				return rule(healthlab.Precondition, RuleUnreadablePDF, "the PDF is damaged or has no pages")
			case errors.Is(err, healthlab.Exhausted):
				return rule(healthlab.Precondition, RuleUndecodableImage, fmt.Sprintf("file %d has too many pixels; upload the picture with a lower resolution", i+1))
			}
			return rule(healthlab.Precondition, RuleUndecodableImage, fmt.Sprintf("file %d is damaged or truncated; upload the whole picture as JPEG or PNG", i+1))
		default:
			return fmt.Errorf("create parsing job: %w", err)
		}
		if pages > MaxPages {
			return rule(healthlab.Precondition, RuleTooManyPages, fmt.Sprintf("a PDF must have at most %d pages; the file has %d", MaxPages, pages))
		}
	}
	return nil
}

// Get returns one job. It returns NotFound with [RuleJobNotFound] if the team has no such job.
func (s *Service) Get(ctx context.Context, team healthlab.TeamID, id JobID) (PublishedJob, error) {
	j, err := s.job(ctx, team, id)
	if err != nil {
		return PublishedJob{}, fmt.Errorf("get parsing job: %w", err)
	}
	return j.Published(), nil
}

// FileTypes returns the media types of the stored files of a job, in their order; empty after the retention. It
// returns NotFound with [RuleJobNotFound] if the team has no such job.
func (s *Service) FileTypes(ctx context.Context, team healthlab.TeamID, id JobID) ([]string, error) {
	j, err := s.job(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("list files of parsing job: %w", err)
	}
	out := make([]string, len(j.Files))
	for i, f := range j.Files {
		out[i] = f.Type
	}
	return out, nil
}

// OpenFile returns the content of the nth file of a job, counted from 0; the caller closes it. It returns
// NotFound if there is no such job or file.
func (s *Service) OpenFile(ctx context.Context, team healthlab.TeamID, id JobID, n int) (io.ReadCloser, error) {
	j, err := s.job(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("open file of parsing job: %w", err)
	}
	if n < 0 || n >= len(j.Files) {
		return nil, fmt.Errorf("open file of parsing job: %w: file %d; the job has %d files, counted from 0", healthlab.NotFound, n, len(j.Files))
	}
	return s.blobs.Get(ctx, j.Team, j.User, j.Files[n].Key)
}

// Run stores, reads and deletes files in the background until ctx ends. Any number of processes may run it
// concurrently.
func (s *Service) Run(ctx context.Context) error {
	loop := work.Loop[Job]{
		Name: "lab reports", Workers: s.opts.Workers, Idle: s.opts.Idle, Log: s.opts.Log,
		Claim: func(ctx context.Context, n int) ([]Job, error) {
			return s.store.Claim(ctx, n, attemptTimeout+30*time.Second)
		},
		Do: s.Step,
	}
	if err := loop.Run(ctx); err != nil {
		return fmt.Errorf("run lab reports: %w", err)
	}
	return nil
}

// Step runs the next step of a job that [Store.Claim] returned. [Service.Run] calls it; a host with its own loop may
// call it too.
func (s *Service) Step(ctx context.Context, j Job) error {
	ctx, stop := context.WithTimeout(ctx, attemptTimeout)
	defer stop()
	switch j.Status {
	case UploadPending:
		return s.stage(ctx, j)
	case Started:
		return s.read(ctx, j)
	case Completed, Failed:
		return s.deleteFiles(ctx, j)
	}
	return nil
}

// stage checks that all files of a new job are stored completely, and starts the job. If they are not, it schedules a
// retry or, after the last attempt, fails the job.
func (s *Service) stage(ctx context.Context, j Job) error {
	var fault error
	for _, f := range j.Files {
		r, err := s.blobs.Get(ctx, j.Team, j.User, f.Key)
		if err != nil {
			fault = fmt.Errorf("read stored file: %w", err)
			break
		}
		n, err := io.Copy(io.Discard, io.LimitReader(r, f.Size+1))
		if err = errors.Join(err, r.Close()); err == nil && n != f.Size {
			err = errors.New("its size must be that of the uploaded one")
		}
		if err != nil {
			fault = fmt.Errorf("read stored file: %w", unavailable(err))
			break
		}
	}
	at := s.now()
	if fault != nil {
		return s.retry(ctx, j, at, fault)
	}
	return s.finish(ctx, j, at, Staged, func(j *Job) { j.DueAt, j.StartedAt = at, at }, EventJobCreated)
}

// read reads the report of a job, and completes the job, sends it to review, schedules a retry or fails it.
func (s *Service) read(ctx context.Context, j Job) error {
	if s.now().Sub(j.StartedAt) > s.opts.Deadline {
		return s.fail(ctx, j, s.now(), ProcessingError)
	}
	if err := s.opts.Accessed(ctx, j); err != nil {
		return fmt.Errorf("record access: %w", err)
	}
	var pages []Page
	for _, f := range j.Files {
		data, err := s.load(ctx, &j, f)
		if err == nil {
			err = s.extract.Extract(ctx, File{Type: f.Type, Data: data}, func(p Page) error {
				p.Number = len(pages) + 1
				pages = append(pages, p)
				if len(pages) > MaxPages {
					return rule(healthlab.Invalid, RuleTooManyPages, fmt.Sprintf("the report must have at most %d pages", MaxPages))
				}
				return nil
			})
		}
		if err != nil {
			reason, final := reasonFor(err, f.Type)
			if final {
				return s.fail(context.WithoutCancel(ctx), j, s.now(), reason)
			}
			return s.retry(context.WithoutCancel(ctx), j, s.now(), err)
		}
	}
	data, reason, err := s.understand(ctx, pages)
	if err != nil {
		return s.retry(context.WithoutCancel(ctx), j, s.now(), err)
	}
	at := s.now()
	if reason != "" {
		return s.fail(ctx, j, at, reason)
	}
	on, unread := Read, unreadPages(pages)
	if len(unread) > 0 {
		on = ReadInPart
	}
	return s.finish(ctx, j, at, on, func(j *Job) {
		j.Draft, j.Pages, j.UnreadPages = &data, len(pages), unread
		j.NeedsHumanReview = j.NeedsHumanReview || on == ReadInPart
		j.DueAt = time.Time{}
		if j.Status == Completed {
			j.DueAt = at.Add(s.opts.Retention)
		}
	}, EventJobUpdated)
}

// understand extracts the data from the words. A panic in it fails only this job.
func (s *Service) understand(ctx context.Context, pages []Page) (data Data, reason FailureReason, err error) {
	defer func() {
		if recover() != nil {
			s.opts.Log.Error("lab report reader panicked")
			data, reason, err = Data{}, ProcessingError, nil
		}
	}()
	if s.opts.Rows == nil {
		data, reason = s.reader.Read(pages)
		return data, reason, nil
	}
	raw, reason, err := s.opts.Rows.Rows(ctx, pages)
	if err != nil || reason != "" {
		return Data{}, reason, err
	}
	if data = s.reader.Complete(raw); len(data.Results) == 0 {
		reason = InvalidInput
	}
	return data, reason, nil
}

// reasonFor converts an error of the extractor to the reason for which the job fails. final reports whether a retry
// would not help.
func reasonFor(err error, fileType string) (reason FailureReason, final bool) {
	var broken *healthlab.RuleError
	switch {
	case errors.As(err, &broken) && broken.Type == RuleTooManyPages:
		return TooManyPages, true
	case errors.Is(err, healthlab.Unimplemented):
		return ProcessingError, true // there is no OCR
	case errors.Is(err, healthlab.Exhausted):
		return ProcessingError, true
	case errors.Is(err, healthlab.Invalid) && fileType != "application/pdf":
		return LowQuality, true
	case errors.Is(err, healthlab.Invalid):
		return InvalidInput, true
	}
	return ProcessingError, false
}

// load reads a stored file of a job.
func (s *Service) load(ctx context.Context, j *Job, f StoredFile) ([]byte, error) {
	r, err := s.blobs.Get(ctx, j.Team, j.User, f.Key)
	if err != nil {
		return nil, fmt.Errorf("load file: %w", unavailable(err))
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(io.LimitReader(r, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("load file: %w", unavailable(err))
	}
	return data, nil
}

func unavailable(err error) error { return fmt.Errorf("%w: %v", healthlab.Unavailable, err) }

// deleteFiles deletes the files of a job after its retention.
func (s *Service) deleteFiles(ctx context.Context, j Job) error {
	for _, f := range j.Files {
		if err := s.blobs.Delete(ctx, f.Key); err != nil {
			return fmt.Errorf("delete files: %w", err)
		}
	}
	_, err := s.store.Update(ctx, j.Team, j.ID, func(j *Job) ([]healthlab.Event, error) {
		j.Files, j.DueAt = nil, time.Time{}
		return nil, nil
	})
	if err != nil {
		return fmt.Errorf("delete files: %w", err)
	}
	return nil
}

// Forget deletes the files of a user's reports, before the user is erased. It may be called again after any
// error. Use it in the erasure of users.
func (s *Service) Forget(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
	q := Query{Team: team, User: user, Size: 100}
	for {
		jobs, err := s.store.List(ctx, q)
		if err != nil {
			return fmt.Errorf("forget lab reports: %w", err)
		}
		for _, j := range jobs {
			for _, f := range j.Files {
				if err := s.blobs.Delete(ctx, f.Key); err != nil {
					return fmt.Errorf("forget lab reports: %w", err)
				}
			}
		}
		if len(jobs) < q.Size {
			return nil
		}
		q.After = jobs[len(jobs)-1].place()
	}
}

// finish applies a trigger and edit to the stored job, and writes an event of each type in names, in one transaction.
// It does nothing if another process has already applied the trigger.
func (s *Service) finish(ctx context.Context, j Job, at time.Time, on Trigger, edit func(*Job), names ...string) error {
	ids := make([]uuid.UUID, len(names))
	for i := range ids {
		ids[i] = s.opts.NewID()
	}
	_, err := s.store.Update(ctx, j.Team, j.ID, func(j *Job) ([]healthlab.Event, error) {
		if err := j.move(on, at); err != nil {
			return nil, err
		}
		edit(j)
		var events []healthlab.Event
		for i, name := range names {
			e, err := j.event(name, ids[i], at)
			if err != nil {
				return nil, err
			}
			events = append(events, e)
		}
		return events, nil
	})
	var done *TransitionError
	if errors.As(err, &done) {
		return nil // another process has done the step
	}
	if err != nil {
		return fmt.Errorf("record parsing job: %w", err)
	}
	return nil
}

// fail sets the status Failed with a reason. If storing the files failed, it sends the created event as well as the
// updated event, so that a subscriber of either receives one.
func (s *Service) fail(ctx context.Context, j Job, at time.Time, reason FailureReason) error {
	on, names := ReadingFailed, []string{EventJobUpdated}
	if j.Status == UploadPending {
		on, names = StagingFailed, []string{EventJobCreated, EventJobUpdated}
	}
	return s.finish(ctx, j, at, on, func(j *Job) {
		j.FailureReason = reason
		j.DueAt = at.Add(s.opts.Retention)
	}, names...)
}

// retry logs and records an attempt that failed with cause, and schedules the next. After the last attempt it fails the
// job with ProcessingError.
func (s *Service) retry(ctx context.Context, j Job, at time.Time, cause error) error {
	s.opts.Log.WarnContext(ctx, "attempt to read a lab report failed", "job", j, "attempt", j.Tries+1, "attempts", s.opts.Tries,
		"kind", healthlab.KindOf(cause).Error(), "cause", work.Cause(cause))
	if j.Tries+1 >= s.opts.Tries {
		return s.fail(ctx, j, at, ProcessingError)
	}
	_, err := s.store.Update(ctx, j.Team, j.ID, func(j *Job) ([]healthlab.Event, error) {
		j.Tries++
		j.DueAt = at.Add(time.Duration(j.Tries) * 10 * time.Second)
		return nil, nil
	})
	if err != nil {
		return fmt.Errorf("record parsing job: %w", err)
	}
	return nil
}
