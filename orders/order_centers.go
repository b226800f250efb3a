package orders

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// OrderPSCs returns the centers of an order's lab around its patient. The request's
// postal code, lab and account are the order's. RuleErrors as [appointment.Service.PSCs], and
// PATIENT_ADDRESS_MISSING.
func (s *Service) OrderPSCs(ctx context.Context, team healthlab.TeamID, id OrderID, req appointment.CenterRequest) (appointment.PSCInfo, error) {
	r, err := s.store.Get(ctx, team, id)
	if err != nil {
		return appointment.PSCInfo{}, fmt.Errorf("find centers of order: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	if r.PatientAddress == nil || !rules.ZipForm.MatchString(r.PatientAddress.Zip) || r.LabTest.Lab == nil {
		return appointment.PSCInfo{}, rules.Broken(PatientAddressMissing, "the order has no patient address with a postal code")
	}
	req.Zip, req.LabID, req.LabAccountID = r.PatientAddress.Zip[:5], r.LabTest.Lab.ID, nil
	return s.appointments.PSCs(ctx, team, req)
}
