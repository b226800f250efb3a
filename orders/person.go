package orders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// UserInfo is who a user is: what a laboratory, an insurer or a visitor has to know.
// Printing or logging it shows nothing.
type UserInfo struct {
	FirstName   string `json:"first_name"`
	LastName    string `json:"last_name"`
	Email       string `json:"email"`
	PhoneNumber string `json:"phone_number"`
	// Gender is free text. Compare it ignoring case.
	Gender string `json:"gender"`
	// DOB is the birth date.
	DOB     healthlab.Date `json:"dob"`
	Address UserAddress    `json:"address"`
	// MedicalProxy speaks for a user who is a minor.
	MedicalProxy *GuarantorDetails `json:"medical_proxy"`
	// The next four are null where nothing was said.
	Race              *Race              `json:"race"`
	Ethnicity         *Ethnicity         `json:"ethnicity"`
	SexualOrientation *SexualOrientation `json:"sexual_orientation"`
	GenderIdentity    *GenderIdentity    `json:"gender_identity"`
}

// UserAddress is where a user lives. The postal code has both of its names.
type UserAddress struct {
	FirstLine  string  `json:"first_line"`
	SecondLine *string `json:"second_line"`
	City       string  `json:"city"`
	State      string  `json:"state"`
	Zip        string  `json:"zip"`
	// ZipCode equals Zip.
	ZipCode string `json:"zip_code"`
	Country string `json:"country"`
	// AccessNotes help a visitor in. At most 1,000 characters.
	AccessNotes *string `json:"access_notes"`
}

// UserInfoRequest is the whole of a user's demographics, in a request.
type UserInfoRequest struct {
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Email     string `json:"email"`
	// PhoneNumber has its country code after +, or is dialled in the US.
	PhoneNumber       string             `json:"phone_number"`
	Gender            string             `json:"gender"`
	DOB               healthlab.Date     `json:"dob"`
	Address           UserAddressInput   `json:"address"`
	MedicalProxy      *GuarantorInput    `json:"medical_proxy"`
	Race              *Race              `json:"race"`
	Ethnicity         *Ethnicity         `json:"ethnicity"`
	SexualOrientation *SexualOrientation `json:"sexual_orientation"`
	GenderIdentity    *GenderIdentity    `json:"gender_identity"`
}

// UserAddressInput is where a user lives, in a request.
type UserAddressInput struct {
	AddressInput
}

// InsuranceRecord is what an insurer covers. Printing or logging it shows nothing.
type InsuranceRecord struct {
	MemberID     string       `json:"member_id"`
	PayorCode    string       `json:"payor_code"`
	Relationship Relationship `json:"relationship"`
	// Insured is the holder of the policy.
	Insured PersonDetails  `json:"insured"`
	Company CompanyDetails `json:"company"`
	GroupID *string        `json:"group_id"`
	// Guarantor pays; null where the patient does.
	Guarantor *GuarantorDetails `json:"guarantor"`
	// IsPrimary: this coverage is asked first.
	IsPrimary bool `json:"is_primary"`
}

// Relationship is what a patient is to the holder of a policy.
type Relationship string

// The relationships.
const (
	RelationSelf   Relationship = "Self"
	RelationSpouse Relationship = "Spouse"
	RelationOther  Relationship = "Other"
)

// PersonDetails is the holder of a policy.
type PersonDetails struct {
	FirstName   string         `json:"first_name"`
	LastName    string         `json:"last_name"`
	Gender      Gender         `json:"gender"`
	DOB         healthlab.Date `json:"dob"`
	Email       string         `json:"email"`
	PhoneNumber string         `json:"phone_number"`
	Address     Address        `json:"address"`
}

// CompanyDetails is an insurer, as the registry of payors has it.
type CompanyDetails struct {
	Name    string  `json:"name"`
	Address Address `json:"address"`
}

// InsuranceRequest asks for an insurance record.
type InsuranceRequest struct {
	// PayorCode is one that a search for payors returns, or the code of a programme
	// whose plan depends on the state where the user lives.
	PayorCode    string             `json:"payor_code"`
	MemberID     string             `json:"member_id"`
	GroupID      *string            `json:"group_id"`
	Relationship Relationship       `json:"relationship"`
	Insured      PersonDetailsInput `json:"insured"`
	// Guarantor is required unless Relationship is Self.
	Guarantor *GuarantorInput `json:"guarantor"`
	// IsPrimary is true if it is not given.
	IsPrimary *bool `json:"is_primary"`
}

