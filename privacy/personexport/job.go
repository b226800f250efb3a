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

// Status is the state of an export. Clients must accept further ones.
type Status string

// Statuses of an export.
const (
	// InProgress: the files are being written.
	InProgress Status = "in_progress"
	// Completed: the ZIP file can be downloaded until the export expires.
	Completed Status = "completed"
	// Failed: the export was given up. A new one can be started.
	Failed Status = "failed"
)

// Job is a stored export. Times are in UTC; the zero time means never.
type Job struct {
	ID   JobID
	Team healthlab.TeamID
	// User is the user whose data is exported; zero if the user was erased and files must still be deleted.
	User healthlab.UserID
	// Revision grows by one with every write, from 1. The Store sets it.
	Revision int64
	Status   Status
	// Files are the planned files in order; nil before they are planned. The first Next of them are written.
	Files []File
	Next  int
	// Tries is the number of failed attempts at the present file.
	Tries                int
	CreatedAt, UpdatedAt time.Time
	CompletedAt          time.Time
	// ExpiresAt is the time at which the job and its files are deleted; zero while it is in progress.
	ExpiresAt time.Time
	// DueAt is the time at which background work continues. [Store.Claim] compares it with the store's clock
	// and sets it to the end of the lease. The first DueAt, and ExpiresAt, are by the clock of the process that
	// sets them.
	DueAt time.Time
	// StoreTime is the store's clock while the change of an Update runs, in UTC; zero
	// otherwise. A change that extends a lease counts from it. It is not stored.
	StoreTime time.Time
}

// LogValue logs the ids and the progress of the export.
func (j Job) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", j.ID.String()), slog.String("team", j.Team.String()), slog.String("status", string(j.Status)), slog.Int("tries", j.Tries))
}

// File is one file of an export.
type File struct {
	// Name is the path in the ZIP file. It has ids and no values of the person.
	Name string
	// Absent is true if there was nothing to write, such as a document that is not printed.
	Absent bool
	// Size and Packed are the lengths in bytes before and after compression, and CRC is the
	// CRC-32 of the content.
	Size, Packed int64
	CRC          uint32
}

// Key returns the name under which the nth file is stored.
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

// PublishedJob is an export in the HTTP API.
type PublishedJob struct {
	ID     JobID            `json:"id"`
	UserID healthlab.UserID `json:"user_id"`
	Status Status           `json:"status"`
	// FilesDone and FilesTotal are the numbers of written and of all files. FilesTotal is null until the files
	// are planned.
	FilesDone  int  `json:"files_done"`
	FilesTotal *int `json:"files_total"`
	// Bytes is the size of the written files, compressed.
	Bytes       int64           `json:"bytes"`
	CreatedAt   healthlab.Time  `json:"created_at"`
	CompletedAt *healthlab.Time `json:"completed_at"`
	// ExpiresAt is the time at which a completed or failed export is deleted; null before that state.
	ExpiresAt *healthlab.Time `json:"expires_at"`
	// DownloadPath is the path of the ZIP file; null unless the export is completed.
	DownloadPath *string `json:"download_path"`
}

// Published returns the job in the form of the HTTP API.
func (j *Job) Published() PublishedJob {
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
