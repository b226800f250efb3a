package orders

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

// String shows nothing of what PlaceRequest holds.
func (PlaceRequest) String() string { return rules.Redacted }

// GoString shows nothing of what PlaceRequest holds.
func (PlaceRequest) GoString() string { return rules.Redacted }

// LogValue shows nothing of what PlaceRequest holds.
func (PlaceRequest) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what TestkitRequest holds.
func (TestkitRequest) String() string { return rules.Redacted }

// GoString shows nothing of what TestkitRequest holds.
func (TestkitRequest) GoString() string { return rules.Redacted }

// LogValue shows nothing of what TestkitRequest holds.
func (TestkitRequest) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what RegisterRequest holds.
func (RegisterRequest) String() string { return rules.Redacted }

// GoString shows nothing of what RegisterRequest holds.
func (RegisterRequest) GoString() string { return rules.Redacted }

// LogValue shows nothing of what RegisterRequest holds.
func (RegisterRequest) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Submission holds.
func (Submission) String() string { return rules.Redacted }

// GoString shows nothing of what Submission holds.
func (Submission) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Submission holds.
func (Submission) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Message holds.
func (Message) String() string { return rules.Redacted }

// GoString shows nothing of what Message holds.
func (Message) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Message holds.
func (Message) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what LabResult holds.
func (LabResult) String() string { return rules.Redacted }

// GoString shows nothing of what LabResult holds.
func (LabResult) GoString() string { return rules.Redacted }

// LogValue shows nothing of what LabResult holds.
func (LabResult) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what ResultsMetadata holds.
func (ResultsMetadata) String() string { return rules.Redacted }

// GoString shows nothing of what ResultsMetadata holds.
func (ResultsMetadata) GoString() string { return rules.Redacted }

// LogValue shows nothing of what ResultsMetadata holds.
func (ResultsMetadata) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what OrderResults holds.
func (OrderResults) String() string { return rules.Redacted }

// GoString shows nothing of what OrderResults holds.
func (OrderResults) GoString() string { return rules.Redacted }

// LogValue shows nothing of what OrderResults holds.
func (OrderResults) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

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

// String shows nothing of what ImportRequest holds.
func (ImportRequest) String() string { return rules.Redacted }

// GoString shows nothing of what ImportRequest holds.
func (ImportRequest) GoString() string { return rules.Redacted }

// LogValue shows nothing of what ImportRequest holds.
func (ImportRequest) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

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

// String shows nothing of what ReportedPatient holds.
func (ReportedPatient) String() string { return rules.Redacted }

// GoString shows nothing of what ReportedPatient holds.
func (ReportedPatient) GoString() string { return rules.Redacted }

// LogValue shows nothing of what ReportedPatient holds.
func (ReportedPatient) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what UnmatchedResult holds.
func (UnmatchedResult) String() string { return rules.Redacted }

// GoString shows nothing of what UnmatchedResult holds.
func (UnmatchedResult) GoString() string { return rules.Redacted }

// LogValue shows nothing of what UnmatchedResult holds.
func (UnmatchedResult) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what RawResult holds.
func (RawResult) String() string { return rules.Redacted }

// GoString shows nothing of what RawResult holds.
func (RawResult) GoString() string { return rules.Redacted }

// LogValue shows nothing of what RawResult holds.
func (RawResult) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what ReviewPatient holds.
func (ReviewPatient) String() string { return rules.Redacted }

// GoString shows nothing of what ReviewPatient holds.
func (ReviewPatient) GoString() string { return rules.Redacted }

// LogValue shows nothing of what ReviewPatient holds.
func (ReviewPatient) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Appointment holds.
func (Appointment) String() string { return rules.Redacted }

// GoString shows nothing of what Appointment holds.
func (Appointment) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Appointment holds.
func (Appointment) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what AppointmentAddress holds.
func (AppointmentAddress) String() string { return rules.Redacted }

// GoString shows nothing of what AppointmentAddress holds.
func (AppointmentAddress) GoString() string { return rules.Redacted }

// LogValue shows nothing of what AppointmentAddress holds.
func (AppointmentAddress) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what AppointmentAddressInput holds.
func (AppointmentAddressInput) String() string { return rules.Redacted }

