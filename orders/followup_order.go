package orders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// UpdateReason is the reason for replacing an order.
type UpdateReason string

// IncorrectLab: the first order went to the wrong lab. The new order does not inherit its lab account.
const IncorrectLab UpdateReason = "INCORRECT_LAB"

// CreateRequest is a PlaceRequest that may replace an earlier order.
type CreateRequest struct {
	PlaceRequest
	// ParentID is the order that is replaced; nil for none.
	ParentID *OrderID `json:"parent_id"`
	// UpdateReason is allowed with ParentID only. Without UpdateReason, the new order inherits the parent's lab
	// account, if the request gives no account and the lab is the same.
	UpdateReason *UpdateReason `json:"update_reason"`
}

// Check returns Invalid with every problem of the request.
func (r *CreateRequest) Check(today healthlab.Date) error {
	var p healthlab.Problems
	if r.UpdateReason != nil {
		rules.OneOf(&p, *r.UpdateReason, []UpdateReason{IncorrectLab}, "update_reason")
		if r.ParentID == nil {
			p.Add("without_parent", "must be left out if parent_id is not given", "update_reason")
		}
	}
	return joinProblems(p, r.PlaceRequest.Check(today))
}

// joinProblems returns one Invalid error with the problems p and those of err; nil if there are none. err is nil or an
// InvalidError.
func joinProblems(p healthlab.Problems, err error) error {
	var invalid *healthlab.InvalidError
	if errors.As(err, &invalid) {
		p = append(p, invalid.Problems...)
	}
	return p.Err()
}

// Create places an order as [Service.Place] does. With ParentID, the new order replaces the parent: it joins the
// parent's transaction, and the parent is cancelled if its status allows that. RuleErrors as Place, and
// MARKER_NOT_IN_LAB, ORDER_NOT_FOUND for the parent, ALREADY_RECREATED. If an order with the given id exists, Create
// returns it; a zero id means a new one.
func (s *Service) Create(ctx context.Context, team healthlab.TeamID, id OrderID, req CreateRequest) (Order, error) {
	return s.Plans().Create(ctx, team, req).Run(ctx, id)
}

func (s *Service) create(ctx context.Context, team healthlab.TeamID, ids planned, req CreateRequest, from *offer) (Order, error) {
	at := s.now()
	if err := req.Check(rules.UTCDay(at)); err != nil {
		return Order{}, err
	}
	m := placeOptions{created: true}
	if req.ParentID != nil {
		parent, err := s.store.Get(ctx, team, *req.ParentID)
		if err != nil {
			return Order{}, fmt.Errorf("create order: %w", rules.NotFound(err, OrderNotFound, "the team has no such order to replace"))
		}
		if req.UpdateReason == nil {
			m.carried = parent.LabAccountID
		}
	}
	r, err := s.prepare(ctx, team, ids, req.PlaceRequest, from, m, at)
	if err != nil {
		return Order{}, fmt.Errorf("create order: %w", err)
	}
	if req.ParentID == nil {
		return s.insert(ctx, r, at)
	}
	r.Origin = OriginRecreation
	_, child, err := s.insertFollowUp(ctx, *req.ParentID, r, at, func(parent *Record) (Trigger, error) {
		if !parent.ReplacedBy.IsZero() {
			return "", rules.Broken(AlreadyRecreated, "the order was replaced before")
		}
		for _, m := range parent.OrderTransaction.Orders {
			if m.Origin == OriginRecreation && m.ID != r.ID && m.ParentID != nil && *m.ParentID == parent.ID {
				return "", rules.Broken(AlreadyRecreated, "the order was replaced before")
			}
		}
		if parent.Cancellable() {
			return CancelRequested, nil
		}
		return "", nil
	})
	if err != nil {
		return Order{}, fmt.Errorf("create order: %w", err)
	}
	return child.Order, nil
}

// insertFollowUp stores child as an order that follows from the order parent. It calls then with the stored parent and
// applies the returned trigger to the parent; an empty trigger leaves the parent's status unchanged. It returns the
// parent and the child as stored. The events of both show their transaction after the change.
func (s *Service) insertFollowUp(ctx context.Context, parent OrderID, child Record, at time.Time, then func(*Record) (Trigger, error)) (Record, Record, error) {
	st, first := Step{At: at, EventID: s.opts.NewID()}, s.opts.NewID()
	return s.store.InsertAfter(ctx, parent, child, func(p, c *Record) ([]healthlab.Event, error) {
		on, err := then(p)
		if err != nil {
			return nil, err
		}
		return AddChild(p, c, st, on, first)
	})
}

// AddChild begins the child order c with an event whose id is first, and applies the trigger on to the parent order p;
// an empty trigger leaves the status of p unchanged. c joins the transaction of p, or gets a transaction of its own if
// c is for another user. AddChild returns the events about both orders.
func AddChild(p, c *Record, st Step, on Trigger, first uuid.UUID) ([]healthlab.Event, error) {
	if _, err := Begin(&c.Order, st.At, first); err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(slices.Clone(p.OrderTransaction.Orders), func(m TransactionMember) bool { return m.ID == c.ID })
	apart := p.UserID != c.UserID
	if apart {
		// Orders of two persons share no transaction, because the results of a transaction are read together.
		c.OrderTransaction = NewTransaction(TransactionID{uuid.NewSHA1(c.ID.UUID, []byte("transaction"))}, []TransactionMember{c.Member()})
		p.ReplacedBy = c.ID
		p.OrderTransaction = NewTransaction(p.OrderTransaction.ID, others)
	} else {
		p.OrderTransaction = NewTransaction(p.OrderTransaction.ID, append(others, c.Member()))
	}
	var events []healthlab.Event
	if on != "" {
		st.On = on
		more, err := p.Apply(st)
		if err != nil {
			return nil, err
		}
		events = more
	}
	// Events of the child show the present state of the parent.
	if !apart {
		c.OrderTransaction = p.OrderTransaction
	}
	created, err := c.NewEvent(EventOrderCreated, first, healthlab.At(st.At))
	if err != nil {
		return nil, err
	}
	c.PlanSubmission(st.At)
	return append(events, created...), nil
}