// PersonDetailsInput is the holder of a policy, in a request.
type PersonDetailsInput struct {
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	// Gender is taken in any letter case.
	Gender      Gender         `json:"gender"`
	DOB         healthlab.Date `json:"dob"`
	Email       string         `json:"email"`
	PhoneNumber string         `json:"phone_number"`
	Address     AddressInput   `json:"address"`
}

// Coverage is an insurance record as it is kept.
type Coverage struct {
	ID     uuid.UUID
	Team   healthlab.TeamID
	User   healthlab.UserID
	Record InsuranceRecord
	// ValidFrom is when the record was made. ValidUntil is when a later one with the
	// same is_primary took its place; zero while none has.
	ValidFrom, ValidUntil time.Time
}

// Payor is an insurer.
type Payor struct {
	// PayorCode is the same at all labs.
	PayorCode  string   `json:"payor_code"`
	Name       string   `json:"name"`
	Aliases    []string `json:"aliases"`
	OrgAddress Address  `json:"org_address"`
	// Source says who made the entry.
	Source PayorSource `json:"source"`
}

// PayorSource is platform or team.
type PayorSource string

// The sources of payors.
const (
	PlatformPayor PayorSource = "platform"
	TeamPayor     PayorSource = "team"
)

// KeptPayor is a payor that a team made, as it is kept.
type KeptPayor struct {
	Payor
	Team healthlab.TeamID
	// ClearingHouse and ProviderPayorID name it elsewhere; both are empty, or neither.
	ClearingHouse, ProviderPayorID string
	CreatedAt                      time.Time
}

// PayorRequest asks for a payor of the team's own.
type PayorRequest struct {
	Name    string       `json:"name"`
	Address AddressInput `json:"address"`
	// Provider is a clearing house, and ProviderPayorID the payor's code there.
	Provider        *string `json:"provider"`
	ProviderPayorID *string `json:"provider_payor_id"`
}

// PayorQuery looks for payors: by a part of a name, or by the code that a clearing
// house has for one.
type PayorQuery struct {
	Name            string
	ClearingHouse   string
	ProviderPayorID string
}

// PersonStore keeps demographics, insurance records and teams' own payors.
//
// All methods are safe for concurrent use and atomic. Text that contains NUL, or is not
// UTF-8, is refused with [healthlab.Invalid]. Times are kept in UTC to the microsecond.
// What a method hands out is the caller's to edit. A team reaches nothing but its own.
// Once ctx has ended, a call returns its error and writes nothing. Where the same store
// keeps users, erasing one removes their demographics and insurance records, and while a
// user is deleted, reads do not find them.
type PersonStore interface {
	// PutUserInfo keeps a user's demographics in place of earlier ones.
	PutUserInfo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, info UserInfo) error
	// UserInfo returns a user's demographics; NotFound if there are none.
	UserInfo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (UserInfo, error)

	// AddCoverage adds a record, and ends the one with the same is_primary that was
	// valid until now. ValidUntil of c does not matter; ValidFrom is moved to a
	// microsecond after that of the record which ends, if it is not later, so that of
	// two the later call has the later record. NotFound if the user has no
	// demographics; Conflict if the id is taken, by whichever team.
	AddCoverage(ctx context.Context, c Coverage) error
	// Coverage returns a record by its id; NotFound if the team has none.
	Coverage(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (Coverage, error)
	// CoverageAt returns the record with this is_primary that was valid at an instant:
	// from it on, until the next. A zero instant means the one that has not ended.
	// NotFound if there is none.
	CoverageAt(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, primary bool, at time.Time) (Coverage, error)

	// AddPayor adds a payor of a team. Conflict if the team has its code.
	AddPayor(ctx context.Context, p KeptPayor) error
	// Payors returns a team's own payors, by when they were made, ties by code.
	Payors(ctx context.Context, team healthlab.TeamID) ([]KeptPayor, error)
}

// Names of the rules about persons and who pays for them.
const (
	DemographicsMissing  = "DEMOGRAPHICS_MISSING"
	UserInfoNotFound     = "USER_INFO_NOT_FOUND"
	InsuranceNotFound    = "INSURANCE_NOT_FOUND"
	PayorNotFound        = "PAYOR_NOT_FOUND"
	PayorSearchMissing   = "PAYOR_SEARCH_MISSING"
	ClearingHouseUnknown = "CLEARING_HOUSE_UNKNOWN"
)

