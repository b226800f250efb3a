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
// Pull makes one request to the provider, or what its limits count as one, so that
// its caller can keep to the limits. It is safe for concurrent use, keeps nothing
// between calls, and ends when its context does. Calling it again with the same request
// is free: what comes twice is stored once.
//
// Errors. Of the kind healthlab.Unauthenticated: the secret is not accepted, and renewing
// it may help. A [*GrantError]: the provider refuses us for good. A [*RateLimitError]: too many
// requests. Of the kind healthlab.Invalid or healthlab.Unimplemented: asking again will
// not help. Any other: try later; RetryAfter() time.Duration says when. No error holds
// what a person measured.
type Puller interface {
	Pull(ctx context.Context, r PullRequest) (PullPage, error)
}

// ExtendedPuller is a Puller that gives more than timeseries and summaries, which is all that
// another one is asked for.
type ExtendedPuller interface {
	Puller
	// Pulls reports whether one of these resources can be asked for, too.
	//
	// device lists people's devices apart from what they recorded: items have a Device, and
	// how it records in Source.Type, and nothing else. The whole list is returned, whatever
	// range is asked for.
	//
	// workout_stream is the recordings of workouts: items have one workout each in Summaries,
	// as the resource workouts has it, and its Stream.
	Pulls(resource string) bool
}

// PullRequest asks for one page of a resource.
type PullRequest struct {
	healthlab.Private

	// Secret is the connection's; nil of a demo connection.
	Secret []byte
	// User is our own name for the person, for providers who make things up.
	User healthlab.UserID
	// ExternalUserID is the provider's own name for the person; nil where it has none.
	ExternalUserID *string
	// Resource is the slug.
	Resource string
	// With lists further resources of the same set of [ProviderConnector].Together. The page must
	// hold their items for the same range and cursor, as if each were asked for alone. Nil asks
	// for Resource alone.
	With []string
	// From (inclusive) and To (exclusive) bound what is asked for, in UTC. A provider that
	// thinks in days returns every day that they touch, in Zone.
	From, To time.Time
	// Zone is the user's fallback zone.
	Zone *time.Location
	// Cursor is empty for the first page, then what the page before said.
	Cursor string
	// Trace names the run that the request is part of, in logs and traces: a trace-id of W3C
	// Trace Context, 32 hexadecimal digits. It is for us: it is not sent to the provider.
	Trace string
}

// PullPage is one page.
type PullPage struct {
	Items []PullItem
	// With holds the items of each resource of the request's With, in any order.
	With []ResourceData
	// Next is the cursor of the next page, of all resources together; empty on the last one.
	Next string
	// RateLimits are what the provider said of its limits.
	RateLimits []RateLimit
}

// ResourceData is data of one resource.
type ResourceData struct {
	// Resource is the slug.
	Resource string
	Items    []PullItem
}

// PullItem is what one source recorded: samples or summaries. Of [ExtendedPuller] there is more.
type PullItem struct {
	// Owner is whose it is, in the provider's words, where its answer says so; what is
	// not the connection's own is not kept.
	Owner  *string
	Source healthdata.Source
	// Device is what recorded the items, where the provider says.
	Device *healthdata.DeviceInfo
	// TimeZone is the IANA zone of the items that say nothing of their own.
	TimeZone  string
	Samples   []healthdata.Sample
	Summaries []healthdata.Summary
	// Workout is the provider's own id of the workout that the samples are of, for the
	// resources that are about one: as that workout has it, which is of the same source type.
	Workout *string
	// Stream is the recording of a workout.
	Stream *healthdata.WorkoutStream
	// Deleted are the records that the provider no longer has.
	Deleted []DeletedRecord
	// Unparsed are the items that the puller could make nothing of. They are refused, and the
	// others are stored.
	Unparsed []UnparsedItem
}

// DeletedRecord names a record of a resource that was deleted at the provider.
type DeletedRecord struct {
	// ID is the ExternalID of a summary. It is empty for a sample.
	ID string
	// At is the timestamp of a sample, and Type its type where that is part of its identity.
	At   healthlab.Time
	Type string
}

// UnparsedItem is an item of a provider that could not be read.
type UnparsedItem struct {
	// Item is what came. Only its hash is kept, by which it is known when it comes again.
	Item []byte
	// Problems name fields and rules, never values.
	Problems []healthlab.Problem
}

// RateScope says whom a limit is for.
type RateScope string

const (
	// RateApp is a limit on the application: all users together.
	RateApp RateScope = "app"
	// RateUser is a limit on one user.
	RateUser RateScope = "user"
)

// RateLimit is what a provider said of a limit.
type RateLimit struct {
	Scope RateScope
	// Remaining requests may be made until Reset.
	Remaining int
	Reset     time.Time
}

// RateLimitError says that a provider had too many requests.
type RateLimitError struct {
	// Scope says whose; empty is [RateApp].
	Scope RateScope
	// Wait is what the provider asks for; zero if it does not say.
	Wait time.Duration
}

// Error says that the provider had too many requests.
func (e *RateLimitError) Error() string {
	return fmt.Sprintf("%v: the provider had too many requests", healthlab.Exhausted)
}

// Unwrap returns healthlab.Exhausted.
func (*RateLimitError) Unwrap() error { return healthlab.Exhausted }

// RetryAfter is what the provider asks for.
func (e *RateLimitError) RetryAfter() time.Duration { return e.Wait }
