package httpapi

import (
	"context"
	"hash/fnv"
	"net/http"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// badToken is the reply of the link operations to an invalid link token.
var badToken = []server.Reply{{On: healthlab.Unauthenticated, ErrorType: healthdata.RuleInvalidRequest, Msg: "the link token is not valid, has expired or was used"}}

// linkOperations lists the operations that connect a person's accounts. Most are authorised by the link token alone.
func (a api) linkOperations() []server.Operation {
	if a.Linking == nil || a.Health == nil {
		return nil
	}
	return []server.Operation{
		{ID: "create_link_code", Pattern: "POST /v2/link/code/create", Bound: server.RequiredInQuery, Team: a.createLinkCode},
		{ID: "create_link_token", Pattern: "POST /v2/link/token", Bound: server.UserInBody, Team: a.createLinkToken},
		{ID: "check_link_token", Pattern: "POST /v2/link/token/isValid", Handle: a.checkLinkToken, Browser: true},
		{ID: "start_link", Pattern: "POST /v2/link/start", Handle: a.startLink, Browser: true, Replies: badToken},
		{ID: "read_link_state", Pattern: "GET /v2/link/state", Handle: a.readLinkState, Browser: true, Replies: badToken},
		{ID: "read_link_config", Pattern: "GET /v2/team/link/config", Handle: a.readLinkConfig, Browser: true, Replies: badToken},
		{ID: "list_linkable_providers", Pattern: "GET /v2/link/providers", Handle: a.listLinkable, Browser: true, Replies: badToken},
		{ID: "link_oauth_provider", Pattern: "GET /v2/link/provider/oauth/{oauth_provider}", Handle: a.linkOAuth, Browser: true, Replies: badToken},
		{ID: "finish_oauth", Pattern: "GET /v2/link/connect/{provider}", Handle: a.finishOAuth, IgnoreUnknown: true},
		{ID: "link_password_provider", Pattern: "POST /v2/link/provider/password/{provider}", Handle: a.linkPassword, Browser: true},
		{ID: "complete_mfa", Pattern: "POST /v2/link/provider/password/{provider}/complete_mfa", Handle: a.completeMFA, Browser: true},
		{ID: "link_email_provider", Pattern: "POST /v2/link/provider/email/{provider}", Handle: a.linkEmail, Browser: true},
		{ID: "connect_demo_provider", Pattern: "POST /v2/link/connect/demo", Bound: server.UserInBody, Team: server.AsJSON(a.connectDemo)},
		{ID: "link_with_credentials", Pattern: "POST /v2/link/auth", Handle: a.linkAuth},
		{ID: "link_with_email", Pattern: "POST /v2/link/auth/email", Handle: a.linkAuthEmail},
	}
}

func (a api) linkToken(in *wire.In) string { return in.OptHeader(a.LinkTokenHeader, 4096) }

func orNull[S ~string](s S) *string {
	if s == "" {
		return nil
	}
	return new(string(s))
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (a api) createLinkCode(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	user := healthlab.UserID{UUID: in.UUID("user_id")}
	var expires *time.Time
	if !in.Null("expires_at") {
		if until := in.OptTime("expires_at", wire.StartOfDay); until != nil {
			expires = &until.Time
		}
	}
	if err := in.Err(); err != nil {
		return err
	}
	concerns(r.Context(), user)
	code, err := a.Linking.CreateCode(r.Context(), team, user, expires)
	if err != nil {
		return err
	}
	secretReply(w)
	return wire.JSON(w, http.StatusOK, code)
}

func secretReply(w http.ResponseWriter) {
	// The answer is for one person, so caches must not keep it, nor browsers send its address to other sites.
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
}

// linkTokenIn is the body that requests a link token.
type linkTokenIn struct {
	UserID            healthlab.UserID `json:"user_id"`
	Provider          *string          `json:"provider"`
	RedirectURL       *string          `json:"redirect_url"`
	FilterOnProviders *[]string        `json:"filter_on_providers"`
	OnError           *string          `json:"on_error"`
	OnClose           *string          `json:"on_close"`
}

func (a api) createLinkToken(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	var body linkTokenIn
	in.Body(&body)
	for _, f := range []struct {
		name string
		v    *string
	}{{"provider", body.Provider}, {"redirect_url", body.RedirectURL}, {"on_error", body.OnError}, {"on_close", body.OnClose}} {
		if f.v != nil && *f.v == "" {
			in.Problem("empty", "must not be empty", "body", f.name)
		}
	}
	if err := in.Err(); err != nil {
		return err
	}
	n := linking.NewToken{
		User: body.UserID, Provider: orEmpty(body.Provider), RedirectURL: orEmpty(body.RedirectURL),
		OnError: orEmpty(body.OnError), OnClose: orEmpty(body.OnClose),
	}
	if body.FilterOnProviders != nil {
		n.FilterOnProviders = append([]string{}, *body.FilterOnProviders...)
	}
	concerns(r.Context(), body.UserID)
	token, err := a.Linking.CreateToken(r.Context(), team, n)
	if err != nil {
		return err
	}
	secretReply(w)
	return wire.JSON(w, http.StatusOK, token)
}

// checkTokenIn is the body that asks whether a link token is valid.
type checkTokenIn struct {
	Token string `json:"token"`
}

// checkTokenOut is the answer to whether a link token is valid.
type checkTokenOut struct {
	Valid bool `json:"is_valid"`
}

func (a api) checkLinkToken(w http.ResponseWriter, r *http.Request) error {
	in := wire.From(r)
	var body checkTokenIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	if err := a.allowOrigin(w, r, body.Token); err != nil {
		return err
	}
	_, err := a.Linking.Open(r.Context(), body.Token)
	switch kind := healthlab.KindOf(err); {
	case err == nil, kind == healthlab.Unauthenticated, kind == healthlab.Precondition:
		return wire.JSON(w, http.StatusOK, checkTokenOut{err == nil})
	default:
		return err
	}
}

// startLinkIn is the body that reports that the link pages were opened.
type startLinkIn struct {
	Token    string `json:"link_token"`
	Provider string `json:"provider"`
}

// linkStateOut is the state of a link session.
type linkStateOut struct {
	State     linking.State `json:"state"`
	Provider  *string       `json:"provider"`
	ErrorType *string       `json:"error_type"`
}

func stateOut(s *linking.Session) linkStateOut {
	return linkStateOut{State: s.State, Provider: orNull(s.Provider), ErrorType: orNull(s.LastError)}
}

func (a api) startLink(w http.ResponseWriter, r *http.Request) error {
	in := wire.From(r)
	var body startLinkIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	if err := a.allowOrigin(w, r, body.Token); err != nil {
		return err
	}
	s, err := a.Linking.Start(r.Context(), body.Token, body.Provider)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, stateOut(&s))
}

func (a api) readLinkState(w http.ResponseWriter, r *http.Request) error {
	in := wire.From(r)
	token := a.linkToken(in)
	if err := in.Err(); err != nil {
		return err
	}
	s, err := a.Linking.Open(r.Context(), token)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, stateOut(&s))
}

