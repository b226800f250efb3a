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

// Place places an order for a known patient. It stores the order with its first event; the order is submitted
// to the lab in the background, now or on its day of activation.
//
// Errors: Invalid lists every problem of the request. Then the business rules are checked, and the first broken
// one is returned: NotFound for a user or a lab test that the team does not have, Forbidden for a feature that
// is not enabled, else Precondition.
func (s *Service) Place(ctx context.Context, team healthlab.TeamID, req PlaceRequest) (Order, error) {
	return s.PlaceAs(ctx, team, OrderID{}, req)
}

// PlaceAs is [Service.Place] with the order's id, so that a repeated call places no second order: it returns
// the order with this id, whatever the request. A zero id means a new one. Conflict if another team's order has
// the id.
func (s *Service) PlaceAs(ctx context.Context, team healthlab.TeamID, id OrderID, req PlaceRequest) (Order, error) {
	return s.Plans().Place(ctx, team, req).Run(ctx, id)
}

func (s *Service) place(ctx context.Context, team healthlab.TeamID, ids planned, req PlaceRequest, from *offer) (Order, error) {
	at := s.now()
	if err := req.Check(rules.UTCDay(at)); err != nil {
		return Order{}, err
	}
	r, err := s.prepare(ctx, team, ids, req, from, placeOptions{}, at)
	if err != nil {
		return Order{}, fmt.Errorf("place order: %w", err)
	}
	return s.insert(ctx, r, at)
}

// placeOptions select the rules that depend on the way in which an order is placed.
type placeOptions struct {
	// imported is true if the order was placed outside the service.
	imported bool
	// created is true for [Service.Create]. An account of another lab than that of the tests is then reported as
	// MARKER_NOT_IN_LAB in place of LAB_ACCOUNT_WRONG_LAB.
	created bool
	// carried is the lab account of the order that this one replaces; nil for none.
	carried *catalogue.LabAccountID
}

// chooseAccount returns the lab account of an order at lab: want, if the request gives one, else the account of the
// replaced order, else the default account.
func (m placeOptions) chooseAccount(lab *catalogue.Lab, want *catalogue.LabAccountID, accounts catalogue.Accounts) (*catalogue.LabAccount, error) {
	if a := m.inheritedAccount(lab, accounts); want == nil && a != nil {
		if a.Status != catalogue.LabAccountActive {
			return nil, rules.Broken(catalogue.LabAccountNotActive, "the lab account of the replaced order must have the status active")
		}
		return a, nil
	}
	a, err := catalogue.AccountFor(lab, want, accounts, m.imported)
	var rule *healthlab.RuleError
	if m.created && errors.As(err, &rule) && rule.Type == catalogue.LabAccountWrongLab {
		return nil, rules.Broken(catalogue.MarkerNotInLab, "the ordered lab tests and markers must be of the lab account's lab")
	}
	return a, err
}

// inheritedAccount returns the account of the replaced order, if it is at this lab and the team may still use
// it; else nil.
func (m placeOptions) inheritedAccount(lab *catalogue.Lab, accounts catalogue.Accounts) *catalogue.LabAccount {
	if m.carried == nil || lab == nil {
		return nil
	}
	for _, a := range accounts.Linked {
		if a.ID == *m.carried && a.Lab == lab.Slug {
			return &a
		}
	}
	if a, ok := accounts.Platform[lab.Slug]; ok && a.ID == *m.carried {
		return &a
	}
	return nil
}

