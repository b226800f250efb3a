package ehr

import (
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// PipelineID identifies a pipeline. UUID version 7.
type PipelineID struct{ uuid.UUID }

// Status is the state of a pipeline.
type Status string

const (
	// Active: the pipeline pushes changed resources.
	Active Status = "active"
	// Disabled: the pipeline collects changed resources and pushes them when it is active again.
	Disabled Status = "disabled"
	// deleted: the pipeline is being removed. Methods return NotFound for it, and lists omit it.
	deleted Status = "deleted"
)

// Auth is the way in which a pipeline authenticates to the FHIR server.
type Auth string

const (
	// NoAuth sends no credentials. It is meant for a server inside the operator's network.
	NoAuth Auth = "none"
	// StaticToken sends a bearer token from the team.
	StaticToken Auth = "static_token"
	// BackendServices gets access tokens by SMART backend services: client credentials with a signed JWT.
	BackendServices Auth = "backend_services"
)

// Pipeline pushes health data of a team to a FHIR R4 server.
type Pipeline struct {
	ID    PipelineID       `json:"id"`
	Team  healthlab.TeamID `json:"team_id"`
	Title string           `json:"title"`
	// Status is Active or Disabled.
	Status Status `json:"status"`
	// BaseURL is the URL that receives transactions, without a slash at the end.
	BaseURL string `json:"base_url"`
	Auth    Auth   `json:"auth"`
	// ClientID, Scope and TokenURL are the settings of BackendServices. An empty TokenURL is read from
	// .well-known/smart-configuration of the server.
	ClientID string `json:"client_id"`
	Scope    string `json:"scope"`
	TokenURL string `json:"token_url"`
	// KeyID and PublicKey (a JWK) identify the key that signs the JWT; empty without BackendServices.
	KeyID     string `json:"key_id"`
	PublicKey []byte `json:"public_key"`
	// Resources are the slugs of the pushed health data. Orders is true if lab orders and their results are
	// pushed, Queries if rows of continuous queries with fhir_observations are.
	Resources []string `json:"resources"`
	Orders    bool     `json:"orders"`
	Queries   bool     `json:"queries"`
	// From is the first day of pushed health data; zero for all days.
	From healthlab.Date `json:"from,omitzero"`
	// PatientSystem is the system of the patient identifier at the server; the value of the identifier is the team's
	// own id of the user (client user id). Empty: the identifier is the user id of this service.
	PatientSystem string `json:"patient_system"`
	// CreatePatients is true if the pipeline creates missing Patients at the server.
	CreatePatients bool `json:"create_patients"`

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`

	// secret is the encrypted token or private key.
	secret healthlab.Sealed
}

// LogValue logs the ids only.
func (p *Pipeline) LogValue() slog.Value {
	return slog.GroupValue(slog.String("team", p.Team.String()), slog.String("pipeline", p.ID.String()))
}

// NewPipeline is the request for a new pipeline.
type NewPipeline struct {
	// Title has at most 100 characters.
	Title   string
	BaseURL string
	// Token is a static bearer token, ClientID the client id for SMART backend services. At most one of them is given.
	Token    string
	ClientID string
	// Scope is the OAuth scope of the access token. Default system/*.write.
	Scope string
	// TokenURL is the token endpoint. Default: the one in .well-known/smart-configuration of the server.
	TokenURL string
	// PrivateKey signs assertions: PKCS #8 in PEM, RSA of at least 2048 bits (RS384) or EC P-384 (ES384). Default:
	// a new EC key, which never leaves the service.
	PrivateKey string
	// Resources are the slugs of the health data to push. Nil: all resources that have a FHIR mapping.
	Resources      []string
	WithoutOrders  bool
	WithoutQueries bool
	From           healthlab.Date
	PatientSystem  string
	// MatchPatientsOnly is true if the server has all people already; the pipeline creates no Patient there.
	MatchPatientsOnly bool
}

// Patch is a change of a pipeline. Nil leaves a field as it is. The server and the kind of authentication
// cannot change.
type Patch struct {
	Title  *string
	Status *Status
	// Token replaces the static token.
	Token     *string
	Resources *[]string
	Orders    *bool
	Queries   *bool
}

// State is the progress of a pipeline.
type State struct {
	// Waiting is the number of users with data to push, DeadLetters the number of resources that the server
	// refused. Neither counts beyond [MostCounted].
	Waiting     int
	DeadLetters int
	// Pushed is the number of resource versions that the server accepted.
	Pushed int64
	// LastPushedAt is the time of the last accepted resource. PausedUntil is the time of the next attempt after
	// the server did not answer. Zero for none.
	LastPushedAt, PausedUntil time.Time
	// LastError is the cause of the last failed attempt, other than the refusal of a resource; empty after a
	// success.
	LastError string
}

// MostCounted is the highest number that a [State] counts to.
const MostCounted = 10_000

// Run is a time span in which a pipeline pushed. It ends when the server has not answered for ten minutes, or
// after an hour. Runs are stored for 30 days.
type Run struct {
	ID       uuid.UUID
	Pipeline PipelineID
	// StartedAt and EndedAt are the times of the first and the last recorded answer, by the store's clock.
	StartedAt, EndedAt healthlab.Time
	// Transactions is the number of transactions that the server answered, Sent the number of resource versions
	// that it accepted, and DeadLetters the number of resources that it refused. Failed is the number of
	// attempts without a valid answer; each was repeated.
	Transactions, Sent, DeadLetters, Failed int
	// LastError is the cause of the last failed attempt, if no attempt of the run succeeded after it.
	LastError string
}

// DeadLetter is a resource that a server refused.
type DeadLetter struct {
	ID       uuid.UUID        `json:"id"`
	Pipeline PipelineID       `json:"pipeline_id"`
	Team     healthlab.TeamID `json:"team_id"`
	User     healthlab.UserID `json:"user_id"`
	// ResourceType and ResourceID identify the resource in FHIR.
	ResourceType string `json:"resource_type"`
	ResourceID   string `json:"resource_id"`
	// Status is the HTTP status; Codes and Expressions are those of the issues of the OperationOutcome. The
	// texts of the issues are not stored, because they may contain values of the person.
	Status      int            `json:"status"`
	Codes       []string       `json:"codes"`
	Expressions []string       `json:"expressions"`
	At          healthlab.Time `json:"refused_at"`
	// Subject and Span select the data that Replay pushes again. Subject is the subject of a task's mark, such as
	// [DataSubject] plus the slug of a resource, or that of a refused Patient.
	Subject string `json:"-"`
	Span    Span   `json:"-"`
	version string
}

// LetterID returns the id of the dead letter of a FHIR resource: resource is its type, id its id. The same arguments
// give the same id.
func LetterID(p PipelineID, user healthlab.UserID, resource, id string) uuid.UUID {
	return uuid.NewSHA1(p.UUID, []byte(user.String()+"/"+resource+"/"+id))
}
