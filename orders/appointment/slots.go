package appointment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// AvailabilityDays is the number of days for which a request returns free slots.
const AvailabilityDays = 14

const (
	// cachedDays is the number of days from now for which slots are cached.
	cachedDays = 21
	// cachedFor is the highest age of a cached answer.
	cachedFor = 15 * time.Minute
	// cachedEvery is the interval at which the cache is refreshed.
	cachedEvery = time.Minute
	// maxSites is the highest number of centers in a request; nearSites the highest number of centers that are
	// queried around a postal code.
	maxSites  = 3
	nearSites = 10
)

// AvailabilitySlots are the free slots of [AvailabilityDays] days.
type AvailabilitySlots struct {
	Slots []DaySlots `json:"slots"`
	// Timezone is the IANA time zone of a visit at home; null for centers, each of which has its own, and if
	// there is no slot.
	Timezone *string `json:"timezone"`
}

// DaySlots are the slots of one local day, at one center or at the patient's address.
type DaySlots struct {
	// Location is the center; null for a visit at home.
	Location *SlotLocation `json:"location"`
	// Date is a day in the time zone of the center or the address.
	Date healthlab.Date `json:"date"`
	// Slots are sorted by start; empty if no slot is free that day.
	Slots []TimeSlot `json:"slots"`
}

// TimeSlot is a time that can be booked.
type TimeSlot struct {
	// BookingKey is the key for booking the slot, once; null if the slot cannot be booked.
	BookingKey *string        `json:"booking_key"`
	Start      healthlab.Time `json:"start"`
	End        healthlab.Time `json:"end"`
	// ExpiresAt is the time until which the key can be used.
	ExpiresAt *healthlab.Time `json:"expires_at"`
	// Price is in the smallest unit of the currency; 0 at centers.
	Price      int64 `json:"price"`
	IsPriority bool  `json:"is_priority"`
	// NumAppointmentsAvailable is the number of appointments that can still be booked in the slot.
	NumAppointmentsAvailable int `json:"num_appointments_available"`
}

// SlotLocation is a center whose slots are shown.
type SlotLocation struct {
	Location LngLat `json:"location"`
	// Distance is the distance from the requested postal code in whole miles; null if the request has none.
	Distance     *int    `json:"distance"`
	Address      Address `json:"address"`
	Code         string  `json:"code"`
	Name         string  `json:"name"`
	IANATimezone *string `json:"iana_timezone"`
}

// SlotCache stores slots that providers offered recently. All methods are safe for concurrent use and atomic.
// Once ctx has ended, they return its error and write nothing.
type SlotCache interface {
	// PutSlots replaces the cached slots of each site in slots; an empty list means that the site has no free slots.
	// The slots were free at the instant at. PutSlots skips a site whose cached slots are of a later instant.
	PutSlots(ctx context.Context, lab string, at time.Time, slots map[string][]Slot) error
	// CachedSlots returns the cached slots by site. Sites without cached slots are missing in the result.
	CachedSlots(ctx context.Context, lab string, sites []string) (map[string]CachedSlots, error)
}

// CachedSlots are the slots of a center that were free at an instant.
type CachedSlots struct {
	At    time.Time
	Slots []Slot
}

// span is the [AvailabilityDays] days from first, in the time zone loc.
type span struct {
	first healthlab.Date
	loc   *time.Location
}

func (d span) day(at time.Time) healthlab.Date { return healthlab.DateOf(at.In(d.loc)) }

// spanAt returns the span that begins at start, or today if start is nil, in a time zone. False if start is before
// today.
func spanAt(start *healthlab.Date, loc *time.Location, now time.Time) (span, bool) {
	d := span{loc: loc}
	if d.first = d.day(now); start == nil {
		return d, true
	}
	ok := !start.Before(d.first)
	d.first = *start
	return d, ok
}

// timeRange returns a time range that contains the span from start in every time zone; from is not before now.
func timeRange(start *healthlab.Date, now time.Time) (from, to time.Time) {
	if start == nil {
		return now, now.Add((AvailabilityDays + 1) * 24 * time.Hour)
	}
	from, to = start.At(time.UTC).Add(-14*time.Hour), start.AddDays(AvailabilityDays).At(time.UTC).Add(12*time.Hour)
	if from.Before(now) {
		from = now
	}
	return from, to
}

func inPast() error { return rules.Broken(StartDateInPast, "start_date must be today or later") }

