package orders

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// BookRequest books a slot.
type BookRequest struct {
	// BookingKey is from an answer about free slots.
	BookingKey string `json:"booking_key"`
	// AppointmentNotes are instructions for this visit.
	AppointmentNotes *string `json:"appointment_notes"`
	// AsyncConfirmation takes pending as an answer, where the provider is slow: it is
	// then asked again in the background. For visits to centers; else it is passed
	// over, as are the next two.
	AsyncConfirmation bool `json:"async_confirmation" wire:"opt"`
	// SyncConfirmationTimeoutMillisecond is how long to wait for the provider before
	// that: 1,000 to 10,000, 2,500 if not given.
	SyncConfirmationTimeoutMillisecond *int `json:"sync_confirmation_timeout_millisecond"`
	// AsyncConfirmationTimeoutMillisecond is how long to go on asking before the
	// appointment is cancelled: 60,000 to 172,800,000 (48 hours), 900,000 if not given.
	AsyncConfirmationTimeoutMillisecond *int `json:"async_confirmation_timeout_millisecond"`
}

const (
	defaultSyncTimeout  = 2500 * time.Millisecond
	defaultAsyncTimeout = 15 * time.Minute
	// bookingKeep is how long answers of bookings are kept for their idempotency keys.
	bookingKeep = 14 * 24 * time.Hour
	maxKeyText  = 8192
)

// BookingKeep is how long the answer of a booking is kept for its idempotency key.
func BookingKeep() time.Duration { return bookingKeep }

// Check returns Invalid with every problem of the request itself.
func (r *BookRequest) Check() error {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	c.Text(r.BookingKey, "booking_key", 1, maxKeyText)
	c.Optional(r.AppointmentNotes, "appointment_notes", rules.MaxNotes)
	for _, t := range []struct {
		n         *int
		low, high int
		name      string
	}{
		{r.SyncConfirmationTimeoutMillisecond, 1000, 10_000, "sync_confirmation_timeout_millisecond"},
		{r.AsyncConfirmationTimeoutMillisecond, 60_000, 172_800_000, "async_confirmation_timeout_millisecond"},
	} {
		if t.n != nil && (*t.n < t.low || *t.n > t.high) {
			c.Add("out_of_range", fmt.Sprintf("is %d to %d", t.low, t.high), t.name)
		}
	}
	return p.Err()
}

func millis(n *int, def time.Duration) time.Duration {
	if n == nil {
		return def
	}
	return time.Duration(*n) * time.Millisecond
}

// VisitRequest asks for a visit at home, whose time the provider finds.
type VisitRequest struct {
	Address AppointmentAddressInput `json:"address"`
	// Provider must be bookable by request at the address.
	Provider         string  `json:"provider"`
	AppointmentNotes *string `json:"appointment_notes"`
}

// AppointmentAddressInput is where a visit is to take place, in a request.
type AppointmentAddressInput struct {
	// FirstLine has a street number.
	FirstLine  string  `json:"first_line"`
	SecondLine *string `json:"second_line"`
	City       string  `json:"city"`
	// State is two upper-case letters.
	State string `json:"state"`
	// ZipCode is five digits, or ZIP+4. Zip is another name of it; a request gives one
	// of them.
	ZipCode string  `json:"zip_code" wire:"opt"`
	Zip     *string `json:"zip,omitempty" wire:"in"`
	// Country may be said; visits are in the US, whatever it is.
	Country     *string `json:"country,omitempty" wire:"in"`
	AccessNotes *string `json:"access_notes"`
	// Unit is deprecated; use SecondLine.
	Unit *string `json:"unit"`
}

// Check returns Invalid with every problem of the address itself.
func (a *AppointmentAddressInput) Check() error {
	var p healthlab.Problems
	a.check(rules.Check{Problems: &p})
	return p.Err()
}

func (a *AppointmentAddressInput) check(c rules.Check) {
	c.Address(a.FirstLine, a.SecondLine, a.City, a.State, rules.HomeCountry)
	zip, field := a.ZipCode, "zip_code"
	if a.Zip != nil && zip == "" {
		zip, field = *a.Zip, "zip"
	}
	if c.Text(zip, field, 1, rules.MaxText) && !rules.ZipForm.MatchString(zip) {
		c.Add("zip_form", "must be five digits, or five, a hyphen and four", field)
	}
	if rules.ZipForm.MatchString(zip) && slices.Contains(rules.StatesOfUS, a.State) && rules.StateOfZip(zip[:5]) != a.State {
		c.Add("zip_state", "must be a postal code of the state", field)
	}
	if a.Zip != nil && *a.Zip != zip {
		c.Add("conflict", "is another name of zip_code, and says something else", "zip")
	}
	c.Optional(a.Country, "country", rules.MaxText)
	c.Optional(a.AccessNotes, "access_notes", rules.MaxNotes)
	c.Optional(a.Unit, "unit", rules.MaxText)
}

// address is the address as it is published.
func (a *AppointmentAddressInput) address() AppointmentAddress {
	return AppointmentAddress{FirstLine: a.FirstLine, SecondLine: a.SecondLine, City: a.City, State: a.State,
		ZipCode: rules.ZipOf(a.ZipCode, a.Zip), AccessNotes: a.AccessNotes, Unit: a.Unit}
}

// streetNumber reports whether a line has a number in it.
func streetNumber(line string) bool { return strings.ContainsAny(line, "0123456789") }

// RescheduleRequest gives an appointment another time.
type RescheduleRequest struct {
	BookingKey string
	// Notes replace those of the appointment; null clears them. KeepNotes leaves them
	// as they are.
	Notes     *string
	KeepNotes bool
}
