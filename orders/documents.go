package orders

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// Documents says how a Service makes documents.
type Documents struct {
	// Printer lays them out. Required.
	Printer Printer
	// Files keeps requisitions and notices as they were first printed, and the reports
	// that laboratories print themselves. Default: nothing is kept; what is asked for
	// is printed anew each time.
	Files BlobStore
	// FormURL is where [Service.RequisitionAt] answers, without a slash at the end: the
	// URL of an order's requisition is this, a slash and a token. Empty for no such
	// URLs.
	FormURL string
	// FormKeys seals the tokens; every process needs the same. Required with FormURL.
	FormKeys healthlab.Sealer
	// TimeZone returns the zone of a user, in which documents show times. Default: UTC.
	TimeZone func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (*time.Location, error)
}

// Names of the rules about documents.
const (
	DocumentNotFound = "DOCUMENT_NOT_FOUND"
)

// FormURLFor is how long the URL of a requisition is valid.
const FormURLFor = 7 * 24 * time.Hour

// maxReportBytes bounds a report that a lab printed.
const maxReportBytes = 20 << 20

func (d *Documents) check() error {
	if d == nil {
		return nil
	}
	if d.Printer == nil {
		return fmt.Errorf("%w: documents need a printer", healthlab.Invalid)
	}
	if d.FormURL != "" && d.FormKeys == nil {
		return fmt.Errorf("%w: URLs of requisitions need a sealer", healthlab.Invalid)
	}
	return nil
}

// Requisition returns the requisition of an order as a PDF file. NotFound
// (DOCUMENT_NOT_FOUND) before the lab has accepted the order, and for imported orders,
// whose requisition was made elsewhere.
func (s *Service) Requisition(ctx context.Context, team healthlab.TeamID, id OrderID) ([]byte, error) {
	r, err := s.printable(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("print requisition: %w", err)
	}
	if !r.reached(RequisitionCreated) {
		return nil, fmt.Errorf("print requisition: %w", noDocument("the order has no requisition"))
	}
	return s.kept(ctx, &r, RequisitionForm, func() (Document, error) {
		var coverage *people.Coverage
		if r.HealthInsuranceID != nil && s.opts.People != nil {
			c, err := s.people.Insurance(ctx, team, *r.HealthInsuranceID)
			if err != nil && healthlab.KindOf(err) != healthlab.NotFound {
				return Document{}, err
			}
			if err == nil {
				coverage = &c
			}
		}
		zone, err := s.printZone(ctx, &r)
		return r.requisition(coverage, s.comment(&r), zone), err
	})
}

// comment is what a requisition says beside the order.
func (s *Service) comment(r *Record) string {
	if labs := s.opts.CommentLabs; labs != nil && (r.LabTest.Lab == nil || !slices.Contains(labs, r.LabTest.Lab.Slug)) {
		return ""
	}
	return r.Comment
}

