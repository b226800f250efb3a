package httpapi

import (
	"net/http"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// maxQuestion is the largest body of a question.
const maxQuestion = 256 << 10

func (a api) aggregateOperations() []operation {
	if a.Aggregate == nil {
		return nil
	}
	return []operation{{
		id: "query_aggregate", pattern: "POST /aggregate/v1/user/{user_id}/query", team: a.queryAggregate, maxBody: maxQuestion,
	}}
}

// queryAggregate answers questions over a user's data.
func (a api) queryAggregate(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	user := userID(in)
	body := in.Raw()
	if err := in.Err(); err != nil {
		return err
	}
	if !acceptsJSON(r.Header.Values("Accept")) {
		return wire.NotAcceptable()
	}
	req, err := a.Aggregate.Decode(body, a.IgnoreUnknown)
	if err != nil {
		return err
	}
	result, err := a.Aggregate.Query(r.Context(), team, user, &req)
	if err != nil {
		return err
	}
	return wire.Bytes(w, http.StatusOK, "application/json", result.AppendJSON(nil))
}

// acceptsJSON reports whether an accept header lets JSON through; none does.
func acceptsJSON(accept []string) bool {
	if len(accept) == 0 {
		return true
	}
	for _, list := range accept {
		for item := range strings.SplitSeq(list, ",") {
			media, _, _ := strings.Cut(item, ";")
			switch strings.TrimSpace(media) {
			case "*/*", "application/*", "application/json", "":
				return true
			}
		}
	}
	return false
}
