package orders

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// PlaceTestkit orders a kit whose patient is not known yet. The lab sends the kit at once; [Service.Register]
// registers it for its patient. Errors as [Service.Place].
func (s *Service) PlaceTestkit(ctx context.Context, team healthlab.TeamID, req TestkitRequest) (Order, error) {
	return s.PlaceTestkitAs(ctx, team, OrderID{}, req)
}

// PlaceTestkitAs is PlaceTestkit with the id of the order, as [Service.PlaceAs]: if the
// order exists, it is returned.
func (s *Service) PlaceTestkitAs(ctx context.Context, team healthlab.TeamID, id OrderID, req TestkitRequest) (Order, error) {
	return s.Plans().Testkit(ctx, team, req).Run(ctx, id)
}

func (s *Service) placeTestkit(ctx context.Context, team healthlab.TeamID, ids planned, req TestkitRequest, from *offer) (Order, error) {
	at := s.now()
	if err := req.Check(); err != nil {
		return Order{}, err
	}
	r, err := s.prepareKit(ctx, team, ids, req, from, at)
	if err != nil {
		return Order{}, fmt.Errorf("place testkit: %w", err)
	}
	return s.insert(ctx, r, at, PatientAwaited)
}

func (s *Service) prepareKit(ctx context.Context, team healthlab.TeamID, ids planned, req TestkitRequest, from *offer, at time.Time) (Record, error) {
	if err := people.CheckUser(ctx, s.users, team, req.UserID); err != nil {
		return Record{}, err
	}
	chosen, accounts, err := from.Choose(true) // on-site collection is allowed here and refused below, as every method but testkit
	if err != nil {
		return Record{}, err
	}
	if chosen.Method != catalogue.Testkit {
		return Record{}, rules.Broken(catalogue.MethodNotSupported, "lab_test_id: must be a lab test with the collection method testkit")
	}
	account, err := catalogue.AccountFor(chosen.LabTest.Lab, req.LabAccountID, accounts, false)
	if err != nil {
		return Record{}, err
	}
	if err := catalogue.CheckBilling(account, catalogue.ClientBill, ""); err != nil {
		return Record{}, err
	}
	r := s.newRecord(team, ids, req.UserID, chosen, account, at)
	r.ShippingDetails, r.Passthrough = req.ShippingDetails.Details(), req.Passthrough
	r.AOEAnswers = presetAnswers(chosen.LabTest)
	return r, nil
}

// presetAnswers returns the default answers to the questions of a test, without the questions that have no default.
// They are the answers of an order for a kit, whose patient is not known yet.
func presetAnswers(t catalogue.LabTest) []catalogue.AOEAnswer {
	var out []catalogue.AOEAnswer
	for marker, q := range t.Questions() {
		if preset, ok := q.Preset(); ok {
			out = append(out, catalogue.AOEAnswer{MarkerID: marker, QuestionID: q.ID, Answer: preset})
		}
	}
	return out
}

// Register registers a kit for its patient, by the id printed on the kit. From then on the order is the
// patient's: its events have the patient's user. RuleErrors: KIT_NOT_FOUND, KIT_NOT_REGISTRABLE if it was
// registered before or its order has ended, and those of [Service.Place] about user, account, state, physician,
// consents and age.
func (s *Service) Register(ctx context.Context, team healthlab.TeamID, req RegisterRequest) (Order, error) {
	return s.Plans().Register(ctx, team, req).Run(ctx, OrderID{})
}

func (s *Service) register(ctx context.Context, team healthlab.TeamID, req RegisterRequest, from *linkedAccounts, st Step) (Order, error) {
	found, err := s.store.FindSample(ctx, team, req.SampleID)
	if err != nil {
		return Order{}, rules.NotFound(err, KitNotFound, "no kit of the team has this sample_id")
	}
	if !found.Facts().Registrable || !req.Owner.IsZero() && found.UserID != req.Owner {
		return Order{}, rules.Missing(KitNotFound, "no kit of the team has this sample_id")
	}
	if err := registrableNow(&found.Order); err != nil {
		return Order{}, err
	}
	if req.UserID != nil {
		if err := people.CheckUser(ctx, s.users, team, *req.UserID); err != nil {
			return Order{}, err
		}
	}
	settings, err := s.Settings(ctx, team)
	if err != nil {
		return Order{}, err
	}
	account, err := from.accountOf(&found)
	if err != nil {
		return Order{}, err
	}
	if err := catalogue.CheckBilling(account, found.BillingType, req.PatientAddress.State); err != nil {
		return Order{}, err
	}
	if err := checkOrderingPhysician(account, req.Physician.Input(), req.Consents, settings.RequiredConsents); err != nil {
		return Order{}, err
	}
	user := found.UserID
	if req.UserID != nil {
		user = *req.UserID
	}
	proxy, err := s.medicalProxy(ctx, team, user, req.PatientDetails, rules.UTCDay(st.At))
	if err != nil {
		return Order{}, err
	}
	if err := checkAge(req.PatientDetails, proxy, rules.UTCDay(st.At), settings.Minors); err != nil {
		return Order{}, err
	}
	r, err := s.store.Update(ctx, team, found.ID, func(r *Record) ([]healthlab.Event, error) {
		if err := registrableNow(&r.Order); err != nil {
			return nil, err
		}
		if req.UserID != nil {
			r.UserID = *req.UserID
		}
		r.PatientDetails, r.PatientAddress = req.PatientDetails.Details(), req.PatientAddress.Address()
		r.PatientDetails.MedicalProxy = proxy
		// The patient gets no messages about what happened before the registration.
		for _, n := range r.patientNotices() {
			r.Notifications.Sent = append(slices.Clone(r.Notifications.Sent), n.ID)
		}
		r.PhysicianInput = req.Physician.Input()
		r.Physician = r.PhysicianInput.Physician()
		r.HealthInsurance = req.HealthInsurance
		r.Consents = people.FillConsents(req.Consents, st.At)
		return r.Apply(st)
	})
	return r.Order, err
}

func registrableNow(o *Order) error {
	if _, ok := Next(o.Method(), o.LowLevel(), KitRegistered, o.Facts()); !ok {
		return rules.Broken(KitNotRegistrable, "the kit cannot be registered while its order is "+string(o.LastEvent.Status))
	}
	return nil
}

// linkedAccounts has the lab accounts of a team, or the error of reading them from the catalogue.
type linkedAccounts struct {
	catalogue.Accounts
	err error
}

// accountOf returns the lab account of an order, as the catalogue has it at present; nil if the order has none.
// LAB_ACCOUNT_NOT_ACTIVE if the team may no longer use the account.
func (l *linkedAccounts) accountOf(r *Record) (*catalogue.LabAccount, error) {
	if r.LabAccountID == nil {
		return nil, nil
	}
	if l.err != nil {
		return nil, fmt.Errorf("find lab accounts: %w", l.err)
	}
	for _, a := range l.Linked {
		if a.ID == *r.LabAccountID {
			return &a, nil
		}
	}
	for _, a := range l.Platform {
		if a.ID == *r.LabAccountID {
			return &a, nil
		}
	}
	return nil, rules.Broken(catalogue.LabAccountNotActive, "the team no longer has the lab account of the kit")
}