// Labels returns labels for the tubes of an order as a PDF file. Invalid without a time
// of collection, or with a count out of range; NotFound before there is a requisition,
// and for imported orders.
func (s *Service) Labels(ctx context.Context, team healthlab.TeamID, id OrderID, req LabelsRequest) ([]byte, error) {
	var p healthlab.Problems
	if req.CollectedAt.IsZero() {
		p.Add("required", "is required", "collection_date")
	}
	if req.Count < 1 || req.Count > MaxLabels {
		p.Add("range", fmt.Sprintf("is from 1 to %d", MaxLabels), "number_of_labels")
	}
	if req.Stock != "" && !slices.Contains(LabelStocks, req.Stock) {
		p.Add("enum", "is one of roll, sheet", "stock")
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	r, err := s.printable(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("print labels: %w", err)
	}
	if !r.reached(RequisitionCreated) {
		return nil, fmt.Errorf("print labels: %w", noDocument("the order has no requisition"))
	}
	return s.print(ctx, team, r.labels(req))
}

// CoverageNotice returns the advance beneficiary notice of an order as a PDF file.
// NotFound unless the order has one, and before the lab has accepted it. It is kept as it
// was first printed.
func (s *Service) CoverageNotice(ctx context.Context, team healthlab.TeamID, id OrderID) ([]byte, error) {
	r, err := s.printable(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("print notice: %w", err)
	}
	if !r.HasABN || r.Notice == nil || !r.hasRequisition() {
		return nil, fmt.Errorf("print notice: %w", noDocument("the order has no advance beneficiary notice"))
	}
	return s.kept(ctx, &r, BeneficiaryNotice, func() (Document, error) { return r.notice(), nil })
}

// OrderInstructions returns the collection instructions for an order as a PDF file.
// NotFound where there are none.
func (s *Service) OrderInstructions(ctx context.Context, team healthlab.TeamID, id OrderID) ([]byte, error) {
	r, err := s.printable(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("print instructions: %w", err)
	}
	t := r.LabTest
	t.Method = r.Method()
	return s.instructions(ctx, team, t, r.CreatedAt.Time)
}

// LabTestInstructions returns the collection instructions of a lab test as a PDF file.
// NotFound where there are none.
func (s *Service) LabTestInstructions(ctx context.Context, team healthlab.TeamID, id catalogue.LabTestID) ([]byte, error) {
	t, err := s.catalogue.LabTest(ctx, team, nil, id)
	if err != nil {
		return nil, fmt.Errorf("print instructions: %w", err)
	}
	return s.instructions(ctx, team, t, time.Time{})
}

func (s *Service) instructions(ctx context.Context, team healthlab.TeamID, t catalogue.LabTest, at time.Time) ([]byte, error) {
	sheets, err := s.catalogue.Instructions(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("print instructions: %w", err)
	}
	if len(sheets) == 0 {
		return nil, fmt.Errorf("print instructions: %w", noDocument("there are no collection instructions"))
	}
	return s.print(ctx, team, instructions(t, sheets, at))
}

// Report returns the results of an order as a PDF file: the report that the lab printed
// of them, where it sent one, else ours. NotFound before the first result.
func (s *Service) Report(ctx context.Context, team healthlab.TeamID, id OrderID) ([]byte, error) {
	r, err := s.printable(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("print report: %w", err)
	}
	if r.Results == nil || !patientKnown(r.Facts()) {
		return nil, rules.Missing(ResultNotFound, "the order has no result yet")
	}
	if files := s.opts.Documents.Files; files != nil && r.ReportFile != "" {
		own, err := fetch(ctx, files, reportKey(r.ID, r.ReportFile))
		if err == nil || healthlab.KindOf(err) != healthlab.NotFound {
			return own, err
		}
	}
	zone, err := s.printZone(ctx, &r)
	if err != nil {
		return nil, fmt.Errorf("print report: %w", err)
	}
	return s.print(ctx, team, r.report(*r.Results, zone))
}

// TransactionReport returns the results of a whole testing journey as one PDF file.
// The order whose results are the newest heads it. NotFound before any result.
func (s *Service) TransactionReport(ctx context.Context, team healthlab.TeamID, id TransactionID) ([]byte, error) {
	if s.opts.Documents == nil {
		return nil, noDocument("there are no documents here")
	}
	results, of, err := s.merged(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("print report: %w", err)
	}
	newest := &of[len(of)-1]
	zone, err := s.printZone(ctx, newest)
	if err != nil {
		return nil, fmt.Errorf("print report: %w", err)
	}
	return s.print(ctx, team, newest.report(results, zone))
}

// printable returns an order whose documents are asked for.
func (s *Service) printable(ctx context.Context, team healthlab.TeamID, id OrderID) (Record, error) {
	r, err := s.store.Get(ctx, team, id)
	if err != nil {
		return Record{}, rules.NotFound(err, OrderNotFound, "the team has no such order")
	}
	if s.opts.Documents == nil {
		return Record{}, noDocument("there are no documents here")
	}
	return r, nil
}

// printZone is the zone of an order's user.
func (s *Service) printZone(ctx context.Context, r *Record) (*time.Location, error) {
	if s.opts.Documents.TimeZone == nil {
		return time.UTC, nil
	}
	zone, err := s.opts.Documents.TimeZone(ctx, r.TeamID, r.UserID)
	if err != nil {
		return nil, fmt.Errorf("time zone of the user: %w", err)
	}
	return zone, nil
}

func noDocument(msg string) error { return rules.Missing(DocumentNotFound, msg) }

// print lays a document out on the team's paper.
func (s *Service) print(ctx context.Context, team healthlab.TeamID, d Document) ([]byte, error) {
	if s.opts.Documents == nil {
		return nil, noDocument("there are no documents here")
	}
	settings, err := s.opts.Settings(ctx, team)
	if err != nil {
		return nil, fmt.Errorf("team settings: %w", err)
	}
	d.Paper = settings.Paper
	if len(d.Labels) > 0 && d.Stock == "" {
		d.Stock = LabelRoll
		if d.Paper == A4 {
			d.Stock = LabelSheet
		}
	}
	file, err := s.opts.Documents.Printer.Print(ctx, d)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("print %s: %v", d.Kind, err) // the caller is not to blame
	}
	return file, nil
}

// kept returns a document as it was first printed, and keeps it when that is now.
func (s *Service) kept(ctx context.Context, r *Record, kind DocumentKind, build func() (Document, error)) ([]byte, error) {
	files := s.opts.Documents.Files
	// Of a user who is to be erased nothing new is kept.
	alive, err := s.users.HasUser(ctx, r.TeamID, r.UserID)
	if err != nil {
		return nil, fmt.Errorf("find user: %w", err)
	}
	key := documentKey(r.ID, kind)
	if files != nil {
		file, err := fetch(ctx, files, key)
		if err == nil || healthlab.KindOf(err) != healthlab.NotFound {
			return file, err
		}
	}
	d, err := build()
	if err != nil {
		return nil, fmt.Errorf("print %s: %w", kind, err)
	}
	file, err := s.print(ctx, r.TeamID, d)
	if err != nil || files == nil || !alive {
		return file, err
	}
	if err := files.Put(ctx, key, bytes.NewReader(file)); err != nil {
		return nil, filed("keep "+string(kind), err)
	}
	return file, nil
}

// fetch reads a file.
func fetch(ctx context.Context, files BlobStore, key string) ([]byte, error) {
	f, err := files.Get(ctx, key)
	if err != nil {
		return nil, filed("read document", err)
	}
	b, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, filed("read document", err)
	}
	return b, nil
}

// filed keeps the kinds of a BlobStore's faults from being taken for the caller's own.
func filed(verb string, err error) error {
	if kind := healthlab.KindOf(err); kind == healthlab.NotFound || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return fmt.Errorf("%s: %w: %v", verb, healthlab.Unavailable, err)
}

func documentKey(id OrderID, kind DocumentKind) string {
	return "orders/" + id.String() + "/" + string(kind)
}

func reportKey(id OrderID, file string) string { return "orders/" + id.String() + "/lab/" + file }

// KeepReport keeps a report that a laboratory printed itself, a PDF file. Its id is the
// same for the same report of the order: letters, digits, hyphens and underscores. It is
// shown to nobody before results come that name it ([Message.ReportFile]) and are the
// order's, and until others come. It may be called again with the same report.
//
// Invalid if it is no PDF file, too large (20 MB) or has no such id; NotFound if the
// team has no such order. Of an order whose patient is to be erased, and where no files
// are kept, it keeps nothing.
func (s *Service) KeepReport(ctx context.Context, team healthlab.TeamID, order OrderID, id string, pdf []byte) error {
	var p healthlab.Problems
	if id == "" || len(id) > 100 || strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		p.Add("file_id", "is letters, digits, hyphens and underscores", "id")
	}
	if !bytes.HasPrefix(pdf, []byte("%PDF-")) || len(pdf) > maxReportBytes {
		p.Add("file", fmt.Sprintf("is a PDF file of at most %d bytes", maxReportBytes), "pdf")
	}
	if err := p.Err(); err != nil {
		return err
	}
	r, err := s.allOrders.Get(ctx, team, order)
	if err != nil {
		return fmt.Errorf("keep report: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	alive, err := s.users.HasUser(ctx, team, r.UserID)
	if err != nil {
		return fmt.Errorf("keep report: %w", err)
	}
	if s.opts.Documents == nil || s.opts.Documents.Files == nil || !alive {
		return nil
	}
	// The order knows of the file first, so that none lies there that nobody erases.
	_, err = s.allOrders.Update(ctx, team, order, func(r *Record) ([]healthlab.Event, error) {
		if !slices.Contains(r.Files, id) {
			r.Files = append(slices.Clone(r.Files), id)
		}
		return nil, nil
	})
	if err != nil {
		return fmt.Errorf("keep report: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	if err := s.opts.Documents.Files.Put(ctx, reportKey(order, id), bytes.NewReader(pdf)); err != nil {
		return filed("keep report", err)
	}
	return nil
}

// fetchReport reads the report of results that are held for review; empty if there is
// none.
func (s *Service) fetchReport(ctx context.Context, m Message) ([]byte, error) {
	if s.opts.Documents == nil || s.opts.Documents.Files == nil || m.ReportFile == "" {
		return nil, nil
	}
	file, err := fetch(ctx, s.opts.Documents.Files, reportKey(m.Order, m.ReportFile))
	if healthlab.KindOf(err) == healthlab.NotFound {
		return nil, nil
	}
	return file, err
}

// moveReport takes the report of results to the order that has them now, from the one
// that they named. What fails is logged: our own report is printed then.
func (s *Service) moveReport(ctx context.Context, m Message, to OrderID, file []byte) {
	if len(file) == 0 || to == m.Order {
		return
	}
	if err := s.opts.Documents.Files.Put(ctx, reportKey(to, m.ReportFile), bytes.NewReader(file)); err != nil {
		s.opts.Log.Warn("report of results cannot be moved", "order", to.String(), "kind", healthlab.KindOf(err).Error())
	}
	s.dropReport(ctx, m)
}

// dropReport deletes the report of results that are not those of the order which they
// name. What fails is logged: the file goes with the order.
func (s *Service) dropReport(ctx context.Context, m Message) {
	if s.opts.Documents == nil || s.opts.Documents.Files == nil || m.ReportFile == "" {
		return
	}
	r, err := s.allOrders.Get(ctx, m.Team, m.Order)
	if err == nil && (r.ReportFile == m.ReportFile || !slices.Contains(r.Files, m.ReportFile)) {
		return // it came with results of the order as well, or was never kept
	}
	if err == nil {
		err = s.opts.Documents.Files.Delete(ctx, reportKey(m.Order, m.ReportFile))
	}
	if err == nil {
		_, err = s.allOrders.Update(ctx, m.Team, m.Order, func(r *Record) ([]healthlab.Event, error) {
			r.Files = slices.DeleteFunc(slices.Clone(r.Files), func(id string) bool { return id == m.ReportFile })
			return nil, nil
		})
	}
	if err != nil && healthlab.KindOf(err) != healthlab.NotFound {
		s.opts.Log.Warn("report of results cannot be deleted", "order", m.Order.String(), "kind", healthlab.KindOf(err).Error())
	}
}

// Forget deletes the files of a user's orders, before the user is erased for good and
// the store forgets the orders. It may be called again after any error. Hand it to
// [healthdata.Options.Forget].
func (s *Service) Forget(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
	if s.opts.Documents == nil || s.opts.Documents.Files == nil {
		return nil
	}
	ids, err := s.allOrders.OfUser(ctx, team, user)
	if err != nil {
		return fmt.Errorf("forget documents: %w", err)
	}
	for _, id := range ids {
		r, err := s.allOrders.Get(ctx, team, id)
		if err != nil {
			return fmt.Errorf("forget documents: %w", err)
		}
		keys := []string{documentKey(id, RequisitionForm), documentKey(id, BeneficiaryNotice)}
		for _, file := range r.Files {
			keys = append(keys, reportKey(id, file))
		}
		for _, key := range keys {
			if err := s.opts.Documents.Files.Delete(ctx, key); err != nil {
				return fmt.Errorf("forget documents: %w", err)
			}
		}
	}
	return nil
}

// formBound is what tokens of requisitions are bound to.
var formBound = []byte("requisition form")

// formURL makes the URL of an order's requisition, which is valid from now; empty where
// none are made, where there is one, and where the sealer fails: no order waits for that.
func (s *Service) formURL(ctx context.Context, r *Record, now time.Time) string {
	d := s.opts.Documents
	if d == nil || d.FormURL == "" || r.reached(RequisitionCreated) {
		return ""
	}
	plain := append(append([]byte{}, r.TeamID.UUID[:]...), r.ID.UUID[:]...)
	plain = binary.BigEndian.AppendUint64(plain, uint64(now.Add(FormURLFor).Unix()))
	box, err := d.FormKeys.Seal(ctx, plain, formBound)
	if err != nil {
		s.opts.Log.Warn("requisition gets no URL", "order", r.ID.String(), "kind", healthlab.KindOf(err).Error())
		return ""
	}
	enc := base64.RawURLEncoding
	return d.FormURL + "/" + enc.EncodeToString([]byte(box.KeyID)) + "." + enc.EncodeToString(box.Box)
}

// formURLs puts the URL into steps of an order that has no requisition yet.
func (s *Service) formURLs(ctx context.Context, r *Record, steps []Step) {
	url := s.formURL(ctx, r, steps[0].At)
	for i := range steps {
		steps[i].FormURL = url
	}
}

// RequisitionAt returns the requisition that a token of a URL stands for, whoever brings
// it. NotFound (DOCUMENT_NOT_FOUND) for everything else: what is no token, one that has
// expired, an order that is gone.
func (s *Service) RequisitionAt(ctx context.Context, token string) ([]byte, error) {
	none := noDocument("there is no such document, or its URL has expired")
	d := s.opts.Documents
	if d == nil || d.FormURL == "" {
		return nil, none
	}
	name, box, ok := strings.Cut(token, ".")
	enc := base64.RawURLEncoding.Strict()
	id, noName := enc.DecodeString(name)
	sealed, noBox := enc.DecodeString(box)
	if !ok || noName != nil || noBox != nil {
		return nil, none
	}
	plain, err := d.FormKeys.Open(ctx, healthlab.Sealed{KeyID: string(id), Box: sealed}, formBound)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil || len(plain) != 40 || s.now().Unix() >= int64(binary.BigEndian.Uint64(plain[32:])) {
		return nil, none
	}
	team, order := healthlab.TeamID{UUID: uuid.UUID(plain[:16])}, OrderID{UUID: uuid.UUID(plain[16:32])}
	file, err := s.Requisition(ctx, team, order)
	if healthlab.KindOf(err) == healthlab.NotFound {
		return nil, none
	}
	return file, err
}
