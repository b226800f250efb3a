package httpapi

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
)

// accessOperations lists the operations that read the access log.
func (a api) accessOperations() []server.Operation {
	if a.Access == nil {
		return nil
	}
	ops := []server.Operation{
		{ID: "read_access_log", Pattern: "GET /v2/access_log", Bound: server.UserInQuery, Team: server.AsJSON(a.readAccessLog)},
		{ID: "read_user_access_log", Pattern: "GET /v2/user/{user_id}/access_log", Bound: server.UserInPath, Team: server.AsJSON(a.readUserAccessLog)},
	}
	if a.AuthenticateManagement != nil && a.Environment != "" {
		ops = append(ops, server.Operation{ID: "export_access_log", Pattern: "GET " + managementPath + "/access_log", Handle: a.managing(a.exportAccessLog)})
	}
	return ops
}

// accessNote collects, while a request is handled, who sent it and whose data it reads or writes.
type accessNote struct {
	team    healthlab.TeamID
	actor   string
	persons []healthlab.UserID
	// tried is the other user that a request names if its caller is bound to one user; else zero.
	tried healthlab.UserID
}

type accessNoteKey struct{}

func concerns(ctx context.Context, user healthlab.UserID) {
	if note, ok := ctx.Value(accessNoteKey{}).(*accessNote); ok && !user.IsZero() {
		note.persons = append(note.persons, user)
	}
}

// linkActor is the actor of link token requests in the access log.
const linkActor = "link"

// byLink records that a request uses a link token. It ignores a token that this service did not sign.
func (a api) byLink(ctx context.Context, token string) {
	note, ok := ctx.Value(accessNoteKey{}).(*accessNote)
	if !ok || token == "" {
		return
	}
	if team, user, ours := a.tokenUser(token); ours {
		note.team, note.actor = team, linkActor
		concerns(ctx, user)
	}
}

// actorOf returns the name of a caller for the access log: "app", "key", or "key:" and the id of the key.
func actorOf(r *http.Request, c Caller) string {
	if _, own := r.Context().Value(ownKey{}).(healthlab.UserID); own {
		return "app"
	}
	if c.Key == uuid.Nil {
		return "key"
	}
	return "key:" + c.Key.String()
}

// userInAnswer matches the user ids in a JSON answer.
var userInAnswer = regexp.MustCompile(`"user_id":"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"`)

// personalIDs lists the path parameters that identify data of one person.
var personalIDs = []string{"user_id", "order_id", "transaction_id", "job_id", "raw_result_id", "critical_result_id", "workout_id", "sleep_id"}

// recordTime is how long access log entries may take to store after the context of the request has ended.
const recordTime = 5 * time.Second

// recorder returns a function that stores the access log entries of a request. The function takes the status and the
// first bytes of the answer. If it fails, the caller must not send the answer.
func (a api) recorder(r *http.Request, c *call) func(status int, body []byte) error {
	return func(status int, body []byte) error {
		ctx := r.Context()
		if server.StoreSilent(ctx) && !c.access.team.IsZero() {
			return server.ErrStoreSilent // the watch logs it once
		}
		entries := a.accessEntries(ctx, r, c, status, body)
		if len(entries) == 0 {
			return nil
		}
		if errors.Is(ctx.Err(), context.Canceled) { // the caller hung up, or the body did not arrive in time
			var stop context.CancelFunc
			ctx, stop = context.WithTimeout(context.WithoutCancel(ctx), recordTime)
			defer stop()
		}
		err := a.Access.Record(ctx, entries...)
		if err != nil {
			a.logFailure(r, c, "access not recorded", err)
		}
		return err
	}
}

func (a api) recordIn(ctx context.Context, r *http.Request, c *call, status int, body []byte) error {
	if a.Access == nil {
		return nil
	}
	return a.Access.Add(ctx, a.accessEntries(ctx, r, c, status, body)...)
}

// accessEntries returns the access log entries of a request: one for each person whose data it concerns. status and
// body are those of the answer.
func (a api) accessEntries(ctx context.Context, r *http.Request, c *call, status int, body []byte) []accesslog.Entry {
	note := &c.access
	if note.team.IsZero() {
		return nil
	}
	kind := "admin"
	if needed := c.needs.scopes; len(needed) > 0 {
		kind, _, _ = strings.Cut(string(needed[0]), ":")
	} else if note.actor == linkActor {
		kind = "link"
	}
	persons := a.personsOf(ctx, r, c, status, body)
	entries := make([]accesslog.Entry, len(persons))
	for i, person := range persons {
		entries[i] = accesslog.Entry{
			Team: note.team, Actor: note.actor, Person: person, Kind: kind, Operation: c.op.ID, Status: status,
			Request: RequestID(ctx), Address: a.ClientAddress(r),
		}
	}
	return entries
}

