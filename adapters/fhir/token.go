package fhir

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir/smart"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
)

// withTokens returns the configuration c with an Authenticate that accepts tokens as well as API keys.
// [server.rightsOf] checks which resource types a token allows.
func withTokens(c httpapi.Config, tokens *smart.Server) httpapi.Config {
	if tokens == nil {
		return c
	}
	keys := c.Authenticate
	c.Authenticate = func(r *http.Request) (httpapi.Caller, error) {
		g, err := tokenOf(r.Context(), r, tokens)
		if err != nil {
			return httpapi.Caller{}, err
		}
		if g == nil {
			return keys(r)
		}
		return httpapi.Caller{Team: g.Client.Team, Key: g.Client.Key, Scopes: everyScope}, nil
	}
	return c
}

// tokenOf checks the bearer token of a request. It returns nil if the request has no token, or an invalid token and an
// API key.
func tokenOf(ctx context.Context, r *http.Request, tokens *smart.Server) (*smart.Grant, error) {
	token := smart.Bearer(r)
	if token == "" {
		return nil, nil
	}
	g, err := tokens.Grant(ctx, token)
	if healthlab.KindOf(err) == healthlab.Unauthenticated && r.Header.Get("x-service-api-key") != "" {
		return nil, nil // the API key of the request counts
	}
	return g, err
}

// rights are the resource types that a request may read and search.
type rights struct{ grant *smart.Grant }

// rightsOf returns the rights of a request: those of its token, or all rights if it uses an API key.
func (s *server) rightsOf(r *http.Request) (rights, error) {
	if s.Tokens == nil {
		return rights{}, nil
	}
	g, err := tokenOf(r.Context(), r, s.Tokens)
	return rights{g}, err
}

func (r rights) reads(kind string) bool    { return r.grant == nil || r.grant.Reads(kind) }
func (r rights) searches(kind string) bool { return r.grant == nil || r.grant.Searches(kind) }

// restrict removes the types from a selection that the token does not allow. It returns false if the selection asked
// for a type that is not allowed, or if none is allowed.
func (s *server) restrict(l *selection, of rights) bool {
	if of.grant == nil {
		return true
	}
	for _, name := range l.types {
		if !of.reads(name) || !of.searches(name) {
			return false
		}
	}
	if len(l.types) == 0 {
		for _, k := range s.kinds() {
			if of.reads(k.name) && of.searches(k.name) {
				l.types = append(l.types, k.name)
			}
		}
	}
	return len(l.types) > 0
}

func lacking(w http.ResponseWriter, scope string) error {
	return refuse(w, httpapi.Refusal{Status: http.StatusForbidden, Type: "SCOPE_MISSING", Msg: "the token lacks the scope " + scope})
}

func (s *server) token(w http.ResponseWriter, r *http.Request) error {
	s.Tokens.ServeHTTP(w, r)
	return nil
}

// refuseToken writes the answer to an error of the token endpoint, in the form that OAuth prescribes.
func refuseToken(w http.ResponseWriter, f httpapi.Refusal) error {
	maps.Copy(w.Header(), f.Header)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status)
	code := "invalid_request"
	if f.Status == http.StatusTooManyRequests || f.Status >= http.StatusInternalServerError {
		code = "temporarily_unavailable"
	}
	return json.NewEncoder(w).Encode(map[string]string{"error": code, "error_description": f.Msg})
}

func (s *server) smartConfiguration(w http.ResponseWriter, _ *http.Request) {
	b, err := json.Marshal(s.Tokens.Configuration())
	if err != nil {
		_ = refuse(w, httpapi.Refusal{Status: http.StatusInternalServerError, Msg: fmt.Sprintf("encode configuration: %v", err)})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b)
}
