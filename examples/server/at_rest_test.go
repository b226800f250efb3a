package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// readable are the fields of the contract whose texts are kept in clear, by operation and place, and
// why.
var readable = map[string]string{
	"create_continuous_query body.title": "the team's name of a query, about no person; every write of data reads the query",
	"patch_continuous_query body.title":  "as in create_continuous_query",
	"ingest_samples body.source.type":    "part of the key of a series",
	"ingest_samples body.source.app_id":  "part of the key of a series",
	"ingest_samples body.data.0.type":    "part of the key of a series",
}

// unreached are the operations whose requests are never accepted here, and why.
var unreached = func() map[string]string {
	const (
		noText       = "it takes no text that is kept"
		appointments = "it keeps what those at home keep: book_phlebotomy_appointment and its like"
		elsewhere    = "the same rows are planted by personkeytest: AtRest/Reviews"
	)
	return map[string]string{
		"accept_unmatched_result": elsewhere, "resolve_unmatched_result": elsewhere, "start_unmatched_result_test": elsewhere,
		"book_psc_appointment": appointments, "reschedule_psc_appointment": appointments, "cancel_psc_appointment": appointments,
		"request_phlebotomy_appointment": appointments, "find_phlebotomy_slots": noText, "find_psc_slots": noText,
		"change_order": noText, "complete_draw": noText, "simulate_order": noText, "query_aggregate": noText, "ingest_workout_stream": noText,
		"refresh_user": noText, "refresh_app": noText, "remove_summaries": noText, "retry_webhook_message": noText, "rotate_api_key": noText,
		"search_payors_by_body": noText, "send_webhook_test": noText, "undo_delete_user": noText, "connect_demo_provider": noText,
		"push_from_provider": noText, "push_to_team_client": noText,
		"approve_lab_report":          "the job and its review are one sealed row, which reject_lab_report writes",
		"acknowledge_critical_result": "it needs a result that a laboratory sent; the loop is one sealed row, with the snapshot of the result",
		"bulk_import":                 "it needs tokens of a provider; it makes the connections that link_password_provider makes",
		"import_order":                "it writes the order that create_order writes",
		"register_testkit":            "the sample id is planted by personkeytest: AtRest/Orders",
	}
}()

// named are fields that name something which exists, so that they hold no free text, by their name, or by
// the operation and their name.
var named = map[string]any{
	"provider": "manual", "environment": "sandbox", "region": "us", "resource": "note", "time_zone": "Europe/Berlin", "fallback_time_zone": "Europe/Berlin",
	"lab": "northlab", "lab_slug": "northlab", "target_lab": "northlab", "labs": []any{"northlab"}, "lab_account_id": absent{},
	"collection_method": "walk_in_test", "method": "walk_in_test", "provider_ids": absent{},
	"clearing_house": absent{}, "provider_payor_id": absent{}, "creator_member_id": absent{}, "health_insurance": absent{},
	"link_password_provider provider": "acme_diary", "complete_mfa provider": "acme_diary", "link_email_provider provider": "acme_cgm",
	"link_with_credentials provider": "acme_diary", "link_with_credentials auth_type": "password",
	"link_with_email provider": "acme_cgm", "link_with_email auth_type": "email", "connect_demo_provider provider": "acme_band",
	"start_link provider": "acme_band", "set_custom_credentials provider": "acme_band", "prepare_custom_credentials provider": "acme_band", "bulk_import provider": "acme_band", "bulk_export provider": "acme_band",
	"filter_on_providers": []any{"acme_band"}, "provider_priority_overrides": absent{}, "push_from_provider provider": "acme_band",
	"ingest_samples unit": "text", "ingest_menstrual_cycle value": 36.4, "create_payor provider": absent{}, "create_team id": absent{},
	"order_set": absent{}, "lab_test_id": tourLabTest, "systolic": absent{}, "diastolic": absent{}, "event_destination_preferences": absent{},
	"aoe_answers": absent{}, "details": absent{}, "set_pull_preferences providers": map[string]any{}, "ingest_meal energy": absent{}, "import_order billing_type": "client_bill", "parent_id": absent{}, "activate_by": absent{}, "validate_continuous_query query": validQuery,
	"needs_human_review": true, "replaces_order_id": absent{}, "list_order_set_markers lab_test_ids": []any{tourLabTest},
	"create_continuous_query query": validQuery,
}

var validQuery = json.RawMessage(`{"select":[{"group_key":"*"},{"arg":{"sleep":"session_start"},"func":"count"}],"group_by":[{"date_trunc":{"value":1,"unit":"week"},"arg":{"index":"sleep"}}]}`)

