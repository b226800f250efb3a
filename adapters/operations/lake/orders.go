package lake

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// Resources of orders and of their results.
const (
	orderResource  = "order"
	resultResource = "result"
)

var orderColumns = []Column{
	userDoc,
	{Name: "order", Type: tables.TypeString, Doc: "pseudonym of the order"},
	{Name: "created_at", Type: tables.TypeInstant},
	{Name: "updated_at", Type: tables.TypeInstant},
	{Name: "lab_test", Type: tables.TypeString, Doc: "slug of the lab test"},
	{Name: "lab", Type: tables.TypeString, Doc: "slug of the laboratory"},
	{Name: "collection_method", Type: tables.TypeString},
	{Name: "status", Type: tables.TypeString, Doc: "latest status"},
	{Name: "status_at", Type: tables.TypeInstant, Doc: "when the latest status was reached"},
	{Name: "events", Type: tables.TypeString, Doc: "JSON list of status and created_at, the oldest first"},
	{Name: "interpretation", Type: tables.TypeString, Doc: "the worst of the results"},
	{Name: "has_missing_results", Type: tables.TypeBool},
	{Name: "priority", Type: tables.TypeBool},
	{Name: "billing_type", Type: tables.TypeString},
	{Name: "origin", Type: tables.TypeString},
	{Name: "activate_by", Type: tables.TypeDate},
}

var resultColumns = []Column{
	userDoc,
	{Name: "order", Type: tables.TypeString, Doc: "pseudonym of the order"},
	{Name: "order_created_at", Type: tables.TypeInstant},
	{Name: "report_status", Type: tables.TypeString, Doc: "partial or final"},
	{Name: "slug", Type: tables.TypeString, Doc: "the laboratory's slug of the marker"},
	{Name: "loinc", Type: tables.TypeString},
	{Name: "type", Type: tables.TypeString, Doc: "numeric, range, comment or coded_value"},
	{Name: "value", Type: tables.TypeFloat64, Doc: "of a numeric result"},
	{Name: "result", Type: tables.TypeString, Doc: "the text of a numeric, range or coded result"},
	{Name: "unit", Type: tables.TypeString},
	{Name: "reference_range", Type: tables.TypeString},
	{Name: "min_range_value", Type: tables.TypeFloat64},
	{Name: "max_range_value", Type: tables.TypeFloat64},
	{Name: "interpretation", Type: tables.TypeString},
	{Name: "resulted_at", Type: tables.TypeInstant},
	{Name: "corrected_at", Type: tables.TypeInstant},
}

// eachOrder calls visit once with each order that was created at or after from, but earlier than before, oldest first.
// Every page begins at the creation time of the last visited order, so that deletions between pages skip nothing.
func (x *export) eachOrder(ctx context.Context, from, before time.Time, visit func(*orders.Order) error) error {
	q := orders.Query{
		Team: x.team, CreatedFrom: from, CreatedBefore: before, Sort: orders.SortCreatedAt,
		Direction: catalogue.Ascending, Size: catalogue.MaxPageSize, Page: 1,
	}
	seen := map[orders.OrderID]bool{}
	for {
		page, err := x.opts.Orders.List(ctx, q)
		if err != nil {
			return err
		}
		fresh := 0
		for i := range page.Orders {
			o := &page.Orders[i]
			if seen[o.ID] {
				continue
			}
			seen[o.ID] = true
			fresh++
			if err := visit(o); err != nil {
				return err
			}
		}
		if len(page.Orders) < q.Size {
			return nil
		}
		if last := page.Orders[len(page.Orders)-1].CreatedAt.Time; fresh > 0 && last.After(q.CreatedFrom) {
			q.CreatedFrom, q.Page = last, 1
		} else {
			q.Page++
		}
	}
}

func orderPrint(o *orders.Order) (print, error) {
	text, err := json.Marshal(o)
	return hash(o.UserID.UUID[:], text), err
}

// results returns the results of an order; nil without any.
func (x *export) results(ctx context.Context, o *orders.Order) (*orders.OrderResults, error) {
	r, err := x.opts.Orders.Results(ctx, x.team, o.ID)
	if errors.Is(err, healthlab.NotFound) || errors.Is(err, healthlab.Precondition) {
		return nil, nil
	}
	return &r, err
}

// resultPrint returns the fingerprint of the results r of an order; r may be nil. Headers is the hash of the order,
// which changes with every report of the laboratory. Content is the hash of the results.
func (x *export) resultPrint(o *orders.Order, r *orders.OrderResults) (Fingerprint, error) {
	var f Fingerprint
	var err error
	if f.Headers, err = orderPrint(o); err != nil || r == nil {
		return f, err
	}
	text, err := json.Marshal(r.Results)
	f.Content = hash(o.ID.UUID[:], text)
	return f, err
}

