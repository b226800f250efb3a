package httpapi

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/portal"
)

// personOperations are about who users are and who pays for them.
func (a api) personOperations() []operation {
	if a.Orders == nil {
		return nil
	}
	return []operation{
		{id: "set_user_info", pattern: "PATCH /v2/user/{user_id}/info", team: a.setUserInfo},
		{id: "read_user_info", pattern: "GET /v2/user/{user_id}/info/latest", team: a.readUserInfo},
		{id: "create_portal_url", pattern: "POST /v2/user/{user_id}/create_portal_url", team: a.createPortalURL},
		{id: "create_insurance", pattern: "POST /v2/user/{user_id}/insurance", team: a.createInsurance, keyed: true},
		{id: "read_latest_insurance", pattern: "GET /v2/user/{user_id}/insurance/latest", team: a.readLatestInsurance},
		{id: "search_payors", pattern: "GET /v3/insurance/search/payor", team: a.searchPayors},
		{id: "search_payors_by_body", pattern: "POST /v3/insurance/search/payor", team: a.searchPayorsByBody},
		{id: "create_payor", pattern: "POST /v3/payor", team: a.createPayor, keyed: true},
		{id: "search_diagnoses", pattern: "GET /v3/insurance/search/diagnosis", team: a.searchDiagnoses},
		{id: "check_diagnoses", pattern: "POST /v3/insurance/validate_icd_codes", team: a.checkDiagnoses},
	}
}

// anyUser is the user that a path names. Here, a text that is no UUID names no user.
func anyUser(in *wire.In) healthlab.UserID {
	id, err := uuid.Parse(in.PathText("user_id", maxPathText))
	if err != nil {
		return healthlab.UserID{}
	}
	return healthlab.UserID{UUID: id}
}

func (a api) setUserInfo(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	user := anyUser(in)
	var body people.UserInfoRequest
	in.Body(&body)
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return err
	}
	info, err := a.Orders.People().SetUserInfo(r.Context(), team, user, body)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, info)
}

func (a api) readUserInfo(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	user := anyUser(in)
	if err := in.Err(); err != nil {
		return err
	}
	info, err := a.Orders.People().UserInfo(r.Context(), team, user)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, info)
}

func (a api) createPortalURL(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	user := userID(in)
	var body portal.Request
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	link, err := a.Orders.PortalLink(r.Context(), team, user, body)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, link)
}

func (a api) createInsurance(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	user := anyUser(in)
	var body people.InsuranceRequest
	in.Body(&body)
	once := onceFrom(in, r, team, "create_insurance "+user.String(), user)
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return err
	}
	return a.answerOnce(w, r, once, body, nil, answered(func(ctx context.Context) (people.InsuranceRecord, error) {
		return a.Orders.People().AddInsurance(ctx, team, user, body)
	}))
}

func (a api) readLatestInsurance(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	user, primary := anyUser(in), in.Bool("is_primary", true)
	if err := in.Err(); err != nil {
		return err
	}
	record, err := a.Orders.People().LatestInsurance(r.Context(), team, user, primary)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, record)
}

func (a api) searchPayors(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	q := people.PayorQuery{Name: text(in, "insurance_name"), ClearingHouse: text(in, "provider"), ProviderPayorID: text(in, "provider_payor_id")}
	if err := in.Err(); err != nil {
		return err
	}
	found, err := a.Orders.People().SearchPayors(r.Context(), team, q)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, found)
}

// payorSearchIn is the body of the deprecated search for payors.
type payorSearchIn struct {
	InsuranceName *string `json:"insurance_name"`
	Provider      *string `json:"provider"`
	ProviderID    *string `json:"provider_id"`
}

// payorByCode is a payor as the deprecated search shows it.
type payorByCode struct {
	Code       string             `json:"code"`
	Name       string             `json:"name"`
	Aliases    []string           `json:"aliases"`
	OrgAddress people.Address     `json:"org_address"`
	Source     people.PayorSource `json:"source"`
}

func (a api) searchPayorsByBody(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body payorSearchIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	var q people.PayorQuery
	for to, from := range map[*string]*string{&q.Name: body.InsuranceName, &q.ClearingHouse: body.Provider, &q.ProviderPayorID: body.ProviderID} {
		if from != nil {
			*to = *from
		}
	}
	found, err := a.Orders.People().SearchPayors(r.Context(), team, q)
	if err != nil {
		return err
	}
	out := make([]payorByCode, len(found))
	for i, p := range found {
		out[i] = payorByCode{p.PayorCode, p.Name, p.Aliases, p.OrgAddress, p.Source}
	}
	return wire.JSON(w, http.StatusOK, out)
}

func (a api) createPayor(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body people.PayorRequest
	in.Body(&body)
	once := onceFrom(in, r, team, "create_payor", healthlab.UserID{})
	if err := in.ErrAnd(body.Check); err != nil {
		return err
	}
	return a.answerOnce(w, r, once, body, nil, answered(func(ctx context.Context) (people.Payor, error) {
		return a.Orders.People().AddPayor(ctx, team, body)
	}))
}

func (a api) searchDiagnoses(w http.ResponseWriter, r *http.Request, _ healthlab.TeamID) error {
	in := wire.From(r)
	query := in.Text("diagnosis_query", 256)
	if err := in.Err(); err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, a.Orders.People().SearchDiagnoses(query))
}

// diagnosisCodesIn is the body with codes to be checked.
type diagnosisCodesIn struct {
	Codes []string `json:"codes" wire:"max=200"`
}

func (a api) checkDiagnoses(w http.ResponseWriter, r *http.Request, _ healthlab.TeamID) error {
	in := wire.From(r)
	var body diagnosisCodesIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, a.Orders.People().CheckDiagnoses(body.Codes))
}