// known are values of fields that take few texts or few values, by the name of the field. Texts are tried
// first.
var known = map[string]any{
	"phone_number": "+14155550123", "phone": "+14155550123", "state": "AZ", "zip": "85004", "zip_code": "85004", "country": "US",
	"gender": "female", "dob": "1988-03-07", "value": 61, "type": "app", "icd_code": "E11.9",
	"consentType": "terms-of-use", "npi": "1245319599", "content": "iVBORw0KGgo=", "content_type": "image/png", "result_type": "numeric",
	"licensed_state": "AZ", "billing_type": "client_bill", "time": 1772348400, "link_allowed_origin": "https://app.example.org",
	"end": "2026-03-01T08:00:00+00:00", "time_end": "2026-03-01T08:00:00+00:00", "session_end": "2026-03-01T08:00:00+00:00",
	"bedtime_stop": "2026-03-01T08:00:00+00:00", "preferred": absent{}, "marker_id": 1, "expires_at": 2147483647, "field": absent{},
}

// forms are how fields hold a mark, by name, where it does not stand alone.
var forms = map[string]string{"first_line": "77 %s Mews"}

// planter sends the operations of the contract with a text of its own in each field that takes text, and
// notes which texts were taken.
type planter struct {
	*program
	doc map[string]any
	// ids are what operations answered, by the name under which others ask for it.
	ids map[string]string
	// planted are the marks in requests that were accepted, by operation and place.
	planted map[string]string
	// accepted are the operations that accepted a request.
	accepted map[string]bool
	// failed are the answers to requests that were refused, by operation.
	failed map[string]string
	n      int
}

// at returns what a pointer into the contract leads to, and what it leads to by references.
func (p *planter) at(node map[string]any) map[string]any {
	for {
		ref, ok := node["$ref"].(string)
		if !ok {
			return node
		}
		next := any(p.doc)
		for key := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			next = next.(map[string]any)[strings.ReplaceAll(key, "~1", "/")]
		}
		node = next.(map[string]any)
	}
}

func (p *planter) mark() string {
	p.n++
	word := []byte("Zqaaaamark") // letters alone, for fields of names
	for i, n := 5, p.n; n > 0; i, n = i-1, n/26 {
		word[i] = byte('a' + n%26)
	}
	return string(word)
}

// request is a request that is being made. A place is the path of a field in it.
type request struct {
	*planter
	op    string
	tries map[string]int    // how often a place was refused
	marks map[string]string // by place
	last  map[string]bool   // places that have no other value any more
}

// named returns what a field or parameter holds that names something.
func (r *request) named(name string) (any, bool) {
	if name == "link_token" {
		return r.linkToken(), true
	}
	if v, ok := r.ids[r.op+" "+name]; ok {
		return v, true
	}
	if v, ok := named[r.op+" "+name]; ok {
		return v, true
	}
	v, ok := named[name]
	return v, ok
}

// absent is the value of a field that is left out.
type absent struct{}

// choices are the values of a text field, in the order in which they are tried.
func (r *request) choices(name string, required bool) []any {
	mark := r.mark()
	all := []any{fmt.Sprintf(cmp.Or(forms[name], "%s"), mark), mark + "@example.org", "https://hooks.example.org/in?token=" + mark}
	if v, ok := r.named(name); ok {
		all = []any{v}
	}
	if v, ok := r.ids[name]; ok {
		all = []any{v}
	}
	if v, ok := known[name]; ok {
		all = append(all, v)
	}
	if !required {
		all = append(all, absent{})
	}
	return all
}

// value makes the value of a schema.
func (r *request) value(node map[string]any, place, name string, required bool, depth int) any {
	node = r.at(node)
	if v, ok := r.named(name); ok && r.tries[place] == 0 {
		return v
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list, ok := node[key].([]any); ok {
			branch := list[min(r.tries[place], len(list)-1)].(map[string]any)
			return r.value(branch, place, name, required, depth)
		}
	}
	if list, ok := node["allOf"].([]any); ok {
		out := map[string]any{}
		for _, part := range list {
			if v, ok := r.value(part.(map[string]any), place, name, required, depth).(map[string]any); ok {
				maps.Copy(out, v)
			}
		}
		return out
	}
	if node["type"] == "null" {
		return nil
	}
	if r.tries[place] > 0 && !required && (node["properties"] != nil || node["items"] != nil) || depth > 8 {
		return absent{}
	}
	if properties, ok := node["properties"].(map[string]any); ok {
		needed, _ := node["required"].([]any)
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			v := r.value(properties[key].(map[string]any), place+"."+key, key, slices.Contains(needed, any(key)), depth+1)
			if v != (absent{}) {
				out[key] = v
			}
		}
		return out
	}
	if items, ok := node["items"].(map[string]any); ok {
		v := r.value(items, place+".0", strings.TrimSuffix(name, "s"), r.at(items)["properties"] != nil, depth+1)
		if v == (absent{}) {
			return []any{}
		}
		return []any{v}
	}
	if more, ok := node["additionalProperties"].(map[string]any); ok {
		return map[string]any{"x-planted": r.value(more, place+".x-planted", "", true, depth+1)}
	}
	return r.leaf(node, place, name, required)
}