// prepare checks the business rules of a request, and returns the new order, which has no events yet. from is the
// catalogue's data for the request, m selects the rules, and at is the time of the order.
func (s *Service) prepare(ctx context.Context, team healthlab.TeamID, ids planned, req PlaceRequest, from *offer, m placeOptions, at time.Time) (Record, error) {
	if err := people.CheckUser(ctx, s.users, team, req.UserID); err != nil {
		return Record{}, err
	}
	settings, err := s.Settings(ctx, team)
	if err != nil {
		return Record{}, err
	}
	chosen, accounts, err := from.Choose(settings.OnSiteCollection)
	if err != nil {
		return Record{}, err
	}
	account, err := m.chooseAccount(chosen.LabTest.Lab, from.Account(), accounts)
	if err != nil {
		return Record{}, err
	}
	billing := req.BillingType
	if billing == "" {
		billing = catalogue.ClientBill
	}
	insurance, err := s.checkPayment(ctx, team, req, m, chosen.LabTest, account, billing)
	if err != nil {
		return Record{}, err
	}
	consents := settings.RequiredConsents
	if m.imported {
		consents = nil // consents were given where the order was placed
	}
	if err := checkOrderingPhysician(account, req.Physician, req.Consents, consents); err != nil {
		return Record{}, err
	}
	proxy, err := s.medicalProxy(ctx, team, req.UserID, req.PatientDetails, rules.UTCDay(at))
	if err != nil {
		return Record{}, err
	}
	if err := checkAge(req.PatientDetails, proxy, rules.UTCDay(at), settings.Minors); err != nil {
		return Record{}, err
	}
	var aoe []catalogue.AOEAnswer
	if !m.imported { // the questions were answered where the order was placed
		if aoe, err = catalogue.CheckAnswers(chosen.LabTest, req.AOEAnswers, s.opts.FastingCodes); err != nil {
			return Record{}, err
		}
	}
	if err := notBefore(req.ActivateBy, at); err != nil {
		return Record{}, err
	}
	if err := s.catalogue.StoreBuilt(ctx, team, &chosen.LabTest, at); err != nil {
		return Record{}, err
	}
	r := s.newRecord(team, ids, req.UserID, chosen, account, at)
	r.PatientDetails, r.PatientAddress = req.PatientDetails.Details(), req.PatientAddress.Address()
	r.PatientDetails.MedicalProxy = proxy
	r.Priority, r.BillingType, r.ICDCodes, r.HealthInsuranceID = req.Priority, billing, slices.Clone(req.ICDCodes), insurance
	r.ActivateBy, r.Scheduled = req.ActivateBy, req.ActivateBy != nil
	r.Passthrough, r.ClinicalNotes = req.Passthrough, req.ClinicalNotes
	r.Physician, r.PhysicianInput = req.Physician.Physician(), req.Physician
	r.HealthInsurance = req.HealthInsurance
	r.Consents, r.AOEAnswers, r.CreatorMemberID = people.FillConsents(req.Consents, at), aoe, req.CreatorMemberID
	if account != nil {
		r.Comment = comment(req.ClinicalNotes, account.DefaultClinicalNotes)
	}
	return r, nil
}

// selection returns the selected tests of the request. RuleErrors: NO_TESTS_SELECTED and
// CONFLICTING_TEST_SELECTION, then those of [catalogue.OrderSet.Select].
func (r *PlaceRequest) selection() (catalogue.Selection, error) {
	switch {
	case r.OrderSet == nil && r.LabTestID == nil:
		return catalogue.Selection{}, rules.Broken(catalogue.NoTestsSelected, "order_set is required")
	case r.OrderSet != nil && r.LabTestID != nil:
		return catalogue.Selection{}, rules.Broken(catalogue.ConflictingSelection, "give order_set or lab_test_id, not both")
	case r.OrderSet == nil:
		return catalogue.Selection{LabTests: []catalogue.LabTestID{*r.LabTestID}, Method: r.CollectionMethod, Account: r.LabAccountID}, nil
	}
	return r.OrderSet.Select(r.CollectionMethod, r.LabAccountID)
}

