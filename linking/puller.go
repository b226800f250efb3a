package linking

import (
	"context"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Puller fetches data of one provider.
//
// Pull makes one request to the provider (as its rate limits count requests), so that the caller can respect the
// limits. It is safe for concurrent use, keeps nothing between calls, and ends when its context does. The same
// request may be repeated: data that arrives twice is stored once.
//
// Errors. healthlab.Unauthenticated: the secret is not accepted, and renewing it may help. [*GrantError]: the
// provider refuses access permanently. [*RateLimitError]: too many requests. healthlab.Invalid or
// healthlab.Unimplemented: a retry will not help. Any other error: retry later, after RetryAfter() time.Duration
// if it has that method. Errors must not contain measurements.
type Puller interface {
	Pull(ctx context.Context, r PullRequest) (PullPage, error)
}

// ExtendedPuller is a Puller that can fetch more than timeseries and summaries.
type ExtendedPuller interface {
	Puller
	// Pulls reports whether the puller also supports a resource other than timeseries and summaries: device or
	// workout_stream.
	//
	// The items of device are a person's devices. Each item has only a Device and, in Source.Type, how that device
	// records data. The puller returns the whole list for any range.
	//
	// The items of workout_stream are the recordings of workouts. Each item has a Stream, and in Summaries the workout
	// as the resource workouts returns it.
	Pulls(resource string) bool
}

// PullRequest requests one page of a resource.
type PullRequest struct {
	healthlab.Private

	// Secret is the secret of the connection; nil for a demo connection.
	Secret []byte
	// User is the service's id of the person, for providers that generate data.
	User healthlab.UserID
	// ExternalUserID is the provider's own name for the person; nil if the provider has none.
	ExternalUserID *string
	// Resource is the slug of the resource.
	Resource string
	// With lists further resources of the same set of [ProviderConnector].Together. The page must have the items of
	// these resources too, for the same range and cursor. Nil requests only Resource.
	With []string
	// From (inclusive) and To (exclusive) bound the requested time, in UTC. A provider with daily data returns
	// every day that overlaps the range, in Zone.
	From, To time.Time
	// Zone is the user's fallback zone.
	Zone *time.Location
	// Cursor is empty for the first page, then the Next of the previous page.
	Cursor string
	// Trace identifies the run (the fetch of a whole range, of which this request is a part) in logs and traces. It is
	// a trace-id of W3C Trace Context: 32 hexadecimal digits. It is not sent to the provider.
	Trace string
}

// PullPage is one page of a pull.
type PullPage struct {
	Items []PullItem
	// With has the items of each resource of the request's With, in any order.
	With []ResourceData
	// Next is the cursor of the next page, of all resources together; empty on the last one.
	Next string
	// RateLimits are the rate limits in the provider's answer.
	RateLimits []RateLimit
}

// ResourceData is data of one resource.
type ResourceData struct {
	// Resource is the slug of the resource.
	Resource string
	Items    []PullItem
}

// PullItem has the samples or summaries of one source. An [ExtendedPuller] returns further fields.
type PullItem struct {
	// Owner is the provider's own id of the account that the items belong to; nil if the answer does not contain it.
	// Items of another account than the connection's are refused.
	Owner  *string
	Source healthdata.Source
	// Device describes the device that recorded the items, if the provider states it.
	Device *healthdata.DeviceInfo
	// TimeZone is the IANA zone of items without a zone of their own.
	TimeZone  string
	Samples   []healthdata.Sample
	Summaries []healthdata.Summary
	// Workout is the provider's own id of the workout to which the samples belong, for resources with workouts. The
	// stored workout must have the same id and source type.
	Workout *string
	// Stream is the recording of a workout.
	Stream *healthdata.WorkoutStream
	// Deleted are records that were deleted at the provider.
	Deleted []DeletedRecord
	// Unparsed are items that the puller could not read. The service records them as refused and stores the other
	// items.
	Unparsed []UnparsedItem
}

// DeletedRecord identifies a record that was deleted at the provider.
type DeletedRecord struct {
	// ID is the ExternalID of a summary. It is empty for a sample.
	ID string
	// At is the timestamp of a sample. Type is its type, if the type is part of its identity.
	At   healthlab.Time
	Type string
}

// UnparsedItem is an item of a provider that could not be read.
type UnparsedItem struct {
	// Item is the received item. Only its hash is stored, to recognize it when it is sent again.
	Item []byte
	// Problems name fields and rules, never values.
	Problems []healthlab.Problem
}

// RateScope is the scope of a rate limit.
type RateScope string

const (
	// RateApp is a limit of the application, for all users together.
	RateApp RateScope = "app"
	// RateUser is a limit of one user.
	RateUser RateScope = "user"
)

// RateLimit is the state of a rate limit in a provider's answer.
type RateLimit struct {
	Scope RateScope
	// Remaining is the number of requests that may be made until Reset.
	Remaining int
	Reset     time.Time
}

// RateLimitError reports that a provider received too many requests.
type RateLimitError struct {
	// Scope is the scope of the limit; empty means [RateApp].
	Scope RateScope
	// Wait is the time that the provider requires to wait; zero if it states none.
	Wait time.Duration
}

// Error says that the provider had too many requests.
func (e *RateLimitError) Error() string {
	return fmt.Sprintf("%v: the provider had too many requests", healthlab.Exhausted)
}

// Unwrap returns healthlab.Exhausted.
func (*RateLimitError) Unwrap() error { return healthlab.Exhausted }

// RetryAfter returns the time that the provider requires to wait.
func (e *RateLimitError) RetryAfter() time.Duration { return e.Wait }
