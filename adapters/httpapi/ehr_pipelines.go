package httpapi

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/aggregate/continuous/ehr"
)

func (a api) pipelineOperations() []server.Operation {
	if a.Pipelines == nil {
		return nil
	}
	const all, one = managementPath + "/team_ehr_pipelines", managementPath + "/team_ehr_pipelines/{pipeline_id}"
	return []server.Operation{
		{ID: "list_team_ehr_pipelines", Pattern: "GET " + all, Handle: a.managing(asJSON(a.listPipelines))},
		{ID: "create_team_ehr_pipeline", Pattern: "POST " + all, Handle: a.managing(asJSON(a.createPipeline))},
		{ID: "read_team_ehr_pipeline", Pattern: "GET " + one, Handle: a.managing(asJSON(a.readPipeline))},
		{ID: "patch_team_ehr_pipeline", Pattern: "PATCH " + one, Handle: a.managing(asJSON(a.patchPipeline))},
		{ID: "delete_team_ehr_pipeline", Pattern: "DELETE " + one, Handle: a.managing(asJSON(a.deletePipeline))},
		{ID: "list_ehr_runs", Pattern: "GET " + one + "/runs", Handle: a.managing(asJSON(a.listRuns))},
		{ID: "list_ehr_dead_letters", Pattern: "GET " + one + "/dead_letters", Handle: a.managing(asJSON(a.listDeadLetters))},
		{ID: "replay_ehr_dead_letters", Pattern: "POST " + one + "/replay", Handle: a.managing(asJSON(a.replayDeadLetters))},
	}
}

// pipelineOut is a team's connection to a FHIR server, without its token and private key.
type pipelineOut struct {
	ID             ehr.PipelineID   `json:"id"`
	Team           healthlab.TeamID `json:"team_id"`
	Title          string           `json:"title"`
	Status         ehr.Status       `json:"status"`
	BaseURL        string           `json:"base_url"`
	Auth           ehr.Auth         `json:"auth"`
	ClientID       *string          `json:"client_id"`
	Scope          *string          `json:"scope"`
	TokenURL       *string          `json:"token_url"`
	KeySet         *keySetOut       `json:"key_set"`
	Resources      []string         `json:"resources"`
	Orders         bool             `json:"orders"`
	Queries        bool             `json:"continuous_queries"`
	From           *healthlab.Date  `json:"from"`
	PatientSystem  *string          `json:"patient_identifier_system"`
	CreatePatients bool             `json:"create_patients"`
	State          pipelineStateOut `json:"state"`
	CreatedAt      healthlab.Time   `json:"created_at"`
	UpdatedAt      healthlab.Time   `json:"updated_at"`
}

// keySetOut is a JWK set.
type keySetOut struct {
	Keys []map[string]string `json:"keys"`
}

type pipelineStateOut struct {
	Waiting      int             `json:"waiting"`
	DeadLetters  int             `json:"dead_letters"`
	Pushed       int64           `json:"pushed"`
	LastPushedAt *healthlab.Time `json:"last_pushed_at"`
	PausedUntil  *healthlab.Time `json:"paused_until"`
	LastError    *string         `json:"last_error"`
}

type pipelinesOut struct {
	Data []pipelineOut `json:"data"`
}

type pipelineDeletedOut struct {
	Success bool `json:"success"`
}

// runOut is one run in which a pipeline pushed data.
type runOut struct {
	ID           uuid.UUID      `json:"id"`
	Pipeline     ehr.PipelineID `json:"pipeline_id"`
	StartedAt    healthlab.Time `json:"started_at"`
	EndedAt      healthlab.Time `json:"ended_at"`
	Transactions int            `json:"transactions"`
	Sent         int            `json:"sent"`
	Failed       int            `json:"failed"`
	DeadLetters  int            `json:"dead_letters"`
	LastError    *string        `json:"last_error"`
}

// runsOut is one page of runs.
type runsOut struct {
	Data       []runOut `json:"data"`
	NextCursor *string  `json:"next_cursor"`
}

// deadLettersOut is one page of dead letters: data that a FHIR server has refused.
type deadLettersOut struct {
	Data       []ehr.DeadLetter `json:"data"`
	NextCursor *string          `json:"next_cursor"`
}

// newPipelineIn is the body that adds a pipeline.
type newPipelineIn struct {
	Title          string          `json:"title"`
	BaseURL        string          `json:"base_url"`
	Token          *string         `json:"token"`
	ClientID       *string         `json:"client_id"`
	Scope          *string         `json:"scope"`
	TokenURL       *string         `json:"token_url"`
	PrivateKey     *string         `json:"private_key"`
	Resources      *[]string       `json:"resources"`
	Orders         *bool           `json:"orders"`
	Queries        *bool           `json:"continuous_queries"`
	From           *healthlab.Date `json:"from"`
	PatientSystem  *string         `json:"patient_identifier_system"`
	CreatePatients *bool           `json:"create_patients"`
}

// pipelinePatchIn is the body that changes a pipeline. Null leaves a field unchanged.
type pipelinePatchIn struct {
	Title     *string   `json:"title"`
	Status    *string   `json:"status"`
	Token     *string   `json:"token"`
	Resources *[]string `json:"resources"`
	Orders    *bool     `json:"orders"`
	Queries   *bool     `json:"continuous_queries"`
}

type replayIn struct {
	Letters *[]uuid.UUID `json:"dead_letter_ids"`
}

type replayedOut struct {
	Replayed int `json:"replayed"`
}

func (m *managed) pipelineID() ehr.PipelineID {
	return ehr.PipelineID{UUID: m.PathUUID("pipeline_id")}
}

// pipelineFrom converts a pipeline to its form in answers, and reads its state.
func (a api) pipelineFrom(ctx context.Context, p *ehr.Pipeline) (pipelineOut, error) {
	st, err := a.Pipelines.State(ctx, p.Team, p.ID)
	if err != nil {
		return pipelineOut{}, err
	}
	out := pipelineOut{
		ID: p.ID, Team: p.Team, Title: p.Title, Status: p.Status, BaseURL: p.BaseURL, Auth: p.Auth,
		ClientID: orNull(p.ClientID), Scope: orNull(p.Scope), TokenURL: orNull(p.TokenURL),
		Resources: append([]string{}, p.Resources...), Orders: p.Orders, Queries: p.Queries,
		PatientSystem: orNull(p.PatientSystem), CreatePatients: p.CreatePatients,
		State: pipelineStateOut{
			Waiting: st.Waiting, DeadLetters: st.DeadLetters, Pushed: st.Pushed, LastError: orNull(st.LastError),
			LastPushedAt: timeOrNull(st.LastPushedAt), PausedUntil: timeOrNull(st.PausedUntil),
		},
		CreatedAt: healthlab.At(p.CreatedAt), UpdatedAt: healthlab.At(p.UpdatedAt),
	}
	if !p.From.IsZero() {
		out.From = &p.From
	}
	if p.PublicKey != nil {
		var key map[string]string
		if err := json.Unmarshal(p.PublicKey, &key); err != nil {
			return pipelineOut{}, err
		}
		out.KeySet = &keySetOut{Keys: []map[string]string{key}}
	}
	return out, nil
}

func (a api) listPipelines(ctx context.Context, m *managed) (any, error) {
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	list, err := a.Pipelines.List(ctx, team)
	if err != nil {
		return nil, err
	}
	out := pipelinesOut{Data: []pipelineOut{}}
	for i := range list {
		one, err := a.pipelineFrom(ctx, &list[i])
		if healthlab.KindOf(err) == healthlab.NotFound {
			continue // the pipeline was deleted after the page was read
		}
		if err != nil {
			return nil, err
		}
		out.Data = append(out.Data, one)
	}
	return out, nil
}

