package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/compat"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/aggregate"
)

// maxQueryBody is the default limit of a query body, in bytes.
const maxQueryBody = 256 << 10

func (a api) aggregateOperations() []server.Operation {
	if a.Aggregate == nil {
		return nil
	}
	return []server.Operation{{
		ID: "query_aggregate", Pattern: "POST /aggregate/v1/user/{user_id}/query", Bound: server.UserInPath, Team: a.queryAggregate,
		MaxBody: min(maxQueryBody, a.MaxBody),
		Replies: []server.Reply{
			{On: healthlab.NotFound, ErrorType: "USER_NOT_FOUND"},
			{On: context.DeadlineExceeded, Status: http.StatusGatewayTimeout, ErrorType: "QUERY_TIMEOUT", Msg: "the queries took longer than the time limit; ask for a shorter timeframe or fewer columns"},
		},
	}, {
		ID: "read_glucose_profile", Pattern: "GET /v2/user/{user_id}/glucose_profile", Bound: server.UserInPath, Team: a.readGlucoseProfile,
		Replies: []server.Reply{
			{On: healthlab.NotFound, ErrorType: "USER_NOT_FOUND"},
			{On: context.DeadlineExceeded, Status: http.StatusGatewayTimeout, ErrorType: "QUERY_TIMEOUT", Msg: "the queries took longer than the time limit; ask for a shorter timeframe or fewer columns"},
		},
	}, {
		ID: "read_query_schema", Pattern: "GET /aggregate/v1/schema", Bound: server.Public, Team: server.AsJSON(a.readQuerySchema),
	}}
}

func (a api) readQuerySchema(_ context.Context, in *wire.In, _ healthlab.TeamID) (any, error) {
	if err := in.Err(); err != nil {
		return nil, err
	}
	return aggregate.Describe(), nil
}

func (a api) queryAggregate(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	user := userID(in)
	explain := in.Bool("explain", false)
	data := in.Raw()
	archive := mediaType(a.ServiceName)
	kinds := a.tableTypes(archive)
	kind, ok := accepted(r.Header.Values("Accept"), kinds...)
	if !ok {
		return notAcceptable(kinds)
	}
	if a.Compat != nil {
		data = compat.WithoutAccept(data)
	}
	req, err := a.Aggregate.Decode(data, a.IgnoreUnknown)
	if err := joinProblems(in.Err(), err); err != nil {
		return err
	}
	if req.ReadsLabResults() {
		if err := admitTo(r.Context(), "list_lab_results"); err != nil {
			return err
		}
	}
	ask := a.Aggregate.Query
	if explain {
		ask = a.Aggregate.Explain
	}
	result, err := ask(r.Context(), team, user, &req)
	if err != nil {
		return err
	}
	if kind == archive {
		w.Header().Set("Content-Type", archive)
		return a.Parquet.WriteArchive(w, result)
	}
	return wire.Stream(w, http.StatusOK, func(p *wire.Pieces) error { return result.WriteJSON(pieceWriter{p}) })
}

func (a api) tableTypes(files ...string) []string {
	if a.Parquet == nil {
		files = nil
	}
	return append([]string{"application/json"}, files...)
}

func notAcceptable(kinds []string) error {
	f := wire.NotAcceptable()
	f.Msg += ": it must include " + strings.Join(kinds, " or ")
	return f
}

// joinProblems joins the problems of a request's parameters (an InputError) and of its body (an InvalidError) into one
// error. In all other cases it returns request or, if that is nil, body.
func joinProblems(request, body error) error {
	var input *wire.InputError
	var invalid *healthlab.InvalidError
	if request == nil || !errors.As(request, &input) || !errors.As(body, &invalid) {
		return cmp.Or(request, body)
	}
	all := append(healthlab.Problems{}, input.Problems...)
	all.Under(invalid.Problems, "body")
	return &wire.InputError{Problems: all}
}

// pieceWriter is an io.Writer over a [wire.Pieces], which sends an answer in pieces.
type pieceWriter struct{ p *wire.Pieces }

func (w pieceWriter) Write(b []byte) (int, error) {
	w.p.B = append(w.p.B, b...)
	return len(b), w.p.Next()
}