// fetchSlots queries the backend for free slots. It leaves out slots that have begun, end before they start, or do not
// match the query.
func (s *Service) fetchSlots(ctx context.Context, q SlotQuery, now time.Time) ([]Slot, error) {
	call, cancel := context.WithTimeout(ctx, s.opts.LabTimeout)
	defer cancel()
	all, err := s.slots.FreeSlots(call, q)
	if err != nil {
		return nil, fmt.Errorf("find free slots: %w", away(ctx, err))
	}
	return slices.DeleteFunc(all, func(slot Slot) bool {
		site := q.Type == Phlebotomy || slices.ContainsFunc(q.Sites, func(c Center) bool { return c.SiteCode == slot.SiteCode })
		return !slot.Start.After(now) || !slot.Start.Before(slot.End) || !site || slot.Start.Before(q.From) || !slot.Start.Before(q.To)
	}), nil
}

// daySlots returns a list of slots for each day of the span d. at is the center; nil for a visit at home. k is the
// booking key without id and slot; daySlots completes and encrypts it for each free slot that can be booked.
func (s *Service) daySlots(ctx context.Context, team healthlab.TeamID, d span, at *SlotLocation, k BookingKey, free []Slot, now time.Time) ([]DaySlots, error) {
	days := make([]DaySlots, AvailabilityDays)
	for i := range days {
		days[i] = DaySlots{Location: at, Date: d.first.AddDays(i), Slots: []TimeSlot{}}
	}
	slices.SortFunc(free, func(a, b Slot) int {
		return cmp.Or(a.Start.Compare(b.Start), a.End.Compare(b.End), strings.Compare(a.Provider, b.Provider), strings.Compare(a.Key, b.Key))
	})
	for _, slot := range free {
		i := 0
		for i < len(days) && days[i].Date != d.day(slot.Start) {
			i++
		}
		if i == len(days) || !slot.Start.After(now) {
			continue
		}
		out := TimeSlot{Start: healthlab.At(slot.Start), End: healthlab.At(slot.End), Price: slot.Price, IsPriority: slot.Priority,
			NumAppointmentsAvailable: max(slot.Places, 0)}
		k.ID, k.Slot = s.opts.NewID(), slot
		if expires := k.expires(); slot.Key != "" && slot.Places > 0 && expires.After(now) {
			key, err := s.sealKey(ctx, team, k)
			if err != nil {
				return nil, err
			}
			until := healthlab.At(expires)
			out.BookingKey, out.ExpiresAt = &key, &until
		}
		days[i].Slots = append(days[i].Slots, out)
	}
	return days, nil
}

// HomeSlots returns the free slots for a home visit at an address: [AvailabilityDays] days from start, or, if
// start is nil, from today at the address. RuleErrors STREET_NUMBER_MISSING, AREA_NOT_SERVED,
// START_DATE_IN_PAST.
func (s *Service) HomeSlots(ctx context.Context, team healthlab.TeamID, start *healthlab.Date, req AddressInput) (AvailabilitySlots, error) {
	var none AvailabilitySlots
	if err := req.Check(); err != nil {
		return none, err
	}
	if _, err := s.checkOffered(ctx, team, Phlebotomy); err != nil {
		return none, err
	}
	now := s.now()
	// A start day that is over in every time zone is refused before the address is looked up.
	if start != nil && start.Before(rules.UTCDay(now.Add(-12*time.Hour))) {
		return none, inPast()
	}
	if !HasStreetNumber(req.FirstLine) {
		return none, rules.Broken(StreetNumberMissing, "first_line: must have a street number")
	}
	address := req.Address()
	area, err := s.Served(ctx, address.ZipCode[:5])
	if err != nil {
		return none, err
	}
	ready := func(p PhlebotomyProvider) bool { return slices.Contains(p.ServiceTypes, ReadyTier) }
	if !slices.ContainsFunc(area.Providers, ready) {
		return none, rules.Broken(AreaNotServed, "zip_code: must be in an area where a provider offers bookable visits")
	}
	from, to := timeRange(start, now)
	free, err := s.fetchSlots(ctx, SlotQuery{Type: Phlebotomy, Address: address, From: from, To: to}, now)
	if err != nil {
		return none, err
	}
	free = slices.DeleteFunc(free, func(slot Slot) bool {
		_, err := Zone(slot.Zone)
		return err != nil || !slices.ContainsFunc(area.Providers, func(p PhlebotomyProvider) bool { return p.Name == slot.Provider && ready(p) })
	})
	loc := time.UTC
	var out AvailabilitySlots
	if len(free) > 0 {
		zone := free[0].Zone
		loc, _ = Zone(zone)
		out.Timezone = &zone
	}
	d, ok := spanAt(start, loc, now)
	if !ok && out.Timezone != nil {
		return none, inPast()
	}
	if out.Slots, err = s.daySlots(ctx, team, d, nil, BookingKey{Type: Phlebotomy, Address: &address}, free, now); err != nil {
		return none, err
	}
	return out, nil
}