// linkConfigOut is what pages that link an account need first: branding, options and providers.
type linkConfigOut struct {
	Brand     linking.Brand    `json:"brand"`
	Options   linkOptionsOut   `json:"options"`
	Providers []linkableSource `json:"providers"`
}

// linkOptionsOut holds the options of the link token.
type linkOptionsOut struct {
	Provider          *string   `json:"provider"`
	RedirectURL       *string   `json:"redirect_url"`
	FilterOnProviders *[]string `json:"filter_on_providers"`
	OnError           *string   `json:"on_error"`
	OnClose           *string   `json:"on_close"`
}

func (a api) readLinkConfig(w http.ResponseWriter, r *http.Request) error {
	in := wire.From(r)
	token := a.linkToken(in)
	if err := in.Err(); err != nil {
		return err
	}
	page, err := a.Linking.Page(r.Context(), token)
	if err != nil {
		return err
	}
	o := page.Session.Options
	var filter *[]string
	if o.FilterOnProviders != nil {
		filter = &o.FilterOnProviders
	}
	return wire.JSON(w, http.StatusOK, linkConfigOut{
		Brand: page.Brand, Providers: a.linkables(page.Providers),
		Options: linkOptionsOut{
			Provider: orNull(o.Provider), RedirectURL: orNull(o.RedirectURL), FilterOnProviders: filter,
			OnError: orNull(o.OnError), OnClose: orNull(o.OnClose),
		},
	})
}