// Check returns Invalid with every problem of the request itself. Today is the day in
// UTC.
func (r *UserInfoRequest) Check(today healthlab.Date) error {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	c.Name(r.FirstName, "first_name")
	c.Name(r.LastName, "last_name")
	c.Email(r.Email, "email")
	c.Phone(r.PhoneNumber, "phone_number")
	c.Text(r.Gender, "gender", 1, rules.MaxText)
	checkBorn(c, r.DOB, today)
	checkPostal(c.Under("address"), r.Address.AddressInput)
	if r.MedicalProxy != nil {
		checkGuarantor(c.Under("medical_proxy"), *r.MedicalProxy)
	}
	rules.OptionalOf(c, r.Race, races, "race")
	rules.OptionalOf(c, r.Ethnicity, ethnicities, "ethnicity")
	rules.OptionalOf(c, r.SexualOrientation, sexualOrientations, "sexual_orientation")
	rules.OptionalOf(c, r.GenderIdentity, genderIdentities, "gender_identity")
	return p.Err()
}

// born checks a birth date.
func checkBorn(c rules.Check, dob, today healthlab.Date) {
	switch {
	case dob.IsZero():
		c.Add("missing", "is required", "dob")
	case dob.After(today):
		c.Add("date_in_future", "must not be after today", "dob")
	case dob.Year < 1900:
		c.Add("date_too_early", "must be 1900-01-01 or later", "dob")
	}
}

// Check returns Invalid with every problem of the request itself. Today is the day in
// UTC.
func (r *InsuranceRequest) Check(today healthlab.Date) error {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	c.Text(r.PayorCode, "payor_code", 1, rules.MaxText)
	c.Filled(r.MemberID, "member_id", rules.MaxText)
	if r.GroupID != nil {
		c.Filled(*r.GroupID, "group_id", rules.MaxText)
	}
	rules.OneOf(&p, r.Relationship, []Relationship{RelationSelf, RelationSpouse, RelationOther}, "relationship")
	switch {
	case r.Guarantor != nil:
		checkGuarantor(c.Under("guarantor"), *r.Guarantor)
	case r.Relationship != RelationSelf:
		c.Add("missing", "is required unless the relationship is Self", "guarantor")
	}
	in := c.Under("insured")
	in.Name(r.Insured.FirstName, "first_name")
	in.Name(r.Insured.LastName, "last_name")
	rules.OneOf(&p, Gender(strings.ToLower(string(r.Insured.Gender))), genders, "insured", "gender")
	checkBorn(in, r.Insured.DOB, today)
	in.Email(r.Insured.Email, "email")
	in.Phone(r.Insured.PhoneNumber, "phone_number")
	checkPostal(in.Under("address"), r.Insured.Address)
	return p.Err()
}

// Check returns Invalid with every problem of the request itself.
func (r *PayorRequest) Check() error {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	c.Text(r.Name, "name", 1, rules.MaxText)
	checkPostal(c.Under("address"), r.Address)
	c.Optional(r.Provider, "provider", rules.MaxText)
	c.Optional(r.ProviderPayorID, "provider_payor_id", rules.MaxText)
	if r.Provider == nil && r.ProviderPayorID != nil {
		c.Add("missing", "goes with provider_payor_id", "provider")
	}
	if r.Provider != nil && r.ProviderPayorID == nil {
		c.Add("missing", "goes with provider", "provider_payor_id")
	}
	return p.Err()
}

// people returns the store of persons, or that there is none.
func (s *Service) people() (PersonStore, error) {
	if s.opts.People == nil {
		return nil, fmt.Errorf("%w: no store for persons", healthlab.Unimplemented)
	}
	return s.opts.People, nil
}

// person returns the store of persons for a user whom the team has.
func (s *Service) person(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (PersonStore, error) {
	people, err := s.people()
	if err != nil {
		return nil, err
	}
	return people, s.known(ctx, team, user)
}

// SetUserInfo keeps a user's demographics, whole, in place of earlier ones. Invalid
// lists every problem; NotFound if the team has no such user.
func (s *Service) SetUserInfo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, req UserInfoRequest) (UserInfo, error) {
	if err := req.Check(today(s.now())); err != nil {
		return UserInfo{}, err
	}
	people, err := s.person(ctx, team, user)
	if err != nil {
		return UserInfo{}, err
	}
	a := req.Address.address()
	info := UserInfo{
		FirstName: req.FirstName, LastName: req.LastName, Email: req.Email, PhoneNumber: req.PhoneNumber,
		Gender: req.Gender, DOB: req.DOB, MedicalProxy: req.MedicalProxy.guarantor(), Race: req.Race, Ethnicity: req.Ethnicity,
		SexualOrientation: req.SexualOrientation, GenderIdentity: req.GenderIdentity,
		Address: UserAddress{
			FirstLine: a.FirstLine, SecondLine: a.SecondLine, City: a.City, State: a.State, Zip: a.Zip, ZipCode: a.Zip,
			Country: a.Country, AccessNotes: a.AccessNotes,
		},
	}
	if err := people.PutUserInfo(ctx, team, user, info); err != nil {
		return UserInfo{}, fmt.Errorf("set user info: %w", err)
	}
	return info, nil
}

