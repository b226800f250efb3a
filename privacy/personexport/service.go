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
	// Keep is the time for which a completed or failed export is stored. Default 7 days.
	Keep time.Duration
	// Tries is the highest number of attempts at a file. Default 5.
	Tries int
	// Workers is the number of exports that a process writes at a time. Default 1.
	Workers int
	// Idle is the interval at which idle background work checks for due exports. Default 1 s.
	Idle time.Duration
	// Accessed is called before a process reads data for an export, once for each claim of the job. After an
	// error nothing is read, and the job is tried again after its lease. Default: no call.
	Accessed func(ctx context.Context, j Job) error
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids. Default: UUID version 7.
	NewID func() uuid.UUID
	// Log receives errors of the background work. Default: slog.Default().
	Log *slog.Logger
}

const (
	// maxPerUser is the highest number of stored exports of a user, including those in progress.
	maxPerUser = 3
	// fileTimeout is the time limit of writing one file. Another process takes over the export of a crashed one
	// half a minute after it.
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

// Service starts exports, writes them in the background and returns them. It is safe for
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

// New returns a Service. sources has the contents of an export by folder. Invalid without a store, files, users
// or sources.
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

// Error types of this package.
const (
	// RuleUserNotFound: the team has no such user.
	RuleUserNotFound = "USER_NOT_FOUND"
	// RuleExportNotFound: the user has no such export, or it has expired.
	RuleExportNotFound = "EXPORT_NOT_FOUND"
	// RuleTooManyExports: the user has the highest allowed number of exports.
	RuleTooManyExports = "TOO_MANY_EXPORTS"
	// RuleNotCompleted: the export has no ZIP file, because it is in progress or has failed.
	RuleNotCompleted = "EXPORT_NOT_COMPLETED"
)

// Start starts an export of a user. RuleErrors [RuleUserNotFound] (NotFound), and [RuleTooManyExports]
// (Conflict) if the user has 3 exports that have not failed.
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
	return j.Published(), nil
}

// Get returns an export of a user. RuleErrors [RuleUserNotFound] and [RuleExportNotFound]
// (NotFound).
func (s *Service) Get(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id JobID) (PublishedJob, error) {
	j, err := s.job(ctx, team, user, id)
	if err != nil {
		return PublishedJob{}, fmt.Errorf("read export: %w", err)
	}
	return j.Published(), nil
}

// List returns the exports of a user, oldest first. RuleError [RuleUserNotFound] (NotFound).
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
			out = append(out, jobs[i].Published())
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

// job returns an export of a user.
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

// Forget deletes the files of a user's exports, before the user is erased and the store
// forgets the jobs. After any error the call may be repeated.
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

// deleteFiles deletes the stored files of a job.
func (s *Service) deleteFiles(ctx context.Context, j *Job) error {
	for n := range j.Files {
		if err := s.blobs.Delete(ctx, j.Key(n)); err != nil {
			return fmt.Errorf("delete files of export: %w", err)
		}
	}
	return nil
}