// leaf makes a value without members.
func (r *request) leaf(node map[string]any, place, name string, required bool) any {
	var all []any
	text := strings.Contains(fmt.Sprint(node["type"]), "string")
	switch free := text && node["enum"] == nil && node["pattern"] == nil && node["const"] == nil; {
	case free && (node["format"] == nil || node["format"] == "email" || node["format"] == "uri"):
		all = r.choices(name, required)
	default:
		if v, ok := r.ids[name]; ok {
			all = append(all, v)
		}
		if v, ok := known[name]; ok {
			all = append(all, v)
		}
		all = append(all, sound(node))
		if !required {
			all = append(all, absent{})
		}
	}
	if r.tries[place] >= len(all) {
		r.last[place] = true
	}
	v := all[min(r.tries[place], len(all)-1)]
	if s, ok := v.(string); ok && strings.Contains(s, "mark") {
		r.marks[place] = s[strings.Index(s, "Zq"):][:10]
	}
	return v
}

// sound returns a value of a schema that takes few.
func sound(node map[string]any) any {
	for _, key := range []string{"enum", "examples"} {
		if list, ok := node[key].([]any); ok && len(list) > 0 {
			return list[0]
		}
	}
	if v, ok := node["default"]; ok && v != nil {
		return v
	}
	kind := fmt.Sprint(node["type"])
	switch {
	case strings.Contains(kind, "boolean"):
		return false
	case strings.Contains(kind, "integer"), strings.Contains(kind, "number"):
		if low, ok := node["minimum"]; ok {
			return low
		}
		return 1
	case strings.Contains(kind, "object"):
		return map[string]any{}
	}
	switch node["format"] {
	case "uuid":
		return "6f1c0b52-0000-4000-8000-000000000002"
	case "date":
		return "2026-03-01"
	case "date-time":
		return "2026-03-01T07:00:00+00:00"
	}
	return "x"
}

// send sends an operation until its request is accepted: a field that is refused gets its next value.
func (p *planter) send(path, method string, op map[string]any) {
	id := op["operationId"].(string)
	r := &request{planter: p, op: id, tries: map[string]int{}, last: map[string]bool{}}
	for range 25 {
		r.marks = map[string]string{}
		status, body := r.once(path, method, op)
		if status < 300 {
			p.accepted[id] = true
			for place, mark := range r.marks {
				p.planted[id+" "+place] = mark
			}
			p.harvest(id, body)
			return
		}
		p.failed[id] += fmt.Sprintf("\n%d %s", status, body)
		require.True(p, status < 500 || status == http.StatusNotImplemented, "%s: %s", id, body)
		var problems struct{ Detail []struct{ Loc []any } }
		if json.Unmarshal(body, &problems) != nil || len(problems.Detail) == 0 {
			return
		}
		for _, problem := range problems.Detail {
			place := strings.Trim(strings.ReplaceAll(fmt.Sprint(problem.Loc), " ", "."), "[]")
			r.tries[place]++
		}
	}
}

