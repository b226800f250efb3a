package personexport

import (
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
)

// leaseMargin is the time by which a worker's lease of a job is longer than the time limit of a file. A file that a
// worker still writes after its lease would overwrite the file of the next worker.
const leaseMargin = 30 * time.Second

func (s *Service) lease() time.Duration { return fileTimeout + leaseMargin }

// Run writes the files of started exports, and deletes exports that have expired, until ctx ends. Any number of
// processes may run it on one store.
func (s *Service) Run(ctx context.Context) error {
	loop := work.Loop[Job]{
		Name: "exports", Workers: s.opts.Workers, Idle: s.opts.Idle, Wake: s.wake, Log: s.opts.Log,
		Claim: func(ctx context.Context, n int) ([]Job, error) { return s.store.Claim(ctx, n, s.lease()) },
		Do:    s.Step,
	}
	if err := loop.Run(ctx); err != nil {
		return fmt.Errorf("run exports: %w", err)
	}
	return nil
}

// errTaken says that another process has claimed the job since this one did, or that its user was erased.
var errTaken = fmt.Errorf("%w: another process continues the export", healthlab.Conflict)

// errNotRecorded says that the access could not be recorded in the access log. Nothing was read then.
var errNotRecorded = errors.New("record access")

// Step does the work for a job that [Store.Claim] returned: it writes the remaining files, or deletes a job that
// has expired. [Service.Run] calls Step; a host with a worker loop of its own may call it instead.
func (s *Service) Step(ctx context.Context, j Job) error {
	if j.User.IsZero() || j.Status != InProgress {
		return s.discard(ctx, &j)
	}
	err := s.write(ctx, &j)
	switch {
	case err == nil, errors.Is(err, errTaken):
		return nil
	case errors.Is(err, errNotRecorded): // does not count as an attempt; the job is due again when the lease ends
		return err
	case ctx.Err() != nil: // this process is stopping; the job is due at once, for another process
		return s.update(context.WithoutCancel(ctx), &j, func(j *Job) { j.DueAt = j.StoreTime })
	}
	return s.failed(ctx, &j, err)
}

// discard deletes a job and its files, because the job has expired or its user was erased.
func (s *Service) discard(ctx context.Context, j *Job) error {
	if err := s.deleteFiles(ctx, j); err != nil {
		return err
	}
	if err := s.store.Delete(ctx, j.Team, j.ID); err != nil {
		return fmt.Errorf("delete export: %w", err)
	}
	return nil
}

// update edits and stores a job that this process has claimed. errTaken if the job was changed since, or its user
// was erased.
func (s *Service) update(ctx context.Context, j *Job, edit func(*Job)) error {
	held, at := j.Revision, s.now()
	next, err := s.store.Update(ctx, j.Team, j.ID, func(j *Job) error {
		if j.Revision != held || j.User.IsZero() {
			return errTaken
		}
		j.UpdatedAt = at
		edit(j)
		return nil
	})
	if err != nil {
		return fmt.Errorf("record export: %w", err)
	}
	*j = next
	return nil
}

// write lists the files of an export if that was not done before, and writes those that are missing.
func (s *Service) write(ctx context.Context, j *Job) error {
	if err := s.begin(ctx, j); err != nil {
		return err
	}
	for j.Next < len(j.Files) {
		n := j.Next
		f, err := s.writeFile(ctx, j, n)
		if err != nil {
			return err
		}
		if err := s.update(ctx, j, func(j *Job) { j.Files[n], j.Next, j.Tries, j.DueAt = f, n+1, 0, j.StoreTime.Add(s.lease()) }); err != nil {
			return s.unlessErased(ctx, j, n, err)
		}
	}
	return s.update(ctx, j, func(j *Job) {
		j.Status, j.CompletedAt, j.ExpiresAt = Completed, j.UpdatedAt, j.UpdatedAt.Add(s.opts.Keep)
		j.DueAt = j.ExpiresAt
	})
}

// begin calls [Options].Accessed, which records the access, and lists the files to write. Both together have the
// time limit of one file.
func (s *Service) begin(ctx context.Context, j *Job) error {
	ctx, stop := context.WithTimeout(ctx, fileTimeout)
	defer stop()
	if err := s.check(ctx, j.Team, j.User); err != nil {
		return err
	}
	if err := s.opts.Accessed(ctx, *j); err != nil {
		return fmt.Errorf("%w: %w", errNotRecorded, err)
	}
	if j.Files != nil {
		return nil
	}
	files, err := s.plan(ctx, j)
	if err != nil {
		return err
	}
	return s.update(ctx, j, func(j *Job) { j.Files, j.DueAt = files, j.StoreTime.Add(s.lease()) })
}

