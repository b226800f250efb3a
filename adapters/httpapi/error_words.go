package httpapi

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// replies returns the replies of the operation, with default texts for those about a rule or a 404 without one. Replies
// for all operations follow: a 404 that names the kind of thing and its id, and a 401 that names the header of the
// credential. For a RuleError the reply of its rule follows instead, and for a Fault none.
func (a api) replies(r *http.Request, c *call, err error) []server.Reply {
	var rule *healthlab.RuleError
	words := ""
	if errors.As(err, &rule) {
		words = ruleWords(r, rule)
	}
	all := make([]server.Reply, 0, len(c.op.Replies)+2)
	for _, reply := range c.op.Replies {
		switch {
		case reply.Msg != "":
		case rule != nil && reply.Rule == rule.Type:
			reply.Msg = words
		case rule == nil && errors.Is(reply.On, healthlab.NotFound):
			reply.Msg = notFoundWords(r)
		}
		all = append(all, reply)
	}
	if rule != nil {
		return append(all, server.Reply{Rule: rule.Type, Msg: words})
	}
	var fault *wire.Fault
	if errors.As(err, &fault) {
		return all
	}
	return append(all,
		server.Reply{On: healthlab.NotFound, Msg: notFoundWords(r)},
		server.Reply{On: healthlab.Unauthenticated, Msg: a.credentialWords(c)})
}

// ruleWords returns a text for an error such as ORDER_NOT_FOUND that names the id in the path. It returns "" if the
// text of the rule should be used.
func ruleWords(r *http.Request, rule *healthlab.RuleError) string {
	kind, ok := strings.CutSuffix(rule.Type, "_NOT_FOUND")
	if !ok || !errors.Is(rule, healthlab.NotFound) {
		return ""
	}
	kind = strings.ToLower(kind)
	last := kind[strings.LastIndex(kind, "_")+1:]
	for _, part := range strings.Split(r.Pattern, "/") { // UNMATCHED_RESULT_NOT_FOUND names raw_result_id
		name, ok := strings.CutSuffix(strings.TrimPrefix(part, "{"), "_id}")
		if !ok || name[strings.LastIndex(name, "_")+1:] != last || name == "client_user" {
			continue
		}
		if id, err := uuid.Parse(r.PathValue(name + "_id")); err == nil {
			return strings.ReplaceAll(kind, "_", " ") + " " + id.String() + " not found: " + rule.Msg
		}
	}
	return ""
}

// notFoundWords names what was not found: the kind of the last id in the path, or what that thing may lack, or what the
// body names. It repeats an id only if it is a UUID, because other texts may concern a person.
func notFoundWords(r *http.Request) string {
	_, path, _ := strings.Cut(r.Pattern, " ")
	parts := strings.Split(strings.Trim(strings.TrimSuffix(path, "{$}"), "/"), "/")
	thing, after := "", 0
	for i, part := range parts {
		name, ok := pathParameter(part)
		if !ok {
			continue
		}
		if name == "client_user_id" {
			return "user with this client_user_id not found"
		}
		kind, isID := strings.CutSuffix(name, "_id")
		kind = strings.ReplaceAll(kind, "_", " ")
		if id := r.PathValue(name); isUUID(id) && isID {
			thing, after = kind+" "+id, i+1
		} else if thing == "" && (isID || name == "provider") {
			thing, after = kind, i+1
		}
	}
	if thing == "" {
		if user := r.URL.Query().Get("user_id"); isUUID(user) {
			return "user " + user + " not found"
		}
		return "an object that the request names by id was not found in this team"
	}
	words := thing + " not found"
	if lack := lackWords(r.Method, parts[after:]); lack != "" {
		words += ", or it has no " + lack
	} else if slices.Contains(parts[:after], "profile") && r.Method == http.MethodGet { // its path ends with the user's id
		words += ", or it has no profile"
	}
	if r.Method != http.MethodGet && r.ContentLength != 0 {
		words += ", or the body names something that does not exist"
	}
	return words
}

// lackWords names what a thing may lack, by the path segments after the thing's id; "" if the path names nothing of it.
func lackWords(method string, after []string) string {
	words := ""
	for _, part := range after {
		name, ok := pathParameter(part)
		switch {
		case name == "resource":
			return "" // every user has all resources
		case !ok:
			words = strings.TrimSpace(words + " " + strings.ReplaceAll(part, "_", " "))
			continue
		}
		kind := strings.ReplaceAll(strings.TrimSuffix(name, "_id"), "_", " ")
		switch {
		case words == "" && kind == "provider":
			return "connection to this provider"
		case words == "" || words == kind:
			return "such " + kind
		default:
			return words + " for this " + kind
		}
	}
	if method != http.MethodGet {
		return "" // a segment such as sign_out is an action, and no part of the thing
	}
	return words
}

func pathParameter(part string) (name string, ok bool) {
	return strings.CutPrefix(strings.TrimSuffix(part, "}"), "{")
}

func isUUID(s string) bool { return uuid.Validate(s) == nil }

// credentialWords names the header in which the operation expects its credential.
func (a api) credentialWords(c *call) string {
	switch {
	case c.needs.scheme == "LinkTokenKey":
		return "missing or unknown link token; send it in the " + a.LinkTokenHeader + " header"
	case c.needs.scheme == "ManagementKey":
		return "missing or unknown management key; send it in the " + a.ManagementKeyHeader + " header"
	}
	if a.SignIn != nil {
		return "the caller is not signed in; the contract at /openapi.json says how"
	}
	words := "missing or unknown API key; send it in the " + a.KeyHeader + " header"
	if c.own && a.Apps != nil {
		words += ", or a user token in the Authorization header"
	}
	return words
}
