package orders

import (
	"log/slog"

	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

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

// String shows nothing of what ImportRequest holds.
func (ImportRequest) String() string { return rules.Redacted }

// GoString shows nothing of what ImportRequest holds.
func (ImportRequest) GoString() string { return rules.Redacted }

// LogValue shows nothing of what ImportRequest holds.
func (ImportRequest) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

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

// String shows nothing of what VisitUpdate holds.
func (VisitUpdate) String() string { return rules.Redacted }

// GoString shows nothing of what VisitUpdate holds.
func (VisitUpdate) GoString() string { return rules.Redacted }

// LogValue shows nothing of what VisitUpdate holds.
func (VisitUpdate) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

// String shows nothing of what PatientMessage holds.
func (PatientMessage) String() string { return rules.Redacted }

// GoString shows nothing of what PatientMessage holds.
func (PatientMessage) GoString() string { return rules.Redacted }

// LogValue shows nothing of what PatientMessage holds.
func (PatientMessage) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }

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

// String shows nothing of what MatchMarker holds.
func (MatchMarker) String() string { return rules.Redacted }

// GoString shows nothing of what MatchMarker holds.
func (MatchMarker) GoString() string { return rules.Redacted }

// LogValue shows nothing of what MatchMarker holds.
func (MatchMarker) LogValue() slog.Value { return slog.StringValue(rules.Redacted) }
