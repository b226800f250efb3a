package labreport

import "log/slog"

// What a report's content prints and logs as.
const redacted = "[redacted]"

// String shows nothing of what Data holds.
func (Data) String() string { return redacted }

// GoString shows nothing of what Data holds.
func (Data) GoString() string { return redacted }

// LogValue shows nothing of what Data holds.
func (Data) LogValue() slog.Value { return slog.StringValue(redacted) }

// String shows nothing of what Metadata holds.
func (Metadata) String() string { return redacted }

// GoString shows nothing of what Metadata holds.
func (Metadata) GoString() string { return redacted }

// LogValue shows nothing of what Metadata holds.
func (Metadata) LogValue() slog.Value { return slog.StringValue(redacted) }

// String shows nothing of what Result holds.
func (Result) String() string { return redacted }

// GoString shows nothing of what Result holds.
func (Result) GoString() string { return redacted }

// LogValue shows nothing of what Result holds.
func (Result) LogValue() slog.Value { return slog.StringValue(redacted) }

// String shows nothing of what PublishedJob holds.
func (PublishedJob) String() string { return redacted }

// GoString shows nothing of what PublishedJob holds.
func (PublishedJob) GoString() string { return redacted }

// LogValue shows nothing of what PublishedJob holds.
func (PublishedJob) LogValue() slog.Value { return slog.StringValue(redacted) }

// String shows nothing of what Review holds.
func (Review) String() string { return redacted }

// GoString shows nothing of what Review holds.
func (Review) GoString() string { return redacted }

// LogValue shows nothing of what Review holds.
func (Review) LogValue() slog.Value { return slog.StringValue(redacted) }

// String shows nothing of what JobReview holds.
func (JobReview) String() string { return redacted }

// GoString shows nothing of what JobReview holds.
func (JobReview) GoString() string { return redacted }

// LogValue shows nothing of what JobReview holds.
func (JobReview) LogValue() slog.Value { return slog.StringValue(redacted) }

// String shows nothing of what Correction holds.
func (Correction) String() string { return redacted }

// GoString shows nothing of what Correction holds.
func (Correction) GoString() string { return redacted }

// LogValue shows nothing of what Correction holds.
func (Correction) LogValue() slog.Value { return slog.StringValue(redacted) }

// String shows nothing of what AddedRow holds.
func (AddedRow) String() string { return redacted }

// GoString shows nothing of what AddedRow holds.
func (AddedRow) GoString() string { return redacted }

// LogValue shows nothing of what AddedRow holds.
func (AddedRow) LogValue() slog.Value { return slog.StringValue(redacted) }

// String shows nothing of what TrainingExample holds.
func (TrainingExample) String() string { return redacted }

// GoString shows nothing of what TrainingExample holds.
func (TrainingExample) GoString() string { return redacted }

// LogValue shows nothing of what TrainingExample holds.
func (TrainingExample) LogValue() slog.Value { return slog.StringValue(redacted) }

// String shows nothing of what Page holds.
func (Page) String() string { return redacted }

// GoString shows nothing of what Page holds.
func (Page) GoString() string { return redacted }

// LogValue shows nothing of what Page holds.
func (Page) LogValue() slog.Value { return slog.StringValue(redacted) }

// String shows nothing of what Word holds.
func (Word) String() string { return redacted }

// GoString shows nothing of what Word holds.
func (Word) GoString() string { return redacted }

// LogValue shows nothing of what Word holds.
func (Word) LogValue() slog.Value { return slog.StringValue(redacted) }

// String shows nothing of what File holds.
func (File) String() string { return redacted }

// GoString shows nothing of what File holds.
func (File) GoString() string { return redacted }

// LogValue shows nothing of what File holds.
func (File) LogValue() slog.Value { return slog.StringValue(redacted) }

// String shows where the job is, and nothing of what it holds.
func (j Job) String() string { return j.LogValue().String() }

// GoString is String.
func (j Job) GoString() string { return j.String() }