func (r *request) once(path, method string, op map[string]any) (int, []byte) {
	query, header := url.Values{}, http.Header{}
	parameters, _ := op["parameters"].([]any)
	for _, v := range parameters {
		param := r.at(v.(map[string]any))
		name, in := param["name"].(string), param["in"].(string)
		if in == "path" {
			continue
		}
		needed, _ := param["required"].(bool)
		value := r.value(param["schema"].(map[string]any), in+"."+name, name, needed, 0)
		if list, ok := value.([]any); ok && len(list) > 0 {
			value = list[0]
		}
		switch {
		case value == (absent{}):
		case in == "query":
			query.Set(name, fmt.Sprint(value))
		default:
			header.Set(name, fmt.Sprint(value))
		}
	}
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			name = strings.TrimSuffix(name, "}")
			part = "6f1c0b52-0000-4000-8000-000000000001"
			if v, ok := r.named(name); ok {
				part = v.(string)
			}
			for _, known := range []string{name, r.op + " " + name} {
				if v, ok := r.ids[known]; ok {
					part = v
				}
			}
		}
		parts = append(parts, part)
	}
	target := r.url + strings.Join(parts, "/")
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	var body io.Reader = http.NoBody
	if content, ok := op["requestBody"].(map[string]any); ok {
		kinds, _ := r.at(content)["content"].(map[string]any)
		if kind, ok := kinds["application/json"].(map[string]any); ok {
			b, err := json.Marshal(r.value(kind["schema"].(map[string]any), "body", "", true, 0))
			require.NoError(r, err)
			body = bytes.NewReader(b)
			header.Set("content-type", "application/json")
		}
		if form, ok := kinds["multipart/form-data"].(map[string]any); ok {
			var kind string
			body, kind = r.form(form["schema"].(map[string]any))
			header.Set("content-type", kind)
		}
	}
	q, err := http.NewRequestWithContext(r.Context(), strings.ToUpper(method), target, body)
	require.NoError(r, err)
	maps.Copy(q.Header, header)
	security := fmt.Sprint(op["security"])
	switch {
	case strings.Contains(security, "LinkTokenKey"):
		q.Header.Set("x-service-link-token", r.linkToken())
	case strings.Contains(security, "ManagementKey"):
		q.Header.Set("x-management-key", "manager")
	default:
		q.Header.Set("x-service-api-key", r.key)
	}
	answer, err := http.DefaultClient.Do(q)
	require.NoError(r, err)
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	require.NoError(r, err)
	return answer.StatusCode, got
}

// form makes a form, with a mark in the name and in the text of its file.
func (r *request) form(schema map[string]any) (io.Reader, string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for name, v := range r.value(schema, "body", "", true, 0).(map[string]any) {
		if name != "file" {
			require.NoError(r, w.WriteField(name, fmt.Sprint(v)))
			continue
		}
		mark := r.mark()
		r.marks["body.file"] = mark
		part, err := w.CreateFormFile(name, mark+".pdf")
		require.NoError(r, err)
		_, err = part.Write(reportPDF())
		require.NoError(r, err)
	}
	require.NoError(r, w.Close())
	return &b, w.FormDataContentType()
}

func (p *planter) linkToken() string {
	var token struct {
		LinkToken string `json:"link_token"`
	}
	ask(p.program, "POST", "/v2/link/token", `{"user_id":"`+p.ids["user_id"]+`"}`, 200, &token)
	return token.LinkToken
}

// answers say where operations answer the ids that others ask for.
var answers = map[string][][2]string{
	"create_user":             {{"user_id", "user_id"}},
	"create_order":            {{"order_id", "order.id"}},
	"create_webhook":          {{"webhook_id", "id"}},
	"create_continuous_query": {{"query_id", "id"}},
	"create_sign_in_token":    {{"sign_in_token", "sign_in_token"}},
	"create_link_code":        {{"code", "code"}},
	"create_payor":            {{"payor_code", "payor_code"}},
	"create_lab_report_job":   {{"job_id", "id"}},
	"create_lab_test":         {{"change_lab_test lab_test_id", "id"}},
}

// offerVisits places an order whose sample is taken at home, and notes what its appointment is booked,
// moved and cancelled with.
func (p *planter) offerVisits() {
	var tests struct {
		Data []struct{ ID, Method string } `json:"data"`
	}
	p.get("/v3/lab_test?collection_method=at_home_phlebotomy", &tests)
	require.NotEmpty(p, tests.Data)
	var placed struct{ Order struct{ ID string } }
	served := strings.NewReplacer("Springfield", "Phoenix", `"IL"`, `"AZ"`, "62701", "85004").Replace(anOrder)
	ask(p.program, "POST", "/v3/order", fmt.Sprintf(served, p.ids["user_id"], tests.Data[0].ID, time.Now().Year()-40), 200, &placed)
	var offer struct {
		Slots []struct {
			Slots []struct {
				Key string `json:"booking_key"`
			} `json:"slots"`
		} `json:"slots"`
	}
	ask(p.program, "POST", "/v3/order/phlebotomy/appointment/availability", `{"first_line":"1 Example Street","city":"Phoenix","state":"AZ","zip_code":"85004"}`, 200, &offer)
	var keys []string
	for _, day := range offer.Slots {
		for _, slot := range day.Slots {
			keys = append(keys, slot.Key)
		}
	}
	require.GreaterOrEqual(p, len(keys), 2)
	keys = keys[len(keys)-2:] // days away: a visit in the next two hours is called off at once while its order has no requisition
	var reasons []struct{ ID string }
	p.get("/v3/order/phlebotomy/appointment/cancellation-reasons", &reasons)
	maps.Copy(p.ids, map[string]string{
		"book_phlebotomy_appointment order_id": placed.Order.ID, "book_phlebotomy_appointment booking_key": keys[0],
		"reschedule_phlebotomy_appointment order_id": placed.Order.ID, "reschedule_phlebotomy_appointment booking_key": keys[1],
		"cancel_phlebotomy_appointment order_id": placed.Order.ID, "cancel_phlebotomy_appointment cancellation_reason_id": reasons[0].ID,
	})
}

