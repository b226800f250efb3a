package laborders

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/portal"
)

// personOperations lists the operations on demographics and insurance of users.
func (a API) personOperations() []server.Operation {
	return []server.Operation{
		{ID: "set_user_info", Pattern: "PATCH /v2/user/{user_id}/info", Bound: server.UserInPath, Team: a.setUserInfo},
		{ID: "read_user_info", Pattern: "GET /v2/user/{user_id}/info/latest", Bound: server.UserInPath, Team: server.ReadOne(anyUser, a.Orders.People().UserInfo)},
		{ID: "create_portal_url", Pattern: "POST /v2/user/{user_id}/create_portal_url", Bound: server.UserInPath, Team: server.AsJSON(a.createPortalURL)},
		{ID: "create_insurance", Pattern: "POST /v2/user/{user_id}/insurance", Bound: server.UserInPath, Team: a.createInsurance, Keyed: true},
		{ID: "read_latest_insurance", Pattern: "GET /v2/user/{user_id}/insurance/latest", Bound: server.UserInPath, Team: server.AsJSON(a.readLatestInsurance)},
		{ID: "search_payors", Pattern: "GET /v3/insurance/search/payor", Bound: server.Public, Team: server.AsJSON(a.searchPayors)},
		{ID: "search_payors_by_body", Pattern: "POST /v3/insurance/search/payor", Bound: server.Public, Team: server.AsJSON(a.searchPayorsByBody)},
		{ID: "create_payor", Pattern: "POST /v3/payor", Bound: server.TeamOnly, Team: a.createPayor, Keyed: true},
		{ID: "search_diagnoses", Pattern: "GET /v3/insurance/search/diagnosis", Bound: server.Public, Team: server.AsJSON(a.searchDiagnoses)},
		{ID: "check_diagnoses", Pattern: "POST /v3/insurance/validate_icd_codes", Bound: server.Public, Team: server.AsJSON(a.checkDiagnoses)},
	}
}

// anyUser returns the user in the path. For a text that is no UUID it returns the zero user, which does not exist,
// so the answer is 404.
func anyUser(in *wire.In) healthlab.UserID {
	id, err := uuid.Parse(in.PathText("user_id", wire.MaxPathText))
	if err != nil {
		return healthlab.UserID{}
	}
	return healthlab.UserID{UUID: id}
}

func (a API) setUserInfo(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
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

func (a API) createPortalURL(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	user := healthlab.UserID{UUID: in.PathUUID("user_id")}
	var body portal.Request
	in.Body(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Orders.PortalLink(ctx, team, user, body)
}

func (a API) createInsurance(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	user := anyUser(in)
	var body people.InsuranceRequest
	in.Body(&body)
	once := server.OnceFrom(in, team, "create_insurance "+user.String(), user)
	if err := in.ErrAnd(func() error { return body.Check(a.Orders.Today()) }); err != nil {
		return err
	}
	return server.AnswerOnce(a.Idempotency, w, r, once, body, server.Answered(func(ctx context.Context) (people.InsuranceRecord, error) {
		return a.Orders.People().AddInsurance(ctx, team, user, body)
	}))
}

func (a API) readLatestInsurance(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	user, primary := anyUser(in), in.Bool("is_primary", true)
	var at time.Time
	if m := in.OptMoment("at", nil); m != nil {
		at = m.In(time.UTC, wire.EndOfDay).Time
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Orders.People().LatestInsurance(ctx, team, user, primary, at)
}

func (a API) searchPayors(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	q := people.PayorQuery{Name: in.ShortText("insurance_name"), ClearingHouse: in.ShortText("provider"), ProviderPayorID: in.ShortText("provider_payor_id")}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Orders.People().SearchPayors(ctx, team, q)
}

// PayorSearch is the body of the deprecated search for payors.
type PayorSearch struct {
	InsuranceName *string `json:"insurance_name"`
	Provider      *string `json:"provider"`
	ProviderID    *string `json:"provider_id"`
}

// PayorByCode is a payor in the answer of the deprecated search.
type PayorByCode struct {
	Code       string             `json:"code"`
	Name       string             `json:"name"`
	Aliases    []string           `json:"aliases"`
	OrgAddress people.Address     `json:"org_address"`
	Source     people.PayorSource `json:"source"`
}

func (a API) searchPayorsByBody(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	var body PayorSearch
	in.Body(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	var q people.PayorQuery
	for to, from := range map[*string]*string{&q.Name: body.InsuranceName, &q.ClearingHouse: body.Provider, &q.ProviderPayorID: body.ProviderID} {
		if from != nil {
			*to = *from
		}
	}
	found, err := a.Orders.People().SearchPayors(ctx, team, q)
	if err != nil {
		return nil, err
	}
	out := make([]PayorByCode, len(found))
	for i, p := range found {
		out[i] = PayorByCode{p.PayorCode, p.Name, p.Aliases, p.OrgAddress, p.Source}
	}
	return out, nil
}

func (a API) createPayor(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body people.PayorRequest
	in.Body(&body)
	once := server.OnceFrom(in, team, "create_payor", healthlab.UserID{})
	if err := in.ErrAnd(body.Check); err != nil {
		return err
	}
	return server.AnswerOnce(a.Idempotency, w, r, once, body, server.Answered(func(ctx context.Context) (people.Payor, error) {
		return a.Orders.People().AddPayor(ctx, team, body)
	}))
}

func (a API) searchDiagnoses(_ context.Context, in *wire.In, _ healthlab.TeamID) (any, error) {
	query := in.Text("diagnosis_query", 256)
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Orders.People().SearchDiagnoses(query), nil
}

// DiagnosisCodes is the body with codes to be checked.
type DiagnosisCodes struct {
	Codes []string `json:"codes" wire:"max=200"`
}

func (a API) checkDiagnoses(_ context.Context, in *wire.In, _ healthlab.TeamID) (any, error) {
	var body DiagnosisCodes
	in.Body(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Orders.People().CheckDiagnoses(body.Codes), nil
}
