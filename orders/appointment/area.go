package appointment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Radii are the allowed search radii for centers, in statute miles.
func Radii() []int { return []int{10, 20, 25, 50, 100} }

// DefaultRadius is the search radius of a request without one.
const DefaultRadius = 25

// maxCenters is the highest number of centers in an answer.
const maxCenters = 30

// AreaRequest asks for the labs and phlebotomy providers around a postal code.
type AreaRequest struct {
	// Zip has five digits.
	Zip string
	// Radius is one of [Radii]; zero means [DefaultRadius].
	Radius int
	// Labs are the slugs of the central labs to include; empty means all.
	Labs []string
	// Lab is deprecated: the slug of one lab, used if Labs is empty.
	Lab string
	// LabAccountID is the lab account whose billing types are listed; nil means the account that an order would
	// use.
	LabAccountID *catalogue.LabAccountID
}

// CenterRequest asks for a lab's centers around a postal code.
type CenterRequest struct {
	Zip   string
	LabID int
	// Radius is one of [Radii]; zero means [DefaultRadius].
	Radius int
	// Capabilities are the capabilities that a center must have, all of them.
	Capabilities []PSCCapability
	LabAccountID *catalogue.LabAccountID
}

// AreaInfo lists the labs and phlebotomy providers around a postal code.
type AreaInfo struct {
	ZipCode    string         `json:"zip_code"`
	Phlebotomy PhlebotomyArea `json:"phlebotomy"`
	// CentralLabs are the labs with a center within the radius, by slug.
	CentralLabs map[string]PSCAreaInfo `json:"central_labs"`
}

// PhlebotomyArea lists the providers whose phlebotomists visit patients at home.
type PhlebotomyArea struct {
	IsServed  bool                 `json:"is_served"`
	Providers []PhlebotomyProvider `json:"providers"`
}

// PhlebotomyProvider is a provider of home visits that serves an area.
type PhlebotomyProvider struct {
	Name         string        `json:"name"`
	ServiceTypes []ServiceTier `json:"service_types"`
}

// UnmarshalJSON reads the JSON of the HTTP API; service_types may be named tier.
func (p *PhlebotomyProvider) UnmarshalJSON(b []byte) error {
	type plain PhlebotomyProvider
	in := struct {
		*plain
		Tier []ServiceTier `json:"tier"`
	}{plain: (*plain)(p)}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	if p.ServiceTypes == nil {
		p.ServiceTypes = in.Tier
	}
	return nil
}

// PSCAreaInfo describes a lab's centers in an area.
type PSCAreaInfo struct {
	PatientServiceCenters PSCAreaDetails `json:"patient_service_centers"`
	// SupportedBillTypes are the billing types that the lab account accepts in the state of the postal code.
	SupportedBillTypes []catalogue.BillingType `json:"supported_bill_types"`
	LabID              int                     `json:"lab_id"`
}

// PSCAreaDetails summarizes a lab's centers within the radius.
type PSCAreaDetails struct {
	// AppointmentWithService is true if at least one center within the radius can be booked through this
	// service.
	AppointmentWithService bool `json:"appointment_with_service"`
	// WithinRadius is the number of centers within the radius.
	WithinRadius int `json:"within_radius"`
	// Radius is the radius of the search in miles, in decimal digits.
	Radius string `json:"radius"`
	// Capabilities are the capabilities of all centers within the radius.
	Capabilities []PSCCapability `json:"capabilities"`
}

// UnmarshalJSON reads the JSON of the HTTP API; AppointmentWithService may have any name appointment_with_*.
func (d *PSCAreaDetails) UnmarshalJSON(b []byte) error {
	type plain PSCAreaDetails
	if err := json.Unmarshal(b, (*plain)(d)); err != nil {
		return err
	}
	const named, start = "appointment_with_service", "appointment_with_"
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(b, &keys); err != nil {
		return err
	}
	if _, ok := keys[named]; ok {
		return nil
	}
	for key, raw := range keys {
		var with bool
		if !strings.HasPrefix(key, start) {
			continue
		}
		if err := json.Unmarshal(raw, &with); err != nil {
			return err
		}
		d.AppointmentWithService = d.AppointmentWithService || with
	}
	return nil
}

// PSCInfo lists a lab's centers around a postal code.
type PSCInfo struct {
	LabID int    `json:"lab_id"`
	Slug  string `json:"slug"`
	// PatientServiceCenters are at most 30, the nearest first.
	PatientServiceCenters []PSCLocation `json:"patient_service_centers"`
}

