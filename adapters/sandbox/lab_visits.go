package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

// Area is the area of a ZIP code that a provider of phlebotomies at home visits.
type Area struct {
	Zip      string
	Provider string
	Tier     appointment.ServiceTier
	// FirstLine is the only address with slots; empty means any address.
	FirstLine string
	// Zone is the IANA time zone of the area.
	Zone string
	// Location is the centre of the area.
	Location appointment.LngLat
}

// Areas returns the areas of the sandbox's phlebotomy providers: one whose visits have slots that can be booked, and
// one whose provider sets the time after a request.
func Areas() []Area {
	return []Area{
		{Zip: "85004", Provider: "phleb_ready", Tier: appointment.ReadyTier, Zone: "America/Phoenix",
			Location: appointment.LngLat{Lng: -112.0706, Lat: 33.4513}},
		{Zip: "54650", Provider: "phleb_request", Tier: appointment.RequestTier, Zone: "America/Chicago",
			Location: appointment.LngLat{Lng: -91.2096, Lat: 43.8987}},
	}
}

// VisitOutcome is how an appointment goes. With the zero value nothing fails.
type VisitOutcome struct {
	// Refused means that the provider refuses the appointment permanently. Gone means that the slot is taken.
	Refused, Gone bool
	// Down is the number of first calls that fail before the provider answers. Silent is the number of calls after
	// those that the provider accepts without an answer.
	Down, Silent int
	// Slow means that the appointment is confirmed a minute later. Never means that it is never confirmed.
	Slow, Never bool
	// Moved means that the provider moves the appointment by a day. Dropped means that the provider cancels it.
	Moved, Dropped bool
	// TooLate means that the provider refuses to move or cancel the appointment.
	TooLate bool
	// Repeats is how many times every message is sent again.
	Repeats int
}

// VisitOutcomeFromNotes returns the outcome that the notes of an appointment select: "sandbox:" followed by refused,
// gone, down (once), silent (once), slow, never, moved, dropped, too_late or repeats, separated by commas. Any other
// text means success.
func VisitOutcomeFromNotes(notes string) VisitOutcome {
	var f VisitOutcome
	names, ok := strings.CutPrefix(notes, "sandbox:")
	if !ok {
		return f
	}
	for _, name := range strings.Split(names, ",") {
		switch strings.TrimSpace(name) {
		case "refused":
			f.Refused = true
		case "gone":
			f.Gone = true
		case "down":
			f.Down = 1
		case "silent":
			f.Silent = 1
		case "slow":
			f.Slow = true
		case "never":
			f.Never = true
		case "moved":
			f.Moved = true
		case "dropped":
			f.Dropped = true
		case "too_late":
			f.TooLate = true
		case "repeats":
			f.Repeats = 1
		}
	}
	return f
}

// labVisit is one appointment at a visit provider.
type labVisit struct {
	booking   visits.Booking
	outcome   VisitOutcome
	tries     int
	moves     int
	made      time.Time // when it was booked; zero if it was not
	start     time.Time // zero for a requested visit whose time is not set yet
	end       time.Time
	slot      string // key of the booked slot
	later     bool   // the answer does not confirm the booking; a later message does
	agreed    bool
	moved     bool // the provider has moved the appointment
	cancelled bool
	told      int
}

const (
	centerSlot = 20 * time.Minute
	homeSlot   = 2 * time.Hour
	homePlaces = 2
)

// ServedAt implements [appointment.SlotBackend].
func (l *Lab) ServedAt(ctx context.Context, zip string) ([]appointment.Served, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []appointment.Served
	for _, a := range Areas() {
		if a.Zip == zip {
			out = append(out, appointment.Served{Provider: a.Provider, Tiers: []appointment.ServiceTier{a.Tier}})
		}
	}
	return out, nil
}

