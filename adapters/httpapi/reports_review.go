package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/labreport"
)

// maxReviewBody is the largest body of a review, in bytes.
const maxReviewBody = 4 << 20

// reportReviewOperations lists the operations for people who review parsed lab reports.
func (a api) reportReviewOperations() []server.Operation {
	if a.AuthenticateManagement == nil {
		return nil
	}
	const all, one = managementPath + "/lab_report_job", managementPath + "/lab_report_job/{job_id}"
	return []server.Operation{
		{ID: "list_lab_report_jobs", Pattern: "GET " + all, Handle: a.managing(asJSON(a.listReportJobs))},
		{ID: "read_lab_report_review", Pattern: "GET " + one, Handle: a.managing(asJSON(a.readReportReview))},
		{ID: "read_lab_report_page", Pattern: "GET " + one + "/page/{page}", Handle: a.managing(a.readReportPage)},
		{ID: "approve_lab_report", Pattern: "POST " + one + "/approve", Handle: a.managing(asJSON(a.approveReport)), MaxBody: maxReviewBody},
		{ID: "reject_lab_report", Pattern: "POST " + one + "/reject", Handle: a.managing(asJSON(a.rejectReport))},
		{ID: "export_lab_report_corrections", Pattern: "GET " + managementPath + "/lab_report_correction", Handle: a.managing(a.exportCorrections)},
	}
}

// reportJobPage is one page of parsing jobs.
type reportJobPage struct {
	Data       []labreport.JobSummary `json:"data"`
	NextCursor *string                `json:"next_cursor"`
}

// reportApproval is the body of an approval.
type reportApproval struct {
	ReviewedBy  string                 `json:"reviewed_by"`
	Corrections []labreport.Correction `json:"corrections,omitempty" wire:"max=5000"`
}

// reportRejection is the body of the request with which a reviewer rejects a lab report.
type reportRejection struct {
	ReviewedBy    string                  `json:"reviewed_by"`
	FailureReason labreport.FailureReason `json:"failure_reason"`
}

func (a api) listReportJobs(ctx context.Context, m *managed) (any, error) {
	var q labreport.JobsQuery
	q.Size, q.Cursor = m.page()
	for _, s := range m.Strings("status", string(labreport.UploadPending), string(labreport.Started), string(labreport.PendingReview),
		string(labreport.Completed), string(labreport.Failed)) {
		q.Status = append(q.Status, labreport.Status(s))
	}
	if user := m.OptUUID("user_id"); user != nil {
		q.User = healthlab.UserID{UUID: *user}
	}
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	page, err := a.Reports.Jobs(ctx, team, q)
	if err != nil {
		return nil, err
	}
	return reportJobPage{Data: page.Jobs, NextCursor: next(page.Next)}, nil
}

func (a api) readReportReview(ctx context.Context, m *managed) (any, error) {
	id := reportJobID(m.In)
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	return a.Reports.JobReview(ctx, team, id)
}

func (a api) readReportPage(w http.ResponseWriter, r *http.Request, m *managed) error {
	id, page := reportJobID(m.In), m.PathInt("page")
	team, err := m.authorizedTeam()
	if err != nil {
		return err
	}
	j, err := a.Reports.JobReview(r.Context(), team, id)
	if err != nil {
		return err
	}
	concerns(r.Context(), j.UserID) // the access log finds user ids in JSON answers, not in a picture
	picture, err := a.Reports.PagePNG(r.Context(), team, id, page)
	if err != nil {
		return err
	}
	return wire.Bytes(w, http.StatusOK, "image/png", picture)
}

func (a api) approveReport(ctx context.Context, m *managed) (any, error) {
	id := reportJobID(m.In)
	var body reportApproval
	m.Body(&body)
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	if _, err := a.Reports.Approve(ctx, team, id, body.ReviewedBy, body.Corrections); err != nil {
		return nil, err
	}
	return a.Reports.JobReview(ctx, team, id)
}

func (a api) rejectReport(ctx context.Context, m *managed) (any, error) {
	id := reportJobID(m.In)
	var body reportRejection
	m.Body(&body)
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	if _, err := a.Reports.Reject(ctx, team, id, body.ReviewedBy, body.FailureReason); err != nil {
		return nil, err
	}
	return a.Reports.JobReview(ctx, team, id)
}

func (a api) exportCorrections(w http.ResponseWriter, r *http.Request, m *managed) error {
	ctx := r.Context()
	team, err := m.authorizedTeam()
	if err != nil {
		return err
	}
	// The access log gets an entry for each person of the export before the first byte is sent.
	persons := map[healthlab.UserID]bool{}
	err = a.Reports.Examples(ctx, team, func(e labreport.TrainingExample) error {
		persons[e.UserID] = true
		return nil
	})
	if err != nil {
		return err
	}
	for user := range persons {
		concerns(ctx, user)
	}
	return wire.StreamAs(w, http.StatusOK, "application/x-ndjson", func(p *wire.Pieces) error {
		return a.Reports.Examples(ctx, team, func(e labreport.TrainingExample) error {
			if !persons[e.UserID] {
				return nil // the job was reviewed during this export: the next export includes it
			}
			line, err := json.Marshal(e)
			if err != nil {
				return err
			}
			p.B = append(append(p.B, line...), '\n')
			return p.Next()
		})
	})
}