// personsOf returns the users whose data a request concerns, each once. It returns only the zero id if the request
// concerns one person whose id is not known, and nil if it concerns no person.
func (a api) personsOf(ctx context.Context, r *http.Request, c *call, status int, body []byte) []healthlab.UserID {
	if tried := c.access.tried; !tried.IsZero() {
		return []healthlab.UserID{tried}
	}
	if id, err := uuid.Parse(r.PathValue("user_id")); err == nil {
		return []healthlab.UserID{{UUID: id}}
	}
	seen := map[healthlab.UserID]bool{}
	var out []healthlab.UserID
	add := func(user healthlab.UserID) {
		if !seen[user] {
			seen[user] = true
			out = append(out, user)
		}
	}
	for _, user := range c.access.persons {
		add(user)
	}
	for _, m := range userInAnswer.FindAllSubmatch(body, -1) {
		if id, err := uuid.ParseBytes(m[1]); err == nil {
			add(healthlab.UserID{UUID: id})
		}
	}
	if len(out) > 0 {
		return out
	}
	if id, err := uuid.Parse(r.PathValue("order_id")); err == nil && a.orderUser != nil && status < http.StatusBadRequest {
		if user, err := a.orderUser(ctx, c.access.team, id); err == nil {
			return []healthlab.UserID{user}
		}
	}
	for _, name := range personalIDs {
		if strings.Contains(c.op.Pattern, "{"+name+"}") {
			return []healthlab.UserID{{}}
		}
	}
	return nil
}

// accessLogOut is a page of access log entries.
type accessLogOut struct {
	Lines []accesslog.PublishedLine `json:"lines"`
	// Next is the sequence number of the last entry of this page. It is null on the last page.
	Next *int64 `json:"next_cursor"`
}

func (a api) readAccessLog(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	q := accesslog.Query{Team: team}
	if id := in.OptUUID("user_id"); id != nil {
		q.Person.UUID = *id
	}
	return a.accessLog(ctx, in, q)
}

func (a api) readUserAccessLog(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	return a.accessLog(ctx, in, accesslog.Query{Team: team, Person: userID(in)})
}

func (a api) accessLog(ctx context.Context, in *wire.In, q accesslog.Query) (any, error) {
	limit, after := in.Int("limit", 100, 1, 1000), in.Int("next_cursor", 0, 0, 1<<53)
	if err := in.Err(); err != nil {
		return nil, err
	}
	q.After, q.N = int64(after), limit+1
	list, err := a.Access.Lines(ctx, q)
	if err != nil {
		return nil, err
	}
	out := accessLogOut{Lines: []accesslog.PublishedLine{}}
	if len(list) > limit {
		list = list[:limit]
		out.Next = &list[limit-1].Seq
	}
	for i := range list {
		out.Lines = append(out.Lines, list[i].Published())
	}
	return out, nil
}

// exportAccessLog answers with a team's access log as NDJSON: its entries in order, then the signed anchors of the
// chain.
func (a api) exportAccessLog(w http.ResponseWriter, r *http.Request, m *managed) error {
	team, err := m.authorizedTeam()
	if err != nil {
		return err
	}
	anchors, err := a.Access.Anchors(r.Context(), team)
	if err != nil {
		return err
	}
	const page = 1000
	return wire.StreamAs(w, http.StatusOK, "application/x-ndjson", func(p *wire.Pieces) error { //nolint:contextcheck // the request's own
		for q := (accesslog.Query{Team: team, N: page}); ; {
			list, err := a.Access.Lines(r.Context(), q)
			if err != nil {
				return err
			}
			for i := range list {
				q.After = list[i].Seq
				p.B = list[i].AppendNDJSON(p.B)
				if err := p.Next(); err != nil {
					return err
				}
			}
			if len(list) < page {
				break
			}
		}
		for i := range anchors {
			p.B = anchors[i].AppendNDJSON(p.B)
			if err := p.Next(); err != nil {
				return err
			}
		}
		return nil
	})
}