// FreeSlots implements [appointment.SlotBackend]. Centers have a slot every twenty minutes, in their own time zone:
// on later days from 7:00 to 12:00; today, if it is before 16:00, from the next full hour but not before 7:00 until
// 17:00. Home visits have four slots of two hours from 8:00 on; today those from the next full hour on.
func (l *Lab) FreeSlots(ctx context.Context, q appointment.SlotQuery) ([]appointment.Slot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []appointment.Slot
	if q.Type == appointment.PatientServiceCenter {
		for _, site := range q.Sites {
			loc, err := time.LoadLocation(site.IANATimezone)
			if err != nil {
				return nil, fmt.Errorf("%w: IANATimezone of the center: must be an IANA time zone, such as America/Phoenix", healthlab.Invalid)
			}
			place := slotPlace{provider: q.Lab, site: site.SiteCode, zone: site.IANATimezone, loc: loc}
			out = append(out, l.free(place, q.From, q.To)...)
		}
		return out, nil
	}
	for _, a := range Areas() {
		if !strings.HasPrefix(q.Address.ZipCode, a.Zip) || a.Tier != appointment.ReadyTier || a.FirstLine != "" && a.FirstLine != q.Address.FirstLine {
			continue
		}
		loc, err := time.LoadLocation(a.Zone)
		if err != nil {
			return nil, fmt.Errorf("%w: Zone of the area: must be an IANA time zone", healthlab.Invalid)
		}
		for _, slot := range l.free(slotPlace{provider: a.Provider, zone: a.Zone, loc: loc}, q.From, q.To) {
			slot.Location = a.Location
			out = append(out, slot)
		}
	}
	return out, nil
}

// slotPlace is where slots are offered: a center (site is its code), or an area of home visits (zone is its time zone).
type slotPlace struct {
	provider, site, zone string
	loc                  *time.Location
}

// free returns the free slots of p that begin at or after from and before to.
func (l *Lab) free(p slotPlace, from, to time.Time) []appointment.Slot {
	var out []appointment.Slot
	for day := healthlab.DateOf(from.In(p.loc)); day.At(p.loc).Before(to); day = day.AddDays(1) {
		for _, slot := range l.day(p, day) {
			if !slot.Start.Before(from) && slot.Start.Before(to) && slot.Places > 0 {
				out = append(out, slot)
			}
		}
	}
	return out
}

// day returns the slots of p on a day that have not begun, including booked ones.
func (l *Lab) day(p slotPlace, day healthlab.Date) []appointment.Slot {
	now := l.opts.Now()
	opens, closes, length, places := 7, 12, centerSlot, 1
	if p.site == "" {
		opens, closes, length, places = 8, 16, homeSlot, homePlaces
	}
	if today := healthlab.DateOf(now.In(p.loc)); day == today {
		opens, closes = max(opens, now.In(p.loc).Hour()+1), 17
		if now.In(p.loc).Hour() >= 16 {
			return nil
		}
	}
	first, err := appointment.WallTime(day, opens, 0, p.loc)
	last, err2 := appointment.WallTime(day, closes, 0, p.loc)
	if err != nil || err2 != nil {
		return nil
	}
	var out []appointment.Slot
	for t := first; !t.Add(length).After(last); t = t.Add(length) {
		if !t.After(now) {
			continue
		}
		name := strings.Join([]string{p.provider, p.site, p.zone, strconv.FormatInt(t.Unix(), 10)}, "|")
		slot := appointment.Slot{Provider: p.provider, SiteCode: p.site, Start: t, End: t.Add(length), Places: places - l.taken[name], Key: name}
		if p.site == "" {
			slot.Zone = p.zone
		}
		out = append(out, slot)
	}
	return out
}

// findSlot returns the slot whose key is b.Slot.Key. It returns Invalid if the key is malformed, or is of another
// provider or site than b, and NotFound if the slot is not free or has begun.
func (l *Lab) findSlot(b visits.Booking) (appointment.Slot, error) {
	parts := strings.Split(b.Slot.Key, "|")
	bad := fmt.Errorf("%w: slot: must be one that FreeSlots returned for this provider and site", healthlab.Invalid)
	if len(parts) != 4 || parts[0] != b.Provider || parts[1] != b.Slot.SiteCode {
		return appointment.Slot{}, bad
	}
	unix, err := strconv.ParseInt(parts[3], 10, 64)
	loc, err2 := time.LoadLocation(parts[2])
	if err != nil || err2 != nil {
		return appointment.Slot{}, bad
	}
	start := time.Unix(unix, 0)
	for _, slot := range l.day(slotPlace{parts[0], parts[1], parts[2], loc}, healthlab.DateOf(start.In(loc))) {
		if slot.Start.Equal(start) {
			if slot.Places <= 0 {
				break
			}
			return slot, nil
		}
	}
	return appointment.Slot{}, fmt.Errorf("%w: the slot is no longer free", healthlab.NotFound)
}

