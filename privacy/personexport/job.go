package personexport

import (
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// JobID identifies an export.
type JobID struct{ uuid.UUID }

// Status is the state of an export. Clients must accept values that are not listed here.
type Status string

// Statuses of an export.
const (
	// InProgress means that the files are being written.
	InProgress Status = "in_progress"
	// Completed means that the ZIP file can be downloaded until the export expires.
	Completed Status = "completed"
	// Failed means that the export was given up after failed attempts. The user may start a new one.
	Failed Status = "failed"
)

// Job is the stored state of an export. Times are in UTC; a zero time is not set.
type Job struct {
	ID   JobID
	Team healthlab.TeamID
	// User is the user whose data is exported; zero if the user was erased and files must still be deleted.
	User healthlab.UserID
	// Revision grows by one with every write, from 1. The Store sets it.
	Revision int64
	Status   Status
	// Files are the files to write, in order; nil before they are listed. The first Next of them are written.
	Files []File
	Next  int
	// Tries is the number of failed attempts at the file Files[Next].
	Tries                int
	CreatedAt, UpdatedAt time.Time
	CompletedAt          time.Time
	// ExpiresAt is the time at which the job and its files are deleted; zero while the export is in progress.
	ExpiresAt time.Time
	// DueAt is the time from which a worker may claim the job, by the store's clock. [Store.Claim] sets it to the
	// end of the worker's lease. When a job is started or ends, the process sets DueAt and ExpiresAt by its own
	// clock.
	DueAt time.Time
	// StoreTime is the store's clock while the change function of an Update runs, in UTC; zero at other times. A
	// change adds the lease to it, because the clocks of processes differ. It is not stored.
	StoreTime time.Time
}

// LogValue logs the ids and the progress of the export.
func (j Job) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", j.ID.String()), slog.String("team", j.Team.String()), slog.String("status", string(j.Status)), slog.Int("tries", j.Tries))
}

// File is one planned or written file of an export.
type File struct {
	// Name is the path in the ZIP file. It consists of ids and names of resources, and contains no personal value.
	Name string
	// Absent is true if the source had no content for the file, such as a document that was never printed. The ZIP
	// file then omits it.
	Absent bool
	// Size and Packed are the lengths in bytes before and after compression. CRC is the CRC-32 of the uncompressed
	// content.
	Size, Packed int64
	CRC          uint32
}

// Key returns the key under which the [BlobStore] has the nth file.
func (j *Job) Key(n int) string {
	return "exports/" + j.Team.String() + "/" + j.ID.String() + "/" + strconv.Itoa(n)
}

func (j *Job) packed() (n int64) {
	for i := range j.Files {
		n += j.Files[i].Packed
	}
	return n
}

// Clone returns a deep copy of j.
func (j *Job) Clone() Job {
	out := *j
	out.Files = slices.Clone(j.Files)
	return out
}

// PublishedJob is an export as the HTTP API returns it.
type PublishedJob struct {
	ID     JobID            `json:"id"`
	UserID healthlab.UserID `json:"user_id"`
	Status Status           `json:"status"`
	// FilesDone is the number of files that are written, FilesTotal that of all files. FilesTotal is null until the
	// files are listed.
	FilesDone  int  `json:"files_done"`
	FilesTotal *int `json:"files_total"`
	// Bytes is the compressed size of the written files.
	Bytes       int64           `json:"bytes"`
	CreatedAt   healthlab.Time  `json:"created_at"`
	CompletedAt *healthlab.Time `json:"completed_at"`
	// ExpiresAt is the time at which a completed or failed export is deleted; null before that state.
	ExpiresAt *healthlab.Time `json:"expires_at"`
	// DownloadPath is the path of the ZIP file; null unless the export is completed.
	DownloadPath *string `json:"download_path"`
}

// published returns the job as the HTTP API returns it.
func (j *Job) published() PublishedJob {
	p := PublishedJob{ID: j.ID, UserID: j.User, Status: j.Status, FilesDone: j.Next, Bytes: j.packed(), CreatedAt: healthlab.At(j.CreatedAt)}
	if j.Files != nil {
		total := len(j.Files)
		p.FilesTotal = &total
	}
	if !j.CompletedAt.IsZero() {
		at := healthlab.At(j.CompletedAt)
		p.CompletedAt = &at
	}
	if !j.ExpiresAt.IsZero() {
		at := healthlab.At(j.ExpiresAt)
		p.ExpiresAt = &at
	}
	if j.Status == Completed {
		path := "/v2/user/" + j.User.String() + "/export/" + j.ID.String() + "/zip"
		p.DownloadPath = &path
	}
	return p
}