// harvest keeps the ids of an answer.
func (p *planter) harvest(op string, body []byte) {
	for _, a := range answers[op] {
		var v any
		require.NoError(p, json.Unmarshal(body, &v))
		for key := range strings.SplitSeq(a[1], ".") {
			v = v.(map[string]any)[key]
		}
		id, ok := v.(string)
		require.True(p, ok, "%s: %s", op, body)
		if p.ids[a[0]] == "" {
			p.ids[a[0]] = id
		}
	}
}

// Every text that a request of the contract brings is encrypted, or found by a digest under a key:
// of all free texts that the service takes, none is in its files.
func TestAtRest_noTextOfARequestIsStoredInClear(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	p := &planter{program: start(t, "-data", dir, "-management-key", "manager", "-portal-url", "https://portal.example.org"), ids: map[string]string{}, planted: map[string]string{}, failed: map[string]string{}, accepted: map[string]bool{}}
	p.get("/openapi.json", &p.doc)
	p.ids["team_id"], p.ids["org_id"] = teamOf(p.key).String(), orgOf(p.program)
	type operation struct {
		path, method string
		node         map[string]any
	}
	operations := map[string]operation{}
	for path, item := range p.doc["paths"].(map[string]any) {
		for method, v := range item.(map[string]any) {
			if node := v.(map[string]any); method != "delete" && method != "get" && method != "parameters" {
				operations[node["operationId"].(string)] = operation{path, method, node}
			}
		}
	}
	order := slices.Concat([]string{
		"create_user", "connect_manual_provider", "create_order", "create_payor", "create_sign_in_token", "create_link_code", "create_continuous_query",
		"book_phlebotomy_appointment", "reschedule_phlebotomy_appointment", "cancel_phlebotomy_appointment",
	}, slices.Sorted(maps.Keys(operations)), slices.Sorted(maps.Keys(operations)))
	for i, id := range order {
		if id == "book_phlebotomy_appointment" {
			p.offerVisits()
		}
		if i == len(order)-len(operations) {
			wait(t, func() bool {
				var job struct{ Status string }
				p.get("/lab_report/v1/parser/job/"+p.ids["job_id"], &job)
				return job.Status == "pending_review" || p.accepted["reject_lab_report"]
			})
		}
		op := operations[id]
		p.send(op.path, op.method, op.node)
	}
	for op, why := range p.failed {
		if !p.accepted[op] && unreached[op] == "" {
			t.Errorf("%s accepts no request: %s", op, why)
		}
	}
	for op := range unreached {
		require.False(t, p.accepted[op], "%s accepts requests", op)
	}
	require.Greater(t, len(p.planted), 200)
	for _, place := range []string{
		"connect_manual_provider body.provider_id", "link_password_provider body.username", "link_email_provider body.email", "create_link_token body.redirect_url",
		"create_webhook body.url", "ingest_samples body.data.0.value", "ingest_samples body.data.0.tags.0", "create_order body.clinical_notes", "create_user body.client_user_id",
	} {
		require.Contains(t, p.planted, place)
	}
	p.quit()
	found := map[string][]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		low := bytes.ToLower(b)
		for place, mark := range p.planted {
			if holds(low, b, mark) {
				found[place] = append(found[place], e.Name())
			}
		}
		return err
	}))
	for place := range found {
		if readable[place] == "" {
			t.Errorf("%s is kept in clear in %v", place, found[place])
		}
	}
}

// holds reports whether a file has a mark, as text in any case, in hex or in base64.
func holds(low, file []byte, mark string) bool {
	if bytes.Contains(low, bytes.ToLower([]byte(mark))) || bytes.Contains(low, []byte(hex.EncodeToString([]byte(mark)))) {
		return true
	}
	for shift := range 3 { // where the mark begins within a group of three bytes
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat(" ", shift) + mark))
		if bytes.Contains(file, []byte(text[(shift*8+5)/6:len(text)-2])) {
			return true
		}
	}
	return false
}