// linkableSource is a provider that a person can link.
type linkableSource struct {
	ID          int     `json:"id"`
	Name        string  `json:"name"`
	Slug        string  `json:"slug"`
	Description string  `json:"description"`
	Logo        *string `json:"logo"`
	// OAuthURL is always null, because a sign-in address is valid for one attempt.
	OAuthURL *string `json:"oauth_url"`
	AuthType string  `json:"auth_type"`
	// FormComponents maps the name of each form field to its description.
	FormComponents map[string]formField `json:"form_components"`
}

// formField is one field of a form.
type formField struct {
	// Type is text, password, email or select.
	Type     string `json:"type"`
	Label    string `json:"label"`
	Required bool   `json:"required"`
	// Options lists the choices of a select field, the default first. It is empty for other types.
	Options []string `json:"options"`
}

func sourceNumber(slug string) int {
	// All processes number a slug alike, with a number below 2^31.
	h := fnv.New32a()
	_, _ = h.Write([]byte(slug))
	return int(h.Sum32() >> 1)
}

func (a api) linkables(list []healthdata.Provider) []linkableSource {
	out := make([]linkableSource, len(list))
	for i := range list {
		p := &list[i]
		out[i] = linkableSource{
			ID: sourceNumber(p.Slug), Name: p.Name, Slug: p.Slug, Description: p.Description, Logo: p.Logo, AuthType: p.AuthType,
			FormComponents: map[string]formField{},
		}
		field := func(name, kind, label string) {
			out[i].FormComponents[name] = formField{Type: kind, Label: label, Required: true, Options: []string{}}
		}
		switch p.AuthType {
		case "password":
			user, password := "User name or e-mail", "Password"
			if p.OwnSite {
				user, password = "Address of your site", "Token or API secret"
			}
			field("username", "text", user)
			field("password", "password", password)
		case "email":
			field("email", "email", "E-mail")
		}
		if regions := a.Linking.Regions(p); len(regions) > 0 && len(out[i].FormComponents) > 0 {
			out[i].FormComponents["region"] = formField{Type: "select", Label: "Region", Options: regions}
		}
	}
	return out
}

func (a api) listLinkable(w http.ResponseWriter, r *http.Request) error {
	in := wire.From(r)
	token := a.linkToken(in)
	if err := in.Err(); err != nil {
		return err
	}
	list, err := a.Linking.Providers(r.Context(), token)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, a.linkables(list))
}

// userProvidersOut are the connections of a user.
type userProvidersOut struct {
	Providers []healthdata.ConnectionView `json:"providers"`
}

func (a api) listUserProviders(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	id := userID(in)
	if err := in.Err(); err != nil {
		return nil, err
	}
	list, err := a.Health.Connections().List(ctx, team, id)
	if err != nil {
		return nil, err
	}
	return userProvidersOut{list}, nil
}

// demoIn names a user and a provider to connect with invented data.
type demoIn struct {
	UserID   healthlab.UserID `json:"user_id"`
	Provider string           `json:"provider"`
}

// demoOut confirms a demo connection.
type demoOut struct {
	Success bool   `json:"success"`
	Detail  string `json:"detail"`
}

func (a api) connectDemo(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	var body demoIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	concerns(ctx, body.UserID)
	if err := a.Linking.ConnectDemo(ctx, team, body.UserID, body.Provider); err != nil {
		return nil, err
	}
	return demoOut{true, "the demo provider is connected"}, nil
}
