package people

import (
	"log/slog"

	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// String shows nothing of what PatientDetails holds.
func (PatientDetails) String() string { return rules.Redacted }

// GoString shows nothing of what PatientDetails holds.
func (PatientDetails) GoString() string { return rules.Redacted }

// LogValue shows nothing of what PatientDetails holds.
func (PatientDetails) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what GuarantorDetails holds.
func (GuarantorDetails) String() string { return rules.Redacted }

// GoString shows nothing of what GuarantorDetails holds.
func (GuarantorDetails) GoString() string { return rules.Redacted }

// LogValue shows nothing of what GuarantorDetails holds.
func (GuarantorDetails) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Address holds.
func (Address) String() string { return rules.Redacted }

// GoString shows nothing of what Address holds.
func (Address) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Address holds.
func (Address) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what PatientAddress holds.
func (PatientAddress) String() string { return rules.Redacted }

// GoString shows nothing of what PatientAddress holds.
func (PatientAddress) GoString() string { return rules.Redacted }

// LogValue shows nothing of what PatientAddress holds.
func (PatientAddress) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what ShippingDetails holds.
func (ShippingDetails) String() string { return rules.Redacted }

// GoString shows nothing of what ShippingDetails holds.
func (ShippingDetails) GoString() string { return rules.Redacted }

// LogValue shows nothing of what ShippingDetails holds.
func (ShippingDetails) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what PatientDetailsInput holds.
func (PatientDetailsInput) String() string { return rules.Redacted }

// GoString shows nothing of what PatientDetailsInput holds.
func (PatientDetailsInput) GoString() string { return rules.Redacted }

// LogValue shows nothing of what PatientDetailsInput holds.
func (PatientDetailsInput) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what ImportAddressInput holds.
func (ImportAddressInput) String() string { return rules.Redacted }

// GoString shows nothing of what ImportAddressInput holds.
func (ImportAddressInput) GoString() string { return rules.Redacted }

// LogValue shows nothing of what ImportAddressInput holds.
func (ImportAddressInput) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what PatientAddressInput holds.
func (PatientAddressInput) String() string { return rules.Redacted }

// GoString shows nothing of what PatientAddressInput holds.
func (PatientAddressInput) GoString() string { return rules.Redacted }

// LogValue shows nothing of what PatientAddressInput holds.
func (PatientAddressInput) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what ShippingDetailsInput holds.
func (ShippingDetailsInput) String() string { return rules.Redacted }

// GoString shows nothing of what ShippingDetailsInput holds.
func (ShippingDetailsInput) GoString() string { return rules.Redacted }

// LogValue shows nothing of what ShippingDetailsInput holds.
func (ShippingDetailsInput) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what GuarantorInput holds.
func (GuarantorInput) String() string { return rules.Redacted }

// GoString shows nothing of what GuarantorInput holds.
func (GuarantorInput) GoString() string { return rules.Redacted }

// LogValue shows nothing of what GuarantorInput holds.
func (GuarantorInput) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what AddressInput holds.
func (AddressInput) String() string { return rules.Redacted }

// GoString shows nothing of what AddressInput holds.
func (AddressInput) GoString() string { return rules.Redacted }

// LogValue shows nothing of what AddressInput holds.
func (AddressInput) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what HealthInsuranceInput holds.
func (HealthInsuranceInput) String() string { return rules.Redacted }

// GoString shows nothing of what HealthInsuranceInput holds.
func (HealthInsuranceInput) GoString() string { return rules.Redacted }

// LogValue shows nothing of what HealthInsuranceInput holds.
func (HealthInsuranceInput) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what ResponsiblePerson holds.
func (ResponsiblePerson) String() string { return rules.Redacted }

// GoString shows nothing of what ResponsiblePerson holds.
func (ResponsiblePerson) GoString() string { return rules.Redacted }

// LogValue shows nothing of what ResponsiblePerson holds.
func (ResponsiblePerson) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what UserInfo holds.
func (UserInfo) String() string { return rules.Redacted }

// GoString shows nothing of what UserInfo holds.
func (UserInfo) GoString() string { return rules.Redacted }

// LogValue shows nothing of what UserInfo holds.
func (UserInfo) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what UserInfoRequest holds.
func (UserInfoRequest) String() string { return rules.Redacted }

// GoString shows nothing of what UserInfoRequest holds.
func (UserInfoRequest) GoString() string { return rules.Redacted }

// LogValue shows nothing of what UserInfoRequest holds.
func (UserInfoRequest) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what UserAddress holds.
func (UserAddress) String() string { return rules.Redacted }

// GoString shows nothing of what UserAddress holds.
func (UserAddress) GoString() string { return rules.Redacted }

// LogValue shows nothing of what UserAddress holds.
func (UserAddress) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what UserAddressInput holds.
func (UserAddressInput) String() string { return rules.Redacted }

// GoString shows nothing of what UserAddressInput holds.
func (UserAddressInput) GoString() string { return rules.Redacted }

// LogValue shows nothing of what UserAddressInput holds.
func (UserAddressInput) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what InsuranceRecord holds.
func (InsuranceRecord) String() string { return rules.Redacted }

// GoString shows nothing of what InsuranceRecord holds.
func (InsuranceRecord) GoString() string { return rules.Redacted }

// LogValue shows nothing of what InsuranceRecord holds.
func (InsuranceRecord) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what InsuranceRequest holds.
func (InsuranceRequest) String() string { return rules.Redacted }

// GoString shows nothing of what InsuranceRequest holds.
func (InsuranceRequest) GoString() string { return rules.Redacted }

// LogValue shows nothing of what InsuranceRequest holds.
func (InsuranceRequest) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what PersonDetails holds.
func (PersonDetails) String() string { return rules.Redacted }

// GoString shows nothing of what PersonDetails holds.
func (PersonDetails) GoString() string { return rules.Redacted }

// LogValue shows nothing of what PersonDetails holds.
func (PersonDetails) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what PersonDetailsInput holds.
func (PersonDetailsInput) String() string { return rules.Redacted }

// GoString shows nothing of what PersonDetailsInput holds.
func (PersonDetailsInput) GoString() string { return rules.Redacted }

// LogValue shows nothing of what PersonDetailsInput holds.
func (PersonDetailsInput) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Coverage holds.
func (Coverage) String() string { return rules.Redacted }

// GoString shows nothing of what Coverage holds.
func (Coverage) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Coverage holds.
func (Coverage) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Line holds.
func (Line) String() string { return rules.Redacted }

// GoString shows nothing of what Line holds.
func (Line) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Line holds.
func (Line) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }
