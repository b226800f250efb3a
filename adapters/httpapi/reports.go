package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/labreport"
)

// maxReportBody is the largest body of an upload of a lab report, in bytes: the files, and the form around them.
const maxReportBody = labreport.MaxFileBytes + 512<<10

func (a api) reportOperations() []server.Operation {
	if a.Reports == nil {
		return nil
	}
	list := []server.Operation{
		{
			ID: "create_lab_report_job", Pattern: "POST /lab_report/v1/parser/job", Bound: server.UserInBody, Team: a.createReport, Keyed: true, MaxBody: maxReportBody,
			Replies: []server.Reply{{Rule: labreport.RuleUploadTooLarge, Status: http.StatusRequestEntityTooLarge}},
		},
		{ID: "get_lab_report_job", Pattern: "GET /lab_report/v1/parser/job/{job_id}", Bound: a.ofReport(), Team: server.ReadOne(reportJobID, a.Reports.Get)},
	}
	return append(list, a.reportReviewOperations()...)
}

func reportJobID(in *wire.In) labreport.JobID { return labreport.JobID{UUID: in.PathUUID("job_id")} }

func (a api) createReport(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	// The settings and the limits of the team are checked before the body is read.
	intake, err := a.Reports.Open(r.Context(), team)
	if err != nil {
		return err
	}
	defer intake.Close()
	in := wire.From(r)
	once := server.OnceFrom(in, team, "create_lab_report_job", healthlab.UserID{})
	upload, err := readUpload(in)
	if err != nil {
		return err
	}
	if once != nil {
		once.User = upload.User
	}
	return server.AnswerOnce(a.Idempotency, w, r, once, uploadIdentity(upload), server.Answered(func(ctx context.Context) (labreport.PublishedJob, error) {
		return intake.Create(ctx, upload)
	}))
}

// uploadIdentity returns a value that is equal for equal uploads: the fields, and the types and SHA-256 sums of the
// files. It does not depend on the boundary of the form.
func uploadIdentity(u labreport.Upload) any {
	type file struct {
		Type string
		Sum  [sha256.Size]byte
	}
	files := make([]file, len(u.Files))
	for i, f := range u.Files {
		files[i] = file{f.Type, sha256.Sum256(f.Data)}
	}
	return struct {
		User   healthlab.UserID
		Review bool
		Files  []file
	}{u.User, u.NeedsHumanReview, files}
}

// readUpload reads an upload form and returns all problems of an invalid one.
func readUpload(in *wire.In) (labreport.Upload, error) {
	var user, review wire.Field
	var files uploadedFiles
	whole := in.Form(func(p *wire.Part) error {
		switch p.Name {
		case "file":
			return files.add(p)
		case "user_id":
			return in.Field(p, &user)
		case "needs_human_review":
			return in.Field(p, &review)
		}
		in.UnknownPart(p)
		return nil
	})
	u := labreport.Upload{Files: files.list}
	if whole {
		u.User.UUID = in.FieldUUID(user, "user_id")
		u.NeedsHumanReview = in.FieldBool(review, false)
		if len(files.list) == 0 {
			in.Problem("missing", "at least one file is required", "body", "file")
		}
	}
	err := in.Err()
	var fault *wire.Fault
	if errors.As(err, &fault) && fault.Status == http.StatusRequestEntityTooLarge {
		own := *fault
		own.Type = labreport.RuleUploadTooLarge
		err = &own
	}
	return u, err
}

// uploadedFiles collects the files of a form while it arrives.
type uploadedFiles struct {
	list  []labreport.File
	bytes int // total size of all files
}

// add stores a file, up to the limits of number and size. A form that exceeds the limits is still read to its end, so
// that one answer reports all problems.
func (f *uploadedFiles) add(p *wire.Part) error {
	if len(f.list) > labreport.MaxFiles {
		return nil
	}
	room := max(1, labreport.MaxFileBytes+1-f.bytes)
	var data bytes.Buffer
	n, err := io.CopyN(&data, p, int64(room))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	f.bytes += int(n)
	f.list = append(f.list, labreport.File{Type: p.Type, Data: data.Bytes()})
	return nil
}