func (a api) createPipeline(ctx context.Context, m *managed) (any, error) {
	var body newPipelineIn
	m.Body(&body)
	for name, text := range map[string]*string{
		"token": body.Token, "client_id": body.ClientID, "scope": body.Scope, "token_url": body.TokenURL, "private_key": body.PrivateKey,
		"patient_identifier_system": body.PatientSystem,
	} {
		m.NotEmpty(name, text)
	}
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	no := func(b *bool) bool { return b != nil && !*b }
	n := ehr.NewPipeline{
		Title: body.Title, BaseURL: body.BaseURL, Token: value(body.Token), ClientID: value(body.ClientID), Scope: value(body.Scope),
		TokenURL: value(body.TokenURL), PrivateKey: value(body.PrivateKey), WithoutOrders: no(body.Orders), WithoutQueries: no(body.Queries),
		From: value(body.From), PatientSystem: value(body.PatientSystem), MatchPatientsOnly: no(body.CreatePatients),
	}
	if body.Resources != nil {
		n.Resources = append([]string{}, *body.Resources...)
	}
	p, err := a.Pipelines.Create(ctx, team, n)
	if err != nil {
		return nil, err
	}
	return a.pipelineFrom(ctx, &p)
}

func (a api) readPipeline(ctx context.Context, m *managed) (any, error) {
	id := m.pipelineID()
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	p, err := a.Pipelines.Get(ctx, team, id)
	if err != nil {
		return nil, err
	}
	return a.pipelineFrom(ctx, &p)
}

func (a api) patchPipeline(ctx context.Context, m *managed) (any, error) {
	id := m.pipelineID()
	var body pipelinePatchIn
	m.Body(&body)
	if s := body.Status; s != nil && *s != string(ehr.Active) && *s != string(ehr.Disabled) {
		m.Problem("enum", "must be one of: active, disabled", "body", "status")
	}
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	p, err := a.Pipelines.Update(ctx, team, id, ehr.Patch{
		Title: body.Title, Status: (*ehr.Status)(body.Status), Token: body.Token, Resources: body.Resources, Orders: body.Orders, Queries: body.Queries,
	})
	if err != nil {
		return nil, err
	}
	return a.pipelineFrom(ctx, &p)
}

func (a api) deletePipeline(ctx context.Context, m *managed) (any, error) {
	id := m.pipelineID()
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	if err := a.Pipelines.Delete(ctx, team, id); err != nil {
		return nil, err
	}
	return pipelineDeletedOut{true}, nil
}

func (a api) listRuns(ctx context.Context, m *managed) (any, error) {
	id := m.pipelineID()
	size, cursor := m.page()
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	page, err := a.Pipelines.Runs(ctx, ehr.RunQuery{Team: team, Pipeline: id, Cursor: cursor, Size: size})
	if err != nil {
		return nil, cursorProblem(err)
	}
	out := runsOut{Data: []runOut{}, NextCursor: next(page.Next)}
	for i := range page.Runs {
		r := &page.Runs[i]
		out.Data = append(out.Data, runOut{r.ID, r.Pipeline, r.StartedAt, r.EndedAt, r.Transactions, r.Sent, r.Failed, r.DeadLetters, orNull(r.LastError)})
	}
	return out, nil
}

func (a api) listDeadLetters(ctx context.Context, m *managed) (any, error) {
	id := m.pipelineID()
	size, cursor := m.page()
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	page, err := a.Pipelines.DeadLetters(ctx, ehr.LetterQuery{Team: team, Pipeline: id, Cursor: cursor, Size: size})
	if err != nil {
		return nil, cursorProblem(err)
	}
	return deadLettersOut{Data: page.Letters, NextCursor: next(page.Next)}, nil
}

func (a api) replayDeadLetters(ctx context.Context, m *managed) (any, error) {
	id := m.pipelineID()
	var body replayIn
	m.Body(&body)
	if body.Letters != nil && (len(*body.Letters) == 0 || len(*body.Letters) > mostReplayed) {
		m.Problem("invalid", "must have 1 to 1000 ids, or be null for all", "body", "dead_letter_ids")
	}
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	n, err := a.Pipelines.Replay(ctx, team, id, value(body.Letters))
	if err != nil {
		return nil, err
	}
	return replayedOut{n}, nil
}

// mostReplayed is the largest number of dead letters that one request may send again.
const mostReplayed = 1000