// CenterSlotsRequest asks for free slots at a lab's centers.
type CenterSlotsRequest struct {
	// Lab is the slug of the lab.
	Lab string
	// Start is the first day; nil means today in the center's time zone.
	Start *healthlab.Date
	// SiteCodes are at most three codes of centers. With them, Zip and Radius are ignored.
	SiteCodes []string
	// Zip has five digits; Radius is one of [Radii], zero means [DefaultRadius]. NoRadius is true if the
	// request has an explicit null radius, which is refused with a postal code.
	Zip      string
	Radius   int
	NoRadius bool
	// AllowStale accepts slots that are some minutes old.
	AllowStale bool
}

// CenterSlots returns the free slots of a lab's centers: [AvailabilityDays] days for each center that has a free slot.
// The nearest center comes first; centers that the request names by code are sorted by code. RuleErrors PLACE_MISSING,
// TOO_MANY_SITES, SITE_UNKNOWN, ZIP_CODE_UNKNOWN, START_DATE_IN_PAST, NO_SLOTS (NotFound), and those of
// [Service.Offer].
func (s *Service) CenterSlots(ctx context.Context, team healthlab.TeamID, req CenterSlotsRequest) (AvailabilitySlots, error) {
	none := AvailabilitySlots{Slots: []DaySlots{}}
	settings, err := s.checkOffered(ctx, team, PatientServiceCenter)
	if err != nil {
		return none, err
	}
	if err := s.checkCenterRequest(settings, &req); err != nil {
		return none, err
	}
	now := s.now()
	lab, err := s.labBySlug(ctx, req.Lab)
	if err != nil {
		return none, err
	}
	sites, from, err := s.requestedCenters(ctx, lab, req)
	if err != nil {
		return none, err
	}
	spans, err := spansAt(req.Start, sites, now)
	if err != nil {
		return none, err
	}
	sites = slices.DeleteFunc(sites, func(c Center) bool { return !slices.Contains(c.Capabilities, PSCSchedulingViaService) })
	free, err := s.freeSlotsOf(ctx, lab.Slug, sites, req, now)
	if err != nil {
		return none, err
	}
	for _, at := range sites {
		here := whileOpen(&at, spans[at.SiteCode].loc, free[at.SiteCode])
		place := &SlotLocation{Location: at.Location, Address: at.Metadata.Address(), Code: at.SiteCode, Name: at.Metadata.Name}
		zone := at.IANATimezone
		place.IANATimezone = &zone
		if from != nil {
			miles := wholeMiles(*from, at.Location)
			place.Distance = &miles
		}
		days, err := s.daySlots(ctx, team, spans[at.SiteCode], place, BookingKey{Type: PatientServiceCenter, Lab: lab.Slug}, here, now)
		if err != nil {
			return none, err
		}
		if slices.ContainsFunc(days, func(d DaySlots) bool { return len(d.Slots) > 0 }) {
			none.Slots = append(none.Slots, days...)
		}
	}
	if len(none.Slots) == 0 {
		return none, rules.Missing(NoSlots, fmt.Sprintf("no free slot at these centers on the %d days from start_date; try another start_date, radius or site_codes", AvailabilityDays))
	}
	return none, nil
}

// checkCenterRequest returns an error if a request for free slots at centers is invalid, or if its features are not
// enabled in the settings. It sets the default radius in req.
func (s *Service) checkCenterRequest(settings Settings, req *CenterSlotsRequest) error {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	if len(req.SiteCodes) == 0 && req.Zip != "" {
		checkFiveDigits(c, req.Zip)
		checkRadius(c, &req.Radius)
	}
	provider, known := s.Provider(PatientServiceCenter, req.Lab)
	if !known {
		var labs []string // slugs of the labs that take appointments
		for _, p := range s.opts.Providers {
			if p.Type == PatientServiceCenter {
				labs = append(labs, p.Slug)
			}
		}
		rules.OneOf(&p, req.Lab, labs, "lab")
	}
	if err := p.Err(); err != nil {
		return err
	}
	switch {
	case len(req.SiteCodes) == 0 && req.Zip == "":
		return rules.Broken(PlaceMissing, "site_codes or zip_code is required")
	case len(req.SiteCodes) == 0 && req.NoRadius:
		return rules.Broken(PlaceMissing, fmt.Sprintf("radius: must be one of %s if zip_code is given; left out, it is %d", rules.List(Radii()), DefaultRadius))
	case len(req.SiteCodes) > maxSites:
		return rules.Broken(TooManySites, fmt.Sprintf("site_codes: must have at most %d codes", maxSites))
	case provider.PatientManaged && !settings.PatientManagedPSC:
		return rules.NotEnabled("a lab with patient-managed appointments")
	case req.AllowStale && !settings.CachedAvailability:
		return rules.NotEnabled("cached availability")
	}
	return nil
}

