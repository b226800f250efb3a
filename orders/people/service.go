package people

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

// Options are the options of a Service. The zero value, and nil, mean the defaults.
type Options struct {
	// Registry has payors and diagnosis codes. Default: there are no payors, and only the form of codes is
	// checked.
	Registry *Registry
	// MayReadInsurance reports whether a team may read insurance records. Default: no team may.
	MayReadInsurance func(ctx context.Context, team healthlab.TeamID) (bool, error)
	// MayAddPayors reports whether a team may add payors that only it sees. Default: no
	// team may.
	MayAddPayors func(ctx context.Context, team healthlab.TeamID) (bool, error)
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids. Default: UUID version 7.
	NewID func() uuid.UUID
}

// Service manages demographics, insurance records and payors of teams. It is safe for concurrent use. A team
// can access its own users only; those of another team are [healthlab.NotFound].
type Service struct {
	store Store // nil if no store is configured: methods that need it return Unimplemented
	users Users
	opts  Options
}

// New returns a Service. Without a store only the methods about the registry work: every other method returns
// [healthlab.Unimplemented].
func New(store Store, users Users, opts *Options) *Service {
	s := &Service{store: store, users: users}
	if opts != nil {
		s.opts = *opts
	}
	never := func(context.Context, healthlab.TeamID) (bool, error) { return false, nil }
	if s.opts.MayReadInsurance == nil {
		s.opts.MayReadInsurance = never
	}
	if s.opts.MayAddPayors == nil {
		s.opts.MayAddPayors = never
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	if s.opts.NewID == nil {
		s.opts.NewID = func() uuid.UUID { return uuid.Must(uuid.NewV7()) }
	}
	return s
}

func (s *Service) now() time.Time { return healthlab.At(s.opts.Now()).Time }

func (s *Service) stored() error {
	if s.store == nil {
		return fmt.Errorf("%w: this installation stores no demographics and no insurance records, because people.New got no store", healthlab.Unimplemented)
	}
	return nil
}

func (s *Service) known(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
	if err := s.stored(); err != nil {
		return err
	}
	return CheckUser(ctx, s.users, team, user)
}

// CheckUser returns a NotFound error of type USER_NOT_FOUND unless the team has the user.
func CheckUser(ctx context.Context, users Users, team healthlab.TeamID, id healthlab.UserID) error {
	ok, err := users.HasUser(ctx, team, id)
	if err != nil {
		return fmt.Errorf("find user: %w", err)
	}
	if !ok {
		return rules.Missing(UserNotFound, "the team has no such user")
	}
	return nil
}

// allowed returns FEATURE_NOT_ENABLED if may returns false for the team. feature is the name for the error.
func allowed(ctx context.Context, team healthlab.TeamID, feature string, may func(context.Context, healthlab.TeamID) (bool, error)) error {
	ok, err := may(ctx, team)
	if err != nil {
		return fmt.Errorf("team settings: %w", err)
	}
	if !ok {
		return rules.NotEnabled(feature)
	}
	return nil
}

// SetUserInfo replaces a user's demographics. Invalid lists every problem; NotFound if the team has no such
// user.
func (s *Service) SetUserInfo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, req UserInfoRequest) (UserInfo, error) {
	if err := req.Check(rules.UTCDay(s.now())); err != nil {
		return UserInfo{}, err
	}
	if err := s.known(ctx, team, user); err != nil {
		return UserInfo{}, err
	}
	a := req.Address.Address()
	info := UserInfo{
		FirstName: req.FirstName, LastName: req.LastName, Email: req.Email, PhoneNumber: req.PhoneNumber,
		Gender: req.Gender, DOB: req.DOB, MedicalProxy: req.MedicalProxy.Details(), Race: req.Race, Ethnicity: req.Ethnicity,
		SexualOrientation: req.SexualOrientation, GenderIdentity: req.GenderIdentity,
		Address: UserAddress{
			FirstLine: a.FirstLine, SecondLine: a.SecondLine, City: a.City, State: a.State, Zip: a.Zip, ZipCode: a.Zip,
			Country: a.Country, AccessNotes: a.AccessNotes,
		},
	}
	if err := s.store.PutUserInfo(ctx, team, user, info); err != nil {
		return UserInfo{}, fmt.Errorf("set user info: %w", err)
	}
	return info, nil
}

