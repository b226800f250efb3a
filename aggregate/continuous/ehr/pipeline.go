package ehr

import (
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// PipelineID names a pipeline. UUID version 7.
type PipelineID struct{ uuid.UUID }

// Status says whether a pipeline pushes.
type Status string

const (
	// Active pushes what changes.
	Active Status = "active"
	// Disabled keeps what is to be pushed until it is active.
	Disabled Status = "disabled"
	// deleted is being removed, and not found.
	deleted Status = "deleted"
)

// Auth says how a pipeline signs in.
type Auth string

const (
	// NoAuth sends no credentials: for a server inside the operator's network.
	NoAuth Auth = "none"
	// StaticToken sends a bearer token that the team has given.
	StaticToken Auth = "static_token"
	// BackendServices gets tokens by SMART backend services: client credentials with a signed JWT.
	BackendServices Auth = "backend_services"
)

// Pipeline is a FHIR R4 server to which a team pushes.
type Pipeline struct {
	ID    PipelineID       `json:"id"`
	Team  healthlab.TeamID `json:"team_id"`
	Title string           `json:"title"`
	// Status is active or disabled.
	Status Status `json:"status"`
	// BaseURL is where transactions are sent, without a slash at the end.
	BaseURL string `json:"base_url"`
	Auth    Auth   `json:"auth"`
	// ClientID, Scope and TokenURL are those of BackendServices. An empty TokenURL is looked up at
	// .well-known/smart-configuration of the server.
	ClientID string `json:"client_id"`
	Scope    string `json:"scope"`
	TokenURL string `json:"token_url"`
	// KeyID and PublicKey, a JWK, are those of the key that signs; empty without BackendServices.
	KeyID     string `json:"key_id"`
	PublicKey []byte `json:"public_key"`
	// Resources are the slugs of health data that are pushed. Orders says whether lab orders and their
	// results are, and Queries whether rows of continuous queries with fhir_observations are.
	Resources []string `json:"resources"`
	Orders    bool     `json:"orders"`
	Queries   bool     `json:"queries"`
	// From is the first day of health data that is pushed; zero for all.
	From healthlab.Date `json:"from,omitzero"`
	// PatientSystem is the system of the identifier by which the server knows people, whose value is the
	// client user id. Empty: the server knows them by ids of this service.
	PatientSystem string `json:"patient_system"`
	// CreatePatients says whether a Patient that the server does not have is created there.
	CreatePatients bool `json:"create_patients"`

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`

	// secret is the token or the private key, sealed.
	secret healthlab.Sealed
}

// LogValue shows the ids.
func (p *Pipeline) LogValue() slog.Value {
	return slog.GroupValue(slog.String("team", p.Team.String()), slog.String("pipeline", p.ID.String()))
}

// NewPipeline is what a team says of a new pipeline.
type NewPipeline struct {
	// Title has at most 100 characters.
	Title   string
	BaseURL string
	// Token is a static bearer token; ClientID is that of SMART backend services. At most one of them is given.
	Token    string
	ClientID string
	// Scope is asked for with a token. Default system/*.write.
	Scope string
	// TokenURL is the token endpoint. Default: that of .well-known/smart-configuration of the server.
	TokenURL string
	// PrivateKey signs assertions: PKCS #8 in PEM, RSA of at least 2048 bits (RS384) or EC P-384 (ES384). Default:
	// a new EC key, which never leaves the service.
	PrivateKey string
	// Resources are slugs of health data. Nil: all that the service maps.
	Resources      []string
	WithoutOrders  bool
	WithoutQueries bool
	From           healthlab.Date
	PatientSystem  string
	// MatchPatientsOnly says that the server has all people already: none is created there.
	MatchPatientsOnly bool
}

// Patch is a change of a pipeline. Nil leaves a field as it is. Another server, or another way to sign in, is
// another pipeline.
type Patch struct {
	Title  *string
	Status *Status
	// Token replaces a static token.
	Token     *string
	Resources *[]string
	Orders    *bool
	Queries   *bool
}

// State is what became of a pipeline's pushes.
type State struct {
	// Waiting is the number of persons of whom something is to be pushed, and DeadLetters that of the
	// resources that the server refused; both count at most [MostCounted].
	Waiting     int
	DeadLetters int
	// Pushed is the number of resources that the server took, each version once.
	Pushed int64
	// LastPushedAt is when it took the last one, PausedUntil when a server that did not answer is tried again.
	// Zero for none.
	LastPushedAt, PausedUntil time.Time
	// LastError says why the last attempt failed that was no refusal of a resource; empty after a success.
	LastError string
}

// MostCounted is the greatest count of a [State].
const MostCounted = 10_000

// Run is a stretch of time in which a pipeline pushed: from the first answer of the server to the last one before ten
// minutes without one, at most an hour. Runs are kept for 30 days.
type Run struct {
	ID       uuid.UUID
	Pipeline PipelineID
	// StartedAt and EndedAt are when the first and the last of it was recorded, by the clock of the store.
	StartedAt, EndedAt healthlab.Time
	// Transactions is the number of transactions that the server answered, Sent that of the resources that it took,
	// each version once, and DeadLetters that of the refusals of one resource. Failed is the number of attempts that the server
	// did not answer as one does; they were made again.
	Transactions, Sent, DeadLetters, Failed int
	// LastError says why the last of Failed failed, if nothing was answered in the run after it.
	LastError string
}

// DeadLetter is a resource that a server refuses.
type DeadLetter struct {
	ID       uuid.UUID        `json:"id"`
	Pipeline PipelineID       `json:"pipeline_id"`
	Team     healthlab.TeamID `json:"team_id"`
	User     healthlab.UserID `json:"user_id"`
	// ResourceType and ResourceID are those of the resource as a read gives it.
	ResourceType string `json:"resource_type"`
	ResourceID   string `json:"resource_id"`
	// Status is that of HTTP, and Codes and Expressions are those of the issues of the OperationOutcome. Its
	// texts may have values of the person, so they are not kept.
	Status      int            `json:"status"`
	Codes       []string       `json:"codes"`
	Expressions []string       `json:"expressions"`
	At          healthlab.Time `json:"refused_at"`
	// Subject and Span are what is marked to push it again.
	Subject string `json:"-"`
	Span    Span   `json:"-"`
	version string
}

// LetterID returns the id of the dead letter of a resource.
func LetterID(p PipelineID, user healthlab.UserID, resource, id string) uuid.UUID {
	return uuid.NewSHA1(p.UUID, []byte(user.String()+"/"+resource+"/"+id))
}