// spansAt returns the span from start at each center, by site code. START_DATE_IN_PAST if start is over at all of them.
func spansAt(start *healthlab.Date, sites []Center, now time.Time) (map[string]span, error) {
	spans := map[string]span{}
	past := len(sites) > 0
	for _, at := range sites {
		loc, err := Zone(at.IANATimezone)
		if err != nil {
			return nil, fmt.Errorf("center %s: %w: iana_timezone must be a zone of the IANA time zone database", at.SiteCode, healthlab.Unknown)
		}
		d, ok := spanAt(start, loc, now)
		spans[at.SiteCode] = d
		past = past && !ok
	}
	if past || start != nil && start.Before(rules.UTCDay(now.Add(-12*time.Hour))) {
		return nil, inPast()
	}
	return spans, nil
}

// requestedCenters returns the centers of a request, and the position from which their distances are measured; nil if
// the request names its centers by code.
func (s *Service) requestedCenters(ctx context.Context, lab catalogue.Lab, req CenterSlotsRequest) ([]Center, *LngLat, error) {
	if len(req.SiteCodes) > 0 {
		codes := slices.Compact(slices.Sorted(slices.Values(req.SiteCodes)))
		sites, err := s.opts.Centers.CentersAt(ctx, lab.ID, codes)
		if err != nil {
			return nil, nil, fmt.Errorf("find centers: %w", err)
		}
		if len(sites) < len(codes) || slices.ContainsFunc(sites, func(c Center) bool { return c.Inactive }) {
			return nil, nil, rules.Broken(SiteUnknown, "site_codes: each must be the code of an active center of the lab")
		}
		return sites, nil, nil
	}
	zip, err := s.zip(ctx, req.Zip)
	if err != nil {
		return nil, nil, err
	}
	near, err := s.opts.Centers.CentersNear(ctx, CenterQuery{LabID: lab.ID, Near: zip.Location, Miles: float64(req.Radius),
		Capabilities: []PSCCapability{PSCSchedulingViaService}, Most: nearSites})
	if err != nil {
		return nil, nil, fmt.Errorf("find centers: %w", err)
	}
	return near.Centers, &zip.Location, nil
}

// freeSlotsOf returns the free slots of centers, by site code. If the request accepts cached slots and the cache has
// recent slots of all centers, it returns these; else it queries the provider.
func (s *Service) freeSlotsOf(ctx context.Context, lab string, sites []Center, req CenterSlotsRequest, now time.Time) (map[string][]Slot, error) {
	if len(sites) == 0 {
		return nil, nil
	}
	from, to := timeRange(req.Start, now)
	if req.AllowStale && s.opts.SlotCache != nil && !to.After(now.Add(cachedDays*24*time.Hour)) {
		out := map[string][]Slot{}
		cached, err := s.opts.SlotCache.CachedSlots(ctx, lab, siteCodes(sites))
		if err != nil {
			return nil, fmt.Errorf("read cached slots: %w", err)
		}
		for site, c := range cached {
			if now.Sub(c.At) < cachedFor {
				out[site] = c.Slots
			}
		}
		if len(out) == len(sites) {
			return out, nil
		}
	}
	all, err := s.fetchSlots(ctx, SlotQuery{Type: PatientServiceCenter, Lab: lab, Sites: sites, From: from, To: to}, now)
	if err != nil {
		return nil, err
	}
	return bySite(sites, all), nil
}

func siteCodes(sites []Center) []string {
	out := make([]string, 0, len(sites))
	for _, c := range sites {
		out = append(out, c.SiteCode)
	}
	return out
}

// bySite groups slots by site code. Each of the sites is in the result, with an empty list if it has no slots.
func bySite(sites []Center, all []Slot) map[string][]Slot {
	out := map[string][]Slot{}
	for _, c := range sites {
		out[c.SiteCode] = nil
	}
	for _, slot := range all {
		out[slot.SiteCode] = append(out[slot.SiteCode], slot)
	}
	return out
}
