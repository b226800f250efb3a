package ehr

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Options are the options of a [Service]. The zero value, and nil, mean the defaults.
type Options struct {
	// Resources are the slugs of health data that pipelines can push. Default: none.
	Resources []string
	// CheckURL returns an error for a URL that must not be called, such as a private address. Use the same rules as the
	// HTTP client that pushes. Default: no check.
	CheckURL func(raw string) error
	// Max is the highest number of pipelines of a team. Default 10.
	Max int
	// Random is the source of randomness for keys. Default crypto/rand.Reader.
	Random io.Reader
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids. Default UUID version 7.
	NewID func() uuid.UUID
}

// RulePipelineLimit is the error type if the team has the highest allowed number of pipelines.
const RulePipelineLimit = "PIPELINE_LIMIT_REACHED"

// Service manages pipelines. It is safe for concurrent use.
type Service struct {
	rows *Rows
	seal healthlab.Sealer
	opts Options
}

// New returns a Service. rows and seal, which encrypts tokens and keys, are required.
func New(rows *Rows, seal healthlab.Sealer, opts *Options) (*Service, error) {
	if rows == nil || seal == nil {
		return nil, fmt.Errorf("%w: ehr.New: rows and a sealer are required", healthlab.Invalid)
	}
	s := &Service{rows: rows, seal: seal}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.CheckURL == nil {
		s.opts.CheckURL = func(string) error { return nil }
	}
	s.opts.Max = cmp.Or(s.opts.Max, 10)
	if s.opts.Random == nil {
		s.opts.Random = rand.Reader
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	if s.opts.NewID == nil {
		s.opts.NewID = func() uuid.UUID { return uuid.Must(uuid.NewV7()) }
	}
	return s, nil
}

// Rows returns the store of the pipelines' rows.
func (s *Service) Rows() *Rows { return s.rows }

const (
	maxTitle  = 100
	maxSecret = 16 << 10
	maxText   = 1000
	leastBits = 2048
)

// Create adds a pipeline. All data of the team is pushed in the background. Invalid lists every problem;
// Precondition, as a RuleError of type RulePipelineLimit, if the team has the highest allowed number.
func (s *Service) Create(ctx context.Context, team healthlab.TeamID, n NewPipeline) (Pipeline, error) {
	var p healthlab.Problems
	at := healthlab.At(s.opts.Now()).Time
	out := Pipeline{
		ID: PipelineID{s.opts.NewID()}, Team: team, Title: n.Title, Status: Active, BaseURL: strings.TrimRight(n.BaseURL, "/"), Auth: NoAuth,
		Resources: n.Resources, Orders: !n.WithoutOrders, Queries: !n.WithoutQueries, From: n.From,
		PatientSystem: n.PatientSystem, CreatePatients: !n.MatchPatientsOnly, CreatedAt: at, UpdatedAt: at,
	}
	if n.Resources == nil {
		out.Resources = slices.Clone(s.opts.Resources)
	}
	s.check(&p, &out)
	secret := []byte(n.Token)
	switch {
	case n.Token != "" && n.ClientID != "":
		p.Add("invalid", "must be left out if token is given", "client_id")
	case n.Token != "":
		out.Auth = StaticToken
	case n.ClientID != "":
		out.Auth, out.ClientID, out.Scope, out.TokenURL = BackendServices, n.ClientID, cmp.Or(n.Scope, "system/*.write"), n.TokenURL
		secret = s.key(&p, &out, n.PrivateKey)
		if n.TokenURL != "" {
			s.checkURL(&p, n.TokenURL, "token_url")
		}
	}
	if n.ClientID == "" {
		for name, value := range map[string]string{"scope": n.Scope, "token_url": n.TokenURL, "private_key": n.PrivateKey} {
			if value != "" {
				p.Add("invalid", "must be left out if client_id is not given", name)
			}
		}
	}
	checkToken(&p, n.Token)
	for name, value := range map[string]string{"client_id": n.ClientID, "scope": n.Scope, "patient_identifier_system": n.PatientSystem} {
		if len(value) > maxText || healthlab.CheckText(value) != nil {
			p.Add("invalid", fmt.Sprintf("must have at most %d bytes of text", maxText), name)
		}
	}
	if err := p.Err(); err != nil {
		return Pipeline{}, fmt.Errorf("create pipeline: %w", err)
	}
	if err := s.encryptSecret(ctx, &out, secret); err != nil {
		return Pipeline{}, fmt.Errorf("create pipeline: %w", err)
	}
	if err := s.rows.insert(ctx, &out, s.opts.Max); err != nil {
		return Pipeline{}, fmt.Errorf("create pipeline: %w", err)
	}
	return out, nil
}

func checkToken(p *healthlab.Problems, token string) {
	if len(token) > maxSecret || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		p.Add("invalid", fmt.Sprintf("must have at most %d characters, all of them visible ASCII", maxSecret), "token")
	}
}