// UserInfo returns a user's demographics. NotFound if the team has no such user, or the user has no
// demographics.
func (s *Service) UserInfo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (UserInfo, error) {
	if err := s.known(ctx, team, user); err != nil {
		return UserInfo{}, err
	}
	info, err := s.store.UserInfo(ctx, team, user)
	if err != nil {
		return UserInfo{}, fmt.Errorf("get user info: %w", rules.NotFound(err, UserInfoNotFound, "the user has no demographics"))
	}
	return info, nil
}

// AddInsurance adds an insurance record of a user. Records never change. Orders with insurance billing use the
// newest record with is_primary. Invalid lists every problem of the request. RuleErrors: USER_NOT_FOUND,
// PAYOR_NOT_FOUND. The plan of a federal program is that of the user's state, or of the insured person's state
// if the user has no demographics.
func (s *Service) AddInsurance(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, req InsuranceRequest) (InsuranceRecord, error) {
	at := s.now()
	if err := req.Check(rules.UTCDay(at)); err != nil {
		return InsuranceRecord{}, err
	}
	if err := s.known(ctx, team, user); err != nil {
		return InsuranceRecord{}, err
	}
	state := req.Insured.Address.State
	info, err := s.store.UserInfo(ctx, team, user)
	switch {
	case err == nil:
		state = info.Address.State
	case !errors.Is(err, healthlab.NotFound):
		return InsuranceRecord{}, fmt.Errorf("find demographics: %w", err)
	}
	payor, ok, err := s.payor(ctx, team, req.PayorCode, state)
	if err != nil {
		return InsuranceRecord{}, err
	}
	if !ok {
		return InsuranceRecord{}, rules.Broken(PayorNotFound, "payor_code: must be the code of a payor; GET /v3/insurance/search/payor finds payors")
	}
	in := req.Insured
	c := Coverage{ID: s.opts.NewID(), Team: team, User: user, ValidFrom: at, Record: InsuranceRecord{
		MemberID: req.MemberID, PayorCode: payor.PayorCode, Relationship: req.Relationship, GroupID: req.GroupID,
		Insured: PersonDetails{FirstName: in.FirstName, LastName: in.LastName, Gender: Gender(strings.ToLower(string(in.Gender))),
			DOB: in.DOB, Email: in.Email, PhoneNumber: in.PhoneNumber, Address: in.Address.Address()},
		Company: CompanyDetails{Name: payor.Name, Address: payor.OrgAddress}, Guarantor: req.Guarantor.Details(),
		IsPrimary: req.IsPrimary == nil || *req.IsPrimary,
	}}
	if err := s.store.AddCoverage(ctx, c); err != nil {
		return InsuranceRecord{}, fmt.Errorf("add insurance: %w", rules.NotFound(err, UserNotFound, "the team has no such user"))
	}
	return c.Record, nil
}

// LatestInsurance returns a user's newest insurance record with is_primary equal to primary. If at is not zero, it
// returns the record that was valid at that instant. NotFound if there is none; Forbidden unless the team may read
// insurance records.
func (s *Service) LatestInsurance(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, primary bool, at time.Time) (InsuranceRecord, error) {
	if err := allowed(ctx, team, "access to insurance records", s.opts.MayReadInsurance); err != nil {
		return InsuranceRecord{}, err
	}
	c, err := s.InsuranceAt(ctx, team, user, primary, at)
	return c.Record, err
}