// PSCLocation is a center with its distance.
type PSCLocation struct {
	Metadata PSCMetadata `json:"metadata"`
	// Distance is the distance from the middle of the postal code area, in whole miles, in decimal digits.
	Distance           string                  `json:"distance"`
	SiteCode           string                  `json:"site_code"`
	SupportedBillTypes []catalogue.BillingType `json:"supported_bill_types"`
	Location           LngLat                  `json:"location"`
	Capabilities       []PSCCapability         `json:"capabilities"`
}

// UnmarshalJSON reads the JSON of the HTTP API; the distance may be a number.
func (p *PSCLocation) UnmarshalJSON(b []byte) error {
	type plain PSCLocation
	in := struct {
		*plain
		Distance rules.NumberText `json:"distance"`
	}{plain: (*plain)(p)}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	p.Distance = string(in.Distance)
	return nil
}

var fiveDigits = regexp.MustCompile(`^[0-9]{5}$`)

func checkRadius(c rules.Check, miles *int) {
	if *miles == 0 {
		*miles = DefaultRadius
	}
	if !slices.Contains(Radii(), *miles) {
		c.Add("enum", "must be one of "+rules.List(Radii()), "radius")
	}
}

func checkFiveDigits(c rules.Check, zip string) {
	if !fiveDigits.MatchString(zip) {
		c.Add("zip_form", "must be five digits", "zip_code")
	}
}

// Area returns the providers of home visits and the labs with centers around a postal code. Labs without a
// center within the radius are left out. RuleErrors ZIP_CODE_UNKNOWN, and those of the given lab account.
func (s *Service) Area(ctx context.Context, team healthlab.TeamID, req AreaRequest) (AreaInfo, error) {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	checkFiveDigits(c, req.Zip)
	checkRadius(c, &req.Radius)
	labs, err := s.catalogue.CentralLabs(ctx)
	if err != nil {
		return AreaInfo{}, err
	}
	catalogue.CheckLabs(&p, labs, req.Labs)
	if req.Lab != "" && len(req.Labs) == 0 {
		if req.Labs = []string{req.Lab}; !catalogue.HasLab(labs, req.Lab) {
			rules.OneOf(&p, req.Lab, catalogue.Slugs(labs), "lab")
		}
	}
	if err := p.Err(); err != nil {
		return AreaInfo{}, err
	}
	zip, err := s.zip(ctx, req.Zip)
	if err != nil {
		return AreaInfo{}, err
	}
	accounts, err := s.catalogue.Accounts(ctx, team)
	if err != nil {
		return AreaInfo{}, fmt.Errorf("find lab accounts: %w", err)
	}
	out := AreaInfo{ZipCode: req.Zip, CentralLabs: map[string]PSCAreaInfo{}}
	if out.Phlebotomy, err = s.Served(ctx, req.Zip); err != nil {
		return AreaInfo{}, err
	}
	for _, lab := range labs {
		if !rules.MatchesAny(req.Labs, lab.Slug) {
			continue
		}
		near, err := s.opts.Centers.CentersNear(ctx, CenterQuery{LabID: lab.ID, Near: zip.Location, Miles: float64(req.Radius)})
		if err != nil {
			return AreaInfo{}, fmt.Errorf("find centers: %w", err)
		}
		if near.Total == 0 {
			continue
		}
		bills, err := billTypes(&lab, req.LabAccountID, accounts, zip.State)
		if err != nil {
			return AreaInfo{}, err
		}
		out.CentralLabs[lab.Slug] = PSCAreaInfo{LabID: lab.ID, SupportedBillTypes: bills, PatientServiceCenters: PSCAreaDetails{
			AppointmentWithService: slices.Contains(near.Capabilities, PSCSchedulingViaService),
			WithinRadius:           near.Total, Radius: strconv.Itoa(req.Radius), Capabilities: rules.NonNil(near.Capabilities),
		}}
	}
	return out, nil
}

// Served returns the providers that visit patients at a five-digit postal code; none if the service has no
// [SlotBackend]. Unavailable if the backend returns an error.
func (s *Service) Served(ctx context.Context, zip string) (PhlebotomyArea, error) {
	out := PhlebotomyArea{Providers: []PhlebotomyProvider{}}
	if s.slots == nil {
		return out, nil
	}
	call, cancel := context.WithTimeout(ctx, s.opts.LabTimeout)
	defer cancel()
	all, err := s.slots.ServedAt(call, zip)
	if err != nil {
		return out, fmt.Errorf("find phlebotomy providers: %w", away(ctx, err))
	}
	for _, p := range all {
		if len(p.Tiers) > 0 {
			out.Providers = append(out.Providers, PhlebotomyProvider{Name: p.Provider, ServiceTypes: slices.Clone(p.Tiers)})
		}
	}
	slices.SortFunc(out.Providers, func(a, b PhlebotomyProvider) int { return slices.Compare([]string{a.Name}, []string{b.Name}) })
	out.IsServed = len(out.Providers) > 0
	return out, nil
}