// UserInfo returns a user's demographics. NotFound if the team has no such user, or
// nothing is known of them.
func (s *Service) UserInfo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (UserInfo, error) {
	people, err := s.person(ctx, team, user)
	if err != nil {
		return UserInfo{}, err
	}
	info, err := people.UserInfo(ctx, team, user)
	if err != nil {
		return UserInfo{}, fmt.Errorf("get user info: %w", rules.NotFound(err, UserInfoNotFound, "nothing is known of the user"))
	}
	return info, nil
}

// AddInsurance adds an insurance record of a user; no call ever changes one. Orders
// that an insurer pays use the newest with is_primary. Invalid lists every problem of
// the request. RuleErrors: USER_NOT_FOUND, DEMOGRAPHICS_MISSING, PAYOR_NOT_FOUND.
func (s *Service) AddInsurance(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, req InsuranceRequest) (InsuranceRecord, error) {
	at := s.now()
	if err := req.Check(today(at)); err != nil {
		return InsuranceRecord{}, err
	}
	people, err := s.person(ctx, team, user)
	if err != nil {
		return InsuranceRecord{}, err
	}
	info, err := people.UserInfo(ctx, team, user)
	if errors.Is(err, healthlab.NotFound) {
		return InsuranceRecord{}, rules.Broken(DemographicsMissing, "the user has no demographics: add them first with PATCH /v2/user/{user_id}/info")
	}
	if err != nil {
		return InsuranceRecord{}, fmt.Errorf("find demographics: %w", err)
	}
	payor, ok, err := s.payor(ctx, team, req.PayorCode, info.Address.State)
	if err != nil {
		return InsuranceRecord{}, err
	}
	if !ok {
		return InsuranceRecord{}, rules.Broken(PayorNotFound, "there is no such payor")
	}
	in := req.Insured
	c := Coverage{ID: s.opts.NewID(), Team: team, User: user, ValidFrom: at, Record: InsuranceRecord{
		MemberID: req.MemberID, PayorCode: payor.PayorCode, Relationship: req.Relationship, GroupID: req.GroupID,
		Insured: PersonDetails{FirstName: in.FirstName, LastName: in.LastName, Gender: Gender(strings.ToLower(string(in.Gender))),
			DOB: in.DOB, Email: in.Email, PhoneNumber: in.PhoneNumber, Address: in.Address.address()},
		Company: CompanyDetails{Name: payor.Name, Address: payor.OrgAddress}, Guarantor: req.Guarantor.guarantor(),
		IsPrimary: req.IsPrimary == nil || *req.IsPrimary,
	}}
	err = people.AddCoverage(ctx, c)
	if errors.Is(err, healthlab.NotFound) {
		return InsuranceRecord{}, rules.Broken(DemographicsMissing, "the user has no demographics: add them first with PATCH /v2/user/{user_id}/info")
	}
	if err != nil {
		return InsuranceRecord{}, fmt.Errorf("add insurance: %w", err)
	}
	return c.Record, nil
}

// LatestInsurance returns a user's newest record with this is_primary. NotFound if
// there is none; Forbidden unless the team may read insurance records.
func (s *Service) LatestInsurance(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, primary bool) (InsuranceRecord, error) {
	if err := s.allowed(ctx, team, func(have Settings) bool { return have.InsuranceRead }); err != nil {
		return InsuranceRecord{}, err
	}
	c, err := s.InsuranceAt(ctx, team, user, primary, time.Time{})
	return c.Record, err
}

// InsuranceAt returns the record with this is_primary that was valid at an instant,
// such as that of the draw. A zero instant means the newest. NotFound if there is none.
func (s *Service) InsuranceAt(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, primary bool, at time.Time) (Coverage, error) {
	people, err := s.person(ctx, team, user)
	if err != nil {
		return Coverage{}, err
	}
	c, err := people.CoverageAt(ctx, team, user, primary, at)
	if err != nil {
		return Coverage{}, fmt.Errorf("get insurance: %w", rules.NotFound(err, InsuranceNotFound, "the user has no such insurance record"))
	}
	return c, nil
}