func (s *Service) unlessErased(ctx context.Context, j *Job, n int, err error) error {
	if _, gone := s.store.Get(ctx, j.Team, j.ID); errors.Is(gone, healthlab.NotFound) {
		return errors.Join(err, s.blobs.Delete(ctx, j.Key(n)))
	}
	return err
}

// plan returns the files to write, from all sources.
func (s *Service) plan(ctx context.Context, j *Job) ([]File, error) {
	files := []File{}
	for _, folder := range s.folders {
		names, err := s.sources[folder].Files(ctx, j.Team, j.User)
		if err != nil {
			return nil, fmt.Errorf("list %s of export: %w", folder, err)
		}
		for _, name := range names {
			files = append(files, File{Name: folder + "/" + name})
		}
	}
	return files, nil
}

// writeFile writes the nth file to the BlobStore, and returns it with its size and checksum.
func (s *Service) writeFile(ctx context.Context, j *Job, n int) (File, error) {
	ctx, stop := context.WithTimeout(ctx, fileTimeout)
	defer stop()
	f := j.Files[n]
	folder, name, _ := strings.Cut(f.Name, "/")
	source := s.sources[folder]
	if source == nil { // the job was planned by a release that had this source
		f.Absent = true
		return f, nil
	}
	in, out := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := pack(&f, out, func(w io.Writer) error { return source.Write(ctx, j.Team, j.User, name, w) })
		written <- err
		_ = out.CloseWithError(err)
	}()
	err := s.blobs.Put(ctx, j.Team, j.User, j.Key(n), in)
	_ = in.CloseWithError(errStopped) // ends the writing goroutine if Put returned early
	failure := <-written
	if errors.Is(failure, healthlab.NotFound) { // the source has no such file; NotFound from Put would be an error
		f, err = File{Name: f.Name, Absent: true}, nil
	} else if failure != nil && (err == nil || !errors.Is(failure, errStopped)) {
		err = failure
	}
	if err == nil {
		err = s.check(ctx, j.Team, j.User) // fails if the user was deleted meanwhile: the source then had nothing to read
	}
	if err != nil {
		return f, fmt.Errorf("write %s of export: %w", folder, err)
	}
	return f, nil
}

var errStopped = errors.New("BlobStore.Put returned before it had read the whole file")

// pack compresses what write writes, to the writer to, and sets the sizes and the checksum of f. A panic of write
// becomes an error.
func pack(f *File, to io.Writer, write func(io.Writer) error) (err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("%w: panic in a source of an export", healthlab.Unknown)
		}
	}()
	packed := &counter{w: to}
	deflate, err := flate.NewWriter(packed, flate.DefaultCompression)
	if err != nil {
		return err
	}
	sum := crc32.NewIEEE()
	plain := &counter{w: io.MultiWriter(deflate, sum)}
	if err := write(plain); err != nil {
		return err
	}
	if err := deflate.Close(); err != nil {
		return err
	}
	f.Size, f.Packed, f.CRC = plain.n, packed.n, sum.Sum32()
	return nil
}

// counter counts the bytes that are written through it.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// failed records a failed attempt at a job. The job is due again after 10 seconds times the number of failed
// attempts. After the last attempt, or if the user was deleted, its files are deleted and it becomes Failed.
func (s *Service) failed(ctx context.Context, j *Job, cause error) error {
	at := s.now()
	over := j.Tries+1 >= s.opts.Tries || errors.Is(s.check(ctx, j.Team, j.User), healthlab.NotFound)
	if over {
		if err := s.deleteFiles(ctx, j); err != nil {
			return err
		}
	}
	err := s.update(ctx, j, func(j *Job) {
		j.Tries++
		j.DueAt = j.StoreTime.Add(time.Duration(j.Tries) * 10 * time.Second)
		if over {
			j.Status, j.ExpiresAt = Failed, at.Add(s.opts.Keep)
			j.DueAt = j.ExpiresAt
		}
	})
	if errors.Is(err, errTaken) || errors.Is(err, healthlab.NotFound) {
		return nil
	}
	if err == nil {
		s.opts.Log.WarnContext(ctx, "export not written", "job", j.ID.String(), "team", j.Team.String(), "status", string(j.Status),
			"tries", j.Tries, "kind", healthlab.KindOf(cause).Error(), "cause", work.Cause(cause))
	}
	return err
}
