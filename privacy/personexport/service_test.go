package personexport_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/privacy/personexport"
)

// folder is a source whose files are made by functions.
type folder struct {
	names []string
	write func(ctx context.Context, name string, w io.Writer) error
}

func (f *folder) Files(context.Context, healthlab.TeamID, healthlab.UserID) ([]string, error) {
	return f.names, nil
}

func (f *folder) Write(ctx context.Context, _ healthlab.TeamID, _ healthlab.UserID, name string, w io.Writer) error {
	return f.write(ctx, name, w)
}

// exports is a service with one user, and its store.
type exports struct {
	*personexport.Service
	t      *testing.T
	store  *memory.Store
	health *healthdata.Service
	team   healthlab.TeamID
	user   healthlab.UserID
	source *folder
	files  *firstRead
	at     time.Time
}

// firstRead is a BlobStore that calls first when Put has read the first byte of a file. If most is not zero, Put stores
// that many bytes and leaves the rest unread.
type firstRead struct {
	personexport.BlobStore
	first func()
	most  int64
}

func (b *firstRead) Put(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string, content io.Reader) error {
	var one [1]byte
	n, err := content.Read(one[:])
	if err != nil {
		return err
	}
	if b.first != nil {
		b.first()
	}
	if b.most > 0 {
		content = io.LimitReader(content, b.most-1)
	}
	return b.BlobStore.Put(ctx, team, user, key, io.MultiReader(bytes.NewReader(one[:n]), content))
}

func newExports(t *testing.T, opts personexport.Options) *exports {
	t.Helper()
	x := &exports{t: t, team: healthlab.TeamID{UUID: uuid.New()}, at: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)}
	x.store = memory.New(&memory.Options{Now: func() time.Time { return x.at }})
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", Category: "app", Class: "manual"}})
	require.NoError(t, err)
	quiet := slog.New(slog.DiscardHandler)
	x.health, err = healthdata.New(x.store.Users(), x.store.Data(), providers, &healthdata.Options{
		Environment: healthlab.Sandbox, Log: quiet,
		Forget: []func(context.Context, healthlab.TeamID, healthlab.UserID) error{func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
			return x.Forget(ctx, team, user)
		}},
	})
	require.NoError(t, err)
	u, err := x.health.CreateUser(t.Context(), x.team, healthdata.NewUser{ClientUserID: "one"})
	require.NoError(t, err)
	x.user = u.ID
	x.source = &folder{names: []string{"a.txt", "b.txt", "c.txt"}, write: func(_ context.Context, name string, w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat("content of "+name, 1000))
		return err
	}}
	x.files = &firstRead{BlobStore: x.store.Blobs()}
	opts.Now, opts.Log = func() time.Time { return x.at }, quiet
	x.Service, err = personexport.New(x.store.PersonExports(), x.files, x.health, map[string]personexport.Source{"folder": x.source}, &opts)
	require.NoError(t, err)
	return x
}

func (x *exports) start() personexport.JobID {
	x.t.Helper()
	j, err := x.Start(x.t.Context(), x.team, x.user)
	require.NoError(x.t, err)
	return j.ID
}

// step takes up what is due, as a process does, and returns how many jobs that were.
func (x *exports) step(ctx context.Context) int {
	x.t.Helper()
	due, err := x.store.PersonExports().Claim(x.t.Context(), 10, 11*time.Minute)
	require.NoError(x.t, err)
	for _, j := range due {
		_ = x.Step(ctx, j)
	}
	return len(due)
}

func (x *exports) get(id personexport.JobID) personexport.PublishedJob {
	x.t.Helper()
	j, err := x.Get(x.t.Context(), x.team, x.user, id)
	require.NoError(x.t, err)
	return j
}

// unzip returns the files of an export.
func (x *exports) unzip(id personexport.JobID) map[string]string {
	x.t.Helper()
	archive, err := x.Open(x.t.Context(), x.team, x.user, id)
	require.NoError(x.t, err)
	var b bytes.Buffer
	require.NoError(x.t, archive.Write(x.t.Context(), &b))
	z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	require.NoError(x.t, err)
	out := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(x.t, err)
		text, err := io.ReadAll(r) // checks the sum
		require.NoError(x.t, err)
		out[f.Name] = string(text)
	}
	return out
}

// stored returns how many files are stored of an export.
func (x *exports) stored(id personexport.JobID) (n int) {
	x.t.Helper()
	j := personexport.Job{ID: id, Team: x.team}
	for i := range 5 {
		r, err := x.store.Blobs().Get(x.t.Context(), x.team, x.user, j.Key(i))
		if errors.Is(err, healthlab.NotFound) {
			continue
		}
		require.NoError(x.t, err)
		require.NoError(x.t, r.Close())
		n++
	}
	return n
}

