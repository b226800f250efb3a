package exchange

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders"
)

// fetchReport returns the content of the report file that belongs to a message with results; empty if there is none.
func (s *Service) fetchReport(ctx context.Context, m Message) ([]byte, error) {
	if m.ReportFile == "" {
		return nil, nil
	}
	r, err := s.allOrders.Get(ctx, m.Team, m.Order)
	var file []byte
	if err == nil {
		file, err = s.orders.Files().Report(ctx, &r, m.ReportFile)
	}
	if healthlab.KindOf(err) == healthlab.NotFound {
		return nil, nil
	}
	return file, err
}

// moveReport moves the report file of a message from the order m.Order to the order to, which got the results. file is
// its content. After an error, which is only logged, the report stays with m.Order, and the service prints a report of
// its own for the order to.
func (s *Service) moveReport(ctx context.Context, m Message, to orders.OrderID, file []byte) {
	if len(file) == 0 || to == m.Order {
		return
	}
	if err := s.orders.Files().StoreReport(ctx, m.Team, to, m.ReportFile, file); err != nil {
		s.shared.Log.Warn("report of results cannot be moved", "order", to.String(), "kind", healthlab.KindOf(err).Error(), "cause", work.Cause(err))
		return // the report stays with the first order
	}
	s.dropReport(ctx, m)
}

func (s *Service) dropReport(ctx context.Context, m Message) {
	// An error is only logged, because the file is erased with the order at the latest.
	if err := s.orders.Files().DropReport(ctx, m.Team, m.Order, m.ReportFile); err != nil {
		s.shared.Log.Warn("report of results cannot be deleted", "order", m.Order.String(), "kind", healthlab.KindOf(err).Error(), "cause", work.Cause(err))
	}
}

// formURL returns the URL of the requisition of an order. Empty if the order has had a requisition before, or if no
// URLs are configured. Empty also after an error, which is only logged: the event is sent without the URL.
func (s *Service) formURL(ctx context.Context, r *orders.Record, now time.Time) string {
	if s.opts.RequisitionURL == nil || r.Reached(orders.RequisitionCreated) {
		return ""
	}
	url, err := s.opts.RequisitionURL(ctx, r.TeamID, r.ID, now)
	if err != nil {
		s.shared.Log.Warn("requisition gets no URL", "order", r.ID.String(), "kind", healthlab.KindOf(err).Error(), "cause", work.Cause(err))
		return ""
	}
	return url
}

func (s *Service) formURLs(ctx context.Context, r *orders.Record, steps []orders.Step) {
	url := s.formURL(ctx, r, steps[0].At)
	for i := range steps {
		steps[i].FormURL = url
	}
}
