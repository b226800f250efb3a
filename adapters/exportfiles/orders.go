package exportfiles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/documents"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// orderLine is an order with what is stored for it: results, published appointments, consents, answers, insurance,
// physician.
type orderLine struct {
	Order           orders.Order                 `json:"order"`
	Results         *orders.OrderResults         `json:"results"`
	Appointments    []orders.Appointment         `json:"appointments"`
	Consents        []people.Consent             `json:"consents"`
	Answers         []catalogue.AOEAnswer        `json:"aoe_answers"`
	HealthInsurance *people.HealthInsuranceInput `json:"health_insurance"`
	Physician       *people.PhysicianInput       `json:"physician"`
}

// eachOrder calls do with the orders of a user, oldest first.
func eachOrder(ctx context.Context, of *orders.Service, team healthlab.TeamID, user healthlab.UserID, do func(*orders.Order) error) error {
	q := orders.Query{Team: team, User: user, Sort: orders.SortCreatedAt, Direction: catalogue.Ascending, Page: 1, Size: 100}
	for {
		page, err := of.List(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Orders {
			if err := do(&page.Orders[i]); err != nil {
				return err
			}
		}
		if len(page.Orders) < q.Size {
			return nil
		}
		q.Page++
	}
}

func removed(err error) error {
	// If a part was deleted meanwhile, the list must be read again. NotFound would omit the whole file.
	if errors.Is(err, healthlab.NotFound) {
		return fmt.Errorf("%w: data of the person was deleted while its export file was written; start the export again", healthlab.Unavailable)
	}
	return err
}

func (s Services) orders(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, w io.Writer) error {
	out := lines{w: json.NewEncoder(w)}
	err := eachOrder(ctx, s.Orders, team, user, func(o *orders.Order) error {
		r, err := s.Orders.Record(ctx, team, o.ID)
		if err != nil {
			return removed(err)
		}
		line := orderLine{
			Order: r.Order, Appointments: []orders.Appointment{}, Consents: r.Consents, Answers: r.AOEAnswers, HealthInsurance: r.HealthInsurance, Physician: r.PhysicianInput,
		}
		for i := range r.Visits {
			if r.Visits[i].Status.Published() {
				line.Appointments = append(line.Appointments, r.Visits[i].Appointment)
			}
		}
		results, err := s.Orders.Results(ctx, team, o.ID)
		switch {
		case err == nil:
			line.Results = &results
		case !errors.Is(err, healthlab.NotFound):
			return err
		}
		return out.add(line)
	})
	if err != nil {
		return err
	}
	return out.end()
}

// documentFiles is the folder of order documents: requisitions, result reports and notices that the service generates,
// and every report that a laboratory sent.
type documentFiles Services

// documentEnds maps a kind of document to the end of its file name, which begins with the order id. Labels and
// instructions are omitted, because they have no data of the person that the requisition lacks.
var documentEnds = map[documents.DocumentKind]string{
	documents.RequisitionForm: "_requisition.pdf", documents.ResultsReport: "_result.pdf", documents.BeneficiaryNotice: "_abn.pdf",
}

// labFile is the part of a file name between the order id and the number of the laboratory's report.
const labFile = "_laboratory_"

// Files implements [personexport.Source].
func (f documentFiles) Files(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]string, error) {
	var names []string
	err := eachOrder(ctx, f.Orders, team, user, func(o *orders.Order) error {
		r, err := f.Orders.Record(ctx, team, o.ID)
		if err != nil {
			return err
		}
		kinds, err := f.Documents.List(ctx, team, o.ID)
		if err != nil {
			return err
		}
		id := o.ID.String()
		for _, kind := range kinds {
			if end := documentEnds[kind]; end != "" {
				names = append(names, id+end)
			}
		}
		for i := range r.Files {
			names = append(names, id+labFile+strconv.Itoa(i+1)+".pdf")
		}
		return nil
	})
	return names, err
}

// Write implements [personexport.Source].
func (f documentFiles) Write(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, name string, w io.Writer) error {
	text, end, _ := strings.Cut(name, "_")
	id, err := uuid.Parse(text)
	if err != nil {
		return noFile()
	}
	order := orders.OrderID{UUID: id}
	r, err := f.Orders.Record(ctx, team, order)
	if err == nil && r.UserID != user {
		err = noFile()
	}
	if err != nil {
		return err
	}
	var pdf []byte
	switch end = "_" + end; end {
	case documentEnds[documents.RequisitionForm]:
		pdf, err = f.Documents.Requisition(ctx, team, order)
	case documentEnds[documents.ResultsReport]:
		pdf, err = f.Documents.Report(ctx, team, order)
	case documentEnds[documents.BeneficiaryNotice]:
		pdf, err = f.Documents.CoverageNotice(ctx, team, order)
	default:
		n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(end, labFile), ".pdf"))
		if n < 1 || n > len(r.Files) {
			return noFile()
		}
		pdf, err = f.Orders.Files().Report(ctx, &r, r.Files[n-1])
	}
	if err != nil {
		return removed(err)
	}
	_, err = w.Write(pdf)
	return err
}

// reportFiles is the folder of lab report parsing jobs, with the files that were uploaded for them.
type reportFiles struct{ reports *labreport.Service }

const jobsFile = "jobs.ndjson"

// eachJob calls do with the parsing jobs of a user, newest first.
func (f reportFiles) eachJob(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, do func(labreport.JobID) error) error {
	for q := (labreport.JobsQuery{User: user}); ; {
		page, err := f.reports.Jobs(ctx, team, q)
		if err != nil {
			return err
		}
		for i := range page.Jobs {
			if err := do(page.Jobs[i].ID); err != nil {
				return err
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return nil
		}
	}
}

var endings = map[string]string{"application/pdf": ".pdf", "image/jpeg": ".jpg", "image/png": ".png"}

// Files implements [personexport.Source].
func (f reportFiles) Files(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]string, error) {
	names := []string{jobsFile}
	err := f.eachJob(ctx, team, user, func(id labreport.JobID) error {
		types, err := f.reports.FileTypes(ctx, team, id)
		for i, t := range types {
			names = append(names, id.String()+"_"+strconv.Itoa(i+1)+endings[t])
		}
		return err
	})
	return names, err
}

// Write implements [personexport.Source].
func (f reportFiles) Write(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, name string, w io.Writer) error {
	if name == jobsFile {
		out := lines{w: json.NewEncoder(w)}
		err := f.eachJob(ctx, team, user, func(id labreport.JobID) error {
			job, err := f.reports.JobReview(ctx, team, id)
			if err != nil {
				return removed(err)
			}
			return out.add(job)
		})
		if err != nil {
			return err
		}
		return out.end()
	}
	text, rest, _ := strings.Cut(name, "_")
	number, _, _ := strings.Cut(rest, ".")
	id, err := uuid.Parse(text)
	n, errNumber := strconv.Atoi(number)
	if errors.Join(err, errNumber) != nil {
		return noFile()
	}
	job, err := f.reports.JobReview(ctx, team, labreport.JobID{UUID: id})
	if err == nil && job.UserID != user {
		err = noFile()
	}
	if err != nil {
		return err
	}
	content, err := f.reports.OpenFile(ctx, team, labreport.JobID{UUID: id}, n-1)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, content)
	return errors.Join(err, content.Close())
}