func away(ctx context.Context, err error) error {
	// Any error of a provider becomes Unavailable, so that the caller tries again later.
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: the appointment provider did not respond (%v); retry later", healthlab.Unavailable, healthlab.KindOf(err))
}

// zip returns the position and the state of a postal code. RuleError ZIP_CODE_UNKNOWN if it is unknown.
func (s *Service) zip(ctx context.Context, code string) (Zip, error) {
	if s.opts.Centers == nil || s.opts.Zips == nil {
		return Zip{}, &healthlab.RuleError{Kind: healthlab.Unimplemented, Type: PSCNotAvailable, Msg: "this installation has no data of patient service centers"}
	}
	zip, ok, err := s.opts.Zips.FindZip(ctx, code)
	if err != nil {
		return Zip{}, fmt.Errorf("find postal code: %w", err)
	}
	if !ok {
		return Zip{}, rules.Broken(ZipCodeUnknown, "zip_code: must be a postal code of the US that the service knows")
	}
	return zip, nil
}

// billTypes returns the billing types that a lab account accepts in a state: the account want, else the one that an
// order at the lab would use. Empty if the team has no such account at the lab. It returns an error if want is not nil
// and not an account that the team can use.
func billTypes(lab *catalogue.Lab, want *catalogue.LabAccountID, accounts catalogue.Accounts, state string) ([]catalogue.BillingType, error) {
	out := []catalogue.BillingType{}
	a, err := catalogue.AccountFor(lab, want, accounts, false)
	var rule *healthlab.RuleError
	elsewhere := errors.As(err, &rule) && rule.Type == catalogue.LabAccountWrongLab // the account is at another lab, so this lab has no billing types
	if err != nil && want != nil && !elsewhere {
		return nil, err
	}
	if a == nil {
		return out, nil
	}
	for _, b := range catalogue.BillingTypes() {
		if catalogue.CheckBilling(a, b, state) == nil {
			out = append(out, b)
		}
	}
	return out, nil
}

// PSCs returns a lab's centers around a postal code. RuleErrors ZIP_CODE_UNKNOWN, LAB_NOT_FOUND, and those of
// the given lab account.
func (s *Service) PSCs(ctx context.Context, team healthlab.TeamID, req CenterRequest) (PSCInfo, error) {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	checkFiveDigits(c, req.Zip)
	checkRadius(c, &req.Radius)
	for i, has := range req.Capabilities {
		rules.OneOf(&p, has, PSCCapabilities(), "capabilities", i)
	}
	if err := p.Err(); err != nil {
		return PSCInfo{}, err
	}
	zip, err := s.zip(ctx, req.Zip)
	if err != nil {
		return PSCInfo{}, err
	}
	labs, err := s.catalogue.Labs(ctx)
	if err != nil {
		return PSCInfo{}, fmt.Errorf("find labs: %w", err)
	}
	i := slices.IndexFunc(labs, func(l catalogue.Lab) bool { return l.ID == req.LabID })
	if i < 0 {
		return PSCInfo{}, rules.Missing(catalogue.LabNotFound, "lab_id: must be the id of a lab; GET /v3/lab_tests/labs lists the labs")
	}
	accounts, err := s.catalogue.Accounts(ctx, team)
	if err != nil {
		return PSCInfo{}, fmt.Errorf("find lab accounts: %w", err)
	}
	bills, err := billTypes(&labs[i], req.LabAccountID, accounts, zip.State)
	if err != nil {
		return PSCInfo{}, err
	}
	near, err := s.opts.Centers.CentersNear(ctx, CenterQuery{
		LabID: req.LabID, Near: zip.Location, Miles: float64(req.Radius), Capabilities: req.Capabilities, Most: maxCenters,
	})
	if err != nil {
		return PSCInfo{}, fmt.Errorf("find centers: %w", err)
	}
	out := PSCInfo{LabID: req.LabID, Slug: labs[i].Slug, PatientServiceCenters: make([]PSCLocation, 0, len(near.Centers))}
	for _, at := range near.Centers {
		out.PatientServiceCenters = append(out.PatientServiceCenters, PSCLocation{
			Metadata: at.Metadata, Distance: strconv.Itoa(wholeMiles(zip.Location, at.Location)), SiteCode: at.SiteCode,
			SupportedBillTypes: slices.Clone(bills), Location: at.Location, Capabilities: at.Capabilities,
		})
	}
	return out, nil
}