func TestExport_containsEachFileAndNamesMissingOnes(t *testing.T) {
	x := newExports(t, personexport.Options{})
	x.source.names = append(x.source.names, "missing.txt", "empty.txt")
	write := x.source.write
	x.source.write = func(ctx context.Context, name string, w io.Writer) error {
		switch name {
		case "missing.txt":
			return fmt.Errorf("document: %w", healthlab.NotFound)
		case "empty.txt":
			return nil
		}
		return write(ctx, name, w)
	}
	id := x.start()
	require.Nil(t, x.get(id).FilesTotal)
	require.Equal(t, 1, x.step(t.Context()))
	j := x.get(id)
	require.Equal(t, personexport.Completed, j.Status)
	require.Equal(t, 5, j.FilesDone)
	require.Equal(t, 5, *j.FilesTotal)
	require.NotZero(t, j.Bytes)
	require.Equal(t, x.at.Add(7*24*time.Hour), j.ExpiresAt.Time)
	files := x.unzip(id)
	require.Equal(t, strings.Repeat("content of b.txt", 1000), files["folder/b.txt"])
	require.Empty(t, files["folder/empty.txt"])
	require.NotContains(t, files, "folder/missing.txt")
	require.NotContains(t, files["manifest.json"], "missing.txt")
	require.Contains(t, files["manifest.json"], `"folder/a.txt"`)
	require.Len(t, files, 5)
}

// A process that ends in the middle of a file loses that file and no other, and the next one
// goes on at once.
func TestExport_afterACrashRewritesOnlyTheUnfinishedFile(t *testing.T) {
	x := newExports(t, personexport.Options{})
	ctx, stop := context.WithCancel(t.Context())
	written := map[string]int{}
	write := x.source.write
	x.source.write = func(ctx context.Context, name string, w io.Writer) error {
		written[name]++
		if name == "c.txt" && written[name] == 1 {
			stop()
			<-ctx.Done()
			return ctx.Err()
		}
		return write(ctx, name, w)
	}
	id := x.start()
	x.step(ctx)
	j := x.get(id)
	require.Equal(t, personexport.InProgress, j.Status)
	require.Equal(t, 2, j.FilesDone)
	require.Equal(t, 1, x.step(t.Context()))
	require.Equal(t, personexport.Completed, x.get(id).Status)
	require.Equal(t, map[string]int{"a.txt": 1, "b.txt": 1, "c.txt": 2}, written)
	require.Len(t, x.unzip(id), 4)
}

// When a process is killed, another one takes over its job after the lease has ended. Late
// writes of the first process change nothing.
func TestExport_ofAKilledProcessIsTakenOver(t *testing.T) {
	x := newExports(t, personexport.Options{})
	id := x.start()
	first, err := x.store.PersonExports().Claim(t.Context(), 1, time.Minute)
	require.NoError(t, err)
	require.Zero(t, x.step(t.Context()))
	x.at = x.at.Add(time.Minute)
	require.Equal(t, 1, x.step(t.Context()))
	before := x.get(id)
	require.Equal(t, personexport.Completed, before.Status)
	require.NoError(t, x.Step(t.Context(), first[0]))
	require.Equal(t, before, x.get(id))
}

func TestExport_retriesAFailingFileAndGivesUp(t *testing.T) {
	x := newExports(t, personexport.Options{Tries: 3})
	broken, write := 2, x.source.write
	x.source.write = func(ctx context.Context, name string, w io.Writer) error {
		if name == "b.txt" && broken > 0 {
			broken--
			if broken == 0 {
				panic("broken")
			}
			return healthlab.Unavailable
		}
		return write(ctx, name, w)
	}
	id := x.start()
	for range 3 {
		require.Equal(t, 1, x.step(t.Context()))
		require.Zero(t, x.step(t.Context()), "it waits")
		x.at = x.at.Add(time.Minute)
	}
	require.Equal(t, personexport.Completed, x.get(id).Status)

	broken = 99
	id = x.start()
	for range 3 {
		x.step(t.Context())
		x.at = x.at.Add(time.Minute)
	}
	j := x.get(id)
	require.Equal(t, personexport.Failed, j.Status)
	require.NotNil(t, j.ExpiresAt)
	_, err := x.Open(t.Context(), x.team, x.user, id)
	require.ErrorIs(t, err, healthlab.Conflict)
}

func TestExport_aPutThatReadsOnlyAPartFailsTheFile(t *testing.T) {
	x := newExports(t, personexport.Options{})
	x.files.most = 10
	id := x.start()
	require.Equal(t, 1, x.step(t.Context()))
	require.Equal(t, personexport.InProgress, x.get(id).Status)

	x.files.most = 0
	x.at = x.at.Add(time.Minute)
	require.Equal(t, 1, x.step(t.Context()))
	require.Len(t, x.unzip(id), 4, "three files and the manifest")
}