func (s *Service) checkURL(p *healthlab.Problems, raw, field string) {
	if err := s.opts.CheckURL(raw); err != nil {
		p.Add("invalid", "must be an https address that can be reached from the internet", field)
	}
}

func (s *Service) check(p *healthlab.Problems, v *Pipeline) {
	if v.Title == "" || utf8.RuneCountInString(v.Title) > maxTitle || healthlab.CheckText(v.Title) != nil {
		p.Add("invalid", fmt.Sprintf("must have 1 to %d characters", maxTitle), "title")
	}
	s.checkURL(p, v.BaseURL, "base_url")
	if strings.ContainsAny(v.BaseURL, "?#") {
		p.Add("invalid", "must be a URL without a query or fragment", "base_url")
	}
	for i, r := range v.Resources {
		if !slices.Contains(s.opts.Resources, r) {
			p.Add("invalid", "must be one of "+strings.Join(s.opts.Resources, ", "), "resources", i)
		}
	}
	if v.Status != Active && v.Status != Disabled {
		p.Add("invalid", "must be active or disabled", "status")
	}
}

// encryptSecret encrypts secret, which is a token or private key, and sets p.secret. An empty secret leaves p.secret as
// it is.
func (s *Service) encryptSecret(ctx context.Context, p *Pipeline, secret []byte) (err error) {
	if len(secret) == 0 {
		return nil
	}
	p.secret, err = s.seal.Seal(ctx, secret, place(p))
	return err
}

func place(p *Pipeline) []byte {
	return []byte("ehr pipeline " + p.Team.String() + " " + p.ID.String())
}

// Token returns the static token of a pipeline with Auth StaticToken.
func (s *Service) Token(ctx context.Context, p *Pipeline) (string, error) {
	b, err := s.seal.Open(ctx, p.secret, place(p))
	if err != nil {
		return "", fmt.Errorf("open token: %w", err)
	}
	return string(b), nil
}

// Key returns the private key of a pipeline with Auth BackendServices: an *rsa.PrivateKey or an
// *ecdsa.PrivateKey.
func (s *Service) Key(ctx context.Context, p *Pipeline) (crypto.Signer, error) {
	b, err := s.seal.Open(ctx, p.secret, place(p))
	if err != nil {
		return nil, fmt.Errorf("open key: %w", err)
	}
	key, err := x509.ParsePKCS8PrivateKey(b)
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		return nil, fmt.Errorf("%w: the stored private key of a pipeline must be PKCS #8", healthlab.Unavailable)
	}
	return signer, nil
}

// key parses text, a private key in PEM, or creates a key if text is empty. It sets KeyID and PublicKey of v and
// returns the private key as PKCS #8. It adds problems to p.
func (s *Service) key(p *healthlab.Problems, v *Pipeline, text string) []byte {
	var key any
	var err error
	if text == "" {
		key, err = ecdsa.GenerateKey(elliptic.P384(), s.opts.Random)
	} else {
		block, _ := pem.Decode([]byte(text))
		if block != nil && len(text) <= maxSecret {
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		}
	}
	v.KeyID = s.opts.NewID().String()
	public := map[string]any{"kid": v.KeyID, "use": "sig"}
	encode := func(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
	rsaKey, isRSA := key.(*rsa.PrivateKey)
	ecKey, isEC := key.(*ecdsa.PrivateKey)
	switch {
	case err == nil && isRSA && rsaKey.N.BitLen() >= leastBits:
		public["kty"], public["alg"] = "RSA", "RS384"
		public["n"], public["e"] = encode(rsaKey.N.Bytes()), encode(big.NewInt(int64(rsaKey.E)).Bytes())
	case err == nil && isEC && ecKey.Curve == elliptic.P384():
		point, wrong := ecKey.PublicKey.Bytes() // a byte 4, then x and y
		if err = wrong; err == nil {
			public["kty"], public["alg"], public["crv"] = "EC", "ES384", "P-384"
			public["x"], public["y"] = encode(point[1:49]), encode(point[49:])
		}
	default:
		p.Add("invalid", fmt.Sprintf("must be PKCS #8 in PEM: RSA of at least %d bits, or EC P-384", leastBits), "private_key")
		return nil
	}
	out, wrong := x509.MarshalPKCS8PrivateKey(key)
	jwk, unwritten := json.Marshal(public)
	if err != nil || wrong != nil || unwritten != nil {
		p.Add("invalid", "must be a key that can be encoded as PKCS #8", "private_key")
	}
	v.PublicKey = jwk
	return out
}

// Get returns a pipeline. NotFound if the team has no pipeline with this id.
func (s *Service) Get(ctx context.Context, team healthlab.TeamID, id PipelineID) (Pipeline, error) {
	p, err := s.rows.get(ctx, team, id)
	if err != nil {
		return Pipeline{}, fmt.Errorf("read pipeline: %w", err)
	}
	return p, nil
}

// State returns the progress of a pipeline. NotFound as Get.
func (s *Service) State(ctx context.Context, team healthlab.TeamID, id PipelineID) (State, error) {
	st, err := s.rows.state(ctx, team, id)
	if err != nil {
		return State{}, fmt.Errorf("read state of pipeline: %w", err)
	}
	return st, nil
}

// List returns the pipelines of a team, the newest first.
func (s *Service) List(ctx context.Context, team healthlab.TeamID) ([]Pipeline, error) {
	list, err := s.rows.list(ctx, team)
	if err != nil {
		return nil, fmt.Errorf("list pipelines: %w", err)
	}
	return list, nil
}

// Update changes a pipeline. If it pushes more than before, all data is compared with the server again.
// NotFound as Get; Invalid lists every problem.
func (s *Service) Update(ctx context.Context, team healthlab.TeamID, id PipelineID, c Patch) (Pipeline, error) {
	p, err := s.rows.get(ctx, team, id)
	if err != nil {
		return Pipeline{}, fmt.Errorf("update pipeline: %w", err)
	}
	fresh := p
	if c.Token != nil {
		if err := s.encryptSecret(ctx, &fresh, []byte(*c.Token)); err != nil {
			return Pipeline{}, fmt.Errorf("update pipeline: %w", err)
		}
	}
	at := healthlab.At(s.opts.Now()).Time
	out, err := s.rows.update(ctx, team, id, func(v *Pipeline) (again bool, err error) {
		var wrong healthlab.Problems
		was := *v
		if c.Title != nil {
			v.Title = *c.Title
		}
		if c.Status != nil {
			v.Status = *c.Status
		}
		if c.Resources != nil {
			v.Resources = *c.Resources
		}
		if c.Orders != nil {
			v.Orders = *c.Orders
		}
		if c.Queries != nil {
			v.Queries = *c.Queries
		}
		if c.Token != nil {
			checkToken(&wrong, *c.Token)
			switch {
			case v.Auth != StaticToken:
				wrong.Add("invalid", "must be left out: the pipeline does not use a static token", "token")
			case *c.Token == "":
				wrong.Add("invalid", "must not be empty", "token")
			}
			v.secret = fresh.secret
		}
		s.check(&wrong, v)
		v.UpdatedAt = at
		again = was.Status != v.Status || v.Orders && !was.Orders || v.Queries && !was.Queries ||
			slices.ContainsFunc(v.Resources, func(r string) bool { return !slices.Contains(was.Resources, r) })
		return again, wrong.Err()
	})
	if err != nil {
		return Pipeline{}, fmt.Errorf("update pipeline: %w", err)
	}
	return out, nil
}

// Delete removes a pipeline, its tasks and its dead letters. Resources at the server stay there. NotFound as
// Get.
func (s *Service) Delete(ctx context.Context, team healthlab.TeamID, id PipelineID) error {
	_, err := s.rows.update(ctx, team, id, func(v *Pipeline) (bool, error) {
		v.Status, v.secret = deleted, healthlab.Sealed{}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("delete pipeline: %w", err)
	}
	return nil
}

// LetterQuery selects one page of dead letters.
type LetterQuery struct {
	Team     healthlab.TeamID
	Pipeline PipelineID
	Cursor   string // empty for the first page
	Size     int    // default 50
}

// LetterPage is one page of dead letters.
type LetterPage struct {
	Letters []DeadLetter
	Next    string // the cursor of the next page; empty if there is none
}

// DeadLetters returns the resources that the server refused and has not accepted since, the latest first.
// NotFound as Get; an InvalidError at cursor if the cursor is not one of this list.
func (s *Service) DeadLetters(ctx context.Context, q LetterQuery) (LetterPage, error) {
	page, err := s.rows.letters(ctx, q)
	if err != nil {
		return LetterPage{}, fmt.Errorf("list dead letters: %w", err)
	}
	return page, nil
}

// Replay pushes the resources of the given dead letters again, in their present version. Without letters it pushes
// those of all dead letters of the pipeline. It returns their number. NotFound if the team has no such pipeline, or the
// pipeline no such dead letter.
func (s *Service) Replay(ctx context.Context, team healthlab.TeamID, id PipelineID, letters []uuid.UUID) (int, error) {
	n, err := s.rows.replay(ctx, team, id, letters)
	if err != nil {
		return 0, fmt.Errorf("replay dead letters: %w", err)
	}
	return n, nil
}

// Runs returns the runs of a pipeline, the latest first. NotFound as Get; an InvalidError at cursor if the
// cursor is not one of this list.
func (s *Service) Runs(ctx context.Context, q RunQuery) (RunPage, error) {
	page, err := s.rows.runs(ctx, q)
	if err != nil {
		return RunPage{}, fmt.Errorf("list runs: %w", err)
	}
	return page, nil
}