// scanOrders adds the fingerprints of all orders and results to x.found.
func (x *export) scanOrders(ctx context.Context) error {
	if x.opts.Orders == nil {
		return nil
	}
	return x.eachOrder(ctx, time.Time{}, time.Time{}, func(o *orders.Order) error {
		month := monthOf(o.CreatedAt.UnixMicro())
		p, err := orderPrint(o)
		if err != nil {
			return err
		}
		x.addOrder(partition{orderResource, month}, Fingerprint{p, p})
		var r *orders.OrderResults
		if x.verify {
			if r, err = x.results(ctx, o); err != nil {
				return err
			}
		}
		f, err := x.resultPrint(o, r)
		x.addOrder(partition{resultResource, month}, f)
		return err
	})
}

func (x *export) addOrder(p partition, f Fingerprint) {
	if x.found[p] == nil {
		x.found[p] = &data{}
	}
	x.found[p].print.add(f)
}

// fillOrders writes to t the orders of a month, or their results, as p.resource says, and adds their fingerprints to
// print.
func (x *export) fillOrders(ctx context.Context, t *table, p partition, from, to time.Time, print *Fingerprint) error {
	return x.eachOrder(ctx, from, to, func(o *orders.Order) error {
		if err := x.recordAccess(ctx, o.UserID); err != nil {
			return err
		}
		user, order := textCell(x.pseudonym("user", o.UserID.String())), textCell(x.pseudonym("order", o.ID.String()))
		if p.resource == orderResource {
			f, err := orderPrint(o)
			if err != nil {
				return err
			}
			print.add(Fingerprint{f, f})
			return addRow(t, append([]tables.Cell{user, order}, orderCells(o)...))
		}
		r, err := x.results(ctx, o)
		if err != nil {
			return err
		}
		f, err := x.resultPrint(o, r)
		if err != nil || r == nil {
			print.add(f)
			return err
		}
		print.add(f)
		for i := range r.Results {
			head := []tables.Cell{user, order, timeCell(&o.CreatedAt), textCell(string(r.Metadata.Status))}
			if err := addRow(t, append(head, x.resultCells(&r.Results[i])...)); err != nil {
				return err
			}
		}
		return nil
	})
}

func addRow(t *table, row []tables.Cell) error {
	for i, c := range row {
		t.set(i, c)
	}
	return t.added(1)
}

func orderCells(o *orders.Order) []tables.Cell {
	type event struct {
		Status    orders.Status  `json:"status"`
		CreatedAt healthlab.Time `json:"created_at"`
	}
	events := make([]event, len(o.Events))
	for i, e := range o.Events {
		events[i] = event{e.Status, e.CreatedAt}
	}
	history, _ := json.Marshal(events) // strings and times always encode
	var lab, interpretation, activate tables.Cell
	if o.LabTest.Lab != nil {
		lab = textCell(o.LabTest.Lab.Slug)
	}
	if o.Interpretation != nil {
		interpretation = textCell(string(*o.Interpretation))
	}
	if o.ActivateBy != nil {
		activate = intCell(o.ActivateBy.At(time.UTC).Unix() / (24 * 60 * 60))
	}
	return []tables.Cell{
		timeCell(&o.CreatedAt), timeCell(&o.UpdatedAt), textCell(o.LabTest.Slug), lab, textCell(string(o.Method())),
		textCell(string(o.LastEvent.Status)), timeCell(&o.LastEvent.CreatedAt), textCell(string(history)), interpretation,
		boolCell(o.HasMissingResults), boolCell(&o.Priority), textCell(string(o.BillingType)), textCell(string(o.Origin)), activate,
	}
}

func (x *export) resultCells(r *labresult.Result) []tables.Cell {
	value, text := tables.Cell{}, textCell(r.Result)
	if r.Type == labresult.Numeric {
		value = numberCell(r.Value)
	}
	if r.Type == labresult.Comment && !x.opts.Identified {
		text = tables.Cell{}
	}
	return []tables.Cell{
		textCell(r.Slug), textPtr(r.LOINC), textCell(string(r.Type)), value, text, textPtr(r.Unit), textPtr(r.ReferenceRange),
		numberCell(r.MinRangeValue), numberCell(r.MaxRangeValue), textCell(string(r.Interpretation)), timeCell(r.Timestamp), timeCell(r.CorrectedAt),
	}
}

func timeCell(t *healthlab.Time) tables.Cell {
	if t == nil || t.IsZero() {
		return tables.Cell{}
	}
	return intCell(t.UnixMicro())
}

func boolCell(b *bool) tables.Cell {
	switch {
	case b == nil:
		return tables.Cell{}
	case *b:
		return intCell(1)
	}
	return intCell(0)
}

func textPtr(s *string) tables.Cell {
	if s == nil {
		return tables.Cell{}
	}
	return tables.Cell{Valid: true, Text: *s}
}

func numberCell(n *catalogue.Number) tables.Cell {
	if n == nil {
		return tables.Cell{}
	}
	f, _ := n.Float64()
	return floatCell(f)
}
