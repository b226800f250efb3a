package personexport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Options are the options of a Service. The zero value, and nil, mean the defaults.
type Options struct {
	// Keep is the time for which a completed or failed export is stored before it is deleted. Default 7 days.
	Keep time.Duration
	// Tries is the number of failed attempts at one file after which an export is given up. Default 5.
	Tries int
	// Workers is the number of exports that one process writes at the same time. Default 1.
	Workers int
	// Idle is the interval at which [Service.Run] looks for due exports while it has no work. Default 1 s.
	Idle time.Duration
	// Accessed is called before a process reads personal data for an export, once for each claim of the job, for
	// example to write an access log. If it fails, nothing is read, and the job is tried again after its lease.
	// Default: no call.
	Accessed func(ctx context.Context, j Job) error
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes the ids of exports. Default: UUID version 7.
	NewID func() uuid.UUID
	// Log receives the errors of [Service.Run]. Default: slog.Default().
	Log *slog.Logger
}

const (
	// maxPerUser is the highest number of exports of a user that are in progress or completed. Failed ones do not
	// count.
	maxPerUser = 3
	// fileTimeout is the time limit of writing one file. If a process crashes, another one continues its export
	// after this time and leaseMargin.
	fileTimeout = 10 * time.Minute
)

func (o *Options) defaults() {
	positive := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	positive(&o.Tries, 5)
	positive(&o.Workers, 1)
	long := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	long(&o.Keep, 7*24*time.Hour)
	long(&o.Idle, time.Second)
	if o.Accessed == nil {
		o.Accessed = func(context.Context, Job) error { return nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() uuid.UUID { return uuid.Must(uuid.NewV7()) }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
}

// Service starts exports of persons' data, writes their files in the background, and returns them. It is safe for
// concurrent use.
type Service struct {
	store   Store
	blobs   BlobStore
	users   Users
	sources map[string]Source
	folders []string
	opts    Options
	wake    chan struct{}
}

// New returns a Service. sources has the source of each folder of an export, by the folder's name. Invalid without
// a store, blobs, users or sources.
func New(store Store, blobs BlobStore, users Users, sources map[string]Source, opts *Options) (*Service, error) {
	if store == nil || blobs == nil || users == nil || len(sources) == 0 {
		return nil, fmt.Errorf("%w: personexport.New: a store, files, users and sources are required", healthlab.Invalid)
	}
	s := &Service{store: store, blobs: blobs, users: users, sources: sources, wake: make(chan struct{}, 1)}
	for folder := range sources {
		s.folders = append(s.folders, folder)
	}
	slices.Sort(s.folders)
	if opts != nil {
		s.opts = *opts
	}
	s.opts.defaults()
	return s, nil
}

func (s *Service) now() time.Time { return healthlab.At(s.opts.Now()).Time }

// Types of the RuleErrors of this package.
const (
	// RuleUserNotFound means that the team has no such user.
	RuleUserNotFound = "USER_NOT_FOUND"
	// RuleExportNotFound means that the user has no such export, or that it has expired.
	RuleExportNotFound = "EXPORT_NOT_FOUND"
	// RuleTooManyExports means that the user already has the highest allowed number of exports.
	RuleTooManyExports = "TOO_MANY_EXPORTS"
	// RuleNotCompleted means that the export has no ZIP file, because it is in progress or has failed.
	RuleNotCompleted = "EXPORT_NOT_COMPLETED"
)

// Start starts an export of a user's data; [Service.Run] writes it. It returns the RuleErrors [RuleUserNotFound]
// (NotFound), and [RuleTooManyExports] (Conflict) if the user has 3 exports that have not failed.
func (s *Service) Start(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (PublishedJob, error) {
	if err := s.check(ctx, team, user); err != nil {
		return PublishedJob{}, fmt.Errorf("start export: %w", err)
	}
	at := s.now()
	j := Job{ID: JobID{s.opts.NewID()}, Team: team, User: user, Revision: 1, Status: InProgress, CreatedAt: at, UpdatedAt: at, DueAt: at}
	if err := s.store.Insert(ctx, j, maxPerUser); err != nil {
		if healthlab.KindOf(err) == healthlab.Exhausted {
			return PublishedJob{}, &healthlab.RuleError{Kind: healthlab.Conflict, Type: RuleTooManyExports,
				Msg: fmt.Sprintf("the user has %d exports already; use one of them, or wait until one expires", maxPerUser)}
		}
		return PublishedJob{}, fmt.Errorf("start export: %w", err)
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return j.published(), nil
}

// Get returns the state of a user's export. It returns the RuleErrors [RuleUserNotFound] and [RuleExportNotFound]
// (both NotFound).
func (s *Service) Get(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id JobID) (PublishedJob, error) {
	j, err := s.job(ctx, team, user, id)
	if err != nil {
		return PublishedJob{}, fmt.Errorf("read export: %w", err)
	}
	return j.published(), nil
}

// List returns the exports of a user, oldest first. It returns the RuleError [RuleUserNotFound] (NotFound).
func (s *Service) List(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]PublishedJob, error) {
	if err := s.check(ctx, team, user); err != nil {
		return nil, fmt.Errorf("list exports: %w", err)
	}
	jobs, err := s.store.OfUser(ctx, team, user)
	if err != nil {
		return nil, fmt.Errorf("list exports: %w", err)
	}
	out := []PublishedJob{}
	for i := range jobs {
		if !s.expired(&jobs[i]) {
			out = append(out, jobs[i].published())
		}
	}
	return out, nil
}

// check returns the RuleError RuleUserNotFound unless the team has the user.
func (s *Service) check(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
	has, err := s.users.HasUser(ctx, team, user)
	if err == nil && !has {
		err = &healthlab.RuleError{Kind: healthlab.NotFound, Type: RuleUserNotFound, Msg: "the team has no such user"}
	}
	return err
}

func (s *Service) expired(j *Job) bool { return !j.ExpiresAt.IsZero() && !s.now().Before(j.ExpiresAt) }

// job returns the stored job of a user's export. RuleExportNotFound if it is another user's or has expired.
func (s *Service) job(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id JobID) (Job, error) {
	if err := s.check(ctx, team, user); err != nil {
		return Job{}, err
	}
	j, err := s.store.Get(ctx, team, id)
	if errors.Is(err, healthlab.NotFound) || err == nil && (j.User != user || s.expired(&j)) {
		err = &healthlab.RuleError{Kind: healthlab.NotFound, Type: RuleExportNotFound, Msg: "the user has no such export, or it has expired"}
	}
	return j, err
}

// Forget deletes the files of a user's exports. Call it before the transaction that erases the user, because that
// transaction deletes the list of the files. It may be repeated after an error.
func (s *Service) Forget(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
	jobs, err := s.store.OfUser(ctx, team, user)
	if err != nil {
		return fmt.Errorf("forget exports: %w", err)
	}
	for i := range jobs {
		if err := s.deleteFiles(ctx, &jobs[i]); err != nil {
			return fmt.Errorf("forget exports: %w", err)
		}
	}
	return nil
}

// deleteFiles deletes all files that may have been written for a job.
func (s *Service) deleteFiles(ctx context.Context, j *Job) error {
	for n := range j.Files {
		if err := s.blobs.Delete(ctx, j.Key(n)); err != nil {
			return fmt.Errorf("delete files of export: %w", err)
		}
	}
	return nil
}