// ImportRequest imports an order that was placed outside the service.
type ImportRequest struct {
	healthlab.Private

	UserID           healthlab.UserID           `json:"user_id"`
	BillingType      catalogue.BillingType      `json:"billing_type"`
	OrderSet         catalogue.OrderSet         `json:"order_set"`
	CollectionMethod catalogue.CollectionMethod `json:"collection_method"`
	Physician        *people.PhysicianInput     `json:"physician"`
	PatientDetails   people.PatientDetailsInput `json:"patient_details"`
	// PatientAddress is stored unchanged; the formats of its state and zip are not checked.
	PatientAddress people.ImportAddressInput `json:"patient_address"`
	// SampleID is the lab's number of the order, which no other order may have.
	SampleID string `json:"sample_id"`
	// LabAccountID may be an account with the status pending.
	LabAccountID *catalogue.LabAccountID `json:"lab_account_id"`
}

// Check returns Invalid with every problem of the request.
func (r *ImportRequest) Check(today healthlab.Date) error {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	c.Text(r.SampleID, "sample_id", 1, rules.MaxText)
	if r.BillingType == "" {
		c.Add("missing", "is required", "billing_type")
	}
	if r.CollectionMethod == "" {
		c.Add("missing", "is required", "collection_method")
	}
	req := r.place()
	a, at := &req.PatientAddress, c.Under("patient_address")
	at.Text(a.ReceiverName, "receiver_name", 1, rules.MaxText)
	if zip := rules.ZipOf(a.Zip, a.ZipCode); at.Text(zip, "zip", 1, rules.MaxText) {
		at.OneZip(zip, a.ZipCode)
	}
	at.Text(a.State, "state", 1, rules.MaxText)
	// The address formats of imported orders are not checked: valid values take their place in this check.
	a.ReceiverName, a.State, a.Zip, a.ZipCode = "", "AL", "35004", nil
	return joinProblems(p, req.Check(today))
}

func (r *ImportRequest) place() PlaceRequest {
	set := r.OrderSet
	req := PlaceRequest{UserID: r.UserID, OrderSet: &set, Physician: r.Physician, BillingType: r.BillingType,
		LabAccountID: r.LabAccountID, PatientDetails: r.PatientDetails, PatientAddress: people.PatientAddressInput(r.PatientAddress)}
	if r.CollectionMethod != "" {
		req.CollectionMethod = &r.CollectionMethod
	}
	return req
}

// Import stores an order that was placed outside the service. Its requisition exists already, so the order is
// not submitted to the lab. Forbidden unless the team has imports enabled; Invalid if another order has its
// sample id; RuleErrors as [Service.Place].
func (s *Service) Import(ctx context.Context, team healthlab.TeamID, req ImportRequest) (Order, error) {
	return s.ImportAs(ctx, team, OrderID{}, req)
}

// ImportAs is Import with the id of the order, as [Service.PlaceAs]: if the order exists, it is returned.
func (s *Service) ImportAs(ctx context.Context, team healthlab.TeamID, id OrderID, req ImportRequest) (Order, error) {
	return s.Plans().Import(ctx, team, req).Run(ctx, id)
}

func (s *Service) importOrder(ctx context.Context, team healthlab.TeamID, ids planned, req ImportRequest, from *offer) (Order, error) {
	at := s.now()
	settings, err := s.Settings(ctx, team)
	if err != nil {
		return Order{}, err
	}
	if !settings.OrderImport {
		return Order{}, rules.NotEnabled("the import of orders")
	}
	if err := req.Check(rules.UTCDay(at)); err != nil {
		return Order{}, err
	}
	r, err := s.prepare(ctx, team, ids, req.place(), from, placeOptions{imported: true}, at)
	if err != nil {
		return Order{}, fmt.Errorf("import order: %w", err)
	}
	r.SampleID = &req.SampleID
	o, err := s.insert(ctx, r, at, Imported)
	if errors.Is(err, healthlab.Conflict) {
		var p healthlab.Problems
		p.Add("taken", "must differ from the sample ids of other orders", "sample_id")
		return Order{}, p.Err()
	}
	return o, err
}

// Reorder returns a new order for the patient and lab test of r. It has no events yet.
func (r *Record) Reorder(id OrderID, origin Origin, at healthlab.Time) Record {
	c := *r
	c.ID, c.Origin, c.CreatedAt, c.UpdatedAt = id, origin, at, at
	c.Events, c.LastEvent, c.Status = nil, OrderEvent{}, ""
	c.SampleID, c.RequisitionFormURL, c.ActivateBy, c.Scheduled = nil, nil, nil, false
	c.Interpretation, c.HasMissingResults, c.Results, c.ReportedAt, c.LatestReportAt, c.CriticalSent = nil, nil, nil, time.Time{}, time.Time{}, false
	c.Attached, c.Awaited = nil, nil
	c.Files, c.ReportFile, c.Notice, c.HasABN = nil, "", nil, false
	c.ExpectedResultByDate, c.WorstCaseResultByDate = nil, nil
	c.Lab, c.Messages, c.Notifications, c.ReplacedBy = LabSubmission{}, nil, Notifications{Notify: r.Notifications.Notify}, OrderID{}
	c.Visits, c.VisitWork = nil, Work{}
	return c
}