func TestExport_isDeletedWhenItExpires(t *testing.T) {
	x := newExports(t, personexport.Options{Keep: time.Hour})
	id := x.start()
	x.step(t.Context())
	require.Equal(t, 3, x.stored(id))
	x.at = x.at.Add(time.Hour)
	_, err := x.Get(t.Context(), x.team, x.user, id)
	require.ErrorIs(t, err, healthlab.NotFound)
	list, err := x.List(t.Context(), x.team, x.user)
	require.NoError(t, err)
	require.Empty(t, list)
	require.Equal(t, 1, x.step(t.Context()))
	require.Zero(t, x.stored(id))
	_, err = x.store.PersonExports().Get(t.Context(), x.team, id)
	require.ErrorIs(t, err, healthlab.NotFound)
}

func TestEraseUser_deletesTheUsersExports(t *testing.T) {
	x := newExports(t, personexport.Options{})
	id := x.start()
	x.step(t.Context())
	require.NoError(t, x.health.Deletions().Erase(t.Context(), x.team, x.user))
	require.Zero(t, x.stored(id), "at once")
	require.Equal(t, 1, x.step(t.Context()), "the row goes, too")
	require.Zero(t, x.step(t.Context()))
}

// A user who is erased while a file is written leaves no file.
func TestEraseUser_duringAnExportLeavesNoFile(t *testing.T) {
	x := newExports(t, personexport.Options{})
	write := x.source.write
	x.source.write = func(ctx context.Context, name string, w io.Writer) error {
		if name == "b.txt" {
			require.NoError(t, x.health.Deletions().Erase(ctx, x.team, x.user))
		}
		return write(ctx, name, w)
	}
	id := x.start()
	x.step(t.Context())
	require.Zero(t, x.stored(id))
	x.at = x.at.Add(time.Hour)
	require.Equal(t, 1, x.step(t.Context()))
	require.Zero(t, x.stored(id))
}

// A user who is deleted while files are written: the export fails, and can be seen after an undo.
func TestDeleteUser_duringAnExportFailsTheExport(t *testing.T) {
	x := newExports(t, personexport.Options{})
	write := x.source.write
	x.source.write = func(ctx context.Context, name string, w io.Writer) error {
		if name == "b.txt" {
			require.NoError(t, x.health.Deletions().Delete(ctx, x.team, x.user))
			return healthlab.NotFound
		}
		return write(ctx, name, w)
	}
	id := x.start()
	x.step(t.Context())
	_, err := x.Get(t.Context(), x.team, x.user, id)
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = x.health.Deletions().Undo(t.Context(), x.team, healthdata.DeletedUser{User: x.user})
	require.NoError(t, err)
	require.Equal(t, personexport.Failed, x.get(id).Status)
}

// Nothing is read before the access is recorded.
func TestExport_recordsAccessBeforeItReads(t *testing.T) {
	recorded := errors.New("not recorded")
	var jobs []personexport.JobID
	x := newExports(t, personexport.Options{Accessed: func(_ context.Context, j personexport.Job) error {
		jobs = append(jobs, j.ID)
		return recorded
	}})
	x.source.write = func(context.Context, string, io.Writer) error {
		t.Error("it is read")
		return nil
	}
	id := x.start()
	for range 20 { // more often than an export is tried
		x.step(t.Context())
		x.at = x.at.Add(11 * time.Minute)
	}
	require.Equal(t, slices.Repeat([]personexport.JobID{id}, 20), jobs)
	require.Zero(t, x.get(id).FilesDone)
	recorded = nil
	x.source.write = func(context.Context, string, io.Writer) error { return nil }
	x.step(t.Context())
	require.Equal(t, personexport.Completed, x.get(id).Status)
}

// The loop of Run takes up what Start begins.
func TestRun_processesStartedExports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newExports(t, personexport.Options{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- x.Run(ctx) }()
		synctest.Wait()
		id := x.start()
		synctest.Wait()
		require.Equal(t, personexport.Completed, x.get(id).Status)
		stop()
		require.NoError(t, <-ended)
	})
}

// A file is stored while it is written: it is never in memory.
func TestExport_streamsFilesWithoutBufferingThem(t *testing.T) {
	x := newExports(t, personexport.Options{})
	const pieces, piece = 64, 64 << 10
	random := rand.NewChaCha8([32]byte{1})
	var written, atFirst atomic.Int64
	x.files.first = func() { atFirst.Store(written.Load()) }
	x.source.names = []string{"large.bin"}
	x.source.write = func(_ context.Context, _ string, w io.Writer) error {
		for range pieces {
			if _, err := io.CopyN(w, random, piece); err != nil {
				return err
			}
			written.Add(1)
		}
		return nil
	}
	id := x.start()
	x.step(t.Context())
	require.EqualValues(t, pieces, written.Load())
	require.Less(t, atFirst.Load(), int64(pieces/4))
	require.Len(t, x.unzip(id)["folder/large.bin"], pieces*piece)
}