// checkPayment checks the billing of an order. It returns the id of the insurance record if an insurer pays, else nil.
// An imported order needs no diagnosis code, because the lab has it already.
func (s *Service) checkPayment(ctx context.Context, team healthlab.TeamID, req PlaceRequest, by placeOptions, t catalogue.LabTest, a *catalogue.LabAccount, billing catalogue.BillingType) (*uuid.UUID, error) {
	if err := catalogue.CheckBilling(a, billing, req.PatientAddress.State); err != nil {
		return nil, err
	}
	if billing != catalogue.CommercialInsurance {
		return nil, nil
	}
	if len(req.ICDCodes) == 0 && !by.imported {
		return nil, rules.Broken(ICDCodesRequired, "icd_codes: must have at least one code if an insurer pays")
	}
	if slices.ContainsFunc(req.ICDCodes, func(c string) bool { return !s.opts.Registry.ValidDiagnosis(c) }) {
		return nil, rules.Broken(ICDCodeInvalid, "icd_codes: each must be a valid ICD-10 code")
	}
	none := rules.Broken(InsuranceMissing, "the patient has no primary insurance record")
	if s.opts.People == nil {
		return nil, none
	}
	c, err := s.opts.People.CoverageAt(ctx, team, req.UserID, true, time.Time{})
	if errors.Is(err, healthlab.NotFound) {
		return nil, none
	}
	if err != nil {
		return nil, fmt.Errorf("find insurance: %w", err)
	}
	for _, m := range t.Markers {
		if t.Lab != nil && !s.opts.Registry.Insurable(t.Lab.Slug, m, req.PatientAddress.State) {
			return nil, rules.Broken(MarkerNotInsurable, "billing_type: must not be commercial_insurance, because no insurer pays for one of the markers in the patient's state")
		}
	}
	return &c.ID, nil
}

// medicalProxy returns the medical proxy of the request. If the request has none and the patient is a minor on the
// given day, it returns the proxy in the user's demographics. Nil if there is none.
func (s *Service) medicalProxy(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, p people.PatientDetailsInput, day healthlab.Date) (*people.GuarantorDetails, error) {
	if p.MedicalProxy != nil || people.Age(p.DOB, day) >= adult || s.opts.People == nil {
		return p.MedicalProxy.Details(), nil
	}
	info, err := s.opts.People.UserInfo(ctx, team, user)
	if errors.Is(err, healthlab.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find demographics: %w", err)
	}
	return info.MedicalProxy, nil
}

// newRecord returns an order before its first event.
func (s *Service) newRecord(team healthlab.TeamID, ids planned, user healthlab.UserID, chosen catalogue.Chosen, a *catalogue.LabAccount, at time.Time) Record {
	now := healthlab.At(at)
	r := Record{Order: Order{
		ID: ids.order, TeamID: team, UserID: user, LabTest: chosen.LabTest, Origin: OriginInitial, BillingType: catalogue.ClientBill,
		Details:          NewDetails(chosen.Method, s.opts.NewID(), s.opts.NewID(), now),
		CreatedAt:        now,
		UpdatedAt:        now,
		OrderTransaction: OrderTransaction{ID: ids.transaction},
	}}
	r.Notifications.Notify = s.opts.Messenger != nil
	if a != nil {
		r.LabAccountID, r.LabAccountNumber = &a.ID, a.ProviderAccountID
		r.Comment = comment(nil, a.DefaultClinicalNotes)
	}
	return r
}

// insert stores a new order with its first event. In the same write it applies the triggers in then, one after another.
func (s *Service) insert(ctx context.Context, r Record, at time.Time, then ...Trigger) (Order, error) {
	first := s.opts.NewID()
	steps := make([]Step, len(then))
	for i, on := range then {
		steps[i] = Step{On: on, At: at, EventID: s.opts.NewID()}
	}
	stored, err := s.store.Insert(ctx, r, func(r *Record) ([]healthlab.Event, error) {
		events, err := Begin(&r.Order, at, first)
		for _, st := range steps {
			if err != nil {
				return nil, err
			}
			var more []healthlab.Event
			more, err = Apply(&r.Order, st)
			events = append(events, more...)
		}
		r.PlanSubmission(at)
		return events, err
	})
	if err != nil {
		return Order{}, fmt.Errorf("place order: %w", rules.NotFound(err, people.UserNotFound, "the team has no such user"))
	}
	return stored.Order, nil
}