// accepted chooses the media type of an answer from the Accept headers (RFC 9110, section 12.5.1). The q value of a
// kind is that of the most specific range that includes it. The kind with the highest q value wins, and on a tie the
// one whose range comes first, then the first kind. Without a header it returns the first kind. ok is false if the
// client accepts none.
func accepted(headers []string, kinds ...string) (kind string, ok bool) {
	ranges := acceptRanges(headers)
	if ranges == nil {
		return kinds[0], true
	}
	best, place := 0.0, 0
	for _, k := range kinds {
		specific, at := 0, -1
		for i := range ranges {
			if n := ranges[i].includes(k); n > specific {
				specific, at = n, i
			}
		}
		if at >= 0 && (ranges[at].q > best || ranges[at].q == best && best > 0 && at < place) {
			kind, best, place = k, ranges[at].q, at
		}
	}
	return kind, best > 0
}

// acceptRange is a media range of an Accept header, such as application/*, in lower case.
type acceptRange struct {
	name string
	q    float64
}

// acceptRanges returns the media ranges of Accept headers. It returns nil if they have none. A q value that is no
// number from 0 to 1 counts as 1.
func acceptRanges(headers []string) []acceptRange {
	var out []acceptRange
	for _, text := range wire.ListItems(headers) {
		name, params, _ := strings.Cut(text, ";")
		one := acceptRange{strings.ToLower(strings.TrimSpace(name)), 1}
		if one.name == "" {
			continue
		}
		for param := range strings.SplitSeq(params, ";") {
			key, value, _ := strings.Cut(param, "=")
			if !strings.EqualFold(strings.TrimSpace(key), "q") {
				continue
			}
			if q, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && q >= 0 && q <= 1 {
				one.q = q
			}
		}
		out = append(out, one)
	}
	return out
}

// includes returns how specific the range is for a media type: 3 for the type itself, 2 for its group, 1 for every
// type, and 0 if the range does not include it. Some clients write * for */*.
func (r acceptRange) includes(kind string) int {
	kind = strings.ToLower(kind)
	group, _, _ := strings.Cut(kind, "/")
	switch r.name {
	case kind:
		return 3
	case group + "/*":
		return 2
	case "*/*", "*":
		return 1
	}
	return 0
}

// priorityOperations lists the operations on a team's preferences between providers.
func (a api) priorityOperations() []server.Operation {
	if a.Priorities == nil {
		return nil
	}
	const path = " /v2/team/source/priorities"
	return []server.Operation{
		{ID: "read_source_priorities", Pattern: http.MethodGet + path, Bound: server.TeamOnly, Team: server.AsJSON(a.readPriorities)},
		{ID: "change_source_priorities", Pattern: http.MethodPatch + path, Bound: server.TeamOnly, Team: server.AsJSON(a.changePriorities)},
	}
}

// priorityOut is a team's priority of one provider for one kind of data.
type priorityOut struct {
	// Data is the kind of data. It is null for the priority that applies to all kinds without a priority of their
	// own.
	Data     *string `json:"data_type"`
	Provider string  `json:"provider"`
	Number   int     `json:"priority"`
}

func prioritiesOut(list []aggregate.Priority) []priorityOut {
	out := make([]priorityOut, len(list))
	for i, p := range list {
		out[i] = priorityOut{Data: orNull(p.Data), Provider: p.Provider, Number: p.Number}
	}
	return out
}

func (a api) readPriorities(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	data := in.OptText("data_type", 32)
	if err := in.Err(); err != nil {
		return nil, err
	}
	list, err := a.Priorities.About(ctx, team, orEmpty(data))
	if err != nil {
		return nil, err
	}
	return prioritiesOut(list), nil
}

// priorityIn sets the priority of a provider. A null priority deletes it.
type priorityIn struct {
	Data     *string `json:"data_type"`
	Provider string  `json:"provider"`
	Number   *int    `json:"priority" wire:"required"`
}

func (a api) changePriorities(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	const most = 1000
	var body []priorityIn
	in.Body(&body)
	if len(body) > most {
		in.Problem("too_many_items", fmt.Sprintf("must have at most %d elements", most), "body")
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	edits := make([]aggregate.PriorityEdit, len(body))
	for i, p := range body {
		edits[i] = aggregate.PriorityEdit{Provider: p.Provider, Data: orEmpty(p.Data), Number: p.Number}
	}
	list, err := a.Priorities.Change(ctx, team, edits)
	if err != nil {
		return nil, err
	}
	return prioritiesOut(list), nil
}