// InsuranceAt returns the user's insurance record with is_primary equal to primary that was valid at an instant, such
// as the time of the draw. A zero instant means the newest record. NotFound if there is none.
func (s *Service) InsuranceAt(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, primary bool, at time.Time) (Coverage, error) {
	if err := s.known(ctx, team, user); err != nil {
		return Coverage{}, err
	}
	c, err := s.store.CoverageAt(ctx, team, user, primary, at)
	if err != nil {
		return Coverage{}, fmt.Errorf("get insurance: %w", rules.NotFound(err, InsuranceNotFound, "the user has no such insurance record"))
	}
	return c, nil
}

// Insurance returns an insurance record by its id, which orders store. NotFound if the team has no such record.
func (s *Service) Insurance(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (Coverage, error) {
	if err := s.stored(); err != nil {
		return Coverage{}, err
	}
	c, err := s.store.Coverage(ctx, team, id)
	if err != nil {
		return Coverage{}, fmt.Errorf("get insurance: %w", rules.NotFound(err, InsuranceNotFound, "the team has no such insurance record"))
	}
	return c, nil
}

// payor returns the payor with a code, from the registry or the team's own payors. state is the patient's state, for
// the code of a federal program. False if there is none.
func (s *Service) payor(ctx context.Context, team healthlab.TeamID, code, state string) (Payor, bool, error) {
	if p, ok := s.opts.Registry.payor(code, state); ok {
		return p, true, nil
	}
	own, err := s.store.Payors(ctx, team)
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

// maxFound is the highest number of payors or diagnoses that a search returns.
const maxFound = 100

// SearchPayors returns the payors that match a query, including the team's own: at most 100, sorted by name.
// RuleErrors: PAYOR_SEARCH_MISSING, CLEARING_HOUSE_UNKNOWN (Invalid).
func (s *Service) SearchPayors(ctx context.Context, team healthlab.TeamID, q PayorQuery) ([]Payor, error) {
	byCode := q.ClearingHouse != "" && q.ProviderPayorID != ""
	if q.Name == "" && !byCode || (q.ClearingHouse == "") != (q.ProviderPayorID == "") {
		return nil, rules.Broken(PayorSearchMissing, "insurance_name, or provider together with provider_payor_id, is required")
	}
	if err := s.clearing(q.ClearingHouse); err != nil {
		return nil, err
	}
	all := s.opts.Registry.entries()
	if s.store != nil {
		own, err := s.store.Payors(ctx, team)
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

func (s *Service) clearing(name string) error {
	houses := s.opts.Registry.clearingHouses()
	if name == "" || slices.Contains(houses, name) {
		return nil
	}
	msg := "provider: " + rules.Allowed(name, houses, "the registry of the installation")
	return &healthlab.RuleError{Kind: healthlab.Invalid, Type: ClearingHouseUnknown, Msg: msg}
}

// AddPayor adds a payor that only this team sees. Invalid lists every problem of the request. RuleErrors:
// CLEARING_HOUSE_UNKNOWN (Invalid). Forbidden unless the team may add payors.
func (s *Service) AddPayor(ctx context.Context, team healthlab.TeamID, req PayorRequest) (Payor, error) {
	if err := allowed(ctx, team, "the addition of payors", s.opts.MayAddPayors); err != nil {
		return Payor{}, err
	}
	if err := req.Check(); err != nil {
		return Payor{}, err
	}
	if err := s.stored(); err != nil {
		return Payor{}, err
	}
	id := s.opts.NewID()
	p := StoredPayor{Team: team, CreatedAt: s.now(), Payor: Payor{
		PayorCode: "TEAM-" + strings.ToUpper(strings.ReplaceAll(id.String(), "-", "")[16:]), Name: req.Name,
		Aliases: []string{}, OrgAddress: req.Address.Address(), Source: TeamPayor,
	}}
	if req.Provider != nil {
		if err := s.clearing(*req.Provider); err != nil {
			return Payor{}, err
		}
		p.ClearingHouse, p.ProviderPayorID = *req.Provider, *req.ProviderPayorID
	}
	if err := s.store.AddPayor(ctx, p); err != nil {
		return Payor{}, fmt.Errorf("add payor: %w", err)
	}
	return p.Payor, nil
}