// BookVisit implements [visits.Backend].
func (l *Lab) BookVisit(ctx context.Context, b visits.Booking) (visits.Booked, error) {
	if err := ctx.Err(); err != nil {
		return visits.Booked{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.opts.Now()
	v := l.visits[b.Appointment]
	if v == nil {
		v = &labVisit{booking: b, outcome: l.opts.VisitOutcome(b)}
		l.visits[b.Appointment] = v
	}
	v.tries++
	switch {
	case v.cancelled:
		return visits.Booked{}, fmt.Errorf("%w: the appointment was cancelled", healthlab.Invalid)
	case v.outcome.Refused:
		return visits.Booked{}, fmt.Errorf("%w: the visit provider refuses the booking, because LabOptions.VisitOutcome says so", healthlab.Invalid)
	case v.outcome.Gone && v.made.IsZero():
		return visits.Booked{}, fmt.Errorf("%w: the slot is no longer free, because LabOptions.VisitOutcome says so", healthlab.NotFound)
	case v.tries <= v.outcome.Down:
		return visits.Booked{}, fmt.Errorf("%w: the visit provider does not answer, because LabOptions.VisitOutcome says so", healthlab.Unavailable)
	}
	if v.made.IsZero() {
		if b.Slot.Key != "" {
			slot, err := l.findSlot(b)
			if err != nil {
				return visits.Booked{}, err
			}
			v.reserveSlot(l, slot)
		}
		v.made = now
		l.updateOrder(b.Order, (*labOrder).markVisited)
		v.later = b.Slot.Key == "" || slices.Contains(l.opts.PatientManaged, b.Provider)
		v.agreed = !v.later && !v.outcome.Slow && !v.outcome.Never
		l.schedule(v)
	}
	if v.outcome.Slow && !now.Before(v.made.Add(time.Minute)) {
		v.agreed = true
	}
	if v.tries <= v.outcome.Down+v.outcome.Silent {
		// The provider has stored the appointment, but the answer does not arrive.
		return visits.Booked{}, context.DeadlineExceeded
	}
	return v.answer(), nil
}

// updateOrder calls change with the state of an order for which a visit was booked. If the order has not arrived, its
// state waits in l.early.
func (l *Lab) updateOrder(id orders.OrderID, change func(*labOrder)) {
	if o := l.orders[id]; o != nil {
		change(o)
		l.schedule(o)
		return
	}
	if l.early[id] == nil {
		l.early[id] = &labOrder{}
	}
	change(l.early[id])
}

func (v *labVisit) answer() visits.Booked {
	id := strings.ToUpper(v.booking.Appointment.String()[:8])
	return visits.Booked{Confirmed: v.agreed, Start: v.start, End: v.end, ProviderID: "pr-" + id, ExternalID: "SBX-" + id}
}

func (v *labVisit) reserveSlot(l *Lab, slot appointment.Slot) {
	v.releaseSlot(l)
	v.slot, v.start, v.end = slot.Key, slot.Start, slot.End
	l.taken[v.slot]++
}

func (v *labVisit) releaseSlot(l *Lab) {
	if v.slot != "" {
		l.taken[v.slot]--
		v.slot = ""
	}
}

// MoveVisit implements [visits.Backend].
func (l *Lab) MoveVisit(ctx context.Context, b visits.Booking) (visits.Booked, error) {
	if err := ctx.Err(); err != nil {
		return visits.Booked{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.visits[b.Appointment]
	outcome := l.opts.VisitOutcome(b)
	switch {
	case v == nil || v.made.IsZero() || v.cancelled:
		return visits.Booked{}, fmt.Errorf("%w: appointment: must be booked and not cancelled", healthlab.Invalid)
	case v.outcome.TooLate || !v.start.IsZero() && !l.opts.Now().Before(v.start):
		return visits.Booked{}, fmt.Errorf("%w: it is too late to move the appointment: it has started, or LabOptions.VisitOutcome says so", healthlab.Precondition)
	case outcome.Gone:
		return visits.Booked{}, fmt.Errorf("%w: the slot is no longer free, because LabOptions.VisitOutcome says so", healthlab.NotFound)
	}
	if v.moves++; v.moves <= outcome.Down {
		return visits.Booked{}, fmt.Errorf("%w: the visit provider does not answer, because LabOptions.VisitOutcome says so", healthlab.Unavailable)
	}
	if v.slot != b.Slot.Key {
		slot, err := l.findSlot(b)
		if err != nil {
			return visits.Booked{}, err
		}
		v.reserveSlot(l, slot)
		l.schedule(v)
	}
	if v.moves <= outcome.Down+outcome.Silent {
		return visits.Booked{}, context.DeadlineExceeded
	}
	v.moves = 0
	return v.answer(), nil
}

// CancelVisit implements [visits.Backend].
func (l *Lab) CancelVisit(ctx context.Context, c visits.Cancellation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(l.opts.Now())
	v := l.visits[c.Appointment]
	if v == nil {
		// Makes later bookings of this appointment fail.
		l.visits[c.Appointment] = &labVisit{cancelled: true}
		return nil
	}
	if v.outcome.TooLate && !v.cancelled {
		return fmt.Errorf("%w: it is too late to cancel the appointment, because LabOptions.VisitOutcome says so", healthlab.Precondition)
	}
	v.cancelled = true
	v.releaseSlot(l)
	l.schedule(v)
	return nil
}

// Appointments returns the number of booked appointments of an order, for tests.
func (l *Lab) Appointments(id orders.OrderID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, v := range l.visits {
		if v.booking.Order == id && !v.made.IsZero() && !v.cancelled {
			n++
		}
	}
	return n
}

// visitNews is one step of an appointment that the provider will report.
type visitNews struct {
	at         time.Time
	on         appointment.Trigger
	start, end time.Time
}

// plan returns all steps of the appointment, in time order.
func (v *labVisit) plan(l *Lab) []visitNews {
	if v.made.IsZero() {
		return nil
	}
	later := v.made.Add(l.opts.Step)
	var out []visitNews
	start, end := v.start, v.end
	switch {
	case v.outcome.Dropped:
		return []visitNews{{at: later, on: appointment.VisitCalledOff}}
	case v.outcome.Never:
		return nil
	case v.booking.Slot.Key == "":
		if start.IsZero() {
			start, end = v.request(l, later)
		}
		out = append(out, visitNews{at: later, on: appointment.VisitAccepted, start: start, end: end})
	case v.later:
		out = append(out, visitNews{at: later, on: appointment.VisitAccepted})
	}
	if v.outcome.Moved && later.Before(start) {
		if !v.moved {
			start, end = start.Add(24*time.Hour), end.Add(24*time.Hour)
		}
		out = append(out, visitNews{at: later.Add(time.Second), on: appointment.VisitRescheduled, start: start, end: end})
	}
	if len(out) > 0 && out[len(out)-1].at.After(start) {
		return out
	}
	return append(out, visitNews{at: start, on: appointment.VisitStarted}, visitNews{at: end, on: appointment.VisitDone})
}

// request returns the time that the provider sets for a requested visit: ten o'clock two days after the day of after.
func (v *labVisit) request(l *Lab, after time.Time) (start, end time.Time) {
	loc := time.UTC
	for _, a := range Areas() {
		if a.Provider == v.booking.Provider {
			if zone, err := time.LoadLocation(a.Zone); err == nil {
				loc = zone
			}
		}
	}
	start, err := appointment.WallTime(healthlab.DateOf(after.In(loc)).AddDays(2), 10, 0, loc)
	if err != nil {
		start = after.Add(48 * time.Hour)
	}
	return start, start.Add(homeSlot)
}

// next implements [source].
func (v *labVisit) next(l *Lab) (time.Time, bool) {
	plan := v.plan(l)
	if v.cancelled || v.told >= len(plan) {
		return time.Time{}, false
	}
	return plan[v.told].at, true
}

// message implements [source].
func (v *labVisit) message(l *Lab, at time.Time) exchange.Message {
	n := v.plan(l)[v.told]
	v.told++
	b := v.booking
	m := exchange.Message{
		ID: uuid.NewSHA1(b.Appointment, []byte(string(n.on)+strconv.Itoa(v.told))).String(), Team: b.Team, Order: b.Order, At: at,
		Visit: &orders.VisitUpdate{Appointment: b.Appointment, On: n.on, Start: n.start, End: n.end},
	}
	switch n.on {
	case appointment.VisitDone:
		l.updateOrder(b.Order, func(o *labOrder) { o.drawn = at })
	case appointment.VisitCalledOff:
		v.cancelled = true
		v.releaseSlot(l)
	case appointment.VisitAccepted:
		if v.agreed = true; !n.start.IsZero() {
			v.start, v.end = n.start, n.end
		}
	case appointment.VisitRescheduled:
		v.moved, v.start, v.end = true, n.start, n.end
	default:
	}
	return m
}

func (v *labVisit) repeats() int { return v.outcome.Repeats }