// Insurance returns an insurance record by the id that an order has. NotFound if the
// team has no such record.
func (s *Service) Insurance(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (Coverage, error) {
	people, err := s.people()
	if err != nil {
		return Coverage{}, err
	}
	c, err := people.Coverage(ctx, team, id)
	if err != nil {
		return Coverage{}, fmt.Errorf("get insurance: %w", rules.NotFound(err, InsuranceNotFound, "the team has no such insurance record"))
	}
	return c, nil
}

// allowed checks that the team has something switched on.
func (s *Service) allowed(ctx context.Context, team healthlab.TeamID, on func(Settings) bool) error {
	settings, err := s.opts.Settings(ctx, team)
	if err != nil {
		return fmt.Errorf("team settings: %w", err)
	}
	if !on(settings) {
		return rules.FeatureOff()
	}
	return nil
}

// payor finds what a code means to a team, for somebody who lives in a state.
func (s *Service) payor(ctx context.Context, team healthlab.TeamID, code, state string) (Payor, bool, error) {
	if p, ok := s.opts.Registry.payor(code, state); ok {
		return p, true, nil
	}
	own, err := s.opts.People.Payors(ctx, team)
	if err != nil {
		return Payor{}, false, fmt.Errorf("find payors: %w", err)
	}
	for _, p := range own {
		if p.PayorCode == code {
			return p.Payor, true, nil
		}
	}
	return Payor{}, false, nil
}

// maxFound is how many payors or diagnoses a search returns at most.
const maxFound = 100

// SearchPayors returns the payors that a team can name, its own included: at most 100,
// by name. RuleErrors: PAYOR_SEARCH_MISSING, CLEARING_HOUSE_UNKNOWN (Invalid).
func (s *Service) SearchPayors(ctx context.Context, team healthlab.TeamID, q PayorQuery) ([]Payor, error) {
	byCode := q.ClearingHouse != "" && q.ProviderPayorID != ""
	if q.Name == "" && !byCode || (q.ClearingHouse == "") != (q.ProviderPayorID == "") {
		return nil, rules.Broken(PayorSearchMissing, "give a name, or a clearing house together with its code")
	}
	if err := s.clearing(q.ClearingHouse); err != nil {
		return nil, err
	}
	all := s.opts.Registry.entries()
	if s.opts.People != nil {
		own, err := s.opts.People.Payors(ctx, team)
		if err != nil {
			return nil, fmt.Errorf("search payors: %w", err)
		}
		for _, p := range own {
			all = append(all, RegistryPayor{Payor: p.Payor, IDs: map[string][]string{p.ClearingHouse: {p.ProviderPayorID}}})
		}
	}
	found := []Payor{}
	for _, p := range all {
		named := q.Name != "" && (rules.ContainsFold(p.Name, q.Name) || slices.ContainsFunc(p.Aliases, func(a string) bool { return rules.ContainsFold(a, q.Name) }))
		coded := byCode && slices.Contains(p.IDs[q.ClearingHouse], q.ProviderPayorID)
		if named && (!byCode || coded) || q.Name == "" && coded {
			found = append(found, p.Payor)
		}
	}
	slices.SortStableFunc(found, func(a, b Payor) int { return strings.Compare(a.Name, b.Name) })
	return found[:min(len(found), maxFound)], nil
}

// clearing checks that a clearing house is one of those that are configured.
func (s *Service) clearing(name string) error {
	if name == "" || s.opts.Registry.clearingHouse(name) {
		return nil
	}
	return &healthlab.RuleError{Kind: healthlab.Invalid, Type: ClearingHouseUnknown, Msg: "is one of the clearing houses"}
}

// AddPayor adds a payor that only this team sees. Invalid lists every problem of the
// request; CLEARING_HOUSE_UNKNOWN; Forbidden unless the team may have payors.
func (s *Service) AddPayor(ctx context.Context, team healthlab.TeamID, req PayorRequest) (Payor, error) {
	if err := s.allowed(ctx, team, func(have Settings) bool { return have.OwnPayors }); err != nil {
		return Payor{}, err
	}
	if err := req.Check(); err != nil {
		return Payor{}, err
	}
	people, err := s.people()
	if err != nil {
		return Payor{}, err
	}
	id := s.opts.NewID()
	p := KeptPayor{Team: team, CreatedAt: s.now(), Payor: Payor{
		PayorCode: "TEAM-" + strings.ToUpper(strings.ReplaceAll(id.String(), "-", "")[16:]), Name: req.Name,
		Aliases: []string{}, OrgAddress: req.Address.address(), Source: TeamPayor,
	}}
	if req.Provider != nil {
		if err := s.clearing(*req.Provider); err != nil {
			return Payor{}, err
		}
		p.ClearingHouse, p.ProviderPayorID = *req.Provider, *req.ProviderPayorID
	}
	if err := people.AddPayor(ctx, p); err != nil {
		return Payor{}, fmt.Errorf("add payor: %w", err)
	}
	return p.Payor, nil
}