// GoString shows nothing of what AppointmentAddressInput holds.
func (AppointmentAddressInput) GoString() string { return rules.Redacted }

// LogValue shows nothing of what AppointmentAddressInput holds.
func (AppointmentAddressInput) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Visit holds.
func (Visit) String() string { return rules.Redacted }

// GoString shows nothing of what Visit holds.
func (Visit) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Visit holds.
func (Visit) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what VisitRequest holds.
func (VisitRequest) String() string { return rules.Redacted }

// GoString shows nothing of what VisitRequest holds.
func (VisitRequest) GoString() string { return rules.Redacted }

// LogValue shows nothing of what VisitRequest holds.
func (VisitRequest) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what BookRequest holds.
func (BookRequest) String() string { return rules.Redacted }

// GoString shows nothing of what BookRequest holds.
func (BookRequest) GoString() string { return rules.Redacted }

// LogValue shows nothing of what BookRequest holds.
func (BookRequest) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what RescheduleRequest holds.
func (RescheduleRequest) String() string { return rules.Redacted }

// GoString shows nothing of what RescheduleRequest holds.
func (RescheduleRequest) GoString() string { return rules.Redacted }

// LogValue shows nothing of what RescheduleRequest holds.
func (RescheduleRequest) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Booking holds.
func (Booking) String() string { return rules.Redacted }

// GoString shows nothing of what Booking holds.
func (Booking) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Booking holds.
func (Booking) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what VisitCancellation holds.
func (VisitCancellation) String() string { return rules.Redacted }

// GoString shows nothing of what VisitCancellation holds.
func (VisitCancellation) GoString() string { return rules.Redacted }

// LogValue shows nothing of what VisitCancellation holds.
func (VisitCancellation) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what VisitNews holds.
func (VisitNews) String() string { return rules.Redacted }

// GoString shows nothing of what VisitNews holds.
func (VisitNews) GoString() string { return rules.Redacted }

// LogValue shows nothing of what VisitNews holds.
func (VisitNews) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what PatientMessage holds.
func (PatientMessage) String() string { return rules.Redacted }

// GoString shows nothing of what PatientMessage holds.
func (PatientMessage) GoString() string { return rules.Redacted }

// LogValue shows nothing of what PatientMessage holds.
func (PatientMessage) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Document holds.
func (Document) String() string { return rules.Redacted }

// GoString shows nothing of what Document holds.
func (Document) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Document holds.
func (Document) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Section holds.
func (Section) String() string { return rules.Redacted }

// GoString shows nothing of what Section holds.
func (Section) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Section holds.
func (Section) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Field holds.
func (Field) String() string { return rules.Redacted }

// GoString shows nothing of what Field holds.
func (Field) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Field holds.
func (Field) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Row holds.
func (Row) String() string { return rules.Redacted }

// GoString shows nothing of what Row holds.
func (Row) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Row holds.
func (Row) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Label holds.
func (Label) String() string { return rules.Redacted }

// GoString shows nothing of what Label holds.
func (Label) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Label holds.
func (Label) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what CoverageNotice holds.
func (CoverageNotice) String() string { return rules.Redacted }

// GoString shows nothing of what CoverageNotice holds.
func (CoverageNotice) GoString() string { return rules.Redacted }

// LogValue shows nothing of what CoverageNotice holds.
func (CoverageNotice) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what CoverageItem holds.
func (CoverageItem) String() string { return rules.Redacted }

// GoString shows nothing of what CoverageItem holds.
func (CoverageItem) GoString() string { return rules.Redacted }

// LogValue shows nothing of what CoverageItem holds.
func (CoverageItem) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Code holds.
func (Code) String() string { return rules.Redacted }

// GoString shows nothing of what Code holds.
func (Code) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Code holds.
func (Code) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what Coded holds.
func (Coded) String() string { return rules.Redacted }

// GoString shows nothing of what Coded holds.
func (Coded) GoString() string { return rules.Redacted }

// LogValue shows nothing of what Coded holds.
func (Coded) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what ParentResult holds.
func (ParentResult) String() string { return rules.Redacted }

// GoString shows nothing of what ParentResult holds.
func (ParentResult) GoString() string { return rules.Redacted }

// LogValue shows nothing of what ParentResult holds.
func (ParentResult) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }
