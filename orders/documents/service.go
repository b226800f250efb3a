package documents

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// Options are the options of a Service. The zero value, and nil, mean the defaults.
type Options struct {
	// Links makes and opens URLs of requisitions. Default: there are no such URLs.
	Links *Links
	// TimeZone returns the time zone of a user, for the times in documents. Default: UTC.
	TimeZone func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (*time.Location, error)
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Service prints the documents of orders. It is safe for concurrent use. A team can access its own orders only;
// those of another team are [healthlab.NotFound].
type Service struct {
	orders  *orders.Service
	printer Printer // nil if no documents can be printed
	opts    Options
}

// New returns a Service for the orders of the service of. Without a printer every document is NotFound
// (DOCUMENT_NOT_FOUND). With a file store ([orders.Options].Files), requisitions and notices are stored when they are
// first printed; other documents are printed at each call.
func New(of *orders.Service, printer Printer, opts *Options) *Service {
	s := &Service{orders: of, printer: printer}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.TimeZone == nil {
		s.opts.TimeZone = func(context.Context, healthlab.TeamID, healthlab.UserID) (*time.Location, error) {
			return time.UTC, nil
		}
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	return s
}

// List returns the documents that an order has at present, in the order in which a lab test needs them. It is
// empty without a printer. NotFound if the order does not exist.
func (s *Service) List(ctx context.Context, team healthlab.TeamID, id orders.OrderID) ([]DocumentKind, error) {
	r, err := s.orders.Record(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("list documents: %w", err)
	}
	if s.printer == nil {
		return nil, nil
	}
	sheets, err := s.orders.Catalogue().Instructions(ctx, orderedTest(&r))
	if err != nil {
		return nil, fmt.Errorf("list documents: %w", err)
	}
	has := map[DocumentKind]bool{
		RequisitionForm: hasRequisition(&r), SpecimenLabels: hasRequisition(&r), BeneficiaryNotice: hasNotice(&r),
		CollectionInstructions: len(sheets) > 0, ResultsReport: r.HasResults(),
	}
	return slices.DeleteFunc(slices.Clone(kinds), func(k DocumentKind) bool { return !has[k] }), nil
}

func hasRequisition(r *orders.Record) bool { return r.Reached(orders.RequisitionCreated) }

func hasNotice(r *orders.Record) bool { return r.HasABN && r.Notice != nil && r.HasRequisition() }

func orderedTest(r *orders.Record) catalogue.LabTest {
	t := r.LabTest
	t.Method = r.Method()
	return t
}

// Requisition returns the requisition of an order as a PDF file. NotFound
// (DOCUMENT_NOT_FOUND) before the lab has accepted the order, and for imported orders,
// whose requisition was made elsewhere.
func (s *Service) Requisition(ctx context.Context, team healthlab.TeamID, id orders.OrderID) ([]byte, error) {
	r, err := s.printable(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("print requisition: %w", err)
	}
	if !hasRequisition(&r) {
		return nil, fmt.Errorf("print requisition: %w", noDocument("the order has no requisition"))
	}
	return s.printOnce(ctx, &r, RequisitionForm, func() (Document, error) {
		var coverage *people.Coverage
		if r.HealthInsuranceID != nil {
			c, err := s.orders.People().Insurance(ctx, team, *r.HealthInsuranceID)
			if kind := healthlab.KindOf(err); err != nil && kind != healthlab.NotFound && kind != healthlab.Unimplemented {
				return Document{}, err
			}
			if err == nil {
				coverage = &c
			}
		}
		zone, err := s.printZone(ctx, &r)
		return requisitionDocument(&r, coverage, s.orders.RequisitionComment(&r), zone), err
	})
}

// Labels returns labels for the tubes of an order as a PDF file. Invalid without a collection time, or with a
// count out of range; NotFound before there is a requisition, and for imported orders.
func (s *Service) Labels(ctx context.Context, team healthlab.TeamID, id orders.OrderID, req LabelsRequest) ([]byte, error) {
	var p healthlab.Problems
	if req.CollectedAt.IsZero() {
		p.Add("required", "is required", "collection_date")
	}
	if req.Count < 1 || req.Count > MaxLabels {
		p.Add("range", fmt.Sprintf("must be from 1 to %d", MaxLabels), "number_of_labels")
	}
	if req.Stock != "" && !slices.Contains(LabelStocks, req.Stock) {
		rules.OneOf(&p, req.Stock, LabelStocks, "stock")
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	r, err := s.printable(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("print labels: %w", err)
	}
	if !hasRequisition(&r) {
		return nil, fmt.Errorf("print labels: %w", noDocument("the order has no requisition"))
	}
	return s.print(ctx, team, labelDocument(&r, req))
}

// CoverageNotice returns the advance beneficiary notice of an order as a PDF file, as it was first printed.
// NotFound if the order has none, and before the lab has accepted the order.
func (s *Service) CoverageNotice(ctx context.Context, team healthlab.TeamID, id orders.OrderID) ([]byte, error) {
	r, err := s.printable(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("print notice: %w", err)
	}
	if !hasNotice(&r) {
		return nil, fmt.Errorf("print notice: %w", noDocument("the order has no advance beneficiary notice"))
	}
	return s.printOnce(ctx, &r, BeneficiaryNotice, func() (Document, error) { return noticeDocument(&r), nil })
}

// OrderInstructions returns the collection instructions for an order as a PDF file. NotFound if there are none.
func (s *Service) OrderInstructions(ctx context.Context, team healthlab.TeamID, id orders.OrderID) ([]byte, error) {
	r, err := s.printable(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("print instructions: %w", err)
	}
	return s.instructions(ctx, team, orderedTest(&r), r.CreatedAt.Time)
}

// LabTestInstructions returns the collection instructions of a lab test as a PDF file. NotFound if there are
// none.
func (s *Service) LabTestInstructions(ctx context.Context, team healthlab.TeamID, id catalogue.LabTestID) ([]byte, error) {
	t, err := s.orders.Catalogue().LabTest(ctx, team, nil, id)
	if err != nil {
		return nil, fmt.Errorf("print instructions: %w", err)
	}
	return s.instructions(ctx, team, t, time.Time{})
}

func (s *Service) instructions(ctx context.Context, team healthlab.TeamID, t catalogue.LabTest, at time.Time) ([]byte, error) {
	sheets, err := s.orders.Catalogue().Instructions(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("print instructions: %w", err)
	}
	if len(sheets) == 0 {
		return nil, fmt.Errorf("print instructions: %w", noDocument("the lab test of the order has no collection instructions"))
	}
	return s.print(ctx, team, instructions(t, sheets, at))
}

// Report returns the results of an order as a PDF file: the lab's own report if it sent one, else one that this
// service prints. NotFound before the first result.
func (s *Service) Report(ctx context.Context, team healthlab.TeamID, id orders.OrderID) ([]byte, error) {
	r, err := s.printable(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("print report: %w", err)
	}
	if !r.HasResults() {
		return nil, rules.Missing(orders.ResultNotFound, "the order has no result yet")
	}
	own, err := s.orders.Files().Report(ctx, &r, r.ReportFile)
	if err == nil || healthlab.KindOf(err) != healthlab.NotFound {
		return own, err
	}
	zone, err := s.printZone(ctx, &r)
	if err != nil {
		return nil, fmt.Errorf("print report: %w", err)
	}
	return s.print(ctx, team, reportDocument(&r, *r.Results, zone))
}

// TransactionReport returns the results of all orders of a transaction as one PDF file. The heading shows the
// order with the newest results. NotFound before any result.
func (s *Service) TransactionReport(ctx context.Context, team healthlab.TeamID, id orders.TransactionID) ([]byte, error) {
	if s.printer == nil {
		return nil, noPrinter()
	}
	results, of, err := s.orders.TransactionRecords(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("print report: %w", err)
	}
	newest := &of[len(of)-1]
	zone, err := s.printZone(ctx, newest)
	if err != nil {
		return nil, fmt.Errorf("print report: %w", err)
	}
	return s.print(ctx, team, reportDocument(newest, results.Report, zone))
}

// print lays out a document as a PDF file, in the paper size of the team's settings.
func (s *Service) print(ctx context.Context, team healthlab.TeamID, d Document) ([]byte, error) {
	if s.printer == nil {
		return nil, noPrinter()
	}
	settings, err := s.orders.Settings(ctx, team)
	if err != nil {
		return nil, err
	}
	d.Paper = settings.Paper
	if len(d.Labels) > 0 && d.Stock == "" {
		d.Stock = LabelRoll
		if d.Paper == orders.A4 {
			d.Stock = LabelSheet
		}
	}
	file, err := s.printer.Print(ctx, d.withoutEmpty())
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("print %s: %v", d.Kind, err) // %v: a layout error is not the caller's error
	}
	return file, nil
}

// printable returns an order as it is stored. NotFound (DOCUMENT_NOT_FOUND) if the service has no printer.
func (s *Service) printable(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
	r, err := s.orders.Record(ctx, team, id)
	if err == nil && s.printer == nil {
		err = noPrinter()
	}
	return r, err
}

// printZone returns the time zone of an order's user.
func (s *Service) printZone(ctx context.Context, r *orders.Record) (*time.Location, error) {
	zone, err := s.opts.TimeZone(ctx, r.TeamID, r.UserID)
	if err != nil {
		return nil, fmt.Errorf("time zone of the user: %w", err)
	}
	return zone, nil
}

func noPrinter() error {
	return noDocument("this installation has no printer, so it prints no documents")
}

func noDocument(msg string) error { return rules.Missing(orders.DocumentNotFound, msg) }

// printOnce returns a stored document of an order. If none is stored, it prints the document that build returns, and
// stores the file.
func (s *Service) printOnce(ctx context.Context, r *orders.Record, kind DocumentKind, build func() (Document, error)) ([]byte, error) {
	file, err := s.orders.Files().Document(ctx, r, string(kind))
	if err == nil || healthlab.KindOf(err) != healthlab.NotFound {
		return file, err
	}
	d, err := build()
	if err != nil {
		return nil, fmt.Errorf("print %s: %w", kind, err)
	}
	if file, err = s.print(ctx, r.TeamID, d); err != nil {
		return nil, err
	}
	return file, s.orders.Files().StoreDocument(ctx, r, string(kind), file)
}

// RequisitionAt returns the requisition for the token in a URL of [Links]. The token is the only credential.
// NotFound (DOCUMENT_NOT_FOUND) for an invalid or expired token and for a deleted order.
func (s *Service) RequisitionAt(ctx context.Context, token string) ([]byte, error) {
	team, order, err := s.opts.Links.open(ctx, token, s.opts.Now())
	if err != nil {
		return nil, err
	}
	file, err := s.Requisition(ctx, team, order)
	if healthlab.KindOf(err) == healthlab.NotFound {
		return nil, noLink()
	}
	return file, err
}
